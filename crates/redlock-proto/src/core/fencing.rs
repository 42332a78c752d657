//! The second round trip of an acquire: nodes whose counter is behind are asked to accept the fencing token.

use crate::cause::Cause;
use crate::core::acquiring::Acquiring;
use crate::core::answers::Heard;
use crate::core::dialect::{self, ScriptForm};
use crate::core::link::Unanswered;
use crate::core::question::{Ask, Question};
use crate::core::{Core, Operation, State};
use crate::entropy::Entropy;
use crate::round::Vote;
use crate::time::Time;

impl<E: Entropy> Core<E> {
    /// A majority granted the lock, and their counters differ: the token is fixed. Nodes have as long to accept it as
    /// they had to grant the lock, and not beyond the end of the wait.
    pub(super) fn write_back(&mut self, now: Time, operation: &mut Operation) {
        if let State::Acquiring(Acquiring { round, trying }) = &mut operation.state {
            let timeout = operation.terms.timeout.min(trying.deadline.since(now));
            round.write_back(now, timeout);
        }
        self.ask_lagging(now, operation);
    }

    /// Asks those that granted with a lower counter than the token, each quoting its own; the late ones as well. They
    /// are asked through the connection that brought the grant: with another one the grant is gone.
    pub(super) fn ask_lagging(&mut self, now: Time, operation: &mut Operation) {
        let State::Acquiring(Acquiring { round, .. }) = &mut operation.state else {
            return;
        };
        let question = Question {
            op: operation.id,
            round: round.ballot.id,
            ask: Ask::Fence,
            form: ScriptForm::Sha,
        };
        let mut silent = Vec::new();
        for node in round.lagging().iter() {
            let (Some(link), Some(grant), Some(fence)) = (
                self.links.get_mut(node.index()),
                round.counter(node),
                round.fixed(),
            ) else {
                continue;
            };
            if link.is_ready() {
                let (key, token) = (&operation.terms.key[..], operation.token.as_ref());
                dialect::fence(&mut link.out, key, token, grant, fence);
                link.asked(now, Unanswered::Question(question));
                round.write_back_asked(node);
            } else {
                round.on_write_back_failed(node);
                silent.push((node, link.cause()));
            }
        }
        for (node, cause) in silent {
            operation.blame(node, cause);
        }
        self.judge(now, operation);
    }

    /// An attempt is decided: what its nodes counted is remembered for the next.
    pub(super) fn learn_floor(&mut self, operation: &Operation) {
        if let State::Acquiring(Acquiring { round, .. }) = &operation.state {
            let uneven = round.uneven();
            if uneven.is_some() || operation.floor.is_some() {
                self.floors.learn(&operation.terms.key, uneven);
            }
        }
    }
}

impl Operation {
    /// A reply to `LOCK.FENCE`.
    pub(super) fn fence_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let answer = heard.answer();
        let State::Acquiring(acquiring) = &mut self.state else {
            return false;
        };
        let counts = acquiring.round.on_write_back(vote, answer);
        if counts {
            self.blame_answer(vote.node, answer, Cause::NotHeld, Ask::Fence, heard);
        }
        counts
    }
}
