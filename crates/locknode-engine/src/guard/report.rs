//! What the guard reports to people.

use std::time::Duration;

use super::{Guard, GuardMode};
use crate::durable::StartReason;
use crate::time::Time;

/// What a node can do at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardState {
    /// Grants locks.
    Serving,
    /// Refuses all locks until those that it may have granted before its restart have expired.
    Quarantine,
    /// The disk is full: grants only locks that need no write.
    Full,
    /// A sync has failed: grants nothing.
    Failed,
    /// The node was closed: grants nothing.
    Closed,
}

/// The state of a guard at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardReport {
    /// How restarts are guarded.
    pub mode: GuardMode,
    /// What the node can do.
    pub state: GuardState,
    /// Why the node started with or without a quarantine.
    pub reason: StartReason,
    /// The length of the quarantine at the start.
    pub quarantine: Duration,
    /// The time left of it.
    pub quarantine_left: Duration,
    /// The number of this run of the node; 0 without a store.
    pub incarnation: u64,
    /// Locks with a longer TTL are written to the log.
    pub max_ttl: Duration,
    /// The longest TTL of any unexpired lock that is not on the log, rounded up; zero without a
    /// store.
    pub ttl_in_use: Duration,
    /// How far the durable horizon is ahead.
    pub horizon_ahead: Duration,
    /// No reply has contained a fencing token above this; zero without a store.
    pub ceiling: u64,
    /// Records written to the log since the start.
    pub records: u64,
    /// The last error of the store, while it matters; empty otherwise.
    pub error: String,
}

impl Guard {
    /// Reports the state of the guard.
    pub fn report(&self, now: Time) -> GuardReport {
        let left = self.quarantine_left(now).unwrap_or_default();
        let is_full = self.is_full();
        let state = match left {
            _ if self.is_closed() => GuardState::Closed,
            _ if self.has_failed() => GuardState::Failed,
            Duration::ZERO if is_full => GuardState::Full,
            Duration::ZERO => GuardState::Serving,
            _ => GuardState::Quarantine,
        };
        let ledger = self.ledger.lock();
        let durable = ledger.durable();
        let is_in_trouble = matches!(state, GuardState::Failed) || is_full;
        GuardReport {
            mode: self.mode,
            state,
            reason: ledger.reason,
            quarantine: ledger.quarantine,
            quarantine_left: left,
            incarnation: ledger.incarnation,
            max_ttl: Duration::from_nanos(self.max_ttl_ns),
            ttl_in_use: durable.ttl_in_use,
            horizon_ahead: durable.horizon.since(now),
            ceiling: durable.ceiling,
            records: durable.records,
            error: if is_in_trouble {
                ledger.error.clone()
            } else {
                String::new()
            },
        }
    }
}

impl GuardState {
    /// Every state.
    pub const ALL: [Self; 5] = [
        Self::Serving,
        Self::Quarantine,
        Self::Full,
        Self::Failed,
        Self::Closed,
    ];

    /// Returns the state in one word, as INFO shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::Quarantine => "quarantine",
            Self::Full => "full",
            Self::Failed => "failed",
            Self::Closed => "closed",
        }
    }
}

impl StartReason {
    /// Returns the reason in one word, as INFO shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FirstStart => "first_start",
            Self::CleanStop => "clean_stop",
            Self::Crash => "crash",
            Self::Reboot => "reboot",
            Self::ClockMismatch => "clock_mismatch",
            Self::Empty => "empty",
            Self::DamagedState => "damaged_state",
            Self::DroppedBatch => "dropped_batch",
            Self::NoDirectory => "no_directory",
            Self::GuardOff => "guard_off",
            Self::Logged => "logged",
        }
    }

    /// Returns what would have shortened the wait; empty when there was none to shorten.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::FirstStart | Self::CleanStop | Self::Logged | Self::GuardOff => "",
            Self::Crash => "stop the node with SIGTERM, and the next start serves at once",
            Self::Reboot => {
                "stop the node with SIGTERM before the machine goes down, and the next start serves at once"
            }
            Self::ClockMismatch => {
                "the clocks of the last run cannot be compared: it was on another machine, in another container, or in a \
                 snapshot of one; after a stop with SIGTERM the next start serves at once"
            }
            Self::Empty => {
                "if no node in this place of the clients' list has ever granted a lock, start it with --first-start to \
                 serve at once; with --empty-dir refuse the node does not start until you confirm that every lock \
                 with a longer TTL or none has expired"
            }
            Self::DamagedState => {
                "part of the state file was damaged, so the node takes the longest wait: check the disk"
            }
            Self::DroppedBatch => {
                "the last batch of the log was incomplete, so the node takes the longest wait: if it was damaged, its locks \
                 with a longer TTL or none are lost; unless the node was killed or lost power while writing, check the disk"
            }
            Self::NoDirectory => {
                "with a data directory (--dir) the node serves at once after a clean stop, and after a crash it waits only \
                 until the last lock has expired, even if --max-ttl was lowered; if no node in this place of the clients' \
                 list has ever granted a lock, start it with --first-start to serve at once"
            }
        }
    }
}
