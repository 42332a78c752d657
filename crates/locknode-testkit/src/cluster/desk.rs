//! Requests that are not for a node: a word of the cluster's owner, such as `FAULT`, that any client can send.
//!
//! They are taken out before the link's faults and answered beside them: whoever has cut a link must be able to heal it
//! through the same connection.

use locknode_resp::{Decoder, Limits};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::net::LinkId;

/// A request that came to a node's port and is for the owner of the cluster. Dropped, it leaves its client without a reply.
#[derive(Debug)]
pub struct DeskRequest {
    /// The client whose port it came to.
    pub client: u8,
    /// The node whose port it came to.
    pub node: u8,
    /// Its words, the desk's own first.
    pub args: Vec<Vec<u8>>,
    connection: UnboundedSender<Vec<u8>>,
}

/// Where such requests go. A connection hands over so many and no more until some are settled.
#[derive(Clone, Debug)]
pub(crate) struct Desk {
    word: &'static str,
    owner: UnboundedSender<DeskRequest>,
}

/// The answers to one connection's requests, in the order in which they are given.
#[derive(Debug)]
pub(crate) struct Answers {
    pub(crate) sender: UnboundedSender<Vec<u8>>,
    pub(crate) receiver: UnboundedReceiver<Vec<u8>>,
}

impl DeskRequest {
    /// Answers with a whole reply of the protocol, which reaches the client whatever is wrong with its link. It comes after the
    /// replies to what the client has asked the node before, unless those are held up.
    pub fn answer(mut self, reply: impl Into<Vec<u8>>) {
        self.send(reply.into());
    }

    fn send(&mut self, reply: Vec<u8>) {
        // A client that is gone needs no answer.
        let _ = self.connection.send(reply);
    }
}

impl Drop for DeskRequest {
    /// The connection counts what it owes; nothing says that this one is settled.
    fn drop(&mut self) {
        self.send(Vec::new());
    }
}

impl Desk {
    pub(crate) const fn new(word: &'static str, owner: UnboundedSender<DeskRequest>) -> Self {
        Self { word, owner }
    }

    /// Hands a message to the owner if it is for them; whether it was.
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
            // Without an owner the request is dropped, which is told to the connection.
            let _ = self.owner.send(DeskRequest {
                client: link.client,
                node: link.node,
                args,
                connection: connection.clone(),
            });
        }
        is_ours
    }
}

impl Answers {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { sender, receiver }
    }
}

/// The words of one whole request.
pub(crate) fn words(message: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut decoder = Decoder::new();
    let frame = decoder.decode(message, &Limits::default(), true).ok()??;
    Some(frame.args().map(<[u8]>::to_vec).collect())
}
