//! Work inside a lock.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::cancellation::Cancellation;
use crate::error::Error;
use crate::guard::Guard;
use crate::request::LockRequest;
use redlock_proto::{FencingToken, Token};

/// The lock around the work of [`with_lock`](crate::Redlock::with_lock).
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
    /// Whether the lock is held now, as an error for `?`.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self) -> Result<(), Error> {
        match self.guard.is_valid() {
            true => Ok(()),
            false => Err(self.guard.over()),
        }
    }

    /// How long the lock is still held for certain; zero when it is lost, over or released.
    pub fn validity(&self) -> Duration {
        self.guard.validity()
    }

    /// What proves that the lock is ours.
    pub fn token(&self) -> &Token {
        self.guard.token()
    }

    /// As [`Guard::fencing`].
    pub fn fencing(&self) -> Option<FencingToken> {
        self.guard.fencing()
    }

    /// As [`Guard::cancellation`]; cancelled at the end of the work at the latest. For what the work left in other tasks.
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

/// See [`Redlock::with_lock`](crate::Redlock::with_lock).
pub(crate) async fn with_lock<T, F, Fut>(request: LockRequest, work: F) -> Result<T, Error>
where
    F: FnOnce(Scope) -> Fut,
    Fut: Future<Output = T>,
{
    let guard = Arc::new(request.acquire().await?);
    // A scope that the work gave away does not keep the lock: it is released when the work is done.
    let end = End(&guard);
    let scope = Scope {
        guard: Arc::clone(&guard),
    };
    let outcome = {
        let mut work = pin!(work(scope));
        tokio::select! {
            // A result that is there is never given up.
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

/// Releases the lock in the background when the work is dropped, given up or panics.
struct End<'a>(&'a Guard);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.release_in_background();
    }
}
