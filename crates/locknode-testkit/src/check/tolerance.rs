//! How much sooner than noted a node may be right to end a lock, or its quarantine.
//!
//! The history notes in true time when that would be, at the pace of the node's clock at that moment. A clock that changes
//! its pace afterwards, or is read too late, ends it at another time.

use std::time::Duration;

use crate::fault::{Fault, Who};
use crate::scenario::Scenario;
use crate::span::nanos;

/// By how much a grant of one node may end sooner than the history says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// Millionths of the time from the grant to its end ...
    pub ppm: u32,
    /// ... and this much more.
    pub constant: Duration,
}

impl Tolerance {
    /// What the clocks of a scenario's node make necessary: the ends are noted at the pace of the moment, at the slowest
    /// its slowest, and come at its fastest. A clock that shows too late a time ends them sooner by as much. What is done to
    /// the clocks of other nodes is nothing to it.
    pub fn of(scenario: &Scenario, node: u8) -> Self {
        let it = Who::Node(node);
        let (mut fast, mut slow, mut slewed, mut noise) = (0, 0, 0, Duration::ZERO);
        for fault in scenario.faults().filter(|fault| fault.who() == Some(it)) {
            match fault {
                Fault::Rate(_, ppm) if ppm > 0 => fast = ppm.unsigned_abs().max(fast),
                Fault::Rate(_, ppm) => slow = ppm.unsigned_abs().max(slow),
                // The node goes by the slower of its two clocks: one that is slewed ahead does not matter.
                Fault::Slew(_, ppm) if ppm < 0 => slewed = ppm.unsigned_abs().max(slewed),
                Fault::Noise(_, span) => noise = span.max(noise),
                _ => {}
            }
        }
        let ppm = fast.saturating_add(slow).saturating_add(slewed);
        Self {
            ppm: ppm.min(1_000_000),
            constant: MILLISECOND.saturating_add(noise),
        }
    }

    /// By how much a time of this length may be shorter.
    pub(super) fn of_span(self, span: Duration) -> Duration {
        let share = u128::from(nanos(span)) * u128::from(self.ppm) / 1_000_000;
        Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX)).saturating_add(self.constant)
    }
}

/// Replies state deadlines in whole milliseconds.
const MILLISECOND: Duration = Duration::from_millis(1);
