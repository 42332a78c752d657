//! Why one node did not do what it was asked.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What one node said or did, in an error or to a release.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// It granted the lock, which too few others did; it was told to release it.
    Granted,
    /// Another client holds the key there.
    HeldByOther,
    /// The key is not there, or it has another token.
    NotHeld,
    /// No reply within the time a node is given. The command may have had its effect.
    TimedOut,
    /// No connection could be made; with the reason.
    Unreachable(Unreachable),
    /// The connection broke before the reply. The command may have had its effect.
    Disconnected,
    /// Earlier requests have been without reply for too long, so nothing was sent to the node.
    Unresponsive,
    /// The node restarted and takes no part yet; with the time that is left, if it said so.
    Quarantined(Option<Duration>),
    /// The node answered with an error, here in its words.
    ServerError(Arc<str>),
    /// The node answered something that is no answer to the question; the connection was closed.
    Protocol(Arc<str>),
    /// The address leads to the same server as an earlier one in the list: it has no vote of its own.
    #[non_exhaustive]
    Duplicate {
        /// The place of the earlier one, counted from 0.
        of: usize,
    },
}

/// Why no connection could be made: a sentence, and the error that it is of, which is the [source](Error::source) of the
/// cause.
#[derive(Clone, Debug)]
pub struct Unreachable {
    why: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl From<&str> for Unreachable {
    fn from(why: &str) -> Self {
        Self {
            why: why.into(),
            source: None,
        }
    }
}

impl Unreachable {
    /// The reason is an error.
    pub fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            why: source.to_string().into(),
            source: Some(Arc::new(source)),
        }
    }
}

/// By the sentence.
impl PartialEq for Unreachable {
    fn eq(&self, other: &Self) -> bool {
        self.why == other.why
    }
}

impl Eq for Unreachable {}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Cause {
    /// A short name for labels, without the node's words: there are few different ones.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Granted => "granted",
            Self::HeldByOther => "held_by_other",
            Self::NotHeld => "not_held",
            Self::TimedOut => "timed_out",
            Self::Unreachable(_) => "unreachable",
            Self::Disconnected => "disconnected",
            Self::Unresponsive => "unresponsive",
            Self::Quarantined(_) => "quarantined",
            Self::ServerError(_) => "server_error",
            Self::Protocol(_) => "protocol",
            Self::Duplicate { .. } => "duplicate",
        }
    }

    /// Whether the node did not answer, so that the command may have had its effect.
    pub fn is_unknown(&self) -> bool {
        matches!(
            self,
            Self::TimedOut | Self::Disconnected | Self::Protocol(_)
        )
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted => f.write_str("granted it"),
            Self::HeldByOther => f.write_str("held by another client"),
            Self::NotHeld => f.write_str("not held there"),
            Self::TimedOut => f.write_str("no reply in time"),
            Self::Unreachable(why) => write!(f, "cannot connect: {why}"),
            Self::Disconnected => f.write_str("connection lost before the reply"),
            Self::Unresponsive => {
                f.write_str("not asked, earlier requests are still without reply")
            }
            Self::Quarantined(Some(left)) => {
                write!(f, "in its restart quarantine for {left:?} more")
            }
            Self::Quarantined(None) => f.write_str("still loading"),
            Self::ServerError(text) => write!(f, "answered -{text}"),
            Self::Protocol(what) => write!(f, "broke the protocol: {what}"),
            Self::Duplicate { of: first } => {
                write!(
                    f,
                    "the same server as node {first} of the list (counted from 0)"
                )
            }
        }
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unreachable(Unreachable {
                source: Some(source),
                ..
            }) => Some(source.as_ref()),
            _ => None,
        }
    }
}
