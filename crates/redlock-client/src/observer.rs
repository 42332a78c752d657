//! What happens inside, for logs and metrics.

use std::fmt::Debug;
use std::time::Duration;

use redlock_proto::{Cause, FencingToken, ServerInfo};

use crate::error::Error;
use crate::released::Released;

/// Is told what the client does. Called on the client's task between two reads: it must not block.
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
    /// Something happened.
    fn on_event(&self, event: &Event<'_>);
}

/// Something that happened. Keys are without the client's prefix; tokens are never shown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A lock was acquired.
    #[non_exhaustive]
    Acquired {
        /// The key.
        key: &'a [u8],
        /// The time since the caller asked.
        took: Duration,
        /// How long it is valid.
        validity: Duration,
        /// The attempts it took.
        tries: u32,
        /// The fencing token, if there is one. No secret, unlike the token.
        fencing: Option<FencingToken>,
    },
    /// A lock was not acquired; also what `try_acquire` reports as `None`.
    #[non_exhaustive]
    AcquireFailed {
        /// The key.
        key: &'a [u8],
        /// The time since the caller asked.
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
    /// A renewal failed; the lock is still valid and it will be tried again.
    #[non_exhaustive]
    RenewFailed {
        /// The key.
        key: &'a [u8],
        /// Why.
        error: &'a Error,
    },
    /// A lock is not held any more although its holder did not let it go.
    #[non_exhaustive]
    Lost {
        /// The key.
        key: &'a [u8],
        /// Why.
        error: &'a Error,
    },
    /// The holder let a lock go: exactly one of these follows each `Acquired`.
    #[non_exhaustive]
    Released {
        /// The key.
        key: &'a [u8],
        /// What the nodes said; `None` when nobody waited for it.
        released: Option<&'a Released>,
    },
    /// A node takes requests.
    #[non_exhaustive]
    NodeUp {
        /// Its address.
        address: &'a str,
        /// What it says of itself.
        server: &'a ServerInfo,
    },
    /// A node does not take requests any more, or could not be connected to.
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
