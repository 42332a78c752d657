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
    Lock {
        state: Arc<LockState>,
        acquire: Option<oneshot::Sender<Result<Granted, Error>>>,
        extend: Option<oneshot::Sender<Result<Time, Error>>>,
        release: Option<oneshot::Sender<Released>>,
    },
    Token(Option<oneshot::Sender<Released>>),
    Look(oneshot::Sender<Looks>),
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

    pub(crate) fn get_mut(&mut self, op: OpId) -> Option<&mut Waiter> {
        match self.slots.get_mut(op.slot()) {
            Some(Some((other, waiter))) if *other == op => Some(waiter),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, op: OpId) -> Option<Waiter> {
        self.get_mut(op)?;
        let slot = self.slots.get_mut(op.slot())?;
        slot.take().map(|(_, waiter)| waiter)
    }

    /// Lets the holder wait for an extension; false if the lock is no longer known.
    pub(crate) fn set_extend(
        &mut self,
        op: OpId,
        answer: oneshot::Sender<Result<Time, Error>>,
    ) -> bool {
        match self.get_mut(op) {
            Some(Waiter::Lock { extend, .. }) => {
                *extend = Some(answer);
                true
            }
            _ => false,
        }
    }

    /// Lets the holder wait for its release.
    pub(crate) fn set_release(&mut self, op: OpId, answer: oneshot::Sender<Released>) {
        if let Some(Waiter::Lock { release, .. }) = self.get_mut(op) {
            *release = Some(answer);
        }
    }

    /// Removes all waiters. Returns the locks that callers hold or wait for.
    pub(crate) fn take_locks(&mut self) -> Vec<Arc<LockState>> {
        let lock = |waiter| match waiter {
            (_, Waiter::Lock { state, .. }) => Some(state),
            _ => None,
        };
        self.slots.drain(..).flatten().filter_map(lock).collect()
    }
}
