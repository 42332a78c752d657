//! The thread that makes things durable, and the connections that wait for it.
//!
//! ```text
//!  connection --need--> Lobby ............................ woken --> sends
//!                         |                                 ^
//!                         +--> unpark --> take_work, write, sync, done
//! ```
//!
//! All connections share one sync: what they ask for while one is under way is done by the next. The thread sleeps
//! while there is nothing to do; only nodes with a data directory have one.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use locknode_engine::Engine;
use locknode_engine::durable::{Disk, Store, StoreError};
use tokio::sync::{Notify, futures::Notified};

use crate::clock::Clock;
use crate::lobby::Lobby;

/// What the thread and the connections share.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    /// Where connections wait, one for each `serve` call.
    lobbies: Mutex<Vec<Weak<Lobby>>>,
    /// How often something became durable, or turned out not to.
    rounds: AtomicU64,
    /// Told when the disk gets into trouble, and when it is out of it.
    changed: Notify,
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
    /// A place for connections to wait in.
    pub(crate) fn open_lobby(&self) -> Arc<Lobby> {
        let lobby = Arc::<Lobby>::default();
        let mut lobbies = self.lobbies();
        lobbies.retain(|known| known.strong_count() > 0);
        lobbies.push(Arc::downgrade(&lobby));
        lobby
    }

    /// How often something became durable, or turned out not to.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Acquire)
    }

    /// Completes when the disk gets into trouble, or out of it, after this call.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    /// Tells those who watch the disk that something has changed.
    pub(crate) fn tell_change(&self) {
        self.changed.notify_waiters();
    }

    /// Syncs since the start, and bytes on disk.
    pub(crate) fn figures(&self) -> (u64, u64) {
        (
            self.syncs.load(Ordering::Relaxed),
            self.bytes.load(Ordering::Relaxed),
        )
    }

    /// Tells all who wait that more has become durable, or that nothing more will.
    pub(crate) fn finish_round(&self) {
        self.rounds.fetch_add(1, Ordering::AcqRel);
        for lobby in self.lobbies().iter().filter_map(Weak::upgrade) {
            lobby.round_is_done();
        }
    }

    fn lobbies(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Lobby>>> {
        self.lobbies.lock().unwrap_or_else(PoisonError::into_inner)
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
    let mut is_well = true;
    loop {
        // Where this thread shares a core with those that serve, they go first: what they are about to ask for then has a
        // part in the same sync.
        thread::yield_now();
        let done = work(&mut store, engine, clock);
        if !matches!(done, Ok(false)) {
            desk.note(&store);
            desk.finish_round();
            if is_well != done.is_ok() {
                is_well = done.is_ok();
                desk.tell_change();
            }
        }
        match done {
            _ if desk.is_stopping.load(Ordering::Acquire) => return store,
            Err(error) if error.is_full() => thread::park_timeout(FULL_PAUSE),
            Err(_) => thread::park(),
            Ok(_) if engine.guard().has_work() => {}
            Ok(_) if tidy(&mut store, engine, clock) => {}
            Ok(_) => thread::park(),
        }
    }
}

/// Does what is wanted, once; tells whether anything was.
fn work<D: Disk>(
    store: &mut Store<D>,
    engine: &Engine,
    clock: &dyn Clock,
) -> Result<bool, StoreError> {
    let Some(work) = engine.guard().take_work(clock.now().time) else {
        return Ok(false);
    };
    match store.perform(&work, clock.reading()) {
        Ok(()) => {
            engine.guard().done(&work);
            Ok(true)
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

#[cfg(test)]
mod tests;
