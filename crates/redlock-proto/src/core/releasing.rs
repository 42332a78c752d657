//! The release of a token on every node, until the last reply.

use std::sync::Arc;
use std::time::Duration;

use crate::core::answers::Heard;
use crate::core::question::Ask;
use crate::core::{Core, Notice, Operation, State};
use crate::entropy::Entropy;
use crate::quorum::{NodeId, NodeSet};
use crate::round::{Answer, ReleaseRound, ReleaseVerdict, Vote};
use crate::time::Time;

/// A release under way.
#[derive(Clone, Debug)]
pub(crate) struct Releasing {
    pub(crate) round: ReleaseRound,
    /// The key stays until its least time is over.
    is_kept: bool,
    /// Nobody waits for the outcome any more.
    pub(crate) is_told: bool,
    /// The nodes whose reply is still to come.
    pub(crate) awaited: NodeSet,
}

impl Releasing {
    /// No reply of this node is to come; whether it has not said that it holds nothing.
    pub(crate) fn leaves(&mut self, node: NodeId) -> bool {
        self.awaited.remove(node);
        let ballot = &self.round.ballot;
        !ballot.yes().contains(node) && !ballot.no().contains(node)
    }
}

impl<E: Entropy> Core<E> {
    /// Releases a lost attempt's token on every node, in the background, while the operation goes on.
    pub(super) fn release_attempt(&mut self, now: Time, operation: &Operation) {
        let mut release = Operation::new(Arc::clone(&operation.terms), operation.token);
        release.may_hold = operation.may_hold;
        release.may_hold_until = operation.may_hold_until;
        self.begin(release, |core, release| {
            core.start_release(now, release, true);
        });
    }

    /// Begins to release, on every node, including those that are believed not to hold the token.
    pub(super) fn start_release(&mut self, now: Time, operation: &mut Operation, is_told: bool) {
        let quorum = self.quorum;
        if let State::Releasing(_) = operation.state {
            return;
        }
        let was_held = matches!(operation.state, State::Held(_));
        let keep = (operation.acquired + operation.terms.hold_at_least).since(now);
        // Nodes count whole milliseconds.
        let keep = Duration::from_millis(
            u64::try_from(keep.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX),
        );
        let is_kept = was_held && keep > Duration::ZERO;
        let round = operation.next_round();
        operation.state = State::Releasing(Releasing {
            round: ReleaseRound::new(round, quorum, now, operation.terms.timeout),
            is_kept,
            is_told,
            awaited: NodeSet::default(),
        });
        let ask = if is_kept {
            // The nodes let it go by themselves; nothing needs to be sent later.
            operation.may_hold = NodeSet::default();
            Ask::Shrink { ttl: keep }
        } else {
            Ask::Release
        };
        self.set_alarm(operation, Time::NEVER);
        self.ask(now, operation, ask, quorum.all());
        self.judge_release(operation);
    }

    /// Looks at the votes of a release.
    pub(super) fn judge_release(&mut self, operation: &mut Operation) {
        let State::Releasing(releasing) = &mut operation.state else {
            return;
        };
        let (is_decided, alarm) = match releasing.round.verdict() {
            ReleaseVerdict::Pending { until } => (false, until),
            ReleaseVerdict::Decided => (true, Time::NEVER),
        };
        if is_decided && !std::mem::replace(&mut releasing.is_told, true) {
            let causes = std::mem::take(&mut operation.causes);
            let mut pending = releasing.round.ballot.unsettled();
            for (node, _) in &causes {
                pending.remove(*node);
            }
            self.notices.push_back(Notice::Released {
                op: operation.id,
                confirmed: releasing.round.ballot.yes(),
                not_held: releasing.round.ballot.no(),
                pending,
                is_kept: releasing.is_kept,
                causes,
            });
        }
        if releasing.is_told && releasing.awaited.is_empty() {
            operation.state = State::Ended
        } else {
            self.set_alarm(operation, alarm)
        }
    }
}

impl Operation {
    pub(super) fn release_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let answer = heard.answer();
        let State::Releasing(releasing) = &mut self.state else {
            return false;
        };
        releasing.awaited.remove(vote.node);
        if releasing.round.ballot.on_vote(vote, answer) && answer == Answer::Failed {
            self.blame(vote.node, heard.cause(Ask::Release.name()));
        }
        true
    }
}
