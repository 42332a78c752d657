//! A lock that is held: its extension, its renewal and its end.

use std::time::Duration;

use crate::cause::Cause;
use crate::core::operation::{Ask, Extension, OpId, State};
use crate::core::{Core, Notice};
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::fencing_token::FencingToken;
use crate::policy::Renewal;
use crate::quorum::NodeId;
use crate::round::{ExtendRound, ExtendVerdict};
use crate::time::Time;

impl<E: Entropy> Core<E> {
    /// A majority granted the lock, or confirmed that it is held.
    pub(in crate::core) fn won(
        &mut self,
        now: Time,
        op: OpId,
        valid_until: Time,
        fencing: Option<FencingToken>,
    ) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        debug_assert!(now < valid_until, "a lock without validity is none");
        let tries = match &operation.state {
            State::Acquiring { trying, .. } => trying.tries,
            _ => 1,
        };
        let terms = &operation.terms;
        let renewal = terms
            .renew
            .map(|policy| Box::new(Renewal::new(policy, terms.ttl, operation.acquired)));
        operation.state = State::Held {
            valid_until,
            lost_at: warning(now, valid_until),
            renewal,
            extension: None,
            confirmed: None,
        };
        operation.causes = Vec::new();
        operation.fencing = fencing;
        let token = operation.token;
        self.notices.push_back(Notice::Acquired {
            op,
            token,
            fencing,
            valid_until,
            tries,
        });
        self.judge_held(now, op);
    }

    /// Begins an extension, the holder's or an automatic one.
    pub(in crate::core) fn start_extension(
        &mut self,
        now: Time,
        op: OpId,
        ttl: Duration,
        is_asked: bool,
    ) {
        let (quorum, drift) = (self.quorum, self.config.drift);
        let Some(operation) = self.operations.get_mut(op) else {
            return self.extension_refused(op, is_asked, ErrorKind::Cancelled);
        };
        if let State::Held { lost_at, .. } = operation.state
            && now >= lost_at
        {
            let causes = self.causes_of_expiry(op);
            self.lose(op, ErrorKind::Expired, causes);
            return self.extension_refused(op, is_asked, ErrorKind::Expired);
        }
        let timeout = operation.terms.timeout;
        let id = operation.next_round();
        let State::Held {
            valid_until,
            lost_at,
            renewal,
            extension,
            ..
        } = &mut operation.state
        else {
            return self.extension_refused(op, is_asked, ErrorKind::Expired);
        };
        if let (Some(renewal), true) = (renewal, extension.is_some()) {
            renewal.failed(now);
        }
        let timeout = timeout.min(valid_until.since(now));
        operation.asked_until = now + timeout;
        let round = ExtendRound::new(id, quorum, now, ttl, drift, timeout);
        // A shorter TTL takes effect on every node that hears of it, whether or not a majority does: from now on
        // the lock is only as good as that.
        if round.valid_until() < *valid_until {
            *valid_until = round.valid_until();
            *lost_at = (*lost_at).min(warning(now, *valid_until));
            self.notices.push_back(Notice::Validity {
                op,
                valid_until: *valid_until,
                is_renewal: false,
            });
        }
        *extension = Some(Box::new(Extension { round, is_asked }));
        self.ask_all(now, op, Ask::Extend { ttl });
        self.judge_held(now, op);
    }

    fn extension_refused(&mut self, op: OpId, is_asked: bool, kind: ErrorKind) {
        if is_asked {
            self.notices.push_back(Notice::Extended {
                op,
                result: Err(kind),
                causes: Vec::new(),
            });
        }
    }

    /// Looks at a held lock: whether its end has come, an extension is decided, or a renewal is due.
    pub(in crate::core) fn judge_held(&mut self, now: Time, op: OpId) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let State::Held {
            lost_at,
            renewal,
            extension,
            ..
        } = &operation.state
        else {
            return;
        };
        if now >= *lost_at {
            if extension
                .as_ref()
                .is_some_and(|extension| extension.is_asked)
            {
                self.extension_refused(op, true, ErrorKind::Expired);
            }
            let causes = self.causes_of_expiry(op);
            return self.lose(op, ErrorKind::Expired, causes);
        }
        let lost_at = *lost_at;
        if let Some(extension) = extension {
            let verdict = extension.round.verdict(now);
            return match verdict {
                ExtendVerdict::Pending { until } => self.set_alarm(op, until.min(lost_at)),
                decided => self.extension_decided(now, op, decided),
            };
        }
        let renewal = renewal.as_ref();
        let next = renewal.map_or(Time::NEVER, |renewal| renewal.next());
        if now >= next {
            let ttl = renewal.map_or(Duration::ZERO, |renewal| renewal.ttl(now));
            return self.start_extension(now, op, ttl, false);
        }
        self.set_alarm(op, next.min(lost_at));
    }

    fn extension_decided(&mut self, now: Time, op: OpId, verdict: ExtendVerdict) {
        let causes = self.take_causes(op);
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let State::Held {
            valid_until,
            lost_at,
            renewal,
            extension,
            confirmed,
        } = &mut operation.state
        else {
            return;
        };
        let Some(decided) = extension.take() else {
            return;
        };
        let Extension { round, is_asked } = *decided;
        let result = match verdict {
            ExtendVerdict::Extended { valid_until } => Ok(valid_until),
            ExtendVerdict::NotHeld => Err(ErrorKind::Lost),
            _ => Err(ErrorKind::NoQuorum),
        };
        match (result, renewal) {
            (Ok(_), Some(renewal)) if is_asked => renewal.postponed(round.started(), round.ttl()),
            (Ok(_), Some(renewal)) => renewal.succeeded(round.started()),
            (Err(_), Some(renewal)) => renewal.failed(now),
            (_, None) => {}
        }
        if let Ok(until) = result {
            debug_assert!(now < until, "an extension without validity is none");
            (*valid_until, *lost_at) = (until, warning(now, until));
            *confirmed = Some((round.id(), round.ttl()));
            self.heal(now, op, round.not_held(), round.ttl());
        }
        if let Some(operation) = self.operations.get_mut(op) {
            // What a later end of the validity is to be explained by.
            operation.unrenewed = match result {
                Ok(_) => Vec::new(),
                Err(_) => causes.clone(),
            };
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
            Err(ErrorKind::Lost) => self.lose(op, ErrorKind::Lost, causes),
            _ => self.judge_held(now, op),
        }
    }

    /// Why nobody extended a lock whose validity ends: what the nodes say to the extension under way, or said to the last
    /// one. Nothing, if none was tried or the last one succeeded.
    fn causes_of_expiry(&mut self, op: OpId) -> Vec<(NodeId, Cause)> {
        let causes = self.take_causes(op);
        match self.operations.get_mut(op) {
            Some(operation) if causes.is_empty() => std::mem::take(&mut operation.unrenewed),
            _ => causes,
        }
    }

    /// The lock is no longer held. What is left of it on the nodes is released when the holder has stopped.
    pub(in crate::core) fn lose(
        &mut self,
        op: OpId,
        kind: ErrorKind,
        causes: Vec<(NodeId, Cause)>,
    ) {
        if let Some(operation) = self.operations.get_mut(op) {
            operation.state = State::Over;
            self.set_alarm(op, Time::NEVER);
            self.notices.push_back(Notice::Lost { op, kind, causes });
        }
    }
}

/// When the holder of a lock is told that its time is over: before it is, by a twentieth of what is left, at
/// least 2 and at most 100 milliseconds.
fn warning(now: Time, valid_until: Time) -> Time {
    let margin = (valid_until.since(now) / 20).clamp(WARNING_MIN, WARNING_MAX);
    valid_until.minus(margin).max(now)
}

/// Timers are late by up to a millisecond, and the holder has to be told as well.
const WARNING_MIN: Duration = Duration::from_millis(2);

/// Enough for a program to stop what it does; more would be taken from its useful time.
const WARNING_MAX: Duration = Duration::from_millis(100);
