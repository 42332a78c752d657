//! What a node has to answer: a naive model of one run of one node, asked beside it and compared reply by reply.
//!
//! A list of keys, each with its token and deadline; a counter per key; no shards, no slab, no sweeping, no guard. It is given the
//! node's time and knows nothing of clocks and disks. Whether a node may refuse is not modelled beyond its quarantine and the
//! longest TTL; what a reply rests on is judged elsewhere.

mod command;
mod hash;
mod transaction;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use locknode_engine::durable::LockRecord;
use smallvec::SmallVec;

use crate::scenario::GuardMode;
use crate::sim::hash_lock::holder;
use crate::span::nanos;

use transaction::{Queue, Watched};
use words::Replies;

/// A key or a token: clones are cheap.
type Word = Arc<[u8]>;

/// The keys of one run of a node.
#[derive(Debug)]
pub(crate) struct Reference {
    kept: Vec<Kept>,
    /// By database and key.
    counters: BTreeMap<(u8, Word), u64>,
    /// Where all counters began.
    base: u64,
    guard: GuardMode,
    max_ttl_ns: u64,
    /// A silent request may have been refused: nothing is known any more, until the node starts again.
    is_lost: bool,
    /// How often each key was changed.
    changes: BTreeMap<(u8, Word), u64>,
    expected: Vec<u8>,
}

/// What a connection has asked for that later requests depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Manner {
    pub(crate) db: u8,
    replies: Replies,
    queue: Option<Queue>,
    watched: Vec<Watched>,
}

/// The state of a node that its answers depend on, but for its keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    /// The time by which it executed the request.
    pub(crate) now: u64,
    pub(crate) is_quarantined: bool,
    /// Its disk has failed or is full: it may refuse what it would grant.
    pub(crate) is_troubled: bool,
    /// Its disk has failed for good `[G13]`: it must refuse that.
    pub(crate) has_failed: bool,
}

/// What an answered request has done and told.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    /// The model knows the command.
    pub(crate) is_known: bool,
    /// The node has to refuse it.
    pub(crate) is_refused: bool,
    /// How the answer differs from what it has to be.
    pub(crate) deviation: Option<String>,
    /// What it did cannot be known.
    pub(crate) is_unsure: bool,
    /// What it did to locks, in order.
    pub(crate) effects: SmallVec<[Effect; 2]>,
    /// The locks that its reply tells of, but for those that it granted or extended.
    pub(crate) shown: SmallVec<[Shown; 2]>,
    /// A state worth reaching.
    pub(crate) reached: Option<&'static str>,
}

/// What a request has done to a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A token has the key now, up to a deadline in the node's time; none is `u64::MAX`.
    Granted {
        key: Word,
        token: Word,
        /// The counter that the reply tells, or zero.
        counter: u64,
        ttl: u64,
    },
    /// Its holder has the key for another time from now.
    Moved { key: Word, ttl: u64 },
    /// The key is free; of any database, after FLUSHALL. `for_good`: the reply says so for every time, because the lock had no
    /// deadline, or all were let go.
    Freed { db: u8, key: Word, for_good: bool },
}

/// A lock that a reply tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) key: Word,
    pub(crate) token: Word,
    /// In the node's time.
    pub(crate) ends: u64,
    /// The counter that the reply tells, or zero.
    pub(crate) counter: u64,
    pub(crate) is_logged: bool,
}

#[derive(Clone, Debug)]
struct Kept {
    db: u8,
    key: Word,
    token: Word,
    /// It is a hash, of which the token is the field and this the value; 0 when it is none.
    levels: u64,
    ends: u64,
    grant: u64,
    is_logged: bool,
    label: Option<Label>,
}

/// What the holder says of itself, and when it was granted, by the node's time.
#[derive(Clone, Debug)]
struct Label {
    text: Word,
    /// Nothing for before this run.
    since: Option<u64>,
}

impl Reference {
    /// A node that begins without a lock.
    pub(crate) fn new(guard: GuardMode, max_ttl: std::time::Duration, base: u64) -> Self {
        Self {
            kept: Vec::new(),
            counters: BTreeMap::new(),
            base,
            guard,
            max_ttl_ns: nanos(max_ttl),
            is_lost: false,
            changes: BTreeMap::new(),
            expected: Vec::new(),
        }
    }

    /// It begins with a lock of an earlier run; of two for one key the first counts.
    pub(crate) fn restore(&mut self, lock: &LockRecord<'_>, now: u64) {
        if self.alive(now, lock.db, lock.key).is_none() {
            let (token, levels) = holder(lock);
            self.kept.push(Kept {
                db: lock.db,
                key: lock.key.into(),
                token: token.into(),
                levels,
                ends: lock
                    .deadline
                    .as_time()
                    .map_or(NEVER, |ends| ends.as_nanos()),
                grant: lock.grant,
                is_logged: lock.is_logged,
                label: lock.label.map(|text| Label {
                    text: text.into(),
                    since: None,
                }),
            });
        }
    }

    /// Where the counters began, and the highest of them; nothing when not all requests are known.
    pub(crate) fn counters(&self) -> Option<(u64, u64)> {
        let highest = self.counters.values().copied().max();
        (!self.is_lost).then_some((self.base, highest.unwrap_or(self.base)))
    }

    /// A live lock; one that has ended is forgotten on the way.
    fn alive(&mut self, now: u64, db: u8, key: &[u8]) -> Option<usize> {
        let is_it = |kept: &Kept| kept.db == db && *kept.key == *key;
        let place = self.kept.iter().position(is_it)?;
        // A lock is alive at exactly its deadline.
        if self.kept[place].ends >= now {
            return Some(place);
        }
        self.kept.remove(place);
        None
    }

    /// Notes a change of a key, for those who watch it.
    fn touch(&mut self, db: u8, key: &Word) {
        *self.changes.entry((db, Arc::clone(key))).or_default() += 1;
    }

    fn counter(&mut self, db: u8, key: &[u8]) -> &mut u64 {
        let counter = self.counters.entry((db, key.into()));
        counter.or_insert(self.base)
    }

    /// Whether a lock that has so long is written to the log.
    fn logs(&self, ttl: u64) -> bool {
        self.guard == GuardMode::Always || (self.guard == GuardMode::Long && ttl > self.max_ttl_ns)
    }
}

/// No deadline.
const NEVER: u64 = u64::MAX;

#[cfg(test)]
mod tests;
