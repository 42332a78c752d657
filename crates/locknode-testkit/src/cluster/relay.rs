//! One connection of a client to a node, through the link's faults.
//!
//! ```text
//!  client ---- requests pump ----> node's server      each: cut into messages, judged, queued, delivered in order
//!         <---- replies pump -----
//! ```
//!
//! A message that is lost takes the connection's direction with it: nothing that enters it later arrives, and neither end is
//! told. That is what a connection looks like whose packets stop coming through.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use locknode::Peer;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, sink, split};
use tokio::time::timeout;

use super::command_tap::Answers;
use super::incarnation::Incarnation;
use super::net::{Direction, LinkId, Net};
use super::pump::{Pump, PumpEnd};
use super::recorder::{MessageNo, connection};
use super::stream::Breakable;
use super::wire::Told;
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
    /// Requests delivered and not answered.
    unanswered: AtomicUsize,
    /// Resets of the link before this connection.
    resets: u64,
    /// Requests that were not lost and not answered yet.
    open: AtomicUsize,
    /// Commands that the owner of the cluster has not answered, and refusals that were not delivered.
    open_commands: AtomicUsize,
    /// Whether it counts among the link's orphans.
    is_orphan: AtomicBool,
    /// The requests that the node has and has not answered, when somebody records.
    asked: Mutex<VecDeque<Asked>>,
}

/// A request: when it was sent, and its words.
type Asked = (SimTime, Vec<Vec<u8>>);

/// A message in the history.
#[derive(Debug)]
pub(crate) struct Recorded {
    message: MessageNo,
    /// Of a request.
    asked: Option<Asked>,
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
            unanswered: AtomicUsize::new(0),
            resets,
            open: AtomicUsize::new(0),
            open_commands: AtomicUsize::new(0),
            is_orphan: AtomicBool::new(false),
            asked: Mutex::default(),
        }
    }

    /// Serves a connection until an end of it leaves or breaks.
    pub(crate) async fn relay<C>(self, mut client: C)
    where
        C: AsyncRead + AsyncWrite + Breakable + Unpin,
    {
        if !self.net.enter(self.link.node) {
            client.break_off();
            return;
        }
        let passage = Counted(self);
        let passage = &passage.0;
        let Ok(node) = passage.incarnation.open(passage.peer.clone()).await else {
            client.break_off();
            return;
        };
        let is_broken = {
            let (from_client, to_client) = split(&mut client);
            let (from_node, to_node) = split(node);
            let answers = Answers::new();
            let requests = Pump::new(passage, Direction::Requests, from_client, to_node)
                .with_tap(answers.sender);
            let replies = Pump::new(passage, Direction::Replies, from_node, to_client)
                .with_answers(answers.receiver);
            tokio::select! {
                biased;
                () = passage.reset() => true,
                is_broken = passage.pass(requests.run(), replies.run()) => is_broken,
            }
        };
        if is_broken {
            client.break_off();
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
        let mut changes = self.net.changes();
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
        let is_one = self.net.orphan(self.link);
        self.is_orphan.store(is_one, Ordering::Release);
        is_one
    }

    /// Notes that requests were delivered, just before they are.
    pub(crate) fn asked(&self, requests: usize) {
        if let Some(anchor) = &self.incarnation.anchor {
            self.unanswered.fetch_add(requests, Ordering::AcqRel);
            anchor.asked(requests);
        }
    }

    /// Notes that the node answered one.
    pub(crate) fn answered(&self) {
        if let Some(anchor) = &self.incarnation.anchor {
            let less_one = |count: usize| count.checked_sub(1);
            let taken = self
                .unanswered
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, less_one);
            anchor.answered(usize::from(taken.is_ok()));
        }
    }

    /// Counts a request that will be delivered.
    pub(crate) fn opens(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the node owes the client a reply.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) > 0
    }

    /// Counts a command that was handed to the owner.
    pub(crate) fn begins_command(&self) {
        self.open_commands.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts a command that the owner has answered or dropped.
    pub(crate) fn ends_command(&self) {
        self.open_commands.fetch_sub(1, Ordering::AcqRel);
    }

    /// How many commands the owner has not answered.
    pub(crate) fn open_commands(&self) -> usize {
        self.open_commands.load(Ordering::Acquire)
    }

    /// Writes down that a message was sent.
    pub(crate) fn record_sent(&self, direction: Direction, bytes: &[u8]) -> Option<Recorded> {
        let recorder = self.net.recorder.as_ref()?;
        let is_request = direction == Direction::Requests;
        let message = recorder.sent(self.link, is_request, bytes);
        let asked = is_request.then(|| {
            let words = super::command_tap::words(bytes).unwrap_or_default();
            (recorder.asks(self.link, &self.ends, &words), words)
        });
        Some(Recorded { message, asked })
    }

    /// Writes down that a message has arrived; of a request, what the reply will be to.
    pub(crate) fn record_arrival(&self, recorded: Recorded) {
        let Some(recorder) = &self.net.recorder else {
            return;
        };
        recorder.arrived(recorded.message);
        if let Some(request) = recorded.asked {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push_back(request);
        }
    }

    /// Writes down what a client is told by a reply that arrives.
    pub(crate) fn record_told(&self, told: &Told) {
        if let Some(recorder) = &self.net.recorder {
            recorder.told(told);
        }
    }

    /// Writes down what the node has done, by its reply, and counts it. Returns what the client will be told.
    pub(crate) fn record_reply(&self, reply: &[u8]) -> Option<Told> {
        let less_one = |count: usize| count.checked_sub(1);
        // Without a request there is nothing to settle.
        let _ = self
            .open
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less_one);
        let recorder = self.net.recorder.as_ref()?;
        let asked = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.pop_front()
        };
        let (sent, words) = asked?;
        recorder.answered(self.link, &words, reply);
        recorder.tells(self.link, &self.ends, words, sent, reply)
    }

    /// Says a request again, through a connection whose replies nobody reads.
    pub(crate) fn say_again(&self, request: Vec<u8>) {
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
        let is_orphan = passage.is_orphan.load(Ordering::Acquire);
        passage.net.leave(passage.link, is_orphan);
        if let Some(anchor) = &passage.incarnation.anchor {
            anchor.answered(passage.unanswered.swap(0, Ordering::AcqRel));
        }
    }
}

/// What a client that is gone has sent and a cut link holds back is kept so long, as Linux does with the data of a socket
/// that was closed.
pub(crate) const ORPHAN_MAX: Duration = Duration::from_secs(100);
