//! Asking every node for a lock.

use std::time::Duration;

use crate::drift::Drift;
use crate::fencing_token::FencingToken;
use crate::quorum::{NodeId, NodeSet, Quorum};
use crate::round::ballot::{Answer, Ballot, RoundId, Vote};
use crate::round::fencing::{FenceVerdict, Fencing};
use crate::time::Time;

/// One try to get a lock from a majority of the nodes.
///
/// Nodes that count their grants report their counter with the vote, and a lock has a fencing token when a majority
/// holds it. Where counters differ ([`Diverged`](AcquireVerdict::Diverged)), that takes a second question to the nodes
/// that [lag](Self::lagging).
///
/// ```
/// use std::time::Duration;
/// use redlock_proto::round::{AcquireRound, AcquireVerdict, Answer, RoundId, Vote};
/// use redlock_proto::{Drift, FencingToken, NodeId, Quorum, Time};
///
/// let id = RoundId { attempt: 1, round: 0 };
/// let quorum = Quorum::of(3).unwrap();
/// let (ttl, timeout) = (Duration::from_secs(10), Duration::from_millis(250));
/// let mut round = AcquireRound::new(id, quorum, Time::ZERO, ttl, Drift::default(), timeout);
/// let now = Time::from_nanos(1_000_000);
/// for node in [0, 1].map(|n| NodeId::new(n).unwrap()) {
///     round.ballot.asked(node, 1);
///     round.on_vote(Vote { round: id, node, incarnation: 1 }, Answer::Yes, FencingToken::new(7));
/// }
/// let AcquireVerdict::Won { valid_until, fencing } = round.verdict(now) else {
///     panic!("two of three granted it")
/// };
/// assert_eq!(valid_until.since(Time::ZERO), Duration::from_millis(9_898));
/// assert_eq!(fencing, FencingToken::new(7));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AcquireRound {
    /// The votes, without the counters: cast them with [`on_vote`](Self::on_vote) and [`on_time`](Self::on_time).
    pub ballot: Ballot,
    fencing: Fencing,
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
    /// A majority granted the lock, and their counters differ: [`write_back`](AcquireRound::write_back), and ask those
    /// that lag.
    Diverged,
    /// A majority granted the lock, holds its fencing token, and validity is left.
    Won {
        /// The moment from which on the lock is not held any more.
        valid_until: Time,
        /// The fencing token; `None` when too few of the nodes count grants.
        fencing: Option<FencingToken>,
    },
    /// The lock was not acquired. The token must be released on every node.
    Lost(Refusal),
}

/// Why a round was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// A majority refused, because other clients hold the key there. The votes do not show whether it is one client.
    Busy,
    /// Neither a majority granted the lock, nor did one refuse it, nor did too many fail: several clients may have
    /// tried at the same moment, and nobody is known to hold it.
    Split,
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
            fencing: Fencing::default(),
            valid_until: drift.valid_until(started, ttl),
        }
    }

    /// The node was asked through this connection, with a command that reports no counter.
    pub fn asked_plainly(&mut self, node: NodeId, incarnation: u32) {
        self.ballot.asked(node, incarnation);
        self.fencing.asked_plainly(node);
    }

    /// A node's reply, with its counter if it reported one; false if the vote does not count.
    pub fn on_vote(&mut self, vote: Vote, answer: Answer, counter: Option<FencingToken>) -> bool {
        let counts = self.ballot.on_vote(vote, answer);
        if let (true, Some(counter)) = (counts, counter) {
            self.fencing.told(vote.node, counter, answer == Answer::Yes);
        }
        counts
    }

    /// Time passed; the nodes that have just failed for it.
    pub fn on_time(&mut self, now: Time) -> NodeSet {
        let mut late = self.ballot.on_time(now);
        if self
            .fencing
            .span()
            .is_some_and(|(_, deadline)| now >= deadline)
        {
            for node in self.fencing.open(self.ballot.yes()).iter() {
                self.ballot.revoke(node, Answer::Failed);
                late.insert(node);
            }
        }
        late
    }

    /// Fixes the fencing token, once. From now on nodes that [lag](Self::lagging) are to be asked to accept it, and have
    /// `timeout` for that.
    pub fn write_back(&mut self, now: Time, timeout: Duration) {
        let (quorum, granted) = (self.ballot.quorum, self.ballot.yes());
        self.fencing.fix(quorum, granted, now, timeout);
    }

    /// The fencing token that is written back, once it is fixed.
    pub fn fixed(&self) -> Option<FencingToken> {
        self.fencing.fixed()
    }

    /// The nodes that are to be asked to accept the token and were not yet.
    pub fn lagging(&self) -> NodeSet {
        self.fencing.lagging(self.ballot.yes())
    }

    /// The counter that the node reported with its grant, which a request to accept the token quotes.
    pub fn counter(&self, node: NodeId) -> Option<FencingToken> {
        self.fencing.counter(node)
    }

    /// The node was asked to accept the token, through the connection that brought its grant.
    pub fn write_back_asked(&mut self, node: NodeId) {
        self.fencing.asked(node);
    }

    /// Whether the node accepted the token; false if that does not count. A no, or a failure, takes its grant away.
    pub fn on_write_back(&mut self, vote: Vote, answer: Answer) -> bool {
        let open = self.fencing.open(self.ballot.yes());
        if !self.ballot.concerns(vote) || !open.contains(vote.node) {
            return false;
        }
        match answer {
            Answer::Yes => self.fencing.accepted(vote.node),
            other => {
                self.ballot.revoke(vote.node, other);
            }
        }
        true
    }

    /// The node could not be asked to accept the token.
    pub fn on_write_back_failed(&mut self, node: NodeId) -> bool {
        self.ballot.revoke(node, Answer::Failed)
    }

    /// What the answers amount to. `now` must be read after the last reply arrived.
    ///
    /// Invariant: won means a majority of the configured nodes said yes and `now` is before the validity's end;
    /// a validity of zero is not a lock. Won with a fencing token means that a majority holds it `[F7]`.
    pub fn verdict(&self, now: Time) -> AcquireVerdict {
        let (quorum, granted) = (self.ballot.quorum, self.ballot.yes());
        if granted.len() < quorum.needed() {
            return if granted.len() + self.ballot.pending() >= quorum.needed() {
                self.pending()
            } else {
                self.lost()
            };
        }
        if now >= self.valid_until {
            return AcquireVerdict::Lost(Refusal::Expired);
        }
        let unsettled = self.ballot.unsettled();
        match self.fencing.verdict(quorum, granted, unsettled) {
            FenceVerdict::Credited(token) => self.won(Some(token)),
            FenceVerdict::Unfenced => self.won(None),
            FenceVerdict::Diverged => AcquireVerdict::Diverged,
            FenceVerdict::Pending => AcquireVerdict::Pending {
                until: self.waits_until().min(self.valid_until),
            },
            FenceVerdict::Failed => self.lost(),
        }
    }

    fn won(&self, fencing: Option<FencingToken>) -> AcquireVerdict {
        AcquireVerdict::Won {
            valid_until: self.valid_until,
            fencing,
        }
    }

    fn pending(&self) -> AcquireVerdict {
        let until = self.waits_until();
        AcquireVerdict::Pending { until }
    }

    fn waits_until(&self) -> Time {
        let first = self.ballot.deadline;
        match (self.fencing.span(), self.ballot.pending()) {
            (None, _) => first,
            (Some((_, second)), 0) => second,
            (Some((_, second)), _) => first.min(second),
        }
    }

    /// No majority is possible any more. Why depends on nothing but the votes, whatever the order in which they came:
    /// as long as one that is missing could make a difference, it is waited for.
    fn lost(&self) -> AcquireVerdict {
        let quorum = self.ballot.quorum;
        if self.ballot.no().len() >= quorum.needed() {
            return AcquireVerdict::Lost(Refusal::Busy);
        }
        if self.ballot.failed.len() > quorum.spare() {
            return AcquireVerdict::Lost(Refusal::NoQuorum);
        }
        match self.ballot.pending() {
            0 => AcquireVerdict::Lost(Refusal::Split),
            _ => self.pending(),
        }
    }

    /// The highest reported counter, if nodes reported different ones: with this as a floor the next grants are even.
    pub fn uneven(&self) -> Option<FencingToken> {
        self.fencing.uneven()
    }

    /// When the nodes that are waited for were asked.
    pub fn asked_at(&self) -> Time {
        self.fencing
            .span()
            .map_or(self.ballot.started, |(started, _)| started)
    }
}
