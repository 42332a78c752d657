//! Observers that are ready to use: one for the `tracing` facade, one for `metrics`.
//!
//! Both are told of events by the client and keep nothing themselves. Neither ever sees a token.

#[cfg(feature = "tracing")]
mod log;
#[cfg(feature = "metrics")]
mod meter;

#[cfg(feature = "tracing")]
pub use self::log::TracingObserver;
#[cfg(feature = "metrics")]
pub use self::meter::MetricsObserver;
use crate::cause::Cause;
use crate::error::ErrorKind;

/// A short name for labels; it never changes, while the sentence of `Display` may.
fn error_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Busy => "busy",
        ErrorKind::Contended => "contended",
        ErrorKind::NoQuorum => "no_quorum",
        ErrorKind::Lost => "lost",
        ErrorKind::Expired => "expired",
        ErrorKind::Cancelled => "cancelled",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Config => "config",
    }
}

/// A short name for labels, without the node's words: there must be few different ones.
fn cause_name(cause: &Cause) -> &'static str {
    match cause {
        Cause::Granted => "granted",
        Cause::HeldByOther => "held_by_other",
        Cause::NotHeld => "not_held",
        Cause::TimedOut => "timed_out",
        Cause::Unreachable(_) => "unreachable",
        Cause::Disconnected => "disconnected",
        Cause::Unresponsive => "unresponsive",
        Cause::Quarantined(_) => "quarantined",
        Cause::ServerError(_) => "server_error",
        Cause::Nonsense(_) => "nonsense",
        Cause::Duplicate(_) => "duplicate",
    }
}
