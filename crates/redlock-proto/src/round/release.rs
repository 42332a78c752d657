//! Telling every node to let a lock go.

use std::time::Duration;

use crate::quorum::{NodeId, NodeSet, Quorum};
use crate::round::ballot::{Answer, Ballot, RoundId, Vote};
use crate::time::Time;

/// The release of one token on every node, those included that are believed not to hold it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReleaseRound {
    ballot: Ballot,
}

/// What a round of releasing has come to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ReleaseVerdict {
    /// Too few answers so far; look again at the latest then.
    Pending {
        /// When nodes that have not answered count as failed.
        until: Time,
    },
    /// A majority of the nodes is known not to hold the lock any more, or nobody is left to answer.
    Decided,
}

impl ReleaseRound {
    /// A round that begins at `started` and gives each node `timeout` to answer.
    pub fn new(id: RoundId, quorum: Quorum, started: Time, timeout: Duration) -> Self {
        Self {
            ballot: Ballot::new(id, quorum, started, timeout),
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

    /// A connection broke; true if a reply is thereby lost. A deletion that was confirmed stays so.
    pub fn on_disconnected(&mut self, node: NodeId, incarnation: u32) -> bool {
        !self.ballot.yes().contains(node) && self.ballot.disconnected(node, incarnation)
    }

    /// Time passed; the nodes that have just failed for it.
    pub fn on_time(&mut self, now: Time) -> NodeSet {
        self.ballot.time_out(now)
    }

    /// What the answers amount to.
    pub fn verdict(&self) -> ReleaseVerdict {
        let free = self.ballot.yes().len() + self.ballot.no().len();
        match free >= self.ballot.quorum().needed() || self.ballot.pending() == 0 {
            true => ReleaseVerdict::Decided,
            false => ReleaseVerdict::Pending {
                until: self.ballot.deadline(),
            },
        }
    }

    /// The nodes that deleted the key.
    pub fn confirmed(&self) -> NodeSet {
        self.ballot.yes()
    }

    /// The nodes that did not hold it.
    pub fn not_held(&self) -> NodeSet {
        self.ballot.no()
    }

    /// The nodes that have no vote yet.
    pub(crate) fn unsettled(&self) -> NodeSet {
        self.ballot.unsettled()
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
