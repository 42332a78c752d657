//! The whole client without sockets, clock and randomness: bytes and time in, bytes and notices out.
//!
//! Invariants:
//! * Whatever may have been granted and is not handed to a caller is released on every node, by a request after
//!   the grant on the same connection or by a ticket when the node is reachable again, until its TTL is over.
//! * At most one request of a round is sent to a node, and none is repeated after a connection broke. An acquire may
//!   have a second one that asks the node to accept the fencing token, on the same connection.
//! * A lock is handed out with a fencing token only when a majority holds it `[F7]`.
//! * Nothing here grows without bound: a silent node is not asked, tickets are counted, requests belong to
//!   operations.

mod acquiring;
mod answers;
mod contending;
mod dialect;
mod fencing;
mod floors;
mod greeting;
mod held;
mod ledger;
mod link;
mod links;
mod looking;
mod notice;
mod op_id;
mod operation;
mod operations;
mod question;
mod queue;
mod releasing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::cause::Cause;
use crate::core::acquiring::{Acquiring, Trying};
use crate::core::floors::Floors;
use crate::core::link::{Incoming, Link};
use crate::core::operation::{Operation, State};
use crate::core::operations::Operations;
use crate::core::queue::Queued;
use crate::drift::Drift;
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::quorum::{NodeId, NodeSet, Quorum};
use crate::time::Time;
use crate::token::{TOKEN_RANDOM_BYTES, Token};

pub use dialect::Dialect;
pub use greeting::{Login, ServerInfo};
pub use looking::Look;
pub use notice::Notice;
pub use op_id::OpId;
pub use operation::LockTerms;

/// The settings of a core.
#[derive(Clone, Debug)]
pub struct CoreConfig {
    /// How to get into each node; as many as there are nodes.
    pub logins: Vec<Login>,
    /// The allowance for clocks that disagree.
    pub drift: Drift,
    /// How long a connection may take to open and to greet, and how long a silent one is kept.
    pub connect_timeout: Duration,
}

/// The client as a state machine; how it is driven is said at the top of the [crate].
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
        let trying = Trying {
            tries: 0,
            deadline: terms.retry.deadline(now),
            was_busy: false,
            contended: 0,
        };
        // Each attempt has a token of its own.
        let operation = Operation::new(terms, Token::from_random([0; TOKEN_RANDOM_BYTES]));
        self.begin(operation, |core, operation| {
            core.begin_attempt(now, operation, trying);
        })
    }

    /// Begins to take over a lock by extending it. Ends as [`acquire`](Self::acquire) does, with
    /// [`ErrorKind::Lost`] if a majority does not hold it.
    pub fn adopt(&mut self, now: Time, terms: impl Into<Arc<LockTerms>>, token: Token) -> OpId {
        let operation = self.held_elsewhere(now, terms.into(), token);
        self.begin(operation, |core, operation| {
            core.start_adoption(now, operation);
        })
    }

    /// Begins to extend a lock. Ends in [`Notice::Extended`], unless the lock is released or leaked before.
    pub fn extend(&mut self, now: Time, op: OpId, ttl: Duration) {
        let begun = self.with(op, |core, operation| {
            core.start_extension(now, operation, ttl, true);
        });
        if begun.is_none() {
            self.extension_refused(op, true, ErrorKind::Cancelled);
        }
    }

    /// Begins to release a lock. Ends in [`Notice::Released`]; goes on until the last reply.
    pub fn release(&mut self, now: Time, op: OpId) {
        self.with(op, |core, operation| {
            core.start_release(now, operation, false);
        });
    }

    /// Begins to release a token that came from elsewhere. Ends in [`Notice::Released`].
    pub fn release_token(
        &mut self,
        now: Time,
        terms: impl Into<Arc<LockTerms>>,
        token: Token,
    ) -> OpId {
        let operation = self.held_elsewhere(now, terms.into(), token);
        self.begin(operation, |core, operation| {
            core.start_release(now, operation, false);
        })
    }

    /// The caller has no interest in the operation any more: what it holds or may be about to hold is released in
    /// the background. A lock that was being taken over is left alone.
    pub fn drop_interest(&mut self, now: Time, op: OpId) {
        self.with(op, |core, operation| core.abandon(now, operation));
    }

    fn abandon(&mut self, now: Time, operation: &mut Operation) {
        match &mut operation.state {
            // Left already: what is under way goes on.
            State::Leaving { .. } | State::Ended => {}
            State::Waiting(_)
            | State::Queued(_)
            | State::Confirming(_)
            | State::Adopting(_)
            | State::Looking(_) => operation.state = State::Ended,
            State::Acquiring(_) | State::Held(_) | State::Over => {
                self.start_release(now, operation, true);
            }
            State::Releasing(releasing) => {
                releasing.is_told = true;
                self.judge_release(operation);
            }
        }
    }

    /// The holder leaves the lock to its TTL. Nodes that the last attempt or extension has not reached yet still hear
    /// of it, within the time that they have for an answer.
    pub fn leak(&mut self, op: OpId) {
        self.with(op, |core, operation| {
            let is_held = matches!(operation.state, State::Held(_));
            let until = operation.asked_until;
            if is_held && core.links.iter().any(|link| link.concerns(op)) {
                operation.state = State::Leaving { until };
                core.set_alarm(operation, until);
            } else {
                operation.state = State::Ended;
            }
        });
    }

    /// Ends everything: waiting callers get a notice, and what is held is released in the background.
    pub fn close(&mut self, now: Time) {
        let all: Vec<OpId> = self.operations.iter().map(|it| it.id).collect();
        for op in all {
            self.with(op, |core, operation| {
                let (kind, causes) = (ErrorKind::Cancelled, Vec::new());
                match operation.state {
                    State::Acquiring(_)
                    | State::Queued(_)
                    | State::Confirming(_)
                    | State::Waiting(_)
                    | State::Adopting(_) => {
                        core.notices
                            .push_back(Notice::NotAcquired { op, kind, causes });
                        core.abandon(now, operation);
                    }
                    State::Held(_) => {
                        core.lose(operation, kind, causes);
                        core.start_release(now, operation, true);
                    }
                    State::Over => core.start_release(now, operation, true),
                    _ => {}
                }
            });
        }
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
        // An operation that always sets its alarm to now must not hold the thread for ever: the rest waits for the next
        // call, which is due at once.
        for _ in 0..self.alarms.len() * ALARMS_AT_ONCE {
            let Some(&(at, slot)) = self.alarms.first() else {
                break;
            };
            if at > now {
                break;
            }
            self.alarms.pop_first();
            self.operations.set_registered(slot, Time::NEVER);
            let Some(op) = self.operations.id_at(slot) else {
                continue;
            };
            self.with(op, |core, operation| {
                let alarm = std::mem::replace(&mut operation.alarm, Time::NEVER);
                if alarm <= now {
                    core.operation_on_time(now, operation)
                } else {
                    core.set_alarm(operation, alarm)
                }
            });
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
        self.operations
            .iter()
            .all(|operation| match &operation.state {
                State::Releasing(releasing) => {
                    let holds = |node: NodeId| operation.may_hold.contains(node);
                    releasing.is_told && !releasing.awaited.iter().any(holds)
                }
                _ => false,
            })
    }

    /// How long the nodes have at most for what they were asked last: the longest of all operations. What has no TTL, as
    /// the release of a token from elsewhere, counts as `other`.
    pub fn patience(&self, other: Duration) -> Duration {
        let times = self
            .operations
            .iter()
            .map(|operation| match operation.terms.ttl {
                Duration::ZERO => other,
                _ => operation.terms.timeout,
            });
        times.max().unwrap_or_default()
    }

    /// How many nodes there are and how many are a majority.
    pub fn quorum(&self) -> Quorum {
        self.quorum
    }

    /// An operation on a token that came from elsewhere: any node may hold it, also one that cannot be asked.
    fn held_elsewhere(&self, now: Time, terms: Arc<LockTerms>, token: Token) -> Operation {
        let mut operation = Operation::new(terms, token);
        operation.may_hold = self.quorum.all();
        operation.may_hold_until = now + UNKNOWN_TTL;
        operation
    }

    /// Enters an operation and does the first thing with it.
    fn begin(&mut self, operation: Operation, act: impl FnOnce(&mut Self, &mut Operation)) -> OpId {
        let op = self.operations.insert(operation);
        self.with(op, act);
        op
    }

    /// Does something with an operation; `None` if it has ended. Its place in the table is empty meanwhile, and free
    /// afterwards if this ended it.
    fn with<T>(&mut self, op: OpId, act: impl FnOnce(&mut Self, &mut Operation) -> T) -> Option<T> {
        let mut operation = self.operations.take(op)?;
        let outcome = act(self, &mut operation);
        self.operations.put_back(operation);
        Some(outcome)
    }

    /// Judges every operation whose votes changed.
    fn judge_changed(&mut self, now: Time) {
        let mut changed = std::mem::take(&mut self.changed);
        for op in changed.drain(..) {
            self.with(op, |core, operation| core.judge(now, operation));
        }
        self.changed = changed;
    }

    /// Draws the conclusion from the votes so far.
    fn judge(&mut self, now: Time, operation: &mut Operation) {
        match operation.state {
            State::Acquiring(_) => self.judge_attempt(now, operation),
            State::Adopting(_) => self.judge_adoption(now, operation),
            State::Held(_) => self.judge_held(now, operation),
            State::Waiting(acquiring::Waiting { at, .. }) => self.set_alarm(operation, at),
            State::Queued(Queued { until, .. }) => self.set_alarm(operation, until),
            State::Confirming(_) => self.judge_holders(now, operation),
            State::Leaving { until } => {
                let op = operation.id;
                if until <= now || !self.links.iter().any(|link| link.concerns(op)) {
                    operation.state = State::Ended
                } else {
                    self.set_alarm(operation, until)
                }
            }
            State::Releasing(_) => self.judge_release(operation),
            State::Looking(_) => self.judge_look(operation),
            State::Over | State::Ended => {}
        }
    }

    /// The moment that an operation waited for has come.
    fn operation_on_time(&mut self, now: Time, operation: &mut Operation) {
        let (mut late, mut since) = (NodeSet::default(), Time::ZERO);
        match &mut operation.state {
            State::Acquiring(Acquiring { round, .. }) => {
                (late, since) = (round.on_time(now), round.asked_at());
            }
            State::Waiting(_) => return self.wait_over(now, operation),
            State::Looking(looking) => late = looking.on_time(now),
            State::Confirming(confirming) => confirming.on_time(now),
            State::Queued(Queued { until, .. }) => {
                if now >= *until {
                    return self.not_acquired(operation, ErrorKind::Timeout);
                }
            }
            state => {
                if let Some(ballot) = state.ballot_mut() {
                    (late, since) = (ballot.on_time(now), ballot.started);
                }
            }
        }
        let patience = self.config.connect_timeout;
        for node in late.iter() {
            operation.blame(node, Cause::TimedOut);
            if let Some(link) = self.links.get_mut(node.index()) {
                link.suspect(now, since, patience);
            }
        }
        self.judge(now, operation);
    }

    /// Has the operation looked at when `at` has come. A slot is entered in the order of alarms once, and anew only
    /// for an earlier moment: most alarms never go off, and one that goes off too soon is entered again.
    fn set_alarm(&mut self, operation: &mut Operation, at: Time) {
        operation.alarm = at;
        let slot = operation.id.slot;
        let registered = self.operations.registered(slot);
        if at < registered {
            if registered != Time::NEVER {
                self.alarms.remove(&(registered, slot));
            }
            self.alarms.insert((at, slot));
            self.operations.set_registered(slot, at);
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

/// How often an operation may come to its turn at one moment: it sets its alarm to now twice at most.
const ALARMS_AT_ONCE: usize = 8;
