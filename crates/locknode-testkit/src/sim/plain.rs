//! A plain Redlock client, as users write it: the place for the mistakes that users make.
//!
//! ```text
//!  acquire --> attempt: fresh token, ask all nodes at once --> majority --> counters agree? --> held --> extend, release
//!                 ^                     |                                        |no
//!                 |                     v                                        v
//!                 +-- pause <-- release everywhere <----- refused ------ write the token back
//! ```
//!
//! It is a second client beside the shipped core and shares nothing with it but the wire and the types of time: what
//! the checkers find with a mistake in place is the mistake's, and a mistake in the shipped core is not repeated here.
//! Without a bug it is correct: a fresh token for every attempt, votes of one round only, a majority of the configured
//! nodes, validity from before the first byte, releases and extensions that compare, a connection that is closed when a
//! reply is late. It spares itself what makes a client comfortable: renewal, floors, other servers than lock nodes.
//!
//! Requests to a node without a connection wait for it, at most for the time of the node.

mod attempt;
mod holding;
mod link;
mod lock;
mod request;
mod round;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use locknode_resp::Reply;
use redlock_proto::{Drift, NODES_MAX, Time};

use crate::bug::Bug;
use crate::random::Random;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::link::Link;
use crate::sim::plain::lock::{Lock, State};
use crate::sim::plain::request::{Answer, Asked, Request, What};
use crate::sim::plain::round::Nodes;

/// What a lock is to be like.
#[derive(Clone, Debug)]
pub(crate) struct PlainTerms {
    pub(crate) key: Box<[u8]>,
    /// Whole milliseconds; the rest is cut off.
    pub(crate) ttl: Duration,
    /// What each node has for each reply.
    pub(crate) timeout: Duration,
    /// Attempts; none counts as one.
    pub(crate) tries: u32,
}

/// The client as a state machine: bytes and time in, bytes and notices out.
///
/// A lock stays here until it failed, was released or is left, also when it was reported as lost. Deterministic: two
/// clones that are given the same do the same.
#[derive(Clone, Debug)]
pub(crate) struct PlainClient {
    links: Vec<Link>,
    locks: BTreeMap<Handle, Lock>,
    drift: Drift,
    random: Random,
    bug: Option<Bug>,
    notices: VecDeque<ClientNotice>,
    /// Used again and again, empty between two calls.
    heard: Vec<(Asked, Reply)>,
    failed: Vec<(u8, Asked)>,
}

impl PlainClient {
    /// A client of so many nodes, 16 at most, that makes one mistake or none.
    pub(crate) fn new(
        nodes: u8,
        drift: Drift,
        connect_timeout: Duration,
        random: Random,
        bug: Option<Bug>,
    ) -> Self {
        let nodes = nodes.min(u8::try_from(NODES_MAX).unwrap_or(u8::MAX));
        Self {
            links: (0..nodes)
                .map(|node| Link::new(node, connect_timeout))
                .collect(),
            locks: BTreeMap::new(),
            drift,
            random,
            bug,
            notices: VecDeque::new(),
            heard: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// Begins to acquire a lock. Ends in [`ClientNotice::Acquired`] or [`ClientNotice::Failed`].
    pub(crate) fn acquire(&mut self, now: Time, lock: Handle, terms: PlainTerms) {
        self.locks.insert(lock, Lock::new(terms));
        self.attempt(now, lock);
    }

    /// Begins to extend a lock. Ends in [`ClientNotice::Extended`], unless the lock is released or left before.
    pub(crate) fn extend(&mut self, now: Time, lock: Handle, ttl: Duration) {
        self.begin_extension(now, lock, ttl);
    }

    /// Begins to release a lock, whatever has become of it. Ends in [`ClientNotice::Released`] when every node has
    /// answered or had its time.
    pub(crate) fn release(&mut self, now: Time, lock: Handle) {
        self.begin_release(now, lock);
    }

    /// Forgets a lock, which is left to its TTL. Nothing is said of it any more.
    pub(crate) fn leave(&mut self, lock: Handle) {
        self.locks.remove(&lock);
    }

    /// The connection that was asked for is open.
    pub(crate) fn connected(&mut self, now: Time, node: u8) {
        if let Some(link) = self.links.get_mut(usize::from(node)) {
            link.connected(now);
        }
    }

    /// The connection could not be opened, or broke.
    pub(crate) fn disconnected(&mut self, now: Time, node: u8) {
        if let Some(link) = self.links.get_mut(usize::from(node)) {
            link.broke(now, &mut self.failed);
            self.note_failed(now);
        }
    }

    /// Bytes came from the node. `now` must be read after they arrived.
    pub(crate) fn received(&mut self, now: Time, node: u8, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(usize::from(node)) else {
            return;
        };
        let mut heard = std::mem::take(&mut self.heard);
        let makes_sense = link.receive(bytes, &mut heard);
        if !makes_sense {
            link.give_up(now, &mut self.failed, &mut self.notices);
        }
        for (asked, reply) in heard.drain(..) {
            let answer = match self.locks.get(&asked.lock) {
                Some(lock) => Answer::of(asked.what, &reply, &lock.token),
                None => continue,
            };
            self.answered(now, node, asked, answer);
        }
        self.heard = heard;
        self.note_failed(now);
    }

    /// Time passed.
    pub(crate) fn on_time(&mut self, now: Time) {
        let keeps_connection = self.bug == Some(Bug::RepliesMixedUp);
        for link in &mut self.links {
            if link.next_deadline() <= now {
                link.on_time(now, keeps_connection, &mut self.failed, &mut self.notices);
            }
        }
        // Only now, so that nothing is sent through a connection that is about to be closed.
        self.note_failed(now);
        // Each turn takes the lock out of the state in which it was due.
        while let Some(handle) = self.due(now) {
            match self.locks.get(&handle).map(|lock| &lock.state) {
                Some(State::Pausing { .. }) => self.attempt(now, handle),
                _ => self.expire(now, handle),
            }
        }
    }

    /// When [`on_time`](Self::on_time) is to be called, at the latest.
    pub(crate) fn next_deadline(&self) -> Time {
        let links = self.links.iter().map(Link::next_deadline);
        let locks = self.locks.values().map(|lock| self.deadline(lock));
        links.chain(locks).fold(Time::NEVER, Time::min)
    }

    /// What is to be said, oldest first.
    pub(crate) fn poll_notice(&mut self) -> Option<ClientNotice> {
        self.notices.pop_front()
    }

    /// The bytes to be written to the node. The driver takes off the front what it has written.
    pub(crate) fn output(&mut self, node: u8) -> Option<&mut Vec<u8>> {
        self.links.get_mut(usize::from(node)).map(Link::output)
    }

    /// How many nodes are a majority.
    fn needed(&self) -> usize {
        let configured = self.links.len();
        match self.bug {
            Some(Bug::QuorumOfReachable) => {
                self.links.iter().filter(|link| link.is_up()).count() / 2 + 1
            }
            Some(Bug::HalfIsQuorum) => (configured / 2).max(1),
            _ => configured / 2 + 1,
        }
    }

    /// Until when a lock is valid that a majority granted or extended.
    fn validity(&self, now: Time, started: Time, ttl: Duration) -> Time {
        match self.bug {
            Some(Bug::ValidityFromReply) => self.drift.valid_until(now, ttl),
            Some(Bug::DriftAdded) => started + ttl.saturating_add(self.drift.of(ttl)),
            _ => self.drift.valid_until(started, ttl),
        }
    }

    /// Asks all nodes at once, on behalf of the round that runs.
    fn ask_all(&mut self, now: Time, handle: Handle, what: What) {
        let nodes = Nodes::first(self.links.len());
        self.ask(now, handle, what, nodes);
    }

    fn ask(&mut self, now: Time, handle: Handle, what: What, nodes: Nodes) {
        let Some(lock) = self.locks.get(&handle) else {
            return;
        };
        let asked = Asked {
            lock: handle,
            round: lock.round.number(),
            what,
            deadline: now + lock.terms.timeout,
        };
        for node in nodes.iter() {
            let request = Request {
                what,
                lock,
                grant: lock.round.fence(node),
                bug: self.bug,
            };
            if let Some(link) = self.links.get_mut(usize::from(node)) {
                link.ask(now, asked, &request, &mut self.notices);
            }
        }
    }

    /// Requests that get no reply any more.
    fn note_failed(&mut self, now: Time) {
        if self.failed.is_empty() {
            return;
        }
        let mut failed = std::mem::take(&mut self.failed);
        for (node, asked) in failed.drain(..) {
            self.answered(now, node, asked, Answer::Failed);
        }
        self.failed = failed;
    }

    /// A node answered or will not. What concerns another round than the one that runs is of no interest.
    fn answered(&mut self, now: Time, node: u8, asked: Asked, answer: Answer) {
        let Some(lock) = self.locks.get_mut(&asked.lock) else {
            return;
        };
        if asked.round != lock.round.number() || !lock.state.awaits(asked.what) {
            return;
        }
        let is_refused = answer == Answer::No;
        let is_again = is_refused && asked.what == What::Acquire && lock.tries > 1;
        if is_again && self.bug == Some(Bug::TokenReused) {
            // Perhaps the key is ours, from the attempt before.
            return self.ask(now, asked.lock, What::Look, Nodes::one(node));
        }
        if is_refused && self.bug == Some(Bug::ExtendOrSet) && asked.what == What::Extend {
            return self.ask(now, asked.lock, What::SetAgain, Nodes::one(node));
        }
        if let (State::WritingBack { fence }, What::Acquire | What::Look, Answer::Yes(grant)) =
            (lock.state, asked.what, answer)
            && grant < fence
        {
            // It granted late, and can still accept the token.
            lock.round.grants(node, grant);
            return self.ask(now, asked.lock, What::Fence(fence), Nodes::one(node));
        }
        lock.answered(node, asked.what, answer);
        match lock.state {
            State::Acquiring | State::WritingBack { .. } => self.judge_attempt(now, asked.lock),
            State::Held { .. } => self.judge_extension(now, asked.lock),
            State::Undoing { why } if lock.round.is_complete() => {
                self.undone(now, asked.lock, why);
            }
            State::Releasing if lock.round.is_complete() => self.released(asked.lock),
            State::Undoing { .. } | State::Releasing | State::Pausing { .. } | State::Lost => {}
        }
    }

    /// The first lock for which something is to be done by now.
    fn due(&self, now: Time) -> Option<Handle> {
        let mut locks = self.locks.iter();
        locks
            .find(|(_, lock)| self.deadline(lock) <= now)
            .map(|(handle, _)| *handle)
    }

    fn deadline(&self, lock: &Lock) -> Time {
        match lock.state {
            State::Pausing { until } => until,
            // Who extends after the end has not noticed that end, and says nothing of it.
            State::Held { .. } if self.bug != Some(Bug::ExtendAfterEnd) => lock.valid_until,
            _ => Time::NEVER,
        }
    }
}
