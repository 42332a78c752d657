//! The operations under way, found by number.

use crate::core::operation::{OpId, Operation};
use crate::time::Time;

/// A table of operations. A number is used again, with the next generation, when its operation is over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations {
    slots: Vec<Slot>,
    free: Vec<u32>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u32,
    operation: Option<Operation>,
    /// The slot's entry in the order of alarms.
    registered: Time,
}

impl Operations {
    pub(crate) fn insert(&mut self, operation: Operation) -> OpId {
        self.len += 1;
        if let Some(slot) = self.free.pop()
            && let Some(entry) = self.at(slot)
        {
            entry.operation = Some(operation);
            let generation = entry.generation;
            return OpId { slot, generation };
        }
        // Memory ends long before four thousand million operations.
        let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot {
            generation: 0,
            operation: Some(operation),
            registered: Time::NEVER,
        });
        OpId {
            slot,
            generation: 0,
        }
    }

    pub(crate) fn get_mut(&mut self, op: OpId) -> Option<&mut Operation> {
        self.at(op.slot)
            .filter(|entry| entry.generation == op.generation)?
            .operation
            .as_mut()
    }

    pub(crate) fn get(&self, op: OpId) -> Option<&Operation> {
        self.slots
            .get(op.slot())
            .filter(|entry| entry.generation == op.generation)?
            .operation
            .as_ref()
    }

    pub(crate) fn remove(&mut self, op: OpId) -> Option<Operation> {
        let entry = self
            .at(op.slot)
            .filter(|entry| entry.generation == op.generation)?;
        let operation = entry.operation.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(op.slot);
        self.len -= 1;
        Some(operation)
    }

    /// The operation that is in a slot now.
    pub(crate) fn id_at(&self, slot: u32) -> Option<OpId> {
        let entry = self.slots.get(usize::try_from(slot).ok()?)?;
        entry.operation.as_ref()?;
        Some(OpId {
            slot,
            generation: entry.generation,
        })
    }

    /// When the slot is looked at, [`Time::NEVER`] if it is not.
    pub(crate) fn registered(&self, slot: u32) -> Time {
        let entry = usize::try_from(slot)
            .ok()
            .and_then(|slot| self.slots.get(slot));
        entry.map_or(Time::NEVER, |entry| entry.registered)
    }

    pub(crate) fn set_registered(&mut self, slot: u32, at: Time) {
        if let Some(entry) = self.at(slot) {
            entry.registered = at;
        }
    }

    /// All operations, in the order of their slots.
    pub(crate) fn ids(&self) -> Vec<OpId> {
        (0..self.slots.len())
            .filter_map(|slot| self.id_at(u32::try_from(slot).ok()?))
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    fn at(&mut self, slot: u32) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(slot).ok()?)
    }
}
