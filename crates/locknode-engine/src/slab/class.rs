//! A size class: the chunks whose slots have one length, and which of them serve the next
//! allocation.

use super::chunk::{CHUNK_MASK, CHUNK_SHIFT, Chunk};
use super::entry::{HEADER_LEN, len_u32};
use crate::time::Deadline;

/// The chunks of one slot length.
#[derive(Debug)]
pub(super) struct Class {
    /// Bytes per slot; 0 for the class whose entries have chunks of their own.
    pub(super) slot_len: usize,
    pub(super) chunks: Vec<Chunk>,
    /// Chunks with a free slot; the last one serves the next allocation.
    pub(super) open: Vec<u32>,
    /// Chunks whose memory was freed; their numbers are reused.
    pub(super) vacant: Vec<u32>,
    /// Chunks that became empty and may still be so.
    pub(super) emptied: Vec<u32>,
    /// Chunks that have memory.
    pub(super) held: usize,
    /// Slots that hold an entry.
    pub(super) live: usize,
}

impl Class {
    pub(super) const fn new(slot_len: usize) -> Self {
        Self {
            slot_len,
            chunks: Vec::new(),
            open: Vec::new(),
            vacant: Vec::new(),
            emptied: Vec::new(),
            held: 0,
            live: 0,
        }
    }

    /// Allocates a slot and returns its number; `len` matters only for the class of large entries.
    pub(super) fn allocate(&mut self, len: usize) -> u32 {
        if self.slot_len == 0 {
            return self.open_chunk(Chunk::large(len));
        }
        loop {
            let Some(&number) = self.open.last() else {
                let number = self.open_chunk(Chunk::new(self.slot_len));
                self.open.push(number);
                self.held += 1;
                continue;
            };
            let chunk = &mut self.chunks[number as usize];
            if let Some(slot) = chunk.take_free(self.slot_len) {
                self.live += 1;
                return (number << CHUNK_SHIFT) | u32::from(slot);
            }
            // Full, or freed while it waited in the list.
            chunk.is_open = false;
            let is_vacant = chunk.is_vacant();
            self.open.pop();
            if is_vacant {
                self.vacant.push(number);
            }
        }
    }

    pub(super) fn open_chunk(&mut self, chunk: Chunk) -> u32 {
        if let Some(number) = self.vacant.pop() {
            self.chunks[number as usize] = chunk;
            return number;
        }
        self.chunks.push(chunk);
        len_u32(self.chunks.len() - 1)
    }

    pub(super) fn free(&mut self, number: u32) {
        if self.slot_len == 0 {
            self.chunks[number as usize] = Chunk::vacated();
            self.vacant.push(number);
            return;
        }
        let chunk_number = number >> CHUNK_SHIFT;
        let chunk = &mut self.chunks[chunk_number as usize];
        chunk.give_free(number & CHUNK_MASK, self.slot_len);
        self.live -= 1;
        if !chunk.is_open {
            chunk.is_open = true;
            self.open.push(chunk_number);
        }
        if chunk.live == 0 {
            if !chunk.is_emptied {
                chunk.is_emptied = true;
                self.emptied.push(chunk_number);
            }
            self.give_back();
        }
    }

    /// Frees the memory of empty chunks while less than half of the slots are in use. A few chunks
    /// stay, so that locks that come and go cost no allocation.
    pub(super) fn give_back(&mut self) {
        while self.held > CHUNKS_KEPT && self.live < (self.held << CHUNK_SHIFT) / 2 {
            let Some(number) = self.emptied.pop() else {
                return;
            };
            let chunk = &mut self.chunks[number as usize];
            chunk.is_emptied = false;
            if chunk.live == 0 {
                // Its number stays in `open` until `allocate` finds it there.
                *chunk = Chunk {
                    is_open: true,
                    ..Chunk::vacated()
                };
                self.held -= 1;
            }
        }
    }

    pub(super) fn note_deadline(&mut self, number: u32, deadline: Deadline) {
        let chunk = if self.slot_len == 0 {
            number
        } else {
            number >> CHUNK_SHIFT
        };
        let earliest = &mut self.chunks[chunk as usize].earliest;
        *earliest = (*earliest).min(deadline);
    }

    #[inline]
    pub(super) fn slot(&self, number: u32) -> &[u8] {
        if self.slot_len == 0 {
            return &self.chunks[number as usize].bytes;
        }
        let start = (number & CHUNK_MASK) as usize * self.slot_len;
        &self.chunks[(number >> CHUNK_SHIFT) as usize].bytes[start..start + self.slot_len]
    }

    #[inline]
    pub(super) fn slot_mut(&mut self, number: u32) -> &mut [u8] {
        if self.slot_len == 0 {
            return &mut self.chunks[number as usize].bytes;
        }
        let start = (number & CHUNK_MASK) as usize * self.slot_len;
        &mut self.chunks[(number >> CHUNK_SHIFT) as usize].bytes[start..start + self.slot_len]
    }
}

pub(super) fn slot_number(class: usize, chunk: usize, slot: usize) -> u32 {
    if class == LARGE {
        len_u32(chunk)
    } else {
        (len_u32(chunk) << CHUNK_SHIFT) | len_u32(slot)
    }
}

#[inline]
pub(super) fn class_of(len: usize) -> usize {
    CLASS_BY_WORDS
        .get(len.div_ceil(8))
        .map_or(LARGE, |&class| class as usize)
}

pub(super) fn slot_len(class: usize) -> usize {
    SLOT_LENS.get(class).copied().unwrap_or(0)
}

pub(super) const fn class_by_words() -> [u8; SLOT_LEN_MAX / 8 + 1] {
    let mut table = [0; SLOT_LEN_MAX / 8 + 1];
    let mut words = 0;
    let mut class = 0_u8;
    while words < table.len() {
        if words * 8 > SLOT_LENS[class as usize] {
            class += 1;
        }
        table[words] = class;
        words += 1;
    }
    table
}

/// Empty chunks kept for the next locks: 2,048 locks, more than a batch of requests.
pub(super) const CHUNKS_KEPT: usize = 8;

/// Steps of 8 bytes for usual lock sizes (a slot wastes 4 bytes on average), then of an eighth to a
/// quarter.
pub(super) const SLOT_LENS: [usize; 26] = [
    32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 144, 160, 192, 224, 256, 320, 384, 448,
    512, 640, 768, 896, 1024,
];

pub(super) const SLOT_LEN_MAX: usize = 1024;

pub(super) const CLASS_BY_WORDS: [u8; SLOT_LEN_MAX / 8 + 1] = class_by_words();

/// The class whose entries have a chunk each.
pub(super) const LARGE: usize = SLOT_LENS.len();

pub(super) const CLASS_COUNT: usize = LARGE + 1;

const _: () = assert!(SLOT_LENS[SLOT_LENS.len() - 1] == SLOT_LEN_MAX);

const _: () = assert!(SLOT_LENS[0] >= HEADER_LEN);
