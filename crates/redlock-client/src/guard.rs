//! A lock that is held.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redlock_proto::{ErrorKind, FencingToken, Token};
use tokio::sync::{Mutex, oneshot};

use crate::cancellation::Cancellation;
use crate::error::Error;
use crate::handle::Handle;
use crate::inbox::{Command, Granted};
use crate::limits;
use crate::lock_state::LockState;
use crate::observer::Event;
use crate::released::Released;

/// A held lock, until it is released, lost or expires.
///
/// Check [`is_valid`](Self::is_valid) between two steps of the protected work, or run the work next to
/// [`lost`](Self::lost) in a `select`. A hypervisor or scheduler can pause a process after any check: if
/// something must never happen twice, its resource has to compare [fencing tokens](Self::fencing).
///
/// ```no_run
/// use std::time::Duration;
///
/// # async fn example(redlock: redlock_client::Redlock) -> Result<(), redlock_client::Error> {
/// let guard = redlock.lock("invoice/42").acquire().await?;
/// let fence = guard.fencing();
/// // ... one step, with the fencing token ...
/// guard.extend(Duration::from_secs(10)).await?;
/// assert!(guard.is_valid());
/// // ... another step ...
/// assert!(guard.release().await.is_free());
/// # let _ = fence;
/// # Ok(())
/// # }
/// ```
///
/// # Drop
/// Dropping a guard never blocks: the client's task releases the lock on every node in the background.
/// If the runtime has shut down, the lock expires by its TTL.
#[must_use = "a guard that is dropped releases its lock at once"]
pub struct Guard {
    handle: Arc<Handle>,
    state: Arc<LockState>,
    granted: Granted,
    /// One extension at a time.
    extending: Mutex<()>,
    /// Whether the lock was released or leaked.
    is_done: AtomicBool,
}

impl Guard {
    pub(crate) fn new(handle: Arc<Handle>, state: Arc<LockState>, granted: Granted) -> Self {
        Self {
            handle,
            state,
            granted,
            extending: Mutex::new(()),
            is_done: AtomicBool::new(false),
        }
    }

    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.state.key()
    }

    /// The secret that proves who holds the lock. Do not log it.
    pub fn token(&self) -> &Token {
        &self.granted.token
    }

    /// The fencing token: a number higher than that of every earlier holder.
    ///
    /// Send it with every protected write, to a resource that [rejects lower
    /// ones](crate::FenceCheck). Extensions keep it.
    ///
    /// `None` if fewer than a majority of the nodes have `LOCK.ACQUIRE`, which Redis and Valkey lack,
    /// and for an [adopted](crate::Redlock::adopt) lock: pass the number on along with the token.
    pub fn fencing(&self) -> Option<FencingToken> {
        self.granted.fencing
    }

    /// The number of attempts that it took.
    pub fn tries(&self) -> u32 {
        self.granted.tries
    }

    /// How long the lock is certain to be held, by the local clock; zero if it is lost or expired.
    pub fn validity(&self) -> Duration {
        self.state.valid_until().since(self.handle.now())
    }

    /// Whether the lock is held now.
    pub fn is_valid(&self) -> bool {
        self.validity() > Duration::ZERO
    }

    /// When the validity ends without an extension. For timers only: the standard library's clock
    /// stops while the machine sleeps, so decide by [`is_valid`](Self::is_valid).
    pub fn valid_until(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.validity()).unwrap_or(now + FAR)
    }

    /// Extends the lock to `ttl` from now on, if a majority of the nodes still holds it.
    ///
    /// Never creates the lock anew. A TTL that ends before the current validity shortens it at once.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if too few nodes still hold the lock, [`ErrorKind::Expired`] if it has
    /// expired, [`ErrorKind::Config`] for a bad TTL. [`ErrorKind::NoQuorum`] if too few nodes replied:
    /// the lock is unchanged, and the extension can be retried.
    ///
    /// # Cancel safety
    /// The extension goes on in the background and takes effect when it succeeds.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        let ttl = limits::ttl(ttl, self.handle.config.drift)?;
        let _one_at_a_time = self.extending.lock().await;
        if let Some(error) = self.error() {
            return Err(error);
        }
        let state = Arc::clone(&self.state);
        let command = |answer| Command::Extend { state, ttl, answer };
        let valid_until = match self.handle.ask(command).await {
            Ok(result) => result?,
            Err(closed) => return Err(self.error().unwrap_or(closed)),
        };
        // The caller may have been woken late.
        if valid_until > self.handle.now() {
            Ok(())
        } else {
            Err(Error::expired())
        }
    }

    /// Releases the lock on every node. Returns once a majority is known not to hold it; the rest
    /// happens in the background.
    ///
    /// # Cancel safety
    /// The release goes on in the background.
    pub async fn release(self) -> Released {
        self.release_by_ref().await
    }

    /// Like [`release`](Self::release), for a shared guard. A second call sends nothing.
    pub(crate) async fn release_by_ref(&self) -> Released {
        let quorum = self.handle.config.quorum;
        if !self.end(released()) {
            return Released::nothing_sent(quorum);
        }
        let answered = self.handle.ask(|answer| self.release_command(Some(answer)));
        let released = answered
            .await
            .unwrap_or_else(|_| Released::nothing_sent(quorum));
        self.observe_release(Some(&released));
        released
    }

    /// Resolves when the lock is lost, or shortly before its validity ends, whatever the network does.
    /// The error has the reason.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub async fn lost(&self) -> Error {
        let cancellation = self.state.cancellation().clone();
        loop {
            if let Some(error) = self.error() {
                return error;
            }
            let validity = self.validity();
            if validity <= LAST_MOMENT {
                return Error::expired();
            }
            // In case the client's task does not get to run.
            let wait = tokio::time::sleep((validity - LAST_MOMENT).min(LOOK_AGAIN));
            tokio::select! {
                () = cancellation.cancelled() => {}
                () = wait => {}
            }
        }
    }

    /// Fires when the lock is no longer held, for work in other tasks.
    ///
    /// That is when it is lost, shortly before its validity ends, when the guard is released, leaked or
    /// dropped, and when the client is closed.
    pub fn cancellation(&self) -> Cancellation {
        Cancellation::new(self.state.cancellation().clone())
    }

    /// Leaves the lock to its TTL, without renewal or release. Any process with the token can
    /// [`adopt`](crate::Redlock::adopt) or release it.
    pub fn leak(self) -> Token {
        if self.end(leaked()) {
            let state = Arc::clone(&self.state);
            let _ = self.handle.submit_if_running(Command::Leak { state });
            self.observe_release(None);
        }
        self.granted.token
    }

    /// Has the client's task release the lock, unless that was requested before.
    pub(crate) fn release_in_background(&self) {
        if !self.end(released()) {
            return;
        }
        // Without a driver the TTL releases the lock.
        let _ = self.handle.submit_if_running(self.release_command(None));
        self.observe_release(None);
    }

    fn release_command(&self, answer: Option<oneshot::Sender<Released>>) -> Command {
        Command::Release {
            state: Arc::clone(&self.state),
            token: Some(self.granted.token),
            answer,
        }
    }

    /// Ends the lock for everyone who watches it; false if it was released or leaked before.
    fn end(&self, why: Error) -> bool {
        let is_first = !self.is_done.swap(true, Ordering::AcqRel);
        if is_first {
            self.state.end(why);
        }
        is_first
    }

    fn observe_release(&self, released: Option<&Released>) {
        self.handle.config.observe(&Event::Released {
            key: self.key(),
            released,
        });
    }

    /// Why the lock is no longer held. Call only when it is not.
    pub(crate) fn end_reason(&self) -> Error {
        self.error().unwrap_or_else(Error::expired)
    }

    /// Why the lock is no longer held; `None` while it is.
    pub(crate) fn error(&self) -> Option<Error> {
        self.state.error().cloned()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.release_in_background();
    }
}

/// Without the client behind the guard.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", &self.key().escape_ascii().to_string())
            .field("token", self.token())
            .field("fencing", &self.fencing().map(FencingToken::get))
            .field("validity", &self.validity())
            .finish_non_exhaustive()
    }
}

/// The error for those who use the lock after its release.
fn released() -> Error {
    Error::new(ErrorKind::Cancelled, "the lock was released")
}

/// The same after a leak.
fn leaked() -> Error {
    Error::new(ErrorKind::Cancelled, "the lock was left to its TTL")
}

/// How long before the end of the validity `lost` resolves at the latest. The runtime's timers are up to
/// a millisecond late.
const LAST_MOMENT: Duration = Duration::from_millis(2);

/// Stands for an instant that the standard library cannot represent.
const FAR: Duration = Duration::from_secs(1 << 30);

/// How often `lost` reads the clock: the runtime's timers stop while the machine sleeps.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
