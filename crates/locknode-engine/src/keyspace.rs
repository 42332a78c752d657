//! The lock table of a node: shards behind mutexes, and the order in which they are locked.
//!
//! A driver with one thread uses one shard and holds it for a whole batch of commands; a driver
//! with several threads uses many shards and holds each for one command. Commands on several keys
//! lock their shards in index order, so that they cannot deadlock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::fence::Fences;
use crate::key_hash::{DATABASES, KeyHash, KeyHasher};
use crate::observers::Observers;
use crate::shard::{Shard, Swept};
use crate::time::{Deadline, Time};

/// All shards of a node.
#[derive(Debug)]
pub(crate) struct Keyspace {
    shards: Box<[Padded]>,
    hasher: KeyHasher,
    tables_per_shard: usize,
    /// The bytes used when empty: the sub-tables' headers.
    base_bytes: u64,
    /// How often a thread has waited for a shard that another one held.
    waits: AtomicU64,
}

/// The initial table sizes of a node. The default suits servers; small sizes make short-lived nodes
/// cheap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSizes {
    /// Sub-tables of the lock table, a power of two.
    pub tables: usize,
    /// Fence counters, a power of two.
    pub fences: usize,
}

/// The shards that the running command has locked.
#[derive(Debug)]
pub(crate) struct Space<'k> {
    keyspace: &'k Keyspace,
    /// The only shard, held for the whole batch.
    whole: Option<MutexGuard<'k, Shard>>,
    /// Shards held for one command, in index order.
    held: SmallVec<[(usize, MutexGuard<'k, Shard>); 4]>,
}

impl Keyspace {
    /// Rounds `shards` up to a power of two within 1 to [`SHARDS_MAX`], and sizes per shard
    /// likewise.
    pub(crate) fn new(
        shards: usize,
        sizes: TableSizes,
        seed: u64,
        fence_base: u64,
        observers: &Arc<Observers>,
    ) -> Self {
        let shards = shards.clamp(1, SHARDS_MAX).next_power_of_two();
        let hasher = KeyHasher::new(seed);
        let per_shard = |size: usize| (size / shards).max(1).next_power_of_two();
        let tables_per_shard = per_shard(sizes.tables);
        Self {
            shards: (0..shards)
                .map(|_| {
                    let fences = Fences::new(per_shard(sizes.fences), fence_base);
                    Padded(Mutex::new(Shard::new(
                        tables_per_shard,
                        hasher.clone(),
                        fences,
                        Arc::clone(observers),
                    )))
                })
                .collect(),
            hasher,
            tables_per_shard,
            base_bytes: (tables_per_shard * shards * TABLE_BYTES) as u64,
            waits: AtomicU64::new(0),
        }
    }

    /// Returns access for one batch of commands.
    pub(crate) fn enter(&self) -> Space<'_> {
        let whole = match &*self.shards {
            [only] => Some(only.0.lock()),
            _ => None,
        };
        Space {
            keyspace: self,
            whole,
            held: SmallVec::new(),
        }
    }

    /// Locks a shard for a command.
    #[inline]
    fn lock(&self, index: usize) -> MutexGuard<'_, Shard> {
        let shard = &self.shards[index].0;
        shard.try_lock().unwrap_or_else(|| {
            self.waits.fetch_add(1, Ordering::Relaxed);
            shard.lock()
        })
    }

    /// Reclaims expired locks in one shard.
    pub(crate) fn sweep(&self, shard: usize, now: Time, budget: usize) -> Swept {
        self.shards
            .get(shard)
            .map_or_else(Swept::default, |shard| shard.0.lock().sweep(now, budget))
    }

    /// Locks one shard and works on it alone.
    pub(crate) fn with_shard<R>(
        &self,
        shard: usize,
        work: impl FnOnce(&mut Shard) -> R,
    ) -> Option<R> {
        self.shards
            .get(shard)
            .map(|shard| work(&mut shard.0.lock()))
    }

    /// Returns the hash of a key.
    pub(crate) fn hash(&self, db: u8, key: &[u8]) -> KeyHash {
        self.hasher.hash(db, key)
    }

    /// Returns the number of a key's shard.
    pub(crate) fn shard_index(&self, hash: KeyHash) -> usize {
        hash.shard(self.shards.len())
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// Returns a lower bound of all deadlines; locks one shard at a time.
    pub(crate) fn earliest_deadline(&self) -> Deadline {
        let earliest = self
            .shards
            .iter()
            .map(|shard| shard.0.lock().earliest_deadline());
        earliest.min().unwrap_or(Deadline::NEVER)
    }
}

impl<'k> Space<'k> {
    #[inline]
    pub(crate) fn hash(&self, db: u8, key: &[u8]) -> KeyHash {
        self.keyspace.hasher.hash(db, key)
    }

    /// Returns the shard to look ahead in, if that is worth what it costs: the one that is held for
    /// the whole batch.
    #[inline]
    pub(crate) fn large_shard(&self) -> Option<&Shard> {
        self.whole.as_deref().filter(|shard| shard.is_large())
    }

    /// Locks the shard of one key for this command; returns the key's hash.
    #[inline(always)]
    pub(crate) fn lock_one(&mut self, db: u8, key: &[u8]) -> KeyHash {
        let hash = self.hash(db, key);
        if self.whole.is_none() {
            self.lock_shard(hash);
        }
        hash
    }

    #[inline(never)]
    fn lock_shard(&mut self, hash: KeyHash) {
        if self.is_all_locked() {
            return;
        }
        let index = hash.shard(self.keyspace.shards.len());
        debug_assert!(self.held.is_empty(), "a command locks once");
        self.held.push((index, self.keyspace.lock(index)));
    }

    /// Locks the shards of several keys for this command, in index order.
    pub(crate) fn lock_many<'a>(&mut self, db: u8, keys: impl Iterator<Item = &'a [u8]>) {
        if self.whole.is_some() || self.is_all_locked() {
            return;
        }
        debug_assert!(self.held.is_empty(), "a command locks once");
        let shards = self.keyspace.shards.len();
        let mut needed = [false; SHARDS_MAX];
        for key in keys {
            needed[self.hash(db, key).shard(shards)] = true;
        }
        self.lock_where(|index| needed[index]);
    }

    /// Locks every shard for this command.
    pub(crate) fn lock_all(&mut self) {
        if self.whole.is_none() && !self.is_all_locked() {
            debug_assert!(self.held.is_empty(), "a command locks once");
            self.lock_where(|_| true);
        }
    }

    /// Returns whether a script or a transaction, of which the command is a part, has locked all.
    fn is_all_locked(&self) -> bool {
        self.held.len() == self.keyspace.shards.len()
    }

    /// Unlocks the shards of the command.
    #[inline]
    pub(crate) fn unlock(&mut self) {
        if self.whole.is_none() {
            self.held.clear();
        }
    }

    /// Takes back [`Space::lock_one`], so that the command can lock all.
    pub(crate) fn unlock_one(&mut self) {
        if self.held.len() == 1 {
            self.held.clear();
        }
    }

    /// Returns the shard of a key, which the command has locked.
    #[inline]
    pub(crate) fn shard_of(&mut self, hash: KeyHash) -> &mut Shard {
        if let Some(whole) = &mut self.whole {
            return whole;
        }
        let index = hash.shard(self.keyspace.shards.len());
        match self.held.iter_mut().position(|(held, _)| *held == index) {
            Some(position) => &mut self.held[position].1,
            None => unreachable!("a command locks the shards of its keys before it runs"),
        }
    }

    /// Returns every locked shard: all of them after [`Space::lock_all`].
    pub(crate) fn shards(&mut self) -> impl Iterator<Item = &mut Shard> {
        let whole = self.whole.as_deref_mut().into_iter();
        whole.chain(self.held.iter_mut().map(|(_, guard)| &mut **guard))
    }

    /// Returns the number of sub-tables per shard.
    pub(crate) const fn tables_per_shard(&self) -> usize {
        self.keyspace.tables_per_shard
    }

    /// Returns the number of keys in a database; needs [`Space::lock_all`].
    pub(crate) fn key_count(&mut self, db: u8) -> u64 {
        self.shards().map(|shard| shard.key_count(db)).sum()
    }

    /// Returns the bytes in use: exact with all shards locked, otherwise extrapolated from those that
    /// are.
    #[inline]
    pub(crate) fn used_bytes(&self) -> u64 {
        let used = match &self.whole {
            Some(whole) => whole.used_bytes(),
            None => {
                let locked: u64 = self.held.iter().map(|(_, shard)| shard.used_bytes()).sum();
                let shards = self.keyspace.shards.len() as u64;
                locked * shards / (self.held.len() as u64).max(1)
            }
        };
        self.keyspace.base_bytes + used
    }

    /// Returns whether a locked shard can take no further key.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        match &self.whole {
            Some(whole) => whole.is_full(),
            None => self.held.iter().any(|(_, shard)| shard.is_full()),
        }
    }

    fn lock_where(&mut self, wanted: impl Fn(usize) -> bool) {
        for index in 0..self.keyspace.shards.len() {
            if wanted(index) {
                self.held.push((index, self.keyspace.lock(index)));
            }
        }
    }

    /// Returns how often a thread has waited for a shard that another one held.
    pub(crate) fn waits(&self) -> u64 {
        self.keyspace.waits.load(Ordering::Relaxed)
    }
}

/// A shard on cache lines of its own, so that threads on neighbouring shards do not slow each other
/// down.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl Default for TableSizes {
    fn default() -> Self {
        Self {
            // At 8 million locks each holds 2,000, which rehash in well under a millisecond.
            tables: 4096,
            // 512 KiB, of which only the pages in use are resident.
            fences: 1 << 16,
        }
    }
}

/// The maximum number of shards: well above the number of threads that one table can feed.
pub(crate) const SHARDS_MAX: usize = 64;

/// The bytes of an empty sub-table: its header.
const TABLE_BYTES: usize = 24;

const _: () = assert!(DATABASES <= 256);
