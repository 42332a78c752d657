//! The operations under way, found by number.

use crate::core::op_id::OpId;
use crate::core::operation::{Operation, State};
use crate::time::Time;

/// A table of operations. A number is used again, with the next generation, when its operation has ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operations {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Slot {
    generation: u32,
    /// Boxed, to be taken out while something is done with it.
    operation: Option<Box<Operation>>,
    /// The slot's entry in the order of alarms.
    registered: Time,
}

impl Operations {
    pub(crate) fn insert(&mut self, mut operation: Operation) -> OpId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                operation: None,
                registered: Time::NEVER,
            });
            // Memory ends long before four thousand million operations.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let generation = self.at(slot).map_or(0, |entry| entry.generation);
        let id = OpId { slot, generation };
        operation.id = id;
        if let Some(entry) = self.at(slot) {
            entry.operation = Some(Box::new(operation));
        }
        id
    }

    pub(crate) fn get_mut(&mut self, op: OpId) -> Option<&mut Operation> {
        self.entry(op)?.operation.as_deref_mut()
    }

    /// Takes an operation out, to be [put back](Self::put_back).
    pub(crate) fn take(&mut self, op: OpId) -> Option<Box<Operation>> {
        self.entry(op)?.operation.take()
    }

    /// Puts an operation back, unless it has ended.
    pub(crate) fn put_back(&mut self, operation: Box<Operation>) {
        let slot = operation.id.slot;
        let Some(entry) = self.at(slot) else {
            return;
        };
        if let State::Ended = operation.state {
            entry.generation = entry.generation.wrapping_add(1);
            self.free.push(slot);
        } else {
            entry.operation = Some(operation);
        }
    }

    /// The operation that is in a slot now.
    pub(crate) fn id_at(&self, slot: u32) -> Option<OpId> {
        let entry = self.slots.get(usize::try_from(slot).ok()?)?;
        entry.operation.as_ref().map(|operation| operation.id)
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
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Operation> {
        self.slots
            .iter()
            .filter_map(|entry| entry.operation.as_deref())
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Operation> {
        self.slots
            .iter_mut()
            .filter_map(|entry| entry.operation.as_deref_mut())
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn entry(&mut self, op: OpId) -> Option<&mut Slot> {
        self.at(op.slot)
            .filter(|entry| entry.generation == op.generation)
    }

    fn at(&mut self, slot: u32) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(slot).ok()?)
    }
}
