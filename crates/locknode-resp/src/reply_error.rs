//! Why a reply could not be decoded.

use std::error;
use std::fmt;

/// A reply that breaks the protocol or a limit. What follows it cannot be told apart: close the connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplyError {
    kind: ReplyErrorKind,
}

/// What is wrong with a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplyErrorKind {
    /// The bytes are no reply.
    Malformed,
    /// More aggregates inside each other than `depth_max`.
    TooDeep,
    /// More elements than `elements_max`.
    TooManyElements,
    /// More bytes than `bytes_max`.
    TooLong,
}

impl ReplyError {
    /// What is wrong.
    pub fn kind(&self) -> ReplyErrorKind {
        self.kind
    }

    pub(crate) const MALFORMED: Self = Self {
        kind: ReplyErrorKind::Malformed,
    };

    #[cold]
    pub(crate) fn new(kind: ReplyErrorKind) -> Self {
        Self { kind }
    }
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ReplyErrorKind::Malformed => "malformed reply",
            ReplyErrorKind::TooDeep => "reply nested too deeply",
            ReplyErrorKind::TooManyElements => "reply with too many elements",
            ReplyErrorKind::TooLong => "reply too long",
        })
    }
}

impl error::Error for ReplyError {}
