//! What a blocking caller asks for.

use std::sync::Arc;
use std::time::Duration;

use super::Client;
use super::guard::Guard;
use crate::error::Error;
use crate::{RenewPolicy, RetryPolicy};

/// A request for one lock: set what differs from the defaults, then acquire.
///
/// It is the blocking form of [`LockRequest`](crate::LockRequest), with the same options.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is acquired"]
pub struct LockRequest {
    inner: crate::LockRequest,
    client: Arc<Client>,
}

impl LockRequest {
    pub(super) fn new(inner: crate::LockRequest, client: &Arc<Client>) -> Self {
        Self {
            inner,
            client: Arc::clone(client),
        }
    }

    /// How long the lock lives without renewal.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|inner| inner.ttl(ttl))
    }

    /// How long [`acquire`](Self::acquire) tries.
    pub fn wait_for(self, wait: Duration) -> Self {
        self.map(|inner| inner.wait_for(wait))
    }

    /// How often and how long [`acquire`](Self::acquire) tries.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.map(|inner| inner.retry(policy))
    }

    /// Extends the lock in the background while the guard lives, within the policy's bound.
    pub fn renew(self, policy: RenewPolicy) -> Self {
        self.map(|inner| inner.renew(policy))
    }

    /// Keeps the lock for at least this long, even when it is released sooner.
    pub fn hold_at_least(self, time: Duration) -> Self {
        self.map(|inner| inner.hold_at_least(time))
    }

    /// How long one node is waited for.
    pub fn node_timeout(self, timeout: Duration) -> Self {
        self.map(|inner| inner.node_timeout(timeout))
    }

    /// Tries once; `None` when another holds the lock.
    ///
    /// # Errors
    ///
    /// Those of the async [`try_acquire`](crate::LockRequest::try_acquire).
    pub fn try_acquire(self) -> Result<Option<Guard>, Error> {
        let Self { inner, client } = self;
        let guard = client.wait(inner.try_acquire())??;
        Ok(guard.map(|guard| Guard::new(guard, client)))
    }

    /// Tries until the lock is had or the retry policy ends.
    ///
    /// # Errors
    ///
    /// Those of the async [`acquire`](crate::LockRequest::acquire).
    pub fn acquire(self) -> Result<Guard, Error> {
        let Self { inner, client } = self;
        let guard = client.wait(inner.acquire())??;
        Ok(Guard::new(guard, client))
    }

    fn map(self, change: impl FnOnce(crate::LockRequest) -> crate::LockRequest) -> Self {
        Self {
            inner: change(self.inner),
            client: self.client,
        }
    }
}
