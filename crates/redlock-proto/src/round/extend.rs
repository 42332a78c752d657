//! Asking every node to let a lock live longer.

use std::time::Duration;

use crate::drift::Drift;
use crate::quorum::Quorum;
use crate::round::ballot::{Ballot, RoundId};
use crate::time::Time;

/// One try to extend a lock on a majority of the nodes.
///
/// A node extends only what it still holds with this token; one that lost the key says no and is not asked to
/// make it anew within this round.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ExtendRound {
    /// The votes.
    pub ballot: Ballot,
    /// The TTL that the nodes were asked for.
    pub(crate) ttl: Duration,
    /// Until when the lock would be valid.
    pub(crate) valid_until: Time,
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

    /// What the answers amount to. `now` must be read after the last reply arrived.
    pub fn verdict(&self, now: Time) -> ExtendVerdict {
        let (quorum, extended) = (self.ballot.quorum, self.ballot.yes().len());
        if extended >= quorum.needed() {
            return if now < self.valid_until {
                ExtendVerdict::Extended {
                    valid_until: self.valid_until,
                }
            } else {
                ExtendVerdict::Failed
            };
        }
        if self.ballot.no().len() > quorum.spare() {
            return ExtendVerdict::NotHeld;
        }
        if extended + self.ballot.pending() >= quorum.needed() {
            return ExtendVerdict::Pending {
                until: self.ballot.deadline,
            };
        }
        ExtendVerdict::Failed
    }
}
