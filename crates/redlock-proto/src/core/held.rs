//! A lock that is held: its extension, its renewal and its end.

use std::time::Duration;

use crate::cause::Cause;
use crate::core::acquiring::Acquiring;
use crate::core::answers::Heard;
use crate::core::question::{Ask, Question};
use crate::core::{Core, Notice, OpId, Operation, State};
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::fencing_token::FencingToken;
use crate::policy::Renewal;
use crate::quorum::{NodeId, NodeSet};
use crate::round::{Answer, ExtendRound, ExtendVerdict, RoundId, Vote};
use crate::time::Time;

/// A lock that is held.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    valid_until: Time,
    /// When the holder is warned.
    lost_at: Time,
    renewal: Option<Box<Renewal>>,
    pub(crate) extension: Option<Box<Extension>>,
    /// The last extension that a majority confirmed, and its TTL.
    pub(crate) confirmed: Option<(RoundId, Duration)>,
}

/// An extension under way.
#[derive(Clone, Debug)]
pub(crate) struct Extension {
    pub(crate) round: ExtendRound,
    /// Whether the holder asked for it.
    is_asked: bool,
}

impl<E: Entropy> Core<E> {
    /// Begins to take over a lock by extending it.
    pub(super) fn start_adoption(&mut self, now: Time, operation: &mut Operation) {
        let (quorum, drift) = (self.quorum, self.config.drift);
        let (ttl, timeout) = (operation.terms.ttl, operation.terms.timeout);
        let round = operation.next_round();
        operation.acquired = now;
        operation.asked_until = now + timeout;
        let round = ExtendRound::new(round, quorum, now, ttl, drift, timeout);
        operation.state = State::Adopting(round);
        self.ask(now, operation, Ask::Extend { ttl }, quorum.all());
        self.judge(now, operation);
    }

    /// Looks at the votes of an adoption.
    pub(super) fn judge_adoption(&mut self, now: Time, operation: &mut Operation) {
        let State::Adopting(round) = &operation.state else {
            return;
        };
        match round.verdict(now) {
            ExtendVerdict::Pending { until } => self.set_alarm(operation, until),
            ExtendVerdict::Extended { valid_until } => {
                // A node that is slower than the majority hears of it as well.
                let confirmed = Some((round.ballot.id, round.ttl));
                self.won(now, operation, valid_until, None);
                if let State::Held(held) = &mut operation.state {
                    held.confirmed = confirmed;
                }
            }
            ExtendVerdict::NotHeld => self.not_acquired(operation, ErrorKind::Lost),
            ExtendVerdict::Failed => self.not_acquired(operation, ErrorKind::NoQuorum),
        }
    }

    /// A majority granted the lock, or confirmed that it is held.
    pub(super) fn won(
        &mut self,
        now: Time,
        operation: &mut Operation,
        valid_until: Time,
        fencing: Option<FencingToken>,
    ) {
        debug_assert!(now < valid_until, "a lock without validity is none");
        let tries = match &operation.state {
            State::Acquiring(Acquiring { trying, .. }) => trying.tries,
            _ => 1,
        };
        let terms = &operation.terms;
        let renewal = terms
            .renew
            .map(|policy| Box::new(Renewal::new(policy, terms.ttl, operation.acquired)));
        operation.state = State::Held(Held {
            valid_until,
            lost_at: warning(now, valid_until),
            renewal,
            extension: None,
            confirmed: None,
        });
        operation.causes = Vec::new();
        operation.fencing = fencing;
        self.notices.push_back(Notice::Acquired {
            op: operation.id,
            token: operation.token,
            fencing,
            valid_until,
            tries,
        });
        self.judge_held(now, operation);
    }

    /// Begins an extension, the holder's or an automatic one.
    pub(super) fn start_extension(
        &mut self,
        now: Time,
        operation: &mut Operation,
        ttl: Duration,
        is_asked: bool,
    ) {
        let (quorum, drift) = (self.quorum, self.config.drift);
        let State::Held(Held { lost_at, .. }) = operation.state else {
            return self.extension_refused(operation.id, is_asked, ErrorKind::Expired);
        };
        if now >= lost_at {
            self.expire(operation);
            return self.extension_refused(operation.id, is_asked, ErrorKind::Expired);
        }
        let (id, timeout) = (operation.next_round(), operation.terms.timeout);
        let State::Held(held) = &mut operation.state else {
            return;
        };
        if let (Some(renewal), true) = (&mut held.renewal, held.extension.is_some()) {
            renewal.failed(now);
        }
        let timeout = timeout.min(held.valid_until.since(now));
        operation.asked_until = now + timeout;
        let round = ExtendRound::new(id, quorum, now, ttl, drift, timeout);
        // A shorter TTL takes effect on every node that hears of it, whether or not a majority does: from now on
        // the lock is only as good as that.
        if round.valid_until < held.valid_until {
            held.valid_until = round.valid_until;
            held.lost_at = held.lost_at.min(warning(now, held.valid_until));
            self.notices.push_back(Notice::Validity {
                op: operation.id,
                valid_until: held.valid_until,
                is_renewal: false,
            });
        }
        held.extension = Some(Box::new(Extension { round, is_asked }));
        self.ask(now, operation, Ask::Extend { ttl }, quorum.all());
        self.judge_held(now, operation);
    }

    pub(super) fn extension_refused(&mut self, op: OpId, is_asked: bool, kind: ErrorKind) {
        if is_asked {
            self.notices.push_back(Notice::Extended {
                op,
                result: Err(kind),
                causes: Vec::new(),
            });
        }
    }

    /// Looks at a held lock: whether its end has come, an extension is decided, or a renewal is due.
    pub(super) fn judge_held(&mut self, now: Time, operation: &mut Operation) {
        let State::Held(held) = &operation.state else {
            return;
        };
        let lost_at = held.lost_at;
        if now >= lost_at {
            let is_asked = held.extension.as_ref().is_some_and(|it| it.is_asked);
            self.extension_refused(operation.id, is_asked, ErrorKind::Expired);
            return self.expire(operation);
        }
        if let Some(extension) = &held.extension {
            return match extension.round.verdict(now) {
                ExtendVerdict::Pending { until } => self.set_alarm(operation, until.min(lost_at)),
                decided => self.extension_decided(now, operation, decided),
            };
        }
        let renewal = held.renewal.as_ref();
        let next = renewal.map_or(Time::NEVER, |renewal| renewal.next);
        if now >= next {
            let ttl = renewal.map_or(Duration::ZERO, |renewal| renewal.ttl(now));
            return self.start_extension(now, operation, ttl, false);
        }
        self.set_alarm(operation, next.min(lost_at));
    }

    fn extension_decided(&mut self, now: Time, operation: &mut Operation, verdict: ExtendVerdict) {
        let (op, causes) = (operation.id, operation.take_causes());
        let State::Held(held) = &mut operation.state else {
            return;
        };
        let Some(decided) = held.extension.take() else {
            return;
        };
        let Extension { round, is_asked } = *decided;
        let (started, ttl) = (round.ballot.started, round.ttl);
        let result = match verdict {
            ExtendVerdict::Extended { valid_until } => Ok(valid_until),
            ExtendVerdict::NotHeld => Err(ErrorKind::Lost),
            _ => Err(ErrorKind::NoQuorum),
        };
        match (result, &mut held.renewal) {
            (Ok(_), Some(renewal)) if is_asked => renewal.postponed(started, ttl),
            (Ok(_), Some(renewal)) => renewal.succeeded(started),
            (Err(_), Some(renewal)) => renewal.failed(now),
            (_, None) => {}
        }
        // What a later end of the validity is to be explained by.
        operation.unrenewed = match result {
            Ok(_) => Vec::new(),
            Err(_) => causes.clone(),
        };
        if let Ok(until) = result {
            debug_assert!(now < until, "an extension without validity is none");
            (held.valid_until, held.lost_at) = (until, warning(now, until));
            held.confirmed = Some((round.ballot.id, ttl));
            self.heal(now, operation, round.ballot.no(), ttl);
        }
        self.notices.push_back(match (is_asked, result) {
            (true, result) => Notice::Extended {
                op,
                result,
                causes: causes.clone(),
            },
            (false, Ok(valid_until)) => Notice::Validity {
                op,
                valid_until,
                is_renewal: true,
            },
            (false, Err(_)) => Notice::RenewalFailed {
                op,
                causes: causes.clone(),
            },
        });
        match result {
            Err(ErrorKind::Lost) => self.lose(operation, ErrorKind::Lost, causes),
            _ => self.judge_held(now, operation),
        }
    }

    /// Sets the key again on nodes that lost it while a majority held it all the time.
    pub(super) fn heal(
        &mut self,
        now: Time,
        operation: &mut Operation,
        nodes: NodeSet,
        ttl: Duration,
    ) {
        if !nodes.is_empty() {
            self.ask_ready(now, operation, Ask::Heal { ttl }, nodes);
        }
    }

    /// The validity ends. What explains it is what the nodes say to the extension under way, or said to the last one;
    /// nothing, if none was tried or the last one succeeded.
    fn expire(&mut self, operation: &mut Operation) {
        let mut causes = operation.take_causes();
        if causes.is_empty() {
            causes = std::mem::take(&mut operation.unrenewed);
        }
        self.lose(operation, ErrorKind::Expired, causes);
    }

    /// The lock is no longer held. What is left of it on the nodes is released when the holder has stopped.
    pub(super) fn lose(
        &mut self,
        operation: &mut Operation,
        kind: ErrorKind,
        causes: Vec<(NodeId, Cause)>,
    ) {
        operation.state = State::Over;
        self.set_alarm(operation, Time::NEVER);
        self.notices.push_back(Notice::Lost {
            op: operation.id,
            kind,
            causes,
        });
    }
}

impl Operation {
    pub(super) fn extend_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let answer = heard.answer();
        let round = match &mut self.state {
            State::Adopting(round) => Some(round),
            State::Held(held) => held.extension.as_mut().map(|it| &mut it.round),
            _ => return false,
        };
        // Even a node that refused the acquire: a copy of that request may have come through before it.
        if answer == Answer::Yes {
            self.may_hold.insert(vote.node);
        }
        let Some(round) = round else { return false };
        // A shorter extension may still be on its way to this node and cut this one: no vote.
        let is_doubtful = self.doubtful.contains(vote.node) && self.doubtful_ttl < round.ttl;
        let answer = match answer {
            Answer::Yes if is_doubtful => Answer::Failed,
            answer => answer,
        };
        if !round.ballot.on_vote(vote, answer) {
            return false;
        }
        if is_doubtful && answer == Answer::Failed {
            self.blame(vote.node, Cause::Disconnected);
        }
        let ask = Ask::Extend {
            ttl: Duration::ZERO,
        };
        self.blame_answer(vote.node, answer, Cause::NotHeld, ask, heard);
        true
    }

    /// The TTL with which to set the key again on a node that says it lost it, when the round is decided and a
    /// majority has confirmed the lock.
    pub(super) fn heals_late(&self, question: Question, heard: &Heard) -> Option<Duration> {
        let State::Held(Held {
            confirmed: Some((round, ttl)),
            ..
        }) = &self.state
        else {
            return None;
        };
        let is_missing = matches!(question.ask, Ask::Extend { .. }) && heard.answer() == Answer::No;
        (is_missing && question.round == *round).then_some(*ttl)
    }
}

/// When the holder of a lock is warned that it expires: ahead by a twentieth of what is left, at least 2 and at
/// most 100 milliseconds.
fn warning(now: Time, valid_until: Time) -> Time {
    let margin = (valid_until.since(now) / 20).clamp(WARNING_MIN, WARNING_MAX);
    valid_until.minus(margin).max(now)
}

/// Timers are late by up to a millisecond, and the warning takes time as well.
const WARNING_MIN: Duration = Duration::from_millis(2);

/// Enough for a program to stop what it does; more would be taken from its useful time.
const WARNING_MAX: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Drift;
    use crate::core::LockTerms;
    use crate::quorum::Quorum;
    use crate::token::Token;

    #[test]
    fn a_node_that_may_still_get_a_shorter_extension_has_no_vote_in_a_longer_one() {
        let seconds = Duration::from_secs;
        let node = NodeId::new(0).unwrap();
        let id = RoundId {
            attempt: 1,
            round: 3,
        };
        for (lost, counts) in [(1, false), (9, false), (10, true), (20, true)] {
            let quorum = Quorum::of(3).unwrap();
            let drift = Drift::default();
            let mut round =
                ExtendRound::new(id, quorum, Time::ZERO, seconds(10), drift, seconds(1));
            round.ballot.asked(node, 2);
            let terms = Arc::new(LockTerms::looking(Box::default(), seconds(1)));
            let mut operation = Operation::new(terms, Token::new("t").unwrap());
            operation.doubtful.insert(node);
            operation.doubtful_ttl = seconds(lost);
            operation.state = State::Held(Held {
                valid_until: Time::NEVER,
                lost_at: Time::NEVER,
                renewal: None,
                extension: Some(Box::new(Extension {
                    round,
                    is_asked: true,
                })),
                confirmed: None,
            });
            let vote = Vote {
                round: id,
                node,
                incarnation: 2,
            };
            assert!(operation.extend_answered(vote, &Heard::Ok));
            let State::Held(Held {
                extension: Some(extension),
                ..
            }) = &operation.state
            else {
                unreachable!("it is held");
            };
            let has_vote = extension.round.ballot.yes().contains(node);
            assert_eq!(has_vote, counts, "an extension to {lost} s was cut off");
        }
    }
}
