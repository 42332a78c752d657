//! What a node can be asked, and which answers a question can have.

use std::time::Duration;

use locknode_resp::Reply;

use crate::core::answers::Heard;
use crate::core::dialect::{Dialect, ScriptForm};
use crate::core::op_id::OpId;
use crate::fencing_token::FencingToken;
use crate::round::RoundId;

/// What a node can be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    Acquire,
    Extend {
        ttl: Duration,
    },
    /// Accept the fencing token.
    Fence,
    /// Set the key again where it was lost.
    Heal {
        ttl: Duration,
    },
    Release,
    /// Instead of a release: let it live this long and no longer.
    Shrink {
        ttl: Duration,
    },
    /// How long the key lives.
    Remaining,
    /// Which token the key has.
    Holder,
    /// Who has the key, for a person.
    Describe,
    /// Delete the key, no matter who holds it.
    Force,
    /// Whether the node is there.
    Ping,
}

/// Something an operation asks of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Question {
    pub(crate) op: OpId,
    pub(crate) round: RoundId,
    pub(crate) ask: Ask,
    pub(crate) form: ScriptForm,
}

impl Ask {
    /// What the question is called in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Acquire | Self::Heal { .. } => "an acquire",
            Self::Fence => "LOCK.FENCE",
            Self::Extend { .. } | Self::Shrink { .. } => "an extension",
            Self::Release => "a release",
            Self::Remaining => "PTTL",
            Self::Holder => "GET",
            Self::Describe => "GET",
            Self::Force => "a release by force",
            Self::Ping => "PING",
        }
    }

    /// Whether the nodes' answers are the votes of a round.
    pub(crate) fn is_voted_on(self) -> bool {
        matches!(
            self,
            Self::Acquire | Self::Extend { .. } | Self::Release | Self::Shrink { .. }
        )
    }

    /// Whether the reply cannot be an answer to the question.
    pub(crate) fn cannot_be_answered_by(self, heard: &Heard, dialect: Dialect) -> bool {
        let is_possible = match (self, dialect) {
            (Self::Acquire | Self::Heal { .. }, Dialect::EarlyLock | Dialect::Lock) => {
                match heard {
                    Heard::Integers([1, counter, _]) => fencing_token(*counter).is_some(),
                    Heard::Integers([0, counter, _]) => {
                        *counter == 0 || fencing_token(*counter).is_some()
                    }
                    _ => false,
                }
            }
            (Self::Acquire | Self::Heal { .. }, _) => matches!(heard, Heard::Ok | Heard::Null),
            (
                Self::Extend { .. } | Self::Shrink { .. },
                Dialect::Script | Dialect::EarlyLock | Dialect::Lock,
            )
            | (Self::Release | Self::Fence, _) => matches!(heard, Heard::Integer(0 | 1)),
            (Self::Extend { .. } | Self::Shrink { .. }, _) => {
                matches!(heard, Heard::Ok | Heard::Null)
            }
            (Self::Remaining, _) => matches!(heard, Heard::Integer(_)),
            (Self::Describe, Dialect::Lock) => {
                matches!(heard, Heard::Null | Heard::Other(Reply::Array(_)))
            }
            (Self::Force, Dialect::Lock) => matches!(heard, Heard::Other(Reply::Array(_))),
            (Self::Holder | Self::Describe | Self::Force, _) => {
                matches!(heard, Heard::Null | Heard::Other(Reply::Bulk(_)))
            }
            (Self::Ping, _) => matches!(heard, Heard::Other(Reply::Simple(_) | Reply::Bulk(_))),
        };
        !is_possible && !matches!(heard, Heard::Other(Reply::Error(_)))
    }
}

/// A counter as a node reported it.
pub(crate) fn fencing_token(counter: i64) -> Option<FencingToken> {
    FencingToken::new(u64::try_from(counter).ok()?)
}
