//! Where locks live: one slot per lock, in chunks of equal slots, one set of chunks per size class.
//!
//! A slot holds one entry, inline and without pointers:
//!
//! ```text
//!  0        8          11   12        16            16+key_len
//!  +--------+----------+----+---------+-------------+-----------------+
//!  |deadline|key_len   | db |value_len| key bytes   | value bytes     |
//!  | u64    |u24       | u8 |u32      |             |                 |
//!  +--------+----------+----+---------+-------------+-----------------+
//! ```
//!
//! A free slot has `value_len == FREE` and the next free slot of its chunk in the deadline field. Compared with
//! one heap allocation per lock this saves the allocator's header and the pointer, makes acquire and release free
//! of allocation, and lets the sweep walk memory in order. An entry too large for the largest class is a chunk of
//! its own. The slab knows nothing of hashes: [`crate::shard`] finds slots, this file stores them.

use crate::time::{Deadline, Time};

/// A slot's address: size class in the top bits, slot number below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

/// All entries of one shard.
#[derive(Debug)]
pub(crate) struct Slab {
    classes: Box<[Class]>,
    /// Bytes of the slots that hold an entry.
    live_bytes: u64,
    cursor: SweepCursor,
}

/// What one bounded sweep step found.
#[derive(Debug, Default)]
pub(crate) struct SweepStep {
    /// Slots to free; the caller also removes them from its index.
    pub(crate) dead: Vec<SlotId>,
    /// Work done, in slots looked at.
    pub(crate) visited: usize,
    /// Whether the step reached the end of the slab, so that the next one starts a new pass.
    pub(crate) wrapped: bool,
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self {
            classes: (0..CLASS_COUNT)
                .map(|class| Class::new(slot_len(class)))
                .collect(),
            live_bytes: 0,
            cursor: SweepCursor::default(),
        }
    }

    /// Stores an entry in a free slot.
    ///
    /// Preconditions: `key.len() <= KEY_LEN_MAX`, `value.len() <= VALUE_LEN_MAX`, fewer than [`SLOTS_MAX`] live
    /// slots (the dispatcher enforces all three).
    pub(crate) fn insert(
        &mut self,
        db: u8,
        key: &[u8],
        value: &[u8],
        deadline: Deadline,
    ) -> SlotId {
        debug_assert!(key.len() <= KEY_LEN_MAX);
        debug_assert!(value.len() <= VALUE_LEN_MAX);
        let class_index = class_of(HEADER_LEN + key.len() + value.len());
        let class = &mut self.classes[class_index];
        let number = class.allocate(HEADER_LEN + key.len() + value.len());
        let slot = class.slot_mut(number);
        write_header(slot, deadline, db, key.len(), value.len());
        slot[HEADER_LEN..HEADER_LEN + key.len()].copy_from_slice(key);
        slot[HEADER_LEN + key.len()..HEADER_LEN + key.len() + value.len()].copy_from_slice(value);
        self.live_bytes += slot.len() as u64;
        class.note_deadline(number, deadline);
        SlotId::new(class_index, number)
    }

    /// Frees a slot that holds an entry; the entry's database and deadline.
    pub(crate) fn remove(&mut self, id: SlotId) -> (u8, Deadline) {
        let class = &mut self.classes[id.class()];
        let slot = class.slot(id.number());
        let entry = (slot[11], deadline(slot));
        self.live_bytes -= slot.len() as u64;
        class.free(id.number());
        entry
    }

    /// Replaces an entry's value in place; `false` when the new value needs another size of slot.
    pub(crate) fn replace_value(&mut self, id: SlotId, value: &[u8]) -> bool {
        let class_index = id.class();
        let class = &mut self.classes[class_index];
        let slot = class.slot_mut(id.number());
        let key_len = key_len(slot);
        let len = HEADER_LEN + key_len + value.len();
        if class_of(len) != class_index || (class_index == LARGE && slot.len() != len) {
            return false;
        }
        slot[12..16].copy_from_slice(&len_u32(value.len()).to_le_bytes());
        slot[HEADER_LEN + key_len..len].copy_from_slice(value);
        true
    }

    /// Moves an entry's deadline.
    pub(crate) fn set_deadline(&mut self, id: SlotId, deadline: Deadline) {
        let class = &mut self.classes[id.class()];
        class.slot_mut(id.number())[..8].copy_from_slice(&deadline.to_bits().to_le_bytes());
        class.note_deadline(id.number(), deadline);
    }

    pub(crate) fn key(&self, id: SlotId) -> &[u8] {
        let slot = self.slot(id);
        &slot[HEADER_LEN..HEADER_LEN + key_len(slot)]
    }

    pub(crate) fn value(&self, id: SlotId) -> &[u8] {
        let slot = self.slot(id);
        let start = HEADER_LEN + key_len(slot);
        &slot[start..start + value_len(slot)]
    }

    pub(crate) fn db(&self, id: SlotId) -> u8 {
        self.slot(id)[11]
    }

    pub(crate) fn deadline(&self, id: SlotId) -> Deadline {
        deadline(self.slot(id))
    }

    /// Whether the slot holds exactly this key of this database.
    #[inline]
    pub(crate) fn is(&self, id: SlotId, db: u8, key: &[u8]) -> bool {
        let slot = self.slot(id);
        word(slot, 8) == header_word(db, key.len())
            && slot[HEADER_LEN..HEADER_LEN + key.len()] == *key
    }

    /// Bytes of the slots that hold an entry.
    pub(crate) const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The earliest instant at which an entry may end; never later than the true one.
    pub(crate) fn earliest_deadline(&self) -> Deadline {
        let chunks = self.classes.iter().flat_map(|class| &class.chunks);
        chunks
            .map(|chunk| chunk.earliest)
            .min()
            .unwrap_or(Deadline::NEVER)
    }

    /// Looks at up to about `budget` slots from where the last step ended and reports the dead ones. Chunks whose
    /// earliest deadline has not come are passed over for the price of one slot per 64.
    pub(crate) fn sweep(&mut self, now: Time, budget: usize) -> SweepStep {
        let mut step = SweepStep::default();
        let mut skipped = 0;
        while step.visited + skipped / CHUNKS_PER_SLOT_COST < budget {
            let Some(class) = self.classes.get_mut(self.cursor.class) else {
                self.cursor = SweepCursor::default();
                step.wrapped = true;
                break;
            };
            let Some(chunk) = class.chunks.get_mut(self.cursor.chunk) else {
                self.cursor = SweepCursor {
                    class: self.cursor.class + 1,
                    chunk: 0,
                };
                continue;
            };
            if chunk.earliest.is_past(now) {
                step.visited += chunk.sweep(now, self.cursor, class.slot_len, &mut step.dead);
            } else {
                skipped += 1;
            }
            self.cursor.chunk += 1;
        }
        step
    }

    /// Every live slot, in memory order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.classes
            .iter()
            .enumerate()
            .flat_map(|(class_index, class)| {
                class
                    .chunks
                    .iter()
                    .enumerate()
                    .flat_map(move |(chunk_index, chunk)| {
                        chunk
                            .slots(class.slot_len)
                            .enumerate()
                            .filter(|(_, slot)| is_live(slot))
                            .map(move |(i, _)| {
                                SlotId::new(class_index, slot_number(class_index, chunk_index, i))
                            })
                    })
            })
    }

    #[inline]
    fn slot(&self, id: SlotId) -> &[u8] {
        self.classes[id.class()].slot(id.number())
    }
}

impl SlotId {
    fn new(class: usize, number: u32) -> Self {
        debug_assert!(number < SLOTS_MAX);
        Self((len_u32(class) << CLASS_SHIFT) | number)
    }

    const fn class(self) -> usize {
        (self.0 >> CLASS_SHIFT) as usize
    }

    const fn number(self) -> u32 {
        self.0 & (SLOTS_MAX - 1)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct SweepCursor {
    class: usize,
    chunk: usize,
}

/// The chunks of one slot length.
#[derive(Debug)]
struct Class {
    /// Bytes per slot; 0 for the class of entries that are a chunk of their own.
    slot_len: usize,
    chunks: Vec<Chunk>,
    /// Chunks with a free slot; the last one serves the next allocation.
    open: Vec<u32>,
    /// Chunks whose memory was given back; their numbers are reused.
    vacant: Vec<u32>,
}

#[derive(Debug)]
struct Chunk {
    bytes: Box<[u8]>,
    /// Not later than any deadline in the chunk, so that a sweep can pass over it.
    earliest: Deadline,
    /// First free slot, or `NO_SLOT`.
    free: u16,
    live: u16,
    /// Whether the chunk's number is in `Class::open`.
    is_open: bool,
}

impl Class {
    const fn new(slot_len: usize) -> Self {
        Self {
            slot_len,
            chunks: Vec::new(),
            open: Vec::new(),
            vacant: Vec::new(),
        }
    }

    /// The number of a slot that is now the caller's; `len` matters for the class of large entries only.
    fn allocate(&mut self, len: usize) -> u32 {
        if self.slot_len == 0 {
            return self.open_chunk(Chunk::large(len));
        }
        loop {
            let Some(&number) = self.open.last() else {
                let number = self.open_chunk(Chunk::new(self.slot_len));
                self.open.push(number);
                continue;
            };
            let chunk = &mut self.chunks[number as usize];
            if let Some(slot) = chunk.take_free(self.slot_len) {
                return (number << CHUNK_SHIFT) | u32::from(slot);
            }
            // Full, or given back while it waited in the list.
            chunk.is_open = false;
            let is_vacant = chunk.bytes.is_empty();
            self.open.pop();
            if is_vacant {
                self.vacant.push(number);
            }
        }
    }

    fn open_chunk(&mut self, chunk: Chunk) -> u32 {
        if let Some(number) = self.vacant.pop() {
            self.chunks[number as usize] = chunk;
            return number;
        }
        self.chunks.push(chunk);
        len_u32(self.chunks.len() - 1)
    }

    fn free(&mut self, number: u32) {
        if self.slot_len == 0 {
            self.chunks[number as usize] = Chunk::vacated();
            self.vacant.push(number);
            return;
        }
        let chunk_number = number >> CHUNK_SHIFT;
        let chunk = &mut self.chunks[chunk_number as usize];
        chunk.give_free(number & CHUNK_MASK, self.slot_len);
        let candidate = if chunk.is_open {
            (self.open.last() != Some(&chunk_number)).then_some(chunk_number)
        } else {
            chunk.is_open = true;
            // The chunk that served allocations until now was kept even if it was empty.
            let served = self.open.last().copied();
            self.open.push(chunk_number);
            served
        };
        if let Some(number) = candidate {
            self.vacate_if_empty(number);
        }
    }

    /// Gives back the memory of an open chunk that holds nothing. Its number stays in `open` until `allocate` meets
    /// it there.
    fn vacate_if_empty(&mut self, number: u32) {
        let chunk = &mut self.chunks[number as usize];
        if chunk.live == 0 {
            *chunk = Chunk {
                is_open: true,
                ..Chunk::vacated()
            };
        }
    }

    fn note_deadline(&mut self, number: u32, deadline: Deadline) {
        let chunk = if self.slot_len == 0 {
            number
        } else {
            number >> CHUNK_SHIFT
        };
        let earliest = &mut self.chunks[chunk as usize].earliest;
        *earliest = (*earliest).min(deadline);
    }

    #[inline]
    fn slot(&self, number: u32) -> &[u8] {
        if self.slot_len == 0 {
            return &self.chunks[number as usize].bytes;
        }
        let start = (number & CHUNK_MASK) as usize * self.slot_len;
        &self.chunks[(number >> CHUNK_SHIFT) as usize].bytes[start..start + self.slot_len]
    }

    #[inline]
    fn slot_mut(&mut self, number: u32) -> &mut [u8] {
        if self.slot_len == 0 {
            return &mut self.chunks[number as usize].bytes;
        }
        let start = (number & CHUNK_MASK) as usize * self.slot_len;
        &mut self.chunks[(number >> CHUNK_SHIFT) as usize].bytes[start..start + self.slot_len]
    }
}

impl Chunk {
    fn new(slot_len: usize) -> Self {
        let mut chunk = Self {
            bytes: vec![0; slot_len << CHUNK_SHIFT].into_boxed_slice(),
            earliest: Deadline::NEVER,
            free: NO_SLOT,
            live: 0,
            is_open: true,
        };
        for slot in (0..1 << CHUNK_SHIFT).rev() {
            chunk.link_free(slot, slot_len);
        }
        chunk
    }

    fn large(len: usize) -> Self {
        Self {
            bytes: vec![0; len].into_boxed_slice(),
            live: 1,
            ..Self::vacated()
        }
    }

    fn vacated() -> Self {
        Self {
            bytes: Box::default(),
            earliest: Deadline::NEVER,
            free: NO_SLOT,
            live: 0,
            is_open: false,
        }
    }

    fn take_free(&mut self, slot_len: usize) -> Option<u16> {
        if self.free == NO_SLOT {
            return None;
        }
        let slot = self.free;
        let start = usize::from(slot) * slot_len;
        self.free = u16::from_le_bytes([self.bytes[start], self.bytes[start + 1]]);
        self.live += 1;
        Some(slot)
    }

    fn give_free(&mut self, slot: u32, slot_len: usize) {
        debug_assert!(self.live > 0);
        self.live -= 1;
        if self.live == 0 {
            self.earliest = Deadline::NEVER;
        }
        // `slot` is below 2^CHUNK_SHIFT.
        self.link_free(u16::try_from(slot).unwrap_or(NO_SLOT), slot_len);
    }

    fn link_free(&mut self, slot: u16, slot_len: usize) {
        let start = usize::from(slot) * slot_len;
        let bytes = &mut self.bytes[start..start + HEADER_LEN];
        bytes[..2].copy_from_slice(&self.free.to_le_bytes());
        bytes[12..16].copy_from_slice(&FREE.to_le_bytes());
        self.free = slot;
    }

    fn slots(&self, slot_len: usize) -> std::slice::ChunksExact<'_, u8> {
        self.bytes.chunks_exact(if slot_len == 0 {
            self.bytes.len().max(1)
        } else {
            slot_len
        })
    }

    /// Collects the dead slots and learns the chunk's earliest deadline anew; returns the number of slots seen.
    fn sweep(
        &mut self,
        now: Time,
        at: SweepCursor,
        slot_len: usize,
        dead: &mut Vec<SlotId>,
    ) -> usize {
        let mut earliest = Deadline::NEVER;
        let mut seen = 0;
        for (i, slot) in self.slots(slot_len).enumerate() {
            seen += 1;
            if !is_live(slot) {
                continue;
            }
            let deadline = deadline(slot);
            if deadline.is_past(now) {
                dead.push(SlotId::new(at.class, slot_number(at.class, at.chunk, i)));
            } else {
                earliest = earliest.min(deadline);
            }
        }
        self.earliest = earliest;
        seen
    }
}

fn slot_number(class: usize, chunk: usize, slot: usize) -> u32 {
    if class == LARGE {
        len_u32(chunk)
    } else {
        (len_u32(chunk) << CHUNK_SHIFT) | len_u32(slot)
    }
}

fn write_header(slot: &mut [u8], deadline: Deadline, db: u8, key_len: usize, value_len: usize) {
    slot[..8].copy_from_slice(&deadline.to_bits().to_le_bytes());
    slot[8..12].copy_from_slice(&header_word(db, key_len).to_le_bytes());
    slot[12..16].copy_from_slice(&len_u32(value_len).to_le_bytes());
}

fn header_word(db: u8, key_len: usize) -> u32 {
    (u32::from(db) << 24) | len_u32(key_len)
}

#[inline]
fn key_len(slot: &[u8]) -> usize {
    (word(slot, 8) & 0x00ff_ffff) as usize
}

#[inline]
fn value_len(slot: &[u8]) -> usize {
    word(slot, 12) as usize
}

#[inline]
fn is_live(slot: &[u8]) -> bool {
    slot.len() >= HEADER_LEN && word(slot, 12) != FREE
}

#[inline]
fn deadline(slot: &[u8]) -> Deadline {
    Deadline::from_bits(u64::from_le_bytes(
        slot.first_chunk().copied().unwrap_or_default(),
    ))
}

/// Four bytes of a slot's header as one load.
#[inline]
fn word(slot: &[u8], at: usize) -> u32 {
    let bytes = slot.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
    u32::from_le_bytes(bytes.copied().unwrap_or_default())
}

/// Lengths and numbers in the slab are below 2^32 by the limits below; saturates otherwise.
fn len_u32(len: usize) -> u32 {
    debug_assert!(u32::try_from(len).is_ok());
    u32::try_from(len).unwrap_or(u32::MAX)
}

#[inline]
fn class_of(len: usize) -> usize {
    CLASS_BY_WORDS
        .get(len.div_ceil(8))
        .map_or(LARGE, |&class| class as usize)
}

fn slot_len(class: usize) -> usize {
    SLOT_LENS.get(class).copied().unwrap_or(0)
}

const fn class_by_words() -> [u8; SLOT_LEN_MAX / 8 + 1] {
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

/// Longest key: 2^24 - 1 bytes, what the three length bytes of the header hold.
pub(crate) const KEY_LEN_MAX: usize = (1 << 24) - 1;

/// Longest value: 2^32 - 2 bytes, one less than the mark of a free slot. Far above `proto-max-bulk-len`.
pub(crate) const VALUE_LEN_MAX: usize = (u32::MAX - 1) as usize;

/// Slots per class and shard: what 27 bits address (134 million, 10 GB of the smallest useful locks).
pub(crate) const SLOTS_MAX: u32 = 1 << CLASS_SHIFT;

const CLASS_SHIFT: u32 = 27;
const HEADER_LEN: usize = 16;
const FREE: u32 = u32::MAX;
const NO_SLOT: u16 = u16::MAX;

/// 256 slots per chunk: 20 KB of typical locks, small enough for a node with a dozen locks and one sweep unit.
const CHUNK_SHIFT: u32 = 8;
const CHUNK_MASK: u32 = (1 << CHUNK_SHIFT) - 1;

/// Steps of 8 bytes where locks usually are (a slot wastes 4 bytes on average), then of an eighth to a quarter.
const SLOT_LENS: [usize; 26] = [
    32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 144, 160, 192, 224, 256, 320, 384, 448,
    512, 640, 768, 896, 1024,
];
const SLOT_LEN_MAX: usize = 1024;
const CLASS_BY_WORDS: [u8; SLOT_LEN_MAX / 8 + 1] = class_by_words();

/// The class whose entries are a chunk each.
const LARGE: usize = SLOT_LENS.len();
const CLASS_COUNT: usize = LARGE + 1;

/// A chunk that is passed over costs about a sixty-fourth of a slot that is read.
const CHUNKS_PER_SLOT_COST: usize = 64;

const _: () = assert!(CLASS_COUNT <= 1 << (32 - CLASS_SHIFT));
const _: () = assert!(SLOT_LENS[SLOT_LENS.len() - 1] == SLOT_LEN_MAX);
const _: () = assert!(SLOT_LENS[0] >= HEADER_LEN);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn after(ms: i64) -> Deadline {
        Deadline::after_millis(Time::ZERO, ms)
    }

    #[test]
    fn an_entry_of_any_size_reads_back() {
        let mut slab = Slab::new();
        let sizes = [0, 1, 7, 8, 30, 100, 500, 1000, 1009, 5000, 70_000];
        let mut ids = Vec::new();
        for (i, &key_len) in sizes.iter().enumerate() {
            for &value_len in &sizes {
                let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
                let db = u8::try_from(i).unwrap();
                ids.push((
                    slab.insert(db, &key, &value, after(i64::try_from(value_len).unwrap())),
                    db,
                    key,
                    value,
                ));
            }
        }
        for (id, db, key, value) in &ids {
            assert!(slab.is(*id, *db, key));
            assert!(!slab.is(*id, db + 1, key));
            assert_eq!(slab.key(*id), key);
            assert_eq!(slab.value(*id), value);
            assert_eq!(slab.db(*id), *db);
            assert_eq!(
                slab.deadline(*id),
                after(i64::try_from(value.len()).unwrap())
            );
        }
        assert_eq!(slab.slots().count(), ids.len());
        for (id, ..) in &ids {
            slab.remove(*id);
        }
        assert_eq!(slab.live_bytes(), 0);
        assert_eq!(slab.slots().count(), 0);
    }

    #[test]
    fn a_freed_slot_is_used_again_before_memory_grows() {
        let mut slab = Slab::new();
        let first = slab.insert(0, b"key", b"token", after(1));
        slab.remove(first);
        assert_eq!(slab.insert(0, b"yek", b"nekot", after(1)), first);
    }

    #[test]
    fn chunks_that_empty_give_their_memory_back() {
        let mut slab = Slab::new();
        let ids: Vec<_> = (0..10_000)
            .map(|i: u32| slab.insert(0, &i.to_le_bytes(), b"t", after(9)))
            .collect();
        let held = |slab: &Slab| {
            slab.classes[0]
                .chunks
                .iter()
                .map(|c| c.bytes.len())
                .sum::<usize>()
        };
        let full = held(&slab);
        for id in ids {
            slab.remove(id);
        }
        assert!(
            held(&slab) <= full / 20,
            "{} of {full} bytes still held",
            held(&slab)
        );
        for i in 0..10_000_u32 {
            slab.insert(0, &i.to_le_bytes(), b"t", after(9));
        }
        assert_eq!(held(&slab), full);
    }

    #[test]
    fn a_value_is_replaced_in_place_only_when_its_slot_keeps_its_size() {
        let mut slab = Slab::new();
        let id = slab.insert(3, b"key", b"0123456789", after(5));
        assert!(slab.replace_value(id, b"abc"));
        assert_eq!(
            (slab.key(id), slab.value(id), slab.db(id)),
            (&b"key"[..], &b"abc"[..], 3)
        );
        assert!(!slab.replace_value(id, &[0; 64]));
        assert_eq!(slab.value(id), b"abc");
    }

    #[test]
    fn a_sweep_finds_exactly_the_dead_in_bounded_steps() {
        let mut slab = Slab::new();
        let mut dead_ids = Vec::new();
        for i in 0..5_000_u32 {
            let dies_early = i % 3 == 0;
            let id = slab.insert(
                0,
                &i.to_le_bytes(),
                b"t",
                after(if dies_early { 10 } else { 1_000 }),
            );
            if dies_early {
                dead_ids.push(id.0);
            }
        }
        let mut found = Vec::new();
        for _ in 0..1_000 {
            let step = slab.sweep(at(11), 300);
            assert!(step.visited <= 300 + (1 << CHUNK_SHIFT));
            found.extend(step.dead.iter().map(|id| id.0));
            step.dead.into_iter().for_each(|id| {
                slab.remove(id);
            });
            if step.wrapped {
                break;
            }
        }
        found.sort_unstable();
        dead_ids.sort_unstable();
        assert_eq!(found, dead_ids);
        assert_eq!(slab.earliest_deadline(), after(1_000));
    }

    #[test]
    fn a_sweep_passes_over_chunks_whose_time_has_not_come() {
        let mut slab = Slab::new();
        for i in 0..100_000_u32 {
            slab.insert(0, &i.to_le_bytes(), b"t", after(1_000));
        }
        let step = slab.sweep(at(999), 64);
        assert!(step.wrapped);
        assert_eq!((step.visited, step.dead.len()), (0, 0));
    }
}
