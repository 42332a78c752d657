//! The hash of a key, and which of its bits locate the key.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

/// The hash of a key within its database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeyHash(u64);

/// Hashes keys with a seed of the node's own, so that nobody outside can choose colliding keys.
#[derive(Clone, Debug)]
pub(crate) struct KeyHasher(FixedState);

impl KeyHash {
    /// Returns the part that the index keeps: the top 7 and the bottom 25 bits, which are all that
    /// a hash table with fewer than 2^25 places uses.
    #[expect(clippy::cast_possible_truncation, reason = "seven and 25 bits")]
    pub(crate) const fn short(self) -> u32 {
        (((self.0 >> 57) << 25) | (self.0 & 0x01ff_ffff)) as u32
    }

    /// Returns the hash that tables use; of more bits than the index keeps, because a table with
    /// fewer than 2^25 places ignores the others.
    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    /// Restores a hash from [`KeyHash::short`], as far as tables use it.
    pub(crate) const fn bits_of_short(short: u32) -> u64 {
        ((short as u64 >> 25) << 57) | (short as u64 & 0x01ff_ffff)
    }

    /// Returns the sub-table, out of `tables` (a power of two). The index itself uses the low bits
    /// and the top seven.
    pub(crate) const fn table(self, tables: usize) -> usize {
        (self.0 >> 44) as usize & (tables - 1)
    }

    /// Returns where a search in a table of `places` (a power of two) begins.
    #[expect(clippy::cast_possible_truncation, reason = "only low bits are needed")]
    pub(crate) const fn home(self, places: usize) -> usize {
        self.0 as usize & (places - 1)
    }

    /// Returns the shard, out of `shards` (a power of two).
    pub(crate) const fn shard(self, shards: usize) -> usize {
        (self.0 >> 32) as usize & (shards - 1)
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
    fn names_that_are_alike_spread_over_sub_tables_and_short_hashes() {
        let keys: [fn(u32) -> Vec<u8>; 4] = [
            |n| n.to_le_bytes().to_vec(),
            |n| format!("lock:{n}").into_bytes(),
            |n| format!("order:{n:010}:resource:lock").into_bytes(),
            |n| format!("{}{n}", "tenant:".repeat(20)).into_bytes(),
        ];
        for (shape, key) in keys.iter().enumerate() {
            let hasher = KeyHasher::new(0x5eed);
            let mut tables = [0; 4096];
            let mut places = HashSet::new();
            for n in 0..100_000 {
                let hash = hasher.hash(0, &key(n));
                tables[hash.table(4096)] += 1;
                places.insert((hash.table(4096), hash.short()));
            }
            // Chance gives 24.4 on average, and at most 50 or so.
            let (least, most) = (tables.iter().min(), tables.iter().max());
            assert!(
                most < Some(&60) && least > Some(&3),
                "{shape}: {least:?} {most:?}"
            );
            assert_eq!(places.len(), 100_000, "{shape}");
        }
    }
}
