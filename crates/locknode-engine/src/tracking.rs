//! Client-side caching: which client may have which key cached, and who is sent its invalidation.
//!
//! ```text
//!  read of a tracking client --> keys: key -> clients ------sent when the key changes, then forgotten
//!  CLIENT TRACKING ON BCAST ---> prefixes: prefix -> clients -sent at the end of the command
//! ```
//!
//! As in Redis, keys are tracked by name, whatever their database.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::client::{Client, Clients};
use crate::invalidation::{self, Invalidation};
use crate::key_change::{Cause, ChangeKind, KeyChange};
use crate::observers::{Observers, Tracked, TrackingTotals};

/// What all tracking clients of a node have cached; see the module docs.
#[derive(Debug, Default)]
pub(crate) struct Tracking {
    clients: AtomicUsize,
    /// Whether [`Tracking::deliver`] has something to send.
    is_pending: AtomicBool,
    was_quarantined: AtomicBool,
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
    /// The prefixes of which a key has changed since the last message.
    changed: BTreeSet<Box<[u8]>>,
    /// A database was cleared, and nobody has been sent it yet.
    is_cleared: bool,
    /// The bytes of all keys.
    bytes: usize,
    /// Who was sent something and sleeps.
    asleep: Vec<Arc<Client>>,
}

/// A tracking client.
#[derive(Debug)]
struct Entry {
    client: Arc<Client>,
    mode: TrackingMode,
    is_broken: bool,
    prefixes: BTreeSet<Box<[u8]>>,
}

/// Who wants all changes of keys with a prefix, and what has changed since they were sent some.
#[derive(Debug, Default)]
struct Broadcast {
    clients: BTreeSet<u64>,
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
        let entry = table.clients.entry(client.id()).or_insert_with(|| Entry {
            client: Arc::clone(client),
            mode,
            is_broken: false,
            prefixes: BTreeSet::new(),
        });
        (entry.mode, entry.is_broken) = (mode, false);
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
            ChangeKind::Read => {
                if let Some(id) = cause.client {
                    table.remember(&change.key, id, clients);
                }
            }
            ChangeKind::Cleared { .. } => {
                table.forget_keys();
                table.is_cleared = true;
            }
            ChangeKind::Missed => {}
            // A deadline that passes is nobody's own write: Redis keeps an expiry that a NOLOOP
            // client runs into from that client.
            ChangeKind::Expired => table.invalidate(&change.key, None, clients),
            ChangeKind::Created
            | ChangeKind::Written
            | ChangeKind::DeadlineMoved
            | ChangeKind::DeadlineRemoved
            | ChangeKind::Removed => table.invalidate(&change.key, cause.client, clients),
        }
        if table.is_cleared || !table.changed.is_empty() {
            self.is_pending.store(true, Ordering::Relaxed);
        }
        wake(table, clients);
    }

    /// Sends what waits for the end of a command: many keys in one message, and the news that all
    /// keys went.
    pub(crate) fn deliver(&self, clients: &Clients) {
        if self.is_pending.swap(false, Ordering::Relaxed) {
            let mut table = self.table.lock();
            table.deliver(clients);
            wake(table, clients);
        }
    }

    /// Forgets keys beyond `tracking-table-max-keys`, or some of them, after it was lowered. Sends
    /// all clients that all keys may have changed when the quarantine has ended: rueidislock tries
    /// again only when it is sent something, and what it tried before was refused.
    pub(crate) fn look_after(&self, is_quarantined: bool, clients: &Clients) {
        let mut table = self.table.lock();
        if self.was_quarantined.swap(is_quarantined, Ordering::Relaxed) && !is_quarantined {
            table.is_cleared = true;
            table.deliver(clients);
        }
        let keys_max = clients.tracked_keys_max();
        let excess = table.keys.len().saturating_sub(keys_max);
        for _ in 0..excess.min(EVICTIONS_MAX) {
            table.evict(clients);
        }
        wake(table, clients);
    }

    /// Returns why a client cannot be sent keys with these prefixes too, if it cannot.
    pub(crate) fn prefix_refusal(&self, id: u64, given: &[&[u8]]) -> Option<PrefixRefusal> {
        let table = self.table.lock();
        let held: Vec<&[u8]> = table.prefixes_of(id).collect();
        let all = held.iter().chain(given);
        let size: usize = all.map(|prefix| prefix.len() + PREFIX_SIZE).sum();
        if size > PREFIXES_SIZE_MAX {
            return Some(PrefixRefusal::TooMany);
        }
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
        None
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
        let is_full =
            |table: &Self| table.bytes + key.len() > BYTES_MAX || table.items >= ITEMS_MAX;
        while !self.keys.is_empty() && is_full(self) {
            self.evict(clients);
        }
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
        self.bytes += key.len();
        self.items += 1;
    }

    fn forget_keys(&mut self) {
        self.keys = BTreeMap::new();
        (self.items, self.bytes) = (0, 0);
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
        let mut text = Some(key);
        while let Some(prefix) = text.and_then(|text| self.longest_prefix(text)) {
            if let Some(broadcast) = self.prefixes.get_mut(prefix) {
                if broadcast.changed.is_empty() {
                    self.changed.insert(prefix.into());
                }
                broadcast.changed.entry(key.into()).or_insert(writer);
            }
            text = prefix.split_last().map(|(_, shorter)| shorter);
        }
        self.tell_readers(key, writer, clients);
    }

    /// Returns the longest prefix of a text that some client wants.
    fn longest_prefix<'t>(&self, mut text: &'t [u8]) -> Option<&'t [u8]> {
        loop {
            let up_to = (Bound::Unbounded, Bound::Included(text));
            let (found, _) = self.prefixes.range::<[u8], _>(up_to).next_back()?;
            // Every wanted prefix of the text lies before what was found, or is it, and so begins it.
            let pairs = text.iter().zip(&**found);
            let common = text.get(..pairs.take_while(|(a, b)| a == b).count())?;
            if common.len() == found.len() {
                return Some(common);
            }
            text = common;
        }
    }

    fn tell_readers(&mut self, key: &[u8], writer: Option<u64>, clients: &Clients) {
        let Some(ids) = self.keys.remove(key) else {
            return;
        };
        self.items -= ids.len();
        self.bytes -= key.len();
        let keys = [key];
        let invalidation = Invalidation::new(Some(&keys));
        for id in ids {
            // A client that broadcasts now may have tracked its reads before.
            if let Some(entry) = self.clients.get_mut(&id)
                && !entry.mode.is_broadcast
                && entry.client.may_read(key)
                && !(entry.mode.is_no_loop && writer == Some(id))
            {
                self.asleep.extend(entry.tell(&invalidation, clients));
            }
        }
    }

    fn deliver(&mut self, clients: &Clients) {
        if std::mem::take(&mut self.is_cleared) {
            let invalidation = Invalidation::new(None);
            for entry in self.clients.values_mut() {
                self.asleep.extend(entry.tell(&invalidation, clients));
            }
        }
        for prefix in std::mem::take(&mut self.changed) {
            // Those who wanted it may be gone.
            let Some(broadcast) = self.prefixes.get_mut(&prefix) else {
                continue;
            };
            let changed = std::mem::take(&mut broadcast.changed);
            if changed.is_empty() {
                continue;
            }
            let writers: BTreeSet<_> = changed.values().copied().flatten().collect();
            let all: Vec<&[u8]> = changed.keys().map(|key| &**key).collect();
            let invalidation = Invalidation::new(Some(&all));
            for id in &broadcast.clients {
                let Some(entry) = self.clients.get_mut(id) else {
                    continue;
                };
                let wants_all = !entry.mode.is_no_loop || !writers.contains(id);
                if wants_all && all.iter().all(|key| entry.client.may_read(key)) {
                    self.asleep.extend(entry.tell(&invalidation, clients));
                    continue;
                }
                let keys = changed.iter().filter(|(key, writer)| {
                    (wants_all || **writer != Some(*id)) && entry.client.may_read(key)
                });
                let keys: Vec<&[u8]> = keys.map(|(key, _)| &**key).collect();
                if !keys.is_empty() {
                    let invalidation = Invalidation::new(Some(&keys));
                    self.asleep.extend(entry.tell(&invalidation, clients));
                }
            }
        }
    }

    fn add_prefixes(&mut self, id: u64, prefixes: &[&[u8]]) {
        let all: &[&[u8]] = &[b""];
        for prefix in if prefixes.is_empty() { all } else { prefixes } {
            let broadcast = self.prefixes.entry((*prefix).into()).or_default();
            broadcast.clients.insert(id);
            if let Some(entry) = self.clients.get_mut(&id) {
                entry.prefixes.insert((*prefix).into());
            }
        }
    }

    fn prefixes_of(&self, id: u64) -> impl Iterator<Item = &[u8]> {
        let entry = self.clients.get(&id).into_iter();
        entry.flat_map(|entry| entry.prefixes.iter().map(|prefix| &**prefix))
    }

    fn forget(&mut self, id: u64) {
        let Some(entry) = self.clients.remove(&id) else {
            return;
        };
        for prefix in entry.prefixes {
            if let Some(broadcast) = self.prefixes.get_mut(&prefix) {
                broadcast.clients.remove(&id);
                if broadcast.clients.is_empty() {
                    self.prefixes.remove(&prefix);
                }
            }
        }
        if self.clients.is_empty() {
            self.forget_keys();
        }
    }
}

impl Entry {
    /// Sends an invalidation to the client, or to the one that it redirects to; returns whose task
    /// must be woken.
    fn tell(&mut self, invalidation: &Invalidation<'_>, clients: &Clients) -> Option<Arc<Client>> {
        let redirect = self.mode.redirect;
        if redirect == 0 {
            let is_asleep = invalidation.send(&self.client, false);
            return is_asleep.then(|| Arc::clone(&self.client));
        }
        let Some(target) = clients.find(redirect) else {
            self.is_broken = true;
            invalidation::send_broken(&self.client, redirect);
            return None;
        };
        invalidation.send(&target, true).then_some(target)
    }
}

/// Wakes who was sent something, a few at a time.
fn wake(mut table: MutexGuard<'_, Table>, clients: &Clients) {
    let asleep = std::mem::take(&mut table.asleep);
    drop(table);
    if !asleep.is_empty() {
        clients.wake_in_turn(asleep);
    }
}

/// Returns whether there are keys that begin with both.
fn overlap(a: &[u8], b: &[u8]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// The most keys that one look at the limit forgets: their messages take some milliseconds.
const EVICTIONS_MAX: usize = 10_000;

/// The bytes of a client's prefixes, each with the cost of comparing it with each key that changes.
/// Redis has no limit.
const PREFIXES_SIZE_MAX: usize = 64 << 10;
const PREFIX_SIZE: usize = 64;

/// The bytes of all remembered keys: keys can be long, and a client may read many that are not there.
const BYTES_MAX: usize = 256 << 20;

/// Pairs of a key and a client: ten for each key in a full table.
const ITEMS_MAX: usize = 10_000_000;

/// From here on the readers of a key are searched for clients that are gone, whenever their number
/// has doubled.
const READERS_CHECKED: usize = 64;
