//! The table that records amount to.
//!
//! The log is read before the snapshot: what it says about a key, or about a database as a whole, is later than anything
//! that the snapshot says. So only the keys on the log need an index, and a snapshot of a million locks is copied straight
//! through.

use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::durable::frame::{Batch, Header};
use crate::durable::machine::{Machine, Reading};
use crate::durable::record::{LockRecord, Record};
use crate::durable::verdict::is_behind;
use crate::time::{Deadline, Time};

/// Records read so far, and what has been decided about the snapshot's.
#[derive(Debug)]
pub(super) struct Replay<'a> {
    clock: Translation,
    keeps_unlogged: bool,
    hasher: FixedState,
    /// What the log says, by database, up to the highest that it names.
    databases: Vec<Database<'a>>,
    /// The snapshot says nothing about the others.
    is_cleared: bool,
    out: Recovered,
}

/// The locks that are alive, in the new node's time.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    /// Encoded [`Record::Put`]s, each key once.
    pub(super) records: Vec<u8>,
    /// The latest deadline of those that are not on the log, and so ride on the guard.
    pub(super) unlogged: Option<Deadline>,
}

/// How deadlines of earlier incarnations are told in the new node's time `[L2]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Translation {
    pub(super) machine: Machine,
    pub(super) reading: Reading,
    /// What the state says of the boot; a batch may still be older.
    pub(super) is_same_boot: bool,
}

/// How far a batch lies back.
#[derive(Clone, Copy, Debug)]
struct Age {
    written: Time,
    passed: Duration,
}

#[derive(Debug)]
struct Database<'a> {
    /// The snapshot says nothing about it.
    is_cleared: bool,
    /// `None`: not held, or not on the log.
    keys: HashMap<&'a [u8], Option<LockRecord<'a>>, FixedState>,
}

impl<'a> Replay<'a> {
    /// `seed` keeps keys that a client chose from meeting in one bucket.
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

    /// Reads a batch of the log, in the log's order. `None`: what is in it are no records.
    pub(super) fn log(&mut self, header: &Header, batch: &Batch<'a>) -> Option<()> {
        let age = self.clock.age(header, batch);
        let mut rest = batch.records;
        while !rest.is_empty() {
            let (record, after) = Record::decode(rest)?;
            rest = after;
            match record {
                Record::Put(lock) => {
                    let (db, key) = (lock.db, lock.key);
                    let lock = self.alive(lock, age);
                    self.database(db).keys.insert(key, lock);
                }
                Record::Remove { db, key } => {
                    self.database(db).keys.insert(key, None);
                }
                Record::Clear { db: Some(db) } => {
                    let cleared = Database::cleared(&self.hasher);
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

    /// Reads a batch of the snapshot, after the whole log. `None`: what is in it are no locks.
    pub(super) fn snapshot(&mut self, header: &Header, batch: &Batch<'a>) -> Option<()> {
        let age = self.clock.age(header, batch);
        let mut rest = batch.records;
        while !rest.is_empty() {
            let (Record::Put(lock), after) = Record::decode(rest)? else {
                return None;
            };
            rest = after;
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

    /// Room for the locks of a snapshot of so many bytes.
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

    /// The lock in the new node's time, unless it has ended or does not survive a crash.
    fn alive(&self, lock: LockRecord<'a>, age: Age) -> Option<LockRecord<'a>> {
        let now = self.clock.reading.moment.time;
        let deadline = lock.deadline.carried(age.written, now, age.passed)?;
        (lock.is_logged || self.keeps_unlogged).then_some(LockRecord { deadline, ..lock })
    }

    fn database(&mut self, db: u8) -> &mut Database<'a> {
        let place = usize::from(db);
        if self.databases.len() <= place {
            let (hasher, is_cleared) = (&self.hasher, self.is_cleared);
            let another = || Database {
                is_cleared,
                ..Database::new(hasher)
            };
            self.databases.resize_with(place + 1, another);
        }
        &mut self.databases[place]
    }
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
    /// `[L2]` In the same boot the time that passed counts, by the slower clock; otherwise none is known to have passed.
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
    fn new(hasher: &FixedState) -> Self {
        Self {
            is_cleared: false,
            keys: HashMap::with_hasher(hasher.clone()),
        }
    }

    /// Whether the log says more about a key than the snapshot.
    fn has(&self, key: &[u8]) -> bool {
        self.is_cleared || (!self.keys.is_empty() && self.keys.contains_key(key))
    }

    fn cleared(hasher: &FixedState) -> Self {
        Self {
            is_cleared: true,
            ..Self::new(hasher)
        }
    }
}
