//! The callers that wait for operations.

use std::sync::Arc;

use tokio::sync::oneshot;

use redlock_proto::{OpId, Time};

use crate::error::Error;
use crate::inbox::{Granted, Looks};
use crate::lock_state::LockState;
use crate::released::Released;

/// The caller of one operation.
#[derive(Debug)]
pub(crate) enum Waiter {
    Lock(LockWaiter),
    Token(Option<oneshot::Sender<Released>>),
    Look(oneshot::Sender<Looks>),
}

/// The caller that acquires or holds a lock, with whatever it waits for.
#[derive(Debug)]
pub(crate) struct LockWaiter {
    pub(crate) state: Arc<LockState>,
    pub(crate) acquire: Option<oneshot::Sender<Result<Granted, Error>>>,
    pub(crate) extend: Option<oneshot::Sender<Result<Time, Error>>>,
    pub(crate) release: Option<oneshot::Sender<Released>>,
}

/// The callers of all operations, by the operations' slots.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    slots: Vec<Option<(OpId, Waiter)>>,
}

impl Waiters {
    pub(crate) fn insert(&mut self, op: OpId, waiter: Waiter) {
        while self.slots.len() <= op.slot() {
            self.slots.push(None);
        }
        if let Some(slot) = self.slots.get_mut(op.slot()) {
            *slot = Some((op, waiter));
        }
    }

    /// The caller of a lock that is still known.
    pub(crate) fn lock(&mut self, op: OpId) -> Option<&mut LockWaiter> {
        match self.slots.get_mut(op.slot()) {
            Some(Some((other, Waiter::Lock(lock)))) if *other == op => Some(lock),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, op: OpId) -> Option<Waiter> {
        let slot = self.slots.get_mut(op.slot())?;
        let waiter = slot.take_if(|(other, _)| *other == op);
        waiter.map(|(_, waiter)| waiter)
    }

    /// Removes all waiters. Returns the locks that callers hold or wait for.
    pub(crate) fn take_locks(&mut self) -> Vec<Arc<LockState>> {
        let lock = |waiter| match waiter {
            (_, Waiter::Lock(lock)) => Some(lock.state),
            _ => None,
        };
        self.slots.drain(..).flatten().filter_map(lock).collect()
    }
}
