//! Fence counters, which order the tokens of one key.
//!
//! A key's counter rises with every grant and never goes back. Keys share 65,536 counters by a
//! fixed hash, so the table needs no eviction; the counter of keys that share one only rises
//! faster, which keeps the order. The hash is the same on every node and at every start, so nodes
//! that receive the same grants agree on the counters, and a fenced acquisition takes one round
//! trip.

use xxhash_rust::xxh3::xxh3_64;

/// The counters of one shard.
#[derive(Debug)]
pub(crate) struct Fences {
    /// Where all counters began at the start of the node `[F2]`. The slots count from here, so that
    /// unused ones take no resident memory.
    base: u64,
    /// Empty before the first grant: a node in quarantine needs none.
    slots: Vec<u64>,
    /// The number of slots, less one.
    mask: usize,
}

/// A lock's grant as its slot stores it: the key's counter at the grant `[F5]`, whether the lock is
/// on the log, whether its key holds a value of another type in place of a token, and whether the
/// lock has a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grant(u64);

impl Fences {
    /// Creates `slots` counters (a power of two).
    pub(crate) fn new(slots: usize, base: u64) -> Self {
        debug_assert!(slots.is_power_of_two());
        Self {
            base,
            slots: Vec::new(),
            mask: slots - 1,
        }
    }

    /// Returns a key's counter.
    #[inline]
    pub(crate) fn counter(&self, db: u8, key: &[u8]) -> u64 {
        self.base + self.above_base(self.slot(db, key))
    }

    /// Returns how far the counter in a slot has risen.
    #[inline]
    pub(crate) fn above_base(&self, slot: usize) -> u64 {
        self.slots.get(slot).copied().unwrap_or(0)
    }

    /// Raises a key's counter for a grant by one, or to one above `floor` `[F1]`. Returns the new
    /// value.
    #[inline]
    pub(crate) fn raise(&mut self, db: u8, key: &[u8], floor: u64) -> u64 {
        let slot = self.slot(db, key);
        if slot >= self.slots.len() {
            self.begin();
        }
        let Some(above) = self.slots.get_mut(slot) else {
            unreachable!("a slot number is below the number of slots");
        };
        *above = (*above + 1).max((floor + 1).saturating_sub(self.base));
        self.base + *above
    }

    /// Raises a key's counter to `fence` if it is lower `[F5]`. Returns its value.
    pub(crate) fn import(&mut self, db: u8, key: &[u8], fence: u64) -> u64 {
        let counter = self.counter(db, key);
        if counter < fence {
            self.raise(db, key, fence - 1);
        }
        counter.max(fence)
    }

    /// Returns the highest counter.
    #[cfg(feature = "hand-over")]
    pub(crate) fn max(&self) -> u64 {
        self.base + self.slots.iter().copied().max().unwrap_or(0)
    }

    /// Returns the number of a key's slot.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are needed"
    )]
    #[inline]
    pub(crate) fn slot(&self, db: u8, key: &[u8]) -> usize {
        let hash = xxh3_64(key) ^ u64::from(db);
        hash as usize & self.mask
    }

    #[cold]
    fn begin(&mut self) {
        self.slots = vec![0; self.mask + 1];
    }
}

impl Grant {
    /// Creates a grant; `counter` must be below [`FENCE_END`].
    pub(crate) const fn new(counter: u64, is_logged: bool) -> Self {
        debug_assert!(counter < FENCE_END);
        Self(counter).logged_if(is_logged)
    }

    /// Returns the key's counter at the grant.
    pub(crate) const fn counter(self) -> u64 {
        self.0 & !(LOGGED | COLLECTION | LABELLED)
    }

    /// Returns whether the slot stores the number of a value in place of a token.
    #[inline]
    pub(crate) const fn is_collection(self) -> bool {
        cfg!(feature = "compat") && self.0 & COLLECTION != 0
    }

    /// The grant of a key with a value of another type.
    #[must_use]
    pub(crate) const fn of_collection(self) -> Self {
        Self(self.0 | COLLECTION)
    }

    /// Returns whether the slot stores a label as well.
    #[inline]
    pub(crate) const fn is_labelled(self) -> bool {
        self.0 & LABELLED != 0
    }

    /// The grant of a lock with a label.
    #[must_use]
    pub(crate) const fn labelled(self) -> Self {
        Self(self.0 | LABELLED)
    }

    /// Returns whether the lock is on the log.
    pub(crate) const fn is_logged(self) -> bool {
        self.0 & LOGGED != 0
    }

    /// The grant of a lock that is on the log, or as it was.
    #[must_use]
    pub(crate) const fn logged_if(self, is_logged: bool) -> Self {
        Self(self.0 | if is_logged { LOGGED } else { 0 })
    }

    /// Returns the bits that are stored.
    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`Grant::to_bits`].
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// Fencing tokens are below this, so that a double, the number type of JavaScript and Lua, holds
/// them exactly `[F6]`.
pub(crate) const FENCE_END: u64 = 1 << 53;

/// The usual step of the ceiling `[F3]`: one sync per million grants of the busiest counter. The
/// calendar gains as much in a second `[F4]`.
pub(crate) const FENCE_STEP: u64 = 1 << 20;

/// The first step of the ceiling: what the calendar gains in 4 ms, less than any crash and start
/// take.
pub(crate) const FENCE_FIRST_STEP: u64 = 1 << 12;

/// The highest value to which a client may raise a counter `[F6]`. Above it the node has room for a
/// trillion grants of its own, or a million restarts.
pub(crate) const FENCE_IMPORT_MAX: u64 = FENCE_END - (1 << 40);

const LOGGED: u64 = 1 << 63;
const COLLECTION: u64 = 1 << 62;
const LABELLED: u64 = 1 << 61;

const _: () = assert!(LABELLED > FENCE_END);

#[cfg(test)]
mod tests {
    use super::*;

    /// `[F1]` `[F5]`
    #[test]
    fn a_counter_only_rises() {
        let mut fences = Fences::new(1 << 16, 1000);
        assert_eq!(fences.counter(0, b"key"), 1000);
        assert_eq!(fences.raise(0, b"key", 0), 1001);
        assert_eq!(fences.raise(0, b"key", 0), 1002);
        assert_eq!(fences.raise(0, b"key", 2000), 2001, "a higher floor counts");
        assert_eq!(fences.raise(0, b"key", 5), 2002, "a lower floor does not");
        assert_eq!(fences.import(0, b"key", 7), 2002);
        assert_eq!(fences.import(0, b"key", 3000), 3000);
        assert_eq!(fences.counter(0, b"key"), 3000);
        assert_eq!(fences.counter(0, b"another"), 1000);
        assert_eq!(fences.counter(1, b"key"), 1000, "databases are separate");
    }

    #[test]
    fn a_grant_stores_its_counter_and_its_mark() {
        for counter in [0, 1, FENCE_END - 1] {
            for is_logged in [false, true] {
                let grant = Grant::from_bits(Grant::new(counter, is_logged).to_bits());
                for grant in [grant, grant.of_collection(), grant.labelled()] {
                    assert_eq!((grant.counter(), grant.is_logged()), (counter, is_logged));
                }
                assert!(!grant.is_collection() && !grant.is_labelled());
            }
        }
    }
}
