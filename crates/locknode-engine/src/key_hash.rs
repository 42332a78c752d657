//! The hash of a key, and which of its bits locate the key.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// The hash of a key within its database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

/// The part of a key's hash that the index keeps: 16 bits. It names the key's bucket in its
/// sub-table, and tells it from others there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u16);

/// Hashes keys with a seed of the node's own, so that nobody outside can choose colliding keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyHasher(FixedState);

impl KeyHash {
    /// Returns all of it.
    #[cfg(feature = "metrics")]
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the part that the index keeps.
    #[expect(clippy::cast_possible_truncation, reason = "the low 16 bits")]
    #[inline]
    pub(crate) const fn tag(self) -> Tag {
        Tag(self.0 as u16)
    }

    /// Returns the sub-table, out of `tables` (a power of two). It shares no bits with the tag.
    pub(crate) const fn table(self, tables: usize) -> usize {
        (self.0 >> 44) as usize & (tables - 1)
    }

    /// Returns the shard, out of `shards` (a power of two).
    pub(crate) const fn shard(self, shards: usize) -> usize {
        (self.0 >> 32) as usize & (shards - 1)
    }
}

impl Tag {
    pub(crate) const fn of_halves(halves: [u8; 2]) -> Self {
        Self(u16::from_le_bytes(halves))
    }

    /// Returns the lower and the upper half.
    #[inline]
    pub(crate) const fn halves(self) -> [u8; 2] {
        self.0.to_le_bytes()
    }

    /// Returns which of `buckets` is the tag's. Each has about as many tags, and with more buckets
    /// the order of tags stays, so that a table is read and written from one end to the other when it grows.
    #[inline]
    pub(crate) const fn share_of(self, buckets: usize) -> usize {
        ((self.0 as u64 * buckets as u64) >> u16::BITS) as usize
    }
}

impl KeyHasher {
    pub(crate) fn new(seed: u64) -> Self {
        Self(FixedState::with_seed(seed))
    }

    #[inline]
    pub(crate) fn hash(&self, db: u8, key: &[u8]) -> KeyHash {
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        // Database 0 adds nothing; each other one adds a different odd multiple.
        KeyHash(hasher.finish() ^ u64::from(db).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// The number of databases per node: SELECT 0 to 15, Redis's default.
pub const DATABASES: usize = 16;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::KeyHasher;

    /// Names of locks are alike: numbers at the end, in the middle, in binary, behind a long prefix.
    #[test]
    fn names_that_are_alike_spread_over_sub_tables_and_tags() {
        let keys: [fn(u32) -> Vec<u8>; 4] = [
            |n| n.to_le_bytes().to_vec(),
            |n| format!("lock:{n}").into_bytes(),
            |n| format!("order:{n:010}:resource:lock").into_bytes(),
            |n| format!("{}{n}", "tenant:".repeat(20)).into_bytes(),
        ];
        for (shape, key) in keys.iter().enumerate() {
            let hasher = KeyHasher::new(0x5eed);
            let mut tables = [0; 4096];
            let mut buckets = [0; 32];
            let mut places = HashSet::new();
            for n in 0..100_000 {
                let hash = hasher.hash(0, &key(n));
                tables[hash.table(4096)] += 1;
                buckets[hash.tag().share_of(32)] += 1;
                places.insert((hash.table(4096), hash.tag().halves()));
            }
            // Chance gives 24.4 on average, and at most 50 or so.
            let (least, most) = (tables.iter().min(), tables.iter().max());
            assert!(
                most < Some(&60) && least > Some(&3),
                "{shape}: {least:?} {most:?}"
            );
            // 3,125 on average, give or take 55.
            let (least, most) = (buckets.iter().min(), buckets.iter().max());
            assert!(
                most < Some(&3400) && least > Some(&2850),
                "{shape}: {least:?} {most:?}"
            );
            // Chance makes 19 pairs.
            assert!(places.len() > 99_950, "{shape}: {}", places.len());
        }
    }
}
