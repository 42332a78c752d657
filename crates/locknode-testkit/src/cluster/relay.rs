//! One connection of a client to a node, through the link's faults.
//!
//! ```text
//!  client ---- requests pump ----> node's server      each: cut into messages, judged, queued, delivered in order
//!         <---- replies pump -----
//! ```
//!
//! A message that is lost takes the connection's direction with it: nothing that enters it later arrives, and neither end
//! notices. That is what a connection looks like whose packets stop coming through.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locknode::Peer;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, sink, split};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use super::command_tap::words;
use super::incarnation::Incarnation;
use super::net::{Direction, LinkId, Net};
use super::pump::{Pump, PumpEnd};
use super::recorder::{MessageNo, connection};
use super::wire::LockReply;
use crate::span::SimTime;

/// What a connection goes through, and how it stands.
#[derive(Debug)]
pub(crate) struct Passage {
    pub(crate) net: Arc<Net>,
    pub(crate) link: LinkId,
    pub(crate) incarnation: Arc<Incarnation>,
    peer: Peer,
    /// Both ends, as the recorder names connections: one address may have connections to several nodes.
    ends: String,
    /// Resets of the link before this connection.
    resets: u64,
    account: Mutex<Account>,
}

/// What a connection has asked for and not received.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Requests that were not lost and not answered yet.
    pub(crate) open: usize,
    /// Commands that the owner of the cluster has not answered, and refusals that were not delivered.
    pub(crate) open_commands: usize,
    /// Requests that were delivered and not answered.
    unanswered: usize,
    /// The words of those, when somebody records.
    asked: VecDeque<Asked>,
    /// Whether the connection counts among the link's orphans.
    is_orphan: bool,
}

/// A request: when it was sent, and its words.
type Asked = (SimTime, Vec<Vec<u8>>);

/// A message in the history.
#[derive(Debug)]
pub(crate) struct Recorded {
    message: MessageNo,
    /// Of a request.
    asked: Option<Asked>,
    /// Of a reply: what its client learns.
    learned: Option<LockReply>,
}

impl Passage {
    pub(crate) fn new(
        net: Arc<Net>,
        link: LinkId,
        incarnation: Arc<Incarnation>,
        peer: Peer,
    ) -> Self {
        let resets = net.condition(link, Direction::Requests).resets;
        Self {
            net,
            link,
            incarnation,
            ends: connection(&peer.addr, &peer.laddr),
            peer,
            resets,
            account: Mutex::default(),
        }
    }

    /// Serves a connection until an end of it leaves or breaks; `break_off` has its client notice that it breaks.
    pub(crate) async fn relay<C>(self, mut client: C, break_off: impl FnOnce(&C))
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        if !self.net.enter(self.link.node) || Counted(self).0.serve(&mut client).await {
            break_off(&client);
        }
    }

    /// Passes messages on. Returns whether the connection ends broken.
    async fn serve(&self, client: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> bool {
        let Ok(node) = self.incarnation.open(self.peer.clone()).await else {
            return true;
        };
        let (from_client, to_client) = split(client);
        let (from_node, to_node) = split(node);
        let (answers, answered) = unbounded_channel();
        let mut requests = Pump::new(self, Direction::Requests, from_client, to_node);
        requests.answers_to = Some(answers);
        let mut replies = Pump::new(self, Direction::Replies, from_node, to_client);
        replies.answers_from = Some(answered);
        tokio::select! {
            biased;
            () = self.reset() => true,
            is_broken = self.pass(requests.run(), replies.run()) => is_broken,
        }
    }

    /// Both directions; whether the connection ends broken.
    async fn pass(
        &self,
        requests: impl Future<Output = PumpEnd>,
        replies: impl Future<Output = PumpEnd>,
    ) -> bool {
        let (mut requests, mut replies) = (pin!(requests), pin!(replies));
        tokio::select! {
            biased;
            end = &mut replies => end == PumpEnd::Killed,
            end = &mut requests => match end {
                // The client says no more, and may wait for replies.
                PumpEnd::SourceEnded => {
                    timeout(ORPHAN_MAX, replies).await == Ok(PumpEnd::Killed)
                }
                _ => false,
            },
        }
    }

    /// Resolves when the link's connections are broken, or all of the cluster's.
    async fn reset(&self) {
        let mut changes = self.net.changed.subscribe();
        loop {
            let condition = self.net.condition(self.link, Direction::Requests);
            if condition.is_closed || condition.resets != self.resets {
                return;
            }
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// The client has left, as far as one can see: it may also listen on. False when what it has sent is to be given up,
    /// because the link has too many of those.
    pub(crate) fn becomes_orphan(&self) -> bool {
        let is_orphan = self.net.orphan(self.link);
        self.account().is_orphan = is_orphan;
        is_orphan
    }

    /// Notes that requests are about to be delivered.
    pub(crate) fn delivers(&self, requests: usize) {
        if let Some(anchor) = &self.incarnation.anchor {
            self.account().unanswered += requests;
            anchor.asked(requests);
        }
    }

    /// Settles the request that the node has answered, and writes down what it has done. Returns what the client learns from
    /// the reply.
    pub(crate) fn answered(&self, reply: &[u8]) -> Option<LockReply> {
        let asked = {
            let mut account = self.account();
            account.open = account.open.saturating_sub(1);
            if let (Some(anchor), 1..) = (&self.incarnation.anchor, account.unanswered) {
                account.unanswered -= 1;
                anchor.answered(1);
            }
            account.asked.pop_front()
        };
        let (recorder, (sent, words)) = self.net.recorder.as_ref().zip(asked)?;
        recorder.answered(self.link, &words, reply);
        recorder.lock_reply(self.link, &self.ends, words, sent, reply)
    }

    /// Writes down that a message was sent, from which its client learns this when it arrives.
    pub(crate) fn record_sent(
        &self,
        direction: Direction,
        bytes: &[u8],
        learned: Option<LockReply>,
    ) -> Option<Recorded> {
        let recorder = self.net.recorder.as_ref()?;
        let is_request = direction == Direction::Requests;
        let message = recorder.sent(self.link, is_request, bytes);
        let asked = is_request.then(|| {
            let words = words(bytes).unwrap_or_default();
            (recorder.asks(self.link, &self.ends, &words), words)
        });
        Some(Recorded {
            message,
            asked,
            learned,
        })
    }

    /// Writes down that a message has arrived; of a request, what the reply will be to.
    pub(crate) fn record_arrival(&self, recorded: Recorded) {
        let Some(recorder) = &self.net.recorder else {
            return;
        };
        recorder.arrived(recorded.message);
        self.account().asked.extend(recorded.asked);
        if let Some(reply) = recorded.learned {
            recorder.learns(&reply);
        }
    }

    pub(crate) fn account(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request again, through a connection whose replies nobody reads.
    pub(crate) fn send_again(&self, request: Vec<u8>) {
        let (incarnation, peer) = (Arc::clone(&self.incarnation), self.peer.clone());
        drop(tokio::spawn(async move {
            let Ok(mut node) = incarnation.open(peer).await else {
                return;
            };
            if node.write_all(&request).await.is_ok() {
                let mut nobody = sink();
                let _ = timeout(ORPHAN_MAX, tokio::io::copy(&mut node, &mut nobody)).await;
            }
        }));
    }
}

/// Counts a connection out when it ends.
struct Counted(Passage);

impl Drop for Counted {
    fn drop(&mut self) {
        let Self(passage) = self;
        if let Some(recorder) = &passage.net.recorder {
            recorder.left(&passage.ends);
        }
        let account = passage.account();
        passage.net.leave(passage.link, account.is_orphan);
        if let Some(anchor) = &passage.incarnation.anchor {
            anchor.answered(account.unanswered);
        }
    }
}

/// What a client that is gone has sent and a cut link holds back is kept so long, as Linux does with the data of a socket
/// that was closed.
pub(crate) const ORPHAN_MAX: Duration = Duration::from_secs(100);
