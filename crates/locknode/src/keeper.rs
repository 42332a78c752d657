//! The thread that makes things durable, and the connections that wait for it.
//!
//! ```text
//!  connection --need--> waits ............................ wakes --> sends
//!       |                                                   ^
//!       +-- has_work --> unpark --> take_work, write, sync, done
//! ```
//!
//! All connections share one sync: what they ask for while one is under way is done by the next. The thread sleeps
//! while there is nothing to do; only nodes with a data directory have one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;
use std::{io, mem};

use locknode_engine::Engine;
use locknode_engine::durable::{Disk, Store, StoreError};

use crate::clock::Clock;

/// What the thread and the connections share.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    waiters: Mutex<Vec<Waker>>,
    is_stopping: AtomicBool,
    syncs: AtomicU64,
    bytes: AtomicU64,
}

/// The thread, as its node holds it.
#[derive(Debug)]
pub(crate) struct Keeper<D: Disk> {
    desk: Arc<Desk>,
    thread: Thread,
    handle: JoinHandle<Store<D>>,
}

impl Desk {
    /// Wakes `waker` when more has become durable, or nothing more will.
    pub(crate) fn wait(&self, waker: &Waker) {
        self.waiters().push(waker.clone());
    }

    /// Syncs since the start, and bytes on disk.
    pub(crate) fn figures(&self) -> (u64, u64) {
        (
            self.syncs.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn wake_all(&self) {
        let waiters = mem::take(&mut *self.waiters());
        waiters.into_iter().for_each(Waker::wake);
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note<D: Disk>(&self, store: &Store<D>) {
        let figures = store.figures();
        self.syncs.store(figures.syncs, Ordering::Relaxed);
        self.bytes.store(figures.bytes, Ordering::Relaxed);
    }
}

impl<D: Disk + 'static> Keeper<D> {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When the operating system has no thread left.
    pub(crate) fn start(
        store: Store<D>,
        engine: Arc<Engine>,
        clock: Arc<dyn Clock>,
        desk: Arc<Desk>,
    ) -> io::Result<Self> {
        desk.note(&store);
        let at_desk = Arc::clone(&desk);
        let handle = thread::Builder::new()
            .name("locknode-disk".to_owned())
            .spawn(move || keep(store, &engine, &*clock, &at_desk))?;
        Ok(Self {
            desk,
            thread: handle.thread().clone(),
            handle,
        })
    }

    /// The thread, to unpark it when there is work.
    pub(crate) fn thread(&self) -> Thread {
        self.thread.clone()
    }

    /// Ends the thread after the work that is wanted now; its store, unless the thread has panicked.
    pub(crate) fn stop(self) -> Option<Store<D>> {
        self.desk.is_stopping.store(true, Ordering::Release);
        self.thread.unpark();
        self.handle.join().ok()
    }
}

fn keep<D: Disk>(mut store: Store<D>, engine: &Engine, clock: &dyn Clock, desk: &Desk) -> Store<D> {
    loop {
        // Where this thread shares a core with those that serve, they go first: what they are about to ask for then has a
        // part in the same sync.
        thread::yield_now();
        let trouble = work(&mut store, engine, clock).err();
        desk.note(&store);
        desk.wake_all();
        let is_stopping = desk.is_stopping.load(Ordering::Acquire);
        match trouble {
            _ if is_stopping => return store,
            Some(error) if error.is_full() => thread::park_timeout(FULL_PAUSE),
            Some(_) => thread::park(),
            None if engine.guard().has_work() => {}
            None if tidy(&mut store, engine, clock) => {}
            None => thread::park(),
        }
    }
}

/// Does what is wanted, once.
fn work<D: Disk>(
    store: &mut Store<D>,
    engine: &Engine,
    clock: &dyn Clock,
) -> Result<(), StoreError> {
    let Some(work) = engine.guard().take_work(clock.now().time) else {
        return Ok(());
    };
    match store.perform(&work, clock.reading()) {
        Ok(()) => {
            engine.guard().done(&work);
            Ok(())
        }
        Err(error) => {
            engine.guard().failed(work, &error, &store.durable());
            Err(error)
        }
    }
}

/// A slice of compaction; whether there is more of it to do.
fn tidy<D: Disk>(store: &mut Store<D>, engine: &Engine, clock: &dyn Clock) -> bool {
    if !store.is_due() {
        return false;
    }
    let reading = clock.reading();
    // An error here spoils the store, which the next work finds out and tells; a full disk is tried again then.
    store
        .compact(&mut engine.table(reading.moment.time), reading)
        .unwrap_or(false)
}

/// Pause before a full disk is tried again: somebody has to make room meanwhile.
const FULL_PAUSE: Duration = Duration::from_secs(1);
