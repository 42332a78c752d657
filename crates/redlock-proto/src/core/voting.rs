//! What a node said, credited to whom it concerns.

use std::time::Duration;

use locknode_resp::Reply;

use crate::cause::Cause;
use crate::core::Core;
use crate::core::answers::Heard;
use crate::core::dialect::{Dialect, ScriptForm};
use crate::core::link::{Incoming, Question};
use crate::core::operation::{Ask, Look, Operation, State};
use crate::entropy::Entropy;
use crate::fencing_token::FencingToken;
use crate::quorum::{NodeId, NodeSet};
use crate::round::{Answer, Vote};
use crate::time::Time;

impl<E: Entropy> Core<E> {
    /// Takes one thing that came in.
    pub(in crate::core) fn take(&mut self, now: Time, node: NodeId, incoming: Incoming) {
        match incoming {
            Incoming::Answer(question, heard) => self.answer(now, node, question, &heard),
            Incoming::TicketNeedsText(ticket) => self.send_ticket_text(now, node, ticket),
            Incoming::Identified => self.identified(now, node),
            Incoming::Broken(cause) => self.break_link(now, node, cause),
        }
    }

    fn answer(&mut self, now: Time, node: NodeId, question: Question, heard: &Heard) {
        if heard.is_noscript() && question.form == ScriptForm::Sha {
            if let Some(link) = self.links.get_mut(node.index()) {
                link.forgot_script(question.ask);
            }
            // Not if the operation wants something else by now: an extension from before would undo a later one.
            let is_wanted = self.operations.get(question.op).is_some_and(|operation| {
                operation.round == question.round && operation.wants(question.ask)
            });
            if is_wanted {
                let form = ScriptForm::Text;
                self.ask_again(now, node, Question { form, ..question });
            }
            return;
        }
        let Some(link) = self.links.get(node.index()) else {
            return;
        };
        // Before it counts for anything: when order is in doubt, no reply of this connection is an answer.
        if is_nonsense(question.ask, link.dialect, heard) {
            let cause = heard.cause(question.ask.name());
            return self.break_link(now, node, cause);
        }
        let incarnation = link.incarnation;
        let Some(operation) = self.operations.get_mut(question.op) else {
            return;
        };
        let vote = Vote {
            round: question.round,
            node,
            incarnation,
        };
        let late = operation.heals_late(question, heard);
        let counts = match question.ask {
            Ask::Acquire => operation.acquire_answered(vote, heard),
            Ask::Fence => operation.fence_answered(vote, heard),
            Ask::Extend { .. } => operation.extend_answered(vote, heard),
            Ask::Release | Ask::Shrink { .. } => operation.release_answered(vote, heard),
            Ask::Remaining => operation.remaining_answered(now, vote, heard),
            Ask::Holder => operation.holder_answered(vote, heard),
            Ask::LookToken | Ask::LookRemaining | Ask::Ping => {
                operation.look_answered(node, question.ask, heard)
            }
            Ask::Heal { .. } => false,
        } || matches!(operation.state, State::Leaving { .. });
        // Several answers in one batch are judged together, once.
        if counts && self.changed.last() != Some(&question.op) {
            self.changed.push(question.op);
        }
        if let Some(ttl) = late {
            let mut nodes = NodeSet::default();
            nodes.insert(node);
            self.heal(now, question.op, nodes, ttl);
        }
    }
}

/// Whether a reply is none that this question can have.
fn is_nonsense(ask: Ask, dialect: Dialect, heard: &Heard) -> bool {
    let is_possible = match (ask, dialect) {
        (Ask::Acquire | Ask::Heal { .. }, Dialect::Lock) => match heard {
            Heard::Integers([1, counter, _]) => fencing_token(*counter).is_some(),
            Heard::Integers([0, counter, _]) => *counter == 0 || fencing_token(*counter).is_some(),
            _ => false,
        },
        (Ask::Acquire | Ask::Heal { .. }, _) => matches!(heard, Heard::Ok | Heard::Null),
        (Ask::Extend { .. } | Ask::Shrink { .. }, Dialect::Script | Dialect::Lock)
        | (Ask::Release | Ask::Fence, _) => matches!(heard, Heard::Integer(0 | 1)),
        (Ask::Extend { .. } | Ask::Shrink { .. }, _) => matches!(heard, Heard::Ok | Heard::Null),
        (Ask::Remaining | Ask::LookRemaining, _) => matches!(heard, Heard::Integer(_)),
        (Ask::LookToken | Ask::Holder, _) => {
            matches!(heard, Heard::Null | Heard::Other(Reply::Bulk(_)))
        }
        (Ask::Ping, _) => matches!(heard, Heard::Other(Reply::Simple(_) | Reply::Bulk(_))),
    };
    !is_possible && !matches!(heard, Heard::Other(Reply::Error(_)))
}

/// A counter as a node told it.
fn fencing_token(counter: i64) -> Option<FencingToken> {
    FencingToken::new(u64::try_from(counter).ok()?)
}

impl Ask {
    /// What the question is called in messages.
    fn name(self) -> &'static str {
        match self {
            Self::Acquire | Self::Heal { .. } => "an acquire",
            Self::Fence => "LOCK.FENCE",
            Self::Extend { .. } | Self::Shrink { .. } => "an extension",
            Self::Release => "a release",
            Self::Remaining | Self::LookRemaining => "PTTL",
            Self::LookToken | Self::Holder => "GET",
            Self::Ping => "PING",
        }
    }
}

impl Operation {
    /// A reply to an acquire. One that comes when the round is over changes nothing: if it was a grant, the release
    /// that followed on the same connection undoes it, or the lock is held and a node more holds it.
    fn acquire_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let (answer, counter) = match heard {
            Heard::Ok => (Answer::Yes, None),
            Heard::Null => (Answer::No, None),
            Heard::Integers([1, counter, _]) => (Answer::Yes, fencing_token(*counter)),
            Heard::Integers([0, counter, _]) => (Answer::No, fencing_token(*counter)),
            _ => (Answer::Failed, None),
        };
        if answer != Answer::Yes && vote.round.attempt == self.round.attempt && heard.is_definite()
        {
            self.may_hold.remove(vote.node);
        }
        let State::Acquiring { round, .. } = &mut self.state else {
            return false;
        };
        if !round.on_vote(vote, answer, counter) {
            return false;
        }
        match answer {
            Answer::Yes => {}
            Answer::No => self.blame(vote.node, Cause::HeldByOther),
            Answer::Failed => self.blame(vote.node, heard.cause("an acquire")),
        }
        true
    }

    fn extend_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let answer = match heard {
            Heard::Ok | Heard::Integer(1) => Answer::Yes,
            Heard::Null | Heard::Integer(0) => Answer::No,
            _ => Answer::Failed,
        };
        let round = match &mut self.state {
            State::Adopting { round } => round,
            State::Held {
                extension: Some(extension),
                ..
            } => &mut extension.round,
            _ => return false,
        };
        // A shorter extension may still be on its way to this node and cut this one: no vote.
        let is_doubtful = self.doubtful.contains(vote.node) && self.doubtful_ttl < round.ttl();
        let answer = match answer {
            Answer::Yes if is_doubtful => Answer::Failed,
            answer => answer,
        };
        if !round.on_vote(vote, answer) {
            return false;
        }
        match answer {
            Answer::Yes => {}
            Answer::No => self.blame(vote.node, Cause::NotHeld),
            Answer::Failed if is_doubtful => self.blame(vote.node, Cause::Disconnected),
            Answer::Failed => self.blame(vote.node, heard.cause("an extension")),
        }
        true
    }

    /// The TTL with which to set the key again on a node that says it lost it, when the round is decided and a
    /// majority has confirmed the lock.
    fn heals_late(&self, question: Question, heard: &Heard) -> Option<Duration> {
        let State::Held {
            confirmed: Some((round, ttl)),
            ..
        } = &self.state
        else {
            return None;
        };
        let is_missing = matches!(question.ask, Ask::Extend { .. })
            && matches!(heard, Heard::Null | Heard::Integer(0));
        (is_missing && question.round == *round).then_some(*ttl)
    }

    fn release_answered(&mut self, vote: Vote, heard: &Heard) -> bool {
        let answer = match heard {
            Heard::Ok | Heard::Integer(1) => Answer::Yes,
            Heard::Null | Heard::Integer(0) => Answer::No,
            _ => Answer::Failed,
        };
        let State::Releasing { round, awaited, .. } = &mut self.state else {
            return false;
        };
        awaited.remove(vote.node);
        if round.on_vote(vote, answer) && answer == Answer::Failed {
            self.blame(vote.node, heard.cause("a release"));
        }
        true
    }

    /// How long the present holder's lock lives on this node: no reason to wait longer than a majority needs.
    fn remaining_answered(&mut self, now: Time, vote: Vote, heard: &Heard) -> bool {
        let round = self.round;
        let State::Waiting { at, hints, .. } = &mut self.state else {
            return false;
        };
        let Heard::Integer(ms) = heard else {
            return false;
        };
        if vote.round != round || *ms == -1 {
            return false;
        }
        // No key any more: free at once.
        let remaining = Duration::from_millis(u64::try_from(*ms).unwrap_or(0));
        hints.learn(vote.node, remaining);
        if let Some(free_in) = hints.free_in() {
            let free_at = now + free_in + Duration::from_millis(1) + hints.jitter;
            if free_at < *at {
                *at = free_at;
                return true;
            }
        }
        false
    }

    fn look_answered(&mut self, node: NodeId, ask: Ask, heard: &Heard) -> bool {
        let State::Looking { looks, .. } = &mut self.state else {
            return false;
        };
        let Some(look) = looks.get_mut(node.index()).filter(|look| look.missing > 0) else {
            return false;
        };
        look.missing -= 1;
        look.learn(ask, heard);
        true
    }
}

impl Look {
    fn learn(&mut self, ask: Ask, heard: &Heard) {
        match (ask, heard) {
            (_, Heard::Other(Reply::Error(_))) => {
                self.cause.get_or_insert_with(|| heard.cause(ask.name()));
            }
            (Ask::LookToken, Heard::Other(Reply::Bulk(token))) => self.token = Some(token.clone()),
            (Ask::LookRemaining, Heard::Integer(ms)) => {
                self.remaining = u64::try_from(*ms).ok().map(Duration::from_millis);
            }
            _ => {}
        }
    }
}

impl Heard {
    /// Whether the node certainly did not do what it was asked: it said so, in its own words, by null or by a zero.
    fn is_definite(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Integers([0, ..]) | Self::Other(Reply::Error(_))
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Drift;
    use crate::core::operation::{Extension, LockTerms};
    use crate::quorum::Quorum;
    use crate::round::{ExtendRound, RoundId};
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
            round.asked(node, 2);
            let mut doubtful = NodeSet::default();
            doubtful.insert(node);
            let mut operation = Operation {
                terms: Arc::new(LockTerms::looking(Box::default(), seconds(1))),
                token: Token::new("t").unwrap(),
                state: State::Held {
                    valid_until: Time::NEVER,
                    lost_at: Time::NEVER,
                    renewal: None,
                    extension: Some(Box::new(Extension {
                        round,
                        is_asked: true,
                    })),
                    confirmed: None,
                },
                round: id,
                fencing: None,
                floor: None,
                may_hold: NodeSet::default(),
                may_hold_until: Time::ZERO,
                acquired: Time::ZERO,
                asked_until: Time::ZERO,
                causes: Vec::new(),
                unrenewed: Vec::new(),
                doubtful,
                doubtful_ttl: seconds(lost),
                alarm: Time::NEVER,
            };
            let vote = Vote {
                round: id,
                node,
                incarnation: 2,
            };
            assert!(operation.extend_answered(vote, &Heard::Ok));
            let State::Held {
                extension: Some(extension),
                ..
            } = &operation.state
            else {
                unreachable!("it is held");
            };
            let has_vote = extension.round.extended().contains(node);
            assert_eq!(has_vote, counts, "an extension to {lost} s was cut off");
        }
    }
}
