//! How often the interesting things really happened.

use std::sync::atomic::{AtomicU64, Ordering};

/// One counter per line; all of them, over all seeds, must be above zero.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// SIGKILLs.
    pub(crate) kills: AtomicU64,
    /// SIGKILLs of a node that had not said yet that it listens.
    pub(crate) births_cut: AtomicU64,
    /// SIGKILLs of a node that was in its quarantine still.
    pub(crate) quarantines_cut: AtomicU64,
    /// SIGKILLs of a node that was ending after SIGTERM.
    pub(crate) stops_cut: AtomicU64,
    /// SIGKILLs of a node whose log was in several segments.
    pub(crate) long_logs: AtomicU64,
    /// SIGKILLs of a node whose log went on from a snapshot.
    pub(crate) after_snapshot: AtomicU64,
    /// Starts after which clients were told LOADING.
    pub(crate) quarantines: AtomicU64,
    /// Of these the ones that what was on disk made shorter than `max-ttl`.
    pub(crate) quarantines_shortened: AtomicU64,
    /// Starts without a wait after a clean stop.
    pub(crate) clean_starts: AtomicU64,
    /// Starts without a wait after SIGKILL, everything being on the log.
    pub(crate) logged_starts: AtomicU64,
    /// Grants that clients were told.
    pub(crate) grants: AtomicU64,
    /// Locks that somebody was sure to hold when the node was killed.
    pub(crate) held_at_kill: AtomicU64,
    /// Answers that the lock of an earlier run, which was killed, is held.
    pub(crate) held_after_kill: AtomicU64,
    /// Of these the ones without a TTL.
    pub(crate) eternal_after_kill: AtomicU64,
    /// Answers that the lock of an earlier run, which was stopped, is held.
    pub(crate) held_after_stop: AtomicU64,
    /// Locks that a reader was shown before the holder was told, or that nobody was told.
    pub(crate) shown_first: AtomicU64,
    /// Acquisitions whose reply was turned off.
    pub(crate) muted: AtomicU64,
    /// SIGKILLs of a node whose disk keeps only what was synced.
    pub(crate) lazy_kills: AtomicU64,
    /// Releases of locks without a TTL that clients were told.
    pub(crate) eternal_released: AtomicU64,
    /// Acquisitions that clients were told in a run after the key was last held in a killed one.
    pub(crate) regained: AtomicU64,
    /// Fence counters that clients were told.
    pub(crate) fences: AtomicU64,
    /// Fence counters that clients moved beyond what one step covers.
    pub(crate) fences_far: AtomicU64,
}

impl Tally {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// All counters with their names.
    pub(crate) fn rows(&self) -> Vec<(&'static str, u64)> {
        let rows = [
            ("kills", &self.kills),
            ("births cut", &self.births_cut),
            ("quarantines cut", &self.quarantines_cut),
            ("stops cut", &self.stops_cut),
            ("long logs", &self.long_logs),
            ("logs after a snapshot", &self.after_snapshot),
            ("quarantines", &self.quarantines),
            ("quarantines shortened", &self.quarantines_shortened),
            ("clean starts", &self.clean_starts),
            ("logged starts", &self.logged_starts),
            ("grants", &self.grants),
            ("held at a kill", &self.held_at_kill),
            ("held after a kill", &self.held_after_kill),
            ("eternal after a kill", &self.eternal_after_kill),
            ("held after a stop", &self.held_after_stop),
            ("shown first", &self.shown_first),
            ("acquired with replies off", &self.muted),
            ("kills with a lazy disk", &self.lazy_kills),
            ("eternal released", &self.eternal_released),
            ("regained after a kill", &self.regained),
            ("fences", &self.fences),
            ("fences moved far", &self.fences_far),
        ];
        let rows = rows.map(|(name, counter)| (name, counter.load(Ordering::Relaxed)));
        rows.to_vec()
    }
}
