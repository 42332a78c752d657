//! What passes between the engine and the store: what has to become durable, and what is.

use std::time::Duration;

use crate::time::Time;

/// Which locks are written to the log before they are granted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Those with a TTL above `max-ttl`, or none; the others ride on the restart guard.
    #[default]
    Long,
    /// All of them: a restart then needs no wait.
    Always,
}

/// How far durability has come. A reply may leave when nothing that it rests on lies beyond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// No lock that rides on the guard ends later, in the node's time.
    pub horizon: Time,
    /// No lock that rides on the guard was given a longer TTL, as long as it may be held.
    pub ttl_in_use: Duration,
    /// No fencing token was told, and no counter acknowledged, above this.
    pub ceiling: u64,
    /// So many records of the log, counted from the start of the node.
    pub records: u64,
}

/// What is to become durable next; taken from the engine, done by the store, given back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Encoded [`Record`](super::Record)s, in the order in which the table changed.
    pub log: Vec<u8>,
    /// What is durable when the work is done. A field that is not above what was durable before needs no write, but
    /// for `ttl_in_use`, which may also be lowered.
    pub goal: Durable,
}

/// Which locks of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those that are on the log.
    Logged,
    /// All that are alive.
    All,
}

/// The lock table as the store sees it.
pub trait Table {
    /// Appends the records of further locks to `out`, a bounded number of them, and tells whether there may be more.
    /// `cursor` is zero at first and belongs to the table. A lock that does not change from the first call to the last
    /// is given at least once; one that changes meanwhile is on the log.
    fn records(&mut self, which: Which, cursor: &mut u64, out: &mut Vec<u8>) -> bool;
}
