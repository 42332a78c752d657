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
        self.words().0
    }

    /// The name, and what a message begins with.
    fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Granted => ("granted", "granted it"),
            Self::HeldByOther => ("held_by_other", "held by another client"),
            Self::NotHeld => ("not_held", "not held there"),
            Self::TimedOut => ("timed_out", "no reply in time"),
            Self::Unreachable(_) => ("unreachable", "cannot connect: "),
            Self::Disconnected => ("disconnected", "connection lost before the reply"),
            Self::Unresponsive => (
                "unresponsive",
                "nothing sent, earlier requests still have no reply",
            ),
            Self::Quarantined(Some(_)) => ("quarantined", "in restart quarantine, "),
            Self::Quarantined(None) => ("quarantined", "still loading"),
            Self::ServerError(_) => ("server_error", "replied -"),
            Self::Protocol(_) => ("protocol", "broke the protocol: "),
            Self::Duplicate { .. } => ("duplicate", "the same server as node "),
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
        f.write_str(self.words().1)?;
        match self {
            Self::Unreachable(why) => why.fmt(f),
            Self::Quarantined(Some(left)) => write!(f, "{left:?} left"),
            Self::ServerError(text) | Self::Protocol(text) => f.write_str(text),
            Self::Duplicate { of } => write!(f, "{of} of the list (counted from 0)"),
            _ => Ok(()),
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
