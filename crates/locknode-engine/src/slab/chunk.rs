//! A chunk: 256 slots of one length in one allocation, or one large entry.

use super::entry::{FREE, HEADER_LEN, deadline, is_live};
use crate::time::{Deadline, Time};

#[derive(Debug)]
pub(super) struct Chunk {
    /// Empty, with room for all slots, when the chunk is new: memory is written when its slots are.
    pub(super) bytes: Vec<u8>,
    /// A lower bound of the deadlines in the chunk, so that a sweep can skip it.
    pub(super) earliest: Deadline,
    /// The first slot that is free again, or `NO_SLOT`.
    pub(super) free: u16,
    /// Slots that have held an entry; `bytes` ends behind them.
    pub(super) used: u16,
    pub(super) live: u16,
    /// Whether the chunk's number is in `Class::open`.
    pub(super) is_open: bool,
    /// Whether the chunk's number is in `Class::emptied`.
    pub(super) is_emptied: bool,
}

impl Chunk {
    pub(super) fn new(slot_len: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(slot_len << CHUNK_SHIFT),
            is_open: true,
            ..Self::vacated()
        }
    }

    pub(super) fn large(len: usize) -> Self {
        Self {
            bytes: vec![0; len],
            used: 1,
            live: 1,
            ..Self::vacated()
        }
    }

    pub(super) fn vacated() -> Self {
        Self {
            bytes: Vec::new(),
            earliest: Deadline::NEVER,
            free: NO_SLOT,
            used: 0,
            live: 0,
            is_open: false,
            is_emptied: false,
        }
    }

    pub(super) fn take_free(&mut self, slot_len: usize) -> Option<u16> {
        let slot = self.free;
        if slot == NO_SLOT {
            return self.take_untouched(slot_len);
        }
        let start = usize::from(slot) * slot_len;
        self.free = u16::from_le_bytes([self.bytes[start], self.bytes[start + 1]]);
        self.live += 1;
        Some(slot)
    }

    fn take_untouched(&mut self, slot_len: usize) -> Option<u16> {
        let slot = self.used;
        let is_there = u32::from(slot) <= CHUNK_MASK && !self.is_vacant();
        is_there.then(|| {
            self.bytes.resize(self.bytes.len() + slot_len, 0);
            self.used += 1;
            self.live += 1;
            slot
        })
    }

    /// Returns whether the chunk has no memory.
    pub(super) const fn is_vacant(&self) -> bool {
        self.bytes.capacity() == 0
    }

    pub(super) fn give_free(&mut self, slot: u32, slot_len: usize) {
        debug_assert!(self.live > 0);
        self.live -= 1;
        if self.live == 0 {
            self.earliest = Deadline::NEVER;
        }
        // `slot` is below 2^CHUNK_SHIFT.
        self.link_free(u16::try_from(slot).unwrap_or(NO_SLOT), slot_len);
    }

    pub(super) fn link_free(&mut self, slot: u16, slot_len: usize) {
        let start = usize::from(slot) * slot_len;
        let bytes = &mut self.bytes[start..start + HEADER_LEN];
        bytes[..2].copy_from_slice(&self.free.to_le_bytes());
        bytes[12..16].copy_from_slice(&FREE.to_le_bytes());
        self.free = slot;
    }

    /// The slots that have held an entry.
    pub(super) fn slots(&self, slot_len: usize) -> impl Iterator<Item = &[u8]> {
        let slot_len = match slot_len {
            0 => self.bytes.len().max(1),
            slot_len => slot_len,
        };
        self.bytes.chunks_exact(slot_len)
    }

    /// Reports the expired slots by their number in the chunk, updates the chunk's earliest
    /// deadline, and returns how many slots it examined.
    pub(super) fn sweep(
        &mut self,
        now: Time,
        slot_len: usize,
        mut dead: impl FnMut(usize),
    ) -> usize {
        let mut earliest = Deadline::NEVER;
        let mut seen = 0;
        for (number, slot) in self.slots(slot_len).enumerate() {
            seen += 1;
            if !is_live(slot) {
                continue;
            }
            let deadline = deadline(slot);
            if deadline.is_past(now) {
                dead(number);
            } else {
                earliest = earliest.min(deadline);
            }
        }
        self.earliest = earliest;
        seen
    }
}

pub(super) const NO_SLOT: u16 = u16::MAX;

/// 256 slots per chunk: 20 KB of typical locks, small enough for a node with a dozen locks and for
/// one sweep unit.
pub(super) const CHUNK_SHIFT: u32 = 8;

pub(super) const CHUNK_MASK: u32 = (1 << CHUNK_SHIFT) - 1;
