//! Commands that are not for a node, such as `FAULT`: any client can send them, and the owner of the cluster answers them.
//!
//! They are taken out before the link's faults, and so are the answers: a client that has cut a link must be able to heal it
//! through the same connection.

use locknode_resp::{Decoder, Limits};
use tokio::sync::mpsc::UnboundedSender;

use super::net::LinkId;

/// A command that came to a node's port and is for the owner of the cluster. If it is dropped, its client gets no reply.
#[derive(Debug)]
pub struct TappedCommand {
    /// The client whose port it came to.
    pub client: u8,
    /// The node whose port it came to.
    pub node: u8,
    /// Its words, the tap's own first.
    pub args: Vec<Vec<u8>>,
    connection: UnboundedSender<Vec<u8>>,
}

/// Where such commands go.
#[derive(Clone, Debug)]
pub(crate) struct CommandTap {
    pub(crate) word: &'static str,
    pub(crate) owner: UnboundedSender<TappedCommand>,
}

impl TappedCommand {
    /// Answers with a whole reply of the protocol, which reaches the client whatever is wrong with its link. It comes after the
    /// replies of the node to earlier requests, unless those are held up.
    pub fn answer(self, reply: impl Into<Vec<u8>>) {
        // A client that has left needs no answer.
        let _ = self.connection.send(reply.into());
    }
}

impl Drop for TappedCommand {
    /// The connection counts open commands; an empty answer settles this one.
    fn drop(&mut self) {
        let _ = self.connection.send(Vec::new());
    }
}

impl CommandTap {
    /// Hands a message to the owner if it begins with the tap's word, and returns whether it does.
    pub(crate) fn take(
        &self,
        link: LinkId,
        message: &[u8],
        connection: &UnboundedSender<Vec<u8>>,
    ) -> bool {
        let Some(args) = words(message) else {
            return false;
        };
        let is_ours = args
            .first()
            .is_some_and(|word| word.eq_ignore_ascii_case(self.word.as_bytes()));
        if is_ours {
            // Without an owner the command is dropped, which settles it.
            let _ = self.owner.send(TappedCommand {
                client: link.client,
                node: link.node,
                args,
                connection: connection.clone(),
            });
        }
        is_ours
    }
}

/// The words of one whole request.
pub(crate) fn words(message: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut decoder = Decoder::new();
    let frame = decoder.decode(message, &Limits::default(), true).ok()??;
    Some(frame.args().map(<[u8]>::to_vec).collect())
}
