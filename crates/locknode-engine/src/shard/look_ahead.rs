//! Looking where keys are before their commands run.
//!
//! In a table that is larger than the processor's caches, a command waits for memory three or four
//! times. Looked at one after the other, the places of sixteen keys cost sixteen times that wait;
//! looked at together, hardly more than one.

use std::hint::black_box;

use super::Shard;
use crate::key_hash::KeyHash;

impl Shard {
    /// Returns whether looking ahead is worth what it costs.
    #[inline]
    pub(crate) const fn is_large(&self) -> bool {
        self.total >= LARGE
    }

    /// Reads the memory that commands on these keys will need, of up to [`LOOK_AHEAD_MAX`] keys.
    /// Changes nothing; what it finds is forgotten.
    pub(crate) fn look_ahead(&self, db: u8, keys: &[&[u8]]) {
        let mut places = [(KeyHash::default(), 0); LOOK_AHEAD_MAX];
        let len = keys.len().min(LOOK_AHEAD_MAX);
        // Hashes first: the reads must be close to each other to overlap.
        for (place, key) in places.iter_mut().zip(keys) {
            *place = (self.hasher.hash(db, key), self.fences.slot(db, key));
        }
        for (hash, fence) in &places[..len] {
            black_box((self.glance(*hash), self.fences.above_base(*fence)));
        }
    }

    /// Returns something from each place that a search for the key reads: its bucket, and the lock's deadline.
    #[inline]
    fn glance(&self, hash: KeyHash) -> Option<u64> {
        let table = &self.tables[hash.table(self.tables.len())];
        let id = table.glance(hash.tag())?;
        Some(self.slab.deadline(id).to_bits())
    }
}

/// How many keys are looked at together: more gain little, and requests wait for them.
pub const LOOK_AHEAD_MAX: usize = 16;

/// From this number of locks on, locks and index take more than a megabyte, which is the size of
/// one core's own cache.
const LARGE: u64 = 8192;
