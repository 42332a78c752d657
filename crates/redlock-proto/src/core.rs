//! The whole client without sockets, clock and randomness: bytes and time in, bytes and notices out.
//!
//! ```text
//!   acquire, extend, release, ...       received(node, bytes)   connected(node)   disconnected(node)   on_time
//!   ----------------+------------       ---------------------------------+----------------------------------
//!                   v                                                    v
//!            +---------------------------------------------------------------------+
//!            |  operations: rounds, retries, renewal   |   links: order of replies |
//!            +---------------------------------------------------------------------+
//!                   |                                                    |
//!                   v                                                    v
//!   poll_notice: acquired, lost, connect(node), ...          output(node): bytes to write
//! ```
//!
//! A driver reads the clock, calls in, hands out the notices and only then writes the bytes of
//! [`output`](Core::output): a holder learns of a shortened validity before any node can act on it. The tokio
//! driver of this crate and a simulator drive the same core; a core is `Clone`, and two clones given the same
//! events do the same.
//!
//! Invariants:
//! * Whatever may have been granted and is not handed to a caller is released on every node, by a request after
//!   the grant on the same connection or by a ticket when the node is reachable again, until its TTL is over.
//! * At most one request of a round is sent to a node, and none is repeated after a connection broke. An acquire may
//!   have a second one that asks the node to accept the fencing token, on the same connection.
//! * A lock is handed out with a fencing token only when a majority holds it `[F7]`.
//! * Nothing here grows without bound: a silent node is not asked, tickets are counted, requests belong to
//!   operations.

mod answers;
mod asking;
mod contending;
mod dialect;
mod fencing;
mod floors;
mod greeting;
mod holding;
mod judging;
mod ledger;
mod link;
mod linking;
mod operation;
mod operations;
mod queue;
#[cfg(test)]
mod tests;
mod voting;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::cause::Cause;
use crate::core::floors::Floors;
use crate::core::link::{Incoming, Link};
use crate::core::operation::{Ask, Operation, State, Trying};
use crate::core::operations::Operations;
use crate::drift::Drift;
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::fencing_token::FencingToken;
use crate::quorum::{NodeId, NodeSet, Quorum};
use crate::round::{ExtendRound, RoundId};
use crate::time::Time;
use crate::token::{TOKEN_RANDOM_BYTES, Token};

pub use dialect::Dialect;
pub use greeting::{Login, ServerInfo};
pub use operation::{LockTerms, Look, OpId};

/// What a core is told once.
#[derive(Clone, Debug)]
pub struct CoreConfig {
    /// How to get into each node; as many as there are nodes.
    pub logins: Vec<Login>,
    /// The allowance for clocks that disagree.
    pub drift: Drift,
    /// How long a connection may take to open and to greet, and how long a silent one is kept.
    pub connect_timeout: Duration,
}

/// What a core has to say to its driver or to a caller. A driver handles each of them.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Open a connection to the node; then call `connected` or `disconnected`.
    Connect(NodeId),
    /// Close the connection to the node, or stop opening it.
    Disconnect(NodeId),
    /// The node takes requests.
    NodeUp(NodeId, Arc<ServerInfo>),
    /// The node does not take requests any more.
    NodeDown(NodeId, Cause),
    /// The lock is held.
    Acquired {
        /// The operation, which is the lock's name from now on.
        op: OpId,
        /// The token of the attempt that succeeded.
        token: Token,
        /// The fencing token, when a majority of the nodes counts grants; none for a lock that was taken over.
        fencing: Option<FencingToken>,
        /// The moment from which on it is not held.
        valid_until: Time,
        /// The attempts that it took.
        tries: u32,
    },
    /// The lock was not had; the operation is over.
    NotAcquired {
        /// The operation.
        op: OpId,
        /// Why.
        kind: ErrorKind,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The lock's validity changed.
    Validity {
        /// The lock.
        op: OpId,
        /// The moment from which on it is not held.
        valid_until: Time,
        /// Whether this is a renewal that succeeded.
        is_renewal: bool,
    },
    /// A renewal failed; the lock is still held.
    RenewalFailed {
        /// The lock.
        op: OpId,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The extension that the holder asked for is decided.
    Extended {
        /// The lock.
        op: OpId,
        /// The new validity, or why there is none. Then the lock is as it was.
        result: Result<Time, ErrorKind>,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The lock is not held any more, or will not be within the warning time.
    Lost {
        /// The lock.
        op: OpId,
        /// [`ErrorKind::Lost`], [`ErrorKind::Expired`] or [`ErrorKind::Cancelled`].
        kind: ErrorKind,
        /// What the nodes said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// A release is decided; replies of `pending` nodes are still to come.
    Released {
        /// The lock, which is over.
        op: OpId,
        /// The nodes that deleted the key.
        confirmed: NodeSet,
        /// The nodes that did not hold it.
        not_held: NodeSet,
        /// The nodes whose reply is awaited in the background.
        pending: NodeSet,
        /// Whether the nodes were told to keep the key until its least time is over.
        is_kept: bool,
        /// What the others said.
        causes: Vec<(NodeId, Cause)>,
    },
    /// The answers to a look at a key or at the nodes, in node order.
    Looked {
        /// The operation, which is over.
        op: OpId,
        /// One answer per node.
        looks: Vec<Look>,
    },
}

/// The client as a state machine. See the [module](self).
#[derive(Clone, Debug)]
pub struct Core<E> {
    config: CoreConfig,
    quorum: Quorum,
    entropy: E,
    links: Vec<Link>,
    operations: Operations,
    floors: Floors,
    /// When which slot is to be looked at, at the latest: one entry per slot.
    alarms: BTreeSet<(Time, u32)>,
    notices: VecDeque<Notice>,
    /// Slots whose votes changed and that are to be judged.
    changed: Vec<OpId>,
    /// Operations whose attempt has to wait, oldest first.
    queue: VecDeque<OpId>,
    heard: Vec<Incoming>,
    scratch: Vec<u8>,
}

impl<E: Entropy> Core<E> {
    /// A client of as many nodes as there are logins; `None` for none or more than
    /// [`NODES_MAX`](crate::NODES_MAX).
    pub fn new(config: CoreConfig, entropy: E) -> Option<Self> {
        let quorum = Quorum::of(config.logins.len())?;
        Some(Self {
            quorum,
            entropy,
            links: quorum.all().iter().map(Link::new).collect(),
            operations: Operations::default(),
            floors: Floors::default(),
            alarms: BTreeSet::new(),
            notices: VecDeque::new(),
            changed: Vec::new(),
            queue: VecDeque::new(),
            heard: Vec::new(),
            scratch: Vec::new(),
            config,
        })
    }

    /// Begins to acquire a lock. Ends in [`Notice::Acquired`] or [`Notice::NotAcquired`].
    pub fn acquire(&mut self, now: Time, terms: impl Into<Arc<LockTerms>>) -> OpId {
        let terms = terms.into();
        let deadline = terms.retry.deadline(now);
        let trying = Trying {
            tries: 0,
            deadline,
            was_busy: false,
            contended: 0,
        };
        let op = self.begin(
            terms,
            Token::from_random([0; TOKEN_RANDOM_BYTES]),
            State::Over,
        );
        self.begin_attempt(now, op, trying);
        op
    }

    /// Begins to take over a lock by extending it. Ends as [`acquire`](Self::acquire) does, with
    /// [`ErrorKind::Lost`] if a majority does not hold it.
    pub fn adopt(&mut self, now: Time, terms: impl Into<Arc<LockTerms>>, token: Token) -> OpId {
        let terms = terms.into();
        let (ttl, timeout) = (terms.ttl, terms.timeout);
        let op = self.begin(terms, token, State::Over);
        let (quorum, drift) = (self.quorum, self.config.drift);
        if let Some(operation) = self.operations.get_mut(op) {
            let round = operation.next_round();
            operation.acquired = now;
            operation.asked_until = now + timeout;
            // A node that cannot be asked may hold it all the same.
            operation.may_hold = quorum.all();
            operation.may_hold_until = now + UNKNOWN_TTL;
            operation.state = State::Adopting {
                round: ExtendRound::new(round, quorum, now, ttl, drift, timeout),
            };
        }
        self.ask_all(now, op, Ask::Extend { ttl });
        self.judge(now, op);
        op
    }

    /// Begins to extend a lock. Ends in [`Notice::Extended`], unless the lock is released or leaked before.
    pub fn extend(&mut self, now: Time, op: OpId, ttl: Duration) {
        self.start_extension(now, op, ttl, true);
    }

    /// Begins to release a lock. Ends in [`Notice::Released`]; goes on until the last reply.
    pub fn release(&mut self, now: Time, op: OpId) {
        self.start_release(now, op, false);
    }

    /// Begins to release a token that came from elsewhere. Ends in [`Notice::Released`].
    pub fn release_token(
        &mut self,
        now: Time,
        terms: impl Into<Arc<LockTerms>>,
        token: Token,
    ) -> OpId {
        let all = self.quorum.all();
        let op = self.begin(terms.into(), token, State::Over);
        if let Some(operation) = self.operations.get_mut(op) {
            operation.may_hold = all;
            operation.may_hold_until = now + UNKNOWN_TTL;
        }
        self.start_release(now, op, false);
        op
    }

    /// The caller has no interest in the operation any more: what it holds or may be about to hold is released in
    /// the background. A lock that was being taken over is left alone.
    pub fn drop_interest(&mut self, now: Time, op: OpId) {
        match self.operations.get(op).map(|operation| &operation.state) {
            None => {}
            // Left already: what is under way goes on.
            Some(State::Leaving { .. }) => {}
            Some(
                State::Waiting { .. }
                | State::Queued { .. }
                | State::Confirming { .. }
                | State::Adopting { .. }
                | State::Looking { .. },
            ) => {
                self.end(op);
            }
            Some(State::Acquiring { .. } | State::Held { .. } | State::Over) => {
                self.start_release(now, op, true);
            }
            Some(State::Releasing { .. }) => {
                if let Some(operation) = self.operations.get_mut(op)
                    && let State::Releasing { is_told, .. } = &mut operation.state
                {
                    *is_told = true;
                }
                self.judge(now, op);
            }
        }
    }

    /// The holder leaves the lock to its TTL. Nodes that the last attempt or extension has not reached yet still hear
    /// of it, within the time that they have for an answer.
    pub fn leak(&mut self, op: OpId) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let (is_held, until) = (
            matches!(operation.state, State::Held { .. }),
            operation.asked_until,
        );
        match is_held && self.links.iter().any(|link| link.concerns(op)) {
            true => {
                if let Some(operation) = self.operations.get_mut(op) {
                    operation.state = State::Leaving { until };
                }
                self.set_alarm(op, until);
            }
            false => self.end(op),
        }
    }

    /// Begins to ask every node what it holds under a key; without a key, whether it is there. Ends in
    /// [`Notice::Looked`].
    pub fn look(&mut self, now: Time, key: Option<Box<[u8]>>, timeout: Duration) -> OpId {
        let asks: &[Ask] = match key {
            Some(_) => &[Ask::LookToken, Ask::LookRemaining],
            None => &[Ask::Ping],
        };
        let missing = u8::try_from(asks.len()).unwrap_or(u8::MAX);
        let look = Look {
            missing,
            ..Look::default()
        };
        let terms = Arc::new(LockTerms::looking(key.unwrap_or_default(), timeout));
        let state = State::Looking {
            until: now + timeout,
            looks: vec![look; self.quorum.nodes()],
        };
        let op = self.begin(terms, Token::from_random([0; TOKEN_RANDOM_BYTES]), state);
        for ask in asks {
            self.ask_all(now, op, *ask);
        }
        self.judge(now, op);
        op
    }

    /// Ends everything: callers that wait are told, and what is held is released in the background.
    pub fn close(&mut self, now: Time) {
        for op in self.operations.ids() {
            let Some(operation) = self.operations.get_mut(op) else {
                continue;
            };
            let (kind, causes) = (ErrorKind::Cancelled, Vec::new());
            match operation.state {
                State::Acquiring { .. }
                | State::Queued { .. }
                | State::Confirming { .. }
                | State::Waiting { .. }
                | State::Adopting { .. } => {
                    self.notices
                        .push_back(Notice::NotAcquired { op, kind, causes });
                    self.drop_interest(now, op);
                }
                State::Held { .. } => {
                    self.lose(op, kind, causes);
                    self.start_release(now, op, true);
                }
                State::Over => self.start_release(now, op, true),
                State::Looking { .. } | State::Leaving { .. } | State::Releasing { .. } => {}
            }
        }
    }

    /// The driver opened the connection it was asked for.
    pub fn connected(&mut self, now: Time, node: NodeId) {
        self.greet(now, node);
    }

    /// The connection could not be opened, or broke.
    pub fn disconnected(&mut self, now: Time, node: NodeId, cause: Cause) {
        self.break_link(now, node, cause);
        self.judge_changed(now);
        self.begin_queued(now);
    }

    /// Bytes came from the node. `now` must be read after they arrived.
    pub fn received(&mut self, now: Time, node: NodeId, bytes: &[u8]) {
        let mut heard = std::mem::take(&mut self.heard);
        if let Some(link) = self.links.get_mut(node.index()) {
            link.receive(now, bytes, &mut heard);
        }
        for incoming in heard.drain(..) {
            self.take(now, node, incoming);
        }
        self.heard = heard;
        self.flush_tickets(now, node);
        self.judge_changed(now);
        self.begin_queued(now);
    }

    /// Time passed: everything whose moment has come is done.
    pub fn on_time(&mut self, now: Time) {
        for node in self.quorum.all().iter() {
            self.link_on_time(now, node);
        }
        self.judge_changed(now);
        while let Some(&(at, slot)) = self.alarms.first() {
            if at > now {
                break;
            }
            self.alarms.pop_first();
            self.operations.set_registered(slot, Time::NEVER);
            let Some(op) = self.operations.id_at(slot) else {
                continue;
            };
            let alarm = self
                .operations
                .get(op)
                .map_or(Time::NEVER, |operation| operation.alarm);
            self.set_alarm(op, Time::NEVER);
            match alarm <= now {
                true => self.operation_on_time(now, op),
                false => self.set_alarm(op, alarm),
            }
        }
        self.begin_queued(now);
    }

    /// When [`on_time`](Self::on_time) must be called at the latest.
    pub fn next_deadline(&self) -> Time {
        let alarm = self.alarms.first().map_or(Time::NEVER, |(at, _)| *at);
        self.links
            .iter()
            .map(Link::next_deadline)
            .fold(alarm, Time::min)
    }

    /// What is to be said, oldest first.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// The bytes to be written to the node. The driver takes off the front what it has written.
    pub fn output(&mut self, node: NodeId) -> Option<&mut Vec<u8>> {
        self.links.get_mut(node.index()).map(|link| &mut link.out)
    }

    /// What the node said of itself when it was last connected.
    pub fn server(&self, node: NodeId) -> Option<Arc<ServerInfo>> {
        self.links.get(node.index())?.server.clone()
    }

    /// How many operations are not over, held locks included.
    pub fn operations(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing is left to be waited for at the end: what is under way concerns only nodes that were never asked
    /// for the lock in question.
    pub fn is_settled(&self) -> bool {
        let each = self.operations.ids();
        let mut each = each.iter().filter_map(|op| self.operations.get(*op));
        each.all(|operation| match &operation.state {
            State::Releasing {
                awaited, is_told, ..
            } => {
                let holds = |node: NodeId| operation.may_hold.contains(node);
                *is_told && !awaited.iter().any(holds)
            }
            _ => false,
        })
    }

    /// How long the nodes have at most for what they were asked last: the longest of all operations. What has no TTL, as
    /// the release of a token from elsewhere, counts as `other`.
    pub fn patience(&self, other: Duration) -> Duration {
        let each = self.operations.ids();
        let each = each.iter().filter_map(|op| self.operations.get(*op));
        let times = each.map(|operation| match operation.terms.ttl {
            Duration::ZERO => other,
            _ => operation.terms.timeout,
        });
        times.max().unwrap_or_default()
    }

    /// How many nodes there are and how many are a majority.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    fn begin(&mut self, terms: Arc<LockTerms>, token: Token, state: State) -> OpId {
        self.operations.insert(Operation {
            terms,
            token,
            state,
            round: RoundId {
                attempt: 0,
                round: 0,
            },
            fencing: None,
            floor: None,
            may_hold: NodeSet::default(),
            may_hold_until: Time::ZERO,
            acquired: Time::ZERO,
            asked_until: Time::ZERO,
            causes: Vec::new(),
            unrenewed: Vec::new(),
            doubtful: NodeSet::default(),
            doubtful_ttl: Duration::MAX,
            alarm: Time::NEVER,
        })
    }

    fn end(&mut self, op: OpId) {
        self.operations.remove(op);
    }

    /// Has the operation looked at when `at` has come. A slot is entered in the order of alarms once, and anew only
    /// for an earlier moment: most alarms never go off, and one that goes off too soon is entered again.
    fn set_alarm(&mut self, op: OpId, at: Time) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        operation.alarm = at;
        let registered = self.operations.registered(op.slot);
        if at < registered {
            if registered != Time::NEVER {
                self.alarms.remove(&(registered, op.slot));
            }
            self.alarms.insert((at, op.slot));
            self.operations.set_registered(op.slot, at);
        }
    }

    fn random(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.entropy.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fresh_token(&mut self) -> Token {
        let mut bytes = [0; TOKEN_RANDOM_BYTES];
        self.entropy.fill(&mut bytes);
        Token::from_random(bytes)
    }
}

/// How long a token of unknown TTL is remembered for a node that is away.
const UNKNOWN_TTL: Duration = Duration::from_secs(600);
