//! Asking every node to let a lock live longer.

use std::time::Duration;

use crate::drift::Drift;
use crate::quorum::{NodeId, NodeSet, Quorum};
use crate::round::ballot::{Answer, Ballot, RoundId, Vote};
use crate::time::Time;

/// One try to extend a lock on a majority of the nodes.
///
/// A node extends only what it still holds with this token; one that lost the key says no and is not asked to
/// make it anew within this round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExtendRound {
    ballot: Ballot,
    ttl: Duration,
    valid_until: Time,
}

/// What a round of extending has come to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ExtendVerdict {
    /// Not decided; look again at the latest then.
    Pending {
        /// When nodes that have not answered count as failed.
        until: Time,
    },
    /// A majority held the lock all the time and holds it longer now.
    Extended {
        /// The moment from which on the lock is not held any more.
        valid_until: Time,
    },
    /// So many nodes say that they do not hold the lock that no majority can: it is lost, now.
    NotHeld,
    /// Too few nodes answered. The lock is what it was before.
    Failed,
}

impl ExtendRound {
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
            ttl,
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
    pub fn verdict(&self, now: Time) -> ExtendVerdict {
        let (quorum, extended) = (self.ballot.quorum(), self.ballot.yes().len());
        if extended >= quorum.needed() {
            return match now < self.valid_until {
                true => ExtendVerdict::Extended {
                    valid_until: self.valid_until,
                },
                false => ExtendVerdict::Failed,
            };
        }
        if self.ballot.no().len() > quorum.spare() {
            return ExtendVerdict::NotHeld;
        }
        if extended + self.ballot.pending() >= quorum.needed() {
            return ExtendVerdict::Pending {
                until: self.ballot.deadline(),
            };
        }
        ExtendVerdict::Failed
    }

    /// Until when the lock would be valid.
    pub fn valid_until(&self) -> Time {
        self.valid_until
    }

    /// The TTL that the nodes were asked for.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The nodes that extended the lock.
    pub fn extended(&self) -> NodeSet {
        self.ballot.yes()
    }

    /// The nodes that do not hold the lock.
    pub fn not_held(&self) -> NodeSet {
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
