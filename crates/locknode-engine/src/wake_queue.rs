//! Connections whose tasks are woken a few at a time.
//!
//! Ten thousand tasks woken at once would all run before any connection that becomes ready a moment
//! later. So a message wakes a few, and each connection that has its turn wakes one more.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::client::Client;

/// See the module docs.
#[derive(Debug, Default)]
pub(crate) struct WakeQueue {
    len: AtomicUsize,
    clients: Mutex<VecDeque<Arc<Client>>>,
}

impl WakeQueue {
    /// Adds clients to wake.
    pub(crate) fn add(&self, more: Vec<Arc<Client>>) {
        if more.is_empty() {
            return;
        }
        let mut clients = self.clients.lock();
        clients.extend(more);
        self.len.store(clients.len(), Ordering::Relaxed);
    }

    /// Wakes the next connection that is still open.
    #[inline]
    pub(crate) fn wake_next(&self) {
        if self.len.load(Ordering::Relaxed) != 0 {
            self.wake_first();
        }
    }

    #[cold]
    fn wake_first(&self) {
        let mut clients = self.clients.lock();
        let open = loop {
            match clients.pop_front() {
                Some(client) if client.is_killed() => {}
                next => break next,
            }
        };
        if clients.is_empty() {
            *clients = VecDeque::new();
        }
        self.len.store(clients.len(), Ordering::Relaxed);
        drop(clients);
        if let Some(client) = open {
            client.wake();
        }
    }

    /// Wakes all of them: a task that ends while it is woken passes nothing on.
    pub(crate) fn wake_all(&self) {
        while self.len.load(Ordering::Relaxed) != 0 {
            self.wake_first();
        }
    }
}
