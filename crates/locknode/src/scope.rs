//! The connections of one `serve` call, and how they are shut down.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::watch;

use crate::sync_waiters::SyncWaiters;

/// How far the shutdown of a `serve` call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
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
    /// A [`Phase`]: every batch looks at it, so it is one load.
    phase: Arc<AtomicU8>,
    /// Its receivers are the members.
    members: watch::Sender<()>,
    /// The connections that wait for the disk.
    pub(crate) waiters: Arc<SyncWaiters>,
}

/// One connection's membership, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct ScopeMember {
    phase: Arc<AtomicU8>,
    /// The phase last seen, so that a change just before sleeping is not missed.
    seen: Phase,
    _membership: watch::Receiver<()>,
    pub(crate) waiters: Arc<SyncWaiters>,
}

impl Scope {
    /// Creates a scope whose connections wait for the disk in `waiters`.
    pub(crate) fn new(waiters: Arc<SyncWaiters>) -> Self {
        Self {
            phase: Arc::new(AtomicU8::new(Phase::Serving as u8)),
            members: watch::Sender::new(()),
            waiters,
        }
    }

    /// Adds a connection.
    pub(crate) fn enter(&self) -> ScopeMember {
        ScopeMember {
            phase: Arc::clone(&self.phase),
            seen: Phase::Serving,
            _membership: self.members.subscribe(),
            waiters: Arc::clone(&self.waiters),
        }
    }

    /// Moves on to a phase; the caller wakes the connections.
    pub(crate) fn advance(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::SeqCst);
    }

    /// Waits until no connection is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub(crate) async fn emptied(&self) {
        self.members.closed().await;
    }
}

impl ScopeMember {
    /// Returns the current phase.
    pub(crate) fn phase(&mut self) -> Phase {
        self.seen = self.current();
        self.seen
    }

    /// Returns whether the phase has changed since [`ScopeMember::phase`] was last called.
    pub(crate) fn has_moved(&self) -> bool {
        self.seen != self.current()
    }

    fn current(&self) -> Phase {
        let phase = self.phase.load(Ordering::SeqCst);
        [Phase::Serving, Phase::Draining]
            .into_iter()
            .find(|it| *it as u8 == phase)
            .unwrap_or(Phase::Aborting)
    }
}
