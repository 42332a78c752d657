//! Several locks at once, all or none.

use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use redlock_proto::{ErrorKind, FencingToken, RenewPolicy, RetryPolicy};

use crate::error::Error;
use crate::guard::Guard;
use crate::released::Released;
use crate::request::{LockRequest, options};

/// A request for several locks, all or none.
///
/// It acquires them one after the other in the order of their keys, so two clients cannot deadlock. If
/// one cannot be acquired, it releases those before it. The first lock must outlive the wait for the
/// last: use a long [`ttl`](Self::ttl), or [`renew`](Self::renew).
///
/// ```no_run
/// # async fn example(redlock: redlock_client::Redlock) -> Result<(), redlock_client::Error> {
/// let both = redlock.lock_all(["account/1", "account/2"]).acquire().await?;
/// assert_eq!(both.guards().len(), 2);
/// let outcomes = both.release().await;
/// assert!(outcomes.iter().all(|released| released.is_free()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until `acquire` or `try_acquire`"]
pub struct MultiLockRequest {
    keys: BTreeSet<Box<[u8]>>,
    each: LockRequest,
}

impl MultiLockRequest {
    pub(crate) fn new<K: AsRef<[u8]>>(
        each: LockRequest,
        keys: impl IntoIterator<Item = K>,
    ) -> Self {
        Self {
            keys: keys.into_iter().map(|key| key.as_ref().into()).collect(),
            each,
        }
    }

    options!(each);

    /// Tries once for each lock. `None` means that another client holds one of them; the caller then
    /// holds none.
    ///
    /// # Errors
    /// Those of [`LockRequest::try_acquire`]. The caller then holds none of the locks.
    ///
    /// # Cancel safety
    /// The locks acquired so far are released in the background.
    pub async fn try_acquire(mut self) -> Result<Option<MultiGuard>, Error> {
        self.each = self.each.retry(RetryPolicy::tries(1));
        self.acquire().await.map(Some).or_else(Error::none_if_busy)
    }

    /// Acquires all locks.
    ///
    /// # Errors
    /// Those of [`LockRequest::acquire`], and [`ErrorKind::Expired`] if a lock expired while the client
    /// waited for the others. The caller then holds none of the locks.
    ///
    /// # Cancel safety
    /// The locks acquired so far are released in the background.
    pub async fn acquire(self) -> Result<MultiGuard, Error> {
        if self.keys.is_empty() || self.keys.len() > KEYS_MAX {
            return Err(Error::config(format!(
                "lock_all takes 1 to {KEYS_MAX} keys, got {}",
                self.keys.len()
            )));
        }
        let requests: Vec<LockRequest> = self
            .keys
            .iter()
            .map(|key| self.each.with_key(key))
            .collect();
        acquire_in_order(requests).await
    }
}

/// Acquires one lock after the other, all or none, within the retry policy of the first.
pub(crate) async fn acquire_in_order(requests: Vec<LockRequest>) -> Result<MultiGuard, Error> {
    for request in &requests {
        request.check()?;
    }
    let [first, ..] = &requests[..] else {
        return Ok(MultiGuard { guards: Vec::new() });
    };
    let policy = first.terms.retry;
    let deadline = policy.deadline(first.handle.now());
    let mut guards: Vec<Guard> = Vec::with_capacity(requests.len());
    for request in requests {
        let Some(rest) = policy.rest(request.handle.now(), deadline) else {
            return Err(Error::new(
                ErrorKind::Timeout,
                "the wait ended before all locks were acquired",
            ));
        };
        // An error drops the guards so far, which releases their locks.
        guards.push(request.retry(rest).acquire().await?);
        if let Some(old) = guards.iter().find(|guard| !guard.is_valid()) {
            return Err(old.error().unwrap_or_else(|| {
                Error::new(
                    ErrorKind::Expired,
                    "a lock expired while waiting for the others: use a longer TTL, or renew",
                )
            }));
        }
    }
    Ok(MultiGuard { guards })
}

/// Several held locks. Dropping it releases them all in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its locks at once"]
pub struct MultiGuard {
    guards: Vec<Guard>,
}

impl MultiGuard {
    /// The locks in the order of their keys.
    pub fn guards(&self) -> &[Guard] {
        &self.guards
    }

    /// The fencing tokens of the locks, in the order of their keys; see [`Guard::fencing`].
    pub fn fencing(&self) -> impl ExactSizeIterator<Item = Option<FencingToken>> {
        self.guards.iter().map(Guard::fencing)
    }

    /// How long all of them are certain to be held; zero if one is lost or expired.
    pub fn validity(&self) -> Duration {
        let each = self.guards.iter().map(Guard::validity);
        each.min().unwrap_or(Duration::ZERO)
    }

    /// Whether all of them are held now.
    pub fn is_valid(&self) -> bool {
        self.validity() > Duration::ZERO
    }

    /// Extends all of them at the same time, as [`Guard::extend`] does.
    ///
    /// # Errors
    /// The first error in the order of the keys; the other locks may have been extended.
    ///
    /// # Cancel safety
    /// The extensions go on in the background and take effect when they succeed.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let each = self.guards.iter().map(|guard| guard.extend(ttl));
        all(each.collect()).await.into_iter().collect()
    }

    /// Releases all of them at the same time. The outcomes are in the order of the keys.
    ///
    /// # Cancel safety
    /// The releases go on in the background.
    pub async fn release(self) -> Vec<Released> {
        all(self.guards.into_iter().map(Guard::release).collect()).await
    }

    /// Resolves when the first of them is lost, or shortly before its validity ends.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub async fn lost(&self) -> Error {
        let mut each: Vec<_> = self
            .guards
            .iter()
            .map(|guard| Box::pin(guard.lost()))
            .collect();
        poll_fn(|context| {
            for lost in &mut each {
                if let Poll::Ready(error) = lost.as_mut().poll(context) {
                    return Poll::Ready(error);
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// The results of all futures, in their order.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut outputs: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(ready) => *output = Some(ready),
                    Poll::Pending => is_done = false,
                }
            }
        }
        if is_done {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// The most locks of one request: each is a round trip, and the first must outlive them all.
const KEYS_MAX: usize = 1_000;
