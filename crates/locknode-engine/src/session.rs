//! The state of one connection that a node keeps between two commands.

use std::sync::Arc;
use std::time::Duration;

use locknode_resp::Protocol;

use crate::client::Client;
#[cfg(feature = "compat")]
use crate::command::Suspended;
use crate::holds::Holds;
use crate::time::Time;

/// One connection's state, which the driver keeps and lends to every command.
#[derive(Debug)]
pub struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) db: u8,
    pub(crate) is_authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// MULTI was refused, so the commands of the transaction are refused until EXEC or DISCARD.
    pub(crate) is_aborting: bool,
    /// Steps that the connection's scripts have taken since it last yielded.
    pub(crate) script_steps: usize,
    waiting: Waiting,
    /// The connection's script that takes long.
    #[cfg(feature = "compat")]
    pub(crate) script: Option<Box<Suspended>>,
}

/// Since when and for what the next command waits; outdated once a command was run.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    since: Time,
    until: Time,
    /// The number of suspended scripts that had ended when it began to wait for another.
    ended: Option<u64>,
}

/// Which replies a client wants, as set by CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None until CLIENT REPLY ON.
    Off,
    /// CLIENT REPLY SKIP is running; the reply of the next command will be dropped.
    Armed,
    /// The reply of this command is dropped.
    SkipNext,
}

impl Session {
    pub(crate) fn new(client: Arc<Client>, is_authenticated: bool) -> Self {
        Self {
            client,
            protocol: Protocol::Resp2,
            db: 0,
            is_authenticated,
            reply_mode: ReplyMode::On,
            is_aborting: false,
            script_steps: 0,
            waiting: Waiting::default(),
            #[cfg(feature = "compat")]
            script: None,
        }
    }

    /// Notes that the next command waits.
    pub(crate) fn begin_waiting(&mut self, now: Time) {
        if !self.client.is_waiting() {
            self.waiting.since = now;
            self.client.note_waiting();
        }
        self.waiting.ended = None;
    }

    /// Waits for the end of a suspended script; returns `false` when that has taken `busy_ms`.
    pub(crate) fn wait_for_scripts(
        &mut self,
        holds: &Holds,
        busy_ms: Option<u64>,
        now: Time,
    ) -> bool {
        let until = match busy_ms {
            Some(busy_ms) => self
                .waiting
                .since
                .saturating_add(Duration::from_millis(busy_ms)),
            None => now.saturating_add(AGAIN),
        };
        self.waiting.until = until;
        self.waiting.ended = Some(holds.ended());
        now < until
    }

    /// Returns until when the next command waits for scripts.
    pub(crate) fn wait_end(&self, holds: &Holds, now: Time) -> Option<Time> {
        #[cfg(feature = "compat")]
        if let Some(script) = &self.script {
            return script.wait_end(now);
        }
        let is_waiting = self.waiting.ended == Some(holds.ended()) && now < self.waiting.until;
        is_waiting.then_some(self.waiting.until)
    }

    /// Returns whether a script of this connection takes long.
    pub fn has_script(&self) -> bool {
        #[cfg(feature = "compat")]
        return self.script.is_some();
        #[cfg(not(feature = "compat"))]
        false
    }

    /// Ends such a script, for instance because the node stops.
    pub fn stop_script(&self) {
        #[cfg(feature = "compat")]
        if let Some(script) = &self.script {
            script.stop();
        }
    }

    /// Returns whether the client has sent the password, or needs none. Before that, the decoder
    /// allows less.
    pub const fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// Returns the protocol of the replies.
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the registry's record of this connection.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.leave();
    }
}

/// When a command that waits for a script without a limit looks again; the end of a script wakes it.
const AGAIN: Duration = Duration::from_secs(1);
