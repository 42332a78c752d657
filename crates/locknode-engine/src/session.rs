//! The state of one connection that a node keeps between two commands.

use std::sync::Arc;

use locknode_resp::{Encoder, Protocol};

use crate::client::Client;
use crate::time::Time;
#[cfg(feature = "compat")]
use crate::waiters::Waiter;

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
    /// The wait of BLPOP, until its connection has seen the end.
    #[cfg(feature = "compat")]
    pub(crate) waiter: Option<Arc<Waiter>>,
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
            #[cfg(feature = "compat")]
            waiter: None,
        }
    }

    /// Returns whether a command still waits for its reply; nothing else is executed meanwhile. When
    /// this has become `false`, the reply is in the mailbox.
    pub fn is_waiting(&self) -> bool {
        #[cfg(feature = "compat")]
        if let Some(waiter) = &self.waiter {
            return waiter.is_waiting();
        }
        false
    }

    /// Returns the end of the wait; `None` without one.
    pub fn wait_end(&self) -> Option<Time> {
        #[cfg(feature = "compat")]
        return self.waiter.as_ref().and_then(|waiter| waiter.until);
        #[cfg(not(feature = "compat"))]
        None
    }

    /// Ends the wait, if it still lasts, with the reply that nothing came.
    pub fn give_up(&mut self, out: &mut Vec<u8>) {
        if self.leave_wait() {
            Encoder::new(out, self.protocol).null_array();
        }
    }

    fn leave_wait(&mut self) -> bool {
        #[cfg(feature = "compat")]
        return self.waiter.take().is_some_and(|waiter| waiter.leave());
        #[cfg(not(feature = "compat"))]
        false
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
        self.leave_wait();
        self.client.leave();
    }
}
