//! Storage for locks: one slot per lock, in chunks of equal slots, with one set of chunks per size
//! class.
//!
//! A slot holds one entry, inline and without pointers:
//!
//! ```text
//!  0        8          11   12        16      24            24+key_len
//!  +--------+----------+----+---------+-------+-------------+-----------------+
//!  |deadline|key_len   | db |value_len| grant | key bytes   | value bytes     |
//!  | u64    |u24       | u8 |u32      | u64   |             |                 |
//!  +--------+----------+----+---------+-------+-------------+-----------------+
//! ```
//!
//! A label, if the grant says that there is one, follows the value: a length byte, the time of the
//! grant, the text.
//!
//! A free slot has `value_len == FREE`, and its deadline field holds the next free slot of the
//! chunk. Compared with one heap allocation per lock this saves the allocator's header and the
//! pointer, frees acquire and release from allocation, and lets the sweep walk memory in order. An
//! entry too large for the largest class gets a chunk of its own. The slab knows nothing of hashes:
//! [`crate::shard`] finds slots, this file stores them.

mod chunk;
mod class;
mod entry;

use crate::fence::Grant;
use crate::label::Label;
use crate::time::{Deadline, Time};

use class::{CLASS_COUNT, Class, LARGE, class_of, slot_len, slot_number};
use entry::{
    HEADER_LEN, deadline, grant, header_word, is_live, key_len, label, label_len, len_u32,
    value_len, word, write_grant, write_header, write_label,
};
pub(crate) use entry::{KEY_LEN_MAX, VALUE_LEN_MAX};

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
    /// Work done, in slots examined.
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
    /// Preconditions, all enforced by the dispatcher: `key.len() <= KEY_LEN_MAX`, `value.len() <=
    /// VALUE_LEN_MAX`, fewer than [`SLOTS_MAX`] live slots.
    pub(crate) fn insert(
        &mut self,
        db: u8,
        key: &[u8],
        value: &[u8],
        deadline: Deadline,
        grant: Grant,
    ) -> SlotId {
        debug_assert!(!grant.is_labelled());
        self.place(db, key, value, 0, deadline, grant)
    }

    /// [`Slab::insert`] with a label.
    pub(crate) fn insert_labelled(
        &mut self,
        db: u8,
        key: &[u8],
        value: &[u8],
        label: &Label<'_>,
        deadline: Deadline,
        grant: Grant,
    ) -> SlotId {
        let more = label_len(label);
        let id = self.place(db, key, value, more, deadline, grant.labelled());
        let slot = self.classes[id.class()].slot_mut(id.number());
        write_label(slot, HEADER_LEN + key.len() + value.len(), label);
        id
    }

    /// Stores an entry in a slot with room for some bytes more.
    #[inline(always)]
    fn place(
        &mut self,
        db: u8,
        key: &[u8],
        value: &[u8],
        more: usize,
        deadline: Deadline,
        grant: Grant,
    ) -> SlotId {
        debug_assert!(key.len() <= KEY_LEN_MAX);
        debug_assert!(value.len() <= VALUE_LEN_MAX);
        let len = HEADER_LEN + key.len() + value.len() + more;
        let class_index = class_of(len);
        let class = &mut self.classes[class_index];
        let number = class.allocate(len);
        let slot = class.slot_mut(number);
        write_header(slot, deadline, grant, db, key.len(), value.len());
        slot[HEADER_LEN..HEADER_LEN + key.len()].copy_from_slice(key);
        slot[HEADER_LEN + key.len()..HEADER_LEN + key.len() + value.len()].copy_from_slice(value);
        self.live_bytes += slot.len() as u64;
        class.note_deadline(number, deadline);
        SlotId::new(class_index, number)
    }

    /// Frees a slot that holds an entry, and returns the entry's database, deadline and grant.
    pub(crate) fn remove(&mut self, id: SlotId) -> (u8, Deadline, Grant) {
        let class = &mut self.classes[id.class()];
        let slot = class.slot(id.number());
        let entry = entry_of(slot);
        self.live_bytes -= slot.len() as u64;
        class.free(id.number());
        entry
    }

    /// Replaces an entry's value in place; returns `false` when the new value needs another slot
    /// size. What it replaces had no label, or the caller sets its grant.
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

    /// Moves an entry's deadline, and marks it as logged if it now is; returns its database, its old
    /// deadline and its grant.
    pub(crate) fn move_deadline(
        &mut self,
        id: SlotId,
        deadline: Deadline,
        is_logged: bool,
    ) -> (u8, Deadline, Grant) {
        let class = &mut self.classes[id.class()];
        let slot = class.slot_mut(id.number());
        let (db, old, grant) = entry_of(slot);
        let grant = grant.logged_if(is_logged);
        slot[..8].copy_from_slice(&deadline.to_bits().to_le_bytes());
        write_grant(slot, grant);
        class.note_deadline(id.number(), deadline);
        (db, old, grant)
    }

    pub(crate) fn key(&self, id: SlotId) -> &[u8] {
        let slot = self.slot(id);
        &slot[HEADER_LEN..HEADER_LEN + key_len(slot)]
    }

    #[inline]
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

    pub(crate) fn grant(&self, id: SlotId) -> Grant {
        grant(self.slot(id))
    }

    pub(crate) fn label(&self, id: SlotId) -> Option<Label<'_>> {
        label(self.slot(id))
    }

    pub(crate) fn set_grant(&mut self, id: SlotId, grant: Grant) {
        let class = &mut self.classes[id.class()];
        write_grant(class.slot_mut(id.number()), grant);
    }

    /// Returns the entry's deadline if the entry is for exactly this key of this database.
    #[inline]
    pub(crate) fn deadline_if(&self, id: SlotId, db: u8, key: &[u8]) -> Option<Deadline> {
        let slot = self.slot(id);
        let is_it = word(slot, 8) == header_word(db, key.len())
            && slot.get(HEADER_LEN..HEADER_LEN + key.len()) == Some(key);
        is_it.then(|| deadline(slot))
    }

    /// Returns the entry's value and deadline.
    #[inline]
    pub(crate) fn entry(&self, id: SlotId) -> (&[u8], Deadline) {
        let slot = self.slot(id);
        let start = HEADER_LEN + key_len(slot);
        (&slot[start..start + value_len(slot)], deadline(slot))
    }

    /// Returns the bytes of the slots that hold an entry.
    pub(crate) const fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Returns a lower bound of the deadlines of all entries.
    pub(crate) fn earliest_deadline(&self) -> Deadline {
        let chunks = self.classes.iter().flat_map(|class| &class.chunks);
        chunks
            .map(|chunk| chunk.earliest)
            .min()
            .unwrap_or(Deadline::NEVER)
    }

    /// Examines up to about `budget` slots from where the last step ended, and reports the expired
    /// ones. Chunks whose earliest deadline has not come are skipped, at the price of one slot per
    /// 64.
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
                let SweepCursor {
                    class: class_index,
                    chunk: chunk_index,
                } = self.cursor;
                step.visited += chunk.sweep(now, class.slot_len, |slot| {
                    let number = slot_number(class_index, chunk_index, slot);
                    step.dead.push(SlotId::new(class_index, number));
                });
            } else {
                skipped += 1;
            }
            self.cursor.chunk += 1;
        }
        step
    }

    /// Returns every live slot, in memory order.
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

    /// Visits the live slots among up to about `budget` slots, in memory order, from the chunk at
    /// `cursor` on, and advances `cursor`; returns `false` when no chunk is left.
    ///
    /// Every slot that lives from the first call to the last is visited; memory allocated in
    /// between may or may not be.
    pub(crate) fn scan(
        &self,
        cursor: &mut u64,
        budget: usize,
        mut visit: impl FnMut(SlotId),
    ) -> bool {
        let mut visited = 0;
        while visited < budget {
            let (class_index, chunk_index) = split_cursor(*cursor);
            let Some(class) = self.classes.get(class_index) else {
                return false;
            };
            let Some(chunk) = class.chunks.get(chunk_index) else {
                *cursor = ((class_index as u64) + 1) << CURSOR_CHUNK_BITS;
                continue;
            };
            for (number, slot) in chunk.slots(class.slot_len).enumerate() {
                visited += 1;
                if is_live(slot) {
                    visit(SlotId::new(
                        class_index,
                        slot_number(class_index, chunk_index, number),
                    ));
                }
            }
            visited += 1;
            *cursor += 1;
        }
        true
    }

    #[inline]
    fn slot(&self, id: SlotId) -> &[u8] {
        self.classes[id.class()].slot(id.number())
    }
}

/// The database, deadline and grant in a slot.
#[inline]
fn entry_of(slot: &[u8]) -> (u8, Deadline, Grant) {
    (slot[11], deadline(slot), grant(slot))
}

impl SlotId {
    fn new(class: usize, number: u32) -> Self {
        debug_assert!(number < SLOTS_MAX);
        Self((len_u32(class) << CLASS_SHIFT) | number)
    }

    pub(crate) const fn to_bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    const fn class(self) -> usize {
        (self.0 >> CLASS_SHIFT) as usize
    }

    const fn number(self) -> u32 {
        self.0 & (SLOTS_MAX - 1)
    }
}

/// Splits a scan's cursor into class and chunk.
fn split_cursor(cursor: u64) -> (usize, usize) {
    let part = |bits: u64| usize::try_from(bits).unwrap_or(usize::MAX);
    (
        part(cursor >> CURSOR_CHUNK_BITS),
        part(cursor & ((1 << CURSOR_CHUNK_BITS) - 1)),
    )
}

/// The bits of the chunk in a scan's cursor; the class is above them.
const CURSOR_CHUNK_BITS: u32 = 32;

#[derive(Clone, Copy, Debug, Default)]
struct SweepCursor {
    class: usize,
    chunk: usize,
}

/// Slots per class and shard: what 27 bits can address (134 million, 10 GB of the smallest useful
/// locks).
pub(crate) const SLOTS_MAX: u32 = 1 << CLASS_SHIFT;

const CLASS_SHIFT: u32 = 27;

/// A skipped chunk costs about a sixty-fourth of a slot that is read.
const CHUNKS_PER_SLOT_COST: usize = 64;

const _: () = assert!(CLASS_COUNT <= 1 << (32 - CLASS_SHIFT));

#[cfg(test)]
mod tests {
    use super::chunk::CHUNK_SHIFT;
    use super::class::CHUNKS_KEPT;
    use super::*;

    const GRANT: Grant = Grant::new(1, false);

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
                    slab.insert(
                        db,
                        &key,
                        &value,
                        after(i64::try_from(value_len).unwrap()),
                        Grant::new(u64::try_from(value_len).unwrap(), value_len % 2 == 1),
                    ),
                    db,
                    key,
                    value,
                ));
            }
        }
        for (id, db, key, value) in &ids {
            assert!(slab.deadline_if(*id, *db, key).is_some());
            assert!(slab.deadline_if(*id, db + 1, key).is_none());
            assert_eq!(slab.key(*id), key);
            assert_eq!(slab.value(*id), value);
            assert_eq!(slab.db(*id), *db);
            assert_eq!(
                slab.deadline(*id),
                after(i64::try_from(value.len()).unwrap())
            );
            let grant = slab.grant(*id);
            assert_eq!(grant.counter(), u64::try_from(value.len()).unwrap());
            assert_eq!(grant.is_logged(), value.len() % 2 == 1);
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
        let first = slab.insert(0, b"key", b"token", after(1), GRANT);
        slab.remove(first);
        assert_eq!(slab.insert(0, b"yek", b"nekot", after(1), GRANT), first);
    }

    #[test]
    fn empty_chunks_free_their_memory() {
        let mut slab = Slab::new();
        let ids: Vec<_> = (0..10_000)
            .map(|i: u32| slab.insert(0, &i.to_le_bytes(), b"t", after(9), GRANT))
            .collect();
        let held = |slab: &Slab| {
            slab.classes[0]
                .chunks
                .iter()
                .map(|c| c.bytes.capacity())
                .sum::<usize>()
        };
        let full = held(&slab);
        for id in ids {
            slab.remove(id);
        }
        assert!(
            held(&slab) <= CHUNKS_KEPT * (32 << CHUNK_SHIFT),
            "{} of {full} bytes still held",
            held(&slab)
        );
        for i in 0..10_000_u32 {
            slab.insert(0, &i.to_le_bytes(), b"t", after(9), GRANT);
        }
        assert_eq!(held(&slab), full);
    }

    #[test]
    fn a_value_is_replaced_in_place_only_if_its_slot_size_stays_the_same() {
        let mut slab = Slab::new();
        let id = slab.insert(3, b"key", b"0123", after(5), GRANT);
        assert!(slab.replace_value(id, b"abc"));
        assert_eq!(
            (slab.key(id), slab.value(id), slab.db(id)),
            (&b"key"[..], &b"abc"[..], 3)
        );
        assert!(!slab.replace_value(id, &[0; 64]));
        assert_eq!(slab.value(id), b"abc");
    }

    #[test]
    fn a_sweep_finds_exactly_the_expired_slots_in_bounded_steps() {
        let mut slab = Slab::new();
        let mut dead_ids = Vec::new();
        for i in 0..5_000_u32 {
            let dies_early = i % 3 == 0;
            let id = slab.insert(
                0,
                &i.to_le_bytes(),
                b"t",
                after(if dies_early { 10 } else { 1_000 }),
                GRANT,
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
    fn a_sweep_skips_chunks_whose_deadlines_are_ahead() {
        let mut slab = Slab::new();
        for i in 0..100_000_u32 {
            slab.insert(0, &i.to_le_bytes(), b"t", after(1_000), GRANT);
        }
        let step = slab.sweep(at(999), 64);
        assert!(step.wrapped);
        assert_eq!((step.visited, step.dead.len()), (0, 0));
    }
}
