//! Whether somebody holds a lock that was not had, or several clients only got into each other's way.
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
    /// When nodes that have not said count as not knowing.
    until: Time,
    holders: Box<Holders>,
}

impl Confirming {
    /// The node will not say.
    pub(crate) fn failed(&mut self, node: NodeId) {
        self.holders.failed(node);
    }

    /// Nobody is waited for any longer than the nodes' time.
    pub(crate) fn on_time(&mut self, now: Time) {
        if now >= self.until {
            self.holders.time_out();
        }
    }
}

/// Whose key each of the nodes has that refused, as far as known.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Holders {
    tokens: Vec<Vec<u8>>,
    /// The nodes that have not said.
    missing: NodeSet,
    /// Those that had not answered when a majority had refused: asked if the others' answers do not tell.
    later: NodeSet,
}

impl Holders {
    fn new(asked: NodeSet, later: NodeSet) -> Self {
        Self {
            tokens: Vec::new(),
            missing: asked,
            later,
        }
    }

    /// The node will not say.
    fn failed(&mut self, node: NodeId) {
        self.missing.remove(node);
        self.later.remove(node);
    }

    /// Nobody is waited for any longer.
    fn time_out(&mut self) {
        (self.missing, self.later) = (NodeSet::NONE, NodeSet::NONE);
    }

    /// The nodes that are to be asked now, if the answers so far do not tell.
    fn next(&mut self) -> NodeSet {
        let next = std::mem::take(&mut self.later);
        for node in next.iter() {
            self.missing.insert(node);
        }
        next
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
    pub(in crate::core) fn confirm(
        &mut self,
        now: Time,
        operation: &mut Operation,
        trying: Trying,
        refused: NodeSet,
        unsettled: NodeSet,
    ) {
        self.release_attempt(now, operation);
        let timeout = operation.terms.timeout.min(trying.deadline.since(now));
        let mut holders = Holders::new(refused, unsettled);
        for link in self.links.iter().filter(|link| !link.is_ready()) {
            holders.failed(link.node);
        }
        operation.state = State::Confirming(Confirming {
            trying,
            until: now + timeout,
            holders: Box::new(holders),
        });
        self.ask_ready(now, operation, Ask::Holder, refused);
        self.judge(now, operation);
    }

    /// Looks at what is known of the holders.
    pub(in crate::core) fn judge_holders(&mut self, now: Time, operation: &mut Operation) {
        let needed = self.quorum.needed();
        let State::Confirming(confirming) = &mut operation.state else {
            return;
        };
        let (trying, until, holders) =
            (confirming.trying, confirming.until, &mut confirming.holders);
        let (most, missing) = (holders.most(), holders.missing.len());
        if most >= needed {
            return self.not_acquired(operation, ErrorKind::Busy);
        }
        if most + missing + holders.later.len() < needed {
            return self.contend(now, operation, trying);
        }
        if most + missing < needed {
            let next = holders.next();
            self.ask_ready(now, operation, Ask::Holder, next);
        }
        self.set_alarm(operation, until);
    }

    /// Nobody is known to hold the lock: tries again after a random pause, unless that was done often enough.
    pub(in crate::core) fn contend(
        &mut self,
        now: Time,
        operation: &mut Operation,
        trying: Trying,
    ) {
        let random = self.random();
        let took = now.since(operation.acquired);
        let retry = operation.terms.retry;
        let is_released = !matches!(operation.state, State::Acquiring(_));
        let Some(at) = retry.contended(trying.contended, now, took, trying.deadline, random) else {
            // The wait ended before the nodes had said who it was that held the lock all the time.
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
    pub(in crate::core) fn holder_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let State::Confirming(Confirming { holders, .. }) = &mut self.state else {
            return false;
        };
        if vote.round != self.round || !holders.missing.remove(vote.node) {
            return false;
        }
        if let Heard::Other(Reply::Bulk(token)) = heard {
            holders.tokens.push(token.clone());
        }
        true
    }
}
