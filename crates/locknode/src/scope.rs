//! The connections of one `serve` call, and how they are shut down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::sync::Notify;

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
    phase: AtomicU8,
    members: AtomicUsize,
    emptied: Notify,
    waiters: Arc<SyncWaiters>,
}

/// One connection's membership, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ScopeMember {
    scope: Arc<Scope>,
    /// The phase last seen, so that a change just before sleeping is not missed.
    seen: Phase,
}

impl Scope {
    /// Creates a scope whose connections wait for the disk in `waiters`.
    pub(crate) fn new(waiters: Arc<SyncWaiters>) -> Self {
        Self {
            phase: AtomicU8::new(Phase::Serving as u8),
            members: AtomicUsize::new(0),
            emptied: Notify::new(),
            waiters,
        }
    }

    /// The connections that wait for the disk.
    pub(crate) fn waiters(&self) -> &SyncWaiters {
        &self.waiters
    }

    /// Adds a connection.
    pub(crate) fn enter(self: &Arc<Self>) -> ScopeMember {
        self.members.fetch_add(1, Ordering::AcqRel);
        ScopeMember {
            scope: Arc::clone(self),
            seen: Phase::Serving,
        }
    }

    /// Moves on to a phase; the caller wakes the connections.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Release);
    }

    /// Waits until no connection is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub(crate) async fn emptied(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.members.load(Ordering::Acquire) == 0 {
                return;
            }
            emptied.await;
        }
    }

    fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Serving,
            1 => Phase::Draining,
            _ => Phase::Aborting,
        }
    }
}

impl ScopeMember {
    /// The connections that wait for the disk.
    pub(crate) fn waiters(&self) -> &SyncWaiters {
        &self.scope.waiters
    }

    /// Returns the current phase.
    pub(crate) fn phase(&mut self) -> Phase {
        self.seen = self.scope.phase();
        self.seen
    }

    /// Returns whether the phase has changed since [`ScopeMember::phase`] was last called.
    pub(crate) fn has_moved(&self) -> bool {
        self.seen != self.scope.phase()
    }
}

impl Drop for ScopeMember {
    fn drop(&mut self) {
        if self.scope.members.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.scope.emptied.notify_waiters();
        }
    }
}
