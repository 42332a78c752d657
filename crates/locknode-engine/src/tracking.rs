//! Client-side caching: which client may have which key cached, and who is sent its invalidation.
//!
//! ```text
//!  read of a tracking client --> keys: key -> clients ------sent when the key changes, then forgotten
//!  CLIENT TRACKING ON BCAST ---> prefixes: prefix -> clients -sent at the end of the command
//! ```
//!
//! As in Redis, keys are tracked by name, whatever their database.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use locknode_resp::{Encoder, Protocol};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::client::{Client, Clients};
use crate::observers::{Cause, ChangeKind, KeyChange, Observers, Tracked, TrackingTotals};

/// What all tracking clients of a node have cached; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    clients: AtomicUsize,
    /// Whether [`Tracking::deliver`] has something to send.
    is_pending: AtomicBool,
    table: Mutex<Table>,
}

/// How a client tracks, as set by CLIENT TRACKING ON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackingMode {
    /// The client that is sent the invalidations instead; 0 for none.
    pub(crate) redirect: u64,
    /// It is sent every changed key with its prefixes, read or not.
    pub(crate) is_broadcast: bool,
    /// Its own writes are not sent to it.
    pub(crate) is_no_loop: bool,
    pub(crate) choice: Choice,
}

/// Which reads are tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Choice {
    #[default]
    All,
    /// Those after CLIENT CACHING YES.
    OptIn,
    /// Those not after CLIENT CACHING NO.
    OptOut,
}

/// A connection's tracking, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Tracker {
    observers: Arc<Observers>,
    id: u64,
    pub(crate) mode: TrackingMode,
    /// CLIENT CACHING has been sent, for the next command or transaction.
    pub(crate) is_chosen: bool,
}

/// Why a client cannot be sent keys with these prefixes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PrefixRefusal {
    /// The given prefix and one that the client has already.
    OverlapsExisting(Box<[u8]>, Box<[u8]>),
    /// Two of the given ones.
    OverlapsGiven(Box<[u8]>, Box<[u8]>),
    TooMany,
}

#[derive(Debug, Default)]
struct Table {
    clients: BTreeMap<u64, Entry>,
    /// Who has read a key since its last invalidation, by ascending id. Clients that are gone stay
    /// until then.
    keys: BTreeMap<Box<[u8]>, SmallVec<[u64; 2]>>,
    items: usize,
    /// The key that was evicted last; the next one in order is next.
    hand: Box<[u8]>,
    prefixes: BTreeMap<Box<[u8]>, Broadcast>,
    /// A database was cleared, and nobody has been sent it yet.
    is_cleared: bool,
}

/// A tracking client.
#[derive(Debug)]
struct Entry {
    client: Arc<Client>,
    mode: TrackingMode,
    is_broken: bool,
}

/// Who wants all changes of keys with a prefix, and what has changed since they were sent some.
#[derive(Debug, Default)]
struct Broadcast {
    clients: Vec<u64>,
    /// With the client that changed the key first.
    changed: BTreeMap<Box<[u8]>, Option<u64>>,
}

impl Tracker {
    /// Begins, or continues in another mode, a client's tracking. In broadcasting mode the prefixes
    /// are added to those that it has.
    pub(crate) fn start(
        slot: &mut Option<Box<Self>>,
        observers: &Arc<Observers>,
        client: &Arc<Client>,
        mode: TrackingMode,
        prefixes: &[&[u8]],
    ) {
        let tracker = slot.get_or_insert_with(|| {
            observers.add_interest();
            observers.tracking.clients.fetch_add(1, Ordering::Relaxed);
            Box::new(Self {
                observers: Arc::clone(observers),
                id: client.id(),
                mode,
                is_chosen: false,
            })
        });
        tracker.mode = mode;
        let mut table = observers.tracking.table.lock();
        table.clients.insert(
            client.id(),
            Entry {
                client: Arc::clone(client),
                mode,
                is_broken: false,
            },
        );
        if mode.is_broadcast {
            table.add_prefixes(client.id(), prefixes);
        }
    }

    /// Returns whether the reads of the running command are tracked.
    pub(crate) fn tracks_reads(&self) -> bool {
        let is_wanted = match self.mode.choice {
            Choice::All => true,
            Choice::OptIn => self.is_chosen,
            Choice::OptOut => !self.is_chosen,
        };
        is_wanted && !self.mode.is_broadcast
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let tracking = &self.observers.tracking;
        tracking.table.lock().forget(self.id);
        tracking.clients.fetch_sub(1, Ordering::Relaxed);
        self.observers.remove_interest();
    }
}

impl Tracking {
    /// Notes a read, or sends the change to those who may have the key cached. Changes for
    /// broadcasting clients wait for [`Tracking::deliver`].
    pub(crate) fn report(&self, change: &KeyChange, cause: Cause, clients: &Clients) {
        if self.clients.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut table = self.table.lock();
        match change.kind {
            ChangeKind::Missed => return,
            ChangeKind::Read => {
                if let Some(id) = cause.client {
                    table.remember(&change.key, id, clients);
                }
                return;
            }
            ChangeKind::Cleared { .. } => {
                table.keys.clear();
                table.items = 0;
                table.is_cleared = true;
            }
            // A deadline that passes is nobody's own write: Redis keeps an expiry that a NOLOOP
            // client runs into from that client.
            ChangeKind::Expired => table.invalidate(&change.key, None, clients),
            ChangeKind::Created
            | ChangeKind::Written
            | ChangeKind::DeadlineMoved
            | ChangeKind::DeadlineRemoved
            | ChangeKind::Removed => table.invalidate(&change.key, cause.client, clients),
        }
        if table.is_cleared || !table.prefixes.is_empty() {
            self.is_pending.store(true, Ordering::Relaxed);
        }
    }

    /// Sends what waits for the end of a command: many keys in one message, and the news that all
    /// keys went.
    pub(crate) fn deliver(&self, clients: &Clients) {
        if self.is_pending.swap(false, Ordering::Relaxed) {
            self.table.lock().deliver(clients);
        }
    }

    /// Forgets keys beyond `tracking-table-max-keys`, or some of them, after it was lowered.
    pub(crate) fn enforce_limit(&self, clients: &Clients) {
        let mut table = self.table.lock();
        let keys_max = clients.tracked_keys_max();
        let excess = table.keys.len().saturating_sub(keys_max);
        for _ in 0..excess.min(EVICTIONS_MAX) {
            table.evict(clients);
        }
    }

    /// Returns why a client cannot be sent keys with these prefixes too, if it cannot.
    pub(crate) fn prefix_refusal(&self, id: u64, given: &[&[u8]]) -> Option<PrefixRefusal> {
        let table = self.table.lock();
        let held: Vec<&[u8]> = table.prefixes_of(id).collect();
        for (index, prefix) in given.iter().enumerate() {
            if let Some(other) = held.iter().find(|held| overlap(held, prefix)) {
                return Some(PrefixRefusal::OverlapsExisting(
                    (*prefix).into(),
                    (*other).into(),
                ));
            }
            let rest = given.get(index + 1..).unwrap_or_default();
            if let Some(other) = rest.iter().find(|other| overlap(prefix, other)) {
                return Some(PrefixRefusal::OverlapsGiven(
                    (*prefix).into(),
                    (*other).into(),
                ));
            }
        }
        (held.len() + given.len() > PREFIXES_MAX).then_some(PrefixRefusal::TooMany)
    }

    /// Returns how a client tracks; `None` if it does not.
    pub(crate) fn of(&self, id: u64) -> Option<Tracked> {
        let table = self.table.lock();
        let entry = table.clients.get(&id)?;
        Some(Tracked {
            redirect: entry.mode.redirect,
            is_broadcast: entry.mode.is_broadcast,
            is_broken: entry.is_broken,
        })
    }

    /// Returns the prefixes of a broadcasting client in order.
    pub(crate) fn prefixes_of(&self, id: u64) -> Vec<Box<[u8]>> {
        self.table.lock().prefixes_of(id).map(Box::from).collect()
    }

    pub(crate) fn totals(&self) -> TrackingTotals {
        let table = self.table.lock();
        TrackingTotals {
            clients: table.clients.len(),
            keys: table.keys.len(),
            items: table.items,
            prefixes: table.prefixes.len(),
        }
    }
}

impl Table {
    fn remember(&mut self, key: &[u8], id: u64, clients: &Clients) {
        if let Some(ids) = self.keys.get_mut(key) {
            let Err(place) = ids.binary_search(&id) else {
                return;
            };
            ids.insert(place, id);
            self.items += 1;
            // Connections that come and go must not pile up.
            if ids.len() >= READERS_CHECKED && ids.len().is_power_of_two() {
                let before = ids.len();
                ids.retain(|id| self.clients.contains_key(id));
                self.items -= before - ids.len();
            }
            return;
        }
        if self.keys.len() >= clients.tracked_keys_max() {
            self.evict(clients);
        }
        self.keys.insert(key.into(), SmallVec::from_slice(&[id]));
        self.items += 1;
    }

    /// Forgets a key and sends its invalidation, because there is no room to remember it.
    fn evict(&mut self, clients: &Clients) {
        let after = (Bound::Excluded(&*self.hand), Bound::Unbounded);
        let next = self.keys.range::<[u8], _>(after).next();
        let Some((key, _)) = next.or_else(|| self.keys.first_key_value()) else {
            return;
        };
        self.hand = key.clone();
        let key = self.hand.clone();
        self.tell_readers(&key, None, clients);
    }

    fn invalidate(&mut self, key: &[u8], writer: Option<u64>, clients: &Clients) {
        for (prefix, broadcast) in &mut self.prefixes {
            if key.starts_with(prefix) {
                broadcast.changed.entry(key.into()).or_insert(writer);
            }
        }
        self.tell_readers(key, writer, clients);
    }

    fn tell_readers(&mut self, key: &[u8], writer: Option<u64>, clients: &Clients) {
        let Some(ids) = self.keys.remove(key) else {
            return;
        };
        self.items -= ids.len();
        for id in ids {
            // A client that broadcasts now may have tracked its reads before.
            if let Some(entry) = self.clients.get_mut(&id)
                && !entry.mode.is_broadcast
                && !(entry.mode.is_no_loop && writer == Some(id))
            {
                entry.tell(Some(&[key]), clients);
            }
        }
    }

    fn deliver(&mut self, clients: &Clients) {
        if std::mem::take(&mut self.is_cleared) {
            for entry in self.clients.values_mut() {
                entry.tell(None, clients);
            }
        }
        for broadcast in self.prefixes.values_mut() {
            let changed = std::mem::take(&mut broadcast.changed);
            if changed.is_empty() {
                continue;
            }
            let all: Vec<&[u8]> = changed.keys().map(|key| &**key).collect();
            for id in &broadcast.clients {
                let Some(entry) = self.clients.get_mut(id) else {
                    continue;
                };
                if !entry.mode.is_no_loop {
                    entry.tell(Some(&all), clients);
                    continue;
                }
                let of_others = changed.iter().filter(|(_, writer)| **writer != Some(*id));
                let keys: Vec<&[u8]> = of_others.map(|(key, _)| &**key).collect();
                if !keys.is_empty() {
                    entry.tell(Some(&keys), clients);
                }
            }
        }
    }

    fn add_prefixes(&mut self, id: u64, prefixes: &[&[u8]]) {
        let all: &[&[u8]] = &[b""];
        for prefix in if prefixes.is_empty() { all } else { prefixes } {
            let clients = &mut self.prefixes.entry((*prefix).into()).or_default().clients;
            if !clients.contains(&id) {
                clients.push(id);
            }
        }
    }

    fn prefixes_of(&self, id: u64) -> impl Iterator<Item = &[u8]> {
        let with_clients = self.prefixes.iter();
        let of_client = with_clients.filter(move |(_, all)| all.clients.contains(&id));
        of_client.map(|(prefix, _)| &**prefix)
    }

    fn forget(&mut self, id: u64) {
        let Some(entry) = self.clients.remove(&id) else {
            return;
        };
        if entry.mode.is_broadcast {
            self.prefixes.retain(|_, broadcast| {
                broadcast.clients.retain(|client| *client != id);
                !broadcast.clients.is_empty()
            });
        }
        if self.clients.is_empty() {
            (self.keys, self.items) = (BTreeMap::new(), 0);
        }
    }
}

impl Entry {
    /// Sends the invalidation of keys, or of all, to the client or to the one that it redirects to.
    fn tell(&mut self, keys: Option<&[&[u8]]>, clients: &Clients) {
        let redirect = self.mode.redirect;
        if redirect == 0 {
            return send(&self.client, keys);
        }
        match clients.find(redirect) {
            Some(target) => send(&target, keys),
            None => {
                self.is_broken = true;
                if self.client.protocol() == Protocol::Resp3 {
                    self.client.send(|push| {
                        push.push(2);
                        push.bulk(b"tracking-redir-broken");
                        push.integer(i64::try_from(redirect).unwrap_or(i64::MAX));
                    });
                }
            }
        }
    }
}

/// Sends an invalidation, unless the client speaks RESP2, which has no pushes.
fn send(target: &Client, keys: Option<&[&[u8]]>) {
    if target.protocol() == Protocol::Resp3 {
        target.send(|push| {
            push.push(2);
            push.bulk(b"invalidate");
            write_keys(push, keys);
        });
    }
}

fn write_keys(push: &mut Encoder<'_>, keys: Option<&[&[u8]]>) {
    match keys {
        None => push.null(),
        Some(keys) => {
            push.array(keys.len());
            keys.iter().for_each(|key| push.bulk(key));
        }
    }
}

/// Returns whether there are keys that begin with both.
fn overlap(a: &[u8], b: &[u8]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// The most keys that one look at the limit forgets: their messages take some milliseconds.
const EVICTIONS_MAX: usize = 10_000;

/// The most prefixes of a client: each is compared with each key that changes. Redis has no limit.
const PREFIXES_MAX: usize = 1_000;

/// From here on the readers of a key are searched for clients that are gone, whenever their number
/// has doubled.
const READERS_CHECKED: usize = 64;
