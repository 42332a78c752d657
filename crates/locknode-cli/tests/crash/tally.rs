//! How often the interesting things really happened.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter for each of [`COUNTS`]; all of them, over all seeds, must be above zero.
#[derive(Debug, Default)]
pub(crate) struct Tally([AtomicU64; COUNTS.len()]);

impl Tally {
    /// Counts one of [`COUNTS`].
    pub(crate) fn add(&self, name: &str) {
        let row = COUNTS.iter().position(|counted| *counted == name);
        self.0[row.expect("a count")].fetch_add(1, Ordering::Relaxed);
    }

    /// All counters with their names.
    pub(crate) fn rows(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|count| count.load(Ordering::Relaxed));
        COUNTS.into_iter().zip(counts).collect()
    }
}

const COUNTS: [&str; 22] = [
    // SIGKILLs.
    "kills",
    // SIGKILLs of a node that had not said yet that it listens.
    "births cut",
    // SIGKILLs of a node that was in its quarantine still.
    "quarantines cut",
    // SIGKILLs of a node that was ending after SIGTERM.
    "stops cut",
    // SIGKILLs of a node whose log was in several segments.
    "long logs",
    // SIGKILLs of a node whose log went on from a snapshot.
    "logs after a snapshot",
    // Starts after which clients got LOADING.
    "quarantines",
    // Of these the ones that what was on disk made shorter than `max-ttl`.
    "quarantines shortened",
    // Starts without a wait after a clean stop.
    "clean starts",
    // Starts without a wait after SIGKILL, everything being on the log.
    "logged starts",
    // Grants that reached clients.
    "grants",
    // Locks that somebody was sure to hold when the node was killed.
    "held at a kill",
    // Answers that the lock of an earlier run, which was killed, is held.
    "held after a kill",
    // Of these the ones without a TTL.
    "eternal after a kill",
    // Answers that the lock of an earlier run, which was stopped, is held.
    "held after a stop",
    // Locks that a reader was shown before the holder had an answer, or that nobody had an answer about.
    "shown first",
    // Acquisitions whose reply was turned off.
    "acquired with replies off",
    // SIGKILLs of a node whose disk keeps only what was synced.
    "kills with a lazy disk",
    // Releases of locks without a TTL that were confirmed.
    "eternal released",
    // Acquisitions granted in a run after the key was last held in a killed one.
    "regained after a kill",
    // Fence counters that reached clients.
    "fences",
    // Fence counters that clients moved beyond what one step covers.
    "fences moved far",
];
