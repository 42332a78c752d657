//! What a shard counts about its locks, for metrics: grants and refusals, how long locks are held,
//! and how long keys are contended.
//!
//! Grants and the like cost an addition each. The times are of a sample of locks, which their slots
//! do not have: a lock is chosen by its key and its fence counter, so that its release knows it
//! again.

use hashbrown::HashMap;

use crate::histogram::Histogram;
use crate::key_hash::KeyHash;
use crate::sampler::Sampler;
use crate::time::Time;

/// See the module docs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: TallyCounts,
    /// Chooses the locks whose times are taken.
    sampler: Sampler,
    /// By the key's hash and its fence counter at the grant.
    timed: HashMap<(u64, u64), Timed, foldhash::fast::FixedState>,
    pub(crate) held: Histogram,
    /// Chooses the refusals that are looked at.
    refused: Sampler,
    /// By the key's hash.
    contended: HashMap<u64, Contended, foldhash::fast::FixedState>,
    /// The bits `hash % 64` of all keys with somebody waiting.
    waited_for: u64,
    pub(crate) waited: Histogram,
}

/// How often what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TallyCounts {
    pub(crate) grants: u64,
    /// Acquisitions of a key that is held.
    pub(crate) refusals: u64,
    pub(crate) extensions: u64,
    pub(crate) releases: u64,
    /// Releases with another token than the holder's.
    pub(crate) foreign_releases: u64,
    pub(crate) foreign_extensions: u64,
}

/// A lock whose time is taken.
#[derive(Debug)]
struct Timed {
    since: Time,
    weight: u64,
    key: KeyName,
}

/// A key that was refused to somebody.
#[derive(Debug)]
struct Contended {
    refusals: u64,
    /// The first refusal since the last grant.
    since: Option<Time>,
    key: KeyName,
}

/// A key as it is shown: its database, and its first bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyName {
    pub(crate) db: u8,
    pub(crate) key: Box<[u8]>,
}

impl TallyCounts {
    /// Adds the counts of another shard.
    pub(crate) const fn add(&mut self, other: &Self) {
        self.grants += other.grants;
        self.refusals += other.refusals;
        self.extensions += other.extensions;
        self.releases += other.releases;
        self.foreign_releases += other.foreign_releases;
        self.foreign_extensions += other.foreign_extensions;
    }
}

impl Tally {
    /// Notes that a key was granted.
    #[inline]
    pub(crate) fn granted(&mut self, now: Time, hash: KeyHash, counter: u64, db: u8, key: &[u8]) {
        self.counts.grants += 1;
        if self.sampler.chooses(number(hash, counter)) {
            self.begin(now, hash, counter, KeyName::of(db, key));
        }
        if self.waited_for & bit(hash.bits()) != 0 {
            self.end_wait(now, hash.bits());
        }
    }

    /// Notes that a lock was released.
    #[inline]
    pub(crate) fn released(&mut self, now: Time, hash: KeyHash, counter: u64) {
        self.counts.releases += 1;
        if self.sampler.chooses(number(hash, counter)) {
            self.end(now, hash, counter);
        }
    }

    /// Notes that a lock has ended in another way, such as expiring.
    #[inline]
    pub(crate) fn ended(&mut self, hash: KeyHash, counter: u64) {
        if !self.timed.is_empty() && self.sampler.chooses(number(hash, counter)) {
            self.timed.remove(&(hash.bits(), counter));
        }
    }

    /// Notes that a lock was extended, or its key set again.
    #[inline]
    pub(crate) const fn extended(&mut self) {
        self.counts.extensions += 1;
    }

    /// Notes that a release was refused to somebody who does not hold the key.
    pub(crate) const fn foreign_release(&mut self) {
        self.counts.foreign_releases += 1;
    }

    /// Notes that an extension was refused to somebody who does not hold the key.
    pub(crate) const fn foreign_extension(&mut self) {
        self.counts.foreign_extensions += 1;
    }

    /// Notes that a key was refused, because it is held.
    #[inline]
    pub(crate) fn refused(&mut self, now: Time, hash: KeyHash, db: u8, key: &[u8]) {
        self.counts.refusals += 1;
        if self.refused.chooses(self.counts.refusals) {
            self.contend(now, hash.bits(), db, key);
        }
    }

    /// Forgets which locks there are: all keys of the shard are gone.
    pub(crate) fn forget_locks(&mut self) {
        self.timed.clear();
    }

    /// Looks at more locks if there were few; call this about once a second.
    pub(crate) fn relax(&mut self, now: Time) {
        self.sampler.relax(now);
        self.refused.relax(now);
    }

    /// The times of the locks held, of those whose time is taken.
    pub(crate) fn held_since(&self) -> impl Iterator<Item = (Time, &KeyName)> {
        self.timed.values().map(|timed| (timed.since, &timed.key))
    }

    /// How often keys were refused, estimated, for those refused most.
    pub(crate) fn contended(&self) -> impl Iterator<Item = (u64, &KeyName)> {
        self.contended.values().map(|it| (it.refusals, &it.key))
    }

    #[cold]
    fn begin(&mut self, now: Time, hash: KeyHash, counter: u64, key: KeyName) {
        if self.timed.len() >= TIMED_MAX
            && let Some(any) = self.timed.keys().next().copied()
        {
            self.timed.remove(&any);
        }
        let weight = self.sampler.weight();
        let timed = Timed {
            since: now,
            weight,
            key,
        };
        self.timed.insert((hash.bits(), counter), timed);
        self.sampler.note(now);
    }

    #[cold]
    fn end(&mut self, now: Time, hash: KeyHash, counter: u64) {
        if let Some(timed) = self.timed.remove(&(hash.bits(), counter)) {
            self.held.record(now.since(timed.since), timed.weight);
        }
    }

    #[cold]
    fn contend(&mut self, now: Time, hash: u64, db: u8, key: &[u8]) {
        let weight = self.refused.weight();
        self.refused.note(now);
        let mut inherited = 0;
        if self.contended.len() >= CONTENDED_MAX && !self.contended.contains_key(&hash) {
            // The new key takes the place and the count of the one that was refused least, so that
            // a key refused often is never missed.
            let least = self.contended.iter().min_by_key(|(_, it)| it.refusals);
            if let Some((least, refusals)) = least.map(|(hash, it)| (*hash, it.refusals)) {
                inherited = refusals;
                self.contended.remove(&least);
            }
        }
        let entry = self.contended.entry(hash).or_insert_with(|| Contended {
            refusals: inherited,
            since: None,
            key: KeyName::of(db, key),
        });
        entry.refusals += weight;
        entry.since.get_or_insert(now);
        self.waited_for |= bit(hash);
    }

    #[cold]
    fn end_wait(&mut self, now: Time, hash: u64) {
        let Some(since) = self.contended.get_mut(&hash).and_then(|it| it.since.take()) else {
            return;
        };
        self.waited.record(now.since(since), 1);
        let waiting = self.contended.iter().filter(|(_, it)| it.since.is_some());
        self.waited_for = waiting.fold(0, |bits, (hash, _)| bits | bit(*hash));
    }
}

impl KeyName {
    fn of(db: u8, key: &[u8]) -> Self {
        Self {
            db,
            key: key.get(..KEY_SHOWN_MAX).unwrap_or(key).into(),
        }
    }
}

/// The number by which a lock is chosen: each key has its turn, and each grant of a key.
#[inline]
const fn number(hash: KeyHash, counter: u64) -> u64 {
    hash.bits().wrapping_add(counter)
}

const fn bit(hash: u64) -> u64 {
    1 << (hash % 64)
}

/// Locks of a shard whose time is taken at once: half a megabyte.
const TIMED_MAX: usize = 4096;

/// Keys of a shard whose refusals are counted apart.
const CONTENDED_MAX: usize = 128;

/// The longest key that is shown whole.
const KEY_SHOWN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::key_hash::KeyHasher;

    fn hash(key: &[u8]) -> KeyHash {
        KeyHasher::new(7).hash(0, key)
    }

    #[test]
    fn a_lock_is_timed_from_its_grant_to_its_release() {
        let mut tally = Tally::default();
        let at = Time::from_millis;
        tally.granted(at(0), hash(b"a"), 1, 0, b"a");
        tally.granted(at(5), hash(b"b"), 1, 0, b"b");
        tally.granted(at(6), hash(b"c"), 1, 0, b"c");
        tally.released(at(20), hash(b"b"), 1);
        tally.ended(hash(b"c"), 1);
        // Another lock of the same key.
        tally.released(at(30), hash(b"a"), 2);
        assert_eq!(
            (tally.held.count(), tally.held.sum()),
            (1, Duration::from_millis(15))
        );
        let held: Vec<_> = tally
            .held_since()
            .map(|(since, key)| (since, &*key.key))
            .collect();
        assert_eq!(held, [(at(0), b"a".as_slice())]);
    }

    #[test]
    fn the_wait_for_a_key_is_from_the_first_refusal_to_the_grant() {
        let mut tally = Tally::default();
        let at = Time::from_millis;
        for ms in [10, 20, 30] {
            tally.refused(at(ms), hash(b"a"), 0, b"a");
        }
        tally.refused(at(35), hash(b"b"), 0, b"b");
        tally.granted(at(40), hash(b"a"), 1, 0, b"a");
        tally.granted(at(90), hash(b"a"), 2, 0, b"a");
        assert_eq!(
            (tally.waited.count(), tally.waited.sum()),
            (1, Duration::from_millis(30))
        );
        assert_eq!(tally.waited_for, bit(hash(b"b").bits()));
    }

    /// Whatever keys clients name, memory is bounded, and a key that is refused often is seen.
    #[test]
    fn tables_are_bounded_and_the_most_contended_key_stays() {
        let mut tally = Tally::default();
        for n in 0..20_000_u64 {
            let key = format!("key {n} {}", "x".repeat(100));
            let now = Time::from_millis(n * 100);
            tally.granted(now, hash(key.as_bytes()), n, 0, key.as_bytes());
            tally.refused(now, hash(key.as_bytes()), 0, key.as_bytes());
            tally.refused(now, hash(b"hot"), 0, b"hot");
        }
        assert!(tally.timed.len() <= TIMED_MAX && tally.contended.len() <= CONTENDED_MAX);
        let (refusals, most) = tally.contended().max().expect("some");
        assert_eq!(&*most.key, b"hot");
        assert!((15_000..40_000).contains(&refusals), "{refusals}");
        assert!(
            tally
                .held_since()
                .all(|(_, key)| key.key.len() <= KEY_SHOWN_MAX)
        );
    }
}
