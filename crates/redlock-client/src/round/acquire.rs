//! Asking every node for a lock.

use std::time::Duration;

use crate::drift::Drift;
use crate::quorum::{NodeId, NodeSet, Quorum};
use crate::round::ballot::{Answer, Ballot, RoundId, Vote};
use crate::time::Time;

/// One try to get a lock from a majority of the nodes.
///
/// ```
/// use std::time::Duration;
/// use redlock_client::round::{AcquireRound, AcquireVerdict, Answer, RoundId, Vote};
/// use redlock_client::{Drift, NodeId, Quorum, Time};
///
/// let id = RoundId { attempt: 1, round: 0 };
/// let quorum = Quorum::of(3).unwrap();
/// let (ttl, timeout) = (Duration::from_secs(10), Duration::from_millis(250));
/// let mut round = AcquireRound::new(id, quorum, Time::ZERO, ttl, Drift::default(), timeout);
/// let now = Time::from_nanos(1_000_000);
/// for node in [0, 1].map(|n| NodeId::new(n).unwrap()) {
///     round.asked(node, 1);
///     round.on_vote(Vote { round: id, node, incarnation: 1 }, Answer::Yes);
/// }
/// let AcquireVerdict::Won { valid_until } = round.verdict(now) else { panic!("two of three granted it") };
/// assert_eq!(valid_until.since(Time::ZERO), Duration::from_millis(9_898));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AcquireRound {
    ballot: Ballot,
    valid_until: Time,
}

/// What a round of acquiring has come to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AcquireVerdict {
    /// Not decided; look again at the latest then.
    Pending {
        /// When nodes that have not answered count as failed.
        until: Time,
    },
    /// A majority granted the lock and validity is left.
    Won {
        /// The moment from which on the lock is not held any more.
        valid_until: Time,
    },
    /// The lock was not had. Every node must be told to release the token.
    Lost(Refusal),
}

/// Why a round was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// Others hold the key on too many nodes.
    Busy,
    /// Too many nodes failed: even with nobody else interested there was no majority.
    NoQuorum,
    /// A majority granted the lock, too late: no validity is left.
    Expired,
}

impl AcquireRound {
    /// A round that begins at `started`, a reading of the clock from before the first byte is sent, and gives
    /// each node `timeout` to answer.
    pub fn new(
        id: RoundId,
        quorum: Quorum,
        started: Time,
        ttl: Duration,
        drift: Drift,
        timeout: Duration,
    ) -> Self {
        Self {
            ballot: Ballot::new(id, quorum, started, timeout),
            valid_until: drift.valid_until(started, ttl),
        }
    }

    /// The node was asked through this connection.
    pub fn asked(&mut self, node: NodeId, incarnation: u32) {
        self.ballot.asked(node, incarnation);
    }

    /// A node's reply; false if it does not count.
    pub fn on_vote(&mut self, vote: Vote, answer: Answer) -> bool {
        self.ballot.record(vote, answer)
    }

    /// The node could not be asked.
    pub fn on_unreachable(&mut self, node: NodeId) -> bool {
        self.ballot.fail(node)
    }

    /// A connection broke; true if that took a vote away.
    pub fn on_disconnected(&mut self, node: NodeId, incarnation: u32) -> bool {
        self.ballot.disconnected(node, incarnation)
    }

    /// Time passed; the nodes that have just failed for it.
    pub fn on_time(&mut self, now: Time) -> NodeSet {
        self.ballot.time_out(now)
    }

    /// What the answers amount to. `now` must be read after the last reply arrived.
    ///
    /// Invariant: won means a majority of the configured nodes said yes and `now` is before the validity's end;
    /// a validity of zero is not a lock.
    pub fn verdict(&self, now: Time) -> AcquireVerdict {
        let (quorum, granted) = (self.ballot.quorum(), self.ballot.yes().len());
        if granted >= quorum.needed() {
            return match now < self.valid_until {
                true => AcquireVerdict::Won {
                    valid_until: self.valid_until,
                },
                false => AcquireVerdict::Lost(Refusal::Expired),
            };
        }
        if granted + self.ballot.pending() >= quorum.needed() {
            return AcquireVerdict::Pending {
                until: self.ballot.deadline(),
            };
        }
        match self.ballot.failed().len() > quorum.spare() {
            true => AcquireVerdict::Lost(Refusal::NoQuorum),
            false => AcquireVerdict::Lost(Refusal::Busy),
        }
    }

    /// The nodes that granted the lock.
    pub fn granted(&self) -> NodeSet {
        self.ballot.yes()
    }

    /// The nodes on which another client holds the key.
    pub fn refused(&self) -> NodeSet {
        self.ballot.no()
    }

    /// When the round began.
    pub fn started(&self) -> Time {
        self.ballot.started()
    }

    /// Which round it is.
    pub fn id(&self) -> RoundId {
        self.ballot.id()
    }
}
