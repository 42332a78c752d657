//! What a shard records for those who observe its keys; see [`crate::observers`].

use super::{Probe, Shard};
use crate::guard::Permit;
use crate::key_change::{ChangeKind, KeyChange};
use crate::time::Deadline;

impl Shard {
    /// Takes the changes recorded so far.
    pub(crate) fn take_changes(&mut self) -> Vec<KeyChange> {
        std::mem::take(&mut self.changes)
    }

    /// Records that a list is pushed to, for those who wait.
    #[cfg(feature = "compat")]
    pub(crate) fn note_push(&mut self, db: u8, key: &[u8]) {
        if self.observers.are_there() {
            self.pushed.push((db, key.into()));
        }
    }

    /// Takes the lists recorded so far.
    #[cfg(feature = "compat")]
    pub(crate) fn take_pushed(&mut self) -> Vec<(u8, Box<[u8]>)> {
        std::mem::take(&mut self.pushed)
    }

    /// Records that a tracking client has read a key.
    #[cfg(feature = "compat")]
    pub(crate) fn note_read(&mut self, db: u8, key: &[u8]) {
        self.note(db, key, ChangeKind::Read);
    }

    /// Records a change, if anybody wants to know.
    #[inline]
    pub(super) fn note(&mut self, db: u8, key: &[u8], kind: ChangeKind) {
        if self.observers.are_there() {
            self.record(db, key.into(), kind);
        }
    }

    /// [`Shard::note`] for a key that is there.
    #[inline]
    pub(super) fn note_of(&mut self, probe: Probe, kind: ChangeKind) {
        if self.observers.are_there()
            && let Some(id) = probe.slot()
        {
            self.record(self.slab.db(id), self.slab.key(id).into(), kind);
        }
    }

    /// [`Shard::note`] for a key whose deadline will be this.
    #[cold]
    pub(super) fn note_deadline(&mut self, probe: Probe, deadline: Deadline) {
        if deadline != Deadline::NEVER {
            self.note_of(probe, ChangeKind::DeadlineMoved);
        } else if self.deadline(probe) != Some(Deadline::NEVER) {
            self.note_of(probe, ChangeKind::DeadlineRemoved);
        }
    }

    /// [`Shard::note`] for a key whose value and deadline are set.
    #[inline]
    pub(super) fn note_put(&mut self, db: u8, key: &[u8], kind: ChangeKind, permit: Permit) {
        if self.observers.are_there() {
            self.record(db, key.into(), kind);
            if permit.deadline != Deadline::NEVER && !permit.keeps_deadline {
                self.record(db, key.into(), ChangeKind::DeadlineMoved);
            }
        }
    }

    /// Records that a key was read and is missing.
    pub(crate) fn note_miss(&mut self, db: u8, key: &[u8]) {
        self.note(db, key, ChangeKind::Missed);
    }

    #[cold]
    pub(super) fn record(&mut self, db: u8, key: Box<[u8]>, kind: ChangeKind) {
        self.changes.push(KeyChange { db, key, kind });
    }
}
