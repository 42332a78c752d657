//! Clients that wait for an element of a list, as BLPOP does.
//!
//! ```text
//!  BLPOP on empty lists --> Waiters --> its connection executes nothing more
//!  a push, at the end of its command or script --> the first waiter's mailbox --> its connection goes on
//! ```
//!
//! Locked after the shards of the keys, so that no push comes between a look at the lists and the
//! wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use locknode_resp::Encoder;
use parking_lot::{Mutex, MutexGuard};

use crate::client::Client;
use crate::guard::Need;
use crate::observers::Observers;
use crate::time::Time;

/// All clients that wait.
#[derive(Debug)]
pub(crate) struct Waiters {
    queues: Mutex<Queues>,
    /// While anybody waits, shards record pushes.
    observers: Arc<Observers>,
}

/// A client that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    ticket: u64,
    db: u8,
    keys: Box<[Box<[u8]>]>,
    pub(crate) client: Arc<Client>,
    pub(crate) until: Option<Time>,
    /// The client wants no reply.
    is_silent: bool,
    /// What it takes, roughly.
    pub(crate) size: usize,
    /// What must be durable before the reply is sent; set before that is in the mailbox.
    need: Mutex<Need>,
    waiters: Arc<Waiters>,
}

/// Who waits for which key; by ticket, so that one of ten thousand leaves quickly.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    next_ticket: u64,
    of_client: BTreeMap<u64, Arc<Waiter>>,
    of_key: BTreeMap<Name, BTreeMap<u64, Arc<Waiter>>>,
}

/// A database and a key in it.
type Name = (u8, Box<[u8]>);

impl Waiters {
    pub(crate) fn new(observers: Arc<Observers>) -> Arc<Self> {
        Arc::new(Self {
            queues: Mutex::default(),
            observers,
        })
    }

    /// Makes a client wait for these keys, whose shards are locked; `None` when they are too many.
    pub(crate) fn add(
        self: &Arc<Self>,
        client: Arc<Client>,
        db: u8,
        keys: &[&[u8]],
        until: Option<Time>,
        is_silent: bool,
    ) -> Option<Arc<Waiter>> {
        let size = keys.iter().map(|key| key.len() + KEY_BYTES).sum();
        if size > SIZE_MAX {
            return None;
        }
        let mut queues = self.queues.lock();
        queues.next_ticket += 1;
        let waiter = Arc::new(Waiter {
            ticket: queues.next_ticket,
            db,
            keys: keys.iter().map(|key| Box::from(*key)).collect(),
            client,
            until,
            is_silent,
            size,
            need: Mutex::new(Need::NONE),
            waiters: Arc::clone(self),
        });
        for key in &waiter.keys {
            let queue = queues.of_key.entry((db, key.clone())).or_default();
            queue.insert(waiter.ticket, Arc::clone(&waiter));
        }
        let id = waiter.client.id;
        queues.of_client.insert(id, Arc::clone(&waiter));
        self.observers.add_interest();
        waiter.client.note_waiting();
        Some(waiter)
    }

    /// Ends the wait of a client with this reply; returns `false` if it does not wait.
    pub(crate) fn end(&self, client: u64, write: impl FnOnce(&mut Encoder<'_>)) -> bool {
        let mut queues = self.queues.lock();
        let waiter = queues.of_client.get(&client).map(Arc::clone);
        let Some(waiter) = waiter.filter(|waiter| queues.remove(waiter)) else {
            return false;
        };
        waiter.reply(Need::NONE, write);
        drop(queues);
        waiter.client.wake();
        true
    }

    /// Locks the queues, to serve those who wait.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock()
    }
}

impl Waiter {
    /// Returns whether it has been neither served nor removed.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiters.queues.lock().has(self)
    }

    /// Returns the keys that it waits for, the first one first.
    pub(crate) const fn keys(&self) -> &[Box<[u8]>] {
        &self.keys
    }

    /// Returns what must be durable before the mail of the client may be sent.
    pub(crate) fn need(&self) -> Need {
        *self.need.lock()
    }

    /// Leaves the reply in the mailbox, if it is wanted, to be sent once `need` is durable. The caller
    /// wakes the client.
    pub(crate) fn reply(&self, need: Need, write: impl FnOnce(&mut Encoder<'_>)) {
        *self.need.lock() = need;
        if !self.is_silent {
            self.client.put(write);
        }
    }

    /// Returns whether a reply is wanted.
    pub(crate) const fn wants_reply(&self) -> bool {
        !self.is_silent
    }

    /// Ends the wait; returns `false` if it had ended before.
    pub(crate) fn leave(&self) -> bool {
        self.waiters.queues.lock().remove(self)
    }
}

impl Queues {
    /// Returns who has waited longest for a key and is still connected.
    pub(crate) fn first(&mut self, db: u8, key: &[u8]) -> Option<Arc<Waiter>> {
        let name = (db, Box::from(key));
        loop {
            let (_, first) = self.of_key.get(&name)?.first_key_value()?;
            let first = Arc::clone(first);
            if !first.client.is_killed() {
                return Some(first);
            }
            self.remove(&first);
        }
    }

    /// Ends a wait; returns `false` if it had ended before.
    pub(crate) fn remove(&mut self, waiter: &Waiter) -> bool {
        if !self.has(waiter) {
            return false;
        }
        for key in &waiter.keys {
            let name = (waiter.db, key.clone());
            if let Some(queue) = self.of_key.get_mut(&name) {
                queue.remove(&waiter.ticket);
                if queue.is_empty() {
                    self.of_key.remove(&name);
                }
            }
        }
        self.of_client.remove(&waiter.client.id);
        waiter.waiters.observers.remove_interest();
        waiter.client.note_wait_ended();
        true
    }

    fn has(&self, waiter: &Waiter) -> bool {
        let current = self.of_client.get(&waiter.client.id);
        current.is_some_and(|current| current.ticket == waiter.ticket)
    }
}

/// What the keys that a connection waits for may take: as much as those that it watches.
const SIZE_MAX: usize = 1 << 20;

/// What such a key takes besides its two copies, roughly.
const KEY_BYTES: usize = 128;
