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

    /// How long the nodes keep the lock when it is neither extended nor released. Default 10 s.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|inner| inner.ttl(ttl))
    }

    /// Let [`acquire`](Self::acquire) try until this much time has passed.
    pub fn wait_for(self, wait: Duration) -> Self {
        self.map(|inner| inner.wait_for(wait))
    }

    /// How [`acquire`](Self::acquire) tries again. Default: the client's.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.map(|inner| inner.retry(policy))
    }

    /// Extend the lock automatically while the guard lives, within the policy's bound. Default: not
    /// at all.
    pub fn renew(self, policy: RenewPolicy) -> Self {
        self.map(|inner| inner.renew(policy))
    }

    /// Keep the key this long from the acquisition on, even if it is released sooner.
    pub fn hold_at_least(self, time: Duration) -> Self {
        self.map(|inner| inner.hold_at_least(time))
    }

    /// How long a node has for a reply. Default: the client's.
    pub fn node_timeout(self, timeout: Duration) -> Self {
        self.map(|inner| inner.node_timeout(timeout))
    }

    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.inner.key()
    }

    /// Tries once. `None` means that another client holds the lock.
    ///
    /// # Errors
    ///
    /// Those of the async [`try_acquire`](crate::LockRequest::try_acquire).
    pub fn try_acquire(self) -> Result<Option<Guard>, Error> {
        let Self { inner, client } = self;
        let guard = client.wait(inner.try_acquire())??;
        Ok(guard.map(|guard| Guard::new(guard, client)))
    }

    /// Tries as often and as long as the retry policy says.
    ///
    /// # Errors
    ///
    /// Those of the async [`acquire`](crate::LockRequest::acquire).
    pub fn acquire(self) -> Result<Guard, Error> {
        let Self { inner, client } = self;
        let guard = client.wait(inner.acquire())??;
        Ok(Guard::new(guard, client))
    }

    pub(super) fn into_inner(self) -> crate::LockRequest {
        self.inner
    }

    fn map(self, change: impl FnOnce(crate::LockRequest) -> crate::LockRequest) -> Self {
        Self {
            inner: change(self.inner),
            client: self.client,
        }
    }
}
