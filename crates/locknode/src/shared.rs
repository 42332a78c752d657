//! What all tasks of a node share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use locknode_engine::{Engine, Time};
use tokio::sync::{Mutex, Notify, watch};

use crate::clock::Clock;
use crate::directory::Directory;
use crate::disk_thread::{DiskStatus, DiskThread};
use crate::notes::Notes;
use crate::process::Traffic;
use crate::sync_waiters::lock;

/// The engine, its clock, and how its tasks reach one another.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) traffic: Arc<Traffic>,
    /// Present if the node has a data directory.
    pub(crate) disk_thread: std::sync::Mutex<Option<DiskThread<Directory>>>,
    /// To wake the disk thread without the mutex.
    pub(crate) disk: Option<std::thread::Thread>,
    pub(crate) disk_status: Arc<DiskStatus>,
    pub(crate) notes: Arc<Notes>,
    /// Whether SHUTDOWN NOSAVE stopped the node.
    pub(crate) leaves_no_snapshot: AtomicBool,
    /// Held by the one sweeper that works.
    pub(crate) sweep_turn: Mutex<()>,
    /// A [`WaitsFor`].
    pub(crate) sweeper_waits_for: AtomicU8,
    pub(crate) commands_came: Notify,
    pub(crate) stopped: watch::Sender<bool>,
    pub(crate) drain: Duration,
    #[cfg(feature = "hand-over")]
    pub(crate) carried: crate::hand_over::Carried,
}

/// What wakes the sweeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum WaitsFor {
    /// Nothing but the time.
    Nothing,
    /// Somebody who wants to know when locks expire.
    Observers,
    /// Any command.
    Commands,
}

impl Shared {
    /// Ends every `serve` call of the node.
    pub(crate) fn stop(&self, saves: bool) {
        self.leaves_no_snapshot.store(!saves, Ordering::Release);
        self.stopped.send_replace(true);
    }

    /// Wakes the disk thread if it has work.
    pub(crate) fn wake_disk(&self) {
        if let Some(disk) = &self.disk
            && self.engine.guard().has_work()
        {
            disk.unpark();
        }
    }

    /// Wakes the sweeper if a command may have ended its wait; called once per batch.
    #[inline]
    pub(crate) fn wake_sweeper(&self) {
        let waits_for = self.sweeper_waits_for.load(Ordering::Relaxed);
        if waits_for == WaitsFor::Commands as u8
            || (waits_for == WaitsFor::Observers as u8 && self.engine.is_observed())
        {
            self.sweeper_waits_for
                .store(WaitsFor::Nothing as u8, Ordering::Relaxed);
            self.commands_came.notify_one();
        }
    }

    /// Waits, for at most `time`, until commands may have made the next deadline another one than
    /// `known`; returns whether they may.
    ///
    /// If nobody wants to know when locks expire, only someone who does ends the wait, or the first
    /// lock with a deadline.
    pub(crate) async fn wait_for_commands(&self, known: Option<Time>, time: Duration) -> bool {
        let is_observed = self.engine.is_observed();
        let waits_for = if is_observed || known.is_none() {
            WaitsFor::Commands
        } else {
            WaitsFor::Observers
        };
        self.sweeper_waits_for
            .store(waits_for as u8, Ordering::SeqCst);
        // What came before the line above has woken nobody.
        let has_changed = self.engine.is_observed() != is_observed
            || (waits_for == WaitsFor::Commands && self.engine.next_deadline() != known);
        let came = self.commands_came.notified();
        let came = has_changed || tokio::time::timeout(time, came).await.is_ok();
        self.sweeper_waits_for
            .store(WaitsFor::Nothing as u8, Ordering::Relaxed);
        came
    }
}

impl Drop for Shared {
    /// Without `Node::close` this is a crash: what was written stays, and nothing is added.
    fn drop(&mut self) {
        if let Some(disk_thread) = lock(&self.disk_thread).take() {
            disk_thread.stop();
        }
    }
}
