//! Events, for logs and metrics.

use std::fmt::Debug;
use std::time::Duration;

use redlock_proto::{Cause, FencingToken, ServerInfo};

use crate::error::Error;
use crate::released::Released;

/// Receives the client's events. Runs on the client's task between two reads, so it must not block.
///
/// ```
/// use redlock_client::{Event, Observer};
///
/// #[derive(Debug)]
/// struct Losses(std::sync::atomic::AtomicU64);
///
/// impl Observer for Losses {
///     fn on_event(&self, event: &Event<'_>) {
///         if let Event::Lost { .. } = event {
///             self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Debug + Send + Sync {
    /// Handles an event.
    fn on_event(&self, event: &Event<'_>);
}

/// An event of the client. Keys are without the client's prefix; no event has a token.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A lock was acquired.
    #[non_exhaustive]
    Acquired {
        /// The key.
        key: &'a [u8],
        /// The time since the call.
        took: Duration,
        /// How long it is valid.
        validity: Duration,
        /// The number of attempts.
        tries: u32,
        /// The fencing token, if there is one. Unlike the token it is no secret.
        fencing: Option<FencingToken>,
    },
    /// A lock was not acquired, including when `try_acquire` returns `None`.
    #[non_exhaustive]
    AcquireFailed {
        /// The key.
        key: &'a [u8],
        /// The time since the call.
        took: Duration,
        /// Why.
        error: &'a Error,
    },
    /// A lock was renewed automatically.
    #[non_exhaustive]
    Renewed {
        /// The key.
        key: &'a [u8],
        /// How long it is valid now.
        validity: Duration,
    },
    /// A renewal failed. The lock is still valid, and the renewal will be retried.
    #[non_exhaustive]
    RenewFailed {
        /// The key.
        key: &'a [u8],
        /// Why.
        error: &'a Error,
    },
    /// A lock was lost or expired before its holder released it.
    #[non_exhaustive]
    Lost {
        /// The key.
        key: &'a [u8],
        /// Why.
        error: &'a Error,
    },
    /// The holder released, dropped or leaked a lock. Exactly one of these follows each `Acquired`.
    #[non_exhaustive]
    Released {
        /// The key.
        key: &'a [u8],
        /// The outcome; `None` if nobody waited for it.
        released: Option<&'a Released>,
    },
    /// A node accepts requests.
    #[non_exhaustive]
    NodeUp {
        /// Its address.
        address: &'a str,
        /// What it reports about itself.
        server: &'a ServerInfo,
    },
    /// A node no longer accepts requests, or the client cannot connect to it.
    #[non_exhaustive]
    NodeDown {
        /// Its address.
        address: &'a str,
        /// Why.
        cause: &'a Cause,
    },
    /// A node had no vote in an attempt or an extension that failed.
    #[non_exhaustive]
    NodeFailed {
        /// Its address.
        address: &'a str,
        /// Why.
        cause: &'a Cause,
    },
}
