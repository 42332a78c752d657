//! What a node remembers of one connection between two commands.

use std::sync::Arc;

use locknode_resp::Protocol;

use crate::client::Client;

/// One connection's state. The driver keeps it beside the connection and lends it to every command.
#[derive(Debug)]
pub struct Session {
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) db: u8,
    pub(crate) is_authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    /// MULTI was refused, and what the client meant to be in the transaction is refused until EXEC or DISCARD.
    pub(crate) is_aborting: bool,
    /// Steps that the connection's scripts have taken since it let others go first.
    pub(crate) script_steps: usize,
}

/// Which replies a client wants, set by CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None until CLIENT REPLY ON.
    Off,
    /// CLIENT REPLY SKIP is running; when it has ended, the next command's reply is to be dropped.
    Armed,
    /// The next command's reply is dropped.
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
        }
    }

    /// Whether the client has given the password, or needs none. The decoder grants less room before.
    pub const fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// The protocol that replies are encoded in.
    pub const fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The registry's record of this connection.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.client.leave();
    }
}
