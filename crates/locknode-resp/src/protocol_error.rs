//! Why a request could not be decoded, with the texts of Redis.

use std::borrow::Cow;
use std::error;
use std::fmt;

/// A request that breaks the protocol. The connection cannot continue: the reply to it, if any, is
/// the last.
///
/// Commands decoded before it are valid and are answered first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProtocolError {
    kind: ProtocolErrorKind,
    /// The byte in place of `$`, a space for a line end; only for that kind.
    found: u8,
}

/// What is wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProtocolErrorKind {
    /// No line feed within `inline_len_max` bytes.
    TooBigInlineRequest,
    /// An inline request with a quote that is not closed, or closed and not followed by a space.
    UnbalancedQuotes,
    /// No end of the `*` line within `inline_len_max` bytes.
    TooBigMultibulkCount,
    /// The number after `*` is invalid or larger than `args_max`.
    InvalidMultibulkLength,
    /// More than 10 arguments before authentication.
    UnauthenticatedMultibulkLength,
    /// No end of the `$` line within `inline_len_max` bytes.
    TooBigBulkCount,
    /// An argument that does not start with `$`.
    ExpectedDollar,
    /// The number after `$` is invalid, negative, or larger than `bulk_len_max`.
    InvalidBulkLength,
    /// An argument of more than 16,384 bytes before authentication.
    UnauthenticatedBulkLength,
    /// The command is `POST` or `Host:`: a browser was tricked into talking to this port. No reply.
    HttpAttack,
    /// The client begins a TLS handshake. Redis would wait for a line end that never comes.
    Tls,
    /// The request is longer than `request_len_max`. No reply.
    RequestTooLarge,
}

impl ProtocolError {
    /// Returns what is wrong.
    pub fn kind(&self) -> ProtocolErrorKind {
        self.kind
    }

    /// Returns whether the connection closes without a reply, as in Redis for a browser and a full
    /// query buffer.
    pub fn is_silent(&self) -> bool {
        matches!(
            self.kind,
            ProtocolErrorKind::HttpAttack | ProtocolErrorKind::RequestTooLarge
        )
    }

    /// Returns Redis's text after `-ERR `, such as `Protocol error: invalid bulk length`.
    ///
    /// For a [silent](Self::is_silent) error it is a text for the log. A byte that is not ASCII
    /// appears as U+FFFD; [`append_reply`](Self::append_reply) keeps it unchanged.
    pub fn message(&self) -> Cow<'static, str> {
        let text = self.kind.text();
        if self.kind != ProtocolErrorKind::ExpectedDollar {
            return Cow::Borrowed(text);
        }
        let found = [self.found];
        Cow::Owned(format!("{text}{}'", String::from_utf8_lossy(&found)))
    }

    /// Appends the reply, byte for byte as Redis sends it; nothing for a [silent](Self::is_silent)
    /// error.
    pub fn append_reply(&self, out: &mut Vec<u8>) {
        if self.is_silent() {
            return;
        }
        out.extend_from_slice(b"-ERR ");
        out.extend_from_slice(self.kind.text().as_bytes());
        if self.kind == ProtocolErrorKind::ExpectedDollar {
            out.extend_from_slice(&[self.found, b'\'']);
        }
        out.extend_from_slice(b"\r\n");
    }

    #[cold]
    pub(crate) fn new(kind: ProtocolErrorKind) -> Self {
        Self { kind, found: 0 }
    }

    #[cold]
    pub(crate) fn expected_dollar(found: u8) -> Self {
        let is_line_end = matches!(found, b'\r' | b'\n');
        Self {
            kind: ProtocolErrorKind::ExpectedDollar,
            found: if is_line_end { b' ' } else { found },
        }
    }
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl error::Error for ProtocolError {}

impl ProtocolErrorKind {
    fn text(self) -> &'static str {
        match self {
            Self::TooBigInlineRequest => "Protocol error: too big inline request",
            Self::UnbalancedQuotes => "Protocol error: unbalanced quotes in request",
            Self::TooBigMultibulkCount => "Protocol error: too big mbulk count string",
            Self::InvalidMultibulkLength => "Protocol error: invalid multibulk length",
            Self::UnauthenticatedMultibulkLength => {
                "Protocol error: unauthenticated multibulk length"
            }
            Self::TooBigBulkCount => "Protocol error: too big bulk count string",
            Self::ExpectedDollar => "Protocol error: expected '$', got '",
            Self::InvalidBulkLength => "Protocol error: invalid bulk length",
            Self::UnauthenticatedBulkLength => "Protocol error: unauthenticated bulk length",
            Self::HttpAttack => {
                "an HTTP request, closed to protect this node from a cross-protocol attack"
            }
            Self::Tls => "Protocol error: this port speaks no TLS",
            Self::RequestTooLarge => "request longer than client-query-buffer-limit",
        }
    }
}
