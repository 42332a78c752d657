//! Locks that their owner can enter again, for a blocking caller.

use std::sync::Arc;
use std::time::Duration;

use super::{Client, LockRequest};
use crate::error::Error;
use crate::{FencingToken, Released, Token};

/// An owner of locks that it can enter again. Clones are the same owner.
///
/// It is the blocking form of [`Reentrant`](crate::Reentrant). The owner is this value and not the
/// thread: another thread with a clone enters too.
#[derive(Clone, Debug)]
pub struct Reentrant {
    inner: crate::Reentrant,
    client: Arc<Client>,
}

impl Reentrant {
    pub(super) fn new(inner: crate::Reentrant, client: &Arc<Client>) -> Self {
        Self {
            inner,
            client: Arc::clone(client),
        }
    }

    /// Enters the request's lock: at once if this owner holds it, otherwise by acquiring it. The
    /// request's options count for the first entry.
    ///
    /// # Errors
    ///
    /// Those of the async [`enter`](crate::Reentrant::enter).
    pub fn enter(&self, request: LockRequest) -> Result<ReentrantGuard, Error> {
        let (owner, request) = (self.inner.clone(), request.into_inner());
        let guard = self
            .client
            .wait(async move { owner.enter(request).await })??;
        Ok(ReentrantGuard {
            inner: Arc::new(guard),
            client: Arc::clone(&self.client),
        })
    }
}

/// One entry into a lock. Dropping it leaves; the last one releases the lock in the background.
#[derive(Debug)]
#[must_use = "an entry that is dropped leaves the lock at once"]
pub struct ReentrantGuard {
    /// Shared with the calls that run on the client's thread, for no longer than they take.
    /// It goes before the client, whose thread must hear of the release before it ends.
    inner: Arc<crate::ReentrantGuard>,
    client: Arc<Client>,
}

impl ReentrantGuard {
    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// What proves that the lock is this owner's.
    pub fn token(&self) -> &Token {
        self.inner.token()
    }

    /// As [`Guard::fencing`](super::Guard::fencing).
    pub fn fencing(&self) -> Option<FencingToken> {
        self.inner.fencing()
    }

    /// How often the owner is in the lock now.
    pub fn entries(&self) -> usize {
        self.inner.entries()
    }

    /// How long the lock is still held for certain; zero when it is lost or over.
    pub fn validity(&self) -> Duration {
        self.inner.validity()
    }

    /// Whether the lock is held now.
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// As [`Guard::extend`](super::Guard::extend).
    ///
    /// # Errors
    ///
    /// Those of the async [`extend`](crate::ReentrantGuard::extend).
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let guard = Arc::clone(&self.inner);
        self.client.wait(async move {
            let result = guard.extend(ttl).await;
            // Given back before the caller goes on, who may leave next.
            drop(guard);
            result
        })?
    }

    /// As [`Guard::lost`](super::Guard::lost).
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

    /// Leaves the lock. The last one to leave releases it and gets the outcome.
    pub fn leave(self) -> Option<Released> {
        // Every call gave its share back before it returned, so this one is the last.
        let guard = Arc::into_inner(self.inner)?;
        self.client
            .wait(guard.leave())
            .unwrap_or_else(|_| Some(self.client.nobody_told()))
    }
}
