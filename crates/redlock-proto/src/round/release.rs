//! Telling every node to let a lock go.

use std::time::Duration;

use crate::quorum::Quorum;
use crate::round::ballot::{Ballot, RoundId};
use crate::time::Time;

/// The release of one token on every node, those included that are believed not to hold it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ReleaseRound {
    /// The votes.
    pub ballot: Ballot,
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
            // What was deleted stays so.
            ballot: Ballot::new(id, quorum, started, timeout).with_final_yes(),
        }
    }

    /// What the answers amount to.
    pub fn verdict(&self) -> ReleaseVerdict {
        let free = self.ballot.yes().len() + self.ballot.no().len();
        if free >= self.ballot.quorum.needed() || self.ballot.pending() == 0 {
            ReleaseVerdict::Decided
        } else {
            ReleaseVerdict::Pending {
                until: self.ballot.deadline,
            }
        }
    }
}
