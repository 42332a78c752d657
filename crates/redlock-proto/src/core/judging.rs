//! Drawing conclusions from votes: attempts won and lost, extensions, releases.

use std::sync::Arc;
use std::time::Duration;

use crate::cause::Cause;
use crate::core::operation::{Ask, Hints, OpId, State, Trying};
use crate::core::{Core, Notice};
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::policy::scale;
use crate::quorum::{NodeId, NodeSet};
use crate::round::{
    AcquireRound, AcquireVerdict, ExtendVerdict, Refusal, ReleaseRound, ReleaseVerdict,
};
use crate::time::Time;

impl<E: Entropy> Core<E> {
    /// Begins an attempt with a fresh token.
    pub(in crate::core) fn attempt(&mut self, now: Time, op: OpId, trying: Trying) {
        let token = self.fresh_token();
        let (quorum, drift) = (self.quorum, self.config.drift);
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let id = operation.next_attempt(token);
        operation.floor = self.floors.of(&operation.terms.key);
        let timeout = operation.terms.timeout.min(trying.deadline.since(now));
        operation.acquired = now;
        operation.asked_until = now + timeout;
        operation.state = State::Acquiring {
            round: AcquireRound::new(id, quorum, now, operation.terms.ttl, drift, timeout),
            trying: Trying {
                tries: trying.tries.saturating_add(1),
                ..trying
            },
        };
        self.ask_all(now, op, Ask::Acquire);
        self.judge(now, op);
    }

    /// Judges every operation whose votes changed.
    pub(in crate::core) fn judge_changed(&mut self, now: Time) {
        let mut changed = std::mem::take(&mut self.changed);
        for op in changed.drain(..) {
            self.judge(now, op);
        }
        self.changed = changed;
    }

    /// Draws the conclusion from the votes so far.
    pub(in crate::core) fn judge(&mut self, now: Time, op: OpId) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        match &operation.state {
            State::Acquiring { round, .. } => match round.verdict(now) {
                AcquireVerdict::Pending { .. } if !round.lagging().is_empty() => {
                    self.ask_lagging(now, op);
                }
                AcquireVerdict::Pending { until } => self.set_alarm(op, until),
                AcquireVerdict::Diverged => self.write_back(now, op),
                AcquireVerdict::Won {
                    valid_until,
                    fencing,
                } => {
                    self.learn_floor(op);
                    self.won(now, op, valid_until, fencing);
                }
                AcquireVerdict::Lost(why) => {
                    self.learn_floor(op);
                    self.attempt_lost(now, op, why);
                }
            },
            State::Adopting { round } => match round.verdict(now) {
                ExtendVerdict::Pending { until } => self.set_alarm(op, until),
                ExtendVerdict::Extended { valid_until } => {
                    // A node that is slower than the majority hears of it as well.
                    let confirmed = Some((round.id(), round.ttl()));
                    self.won(now, op, valid_until, None);
                    if let Some(operation) = self.operations.get_mut(op)
                        && let State::Held { confirmed: it, .. } = &mut operation.state
                    {
                        *it = confirmed;
                    }
                }
                ExtendVerdict::NotHeld => self.not_acquired(op, ErrorKind::Lost),
                ExtendVerdict::Failed => self.not_acquired(op, ErrorKind::NoQuorum),
            },
            State::Held { .. } => self.judge_held(now, op),
            State::Waiting { at, .. } | State::Queued { until: at, .. } => {
                let at = *at;
                self.set_alarm(op, at);
            }
            State::Confirming { .. } => self.judge_holders(now, op),
            State::Leaving { until } => {
                let until = *until;
                match until <= now || !self.links.iter().any(|link| link.concerns(op)) {
                    true => self.end(op),
                    false => self.set_alarm(op, until),
                }
            }
            State::Releasing { .. } => self.judge_release(op),
            State::Looking { until, looks } => {
                let until = *until;
                match looks.iter().all(|look| look.missing == 0) {
                    true => self.looked(op),
                    false => self.set_alarm(op, until),
                }
            }
            State::Over => {}
        }
    }

    /// The moment that an operation waited for has come.
    pub(in crate::core) fn operation_on_time(&mut self, now: Time, op: OpId) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let (mut late, mut since) = (NodeSet::default(), Time::ZERO);
        match &mut operation.state {
            State::Acquiring { round, .. } => {
                (late, since) = (round.on_time(now), round.asked_at());
            }
            State::Adopting { round } => (late, since) = (round.on_time(now), round.started()),
            State::Held { extension, .. } => {
                if let Some(extension) = extension {
                    let round = &mut extension.round;
                    (late, since) = (round.on_time(now), round.started());
                }
            }
            State::Releasing { round, .. } => (late, since) = (round.on_time(now), round.started()),
            State::Waiting {
                at, trying, why, ..
            } => {
                let (trying, why) = (*trying, *why);
                if now >= trying.deadline {
                    return self.not_acquired(op, kind_of(why, false));
                }
                if now >= *at {
                    return self.begin_attempt(now, op, trying);
                }
            }
            State::Looking { until, looks } => {
                if now >= *until {
                    for (i, look) in looks.iter_mut().enumerate() {
                        if std::mem::take(&mut look.missing) > 0 {
                            look.cause = Some(Cause::TimedOut);
                            late.extend_with(NodeId::new(i));
                        }
                    }
                }
            }
            State::Confirming { until, holders, .. } => {
                if now >= *until {
                    holders.time_out();
                }
            }
            State::Queued { until, .. } => {
                if now >= *until {
                    return self.not_acquired(op, ErrorKind::Timeout);
                }
            }
            State::Leaving { .. } | State::Over => {}
        }
        for node in late.iter() {
            operation.blame(node, Cause::TimedOut);
        }
        let patience = self.config.connect_timeout;
        for node in late.iter() {
            if let Some(link) = self.links.get_mut(node.index()) {
                link.suspect(now, since, patience);
            }
        }
        self.judge(now, op);
    }

    fn attempt_lost(&mut self, now: Time, op: OpId, why: Refusal) {
        let random = self.random();
        let jitter = Duration::from_nanos(scale(self.random(), JITTER_NS));
        let (spare, needed) = (self.quorum.spare(), self.quorum.needed());
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let State::Acquiring { round, trying } = &operation.state else {
            return;
        };
        let (granted, refused, trying) = (round.granted(), round.refused(), *trying);
        let unsettled = round.unsettled();
        // The wait's end came before a node's time was over.
        let was_cut = round.asked_at() + operation.terms.timeout > trying.deadline;
        for node in granted.iter() {
            operation.blame(node, Cause::Granted);
        }
        let next = operation
            .terms
            .retry
            .next(trying.tries, now, trying.deadline, random);
        let Some(at) = next else {
            return match why {
                Refusal::Busy => self.confirm(now, op, trying, refused, unsettled),
                Refusal::Split => self.contend(now, op, trying),
                Refusal::NoQuorum | Refusal::Expired => {
                    let kind = match kind_of(why, was_cut) {
                        ErrorKind::Timeout if trying.was_busy => ErrorKind::Busy,
                        kind => kind,
                    };
                    self.give_up(now, op, kind);
                }
            };
        };
        // As many of the refusing nodes must become free as the others are short of a majority.
        let missing = refused.len().saturating_sub(spare).min(needed);
        let trying = Trying {
            was_busy: why == Refusal::Busy,
            ..trying
        };
        self.release_attempt(now, op);
        self.wait(op, trying, at, why, Hints::new(missing, jitter));
        if matches!(why, Refusal::Busy | Refusal::Split) {
            self.ask_ready(now, op, Ask::Remaining, refused);
        }
    }

    /// Lets an operation wait for its next attempt.
    pub(in crate::core) fn wait(
        &mut self,
        op: OpId,
        trying: Trying,
        at: Time,
        why: Refusal,
        hints: Hints,
    ) {
        if let Some(operation) = self.operations.get_mut(op) {
            let hints = Box::new(hints);
            operation.state = State::Waiting {
                trying,
                at,
                why,
                hints,
            };
            self.set_alarm(op, at);
        }
    }

    /// Tells the caller that the lock was not had, and releases in the background what was granted.
    pub(in crate::core) fn give_up(&mut self, now: Time, op: OpId, kind: ErrorKind) {
        let causes = self.take_causes(op);
        self.notices
            .push_back(Notice::NotAcquired { op, kind, causes });
        self.start_release(now, op, true);
    }

    pub(in crate::core) fn not_acquired(&mut self, op: OpId, kind: ErrorKind) {
        let causes = self.take_causes(op);
        self.notices
            .push_back(Notice::NotAcquired { op, kind, causes });
        self.end(op);
    }

    /// Releases a lost attempt's token on every node, in the background, while the operation goes on.
    pub(in crate::core) fn release_attempt(&mut self, now: Time, op: OpId) {
        let Some(operation) = self.operations.get(op) else {
            return;
        };
        let terms = Arc::clone(&operation.terms);
        let (token, may_hold) = (operation.token, operation.may_hold);
        let until = operation.may_hold_until;
        let release = self.begin(terms, token, State::Over);
        if let Some(operation) = self.operations.get_mut(release) {
            (operation.may_hold, operation.may_hold_until) = (may_hold, until);
        }
        self.start_release(now, release, true);
    }

    /// Begins to release: every node is told, those included that are believed not to hold the token.
    pub(in crate::core) fn start_release(&mut self, now: Time, op: OpId, is_told: bool) {
        let quorum = self.quorum;
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        if let State::Releasing { .. } = operation.state {
            return;
        }
        let was_held = matches!(operation.state, State::Held { .. });
        let keep = (operation.acquired + operation.terms.hold_at_least).since(now);
        // Nodes count whole milliseconds.
        let keep = Duration::from_millis(
            u64::try_from(keep.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
        );
        let ask = match was_held && keep > Duration::ZERO {
            true => Ask::Shrink { ttl: keep },
            false => Ask::Release,
        };
        let round = operation.next_round();
        operation.state = State::Releasing {
            round: ReleaseRound::new(round, quorum, now, operation.terms.timeout),
            is_kept: ask != Ask::Release,
            is_told,
            awaited: NodeSet::default(),
        };
        if ask != Ask::Release {
            // The nodes let it go by themselves; nothing needs to be sent later.
            operation.may_hold = NodeSet::default();
        }
        self.set_alarm(op, Time::NEVER);
        self.ask_all(now, op, ask);
        self.judge_release(op);
    }

    fn judge_release(&mut self, op: OpId) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        let State::Releasing {
            round,
            is_kept,
            is_told,
            ..
        } = &mut operation.state
        else {
            return;
        };
        let alarm = match round.verdict() {
            ReleaseVerdict::Pending { until } => until,
            ReleaseVerdict::Decided if !std::mem::replace(is_told, true) => {
                let (confirmed, not_held) = (round.confirmed(), round.not_held());
                let is_kept = *is_kept;
                let causes = std::mem::take(&mut operation.causes);
                let mut pending = round.unsettled();
                for (node, _) in &causes {
                    pending.remove(*node);
                }
                self.notices.push_back(Notice::Released {
                    op,
                    confirmed,
                    not_held,
                    pending,
                    is_kept,
                    causes,
                });
                Time::NEVER
            }
            ReleaseVerdict::Decided => Time::NEVER,
        };
        let is_over = match &self.operations.get(op).map(|operation| &operation.state) {
            Some(State::Releasing {
                awaited, is_told, ..
            }) => *is_told && awaited.is_empty(),
            _ => false,
        };
        match is_over {
            true => self.end(op),
            false => self.set_alarm(op, alarm),
        }
    }

    fn looked(&mut self, op: OpId) {
        let Some(operation) = self.operations.get_mut(op) else {
            return;
        };
        if let State::Looking { looks, .. } = &mut operation.state {
            let looks = std::mem::take(looks);
            self.notices.push_back(Notice::Looked { op, looks });
        }
        self.end(op);
    }

    pub(in crate::core) fn take_causes(&mut self, op: OpId) -> Vec<(NodeId, Cause)> {
        let causes = self
            .operations
            .get_mut(op)
            .map(|operation| std::mem::take(&mut operation.causes));
        let mut causes = causes.unwrap_or_default();
        causes.sort_by_key(|(node, _)| *node);
        causes
    }

    /// Asks those of the nodes that are ready.
    pub(in crate::core) fn ask_ready(&mut self, now: Time, op: OpId, ask: Ask, nodes: NodeSet) {
        let mut ready = NodeSet::default();
        for link in self.links.iter().filter(|link| link.is_ready()) {
            if nodes.contains(link.node) {
                ready.insert(link.node);
            }
        }
        self.ask_some(now, op, ask, ready);
    }

    /// Sets the key again on nodes that lost it while a majority held it all the time.
    pub(in crate::core) fn heal(&mut self, now: Time, op: OpId, nodes: NodeSet, ttl: Duration) {
        if !nodes.is_empty() {
            self.ask_ready(now, op, Ask::Heal { ttl }, nodes);
        }
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

/// Spread of the attempts of several waiters after the present holder's lock ended.
const JITTER_NS: u64 = 10_000_000;
