//! One shard of the lock table: an index of small hash tables over a [`Slab`].
//!
//! The index is split into sub-tables by hash bits. Each grows alone, so no insert ever waits for a
//! rehash of millions of keys. A sub-table holds slot addresses and a part of each key's hash; the
//! slab holds keys, tokens and deadlines. All sixteen databases share the table: the database number is part
//! of the key.
//!
//! Invariant: a lock whose deadline has passed is never visible, whether or not the sweep has
//! reached it.

mod changes;
mod collections;
mod labels;
mod look_ahead;
mod table;

use std::sync::Arc;

pub use look_ahead::LOOK_AHEAD_MAX;

use crate::durable::{LockRecord, Record, Which};
use crate::fence::{Fences, Grant};
use crate::guard::Permit;
use crate::key_change::{ChangeKind, KeyChange};
use crate::key_hash::{DATABASES, KeyHash, KeyHasher};
use crate::observers::Observers;
use crate::slab::{KEY_LEN_MAX, SLOTS_MAX, Slab, SlotId};
use crate::tally::Tally;
use crate::time::{Deadline, Time};
use crate::values::{Value, Values};

use table::{Position, Table};

/// One shard; see the module docs.
#[derive(Debug)]
pub(crate) struct Shard {
    tables: Box<[Table]>,
    slab: Slab,
    hasher: KeyHasher,
    fences: Fences,
    values: Values,
    observers: Arc<Observers>,
    /// Recorded for the observers, and not yet reported.
    changes: Vec<KeyChange>,
    /// The lists that were pushed to while somebody waits for an element; by database and key.
    #[cfg(feature = "compat")]
    pushed: Vec<(u8, Box<[u8]>)>,
    keys: [u64; DATABASES],
    volatile: [u64; DATABASES],
    /// Keys in all databases.
    total: u64,
    expired: u64,
    hits: u64,
    misses: u64,
    pub(crate) tally: Tally,
}

/// Where a key is, or would be. Valid until the shard next changes; an
/// [`Entry`](crate::entry::Entry) borrows the shard that long.
///
/// Two words, so that it is passed in registers. A probe written to memory by fields and read as a
/// whole has to wait until all writes before it are done, and those to new memory are slow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    hash: KeyHash,
    /// The slot in the low half, and its place in the key's sub-table in the high one; or [`ABSENT`].
    place: u64,
}

impl Probe {
    const fn absent(hash: KeyHash) -> Self {
        Self {
            hash,
            place: ABSENT,
        }
    }

    fn at(hash: KeyHash, position: Position, id: SlotId) -> Self {
        let place = ((position as u64) << u32::BITS) | u64::from(id.to_bits());
        Self { hash, place }
    }

    /// The hash of the key.
    pub(crate) const fn hash(self) -> KeyHash {
        self.hash
    }

    /// Returns whether the key holds a live lock.
    pub(crate) const fn is_live(self) -> bool {
        self.place != ABSENT
    }

    #[expect(clippy::cast_possible_truncation, reason = "the low half")]
    fn slot(self) -> Option<SlotId> {
        let id = SlotId::from_bits(self.place as u32);
        self.is_live().then_some(id)
    }

    const fn position(self) -> Position {
        (self.place >> u32::BITS) as usize
    }
}

/// The place of a key that is missing: no sub-table is so large.
const ABSENT: u64 = u64::MAX;

/// What one slice of a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Locks reclaimed.
    pub expired: usize,
    /// Work done, in slots examined.
    pub visited: usize,
    /// Whether the slice completed a pass over everything.
    pub finished_pass: bool,
}

impl Shard {
    pub(crate) fn new(
        tables: usize,
        hasher: KeyHasher,
        fences: Fences,
        observers: Arc<Observers>,
    ) -> Self {
        debug_assert!(tables.is_power_of_two());
        Self {
            tables: (0..tables).map(|_| Table::default()).collect(),
            slab: Slab::new(),
            hasher,
            fences,
            values: Values::default(),
            observers,
            changes: Vec::new(),
            #[cfg(feature = "compat")]
            pushed: Vec::new(),
            keys: [0; DATABASES],
            volatile: [0; DATABASES],
            total: 0,
            expired: 0,
            hits: 0,
            misses: 0,
            tally: Tally::default(),
        }
    }

    /// Finds a key. An expired lock is reclaimed and not found.
    #[inline(always)]
    pub(crate) fn probe(&mut self, now: Time, db: u8, hash: KeyHash, key: &[u8]) -> Probe {
        let absent = Probe::absent(hash);
        // The slab cannot compare a key longer than any that it holds.
        if key.len() > KEY_LEN_MAX {
            return absent;
        }
        let table = &self.tables[hash.table(self.tables.len())];
        match table.find(hash.tag(), |id| self.slab.deadline_if(id, db, key)) {
            Some((position, id, deadline)) if deadline.is_past(now) => {
                self.reclaim(Probe::at(hash, position, id))
            }
            Some((position, id, _)) => Probe::at(hash, position, id),
            None => absent,
        }
    }

    /// Removes an expired lock.
    #[cold]
    fn reclaim(&mut self, expired: Probe) -> Probe {
        self.note_of(expired, ChangeKind::Expired);
        self.take_ended(expired);
        self.expired += 1;
        Probe::absent(expired.hash)
    }

    /// Returns the value and the deadline of a live lock.
    #[inline]
    pub(crate) fn entry(&self, probe: Probe) -> Option<(&[u8], Deadline)> {
        probe.slot().map(|id| self.slab.entry(id))
    }

    /// Returns the value of a live lock.
    pub(crate) fn value(&self, probe: Probe) -> Option<&[u8]> {
        probe.slot().map(|id| self.slab.value(id))
    }

    /// Returns the deadline of a live lock.
    pub(crate) fn deadline(&self, probe: Probe) -> Option<Deadline> {
        probe.slot().map(|id| self.slab.deadline(id))
    }

    /// Returns the grant of a live lock.
    pub(crate) fn grant(&self, probe: Probe) -> Option<Grant> {
        probe.slot().map(|id| self.slab.grant(id))
    }

    /// Creates the key, or overwrites its value and deadline.
    ///
    /// A token that did not hold the key before is a new grant and raises the key's fence counter
    /// `[F1]`; a lock that is on the log stays there through every change `[L3]`.
    pub(crate) fn put(
        &mut self,
        probe: Probe,
        db: u8,
        key: &[u8],
        value: &[u8],
        permit: Permit,
    ) -> Grant {
        let deadline = permit.deadline;
        let kind = match probe.slot() {
            Some(_) => ChangeKind::Written,
            None => ChangeKind::Created,
        };
        self.note_put(db, key, kind, permit);
        let grant = match probe.slot() {
            Some(id) if self.slab.value(id) == value && !self.is_collection(probe) => {
                return self.move_deadline(id, permit);
            }
            Some(id) => {
                let was_logged = self.slab.grant(id).is_logged();
                let counter = self.fences.raise(db, key, permit.floor);
                let grant = Grant::new(counter, permit.is_logged || was_logged);
                if !self.is_collection(probe) && self.slab.replace_value(id, value) {
                    self.slab.set_grant(id, grant);
                    return self.move_deadline(id, permit);
                }
                self.take(probe);
                grant
            }
            None => Grant::new(self.fences.raise(db, key, permit.floor), permit.is_logged),
        };
        self.insert(db, probe.hash, key, value, deadline, grant);
        grant
    }

    /// Counts that a key was put, which was live before or not.
    #[inline(always)]
    pub(crate) fn count_put(
        &mut self,
        now: Time,
        was_live: bool,
        hash: KeyHash,
        grant: Grant,
        (db, key): (u8, &[u8]),
    ) {
        if was_live {
            self.tally.extended();
        } else {
            self.tally.granted(now, hash, grant.counter(), db, key);
        }
    }

    /// Inserts a lock as it was granted, now or earlier. The key must be missing.
    pub(crate) fn insert(
        &mut self,
        db: u8,
        hash: KeyHash,
        key: &[u8],
        value: &[u8],
        deadline: Deadline,
        grant: Grant,
    ) {
        let id = self.slab.insert(db, key, value, deadline, grant);
        self.index(db, hash, id, deadline);
    }

    /// Enters a new slot into the index.
    #[inline(always)]
    fn index(&mut self, db: u8, hash: KeyHash, id: SlotId, deadline: Deadline) {
        self.count(db, deadline, 1);
        self.tables[hash.table(self.tables.len())].insert(hash.tag(), id);
    }

    /// Moves the deadline of a live lock, if there is one; returns its grant.
    pub(crate) fn set_deadline(&mut self, probe: Probe, permit: Permit) -> Option<Grant> {
        let id = probe.slot()?;
        if self.observers.are_there() {
            self.note_deadline(probe, permit.deadline);
        }
        Some(self.move_deadline(id, permit))
    }

    /// Returns a key's fence counter.
    pub(crate) fn counter(&self, db: u8, key: &[u8]) -> u64 {
        self.fences.counter(db, key)
    }

    /// Returns the highest fence counter.
    #[cfg(feature = "hand-over")]
    pub(crate) fn fence_max(&self) -> u64 {
        self.fences.max()
    }

    /// Raises a key's fence counter to `fence` if it is lower; returns its value.
    pub(crate) fn import(&mut self, db: u8, key: &[u8], fence: u64) -> u64 {
        self.fences.import(db, key, fence)
    }

    /// Appends the records of the locks in up to about `budget` slots from slot `cursor` on, and
    /// advances `cursor`. Returns whether more slots are left, and how many records were appended.
    pub(crate) fn records(
        &self,
        now: Time,
        which: Which,
        cursor: &mut u64,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> (bool, u64) {
        let mut given = 0;
        let is_more = self.slab.scan(cursor, budget, |id| {
            let (token, deadline) = self.slab.entry(id);
            let grant = self.slab.grant(id);
            if deadline.is_past(now) || (which == Which::Logged && !grant.is_logged()) {
                return;
            }
            let encoded = self.collection_at(id).map(Value::encode);
            let label = self.slab.label(id);
            Record::Put(LockRecord {
                db: self.slab.db(id),
                key: self.slab.key(id),
                token: encoded.as_deref().unwrap_or(token),
                grant: grant.counter(),
                deadline,
                is_logged: grant.is_logged(),
                is_collection: grant.is_collection(),
                label: label.map(|label| label.text),
            })
            .encode(out);
            given += 1;
        });
        (is_more, given)
    }

    /// Removes a live lock and returns its grant and deadline; `None` when there is none.
    #[inline]
    pub(crate) fn remove(&mut self, probe: Probe) -> Option<(Grant, Deadline)> {
        self.note_of(probe, ChangeKind::Removed);
        self.take(probe)
    }

    /// Removes a lock that nobody has released.
    fn take_ended(&mut self, probe: Probe) {
        if let Some((grant, _)) = self.take(probe) {
            self.tally.ended(probe.hash, grant.counter());
        }
    }

    #[inline]
    fn take(&mut self, probe: Probe) -> Option<(Grant, Deadline)> {
        let id = probe.slot()?;
        let table = &mut self.tables[probe.hash.table(self.tables.len())];
        let was_there = table.remove(probe.hash.tag(), probe.position(), id);
        debug_assert!(was_there, "a probe is valid until the shard changes");
        if cfg!(feature = "compat")
            && let Some(number) = self.value_number(id)
        {
            self.values.free(number);
        }
        let (db, deadline, grant) = self.slab.remove(id);
        self.count(db, deadline, -1);
        Some((grant, deadline))
    }

    /// Reclaims expired locks, examining up to about `budget` slots.
    pub(crate) fn sweep(&mut self, now: Time, budget: usize) -> Swept {
        let step = self.slab.sweep(now, budget);
        for &id in &step.dead {
            self.unlink(id, Some(ChangeKind::Expired));
            self.expired += 1;
        }
        Swept {
            expired: step.dead.len(),
            visited: step.visited,
            finished_pass: step.wrapped,
        }
    }

    /// Removes every key of one database, or of all.
    pub(crate) fn clear(&mut self, db: Option<u8>) {
        let is_all = db.is_none();
        self.note(db.unwrap_or(0), b"", ChangeKind::Cleared { is_all });
        let Some(db) = db.filter(|&db| self.key_count(db) != self.total) else {
            self.tables.fill_with(Table::default);
            self.slab = Slab::new();
            self.values = Values::default();
            self.tally.forget_locks();
            (self.keys, self.volatile, self.total) = ([0; DATABASES], [0; DATABASES], 0);
            return;
        };
        let doomed: Vec<SlotId> = self
            .slab
            .slots()
            .filter(|&id| self.slab.db(id) == db)
            .collect();
        for id in doomed {
            self.unlink(id, None);
        }
    }

    /// Returns the live keys of one database, in no particular order.
    pub(crate) fn keys(&self, now: Time, db: u8) -> impl Iterator<Item = &[u8]> {
        let live =
            move |&id: &SlotId| self.slab.db(id) == db && !self.slab.deadline(id).is_past(now);
        self.slab.slots().filter(live).map(|id| self.slab.key(id))
    }

    /// Returns the live keys of one database in one sub-table, with their types. A key never leaves its sub-table,
    /// which makes sub-tables the unit of SCAN.
    pub(crate) fn keys_of_table(
        &self,
        now: Time,
        db: u8,
        table: usize,
    ) -> impl Iterator<Item = (&[u8], &'static str)> {
        let ids = self.tables.get(table).into_iter().flat_map(Table::ids);
        let live =
            move |&id: &SlotId| self.slab.db(id) == db && !self.slab.deadline(id).is_past(now);
        ids.filter(live)
            .map(|id| (self.slab.key(id), self.type_name_at(id)))
    }

    /// Returns the number of keys of all databases in one sub-table, including expired ones not yet
    /// reclaimed.
    pub(crate) fn table_len(&self, table: usize) -> usize {
        self.tables.get(table).map_or(0, Table::len)
    }

    /// Returns the number of keys in a database, including expired ones not yet reclaimed.
    pub(crate) fn key_count(&self, db: u8) -> u64 {
        self.keys.get(usize::from(db)).copied().unwrap_or(0)
    }

    /// Returns the number of keys in a database that have a deadline.
    pub(crate) fn volatile_count(&self, db: u8) -> u64 {
        self.volatile.get(usize::from(db)).copied().unwrap_or(0)
    }

    /// Returns the number of locks reclaimed because they had expired.
    pub(crate) const fn expired_count(&self) -> u64 {
        self.expired
    }

    /// Counts a read for INFO.
    pub(crate) const fn count_read(&mut self, found: bool) {
        if found {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }

    /// Returns the numbers of reads that found a lock and that did not.
    pub(crate) const fn read_counts(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Returns the bytes that the live locks occupy, including the index.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.slab.live_bytes() + self.total * INDEX_BYTES_PER_KEY + self.values.bytes()
    }

    /// Returns whether the slab has no slot address left.
    pub(crate) fn is_full(&self) -> bool {
        self.total >= u64::from(SLOTS_MAX) / 2
    }

    /// Returns a lower bound of all deadlines.
    pub(crate) fn earliest_deadline(&self) -> Deadline {
        self.slab.earliest_deadline()
    }

    /// Removes the entry in a slot, expired or not.
    fn unlink(&mut self, id: SlotId, kind: Option<ChangeKind>) {
        let hash = self.hasher.hash(self.slab.db(id), self.slab.key(id));
        let table = &self.tables[hash.table(self.tables.len())];
        match table.find(hash.tag(), |it| (it == id).then_some(())) {
            Some((position, ..)) => {
                let probe = Probe::at(hash, position, id);
                if let Some(kind) = kind {
                    self.note_of(probe, kind);
                }
                self.take_ended(probe);
            }
            None => debug_assert!(false, "a slot of the slab is always in the index"),
        }
    }

    fn move_deadline(&mut self, id: SlotId, permit: Permit) -> Grant {
        let deadline = permit.deadline;
        let (db, old, grant) = self.slab.move_deadline(id, deadline, permit.is_logged);
        if (old == Deadline::NEVER) != (deadline == Deadline::NEVER) {
            self.count(db, old, -1);
            self.count(db, deadline, 1);
        }
        grant
    }

    #[inline]
    fn count(&mut self, db: u8, deadline: Deadline, by: i64) {
        let db = usize::from(db) % DATABASES;
        self.keys[db] = self.keys[db].wrapping_add_signed(by);
        self.total = self.total.wrapping_add_signed(by);
        if deadline != Deadline::NEVER {
            self.volatile[db] = self.volatile[db].wrapping_add_signed(by);
        }
    }
}

/// A key's share of a bucket at a sub-table's mean load: 64 bytes for four to eight keys.
const INDEX_BYTES_PER_KEY: u64 = 11;

#[cfg(test)]
mod tests {
    use super::*;

    /// The index finds a lock by a part of its hash; a key with the same one is told by its bytes.
    #[test]
    fn keys_with_the_same_hash_are_different_locks() {
        let hasher = KeyHasher::new(7);
        let hash = hasher.hash(0, b"a");
        let mut shard = Shard::new(4, hasher, Fences::new(16, 0), Arc::default());
        let at = |ms| Deadline::after_millis(Time::ZERO, ms);
        let keys: [(&[u8], i64); 3] = [(b"a", 10), (b"b", 30), (b"c", 20)];
        for (key, ms) in keys {
            let probe = shard.probe(Time::ZERO, 0, hash, key);
            assert!(!probe.is_live());
            shard.put(probe, 0, key, key, Permit::plain(at(ms)));
        }
        for (now_ms, live) in [(10, &keys[..]), (11, &keys[1..]), (21, &keys[1..2])] {
            let now = Time::from_millis(now_ms);
            for (key, ms) in keys {
                let probe = shard.probe(now, 0, hash, key);
                let want = live.contains(&(key, ms)).then_some((key, at(ms)));
                assert_eq!(shard.entry(probe), want, "{now_ms} ms");
            }
        }
        let probe = shard.probe(Time::ZERO, 0, hash, b"b");
        assert!(shard.remove(probe).is_some());
        assert!(!shard.probe(Time::ZERO, 0, hash, b"b").is_live());
        assert_eq!(shard.key_count(0), 0);
    }
}
