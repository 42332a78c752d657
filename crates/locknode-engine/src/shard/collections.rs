//! Keys that hold a value in place of a token: a hash, a list, a set or a sorted set.

use super::{Probe, Shard};
use crate::fence::Grant;
#[cfg(feature = "compat")]
use crate::guard::Permit;
#[cfg(feature = "compat")]
use crate::key_change::ChangeKind;
use crate::key_hash::KeyHash;
use crate::slab::SlotId;
use crate::time::Deadline;
use crate::values::Value;

impl Shard {
    /// Returns whether the key holds a value in place of a token.
    #[inline]
    pub(crate) fn is_collection(&self, probe: Probe) -> bool {
        cfg!(feature = "compat") && self.grant(probe).is_some_and(Grant::is_collection)
    }

    /// Returns the value of a live key that holds no token.
    pub(crate) fn collection(&self, probe: Probe) -> Option<&Value> {
        probe.slot().and_then(|id| self.collection_at(id))
    }

    /// Returns what TYPE replies.
    pub(crate) fn type_name(&self, probe: Probe) -> &'static str {
        probe.slot().map_or("none", |id| self.type_name_at(id))
    }

    pub(super) fn type_name_at(&self, id: SlotId) -> &'static str {
        self.collection_at(id).map_or("string", Value::type_name)
    }

    pub(super) fn collection_at(&self, id: SlotId) -> Option<&Value> {
        self.values.get(self.value_number(id)?)
    }

    /// Returns the number of a value; `None` for a token.
    pub(super) fn value_number(&self, id: SlotId) -> Option<u32> {
        let number = self.slab.value(id).first_chunk().copied();
        let is_collection = self.slab.grant(id).is_collection();
        is_collection.then(|| number.map_or(u32::MAX, u32::from_le_bytes))
    }

    /// Creates the key with a value. It must be missing; its fence counter rises `[F1]`.
    #[cfg(feature = "compat")]
    pub(crate) fn create(
        &mut self,
        probe: Probe,
        db: u8,
        key: &[u8],
        value: Value,
        permit: Permit,
    ) -> Grant {
        self.note(db, key, ChangeKind::Created);
        let counter = self.fences.raise(db, key, permit.floor);
        let grant = Grant::new(counter, permit.is_logged);
        self.insert_collection(db, probe.hash, key, value, permit.deadline, grant);
        grant
    }

    /// Changes the value of a live key that holds no token.
    #[cfg(feature = "compat")]
    pub(crate) fn change_collection<R>(
        &mut self,
        probe: Probe,
        work: impl FnOnce(&mut Value) -> R,
    ) -> Option<R> {
        let number = self.value_number(probe.slot()?)?;
        self.values.change(number, work)
    }

    /// Records for the observers that a value has changed.
    #[cfg(feature = "compat")]
    pub(crate) fn note_changed(&mut self, probe: Probe) {
        self.note_of(probe, ChangeKind::Written);
    }

    /// [`Shard::insert`] for a key with a value in place of a token.
    pub(crate) fn insert_collection(
        &mut self,
        db: u8,
        hash: KeyHash,
        key: &[u8],
        value: Value,
        deadline: Deadline,
        grant: Grant,
    ) {
        let number = self.values.store(value).to_le_bytes();
        self.insert(db, hash, key, &number, deadline, grant.of_collection());
    }
}
