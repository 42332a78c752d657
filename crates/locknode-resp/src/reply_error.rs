//! Why a reply could not be decoded.

use std::error;
use std::fmt;

/// A reply that breaks the protocol or a limit. The end of the reply is unknown: close the
/// connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplyError {
    kind: ReplyErrorKind,
}

/// What is wrong with a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReplyErrorKind {
    /// The bytes are not a reply.
    Malformed,
    /// Aggregates are nested deeper than `depth_max`.
    TooDeep,
    /// There are more elements than `elements_max`.
    TooManyElements,
    /// There are more bytes than `bytes_max`.
    TooLong,
}

impl ReplyError {
    /// Returns what is wrong.
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
