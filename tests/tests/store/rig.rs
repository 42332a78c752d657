//! A node with its machine's clocks, the naive table that it holds, and what of it was acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use locknode_engine::durable::{
    Durability, Durable, LockRecord, Machine, MachineTime, OpenError, Reading, Record, Start,
    StartReason, Store, StoreError, StoreFigures, StoreSettings, StoreSizes, Table, Which, Work,
};
use locknode_engine::{Deadline, Moment, Time, WallTime};
use locknode_tests::FaultyDisk;
use locknode_tests::faulty_disk::{Image, dice, keep_all, keep_none};

pub(crate) type Key = (u8, Vec<u8>);

/// A lock as the model knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) token: Vec<u8>,
    pub(crate) grant: u64,
    pub(crate) deadline: Deadline,
    pub(crate) is_logged: bool,
}

/// The naive lock table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) locks: BTreeMap<Key, Lock>,
    pub(crate) now: Time,
    /// Where the walk through the table goes on.
    resume: Option<Key>,
}

/// A lock that rides on the guard: until when somebody may rely on it, in true time.
#[derive(Clone, Copy, Debug)]
struct Obligation {
    grant: u64,
    end_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) disk: FaultyDisk,
    pub(crate) store: Option<Store<FaultyDisk>>,
    pub(crate) model: Model,
    pub(crate) settings: StoreSettings,
    pub(crate) sizes: StoreSizes,
    pub(crate) machine: Machine,
    pub(crate) clocks: MachineTime,
    pub(crate) time_ns: u64,
    pub(crate) wall_ns: u64,
    /// What no clock shows.
    pub(crate) true_ns: u64,
    pub(crate) goal: Durable,
    pub(crate) log: Vec<u8>,
    pub(crate) quarantine_end: Time,
    /// What each key may be after a crash: the last acknowledged first.
    possible: BTreeMap<Key, Vec<Option<Lock>>>,
    /// Locks with a TTL that a restart found ended. Another boot begins what was left of them anew [L2].
    ended: BTreeSet<(Key, Vec<u8>)>,
    /// Granted to a client, acknowledged or about to be.
    pending_obligations: Vec<Obligation>,
    obligations: Vec<Obligation>,
    pub(crate) ceiling_acked: u64,
    /// Keys that are lost when the last batch of the log is dropped, though they were acknowledged: it was damaged [L5].
    pub(crate) may_drop: Vec<Key>,
    incarnation: u64,
    grants: u64,
    starts: u64,
}

impl Table for Model {
    fn records(&mut self, which: Which, cursor: &mut u64, out: &mut Vec<u8>) -> bool {
        if *cursor == 0 {
            self.resume = None;
        }
        let from = self.resume.take().map_or(Bound::Unbounded, Bound::Excluded);
        let mut slice = self.locks.range((from, Bound::Unbounded));
        for ((db, key), lock) in slice.by_ref().take(SLICE) {
            *cursor += 1;
            self.resume = Some((*db, key.clone()));
            let is_wanted = which == Which::All || lock.is_logged;
            if is_wanted && !lock.deadline.is_past(self.now) {
                Record::Put(lock.record(*db, key)).encode(out);
            }
        }
        slice.next().is_some()
    }
}

impl Lock {
    fn record<'a>(&'a self, db: u8, key: &'a [u8]) -> LockRecord<'a> {
        LockRecord {
            db,
            key,
            token: &self.token,
            grant: self.grant,
            deadline: self.deadline,
            is_logged: self.is_logged,
            is_collection: self.token.first() == Some(&SET),
            label: (self.token.len().is_multiple_of(2) && self.token.first() != Some(&SET))
                .then_some(b"me"),
        }
    }
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self {
            disk: FaultyDisk::new(),
            store: None,
            model: Model::default(),
            settings: StoreSettings {
                max_ttl: MAX_TTL,
                durability: Durability::Long,
                is_first_start: false,
                needs_state: false,
            },
            sizes: StoreSizes {
                segment: 4096,
                log: 16384,
            },
            machine: Machine {
                boot_id: [7; 16],
                machine_id: [8; 16],
                time_namespace: Machine::INITIAL_TIME_NAMESPACE,
            },
            clocks: MachineTime {
                boottime_ns: 500 * SECOND,
                raw_ns: 400 * SECOND,
            },
            time_ns: 0,
            wall_ns: 1_800_000_000 * SECOND,
            true_ns: 1000 * SECOND,
            goal: Durable::default(),
            log: Vec::new(),
            quarantine_end: Time::ZERO,
            possible: BTreeMap::new(),
            ended: BTreeSet::new(),
            pending_obligations: Vec::new(),
            obligations: Vec::new(),
            ceiling_acked: 0,
            may_drop: Vec::new(),
            incarnation: 0,
            grants: 0,
            starts: 0,
        }
    }

    /// A node after its first start.
    pub(crate) fn started() -> Self {
        let mut rig = Self::new();
        rig.first_start();
        rig
    }

    /// The same node that is down, on a disk of its own with these files.
    pub(crate) fn copy(&self, image: &Image) -> Self {
        assert!(self.store.is_none(), "the node runs");
        let disk = FaultyDisk::new();
        disk.restore(image);
        Self {
            disk,
            store: None,
            model: self.model.clone(),
            log: self.log.clone(),
            possible: self.possible.clone(),
            ended: self.ended.clone(),
            pending_obligations: self.pending_obligations.clone(),
            obligations: self.obligations.clone(),
            may_drop: self.may_drop.clone(),
            ..*self
        }
    }

    pub(crate) fn first_start(&mut self) {
        self.settings.is_first_start = true;
        let start = self.start();
        assert_eq!(start.reason, StartReason::FirstStart);
        self.settings.is_first_start = false;
    }

    pub(crate) fn reading(&self) -> Reading {
        Reading {
            moment: Moment {
                time: Time::from_nanos(self.time_ns),
                wall: WallTime::from_unix_nanos(self.wall_ns),
            },
            machine: self.clocks,
        }
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        let ns = u64::try_from(by.as_nanos()).unwrap();
        self.time_ns += ns;
        self.true_ns += ns;
        self.wall_ns += ns;
        self.clocks.boottime_ns += ns;
        self.clocks.raw_ns += ns;
        self.model.now = Time::from_nanos(self.time_ns);
    }

    /// The machine's clocks go differently; true time is with the slower one.
    pub(crate) fn advance_unevenly(&mut self, boottime: Duration, raw: Duration) {
        let slower = boottime.min(raw);
        self.advance(slower);
        let ns = |by: Duration| u64::try_from((by - slower).as_nanos()).unwrap();
        self.clocks.boottime_ns += ns(boottime);
        self.clocks.raw_ns += ns(raw);
    }

    /// Damage took what was acknowledged of a key.
    pub(crate) fn forget(&mut self, key: &[u8]) {
        self.possible.remove(&(0, key.to_vec()));
    }

    /// The disk is lost, and all that was acknowledged with it.
    pub(crate) fn lose_disk(&mut self) {
        self.disk.erase();
        self.possible.clear();
        self.ceiling_acked = 0;
        self.incarnation = 0;
    }

    /// The machine is booted anew, which takes a while.
    pub(crate) fn reboot(&mut self) {
        assert!(self.store.is_none(), "the node runs");
        self.advance(Duration::from_secs(20));
        self.machine.boot_id[0] += 1;
        self.clocks = MachineTime {
            boottime_ns: 12 * SECOND,
            raw_ns: 11 * SECOND,
        };
    }

    pub(crate) fn try_start(&mut self) -> Result<Start, OpenError> {
        assert!(self.store.is_none(), "the node runs");
        self.starts += 1;
        // The node's time begins anywhere.
        self.time_ns = self.starts * 1_234_567;
        let mut entropy = [1; 32];
        for part in entropy.chunks_exact_mut(8) {
            part.copy_from_slice(&self.starts.to_le_bytes());
        }
        let (store, start) = Store::open_sized(
            self.disk.clone(),
            &self.settings,
            self.sizes,
            self.machine,
            self.reading(),
            entropy,
        )?;
        self.store = Some(store);
        self.model = Model {
            now: Time::from_nanos(self.time_ns),
            ..Model::default()
        };
        for lock in start.locks() {
            let key = (lock.db, lock.key.to_vec());
            let restored = Lock {
                token: lock.token.to_vec(),
                grant: lock.grant,
                deadline: lock.deadline,
                is_logged: lock.is_logged,
            };
            let twice = self.model.locks.insert(key, restored);
            assert_eq!(twice, None, "a lock twice");
        }
        self.goal = start.durable;
        self.log.clear();
        self.quarantine_end = start.quarantine_end;
        Ok(start)
    }

    /// Starts, and checks what must be so after every start.
    pub(crate) fn start(&mut self) -> Start {
        let started = self.try_start_checked();
        started.unwrap_or_else(|error| panic!("{error}"))
    }

    /// Starts, and checks what must be so if that works.
    pub(crate) fn try_start_checked(&mut self) -> Result<Start, OpenError> {
        let old = self.model.clone();
        let start = self.try_start()?;
        assert!(start.incarnation > self.incarnation, "[S5]");
        self.incarnation = start.incarnation;
        assert!(start.fence_base >= self.ceiling_acked, "[F2]");
        assert_eq!(start.durable.ceiling, start.fence_base, "[F3]");
        self.ceiling_acked = start.fence_base;
        if start.reason == StartReason::DroppedBatch {
            for key in std::mem::take(&mut self.may_drop) {
                self.possible.remove(&key);
            }
        }
        self.check_locks(&old, &start);
        self.check_quarantine(&start);
        for (key, values) in &self.possible {
            for lock in values.iter().flatten() {
                if lock.deadline != Deadline::NEVER {
                    self.ended.insert((key.clone(), lock.token.clone()));
                }
            }
        }
        self.possible = self
            .model
            .locks
            .iter()
            .filter(|(_, lock)| lock.is_logged)
            .map(|(key, lock)| (key.clone(), vec![Some(lock.clone())]))
            .collect();
        // Locks that ride on the guard are granted by this incarnation as well.
        let restored: Vec<_> = self
            .model
            .locks
            .values()
            .filter(|lock| !lock.is_logged)
            .map(|lock| self.obligation(lock))
            .collect();
        self.obligations.extend(restored);
        self.pending_obligations.clear();
        Ok(start)
    }

    /// [L1] [L3] Every key is as acknowledged, or as it was about to be.
    fn check_locks(&self, old: &Model, start: &Start) {
        for (key, values) in &self.possible {
            let found = self.model.locks.get(key);
            let had_ended = |lock: &Lock| self.had_ended(key, lock);
            let is_right = values.iter().any(|value| match (value, found) {
                (None, None) => true,
                (None, Some(found)) => had_ended(found) || !found.is_logged,
                (Some(lock), None) => self.may_have_ended(old, lock),
                (Some(lock), Some(found)) => {
                    lock.token == found.token
                        && lock.grant == found.grant
                        && self.keeps_deadline(old, lock.deadline, found.deadline)
                }
            });
            assert!(
                is_right,
                "{key:?} is {found:?} after {:?}, acknowledged {values:?}",
                start.reason
            );
        }
        for (key, lock) in &self.model.locks {
            assert!(lock.is_logged || start.reason == StartReason::CleanStop);
            let is_known = self.possible.contains_key(key)
                || old.locks.contains_key(key)
                || self.had_ended(key, lock);
            assert!(is_known, "{key:?} {lock:?} out of nowhere");
        }
    }

    fn had_ended(&self, key: &Key, lock: &Lock) -> bool {
        self.ended.contains(&(key.clone(), lock.token.clone()))
    }

    /// Whether a lock may be gone: its time is over, by the time that passed since.
    fn may_have_ended(&self, old: &Model, lock: &Lock) -> bool {
        lock.deadline.is_past(old.now)
    }

    fn keeps_deadline(&self, old: &Model, was: Deadline, is: Deadline) -> bool {
        let left = |deadline: Deadline, now| deadline.remaining_millis(now);
        match (left(was, old.now), left(is, self.model.now)) {
            (None, None) => true,
            // Never earlier. Later only by what cannot be known to have passed.
            (Some(was), Some(is)) => is >= was && is <= was.saturating_add(10_000_000),
            _ => false,
        }
    }

    /// [G1] [G9] Everything that somebody may rely on is a lock that is there, or is waited for.
    fn check_quarantine(&mut self, start: &Start) {
        let now = self.reading().moment.time;
        let waited_ns = self.true_ns + start.quarantine_end.as_nanos()
            - now.as_nanos().min(start.quarantine_end.as_nanos());
        let is_restored = start.reason == StartReason::CleanStop;
        self.obligations.retain(|it| it.end_ns >= self.true_ns);
        let latest = self.obligations.iter().map(|it| it.end_ns).max();
        let held_ns = self
            .model
            .locks
            .values()
            .filter(|lock| !lock.is_logged && is_restored)
            .map(|lock| self.obligation(lock).end_ns)
            .max();
        let covered_ns = waited_ns.max(held_ns.unwrap_or(0));
        assert!(
            latest.is_none_or(|latest| latest <= covered_ns),
            "{:?}: waits until {waited_ns}, owes until {latest:?}",
            start.reason
        );
    }

    fn obligation(&self, lock: &Lock) -> Obligation {
        let deadline = lock
            .deadline
            .as_time()
            .unwrap_or(Time::from_nanos(u64::MAX));
        let left = deadline.as_nanos().saturating_sub(self.time_ns);
        Obligation {
            grant: lock.grant,
            end_ns: self.true_ns.saturating_add(left),
        }
    }

    pub(crate) fn is_quarantined(&self) -> bool {
        Time::from_nanos(self.time_ns) < self.quarantine_end
    }

    /// A lock on the log; `None` for one without TTL.
    pub(crate) fn put(&mut self, key: &[u8], ttl_ms: Option<i64>) {
        self.put_in(0, key, ttl_ms);
    }

    /// A lock without TTL, acknowledged.
    pub(crate) fn hold(&mut self, key: &[u8]) {
        self.put(key, None);
        self.perform().unwrap();
    }

    pub(crate) fn put_in(&mut self, db: u8, key: &[u8], ttl_ms: Option<i64>) {
        let now = Time::from_nanos(self.time_ns);
        let deadline = ttl_ms.map_or(Deadline::NEVER, |ttl| Deadline::after_millis(now, ttl));
        self.put_until(db, key, deadline);
    }

    pub(crate) fn put_until(&mut self, db: u8, key: &[u8], deadline: Deadline) {
        self.grants += 1;
        let token = format!("token-{}", self.grants).into_bytes();
        let lock = Lock {
            token: if key == A_SET { set_of(&token) } else { token },
            grant: self.grants,
            deadline,
            is_logged: true,
        };
        self.set((db, key.to_vec()), lock);
    }

    /// Gives a lock on the log a later end.
    pub(crate) fn extend(&mut self, key: &[u8], ttl_ms: i64) {
        let key = (0, key.to_vec());
        let Some(mut lock) = self.model.locks.get(&key).cloned() else {
            return;
        };
        lock.deadline = Deadline::after_millis(Time::from_nanos(self.time_ns), ttl_ms);
        lock.is_logged = true;
        self.set(key, lock);
    }

    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.remove_in(0, key);
    }

    pub(crate) fn remove_in(&mut self, db: u8, key: &[u8]) {
        let key = (db, key.to_vec());
        let Some(lock) = self.model.locks.remove(&key) else {
            return;
        };
        self.release(&lock);
        if lock.is_logged {
            Record::Remove {
                db: key.0,
                key: &key.1,
            }
            .encode(&mut self.log);
            self.goal.records += 1;
            self.possible
                .entry(key)
                .or_insert_with(|| vec![None])
                .push(None);
        }
    }

    pub(crate) fn clear(&mut self, db: Option<u8>) {
        let is_cleared = |key: &Key| db.is_none_or(|db| db == key.0);
        let cleared = self.model.locks.extract_if(.., |key, _| is_cleared(key));
        for (_, lock) in cleared.collect::<Vec<_>>() {
            self.release(&lock);
        }
        Record::Clear { db }.encode(&mut self.log);
        self.goal.records += 1;
        for (key, values) in &mut self.possible {
            if db.is_none_or(|db| db == key.0) {
                values.push(None);
            }
        }
    }

    /// A lock that rides on the guard, in database 1.
    pub(crate) fn grant(&mut self, key: &[u8], ttl: Duration) {
        assert!(!self.is_quarantined(), "a grant in quarantine");
        let deadline = Deadline::after_millis(
            Time::from_nanos(self.time_ns),
            i64::try_from(ttl.as_millis()).unwrap(),
        );
        self.grants += 1;
        let key = (1, key.to_vec());
        let lock = Lock {
            token: b"short".to_vec(),
            grant: self.grants,
            deadline,
            is_logged: false,
        };
        // One that was on the log is no more.
        self.remove_in(key.0, &key.1);
        self.pending_obligations.push(self.obligation(&lock));
        self.model.locks.insert(key, lock);
        self.goal.horizon = self.goal.horizon.max(deadline.as_time().unwrap());
        self.goal.ttl_in_use = self.goal.ttl_in_use.max(ttl);
    }

    /// No lock that rides on the guard is held any more.
    pub(crate) fn relax(&mut self) {
        let is_held = self
            .model
            .locks
            .values()
            .any(|lock| !lock.is_logged && !lock.deadline.is_past(self.model.now));
        if !is_held && !self.is_quarantined() && self.pending_obligations.is_empty() {
            self.goal.ttl_in_use = Duration::ZERO;
        }
    }

    pub(crate) fn perform(&mut self) -> Result<(), StoreError> {
        let reading = self.reading();
        let work = Work {
            log: self.log.clone(),
            goal: self.goal,
        };
        let store = self.store.as_mut().expect("the node runs");
        store.perform(&work, reading)?;
        assert_eq!(store.durable(), self.goal);
        self.log.clear();
        for values in self.possible.values_mut() {
            values.drain(..values.len() - 1);
        }
        self.obligations.append(&mut self.pending_obligations);
        self.ceiling_acked = self.goal.ceiling;
        Ok(())
    }

    /// One slice of what is due.
    pub(crate) fn compact(&mut self) -> Result<bool, StoreError> {
        let reading = self.reading();
        let store = self.store.as_mut().expect("the node runs");
        store.compact(&mut self.model, reading)
    }

    /// All that is due.
    pub(crate) fn settle(&mut self) {
        while self.store.as_ref().is_some_and(Store::is_due) {
            self.compact().unwrap();
        }
    }

    /// Nothing but a new process: power stays on.
    pub(crate) fn kill(&mut self) {
        self.store = None;
        self.disk.kill();
    }

    pub(crate) fn crash(&mut self, keep: &mut dyn FnMut(usize) -> usize) {
        self.store = None;
        self.disk.crash(keep);
    }

    /// A crash that keeps nothing of what was not synced, all of it, or what the dice of the seed say.
    pub(crate) fn crash_by(&mut self, seed: u64) {
        match seed {
            0 => self.crash(&mut keep_none),
            1 => self.crash(&mut keep_all),
            _ => self.crash(&mut dice(seed)),
        }
    }

    /// Power is lost, and with it all that was not synced; the node starts again.
    pub(crate) fn restart(&mut self) -> Start {
        self.crash(&mut keep_none);
        self.start()
    }

    /// Starts for this reason, and waits this long.
    #[track_caller]
    pub(crate) fn expect_start(&mut self, reason: StartReason, wait: Duration) -> Start {
        let start = self.start();
        assert_eq!((start.reason, self.wait()), (reason, wait));
        start
    }

    pub(crate) fn stop(&mut self) -> Result<(), StoreError> {
        let reading = self.reading();
        let store = self.store.take().expect("the node runs");
        store.close(&mut self.model, reading)
    }

    /// How long the node waits from now on.
    pub(crate) fn wait(&self) -> Duration {
        self.quarantine_end.since(Time::from_nanos(self.time_ns))
    }

    /// Lets the wait end.
    pub(crate) fn wait_out(&mut self) {
        self.advance(self.wait());
    }

    /// Who holds what, and by which grant.
    pub(crate) fn holders(&self) -> Vec<(Key, Vec<u8>, u64)> {
        let locks = self.model.locks.iter();
        locks
            .map(|(key, lock)| (key.clone(), lock.token.clone(), lock.grant))
            .collect()
    }

    pub(crate) fn figures(&self) -> StoreFigures {
        self.store.as_ref().expect("the node runs").figures()
    }

    pub(crate) fn remaining_ms(&self, db: u8, key: &[u8]) -> Option<i64> {
        let lock = self.model.locks.get(&(db, key.to_vec()))?;
        lock.deadline.remaining_millis(self.model.now)
    }

    pub(crate) fn holds(&self, key: &[u8]) -> bool {
        self.model.locks.contains_key(&(0, key.to_vec()))
    }

    fn set(&mut self, key: Key, lock: Lock) {
        Record::Put(lock.record(key.0, &key.1)).encode(&mut self.log);
        self.goal.records += 1;
        let values = self.possible.entry(key.clone());
        values
            .or_insert_with(|| vec![None])
            .push(Some(lock.clone()));
        if let Some(old) = self.model.locks.insert(key, lock) {
            self.release(&old);
        }
    }

    /// Nobody relies on it any more.
    fn release(&mut self, lock: &Lock) {
        if !lock.is_logged {
            self.obligations.retain(|it| it.grant != lock.grant);
            self.pending_obligations.retain(|it| it.grant != lock.grant);
        }
    }
}

/// The wait of a TTL: the allowance of 1 % and 2 ms on top.
pub(crate) fn wait_of(ttl: Duration) -> Duration {
    ttl + ttl / 100 + Duration::from_millis(2)
}

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) const MAX_TTL: Duration = Duration::from_secs(60);

/// Locks of one slice.
const SLICE: usize = 3;

/// The key that holds a set.
pub(crate) const A_SET: &[u8] = b"a set";

/// The bytes of a set with one member.
fn set_of(member: &[u8]) -> Vec<u8> {
    let len = u32::try_from(member.len()).unwrap();
    [&[SET], &len.to_le_bytes()[..], member].concat()
}

/// The first byte of a set; no token of the rig begins with it.
const SET: u8 = 3;
