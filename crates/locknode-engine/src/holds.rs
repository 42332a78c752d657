//! The keys of suspended scripts, and who waits for them.
//!
//! A script that takes long is suspended time and again so that others are served. What it has
//! looked at must stay as it saw it, and what it was told in KEYS it will probably look at: commands
//! on these keys wait until it ends. Everything else is served, and no command sees half of a script.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

#[cfg(feature = "compat")]
use crate::script::Signal;
#[cfg(feature = "compat")]
use crate::time::Time;

/// Every suspended script's keys.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    count: AtomicUsize,
    /// How many have ended.
    ended: AtomicU64,
    list: Mutex<Vec<Arc<Hold>>>,
}

/// One suspended script's keys.
#[derive(Debug)]
pub(crate) struct Hold {
    /// The client that sent the script.
    client: u64,
    keys: Mutex<BTreeSet<(u8, Box<[u8]>)>>,
    has_written: AtomicBool,
    #[cfg(feature = "compat")]
    signal: Arc<Signal>,
}

/// What SCRIPT KILL has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Killing {
    Nothing,
    /// Every script has written.
    Unkillable,
    Done,
}

impl Holds {
    /// Returns whether a script is suspended.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        cfg!(feature = "compat") && self.count.load(Ordering::Acquire) != 0
    }

    /// Returns the memory of all suspended scripts.
    pub(crate) fn used_bytes(&self) -> u64 {
        if !self.are_there() {
            return 0;
        }
        let list = self.list.lock();
        list.iter().map(|hold| hold.used_bytes()).sum()
    }

    /// Returns how many scripts have ended that were suspended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns whether another client's script holds a key.
    pub(crate) fn has(&self, client: u64, db: u8, key: &[u8]) -> bool {
        let name = (db, Box::from(key));
        let list = self.list.lock();
        let mut others = list.iter().filter(|hold| hold.client != client);
        others.any(|hold| hold.keys.lock().contains(&name))
    }

    /// Returns whether no further script may be suspended.
    #[cfg(feature = "compat")]
    pub(crate) fn is_full(&self) -> bool {
        self.count.load(Ordering::Acquire) >= SUSPENDED_MAX
    }

    /// Adds a script.
    #[cfg(feature = "compat")]
    pub(crate) fn add(&self, client: u64, signal: &Arc<Signal>) -> Arc<Hold> {
        let hold = Arc::new(Hold {
            client,
            keys: Mutex::default(),
            has_written: AtomicBool::new(false),
            signal: Arc::clone(signal),
        });
        let mut list = self.list.lock();
        list.push(Arc::clone(&hold));
        self.count.store(list.len(), Ordering::Release);
        hold
    }

    /// Removes a script that has ended.
    #[cfg(feature = "compat")]
    pub(crate) fn remove(&self, hold: &Arc<Hold>) {
        let mut list = self.list.lock();
        list.retain(|each| !Arc::ptr_eq(each, hold));
        self.count.store(list.len(), Ordering::Release);
        self.ended.fetch_add(1, Ordering::Release);
    }

    /// Ends the oldest script that has not written.
    pub(crate) fn kill(&self) -> Killing {
        let list = self.list.lock();
        let has_written = |hold: &Hold| hold.has_written.load(Ordering::Acquire);
        match list.iter().find(|hold| !has_written(hold)) {
            Some(hold) => {
                hold.stop();
                Killing::Done
            }
            None if list.is_empty() => Killing::Nothing,
            None => Killing::Unkillable,
        }
    }
}

impl Hold {
    /// Holds a key.
    pub(crate) fn take(&self, db: u8, key: &[u8]) {
        self.keys.lock().insert((db, key.into()));
    }

    /// Notes that the script has written.
    pub(crate) fn note_write(&self) {
        self.has_written.store(true, Ordering::Release);
    }

    fn stop(&self) {
        #[cfg(feature = "compat")]
        self.signal.stop();
    }

    fn used_bytes(&self) -> u64 {
        #[cfg(feature = "compat")]
        return self.signal.bytes() as u64;
        #[cfg(not(feature = "compat"))]
        0
    }
}

/// Scripts that may be suspended at a time, each with a thread and its memory. Others wait.
#[cfg(feature = "compat")]
const SUSPENDED_MAX: usize = 8;

/// A connection's script that takes long, as its session sees it.
#[cfg(feature = "compat")]
pub(crate) trait LongScript: std::any::Any + std::fmt::Debug + Send {
    /// Returns until when it needs nothing from its connection.
    fn wait_end(&self, now: Time) -> Option<Time>;

    /// Ends it.
    fn stop(&self);
}
