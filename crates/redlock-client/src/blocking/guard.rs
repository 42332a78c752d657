//! A lock held by a blocking caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Client;
use crate::error::Error;
use crate::{CancellationToken, FencingToken, Released, Token};

/// A lock that is held. Dropping it releases the lock in the background and never waits.
///
/// It is the blocking form of [`Guard`](crate::Guard). It keeps the client's thread alive.
#[derive(Debug)]
#[must_use = "the lock is released when its guard is dropped"]
pub struct Guard {
    /// Shared with the calls that run on the client's thread, for no longer than they take.
    /// It goes before the client, whose thread must hear of the release before it ends.
    inner: Arc<crate::Guard>,
    client: Arc<Client>,
}

impl Guard {
    pub(super) fn new(inner: crate::Guard, client: Arc<Client>) -> Self {
        Self {
            inner: Arc::new(inner),
            client,
        }
    }

    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// What proves that the lock is ours. It opens the lock: not for logs.
    pub fn token(&self) -> &Token {
        self.inner.token()
    }

    /// As the async [`fencing`](crate::Guard::fencing).
    pub fn fencing(&self) -> Option<FencingToken> {
        self.inner.fencing()
    }

    /// How many attempts it took.
    pub fn tries(&self) -> u32 {
        self.inner.tries()
    }

    /// How long the lock is still held for certain, by the local clock; zero when it is lost or over.
    pub fn validity(&self) -> Duration {
        self.inner.validity()
    }

    /// Whether the lock is held now.
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// When the validity ends if the lock is not extended, for a timer. Decide by
    /// [`is_valid`](Self::is_valid).
    pub fn valid_until(&self) -> Instant {
        self.inner.valid_until()
    }

    /// Lets the lock live for `ttl` from now on, if a majority of the nodes still holds it.
    ///
    /// # Errors
    ///
    /// Those of the async [`extend`](crate::Guard::extend).
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let guard = Arc::clone(&self.inner);
        self.client.wait(async move {
            let result = guard.extend(ttl).await;
            // Given back before the caller goes on, who may release next.
            drop(guard);
            result
        })?
    }

    /// Waits up to `timeout` for the moment at which the lock is lost, or about to expire; `None`
    /// when that did not come. With a timeout of zero it only looks.
    pub fn lost(&self, timeout: Duration) -> Option<Error> {
        let guard = Arc::clone(&self.inner);
        let outcome = self.client.wait(async move {
            let outcome = tokio::time::timeout(timeout, guard.lost()).await.ok();
            drop(guard);
            outcome
        });
        // Without its thread the client renews nothing, which is a loss as well.
        outcome.unwrap_or_else(Some)
    }

    /// A token that is cancelled at the moment at which [`lost`](Self::lost) returns.
    pub fn cancellation(&self) -> CancellationToken {
        self.inner.cancellation()
    }

    /// Releases the lock on every node. Returns once a majority of them is known not to hold it any
    /// more; the others are told in the background.
    pub fn release(self) -> Released {
        let guard = self.inner;
        let released = self
            .client
            .wait(async move { guard.release_by_ref().await });
        released.unwrap_or_else(|_| self.client.nobody_told())
    }

    /// Lets the lock live until its TTL ends, without renewal and without release; whoever has the
    /// token can [`adopt`](super::Redlock::adopt) or release it.
    pub fn leak(self) -> Token {
        let token = *self.inner.token();
        // Every call gave its share back before it returned, so this one is the last.
        if let Some(guard) = Arc::into_inner(self.inner) {
            guard.leak();
        }
        token
    }
}
