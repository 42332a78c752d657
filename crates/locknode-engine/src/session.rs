//! The state of one connection that a node keeps between two commands.

use std::sync::Arc;

use locknode_resp::Protocol;

use crate::client::Client;

/// One connection's state, which the driver keeps and lends to every command.
#[derive(Debug)]
pub struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) db: u8,
    pub(crate) is_authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// Commands need more checks than usual; see [`Session::note_state`].
    pub(crate) is_special: bool,
    /// MULTI was refused, so the commands of the transaction are refused until EXEC or DISCARD.
    pub(crate) is_aborting: bool,
    /// Steps that the connection's scripts have taken since it last yielded.
    pub(crate) script_steps: usize,
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
            is_special: false,
            is_aborting: false,
            script_steps: 0,
        }
    }

    /// Notes that something changed which decides whether commands need more checks than usual. All
    /// of that is in one flag, so that other connections pay for one branch.
    pub(crate) const fn note_state(&mut self) {
        self.is_special = self.is_aborting;
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
