//! Work under a lock.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::cancellation::Cancellation;
use crate::error::Error;
use crate::guard::Guard;
use crate::redlock::Redlock;
use crate::request::LockRequest;
use redlock_proto::{FencingToken, Token};

/// The lock that [`with_lock`](crate::Redlock::with_lock) holds around its work.
///
/// ```no_run
/// # async fn example(redlock: redlock_client::Redlock) -> Result<(), redlock_client::Error> {
/// let request = redlock.lock("report");
/// let lines = redlock.with_lock(request, async |scope| {
///     let mut lines = 0;
///     while lines < 1000 {
///         scope.check()?;
///         lines += 1;
///     }
///     Ok::<u32, redlock_client::Error>(lines)
/// });
/// assert_eq!(lines.await??, 1000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Scope {
    guard: Arc<Guard>,
}

impl Scope {
    /// Fails if the lock is no longer held, for use with `?`.
    ///
    /// # Errors
    /// The reason why it is not held.
    pub fn check(&self) -> Result<(), Error> {
        if self.guard.is_valid() {
            Ok(())
        } else {
            Err(self.guard.end_reason())
        }
    }

    /// How long the lock is certain to be held; zero if it is lost, expired or released.
    pub fn validity(&self) -> Duration {
        self.guard.validity()
    }

    /// The secret that proves who holds the lock.
    pub fn token(&self) -> &Token {
        self.guard.token()
    }

    /// As [`Guard::fencing`].
    pub fn fencing(&self) -> Option<FencingToken> {
        self.guard.fencing()
    }

    /// As [`Guard::cancellation`]. Fires at the end of the work at the latest, for tasks that the work
    /// started.
    pub fn cancellation(&self) -> Cancellation {
        self.guard.cancellation()
    }

    /// As [`Guard::extend`].
    ///
    /// # Errors
    /// Those of [`Guard::extend`].
    ///
    /// # Cancel safety
    /// As [`Guard::extend`].
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.guard.extend(ttl).await
    }
}

impl Redlock {
    /// Acquires a lock, does `work` while it is held, and releases it.
    ///
    /// If the lock is lost, or shortly before its validity ends, the work's future is dropped. The
    /// result of finished work is always returned: neither a loss at the same moment nor a failed
    /// release hides it.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), redlock_client::Error> {
    /// let total = redlock
    ///     .with_lock(redlock.lock("report"), async |scope| {
    ///         scope.check()?;
    ///         Ok::<u32, redlock_client::Error>(7)
    ///     })
    ///     .await??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`LockRequest::acquire`], and [`ErrorKind::Lost`](crate::ErrorKind::Lost) or
    /// [`ErrorKind::Expired`](crate::ErrorKind::Expired) if the work was dropped.
    ///
    /// # Cancel safety
    /// The work's future is dropped and the lock released in the background.
    pub async fn with_lock<T, F, Fut>(&self, request: LockRequest, work: F) -> Result<T, Error>
    where
        F: FnOnce(Scope) -> Fut,
        Fut: Future<Output = T>,
    {
        let guard = Arc::new(request.acquire().await?);
        // The lock is released when the work ends, even if the work has passed its scope on.
        let end = End(&guard);
        let scope = Scope {
            guard: Arc::clone(&guard),
        };
        let outcome = {
            let mut work = pin!(work(scope));
            tokio::select! {
                // Finished work always returns its result.
                biased;
                value = &mut work => Ok(value),
                error = guard.lost() => Err(error),
            }
        };
        if outcome.is_ok() {
            guard.release_by_ref().await;
        }
        drop(end);
        outcome
    }
}

/// Releases the lock in the background when the work is dropped or panics.
struct End<'a>(&'a Guard);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.release_in_background();
    }
}
