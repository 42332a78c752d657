//! Attempts to acquire a lock, and the pauses between them.

use std::time::Duration;

use crate::cause::Cause;
use crate::core::answers::Heard;
use crate::core::question::{Ask, fencing_token};
use crate::core::{Core, Notice, Operation, State};
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::policy::scale;
use crate::quorum::{NODES_MAX, NodeId};
use crate::round::{AcquireRound, AcquireVerdict, Answer, Refusal, Vote};
use crate::time::Time;

/// An attempt under way.
#[derive(Clone, Debug)]
pub(crate) struct Acquiring {
    pub(crate) round: AcquireRound,
    pub(crate) trying: Trying,
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

/// A pause between two attempts.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) trying: Trying,
    pub(crate) at: Time,
    pub(crate) why: Refusal,
    pub(crate) hints: Box<Hints>,
}

/// How long the present holder's lock lives, node by node, as far as known.
#[derive(Clone, Debug)]
pub(crate) struct Hints {
    remaining: [Option<Duration>; NODES_MAX],
    /// How many of them must end before a majority is free.
    missing: usize,
    /// A little random time, so that waiters do not come all at once.
    jitter: Duration,
}

impl Hints {
    pub(crate) fn new(missing: usize, jitter: Duration) -> Self {
        Self {
            remaining: [None; NODES_MAX],
            missing: missing.max(1),
            jitter,
        }
    }

    fn learn(&mut self, node: NodeId, remaining: Duration) {
        if let Some(slot) = self.remaining.get_mut(node.index()) {
            *slot = Some(remaining);
        }
    }

    /// In how long a majority can be free, unless it is released sooner.
    fn free_in(&self) -> Option<Duration> {
        let mut known: Vec<Duration> = self.remaining.iter().flatten().copied().collect();
        known.sort_unstable();
        known.get(self.missing - 1).copied()
    }
}

impl<E: Entropy> Core<E> {
    /// Begins an attempt with a fresh token.
    pub(super) fn attempt(&mut self, now: Time, operation: &mut Operation, trying: Trying) {
        let token = self.fresh_token();
        let (quorum, drift) = (self.quorum, self.config.drift);
        let id = operation.next_attempt(token);
        operation.floor = self.floors.of(&operation.terms.key);
        let timeout = operation.terms.timeout.min(trying.deadline.since(now));
        operation.acquired = now;
        operation.asked_until = now + timeout;
        operation.state = State::Acquiring(Acquiring {
            round: AcquireRound::new(id, quorum, now, operation.terms.ttl, drift, timeout),
            trying: Trying {
                tries: trying.tries.saturating_add(1),
                ..trying
            },
        });
        self.ask(now, operation, Ask::Acquire, quorum.all());
        self.judge(now, operation);
    }

    /// Looks at the votes of an attempt.
    pub(super) fn judge_attempt(&mut self, now: Time, operation: &mut Operation) {
        let State::Acquiring(Acquiring { round, .. }) = &operation.state else {
            return;
        };
        match round.verdict(now) {
            AcquireVerdict::Pending { .. } if !round.lagging().is_empty() => {
                self.ask_lagging(now, operation);
            }
            AcquireVerdict::Pending { until } => self.set_alarm(operation, until),
            AcquireVerdict::Diverged => self.write_back(now, operation),
            AcquireVerdict::Won {
                valid_until,
                fencing,
            } => {
                self.learn_floor(operation);
                self.won(now, operation, valid_until, fencing);
            }
            AcquireVerdict::Lost(why) => {
                self.learn_floor(operation);
                self.attempt_lost(now, operation, why);
            }
        }
    }

    fn attempt_lost(&mut self, now: Time, operation: &mut Operation, why: Refusal) {
        let random = self.random();
        let jitter = Duration::from_nanos(scale(self.random(), JITTER_NS));
        let (spare, needed) = (self.quorum.spare(), self.quorum.needed());
        let State::Acquiring(Acquiring { round, trying }) = &operation.state else {
            return;
        };
        let (ballot, trying) = (&round.ballot, *trying);
        let (granted, refused, unsettled) = (ballot.yes(), ballot.no(), ballot.unsettled());
        // The wait's end came before a node's time was over.
        let was_cut = round.asked_at() + operation.terms.timeout > trying.deadline;
        for node in granted.iter() {
            operation.blame(node, Cause::Granted);
        }
        let retry = operation.terms.retry;
        let Some(at) = retry.next(trying.tries, now, trying.deadline, random) else {
            return match why {
                Refusal::Busy => self.confirm(now, operation, trying, refused, unsettled),
                Refusal::Split => self.contend(now, operation, trying),
                Refusal::NoQuorum | Refusal::Expired => {
                    let kind = match kind_of(why, was_cut) {
                        ErrorKind::Timeout if trying.was_busy => ErrorKind::Busy,
                        kind => kind,
                    };
                    self.give_up(now, operation, kind);
                }
            };
        };
        // As many of the refusing nodes must become free as the others are short of a majority.
        let missing = refused.len().saturating_sub(spare).min(needed);
        let trying = Trying {
            was_busy: why == Refusal::Busy,
            ..trying
        };
        self.release_attempt(now, operation);
        self.wait(operation, trying, at, why, Hints::new(missing, jitter));
        if matches!(why, Refusal::Busy | Refusal::Split) {
            self.ask_ready(now, operation, Ask::Remaining, refused);
        }
    }

    /// Lets an operation wait for its next attempt.
    pub(super) fn wait(
        &mut self,
        operation: &mut Operation,
        trying: Trying,
        at: Time,
        why: Refusal,
        hints: Hints,
    ) {
        operation.state = State::Waiting(Waiting {
            trying,
            at,
            why,
            hints: Box::new(hints),
        });
        self.set_alarm(operation, at);
    }

    /// The next attempt is due, or the wait is over.
    pub(super) fn wait_over(&mut self, now: Time, operation: &mut Operation) {
        let State::Waiting(Waiting {
            trying, at, why, ..
        }) = operation.state
        else {
            return;
        };
        if now >= trying.deadline {
            self.not_acquired(operation, kind_of(why, false));
        } else if now >= at {
            self.begin_attempt(now, operation, trying);
        } else {
            self.set_alarm(operation, at);
        }
    }

    /// Reports that the lock was not acquired, and releases in the background what was granted.
    pub(super) fn give_up(&mut self, now: Time, operation: &mut Operation, kind: ErrorKind) {
        self.not_acquired(operation, kind);
        self.start_release(now, operation, true);
    }

    /// Reports that the lock was not acquired, which ends the operation.
    pub(super) fn not_acquired(&mut self, operation: &mut Operation, kind: ErrorKind) {
        self.notices.push_back(Notice::NotAcquired {
            op: operation.id,
            kind,
            causes: operation.take_causes(),
        });
        operation.state = State::Ended;
    }
}

impl Operation {
    /// A reply to an acquire. One that comes when the round is over changes nothing: if it was a grant, the release
    /// that followed on the same connection undoes it, or the lock is held and a node more holds it.
    pub(super) fn acquire_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let answer = heard.answer();
        let counter = match heard {
            Heard::Integers([_, counter, _]) => fencing_token(*counter),
            _ => None,
        };
        if answer != Answer::Yes && vote.round.attempt == self.round.attempt && heard.is_definite()
        {
            self.may_hold.remove(vote.node);
        }
        let State::Acquiring(acquiring) = &mut self.state else {
            return false;
        };
        let counts = acquiring.round.on_vote(vote, answer, counter);
        if counts {
            self.blame_answer(vote.node, answer, Cause::HeldByOther, Ask::Acquire, heard);
        }
        counts
    }

    /// How long the present holder's lock lives on this node: no reason to wait longer than a majority needs.
    pub(super) fn remaining_answered(&mut self, now: Time, vote: Vote, heard: &Heard) -> bool {
        let (State::Waiting(waiting), Heard::Integer(ms)) = (&mut self.state, heard) else {
            return false;
        };
        if vote.round != self.round || *ms == -1 {
            return false;
        }
        // No key any more: free at once.
        let remaining = Duration::from_millis(u64::try_from(*ms).unwrap_or(0));
        waiting.hints.learn(vote.node, remaining);
        let Some(free_in) = waiting.hints.free_in() else {
            return false;
        };
        let free_at = now + free_in + Duration::from_millis(1) + waiting.hints.jitter;
        let is_sooner = free_at < waiting.at;
        waiting.at = waiting.at.min(free_at);
        is_sooner
    }
}

/// What a lost attempt is to the caller. `was_cut` says that the nodes had less than their time because the wait
/// ended.
fn kind_of(why: Refusal, was_cut: bool) -> ErrorKind {
    match why {
        Refusal::Busy => ErrorKind::Busy,
        Refusal::Split => ErrorKind::Contended,
        Refusal::Expired => ErrorKind::Expired,
        Refusal::NoQuorum if was_cut => ErrorKind::Timeout,
        Refusal::NoQuorum => ErrorKind::NoQuorum,
    }
}

/// Spread of the attempts of several waiters after the present holder's lock has expired.
const JITTER_NS: u64 = 10_000_000;

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
