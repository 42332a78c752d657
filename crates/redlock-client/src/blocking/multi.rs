//! Several locks at once for a blocking caller, all or none.

use std::sync::Arc;
use std::time::Duration;

use super::Client;
use crate::error::Error;
use crate::{FencingToken, Released, RenewPolicy, RetryPolicy};

/// Several locks that are wanted together.
///
/// It is the blocking form of [`MultiLockRequest`](crate::MultiLockRequest), with the same options.
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is acquired"]
pub struct MultiLockRequest {
    inner: crate::MultiLockRequest,
    client: Arc<Client>,
}

impl MultiLockRequest {
    pub(super) fn new(inner: crate::MultiLockRequest, client: &Arc<Client>) -> Self {
        Self {
            inner,
            client: Arc::clone(client),
        }
    }

    /// As [`LockRequest::ttl`](super::LockRequest::ttl), for each lock.
    pub fn ttl(self, ttl: Duration) -> Self {
        self.map(|inner| inner.ttl(ttl))
    }

    /// As [`LockRequest::wait_for`](super::LockRequest::wait_for), for all locks together.
    pub fn wait_for(self, wait: Duration) -> Self {
        self.map(|inner| inner.wait_for(wait))
    }

    /// As [`LockRequest::retry`](super::LockRequest::retry): tries count for each lock, a wait for
    /// all together.
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.map(|inner| inner.retry(policy))
    }

    /// As [`LockRequest::renew`](super::LockRequest::renew), for each lock.
    pub fn renew(self, policy: RenewPolicy) -> Self {
        self.map(|inner| inner.renew(policy))
    }

    /// As [`LockRequest::node_timeout`](super::LockRequest::node_timeout), for each lock.
    pub fn node_timeout(self, timeout: Duration) -> Self {
        self.map(|inner| inner.node_timeout(timeout))
    }

    /// Tries once for each lock. `None` means that another client holds one of them; none is held
    /// then.
    ///
    /// # Errors
    ///
    /// Those of the async [`try_acquire`](crate::MultiLockRequest::try_acquire).
    pub fn try_acquire(self) -> Result<Option<MultiGuard>, Error> {
        let Self { inner, client } = self;
        let guard = client.wait(inner.try_acquire())??;
        Ok(guard.map(|guard| MultiGuard::new(guard, client)))
    }

    /// Acquires all locks.
    ///
    /// # Errors
    ///
    /// Those of the async [`acquire`](crate::MultiLockRequest::acquire).
    pub fn acquire(self) -> Result<MultiGuard, Error> {
        let Self { inner, client } = self;
        let guard = client.wait(inner.acquire())??;
        Ok(MultiGuard::new(guard, client))
    }

    fn map(self, change: impl FnOnce(crate::MultiLockRequest) -> crate::MultiLockRequest) -> Self {
        Self {
            inner: change(self.inner),
            client: self.client,
        }
    }
}

/// Several locks that are held together. Dropping it releases them all in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its locks at once"]
pub struct MultiGuard {
    /// Shared with the calls that run on the client's thread, for no longer than they take.
    /// It goes before the client, whose thread must hear of the releases before it ends.
    inner: Arc<crate::MultiGuard>,
    client: Arc<Client>,
}

impl MultiGuard {
    fn new(inner: crate::MultiGuard, client: Arc<Client>) -> Self {
        Self {
            inner: Arc::new(inner),
            client,
        }
    }

    /// The keys, sorted, without the client's prefix.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.inner.guards().iter().map(crate::Guard::key)
    }

    /// The fencing tokens of the locks, in the order of their keys; see the async
    /// [`fencing`](crate::Guard::fencing).
    pub fn fencing(&self) -> impl ExactSizeIterator<Item = Option<FencingToken>> {
        self.inner.guards().iter().map(crate::Guard::fencing)
    }

    /// How long all of them are still held for certain; zero when one is lost or over.
    pub fn validity(&self) -> Duration {
        self.inner.validity()
    }

    /// Whether all of them are held now.
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Extends all of them at the same time.
    ///
    /// # Errors
    ///
    /// Those of the async [`extend`](crate::MultiGuard::extend).
    pub fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let guard = Arc::clone(&self.inner);
        self.client.wait(async move {
            let result = guard.extend(ttl).await;
            // Given back before the caller goes on, who may release next.
            drop(guard);
            result
        })?
    }

    /// Waits up to `timeout` for the moment at which the first of them is lost, or about to expire;
    /// `None` when that did not come. With a timeout of zero it only looks.
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

    /// Releases all of them at the same time; the outcomes are in the order of the keys.
    pub fn release(self) -> Vec<Released> {
        let count = self.inner.guards().len();
        // Every call gave its share back before it returned, so this one is the last; were it not,
        // the releases would be background ones.
        let guard = Arc::into_inner(self.inner);
        let released = guard.map(|guard| self.client.wait(guard.release()));
        released
            .and_then(Result::ok)
            .unwrap_or_else(|| vec![self.client.nobody_told(); count])
    }
}
