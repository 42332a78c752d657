//! How long a start waits, decided from the state alone, without reading or writing.

use std::time::Duration;

use crate::durable::machine::{Machine, MachineTime, Reading};
use crate::durable::start_reason::StartReason;
use crate::durable::state_file::{Found, State};
use crate::durable::work::Durability;
use crate::time::Time;

/// The wait, and what later starts must know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) reason: StartReason,
    /// In the node's time; its start when there is no wait.
    pub(super) quarantine_end: Time,
    /// The TTL from which the wait was computed; zero without a wait `[G9]`.
    pub(super) ttl_in_use: Duration,
    /// Whether the clocks of the last incarnation can be compared with those of now.
    pub(super) is_same_boot: bool,
    /// Whether a damaged slot of the state may have said more than the other `[S3]`.
    pub(super) is_state_damaged: bool,
}

/// Decides about a start with state; `max_ttl` is configured for this incarnation.
pub(super) fn judge(
    found: &Found,
    max_ttl: Duration,
    machine: &Machine,
    reading: Reading,
) -> Verdict {
    let state = match found {
        Found::Nothing => {
            // [G3] An empty directory proves nothing: the disk may have been lost.
            return waiting(StartReason::Empty, max_ttl, false, reading);
        }
        Found::Half(state) => {
            // [S3] The last content of the other slot is unknown.
            let ttl = max_ttl.max(state.ttl_in_use);
            let is_same_boot = same_boot(state, machine, reading) == SameBoot::Yes;
            return Verdict {
                is_state_damaged: true,
                ..waiting(StartReason::DamagedState, ttl, is_same_boot, reading)
            };
        }
        Found::Whole(state) => state,
    };
    let boot = same_boot(state, machine, reading);
    let is_same_boot = boot == SameBoot::Yes;
    let no_wait = |reason| Verdict {
        reason,
        quarantine_end: reading.moment.time,
        ttl_in_use: Duration::ZERO,
        is_same_boot,
        is_state_damaged: false,
    };
    if state.is_clean {
        // [G10]
        return no_wait(StartReason::CleanStop);
    }
    // [G5] S07: what the state says, not what is configured now.
    let ttl = state.ttl_in_use;
    match boot {
        // Clocks that went back within one boot: this may be an old copy of a machine, so nothing
        // about it is certain.
        SameBoot::Mismatch => waiting(
            StartReason::ClockMismatch,
            ttl.max(max_ttl),
            is_same_boot,
            reading,
        ),
        _ if ttl.is_zero() => no_wait(match (state.durability, boot) {
            (Durability::Always, _) => StartReason::Logged,
            (_, SameBoot::Yes) => StartReason::Crash,
            _ => StartReason::Reboot,
        }),
        SameBoot::No => waiting(StartReason::Reboot, ttl, is_same_boot, reading),
        SameBoot::Yes => {
            // [G6] Whichever is first.
            let left = ahead(state.horizon, reading.machine);
            let mut verdict = waiting(StartReason::Crash, ttl, is_same_boot, reading);
            let horizon = reading.moment.time.saturating_add(left);
            verdict.quarantine_end = verdict.quarantine_end.min(horizon);
            if left.is_zero() {
                verdict.ttl_in_use = Duration::ZERO;
            }
            verdict
        }
    }
}

impl Verdict {
    /// `[L5]` Returns the verdict after the last batch of the log was dropped, with unknown grants.
    /// `ttl` is the longest that may be in use.
    pub(super) fn dropped(self, ttl: Duration, reading: Reading) -> Self {
        Self {
            is_state_damaged: self.is_state_damaged,
            ..waiting(StartReason::DroppedBatch, ttl, self.is_same_boot, reading)
        }
    }
}

/// `[G3]` Returns the wait when only a TTL is known: the TTL plus the drift that clients allow for,
/// rounded up.
pub(super) fn full_wait(ttl: Duration) -> Duration {
    let rho =
        Duration::from_nanos(u64::try_from(ttl.as_nanos().div_ceil(RHO_PARTS)).unwrap_or(u64::MAX));
    ttl.saturating_add(rho).saturating_add(EPS)
}

/// Translates a time of the node to readings of the machine's clocks `[G6]`.
pub(super) fn on_machine(time: Time, reading: Reading) -> MachineTime {
    let left = time.since(reading.moment.time);
    let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    MachineTime {
        boottime_ns: reading.machine.boottime_ns.saturating_add(left),
        raw_ns: reading.machine.raw_ns.saturating_add(left),
    }
}

/// Returns the later reading of each clock.
pub(super) fn later(a: MachineTime, b: MachineTime) -> MachineTime {
    MachineTime {
        boottime_ns: a.boottime_ns.max(b.boottime_ns),
        raw_ns: a.raw_ns.max(b.raw_ns),
    }
}

/// Returns how long it takes until both clocks have passed `target`. The node's time is no faster
/// than either clock, so waiting this long in the node's time suffices.
fn ahead(target: MachineTime, now: MachineTime) -> Duration {
    let left = |target: u64, now: u64| match target.checked_sub(now) {
        // A lock is alive at exactly its deadline, and a wait of zero would be no wait.
        Some(left) => left.max(1),
        None => 0,
    };
    let boottime = left(target.boottime_ns, now.boottime_ns);
    let raw = left(target.raw_ns, now.raw_ns);
    Duration::from_nanos(boottime.max(raw))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SameBoot {
    Yes,
    No,
    /// The same by name, but a clock has gone back.
    Mismatch,
}

/// `[G7]`
fn same_boot(state: &State, machine: &Machine, reading: Reading) -> SameBoot {
    if !machine.is_same_boot(&state.machine) {
        SameBoot::No
    } else if is_behind(reading.machine, state.written) {
        SameBoot::Mismatch
    } else {
        SameBoot::Yes
    }
}

/// Returns whether either clock has gone back.
pub(super) fn is_behind(now: MachineTime, then: MachineTime) -> bool {
    now.boottime_ns < then.boottime_ns || now.raw_ns < then.raw_ns
}

fn waiting(reason: StartReason, ttl: Duration, is_same_boot: bool, reading: Reading) -> Verdict {
    Verdict {
        reason,
        quarantine_end: reading.moment.time.saturating_add(full_wait(ttl)),
        ttl_in_use: ttl,
        is_same_boot,
        is_state_damaged: false,
    }
}

/// 1 %: what Redlock clients commonly allow for clocks of different speed.
const RHO_PARTS: u128 = 100;

/// What Redlock clients commonly allow for the granularity of expiry.
const EPS: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// `[G3]`
    #[test]
    fn the_full_wait_is_the_ttl_and_the_drift_that_clients_allow_for() {
        for (ttl_ns, want_ns) in [
            (0, 2_000_000),
            (1, 2_000_002),
            (60_000_000_000, 60_602_000_000),
        ] {
            assert_eq!(
                full_wait(Duration::from_nanos(ttl_ns)),
                Duration::from_nanos(want_ns)
            );
        }
        assert!(full_wait(Duration::MAX) == Duration::MAX);
    }

    /// `[G6]`
    #[test]
    fn translation_to_the_machines_clocks_saturates() {
        let mut reading = Reading::default();
        reading.machine.boottime_ns = u64::MAX - 1;
        let time = on_machine(Time::from_nanos(10), reading);
        assert_eq!((time.boottime_ns, time.raw_ns), (u64::MAX, 10));
        assert_eq!(ahead(time, reading.machine), Duration::from_nanos(10));
    }
}
