//! A lock that is held.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use redlock_proto::{ErrorKind, FencingToken, Token};
use tokio::sync::Mutex;

use crate::cancellation::Cancellation;
use crate::error::Error;
use crate::handle::Handle;
use crate::inbox::{Command, Granted};
use crate::limits;
use crate::lock_state::LockState;
use crate::observer::Event;
use crate::released::Released;

/// A lock that is held until it is released, lost or its validity ends.
///
/// Between two steps of the work that the lock protects, look at [`is_valid`](Self::is_valid), or do the work next
/// to [`lost`](Self::lost) in a `select`. A process can be paused after any look, by its garbage collector or its
/// hypervisor: what must never happen twice needs a resource that compares [fencing tokens](Self::fencing).
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
/// Dropping a guard never blocks: it asks the client's task to release the lock on every node in the background. If
/// the runtime has ended, the TTL releases it.
#[must_use = "a guard that is dropped releases its lock at once"]
pub struct Guard {
    handle: Arc<Handle>,
    state: Arc<LockState>,
    token: Token,
    fencing: Option<FencingToken>,
    tries: u32,
    /// One extension at a time.
    extending: Mutex<()>,
    /// Whether the lock was released or left alone.
    is_done: AtomicBool,
}

impl Guard {
    pub(crate) fn new(handle: Arc<Handle>, state: Arc<LockState>, granted: Granted) -> Self {
        Self {
            handle,
            state,
            token: granted.token,
            fencing: granted.fencing,
            tries: granted.tries,
            extending: Mutex::new(()),
            is_done: AtomicBool::new(false),
        }
    }

    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.state.key()
    }

    /// What proves that the lock is ours. It opens the lock: not for logs.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The fencing token: a number that is higher than that of every earlier holder. Send it along with what the lock
    /// protects, to a resource that [rejects lower ones](crate::FenceCheck). It stays as it is for as long as the guard
    /// lives, extensions included.
    ///
    /// `None` when fewer than a majority of the nodes have `LOCK.ACQUIRE`, as Redis and Valkey, and for a lock that was
    /// [adopted](crate::Redlock::adopt): hand it on with the token.
    pub fn fencing(&self) -> Option<FencingToken> {
        self.fencing
    }

    /// How many attempts it took.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// How long the lock is still held for certain, by the local clock; zero when it is lost or over.
    pub fn validity(&self) -> Duration {
        self.state.valid_until().since(self.handle.now())
    }

    /// Whether the lock is held now.
    pub fn is_valid(&self) -> bool {
        self.validity() > Duration::ZERO
    }

    /// When the validity ends if the lock is not extended, for a timer. Decide by [`is_valid`](Self::is_valid): the
    /// standard library's clock stands still while the machine sleeps.
    pub fn valid_until(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.validity()).unwrap_or(now + FAR)
    }

    /// Lets the lock live for `ttl` from now on, if a majority of the nodes still holds it. Never makes it anew. A
    /// TTL that ends before the present validity shortens it at once.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] when so many nodes do not hold it any more that it is lost, [`ErrorKind::Expired`] when
    /// its validity is over; [`ErrorKind::NoQuorum`] when too few nodes answered: the lock is then as it was, and
    /// the extension can be tried again. [`ErrorKind::Config`] for a TTL that makes no sense.
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
        let extended = self
            .handle
            .ask(Duration::ZERO, |answer| Command::Extend {
                state,
                ttl,
                answer,
            })
            .await;
        let valid_until = match extended {
            Ok(result) => result?,
            Err(closed) => return Err(self.error().unwrap_or(closed)),
        };
        // The caller may have been woken late.
        match valid_until > self.handle.now() {
            true => Ok(()),
            false => Err(expired()),
        }
    }

    /// Releases the lock on every node. Returns once a majority of them is known not to hold it any more; the others
    /// are told in the background.
    ///
    /// # Cancel safety
    /// The release goes on in the background.
    pub async fn release(self) -> Released {
        self.release_by_ref().await
    }

    /// Like [`release`](Self::release), for whoever shares the guard. The second call reaches nobody.
    pub(crate) async fn release_by_ref(&self) -> Released {
        let quorum = self.handle.config.quorum;
        if self.is_done.swap(true, Ordering::AcqRel) {
            return Released::nobody_told(quorum);
        }
        self.state.end(released());
        let (state, token) = (Arc::clone(&self.state), self.token);
        let answered = self.handle.ask(Duration::ZERO, |answer| Command::Release {
            state,
            token: Some(token),
            answer: Some(answer),
        });
        let released = answered
            .await
            .unwrap_or_else(|_| Released::nobody_told(quorum));
        self.handle.config.observe(&Event::Released {
            key: self.state.key(),
            released: Some(&released),
        });
        released
    }

    /// Resolves when the lock is lost, or shortly before its validity ends: at that moment at the latest, whatever
    /// the network does. The error says which.
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
                return expired();
            }
            // The timer is for the case that the client's task does not get to it.
            let wait = tokio::time::sleep((validity - LAST_MOMENT).min(LOOK_AGAIN));
            tokio::select! {
                () = cancellation.cancelled() => {}
                () = wait => {}
            }
        }
    }

    /// Is cancelled when the lock is not held any more, whatever ended it: at its loss, shortly before its
    /// validity ends, when the guard is released, left or dropped, and when the client is closed. For work in other
    /// tasks.
    pub fn cancellation(&self) -> Cancellation {
        Cancellation::new(self.state.cancellation().clone())
    }

    /// Lets the lock live until its TTL ends, without renewal and without release; whoever has the token can
    /// [`adopt`](crate::Redlock::adopt) or release it.
    pub fn leak(self) -> Token {
        self.is_done.store(true, Ordering::Release);
        self.state.end(left());
        let state = Arc::clone(&self.state);
        let _ = self.handle.submit_if_running(Command::Leak { state });
        self.handle.config.observe(&Event::Released {
            key: self.state.key(),
            released: None,
        });
        self.token
    }

    /// Has the client's task release the lock, if that was not asked for before.
    pub(crate) fn release_in_background(&self) {
        if self.is_done.swap(true, Ordering::AcqRel) {
            return;
        }
        self.state.end(released());
        let command = Command::Release {
            state: Arc::clone(&self.state),
            token: Some(self.token),
            answer: None,
        };
        // Without a driver the TTL releases the lock.
        let _ = self.handle.submit_if_running(command);
        self.handle.config.observe(&Event::Released {
            key: self.state.key(),
            released: None,
        });
    }

    /// Why the lock is not held, which it is not.
    pub(crate) fn over(&self) -> Error {
        self.error().unwrap_or_else(expired)
    }

    /// Why the lock is no longer held, if it is not.
    pub(crate) fn error(&self) -> Option<Error> {
        self.state.error().cloned()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.release_in_background();
    }
}

/// Short: the client behind the guard is of no interest to who looks at a guard.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard")
            .field("key", &self.key().escape_ascii().to_string())
            .field("token", &self.token)
            .field("fencing", &self.fencing.map(FencingToken::get))
            .field("validity", &self.validity())
            .finish_non_exhaustive()
    }
}

/// What whoever still looks at a lock is told after its release.
fn released() -> Error {
    Error::new(ErrorKind::Cancelled, "the lock was released")
}

/// The same after it was left to its TTL.
fn left() -> Error {
    Error::new(ErrorKind::Cancelled, "the lock was left to its TTL")
}

fn expired() -> Error {
    Error::new(
        ErrorKind::Expired,
        "the lock's validity is over: stop what it protects, or use a longer TTL",
    )
}

/// How long before the end of the validity `lost` resolves at the latest: the runtime's timers are late by up to a
/// millisecond.
const LAST_MOMENT: Duration = Duration::from_millis(2);

/// What stands for a moment that the standard library cannot name.
const FAR: Duration = Duration::from_secs(1 << 30);

/// How often `lost` looks at the clock: the runtime's timers stand still while the machine sleeps.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
