//! What a node starts with: the wait, the number of its incarnation, the base of its fence
//! counters, its locks.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use crate::durable::machine::Reading;
use crate::durable::record::{LockRecord, Record};
use crate::durable::start_reason::StartReason;
use crate::durable::verdict::full_wait;
use crate::durable::work::Durable;
use crate::fence::{FENCE_END, FENCE_STEP};
use crate::time::{Time, WallTime};

/// What a node starts with.
#[derive(Clone)]
pub struct Start {
    /// Why it waits, or does not.
    pub reason: StartReason,
    /// When its quarantine ends, in its own time; not after its start if there is none `[G1]`.
    pub quarantine_end: Time,
    /// One above the last incarnation; zero when nothing is stored `[S5]`.
    pub incarnation: u64,
    /// Where all fence counters begin `[F2]`.
    pub fence_base: u64,
    /// What is already durable. It covers the restored locks that rely on the guard.
    pub durable: Durable,
    /// Records of live locks, in the new node's time.
    pub(super) records: Vec<u8>,
}

/// The locks of a [`Start`].
#[derive(Clone, Debug)]
pub struct Locks<'a> {
    rest: &'a [u8],
}

impl Start {
    /// Returns the start of a node without a data directory: the full wait, unless this is stated
    /// to be the first start `[G3]` `[G4]`. Nothing can be made durable, so nothing has to be.
    pub fn without_directory(max_ttl: Duration, is_first_start: bool, reading: Reading) -> Self {
        let time = reading.moment.time;
        let (reason, quarantine_end) = if is_first_start {
            (StartReason::FirstStart, time)
        } else {
            (
                StartReason::NoDirectory,
                time.saturating_add(full_wait(max_ttl)),
            )
        };
        Self::unkept(reason, quarantine_end, reading)
    }

    /// Returns the start of a node whose restart guard is off: no wait, and nothing is stored
    /// `[G15]`.
    pub fn without_guard(reading: Reading) -> Self {
        Self::unkept(StartReason::GuardOff, reading.moment.time, reading)
    }

    /// Returns the locks that the node starts with: each key once, with deadlines in its own time.
    pub fn locks(&self) -> Locks<'_> {
        Locks::of(&self.records)
    }

    fn unkept(reason: StartReason, quarantine_end: Time, reading: Reading) -> Self {
        Self {
            reason,
            quarantine_end,
            incarnation: 0,
            fence_base: wall_floor(reading.moment.wall),
            durable: Durable {
                horizon: Time::from_nanos(u64::MAX),
                ttl_in_use: Duration::MAX,
                ceiling: FENCE_END,
                records: u64::MAX,
            },
            records: Vec::new(),
        }
    }
}

impl Debug for Start {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start")
            .field("reason", &self.reason)
            .field("quarantine_end", &self.quarantine_end)
            .field("incarnation", &self.incarnation)
            .field("fence_base", &self.fence_base)
            .field("durable", &self.durable)
            .field("record_bytes", &self.records.len())
            .finish()
    }
}

impl<'a> Locks<'a> {
    /// Reads encoded locks.
    pub(super) fn of(records: &'a [u8]) -> Self {
        Self { rest: records }
    }
}

impl<'a> Iterator for Locks<'a> {
    type Item = LockRecord<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let (Record::Put(lock), rest) = Record::decode(self.rest)? else {
            return None;
        };
        self.rest = rest;
        Some(lock)
    }
}

/// `[F4]` Returns the least value at which counters begin; counters grow more slowly than this
/// value does with time. A wall clock beyond the year 2106 is not believed: it would leave no room
/// below the largest fencing token.
pub(super) fn wall_floor(wall: WallTime) -> u64 {
    let seconds = wall.as_unix_nanos() / 1_000_000_000;
    if seconds < 1 << 32 {
        seconds * FENCE_STEP
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Moment;

    /// `[F4]`
    #[test]
    fn counters_begin_at_the_wall_clock_when_it_is_plausible() {
        for (seconds, want) in [
            (0, 0),
            (1_800_000_000, 1_800_000_000 << 20),
            ((1 << 32) - 1, ((1 << 32) - 1) << 20),
            (1 << 32, 0),
            (18_446_744_073, 0),
        ] {
            let wall = WallTime::from_unix_nanos(seconds * 1_000_000_000);
            assert_eq!(wall_floor(wall), want, "{seconds}");
            assert!(want < FENCE_END);
        }
    }

    /// `[G3]` `[G4]` `[G15]`
    #[test]
    fn a_node_without_a_directory_waits_except_at_its_first_start() {
        let time = Time::from_millis(5);
        let reading = Reading {
            moment: Moment {
                time,
                ..Moment::default()
            },
            ..Reading::default()
        };
        let minute = Duration::from_secs(60);
        let waits = Start::without_directory(minute, false, reading);
        assert_eq!(waits.reason, StartReason::NoDirectory);
        assert_eq!(waits.quarantine_end, Time::from_millis(60_607));
        let first = Start::without_directory(minute, true, reading);
        assert_eq!(
            (first.reason, first.quarantine_end),
            (StartReason::FirstStart, time)
        );
        let off = Start::without_guard(reading);
        assert_eq!(
            (off.reason, off.quarantine_end),
            (StartReason::GuardOff, time)
        );
        assert_eq!(off.locks().count(), 0);
    }
}
