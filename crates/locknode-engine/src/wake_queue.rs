//! Those who get their turn one by one.
//!
//! Ten thousand tasks woken at once would all run before any connection that becomes ready a moment
//! later. So a message wakes a few, and each connection that has its turn wakes one more.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// See the module docs.
#[derive(Debug)]
pub(crate) struct WakeQueue<T> {
    len: AtomicUsize,
    waiting: Mutex<VecDeque<T>>,
}

impl<T> WakeQueue<T> {
    /// Adds to the end.
    pub(crate) fn add(&self, more: Vec<T>) {
        if more.is_empty() {
            return;
        }
        let mut waiting = self.waiting.lock();
        waiting.extend(more);
        self.len.store(waiting.len(), Ordering::Relaxed);
    }

    /// Returns whether nobody waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Relaxed) == 0
    }

    /// Takes the first one that `is_wanted`, and forgets those before it.
    pub(crate) fn take(&self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut waiting = self.waiting.lock();
        let wanted = loop {
            match waiting.pop_front() {
                Some(other) if !is_wanted(&other) => {}
                next => break next,
            }
        };
        if waiting.is_empty() {
            *waiting = VecDeque::new();
        }
        self.len.store(waiting.len(), Ordering::Relaxed);
        wanted
    }
}

impl<T> Default for WakeQueue<T> {
    fn default() -> Self {
        Self {
            len: AtomicUsize::new(0),
            waiting: Mutex::default(),
        }
    }
}
