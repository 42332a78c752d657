//! Rebuilds the lock table from records.
//!
//! The log is read before the snapshot: whatever it says about a key, or about a whole database, is
//! later than anything in the snapshot. So only the keys on the log need an index, and a snapshot
//! of a million locks is copied straight through.

use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::durable::frame::{Batch, Header};
use crate::durable::machine::{Machine, Reading};
use crate::durable::record::{LockRecord, Record};
use crate::durable::verdict::is_behind;
use crate::time::{Deadline, Time};
use crate::values::decode;

/// The records read so far, and what they decide about the snapshot.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    clock: Translation,
    keeps_unlogged: bool,
    hasher: FixedState,
    /// What the log says, by database, up to the highest one that it names.
    databases: Vec<Database<'a>>,
    /// Whether the snapshot is obsolete for all other databases.
    is_cleared: bool,
    out: Recovered,
}

/// The live locks, in the new node's time.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    /// Encoded [`Record::Put`]s, each key once.
    pub(super) records: Vec<u8>,
    /// The latest deadline of the locks that are not on the log and so rely on the guard.
    pub(super) unlogged: Option<Deadline>,
}

/// How deadlines of earlier incarnations are translated to the new node's time `[L2]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Translation {
    pub(super) machine: Machine,
    pub(super) reading: Reading,
    /// Whether the state is from this boot; a batch may still be older.
    pub(super) is_same_boot: bool,
}

/// How long ago a batch was written.
#[derive(Clone, Copy, Debug)]
struct Age {
    written: Time,
    passed: Duration,
}

#[derive(Debug)]
struct Database<'a> {
    /// Whether the snapshot is obsolete for this database.
    is_cleared: bool,
    /// `None`: not held, or not on the log.
    keys: HashMap<&'a [u8], Option<LockRecord<'a>>, FixedState>,
}

impl<'a> Replay<'a> {
    /// Creates a replay; `seed` keeps keys chosen by a client from colliding.
    pub(super) fn new(clock: Translation, keeps_unlogged: bool, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            clock,
            keeps_unlogged,
            hasher,
            databases: Vec::new(),
            is_cleared: false,
            out: Recovered::default(),
        }
    }

    /// Reads a batch of the log, in the log's order; `None` if it contains invalid records.
    pub(super) fn log(&mut self, header: &Header, batch: &Batch<'a>) -> Option<()> {
        let age = self.clock.age(header, batch);
        let mut rest = batch.records;
        while !rest.is_empty() {
            let (record, after) = Record::decode(rest)?;
            rest = after;
            match record {
                Record::Put(lock) => {
                    is_sound(&lock).then_some(())?;
                    let (db, key) = (lock.db, lock.key);
                    let lock = self.alive(lock, age);
                    self.database(db).keys.insert(key, lock);
                }
                Record::Remove { db, key } => {
                    self.database(db).keys.insert(key, None);
                }
                Record::Clear { db: Some(db) } => {
                    let cleared = Database::new(&self.hasher, true);
                    *self.database(db) = cleared;
                }
                Record::Clear { db: None } => {
                    self.databases.clear();
                    self.is_cleared = true;
                }
            }
        }
        Some(())
    }

    /// Reads a batch of the snapshot, after the whole log; `None` if it contains anything but
    /// locks.
    pub(super) fn snapshot(&mut self, header: &Header, batch: &Batch<'a>) -> Option<()> {
        let age = self.clock.age(header, batch);
        let mut rest = batch.records;
        while !rest.is_empty() {
            let (Record::Put(lock), after) = Record::decode(rest)? else {
                return None;
            };
            rest = after;
            is_sound(&lock).then_some(())?;
            let database = self.databases.get(usize::from(lock.db));
            if database.map_or(self.is_cleared, |it| it.has(lock.key)) {
                continue;
            }
            if let Some(lock) = self.alive(lock, age) {
                self.out.push(&lock);
            }
        }
        Some(())
    }

    /// Reserves room for the locks of a snapshot of `bytes` bytes.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.out.records.reserve(bytes);
    }

    pub(super) fn finish(self) -> Recovered {
        let mut out = self.out;
        for database in self.databases {
            for lock in database.keys.into_values().flatten() {
                out.push(&lock);
            }
        }
        out
    }

    /// Returns the lock in the new node's time, unless it has expired or does not survive a crash.
    fn alive(&self, lock: LockRecord<'a>, age: Age) -> Option<LockRecord<'a>> {
        let now = self.clock.reading.moment.time;
        let deadline = lock.deadline.carried(age.written, now, age.passed)?;
        (lock.is_logged || self.keeps_unlogged).then_some(LockRecord { deadline, ..lock })
    }

    fn database(&mut self, db: u8) -> &mut Database<'a> {
        let place = usize::from(db);
        if self.databases.len() <= place {
            let another = || Database::new(&self.hasher, self.is_cleared);
            self.databases.resize_with(place + 1, another);
        }
        &mut self.databases[place]
    }
}

/// Returns whether a node can hold the lock of a record.
fn is_sound(lock: &LockRecord<'_>) -> bool {
    !lock.is_collection || decode(lock.token).is_some()
}

impl Recovered {
    fn push(&mut self, lock: &LockRecord<'_>) {
        if !lock.is_logged {
            self.unlogged = self.unlogged.max(Some(lock.deadline));
        }
        Record::Put(*lock).encode(&mut self.records);
    }
}

impl Translation {
    /// `[L2]` Within one boot, the time by the slower clock has passed; otherwise no time is known
    /// to have passed.
    fn age(&self, header: &Header, batch: &Batch<'_>) -> Age {
        let now = self.reading.machine;
        let is_comparable = self.is_same_boot
            && self.machine.is_same_boot(&header.machine)
            && !is_behind(now, batch.machine);
        let passed = if is_comparable {
            let boottime = now.boottime_ns - batch.machine.boottime_ns;
            let raw = now.raw_ns - batch.machine.raw_ns;
            Duration::from_nanos(boottime.min(raw))
        } else {
            Duration::ZERO
        };
        Age {
            written: batch.time,
            passed,
        }
    }
}

impl Database<'_> {
    fn new(hasher: &FixedState, is_cleared: bool) -> Self {
        Self {
            is_cleared,
            keys: HashMap::with_hasher(hasher.clone()),
        }
    }

    /// Returns whether the log overrides the snapshot for a key.
    fn has(&self, key: &[u8]) -> bool {
        self.is_cleared || (!self.keys.is_empty() && self.keys.contains_key(key))
    }
}
