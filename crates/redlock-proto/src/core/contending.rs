//! Whether another client holds a lock that was not acquired, or several clients only got in each other's way.
//!
//! Clients that start at the same moment, each near other nodes, split the votes: all are refused by a majority, and
//! nobody holds the lock. So a refusal by a majority is not yet the answer "held". When it would be, the nodes that
//! refused are asked whose key they have: one token on a majority is a holder. Otherwise, and where no majority
//! refused, the attempt is repeated after a random pause, also when the policy allows one attempt only: a bounded
//! number of times.
//!
//! A lock that is free costs nothing more, and one that is held a GET to each node of the majority that refused, once,
//! before the caller is told.

use std::time::Duration;

use locknode_resp::Reply;

use crate::core::acquiring::{Hints, Trying};
use crate::core::answers::Heard;
use crate::core::question::Ask;
use crate::core::{Core, Operation, State};
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::quorum::{NodeId, NodeSet};
use crate::round::{Refusal, Vote};
use crate::time::Time;

/// The question who holds the key, under way.
#[derive(Clone, Debug)]
pub(crate) struct Confirming {
    trying: Trying,
    /// When nodes that have not replied count as not knowing.
    until: Time,
    /// The tokens that the nodes have replied.
    tokens: Vec<Vec<u8>>,
    /// The nodes that have not replied.
    missing: NodeSet,
    /// Those that had not answered when a majority had refused: asked if the others' replies do not decide.
    later: NodeSet,
}

impl Confirming {
    /// The node will not reply.
    pub(crate) fn failed(&mut self, node: NodeId) {
        self.missing.remove(node);
        self.later.remove(node);
    }

    /// No node is waited for any longer than its time.
    pub(crate) fn on_time(&mut self, now: Time) {
        if now >= self.until {
            (self.missing, self.later) = (NodeSet::NONE, NodeSet::NONE);
        }
    }

    /// On how many nodes one and the same token is known to have the key, at most.
    fn most(&self) -> usize {
        let count = |token: &Vec<u8>| self.tokens.iter().filter(|other| *other == token).count();
        self.tokens.iter().map(count).max().unwrap_or(0)
    }
}

impl<E: Entropy> Core<E> {
    /// A majority refused, and the policy allows no further attempt: before the caller is told that the lock is held,
    /// the nodes are asked by whom.
    pub(super) fn confirm(
        &mut self,
        now: Time,
        operation: &mut Operation,
        trying: Trying,
        refused: NodeSet,
        unsettled: NodeSet,
    ) {
        self.release_attempt(now, operation);
        let timeout = operation.terms.timeout.min(trying.deadline.since(now));
        let mut confirming = Confirming {
            trying,
            until: now + timeout,
            tokens: Vec::new(),
            missing: refused,
            later: unsettled,
        };
        for link in self.links.iter().filter(|link| !link.is_ready()) {
            confirming.failed(link.node);
        }
        operation.state = State::Confirming(Box::new(confirming));
        self.ask_ready(now, operation, Ask::Holder, refused);
        self.judge(now, operation);
    }

    /// Looks at what is known of the holders.
    pub(super) fn judge_holders(&mut self, now: Time, operation: &mut Operation) {
        let needed = self.quorum.needed();
        let State::Confirming(confirming) = &mut operation.state else {
            return;
        };
        let (trying, until) = (confirming.trying, confirming.until);
        let (most, missing) = (confirming.most(), confirming.missing.len());
        if most >= needed {
            return self.not_acquired(operation, ErrorKind::Busy);
        }
        if most + missing + confirming.later.len() < needed {
            return self.contend(now, operation, trying);
        }
        if most + missing < needed {
            let next = std::mem::take(&mut confirming.later);
            confirming.missing = confirming.missing.with(next);
            self.ask_ready(now, operation, Ask::Holder, next);
        }
        self.set_alarm(operation, until);
    }

    /// Nobody is known to hold the lock: tries again after a random pause, unless that was done often enough.
    pub(super) fn contend(&mut self, now: Time, operation: &mut Operation, trying: Trying) {
        let random = self.random();
        let took = now.since(operation.acquired);
        let retry = operation.terms.retry;
        let is_released = !matches!(operation.state, State::Acquiring(_));
        let Some(at) = retry.contended(trying.contended, now, took, trying.deadline, random) else {
            // The wait ended before the nodes had reported who held the lock all the time.
            let kind = if trying.was_busy && trying.deadline != Time::NEVER {
                ErrorKind::Busy
            } else {
                ErrorKind::Contended
            };
            return if is_released {
                self.not_acquired(operation, kind)
            } else {
                self.give_up(now, operation, kind)
            };
        };
        if !is_released {
            self.release_attempt(now, operation);
        }
        let trying = Trying {
            contended: trying.contended + 1,
            ..trying
        };
        let hints = Hints::new(usize::MAX, Duration::ZERO);
        self.wait(operation, trying, at, Refusal::Split, hints);
    }
}

impl Operation {
    /// A reply to the question whose key it is.
    pub(super) fn holder_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let State::Confirming(confirming) = &mut self.state else {
            return false;
        };
        if vote.round != self.round || !confirming.missing.remove(vote.node) {
            return false;
        }
        if let Heard::Other(Reply::Bulk(token)) = heard {
            confirming.tokens.push(token.clone());
        }
        true
    }
}
