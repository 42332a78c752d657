//! What all tasks of a node share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locknode_engine::Engine;
use tokio::sync::{Mutex, Notify, watch};

use crate::clock::Clock;
use crate::directory::Directory;
use crate::disk_thread::{DiskStatus, DiskThread};
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
    /// Whether SHUTDOWN NOSAVE stopped the node.
    pub(crate) leaves_no_snapshot: AtomicBool,
    /// Held by the one sweeper that works.
    pub(crate) sweep_turn: Mutex<()>,
    /// Whether the sweeper waits for a command.
    pub(crate) is_sweeper_parked: AtomicBool,
    pub(crate) commands_came: Notify,
    pub(crate) stopped: watch::Sender<bool>,
    pub(crate) drain: Duration,
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

    /// Wakes the sweeper if it waits for work; called once per batch.
    #[inline]
    pub(crate) fn wake_sweeper(&self) {
        if self.is_sweeper_parked.load(Ordering::Relaxed) {
            self.is_sweeper_parked.store(false, Ordering::Relaxed);
            self.commands_came.notify_one();
        }
    }

    /// Waits until a command has been executed.
    pub(crate) async fn wait_for_commands(&self) {
        self.is_sweeper_parked.store(true, Ordering::SeqCst);
        // A lock set before the line above has woken nobody.
        if self.engine.next_deadline().is_none() {
            self.commands_came.notified().await;
        }
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
