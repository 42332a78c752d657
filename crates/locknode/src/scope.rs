//! The connections of one `serve` call, and how they are shut down.

use std::sync::Arc;

use tokio::sync::watch;

use crate::sync_waiters::SyncWaiters;

/// How far the shutdown of a `serve` call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Connections are served.
    Serving,
    /// Connections answer what they have received, then close.
    Draining,
    /// Connections close at once.
    Aborting,
}

/// All connections of one `serve` call.
#[derive(Debug)]
pub(crate) struct Scope {
    phase: watch::Sender<Phase>,
    /// The connections that wait for the disk.
    pub(crate) waiters: Arc<SyncWaiters>,
}

/// One connection's membership, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ScopeMember {
    phases: watch::Receiver<Phase>,
    /// The phase last seen, so that a change just before sleeping is not missed.
    seen: Phase,
    pub(crate) waiters: Arc<SyncWaiters>,
}

impl Scope {
    /// Creates a scope whose connections wait for the disk in `waiters`.
    pub(crate) fn new(waiters: Arc<SyncWaiters>) -> Self {
        Self {
            phase: watch::Sender::new(Phase::Serving),
            waiters,
        }
    }

    /// Adds a connection.
    pub(crate) fn enter(&self) -> ScopeMember {
        ScopeMember {
            phases: self.phase.subscribe(),
            seen: Phase::Serving,
            waiters: Arc::clone(&self.waiters),
        }
    }

    /// Moves on to a phase; the caller wakes the connections.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }

    /// Waits until no connection is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub(crate) async fn emptied(&self) {
        self.phase.closed().await;
    }
}

impl ScopeMember {
    /// Returns the current phase.
    pub(crate) fn phase(&mut self) -> Phase {
        if self.has_moved() {
            self.seen = *self.phases.borrow_and_update();
        }
        self.seen
    }

    /// Returns whether the phase has changed since [`ScopeMember::phase`] was last called.
    pub(crate) fn has_moved(&self) -> bool {
        // After the `serve` call there are no changes, but the last one may not have been seen.
        let changed = self.phases.has_changed();
        changed.unwrap_or_else(|_| self.seen != *self.phases.borrow())
    }
}
