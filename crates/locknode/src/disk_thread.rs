//! The thread that makes changes durable, and the status that connections read.
//!
//! ```text
//!  connection --need--> SyncWaiters ........................ woken --> sends
//!                           |                                 ^
//!                           +--> unpark --> take_work, write, sync, done
//! ```
//!
//! All connections share one sync: what they request while one is under way is done by the next.
//! The thread sleeps while there is nothing to do, and only nodes with a data directory have one.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use locknode_engine::Engine;
use locknode_engine::durable::{Disk, Store, StoreError};
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::sync_waiters::{SyncWaiters, lock};

/// What the thread shares with connections and observers.
#[derive(Debug, Default)]
pub(crate) struct DiskStatus {
    /// The waiting connections of each `serve` call.
    waiter_lists: Mutex<Vec<Weak<SyncWaiters>>>,
    /// The number of rounds: each made something durable, or found that it cannot.
    pub(crate) rounds: AtomicU64,
    /// Notified when the disk gets into trouble, when it recovers, and when the node closes.
    pub(crate) changed: Notify,
    is_stopping: AtomicBool,
    /// The number of syncs since the start, and the bytes on disk.
    figures: Mutex<(u64, u64)>,
}

/// The thread, as its node holds it.
#[derive(Debug)]
pub(crate) struct DiskThread<D: Disk> {
    disk_status: Arc<DiskStatus>,
    handle: JoinHandle<Store<D>>,
}

impl DiskStatus {
    /// Creates the list in which the connections of one `serve` call wait.
    pub(crate) fn new_waiters(&self) -> Arc<SyncWaiters> {
        let waiters = Arc::<SyncWaiters>::default();
        let mut lists = lock(&self.waiter_lists);
        lists.retain(|known| known.strong_count() > 0);
        lists.push(Arc::downgrade(&waiters));
        waiters
    }

    /// The number of syncs since the start, and the bytes on disk.
    pub(crate) fn figures(&self) -> (u64, u64) {
        *lock(&self.figures)
    }

    /// Wakes all waiting connections: more has become durable, or nothing more will.
    pub(crate) fn finish_round(&self) {
        self.rounds.fetch_add(1, Ordering::AcqRel);
        for waiters in lock(&self.waiter_lists).iter().filter_map(Weak::upgrade) {
            waiters.round_is_done();
        }
    }

    fn note<D: Disk>(&self, store: &Store<D>) {
        let figures = store.figures();
        *lock(&self.figures) = (figures.syncs, figures.bytes);
    }
}

impl<D: Disk + 'static> DiskThread<D> {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// Fails when the operating system cannot start a thread.
    pub(crate) fn start(
        store: Store<D>,
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        disk_status: Arc<DiskStatus>,
    ) -> io::Result<Self> {
        disk_status.note(&store);
        let thread_status = Arc::clone(&disk_status);
        let handle = thread::Builder::new()
            .name("locknode-disk".to_owned())
            .spawn(move || run(store, &engine, &*clock, &thread_status))?;
        Ok(Self {
            disk_status,
            handle,
        })
    }

    /// The thread, to unpark it when there is work.
    pub(crate) fn thread(&self) -> Thread {
        self.handle.thread().clone()
    }

    /// Stops the thread once the pending work is done, and returns its store unless the thread has
    /// panicked.
    pub(crate) fn stop(self) -> Option<Store<D>> {
        self.disk_status.is_stopping.store(true, Ordering::Release);
        self.handle.thread().unpark();
        self.handle.join().ok()
    }
}

fn run<D: Disk>(
    mut store: Store<D>,
    engine: &Engine,
    clock: &dyn Clock,
    disk_status: &DiskStatus,
) -> Store<D> {
    let mut is_well = true;
    loop {
        // If serving threads share this core, they go first: what they are about to request then
        // joins the same sync.
        thread::yield_now();
        let done = work(&mut store, engine, clock);
        if !matches!(done, Ok(false)) {
            disk_status.note(&store);
            disk_status.finish_round();
            if is_well != done.is_ok() {
                is_well = done.is_ok();
                disk_status.changed.notify_waiters();
            }
        }
        match done {
            _ if disk_status.is_stopping.load(Ordering::Acquire) => return store,
            Err(error) if error.is_full() => thread::park_timeout(FULL_PAUSE),
            Err(_) => thread::park(),
            Ok(_) if engine.guard().has_work() => {}
            Ok(_) if compact_slice(&mut store, engine, clock) => {}
            Ok(_) => thread::park(),
        }
    }
}

/// Does the pending work once, and returns whether there was any.
pub(crate) fn work<D: Disk>(
    store: &mut Store<D>,
    engine: &Engine,
    clock: &dyn Clock,
) -> Result<bool, StoreError> {
    let Some(work) = engine.guard().take_work(clock.now().time) else {
        return Ok(false);
    };
    #[cfg(feature = "metrics")]
    let began = crate::clock::stopwatch();
    match store.perform(&work, clock.reading()) {
        Ok(()) => {
            engine.guard().done(&work);
            #[cfg(feature = "metrics")]
            engine.note_sync(crate::clock::stopwatch().saturating_sub(began), clock.now());
            Ok(true)
        }
        Err(error) => {
            engine.guard().failed(work, &error, &store.durable());
            Err(error)
        }
    }
}

/// Does a slice of compaction, and returns whether more is left.
fn compact_slice<D: Disk>(store: &mut Store<D>, engine: &Engine, clock: &dyn Clock) -> bool {
    if !store.is_due() {
        return false;
    }
    let reading = clock.reading();
    // An error here spoils the store, and the next work reports it; a full disk is tried again
    // then.
    store
        .compact(&mut engine.table(reading.moment.time), reading)
        .unwrap_or(false)
}

/// The pause before a full disk is tried again: somebody has to make room first.
const FULL_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;
