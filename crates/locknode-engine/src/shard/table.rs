//! A sub-table of the index: where keys' slots are, in buckets of one cache line.
//!
//! A key belongs in the bucket that its [`Tag`] names, or in the next ones if that is full; a bucket
//! counts the keys that went past it, and a search ends at the first one that none did. Of ten
//! places at most eight are taken on average, so that most searches read one line.

use crate::key_hash::Tag;
use crate::slab::SlotId;

/// One sub-table; see the module docs.
#[derive(Debug, Default)]
pub(super) struct Table {
    buckets: Box<[Bucket]>,
    len: usize,
}

/// Where a key is in a table: the bucket, and in the low four bits the place in it. Valid until the
/// table changes.
pub(super) type Position = usize;

/// Ten places for keys; those that are taken come first.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Bucket {
    /// The tags of the keys: their lower halves, which a first look compares, and their upper ones.
    low: [u8; PLACES],
    high: [u8; PLACES],
    len: u16,
    /// How many keys belong here or before, and are behind; stays at the most that it can count.
    passed: u16,
    ids: [SlotId; PLACES],
}

/// What a first look at a key's bucket tells.
#[derive(Clone, Copy, Debug)]
enum Glance {
    /// The key is likely to be in this place, which has this slot.
    Likely(usize, SlotId),
    /// The key is not in the table.
    Missing,
    Unclear,
}

impl Table {
    /// Returns the number of keys.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Finds the key with this tag of whose slot `look` makes something.
    ///
    /// Nearly always that is the first one in its bucket that seems to be it, or nothing there does.
    #[inline(always)]
    pub(super) fn find<T>(
        &self,
        tag: Tag,
        mut look: impl FnMut(SlotId) -> Option<T>,
    ) -> Option<(Position, SlotId, T)> {
        let at = tag.share_of(self.buckets.len());
        let bucket = self.buckets.get(at)?;
        match bucket.glance(tag) {
            Glance::Likely(place, id) => {
                if let Some(made) = look(id) {
                    return Some((at << PLACE_BITS | place, id, made));
                }
            }
            Glance::Missing => return None,
            Glance::Unclear => {}
        }
        self.find_from(at, tag, look)
    }

    /// [`Table::find`], looking at every place from a bucket on.
    #[cold]
    #[inline(never)]
    fn find_from<T>(
        &self,
        mut at: usize,
        tag: Tag,
        mut look: impl FnMut(SlotId) -> Option<T>,
    ) -> Option<(Position, SlotId, T)> {
        for _ in 0..self.buckets.len() {
            let bucket = self.buckets.get(at)?;
            for (place, (it, id)) in bucket.keys().enumerate() {
                if it == tag
                    && let Some(made) = look(id)
                {
                    return Some((at << PLACE_BITS | place, id, made));
                }
            }
            if bucket.passed == 0 {
                return None;
            }
            at = after(at, self.buckets.len());
        }
        None
    }

    /// Returns a slot in the bucket of a tag that may be its key's. Reads one line, so that many
    /// tags can be looked for at once.
    #[inline]
    pub(super) fn glance(&self, tag: Tag) -> Option<SlotId> {
        let bucket = self.buckets.get(tag.share_of(self.buckets.len()))?;
        match bucket.glance(tag) {
            Glance::Likely(_, id) => Some(id),
            Glance::Missing | Glance::Unclear => None,
        }
    }

    /// Enters a key.
    #[inline]
    pub(super) fn insert(&mut self, tag: Tag, id: SlotId) {
        if self.len >= self.buckets.len() * FULL {
            self.resize((self.buckets.len() * 2).max(1));
        }
        self.len += 1;
        enter(&mut self.buckets, tag, id);
    }

    /// Removes a key; returns whether it was at its position.
    #[inline]
    pub(super) fn remove(&mut self, tag: Tag, position: Position, id: SlotId) -> bool {
        let (at, place) = (position >> PLACE_BITS, position & PLACE_MASK);
        let buckets = self.buckets.len();
        let Some(bucket) = self.buckets.get_mut(at) else {
            return false;
        };
        if place >= usize::from(bucket.len) || bucket.ids.get(place) != Some(&id) {
            return false;
        }
        bucket.fill_from_last(place);
        let mut passed = tag.share_of(buckets);
        while passed != at {
            let count = &mut self.buckets[passed].passed;
            *count -= u16::from(*count < u16::MAX);
            passed = after(passed, buckets);
        }
        self.len -= 1;
        if buckets >= SHRINK_MIN && self.len < buckets {
            self.resize(buckets / 4);
        }
        true
    }

    /// Returns the slots of all keys.
    pub(super) fn ids(&self) -> impl Iterator<Item = SlotId> {
        self.buckets.iter().flat_map(Bucket::keys).map(|(_, id)| id)
    }

    #[cold]
    fn resize(&mut self, buckets: usize) {
        let mut new = vec![EMPTY; buckets].into_boxed_slice();
        for (tag, id) in self.buckets.iter().flat_map(Bucket::keys) {
            enter(&mut new, tag, id);
        }
        self.buckets = new;
    }
}

impl Bucket {
    /// Compares the lower half of a tag with those of the first eight places at once.
    ///
    /// Of bytes that do not differ, the first is told exactly: subtracting one borrows from its highest
    /// bit.
    #[inline(always)]
    fn glance(&self, tag: Tag) -> Glance {
        let [low, _] = tag.halves();
        let [first @ .., _, _] = self.low;
        let differing = u64::from_le_bytes(first) ^ (u64::from(low) * EACH_BYTE);
        let same = differing.wrapping_sub(EACH_BYTE) & !differing & (EACH_BYTE << 7);
        if same != 0 {
            let place = same.trailing_zeros() as usize / 8;
            if place < usize::from(self.len) {
                return Glance::Likely(place, self.ids[place]);
            }
        } else if self.passed == 0 && usize::from(self.len) <= first.len() {
            return Glance::Missing;
        }
        Glance::Unclear
    }

    /// Returns the keys' tags and slots.
    #[inline]
    fn keys(&self) -> impl Iterator<Item = (Tag, SlotId)> {
        let halves = self.low.iter().zip(&self.high);
        let tags = halves.map(|(low, high)| Tag::of_halves([*low, *high]));
        tags.zip(self.ids).take(self.len.into())
    }

    /// Frees a place that is taken, and puts the last key there.
    #[inline]
    fn fill_from_last(&mut self, place: usize) {
        self.len -= 1;
        let last = usize::from(self.len);
        if place < last && last < PLACES {
            self.low[place] = self.low[last];
            self.high[place] = self.high[last];
            self.ids[place] = self.ids[last];
        }
    }
}

/// Enters a key in the first bucket with a free place, from its own on. There is one: a table has
/// fewer keys than places.
#[inline]
fn enter(buckets: &mut [Bucket], tag: Tag, id: SlotId) {
    let len = buckets.len();
    let mut at = tag.share_of(len);
    while let Some(bucket) = buckets.get_mut(at) {
        let place = usize::from(bucket.len);
        if place < PLACES {
            [bucket.low[place], bucket.high[place]] = tag.halves();
            bucket.ids[place] = id;
            bucket.len += 1;
            return;
        }
        bucket.passed = bucket.passed.saturating_add(1);
        at = after(at, len);
    }
}

/// Returns the bucket after one; the first is after the last.
#[inline]
const fn after(at: usize, buckets: usize) -> usize {
    if at + 1 < buckets { at + 1 } else { 0 }
}

const EMPTY: Bucket = Bucket {
    low: [0; PLACES],
    high: [0; PLACES],
    len: 0,
    passed: 0,
    ids: [SlotId::from_bits(0); PLACES],
};

/// What fits in a cache line, with a tag of two bytes and a slot of four.
const PLACES: usize = 10;

/// A one in each byte of a word.
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

const PLACE_BITS: u32 = 4;
const PLACE_MASK: usize = (1 << PLACE_BITS) - 1;

/// The keys per bucket at which a table grows; with more, searches would often read a second line.
/// It doubles: smaller steps waste less memory, but cost an insert more than that is worth.
const FULL: usize = 8;

/// Smaller tables are left as they are: shrinking would cost more than it frees.
const SHRINK_MIN: usize = 8;

const _: () = assert!(size_of::<Bucket>() == 64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tag(bits: u16) -> Tag {
        Tag::of_halves(bits.to_le_bytes())
    }

    fn find(table: &Table, tag: Tag, id: SlotId) -> Option<Position> {
        let found = table.find(tag, |it| (it == id).then_some(()));
        found.map(|(position, ..)| position)
    }

    /// The table has these keys and no others, and every bucket knows how many went past.
    fn check(table: &Table, keys: &[(Tag, SlotId)]) {
        let buckets = table.buckets.len();
        assert_eq!(table.len(), keys.len());
        assert!(keys.len() <= buckets * FULL, "a search has an end");
        let sorted = |ids: &mut dyn Iterator<Item = SlotId>| {
            let mut bits: Vec<u32> = ids.map(SlotId::to_bits).collect();
            bits.sort_unstable();
            bits
        };
        let all = sorted(&mut keys.iter().map(|(_, id)| *id));
        assert_eq!(sorted(&mut table.ids()), all);
        let mut passed = vec![0; buckets];
        for &(tag, id) in keys {
            let mut at = tag.share_of(buckets);
            while at != find(table, tag, id).unwrap() >> PLACE_BITS {
                passed[at] += 1;
                at = after(at, buckets);
            }
            let mut looked = Vec::new();
            let found = table.find(tag, |id| {
                looked.push(id);
                None::<()>
            });
            assert!(found.is_none());
            assert!(looked.iter().all(|id| all.contains(&id.to_bits())));
            let mut alike = keys.iter().filter(|(it, _)| *it == tag);
            assert!(alike.all(|(_, id)| looked.contains(id)));
        }
        let counted: Vec<u64> = table.buckets.iter().map(|it| it.passed.into()).collect();
        assert_eq!(counted, passed);
    }

    proptest! {
        /// A naive table next to it, through growth, removal and shrinking; with few tags, so that keys go past
        /// many buckets and around the end.
        #[test]
        fn a_table_has_what_was_entered_and_not_removed(
            tags in prop_oneof![Just(1_u16), Just(3), Just(40), Just(u16::MAX)],
            first in any::<u16>(),
            waves in prop::collection::vec((0_usize..120, 0_usize..120), 1..6),
            picks in prop::collection::vec(any::<u16>(), 64),
        ) {
            let (mut table, mut keys, mut number) = (Table::default(), Vec::new(), 0);
            let mut picks = picks.iter().cycle().copied();
            let mut pick = || picks.next().unwrap_or(0);
            for (entered, removed) in waves {
                for _ in 0..entered {
                    let key = (tag(first.wrapping_add(pick() % tags)), SlotId::from_bits(number));
                    prop_assert_eq!(find(&table, key.0, key.1), None);
                    table.insert(key.0, key.1);
                    keys.push(key);
                    number += 1;
                }
                check(&table, &keys);
                for _ in 0..removed.min(keys.len()) {
                    let (tag, id) = keys.swap_remove(usize::from(pick()) % keys.len());
                    let position = find(&table, tag, id).unwrap();
                    prop_assert!(table.remove(tag, position, id));
                    prop_assert!(!table.remove(tag, position, id), "it is gone");
                    prop_assert_eq!(find(&table, tag, id), None);
                }
                check(&table, &keys);
            }
        }
    }

    #[test]
    fn a_table_gives_back_what_it_does_not_need() {
        let mut table = Table::default();
        let key = |n: u16| (tag(n.wrapping_mul(257)), SlotId::from_bits(n.into()));
        for n in 0..20_000 {
            let (tag, id) = key(n);
            table.insert(tag, id);
            assert!(table.buckets.len() <= (table.len() / 4).max(1));
        }
        for n in 0..20_000 {
            let (tag, id) = key(n);
            let position = find(&table, tag, id).unwrap();
            assert!(table.remove(tag, position, id));
            assert!(table.buckets.len() <= table.len().max(SHRINK_MIN));
        }
        assert_eq!(table.len(), 0);
    }

    /// Two buckets, and keys of each in the other one.
    #[test]
    fn a_search_ends_though_keys_went_past_every_bucket() {
        let mut table = Table::default();
        let (low, high) = (tag(1), tag(u16::MAX));
        let id = SlotId::from_bits;
        (0..12).for_each(|n| table.insert(low, id(n)));
        for n in 0..9 {
            let position = find(&table, low, id(n)).unwrap();
            assert!(table.remove(low, position, id(n)));
        }
        (12..21).for_each(|n| table.insert(high, id(n)));
        assert!(table.buckets.len() == 2 && table.buckets.iter().all(|it| it.passed > 0));
        assert_eq!(find(&table, low, id(99)), None);
        assert_eq!(find(&table, high, id(99)), None);
    }

    /// More keys with one tag than a bucket can count: it is slow, and still right.
    #[test]
    fn a_search_goes_on_when_too_many_keys_went_past() {
        let mut table = Table::default();
        let (tag, number) = (tag(u16::MAX), 66_000);
        (0..number).for_each(|n| table.insert(tag, SlotId::from_bits(n)));
        for n in (0..number).step_by(911) {
            let id = SlotId::from_bits(n);
            let position = find(&table, tag, id).unwrap();
            assert!(table.remove(tag, position, id));
            assert_eq!(find(&table, tag, id), None);
        }
        assert!(find(&table, tag, SlotId::from_bits(number - 1)).is_some());
    }
}
