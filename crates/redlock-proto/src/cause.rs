//! Why a request to one node failed.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Why a request to one node failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// It granted the lock, but too few other nodes did; the client releases it.
    Granted,
    /// Another client holds the key there.
    HeldByOther,
    /// The key does not exist there, or has another token.
    NotHeld,
    /// No reply within the node timeout. The command may have been executed.
    TimedOut,
    /// The client cannot connect, with the reason.
    Unreachable(Unreachable),
    /// The connection broke before the reply. The command may have been executed.
    Disconnected,
    /// Nothing was sent, because earlier requests have had no reply for too long.
    Unresponsive,
    /// The node restarted and grants no locks yet, with the time left if it reported it.
    Quarantined(Option<Duration>),
    /// The node replied with this error.
    ServerError(Arc<str>),
    /// The reply does not fit the request; the client closed the connection.
    Protocol(Arc<str>),
    /// The same server as an earlier one in the list, so it has no vote of its own.
    #[non_exhaustive]
    Duplicate {
        /// The index of the earlier one, from 0.
        of: usize,
    },
}

/// Why the client cannot connect: a message, and the error behind it, which is the
/// [source](Error::source) of the cause.
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
    /// From the error that prevents the connection.
    pub fn new(source: impl Error + Send + Sync + 'static) -> Self {
        Self {
            why: source.to_string().into(),
            source: Some(Arc::new(source)),
        }
    }
}

/// Compares the messages.
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
    /// A short name for metric labels, without the node's own text.
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

    /// Whether the node did not reply properly, so the command may have been executed.
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
            Self::Unresponsive => f.write_str("nothing sent, earlier requests still have no reply"),
            Self::Quarantined(Some(left)) => {
                write!(f, "in restart quarantine, {left:?} left")
            }
            Self::Quarantined(None) => f.write_str("still loading"),
            Self::ServerError(text) => write!(f, "replied -{text}"),
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
