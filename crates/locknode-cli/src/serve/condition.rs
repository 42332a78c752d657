//! What a node does and why, in words.

use locknode::{GuardReport, GuardState, StartReason};

/// What a node does, for those who look at it from outside.
pub(super) fn condition(guard: &GuardReport) -> String {
    match guard.state {
        GuardState::Serving => "granting locks".to_owned(),
        GuardState::Quarantine => format!(
            "in quarantine for another {:.3} s: {}",
            guard.quarantine_left.as_secs_f64(),
            because(guard.reason)
        ),
        GuardState::Full => format!("disk full: {}", guard.error),
        GuardState::Failed => format!("disk failed: {}", guard.error),
        GuardState::Closed => "stopping".to_owned(),
    }
}

/// Why a node waits, or does not.
pub(super) fn because(reason: StartReason) -> &'static str {
    match reason {
        StartReason::FirstStart => "no node in its place has ever granted one (--first-start)",
        StartReason::CleanStop => "the last run stopped cleanly",
        StartReason::Crash => "the last run crashed",
        StartReason::Reboot => {
            "the machine was restarted or replaced since the last run, or has another time namespace"
        }
        StartReason::ClockMismatch => "the machine's clocks differ from those of the last run",
        StartReason::Empty => "the data directory was empty, as after losing a disk",
        StartReason::DamagedState => "part of the state file is damaged",
        StartReason::DroppedBatch => {
            "the last batch of the log was dropped: it was cut short, or it is damaged"
        }
        StartReason::NoDirectory => "without a data directory, nothing is known of earlier runs",
        StartReason::GuardOff => "the restart guard is off",
        StartReason::Logged => "the last run crashed, and all its locks are in the log",
        other => other.name(),
    }
}
