//! Locks that their owner can enter again.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use redlock_proto::{FencingToken, Token};

use crate::error::Error;
use crate::guard::Guard;
use crate::handle::Handle;
use crate::released::Released;
use crate::request::LockRequest;

/// An owner of locks: who holds a lock through it can enter the same lock again, and the lock is released when it
/// has been left as often as it was entered.
///
/// Clones are the same owner: hand a clone to code that may enter a lock which its caller already holds, and to no
/// other. The count lives in this process; the nodes know one token per lock.
///
/// ```no_run
/// # async fn example(redlock: redlock_client::Redlock) -> Result<(), redlock_client::Error> {
/// let owner = redlock.reentrant();
/// let outer = owner.enter(redlock.lock("account/7")).await?;
/// let inner = owner.enter(redlock.lock("account/7")).await?;
/// assert_eq!(inner.entries(), 2);
/// assert!(inner.leave().await.is_none(), "still held by the outer one");
/// assert!(outer.leave().await.is_some(), "released");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Reentrant {
    client: Arc<Handle>,
    keys: Arc<Mutex<HashMap<Box<[u8]>, Entry>>>,
}

/// One key of one owner. The lock around it makes entering one at a time, also while the nodes are asked.
#[derive(Clone, Debug, Default)]
struct Entry(Arc<tokio::sync::Mutex<Weak<Guard>>>);

impl Reentrant {
    pub(crate) fn new(client: &Arc<Handle>) -> Self {
        Self {
            client: Arc::clone(client),
            keys: Arc::default(),
        }
    }

    /// Enters the request's lock: at once if this owner holds it, otherwise by acquiring it. The request's options
    /// count for the first entry.
    ///
    /// # Errors
    /// Those of [`LockRequest::acquire`], and [`ErrorKind::Config`](crate::ErrorKind::Config) for a request of another
    /// client, whose lock of that key is another one. Entering again a lock that was lost meanwhile is
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) or [`ErrorKind::Expired`](crate::ErrorKind::Expired) until
    /// everyone has left it.
    ///
    /// # Cancel safety
    /// As [`LockRequest::acquire`]; an entry that was not returned does not count.
    pub async fn enter(&self, request: LockRequest) -> Result<ReentrantGuard, Error> {
        if !request.is_of(&self.client) {
            return Err(Error::config(
                "a reentrant owner enters locks of the client that it was made by, or of its clones",
            ));
        }
        let entry = self.entry(request.key());
        let mut held = entry.0.lock().await;
        if let Some(guard) = held.upgrade() {
            return match guard.is_valid() {
                true => Ok(ReentrantGuard { guard }),
                false => Err(guard.over()),
            };
        }
        let guard = Arc::new(request.acquire().await?);
        *held = Arc::downgrade(&guard);
        Ok(ReentrantGuard { guard })
    }

    fn entry(&self, key: &[u8]) -> Entry {
        let mut keys = self.keys.lock();
        if let Some(entry) = keys.get(key) {
            return entry.clone();
        }
        keys.retain(|_, entry| entry.is_in_use());
        let entry = Entry::default();
        keys.insert(key.into(), entry.clone());
        entry
    }
}

impl Entry {
    /// Whether somebody is in the lock or about to enter it.
    fn is_in_use(&self) -> bool {
        let is_held = |guard: tokio::sync::MutexGuard<'_, Weak<Guard>>| guard.strong_count() > 0;
        Arc::strong_count(&self.0) > 1 || self.0.try_lock().is_ok_and(is_held)
    }
}

/// One entry into a lock. Dropping it leaves; the last one releases the lock in the background.
#[derive(Debug)]
#[must_use = "an entry that is dropped leaves the lock at once"]
pub struct ReentrantGuard {
    guard: Arc<Guard>,
}

impl ReentrantGuard {
    /// The key, without the client's prefix.
    pub fn key(&self) -> &[u8] {
        self.guard.key()
    }

    /// What proves that the lock is this owner's.
    pub fn token(&self) -> &Token {
        self.guard.token()
    }

    /// As [`Guard::fencing`].
    pub fn fencing(&self) -> Option<FencingToken> {
        self.guard.fencing()
    }

    /// How often the owner is in the lock now.
    pub fn entries(&self) -> usize {
        Arc::strong_count(&self.guard)
    }

    /// How long the lock is still held for certain; zero when it is lost or over.
    pub fn validity(&self) -> Duration {
        self.guard.validity()
    }

    /// Whether the lock is held now.
    pub fn is_valid(&self) -> bool {
        self.guard.is_valid()
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

    /// As [`Guard::lost`].
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub async fn lost(&self) -> Error {
        self.guard.lost().await
    }

    /// Leaves the lock. The last one to leave releases it and gets the outcome.
    ///
    /// # Cancel safety
    /// The release goes on in the background.
    pub async fn leave(self) -> Option<Released> {
        match Arc::into_inner(self.guard) {
            Some(guard) => Some(guard.release().await),
            None => None,
        }
    }
}
