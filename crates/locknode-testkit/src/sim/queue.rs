//! The events to come in a world, in their order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::sim::event::Event;

/// An event and when it is due.
#[derive(Debug)]
pub(crate) struct ScheduledEvent {
    pub(crate) at: u64,
    pub(crate) place: Place,
    pub(crate) event: Event,
}

/// Its place among the events that are due at the same moment: those that have waited come first, in the order in which they
/// came, then the others in the order in which they were pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// When it was due at first.
    pub(crate) since: u64,
    pub(crate) seq: u64,
}

/// The events to come. The heap sorts small keys; events stay where they were put.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    keys: BinaryHeap<Reverse<Key>>,
    events: Vec<Option<Event>>,
    free: Vec<u32>,
}

/// When an event comes, and where it is kept.
type Key = (u64, Place, u32);

impl Queue {
    pub(crate) fn push(&mut self, due: ScheduledEvent) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.events.push(None);
            u32::try_from(self.events.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(event) = self.events.get_mut(slot as usize) {
            *event = Some(due.event);
        }
        self.keys.push(Reverse((due.at, due.place, slot)));
    }

    /// The earliest event.
    pub(crate) fn pop(&mut self) -> Option<ScheduledEvent> {
        let Reverse((at, place, slot)) = self.keys.pop()?;
        self.free.push(slot);
        let event = self.events.get_mut(slot as usize)?.take()?;
        Some(ScheduledEvent { at, place, event })
    }

    /// When the earliest event comes, in nanoseconds.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.keys.peek().map(|Reverse((at, ..))| *at)
    }
}
