//! What a node's disk does, and what is done to it.

use std::io::ErrorKind;
use std::time::Duration;

use locknode_engine::durable::{LockRecord, Reading, Start, Store, StoreError, Which, Work};
use locknode_engine::{Engine, Time};

use super::{SimNode, WRITTEN_MAX};
use crate::fault::{DiskFault, Phase};
use crate::faulty_disk::FaultyDisk;
use crate::scenario::GuardMode;
use crate::sim::hash_lock::holder;
use crate::sim::oracle::{Pardon, StoredLock, nanos_of};
use crate::sim::recorder::Recorder;
use crate::span::SimTime;

/// Work for a disk.
#[derive(Debug)]
pub(super) enum Job {
    /// What the guard wants.
    Work(Work),
    /// The last snapshot and the mark of a clean stop.
    Close,
}

impl SimNode {
    /// Takes work for the disk, if there is any and none is under way.
    pub(crate) fn begin_work(&mut self, now: SimTime) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        let guard = run.engine.guard();
        let closes = run.is_closing();
        if run.in_flight.is_some() || !(guard.has_work() || closes) || run.store.is_none() {
            return false;
        }
        let reading = self.clocks.reading(now, &mut self.random);
        let time = reading.moment.time;
        let (job, logged) = match guard.take_work(time) {
            Some(work) if work.log.is_empty() => (Job::Work(work), None),
            Some(work) => (Job::Work(work), Some(Which::Logged)),
            None if closes => (Job::Close, Some(Which::All)),
            None => return false,
        };
        if let Some(which) = logged {
            self.oracle.log(&run.table(which, time), time.as_nanos());
        }
        run.in_flight = Some((job, reading));
        true
    }

    /// Whether the work under way lowers the TTL in use.
    pub(crate) fn is_lowering(&self) -> bool {
        let run = self.run.as_ref();
        run.is_some_and(|run| match (&run.in_flight, &run.store) {
            (Some((Job::Work(work), _)), Some(store)) => {
                work.goal.ttl_in_use < store.durable().ttl_in_use
            }
            _ => false,
        })
    }

    /// The disk finishes the work under way. Returns whether it succeeded; `None` when there was none.
    pub(crate) fn finish_work(&mut self, now: SimTime) -> Option<bool> {
        let run = self.run.as_mut()?;
        let (job, reading) = run.in_flight.take()?;
        let Job::Work(work) = job else {
            return self.finish_close(reading);
        };
        let store = run.store.as_mut()?;
        let guard = run.engine.guard();
        self.has_lowered |= work.goal.ttl_in_use < store.durable().ttl_in_use;
        let result = store.perform(&work, reading);
        let is_done = result.is_ok();
        match result {
            Ok(()) => {
                if !work.log.is_empty() {
                    self.oracle.logged();
                    self.log_marked = Some(self.disk.syncs("state"));
                }
                guard.done(&work);
            }
            Err(error) => {
                run.has_failed |= !error.is_full();
                self.log_marked = None;
                guard.failed(work, &error, &store.durable());
            }
        }
        if store.is_due() && !run.is_closing() {
            let reading = self.clocks.reading(now, &mut self.random);
            self.arm(Phase::Compact);
            let run = self.run.as_mut()?;
            let mut table = run.engine.table(reading.moment.time);
            // A failure makes all later work fail too, and that is reported.
            let _ = run.store.as_mut()?.compact(&mut table, reading);
            self.struck = self.disarm(Phase::Compact);
        }
        Some(is_done)
    }

    /// Writes the last snapshot. Returns whether it succeeded; `None` when the process has ended in the middle of it.
    fn finish_close(&mut self, reading: Reading) -> Option<bool> {
        self.arm(Phase::Close);
        self.may_be_clean = true;
        let run = self.run.as_mut()?;
        let result = close(run.store.take()?, &run.engine, reading);
        self.struck = self.disarm(Phase::Close);
        let is_whole = result.is_ok() && self.struck.is_none();
        if is_whole {
            self.image = Some(self.disk.snapshot());
        }
        self.struck.is_none().then_some(is_whole)
    }

    /// The disk breaks, or is whole again.
    pub(crate) fn break_disk(&mut self, fault: DiskFault) {
        let is_late = matches!(
            fault,
            DiskFault::Slow(_) | DiskFault::Stall | DiskFault::Go | DiskFault::Room
        );
        self.was_broken |= !is_late;
        match fault {
            DiskFault::SyncError => self.disk.fail_sync(0),
            DiskFault::SyncFull => self.disk.fail_sync_with(0, ErrorKind::StorageFull),
            DiskFault::WriteError | DiskFault::WriteFull => {
                let kind = match fault {
                    DiskFault::WriteFull => ErrorKind::StorageFull,
                    _ => ErrorKind::Other,
                };
                let written = self.random.index(WRITTEN_MAX);
                self.disk.fail_write(0, kind, written);
            }
            DiskFault::Rot | DiskFault::Cut => {
                self.rots = Some(fault);
                if self.run.is_none() {
                    self.decay();
                }
            }
            DiskFault::Full => self.disk.limit(Some(self.disk.bytes())),
            DiskFault::Room => self.disk.limit(None),
            DiskFault::Slow(span) => self.slow = Some(span),
            DiskFault::Stall => self.is_stalled = true,
            DiskFault::Go => (self.is_stalled, self.slow) = (false, None),
        }
    }

    /// Damages its files as a fault has asked for.
    pub(super) fn decay(&mut self) {
        let random = &mut self.random;
        let mut pick = |below| random.below(below);
        match self.rots.take() {
            Some(DiskFault::Cut) => self.disk.cut(&mut pick),
            Some(_) => self.disk.rot(&mut pick),
            None => return,
        }
        self.is_rotten = true;
        self.image = None;
        self.pardon = self.pardon.max(Pardon::LostLog);
    }

    /// Gives a node that does not start on its damaged files an empty disk. Returns whether it did.
    pub(crate) fn replaces_disk(&mut self) -> bool {
        if self.run.is_some() || !self.is_rotten {
            return false;
        }
        self.disk.kill();
        self.disk.erase();
        self.is_rotten = false;
        self.pardon = self.pardon.max(Pardon::LostDisk);
        true
    }

    /// Whether the disk has failed for good, so that nothing is granted until the process starts again.
    pub(crate) fn has_failed(&self) -> bool {
        self.run
            .as_ref()
            .is_some_and(|run| run.engine.guard().has_failed())
    }

    /// Whether a lock with this TTL is on the log.
    pub(crate) fn logs(&self, ttl: Duration) -> bool {
        self.guard == GuardMode::Always || (self.guard == GuardMode::Long && ttl > self.max_ttl)
    }
}

/// The locks that a node begins with.
pub(in crate::sim) fn backs(start: &Start, time: Time, recorder: &Recorder) -> Vec<StoredLock> {
    let back = |lock: LockRecord<'_>| {
        let (token, _) = holder(&lock);
        StoredLock {
            db: lock.db,
            key: lock.key.to_vec(),
            token: token.to_vec(),
            left: match nanos_of(lock.deadline) {
                u64::MAX => u64::MAX,
                deadline => deadline.saturating_sub(time.as_nanos()),
            },
            deadline: nanos_of(lock.deadline),
            known: recorder.known(lock.db, lock.key, token),
        }
    };
    start.locks().map(back).collect()
}

/// Writes the last snapshot of a process and the mark of a clean stop.
pub(super) fn close(
    store: Store<FaultyDisk>,
    engine: &Engine,
    reading: Reading,
) -> Result<(), StoreError> {
    store.close(&mut engine.table(reading.moment.time), reading)
}
