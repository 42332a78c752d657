//! Reentrant locks for a blocking caller.

use std::sync::Arc;
use std::time::Duration;

use super::{Client, LockRequest, mirror};
use crate::error::Error;
use crate::{FencingToken, Released, Token};

/// An owner of locks that it can enter again. Clones are the same owner.
///
/// The blocking form of [`Reentrant`](crate::Reentrant). The owner is this value, not the thread:
/// another thread with a clone can enter too.
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

    /// Enters the request's lock: at once if this owner holds it, otherwise by acquiring it. Only the
    /// first entry uses the request's options.
    ///
    /// # Errors
    ///
    /// Those of the async [`enter`](crate::Reentrant::enter).
    pub fn enter(&self, request: LockRequest) -> Result<ReentrantGuard, Error> {
        let (owner, request) = (self.inner.clone(), request.into_inner());
        let guard = self
            .client
            .wait(async move { owner.enter(request).await })??;
        Ok(ReentrantGuard::new(guard, Arc::clone(&self.client)))
    }
}

mirror::guard! {
    /// One entry into a lock. Dropping it leaves the lock; dropping the last one releases it in the
    /// background.
    #[must_use = "an entry that is dropped leaves the lock at once"]
    ReentrantGuard
}

mirror::single_lock!(ReentrantGuard);

impl ReentrantGuard {
    /// The number of entries that the owner has now.
    pub fn entries(&self) -> usize {
        self.inner.entries()
    }

    /// Leaves the lock. The last entry releases it and returns the outcome.
    pub fn leave(self) -> Option<Released> {
        // Every call dropped its clone before it returned, so this is the last.
        let guard = Arc::into_inner(self.inner)?;
        self.client
            .wait(guard.leave())
            .unwrap_or_else(|_| Some(self.client.nothing_sent()))
    }
}
