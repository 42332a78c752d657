//! Where the connections of one `serve` call wait for the disk.
//!
//! ```text
//!  connection -- waits --> Lobby <-- next turn of serve: everyone who is ready has asked --> disk's thread
//!  connection <-- woken -- Lobby <-- turn of serve <-- one wake-up per sync ----------------- disk's thread
//! ```
//!
//! Waking a task from another thread costs a lock and a system call, waking it from its own thread neither. So the
//! disk's thread wakes `serve` only, which wakes the connections; and `serve` asks the disk's thread for a sync when all
//! connections that were ready have had their turn, so that they share it.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// See the module text.
#[derive(Debug, Default)]
pub(crate) struct Lobby {
    waiters: Mutex<Vec<Waker>>,
    /// The task of `serve`, while it is polled.
    server: Mutex<Option<Waker>>,
    /// Somebody waits since the last turn of `serve`.
    has_come: AtomicBool,
    /// The rounds of the disk that the waiters were told of.
    seen: AtomicU64,
}

/// A `serve` call's promise to take turns; see [`Lobby::attend`].
#[derive(Debug)]
pub(crate) struct Attendance<'a> {
    lobby: &'a Lobby,
}

impl Lobby {
    /// Wakes `waker` after the disk's next round. Returns whether the caller has to ask the disk's thread for it, because
    /// no `serve` does.
    pub(crate) fn wait(&self, waker: &Waker) -> bool {
        lock(&self.waiters).push(waker.clone());
        if self.has_come.swap(true, Ordering::AcqRel) {
            return false;
        }
        match &*lock(&self.server) {
            Some(server) => {
                server.wake_by_ref();
                false
            }
            None => {
                self.has_come.store(false, Ordering::Release);
                true
            }
        }
    }

    /// A turn of `serve`: wakes those who wait when the disk has done a round since the last turn. Returns whether the
    /// disk's thread is to be asked for another.
    pub(crate) fn turn(&self, server: &Waker, round: u64) -> bool {
        {
            let mut known = lock(&self.server);
            if !known.as_ref().is_some_and(|known| known.will_wake(server)) {
                *known = Some(server.clone());
            }
        }
        if self.seen.swap(round, Ordering::AcqRel) != round {
            self.wake_waiters();
        }
        self.has_come.swap(false, Ordering::AcqRel)
    }

    /// The disk has done a round, or will do none any more.
    pub(crate) fn round_is_done(&self) {
        match &*lock(&self.server) {
            Some(server) => server.wake_by_ref(),
            None => self.wake_waiters(),
        }
    }

    /// Until the guard is dropped, and `serve` with it, there are turns.
    pub(crate) fn attend(&self) -> Attendance<'_> {
        Attendance { lobby: self }
    }

    fn wake_waiters(&self) {
        let waiters = mem::take(&mut *lock(&self.waiters));
        waiters.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Attendance<'_> {
    /// Those who wait look for themselves from here on.
    fn drop(&mut self) {
        *lock(&self.lobby.server) = None;
        self.lobby.has_come.store(false, Ordering::Release);
        self.lobby.wake_waiters();
    }
}

/// What is behind these locks is whole after every statement.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
