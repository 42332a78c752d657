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
mod hash;
mod holding;
mod link;
mod lock;
mod request;
mod round;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use locknode_resp::Reply;
use redlock_proto::{Drift, NODES_MAX, Time};

use crate::bug::Bug;
use crate::random::Random;
use crate::sim::by_number::ByNumber;
use crate::sim::notice::{ClientNotice, Handle};
use crate::sim::plain::link::Link;
use crate::sim::plain::lock::{Lock, State};
use crate::sim::plain::request::{Answer, Asked, What};

pub(crate) use request::Form;

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
    links: ByNumber<Link>,
    locks: BTreeMap<Handle, Lock>,
    drift: Drift,
    random: Random,
    form: Form,
    bug: Option<Bug>,
    notices: VecDeque<ClientNotice>,
}

impl PlainClient {
    /// A client of this many nodes, 16 at most, that makes one mistake or none.
    pub(crate) fn new(
        nodes: u8,
        drift: Drift,
        connect_timeout: Duration,
        random: Random,
        form: Form,
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
            form,
            bug,
            notices: VecDeque::new(),
        }
    }

    /// Begins to acquire a lock. Ends in [`ClientNotice::Acquired`] or [`ClientNotice::Failed`].
    pub(crate) fn acquire(&mut self, now: Time, handle: Handle, terms: PlainTerms) {
        let mut lock = Lock::new(handle, terms);
        self.attempt(now, &mut lock);
        self.locks.insert(handle, lock);
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
            link.broke(now);
            self.note_failed(now);
        }
    }

    /// Bytes came from the node. `now` must be read after they arrived.
    pub(crate) fn received(&mut self, now: Time, node: u8, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(usize::from(node)) else {
            return;
        };
        let mut replies = Vec::new();
        if !link.receive(bytes, &mut replies) {
            link.give_up(now, &mut self.notices);
        }
        for (asked, reply) in replies {
            self.answered(now, node, asked, Some(&reply));
        }
        self.note_failed(now);
    }

    /// Time passed.
    pub(crate) fn on_time(&mut self, now: Time) {
        let keeps_connection = self.bug == Some(Bug::RepliesMixedUp);
        for link in self.links.iter_mut() {
            if link.next_deadline() <= now {
                link.on_time(now, keeps_connection, &mut self.notices);
            }
        }
        // Only now, so that nothing is sent through a connection that is about to be closed.
        self.note_failed(now);
        // Each turn takes the lock out of the state in which it was due.
        while let Some(handle) = self.due(now) {
            self.with_lock(handle, |client, lock| match lock.state {
                State::Pausing { .. } => client.attempt(now, lock),
                _ => client.expire(now, lock),
            });
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
        let link = self.links.get_mut(usize::from(node))?;
        Some(&mut link.out)
    }

    fn nodes(&self) -> Range<u8> {
        0..u8::try_from(self.links.len()).unwrap_or(u8::MAX)
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

    /// Does something with a lock that is still there, and forgets it if that ends it.
    fn with_lock(&mut self, handle: Handle, act: impl FnOnce(&mut Self, &mut Lock)) {
        if let Some(mut lock) = self.locks.remove(&handle) {
            act(self, &mut lock);
            if lock.state != State::Over {
                self.locks.insert(handle, lock);
            }
        }
    }

    /// Asks nodes at once, on behalf of the round that runs, which awaits their answers.
    fn ask(&mut self, now: Time, lock: &mut Lock, what: What, nodes: impl IntoIterator<Item = u8>) {
        let asked = Asked {
            lock: lock.handle,
            round: lock.round.number,
            what,
            deadline: now + lock.terms.timeout,
        };
        let asked = Asked {
            what: self.first_step(what),
            ..asked
        };
        for node in nodes {
            lock.round.outstanding.insert(node);
            let request = lock.request(asked.what, node, self.form, self.bug);
            self.links[node].ask(now, asked, request, &mut self.notices);
            if asked.what == What::Watch {
                let watch = self.links[node].watch;
                lock.round.watched.insert(node, watch);
            }
        }
    }

    /// Requests that get no reply any more.
    fn note_failed(&mut self, now: Time) {
        for node in self.nodes() {
            for asked in std::mem::take(&mut self.links[node].failed) {
                self.answered(now, node, asked, None);
            }
        }
    }

    /// A node replied, or will not. What concerns another round than the one that runs is of no interest.
    fn answered(&mut self, now: Time, node: u8, asked: Asked, reply: Option<&Reply>) {
        self.with_lock(asked.lock, |client, lock| {
            if asked.round == lock.round.number && lock.state.awaits(asked.what) {
                let answer = reply.map_or(Answer::Failed, |reply| {
                    Answer::of(asked.what, reply, lock.token.as_bytes())
                });
                client.count(now, node, lock, asked.what, answer);
            }
        });
    }

    /// Counts an answer for the round that runs.
    fn count(&mut self, now: Time, node: u8, lock: &mut Lock, what: What, answer: Answer) {
        let Some((what, answer)) = self.step(now, node, lock, what, answer) else {
            return;
        };
        let is_refused = answer == Answer::No;
        let is_again = is_refused && what == What::Acquire && lock.tries > 1;
        if is_again && self.bug == Some(Bug::TokenReused) {
            // Perhaps the key is ours, from the attempt before.
            return self.ask(now, lock, What::Look, [node]);
        }
        if is_refused && self.bug == Some(Bug::ExtendOrSet) && what == What::Extend {
            return self.ask(now, lock, What::SetAgain, [node]);
        }
        if let (State::WritingBack { fence }, What::Acquire | What::Look, Answer::Yes(grant)) =
            (lock.state, what, answer)
            && grant < fence
        {
            // It granted late, and can still accept the token.
            lock.round.fences.insert(node, grant);
            return self.ask(now, lock, What::Fence(fence), [node]);
        }
        lock.round.answered(node, what, answer);
        match lock.state {
            State::Acquiring | State::WritingBack { .. } => self.judge_attempt(now, lock),
            State::Held { .. } => self.judge_extension(now, lock),
            State::Undoing { why } if lock.round.is_complete() => self.undone(now, lock, why),
            State::Releasing if lock.round.is_complete() => self.released(lock),
            _ => {}
        }
    }

    /// The first lock for which something is to be done by now.
    fn due(&self, now: Time) -> Option<Handle> {
        let mut locks = self.locks.values();
        let due = locks.find(|lock| self.deadline(lock) <= now)?;
        Some(due.handle)
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
