//! One lock act: what is wanted, and how far it has come.

use std::time::Duration;

use redlock_proto::Time;

use crate::sim::plain::PlainTerms;
use crate::sim::plain::request::{Answer, TOKEN_LEN, What};
use crate::sim::plain::round::Round;

/// One lock act.
#[derive(Clone, Debug)]
pub(super) struct Lock {
    pub(super) terms: PlainTerms,
    pub(super) token: [u8; TOKEN_LEN],
    pub(super) state: State,
    /// The round that runs, or ran last.
    pub(super) round: Round,
    /// The TTL that it asks for.
    pub(super) ttl: Duration,
    /// Attempts so far.
    pub(super) tries: u32,
    /// The moment from which on it is not held, once it is.
    pub(super) valid_until: Time,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The nodes were asked for the lock.
    Acquiring,
    /// A majority granted it; those behind were asked to accept the fencing token.
    WritingBack { fence: u64 },
    /// The attempt failed, and the nodes were asked to release what they may have granted.
    Undoing { why: &'static str },
    /// Another attempt is to come.
    Pausing { until: Time },
    /// It is held.
    Held { is_extending: bool },
    /// It was held, and is not any more.
    Lost,
    /// The nodes were asked to release it.
    Releasing,
}

impl State {
    /// Whether the reply to such a request says something now.
    pub(super) fn awaits(self, what: What) -> bool {
        match self {
            Self::Acquiring => matches!(what, What::Acquire | What::Look),
            Self::WritingBack { .. } => matches!(what, What::Acquire | What::Look | What::Fence(_)),
            Self::Held { is_extending } => {
                is_extending && matches!(what, What::Extend | What::SetAgain)
            }
            Self::Undoing { .. } | Self::Releasing => what == What::Release,
            Self::Pausing { .. } | Self::Lost => false,
        }
    }
}

impl Lock {
    pub(super) fn new(terms: PlainTerms) -> Self {
        Self {
            ttl: whole_millis(terms.ttl),
            terms,
            token: [0; TOKEN_LEN],
            state: State::Acquiring,
            round: Round::default(),
            tries: 0,
            valid_until: Time::ZERO,
        }
    }

    /// A node's answer to a request of the round that runs.
    pub(super) fn answered(&mut self, node: u8, what: What, answer: Answer) {
        match (answer, what) {
            (Answer::Yes(_), What::Release) => self.round.release(node),
            (Answer::Yes(_), What::Fence(fence)) | (Answer::Yes(fence), _) => {
                self.round.acknowledge(node, fence);
            }
            (Answer::No, _) => self.round.refuse(node),
            (Answer::Failed, _) => self.round.fail(node),
        }
    }
}

/// What the wire can say of a span.
pub(super) fn whole_millis(span: Duration) -> Duration {
    Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
}
