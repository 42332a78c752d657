//! WATCH: which connections watch which keys, and whether one of theirs has changed.
//!
//! ```text
//!  WATCH --> Watching (of the session) --> Watches: key -> clients
//!  a change of the key --> Observers::report --> Watches::report --> Client::is_touched
//!  EXEC: is touched, or a key has expired? --> nil
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use crate::client::Client;
use crate::key_change::{ChangeKind, KeyChange};
use crate::key_hash::DATABASES;
use crate::observers::Observers;

/// The watched keys of all connections, by database.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    watchers: Mutex<[Watchers; DATABASES]>,
}

/// Who watches each key of a database, by ascending id.
type Watchers = BTreeMap<Box<[u8]>, Vec<Arc<Client>>>;

/// The keys that one connection watches; it stops when this is dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    observers: Arc<Observers>,
    client: Arc<Client>,
    keys: Vec<Watched>,
    size: usize,
}

/// A watched key.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) db: u8,
    pub(crate) key: Box<[u8]>,
    /// Whether it existed at WATCH. EXEC compares this, since no report tells of an expiry that
    /// nobody has seen.
    pub(crate) existed: bool,
}

impl Watches {
    /// Notes for everyone who watches the key that it has changed.
    ///
    /// A cleared database needs no note: at EXEC its keys are missing, or were created again.
    pub(crate) fn report(&self, change: &KeyChange) {
        if matches!(change.kind, ChangeKind::Cleared { .. }) {
            return;
        }
        let mut watchers = self.watchers.lock();
        let keys = watchers.get_mut(usize::from(change.db));
        let touched = keys.and_then(|keys| keys.remove(&change.key));
        // While the lock is held, so that none of them ends its watch in between.
        for client in touched.into_iter().flatten() {
            client.is_touched.store(true, Ordering::Relaxed);
        }
    }
}

impl Watching {
    /// Begins to watch nothing.
    pub(crate) fn new(observers: &Arc<Observers>, client: &Arc<Client>) -> Self {
        observers.add_interest();
        Self {
            observers: Arc::clone(observers),
            client: Arc::clone(client),
            keys: Vec::new(),
            size: 0,
        }
    }

    /// Watches one key more, unless it is watched already; returns `false` when it would be too many.
    /// The key's shard must be locked.
    pub(crate) fn add(&mut self, db: u8, key: &[u8], existed: bool) -> bool {
        let mut watchers = self.observers.watches.watchers.lock();
        let Some(keys) = watchers.get_mut(usize::from(db)) else {
            return true;
        };
        let clients = keys.get(key);
        let place = clients.map_or(Err(0), |clients| place_of(clients, &self.client));
        let Err(place) = place else {
            return true;
        };
        if self.size + key.len() + KEY_BYTES > WATCH_MAX {
            return false;
        }
        self.size += key.len() + KEY_BYTES;
        let clients = keys.entry(key.into()).or_default();
        clients.insert(place, Arc::clone(&self.client));
        self.keys.push(Watched {
            db,
            key: key.into(),
            existed,
        });
        self.client.note_watched(self.keys.len());
        true
    }

    pub(crate) fn keys(&self) -> &[Watched] {
        &self.keys
    }

    /// Returns about how many bytes it occupies.
    pub(crate) const fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watchers = self.observers.watches.watchers.lock();
        for Watched { db, key, .. } in &self.keys {
            let Some(keys) = watchers.get_mut(usize::from(*db)) else {
                continue;
            };
            if let Some(clients) = keys.get_mut(key) {
                if let Ok(place) = place_of(clients, &self.client) {
                    clients.remove(place);
                }
                if clients.is_empty() {
                    keys.remove(key);
                }
            }
        }
        self.client.is_touched.store(false, Ordering::Relaxed);
        self.client.note_watched(0);
        self.observers.remove_interest();
    }
}

/// Returns a client's place among others, or where it would be.
fn place_of(clients: &[Arc<Client>], client: &Client) -> Result<usize, usize> {
    clients.binary_search_by_key(&client.id, |other| other.id)
}

/// The most that one connection's watched keys may occupy. A lock library watches one key.
pub(crate) const WATCH_MAX: usize = 1 << 20;

/// What a watched key occupies besides its two copies, roughly.
const KEY_BYTES: usize = 128;
