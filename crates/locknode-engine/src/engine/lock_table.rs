//! The locks of a node as a store reads them, a piece at a time.

use super::Engine;
use crate::durable::{Table, Which};
use crate::time::Time;

/// The lock table as a store reads it; see [`Engine::table`].
#[derive(Debug)]
pub struct LockTable<'e> {
    engine: &'e Engine,
    now: Time,
    record_count: u64,
}

impl LockTable<'_> {
    /// Returns the number of records read so far; a lock that changed in between may count twice.
    pub const fn record_count(&self) -> u64 {
        self.record_count
    }
}

impl Engine {
    /// Returns the locks that are alive at `now`, for a store.
    pub const fn table(&self, now: Time) -> LockTable<'_> {
        LockTable {
            engine: self,
            now,
            record_count: 0,
        }
    }
}

impl Table for LockTable<'_> {
    fn records(&mut self, which: Which, cursor: &mut u64, out: &mut Vec<u8>) -> bool {
        let shard = usize::try_from(*cursor >> CURSOR_SHARD_SHIFT).unwrap_or(usize::MAX);
        let mut within = *cursor & ((1 << CURSOR_SHARD_SHIFT) - 1);
        let more = self.engine.keyspace.with_shard(shard, |shard| {
            shard.records(self.now, which, &mut within, RECORD_SLOTS, out)
        });
        let more = more.map(|(is_more, record_count)| {
            self.record_count += record_count;
            is_more
        });
        *cursor = match more {
            None => return false,
            Some(true) => ((shard as u64) << CURSOR_SHARD_SHIFT) | within,
            Some(false) => (shard as u64 + 1) << CURSOR_SHARD_SHIFT,
        };
        true
    }
}

/// Where the shard number begins in a table's cursor; the slab's part is below it.
const CURSOR_SHARD_SHIFT: u32 = 48;

/// Slots per call of [`Table::records`]: a shard is held for about 0.1 ms.
const RECORD_SLOTS: usize = 1024;
