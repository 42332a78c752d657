//! The connections of one `serve` call that wait for the disk.
//!
//! ```text
//!  connection -- waits --> SyncWaiters -- next poll of serve, one request for all --> disk thread
//!  connection <-- woken -- SyncWaiters <-- poll of serve <-- one wake-up per sync --- disk thread
//! ```
//!
//! Waking a task from another thread costs a lock and a system call; waking it from its own thread
//! costs neither. So the disk thread wakes only `serve`, which wakes the connections. And `serve`
//! requests a sync only after all ready connections have been polled, so that they share it.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// See the module docs.
#[derive(Debug, Default)]
pub(crate) struct SyncWaiters {
    waiters: Mutex<Vec<Waker>>,
    /// The task of `serve`, while it is polled.
    server: Mutex<Option<Waker>>,
    /// Whether a connection began to wait since `serve` was last polled.
    has_new_waiter: AtomicBool,
    /// The last sync round that the waiters were woken for.
    last_round: AtomicU64,
}

/// Marks `serve` as running until it is dropped with it.
#[derive(Debug)]
pub(crate) struct ServeGuard<'a>(pub(crate) &'a SyncWaiters);

impl SyncWaiters {
    /// Wakes `waker` after the next sync round.
    ///
    /// Returns whether the caller has to wake the disk thread itself, because no `serve` is
    /// running.
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        lock(&self.waiters).push(waker.clone());
        if self.has_new_waiter.swap(true, Ordering::AcqRel) {
            return false;
        }
        match &*lock(&self.server) {
            Some(server) => {
                server.wake_by_ref();
                false
            }
            None => {
                self.has_new_waiter.store(false, Ordering::Release);
                true
            }
        }
    }

    /// Called each time `serve` is polled: wakes the waiters if a sync round has finished since the
    /// last call.
    ///
    /// Returns whether to wake the disk thread for another round.
    pub(crate) fn poll_serve(&self, server: &Waker, round: u64) -> bool {
        {
            let mut known = lock(&self.server);
            if !known.as_ref().is_some_and(|known| known.will_wake(server)) {
                *known = Some(server.clone());
            }
        }
        if self.last_round.swap(round, Ordering::AcqRel) != round {
            self.wake_waiters();
        }
        self.has_new_waiter.swap(false, Ordering::AcqRel)
    }

    /// Called when a sync round has finished, or there will be no more.
    pub(crate) fn round_is_done(&self) {
        match &*lock(&self.server) {
            Some(server) => server.wake_by_ref(),
            None => self.wake_waiters(),
        }
    }

    fn wake_waiters(&self) {
        let waiters = mem::take(&mut *lock(&self.waiters));
        waiters.into_iter().for_each(Waker::wake);
    }
}

impl Drop for ServeGuard<'_> {
    /// Wakes the waiters, so that they check for themselves from here on.
    fn drop(&mut self) {
        *lock(&self.0.server) = None;
        self.0.has_new_waiter.store(false, Ordering::Release);
        self.0.wake_waiters();
    }
}

/// The data behind these locks is consistent after every statement.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
