//! Reentrant locks.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::error::Error;
use crate::guard::Guard;
use crate::handle::Handle;
use crate::released::Released;
use crate::request::LockRequest;

/// An owner of locks, which can enter a lock again while it holds it.
///
/// The lock is released when it has been left as often as it was entered. Clones are the same owner:
/// give them only to code that may enter a lock its caller already holds. The count lives in this
/// process; the nodes see one token per lock.
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

/// One key of one owner. Its mutex serialises entries, even while one waits for the nodes.
#[derive(Clone, Debug, Default)]
struct Entry(Arc<tokio::sync::Mutex<Weak<Guard>>>);

impl Reentrant {
    pub(crate) fn new(client: &Arc<Handle>) -> Self {
        Self {
            client: Arc::clone(client),
            keys: Arc::default(),
        }
    }

    /// Enters the request's lock: at once if this owner holds it, otherwise by acquiring it. Only the
    /// first entry uses the request's options.
    ///
    /// # Errors
    /// Those of [`LockRequest::acquire`], and [`ErrorKind::Config`](crate::ErrorKind::Config) for a
    /// request of another client. Entering a lock that was lost meanwhile fails with
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) or [`ErrorKind::Expired`](crate::ErrorKind::Expired)
    /// until all entries have been left.
    ///
    /// # Cancel safety
    /// As [`LockRequest::acquire`]. An entry that was not returned does not count.
    pub async fn enter(&self, request: LockRequest) -> Result<ReentrantGuard, Error> {
        if !Arc::ptr_eq(&request.handle, &self.client) {
            return Err(Error::config(
                "the request belongs to another client than this reentrant owner",
            ));
        }
        let entry = self.entry(request.key());
        let mut held = entry.0.lock().await;
        if let Some(guard) = held.upgrade() {
            if guard.is_valid() {
                return Ok(ReentrantGuard { guard });
            }
            return Err(guard.end_reason());
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
    /// Whether anyone holds the lock or is entering it.
    fn is_in_use(&self) -> bool {
        let is_held = |guard: tokio::sync::MutexGuard<'_, Weak<Guard>>| guard.strong_count() > 0;
        Arc::strong_count(&self.0) > 1 || self.0.try_lock().is_ok_and(is_held)
    }
}

/// One entry into a lock, with the methods of its [`Guard`] by reference. Dropping it leaves the lock;
/// dropping the last one releases it in the background.
#[derive(Debug)]
#[must_use = "an entry that is dropped leaves the lock at once"]
pub struct ReentrantGuard {
    guard: Arc<Guard>,
}

impl Deref for ReentrantGuard {
    type Target = Guard;

    fn deref(&self) -> &Guard {
        &self.guard
    }
}

impl ReentrantGuard {
    /// The number of entries that the owner has now.
    pub fn entries(&self) -> usize {
        Arc::strong_count(&self.guard)
    }

    /// Leaves the lock. The last entry releases it and returns the outcome.
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
