//! What passes between the engine and the store: what must become durable, and what is.

use std::time::Duration;

use crate::time::Time;

/// Which locks are written to the log before they are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Locks with a TTL above `max-ttl` or none; the others rely on the restart guard.
    #[default]
    Long,
    /// All locks, so that a restart needs no wait.
    Always,
}

/// How far durability has come. A reply may be sent once everything it depends on is within these
/// bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// No lock that relies on the guard expires later, in the node's time.
    pub horizon: Time,
    /// No unexpired lock that relies on the guard was granted a longer TTL.
    pub ttl_in_use: Duration,
    /// No reply contained a fencing token, and no acknowledged counter was, above this.
    pub ceiling: u64,
    /// The number of log records, counted from the start of the node.
    pub records: u64,
}

/// What is to become durable next: taken from the engine, done by the store, reported back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Encoded [`Record`](super::Record)s, in the order in which the table changed.
    pub log: Vec<u8>,
    /// What is durable once the work is done. A field that does not exceed what is already durable
    /// needs no write, except that `ttl_in_use` may also be lowered.
    pub goal: Durable,
}

/// Which locks of a table to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The locks that are on the log.
    Logged,
    /// All live locks.
    All,
}

/// The lock table as the store reads it.
pub trait Table {
    /// Appends the records of a bounded number of further locks to `out`, and returns whether there
    /// may be more.
    ///
    /// `cursor` starts at zero and belongs to the table. A lock that does not change between the
    /// first and the last call is appended at least once; the change of any other is on the log.
    fn records(&mut self, which: Which, cursor: &mut u64, out: &mut Vec<u8>) -> bool;
}
