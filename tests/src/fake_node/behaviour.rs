//! How a fake answers one request.

use std::sync::Arc;

use tokio::sync::watch;

/// A way of answering one request.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// As an honest node.
    Honest,
    /// Not at all; later requests on the same connection are still read, and not answered either.
    Ignore,
    /// Does what is asked and then as [`Behaviour::Ignore`].
    ApplyThenIgnore,
    /// Closes the connection and does nothing.
    Close,
    /// Does what is asked and closes without an answer.
    ApplyThenClose,
    /// Does what is asked and closes in the middle of the answer.
    ApplyThenCutReply,
    /// Sends these bytes and does nothing.
    Answer(Vec<u8>),
    /// Does what is asked and sends these bytes instead of the answer.
    ApplyThenAnswer(Vec<u8>),
    /// Does what is asked and sends these bytes, then the answer.
    ApplyAfterSaying(Vec<u8>),
    /// Does what is asked and answers twice.
    ApplyThenAnswerTwice,
    /// Does what is asked and answers one byte at a time.
    ApplyThenTrickle,
    /// Announces a string of so many bytes and sends them as long as the client takes them.
    Flood(usize),
    /// Does what is asked and answers when the handle says so.
    ApplyThenWait(Hold),
    /// Does what is asked, and answers, when the handle says so.
    WaitThenApply(Hold),
}

impl Behaviour {
    /// Refuses with an error; the text starts with its code.
    pub fn error(text: &str) -> Self {
        Self::Answer(format!("-{text}\r\n").into_bytes())
    }

    /// Answers with a RESP3 push that nobody asked for, then as an honest node.
    pub fn push_first() -> Self {
        Self::ApplyAfterSaying(b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n".to_vec())
    }
}

/// The errors that servers give, word for word.
pub mod errors {
    /// While Redis loads its data.
    pub const LOADING: &str = "LOADING Redis is loading the dataset in memory";
    /// What a restarted locknode says for another 4.2 seconds.
    pub const QUARANTINE: &str = "LOADING locknode is in its restart quarantine, 4200 ms left";
    /// A script that is not known.
    pub const NOSCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";
    /// A replica that was asked to write.
    pub const READONLY: &str = "READONLY You can't write against a read only replica.";
    /// No memory for new keys.
    pub const OOM: &str = "OOM command not allowed when used memory > 'maxmemory'.";
    /// A password that is not the right one.
    pub const WRONGPASS: &str = "WRONGPASS invalid username-password pair or user is disabled.";
    /// No password given.
    pub const NOAUTH: &str = "NOAUTH Authentication required.";
    /// A disk that does not take snapshots.
    pub const MISCONF: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. \
        Commands that may modify the data set are disabled, because this instance is configured to report errors during \
        writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details \
        about the RDB error.";
    /// A script that does not end.
    pub const BUSY: &str =
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
    /// A replica that has lost its master.
    pub const MASTERDOWN: &str =
        "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
    /// A user that may not.
    pub const NOPERM: &str = "NOPERM User default has no permissions to run the 'set' command";
    /// A command that the server does not have.
    pub const UNKNOWN: &str = "ERR unknown command 'SET', with args beginning with: ";
}

/// Keeps replies, or requests, back.
#[derive(Clone, Debug, Default)]
pub struct Hold {
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct Gate {
    is_open: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self {
            is_open: watch::Sender::new(false),
            waiting: watch::Sender::new(0),
        }
    }
}

impl Hold {
    /// Lets everything that waits go, and what comes later pass.
    pub fn release(&self) {
        self.gate.is_open.send_replace(true);
    }

    /// Waits until something is held.
    pub async fn caught(&self) {
        let caught = async {
            let mut waiting = self.gate.waiting.subscribe();
            let _ = waiting.wait_for(|&count| count > 0).await;
        };
        crate::patience::in_time("something to hold", caught).await;
    }

    /// How many things are held.
    pub fn held(&self) -> usize {
        *self.gate.waiting.borrow()
    }

    pub(crate) async fn wait(&self) {
        self.gate.waiting.send_modify(|count| *count += 1);
        let mut is_open = self.gate.is_open.subscribe();
        let _ = is_open.wait_for(|&is_open| is_open).await;
        self.gate.waiting.send_modify(|count| *count -= 1);
    }
}
