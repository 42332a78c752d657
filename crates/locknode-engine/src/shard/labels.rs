//! Locks whose holders have said who they are.

use super::{Probe, Shard};
use crate::durable::LockRecord;
use crate::fence::{FENCE_END, Grant};
use crate::guard::Permit;
use crate::key_change::ChangeKind;
use crate::key_hash::KeyHash;
use crate::label::Label;
use crate::time::Deadline;
use crate::values::decode;

impl Shard {
    /// Returns the label of a live lock, if it has one.
    pub(crate) fn label(&self, probe: Probe) -> Option<Label<'_>> {
        probe.slot().and_then(|id| self.slab.label(id))
    }

    /// [`Shard::put`] for a missing key, with a label.
    pub(crate) fn put_labelled(
        &mut self,
        probe: Probe,
        (db, key): (u8, &[u8]),
        value: &[u8],
        label: &Label<'_>,
        permit: Permit,
    ) -> Grant {
        self.note_put(db, key, ChangeKind::Created, permit);
        let grant = Grant::new(self.fences.raise(db, key, permit.floor), permit.is_logged);
        self.insert_labelled((db, key), probe.hash, value, label, permit.deadline, grant);
        grant
    }

    /// [`Shard::insert`] with a label.
    pub(crate) fn insert_labelled(
        &mut self,
        (db, key): (u8, &[u8]),
        hash: KeyHash,
        value: &[u8],
        label: &Label<'_>,
        deadline: Deadline,
        grant: Grant,
    ) {
        let id = (self.slab).insert_labelled(db, key, value, label, deadline, grant);
        self.index(db, hash, id, deadline);
    }

    /// Inserts a lock that an earlier run of the node granted. The key must be missing.
    pub(crate) fn restore(&mut self, hash: KeyHash, lock: &LockRecord<'_>) {
        let (db, key, deadline) = (lock.db, lock.key, lock.deadline);
        let grant = Grant::new(lock.grant.min(FENCE_END - 1), lock.is_logged);
        if lock.is_collection {
            if let Some(value) = decode(lock.token) {
                self.insert_collection(db, hash, key, value, deadline, grant);
            }
        } else if let Some(label) = lock.label.and_then(Label::restored) {
            self.insert_labelled((db, key), hash, lock.token, &label, deadline, grant);
        } else {
            self.insert(db, hash, key, lock.token, deadline, grant);
        }
    }
}
