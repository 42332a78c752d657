//! One lock from the first attempt to the last reply of its release.

use std::sync::Arc;
use std::time::Duration;

use crate::cause::Cause;
use crate::core::contending::Holders;
use crate::fencing_token::FencingToken;
use crate::policy::{RenewPolicy, Renewal, RetryPolicy};
use crate::quorum::{NODES_MAX, NodeId, NodeSet};
use crate::round::{AcquireRound, ExtendRound, Refusal, ReleaseRound, RoundId, WRITABLE_MAX};
use crate::time::Time;
use crate::token::Token;

/// Which operation; never used again for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl OpId {
    /// The place of the operation in a table; free again for another when this one is over.
    pub fn slot(self) -> usize {
        usize::try_from(self.slot).unwrap_or(usize::MAX)
    }
}

/// What is wanted of a lock, all checked.
#[derive(Clone, Debug)]
pub struct LockTerms {
    /// The key as the nodes see it, prefix included.
    pub key: Box<[u8]>,
    /// How long the nodes keep the lock without extension, in whole milliseconds.
    pub ttl: Duration,
    /// How long a node has for a reply.
    pub timeout: Duration,
    /// When to try again.
    pub retry: RetryPolicy,
    /// When to extend on the holder's behalf.
    pub renew: Option<RenewPolicy>,
    /// How long the key stays even if it is released sooner.
    pub hold_at_least: Duration,
}

impl LockTerms {
    /// Terms of something that only looks, or releases a token from elsewhere.
    pub fn looking(key: Box<[u8]>, timeout: Duration) -> Self {
        Self {
            key,
            ttl: Duration::ZERO,
            timeout,
            retry: RetryPolicy::tries(1),
            renew: None,
            hold_at_least: Duration::ZERO,
        }
    }
}

/// What a node can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Acquire,
    Extend {
        ttl: Duration,
    },
    /// Accept the fencing token.
    Fence,
    /// Set the key again where it was lost.
    Heal {
        ttl: Duration,
    },
    Release,
    /// Instead of a release: let it live this long and no longer.
    Shrink {
        ttl: Duration,
    },
    /// How long the present holder's lock lives.
    Remaining,
    /// Who holds the key, after a majority refused.
    Holder,
    /// Which token the key has.
    LookToken,
    /// How long it lives.
    LookRemaining,
    /// Whether the node is there.
    Ping,
}

/// What one node says of a key, as far as it has answered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Look {
    /// The token there, if any.
    pub token: Option<Vec<u8>>,
    /// How long it lives; `None` without end.
    pub remaining: Option<Duration>,
    /// Why the node did not say.
    pub cause: Option<Cause>,
    pub(crate) missing: u8,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) terms: Arc<LockTerms>,
    pub(crate) token: Token,
    pub(crate) state: State,
    pub(crate) round: RoundId,
    /// The lock's fencing token, when it is held and has one.
    pub(crate) fencing: Option<FencingToken>,
    /// Where nodes are to count from in the present attempt: their counters differed at the last.
    pub(crate) floor: Option<FencingToken>,
    /// The nodes that may hold the token.
    pub(crate) may_hold: NodeSet,
    /// When they have let it go on their own at the latest.
    pub(crate) may_hold_until: Time,
    /// When the lock was asked for.
    pub(crate) acquired: Time,
    /// Until when the nodes of the last attempt or extension have time to answer.
    pub(crate) asked_until: Time,
    /// What went wrong on which node in the present round.
    pub(crate) causes: Vec<(NodeId, Cause)>,
    /// Why the last renewal failed, if it did.
    pub(crate) unrenewed: Vec<(NodeId, Cause)>,
    /// Nodes that owed the answer to an extension when their connection broke, and the shortest TTL of such a one. It may
    /// still reach them, after a later and longer one, and cut that short.
    pub(crate) doubtful: NodeSet,
    pub(crate) doubtful_ttl: Duration,
    /// When the operation wants to be looked at.
    pub(crate) alarm: Time,
}

/// Where an operation is in its life.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Acquiring {
        round: AcquireRound,
        trying: Trying,
    },
    /// An attempt that has to wait until the nodes have answered more of what they were asked.
    Queued {
        trying: Trying,
        until: Time,
    },
    /// A majority refused the last attempt, which is released: who holds the key?
    Confirming {
        trying: Trying,
        /// When nodes that have not said count as not knowing.
        until: Time,
        holders: Box<Holders>,
    },
    /// Between two attempts.
    Waiting {
        trying: Trying,
        at: Time,
        why: Refusal,
        hints: Box<Hints>,
    },
    /// Taking over a lock whose token came from elsewhere.
    Adopting {
        round: ExtendRound,
    },
    Held {
        valid_until: Time,
        /// When the holder is warned.
        lost_at: Time,
        renewal: Option<Box<Renewal>>,
        extension: Option<Box<Extension>>,
        /// The last extension that a majority confirmed, and its TTL.
        confirmed: Option<(RoundId, Duration)>,
    },
    /// Left to its TTL. Nodes that were not asked yet, or have not answered, have their time for that.
    Leaving {
        until: Time,
    },
    /// No longer held, not released yet.
    Over,
    Releasing {
        round: ReleaseRound,
        /// The key stays until its least time is over.
        is_kept: bool,
        /// Nobody waits for the outcome any more.
        is_told: bool,
        /// The nodes whose reply is still to come.
        awaited: NodeSet,
    },
    Looking {
        until: Time,
        looks: Vec<Look>,
    },
}

/// An extension under way.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) round: ExtendRound,
    /// Whether the holder asked for it.
    pub(crate) is_asked: bool,
}

/// How far trying has come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trying {
    pub(crate) tries: u32,
    pub(crate) deadline: Time,
    /// Whether the last attempt that had its time found the lock held by another.
    pub(crate) was_busy: bool,
    /// Attempts beyond what the policy allows, because nobody was found to hold the lock.
    pub(crate) contended: u32,
}

/// How long the present holder's lock lives, node by node, as far as known.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    remaining: [Option<Duration>; NODES_MAX],
    /// How many of them must end before a majority is free.
    missing: usize,
    /// A little random time, so that waiters do not come all at once.
    pub(crate) jitter: Duration,
}

impl Hints {
    pub(crate) fn new(missing: usize, jitter: Duration) -> Self {
        Self {
            remaining: [None; NODES_MAX],
            missing: missing.max(1),
            jitter,
        }
    }

    pub(crate) fn learn(&mut self, node: NodeId, remaining: Duration) {
        if let Some(slot) = self.remaining.get_mut(node.index()) {
            *slot = Some(remaining);
        }
    }

    /// In how long a majority can be free, unless it is released sooner.
    pub(crate) fn free_in(&self) -> Option<Duration> {
        let mut known: Vec<Duration> = self.remaining.iter().flatten().copied().collect();
        known.sort_unstable();
        known.get(self.missing - 1).copied()
    }
}

impl Operation {
    /// Remembers what a node had to do with a failure; the first word counts.
    pub(crate) fn blame(&mut self, node: NodeId, cause: Cause) {
        if !self.causes.iter().any(|(other, _)| *other == node) {
            self.causes.push((node, cause));
        }
    }

    /// Begins another round of the same attempt.
    pub(crate) fn next_round(&mut self) -> RoundId {
        self.causes.clear();
        self.round.round = self.round.round.wrapping_add(1);
        self.round
    }

    /// Begins another attempt with a token of its own.
    pub(crate) fn next_attempt(&mut self, token: Token) -> RoundId {
        self.causes.clear();
        self.token = token;
        self.may_hold = NodeSet::default();
        self.may_hold_until = Time::ZERO;
        self.round = RoundId {
            attempt: self.round.attempt.wrapping_add(1),
            round: 0,
        };
        self.round
    }

    /// Where a node that is asked now is to count from. One that comes late, or lost the key, gets to the number that the
    /// others are at: its next grant is even with theirs.
    pub(crate) fn floor(&self) -> Option<FencingToken> {
        let Some(fencing) = self.fencing else {
            return self.floor;
        };
        FencingToken::new(fencing.get() - 1).filter(|floor| *floor <= WRITABLE_MAX)
    }

    /// A node was sent something that can make it hold the token for `ttl`, at the latest at `now`.
    pub(crate) fn may_be_held(&mut self, node: NodeId, now: Time, ttl: Duration, slack: Duration) {
        self.may_hold.insert(node);
        // A slow clock of the node keeps the key longer, and so does a request that waits in a buffer.
        let until = now + ttl + ttl / 8 + slack;
        self.may_hold_until = self.may_hold_until.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_majority_is_free_when_enough_locks_have_ended() {
        let ms = Duration::from_millis;
        let mut hints = Hints::new(2, Duration::ZERO);
        assert_eq!(hints.free_in(), None);
        for (node, remaining) in [(4, 900), (0, 300), (2, 500)] {
            hints.learn(NodeId::new(node).unwrap(), ms(remaining));
        }
        assert_eq!(hints.free_in(), Some(ms(500)), "two must end");
    }
}
