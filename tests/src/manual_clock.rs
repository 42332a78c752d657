//! Clocks that move only when a test moves them: those of a machine, and of the nodes that run on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locknode::{Clock, MachineTime, Moment, Time, WallTime};

/// A node's clocks under a test's control. Clones share the time.
///
/// The machine has three clocks, which run evenly and together until a test makes them differ. The node's own time is
/// the sum of steps, one for each [`ManualClock::advance`], each the lesser of what boottime and raw show `[G16]`.
#[derive(Clone, Debug)]
pub struct ManualClock {
    machine: Arc<Mutex<Clocks>>,
    /// When the node's time began, on the sum of all steps.
    origin_ns: u64,
}

#[derive(Debug)]
struct Clocks {
    boottime: Hand,
    raw: Hand,
    wall: Hand,
    /// The sum of all steps, over all nodes that ran on the machine.
    steps_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Hand {
    shows_ns: u64,
    /// How much too fast it runs, in millionths; negative when too slow.
    skew_ppm: i64,
}

impl ManualClock {
    /// A node that starts now, on a machine that booted an hour ago, at the given calendar time in Unix milliseconds.
    pub fn starting_at_unix_millis(unix_ms: u64) -> Self {
        let hand = |shows_ns| Hand {
            shows_ns,
            skew_ppm: 0,
        };
        Self {
            machine: Arc::new(Mutex::new(Clocks {
                boottime: hand(UPTIME_NS),
                raw: hand(UPTIME_NS),
                wall: hand(unix_ms * 1_000_000),
                steps_ns: 0,
            })),
            origin_ns: 0,
        }
    }

    /// The clock of a node that starts now on the same machine: its own time begins at zero.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self {
            machine: Arc::clone(&self.machine),
            origin_ns: self.clocks().steps_ns,
        }
    }

    /// Lets time pass on all clocks, on each at its own pace. For the node it is one step.
    pub fn advance(&self, by: Duration) {
        let mut clocks = self.clocks();
        let by_boottime = clocks.boottime.advance(by);
        let by_raw = clocks.raw.advance(by);
        clocks.wall.advance(by);
        clocks.steps_ns += by_boottime.min(by_raw);
    }

    /// The machine sleeps: boottime and the wall clock go on, raw and the node's time stand still.
    pub fn suspend(&self, by: Duration) {
        let mut clocks = self.clocks();
        clocks.boottime.advance(by);
        clocks.wall.advance(by);
    }

    /// The machine boots: boottime and raw begin at zero.
    pub fn reboot(&self) {
        self.set(Duration::ZERO, Duration::ZERO);
    }

    /// Makes boottime and raw run this many millionths too fast from now on, or too slow.
    pub fn skew(&self, boottime_ppm: i64, raw_ppm: i64) {
        let mut clocks = self.clocks();
        clocks.boottime.skew_ppm = boottime_ppm;
        clocks.raw.skew_ppm = raw_ppm;
    }

    /// Makes the wall clock run this many millionths too fast from now on, or too slow.
    pub fn skew_wall(&self, ppm: i64) {
        self.clocks().wall.skew_ppm = ppm;
    }

    /// Sets boottime and raw, as nothing but a fault does.
    pub fn set(&self, boottime: Duration, raw: Duration) {
        let mut clocks = self.clocks();
        clocks.boottime.shows_ns = nanos(boottime);
        clocks.raw.shows_ns = nanos(raw);
    }

    /// Sets the wall clock, as an administrator or NTP does.
    pub fn set_wall_unix_millis(&self, unix_ms: u64) {
        self.clocks().wall.shows_ns = unix_ms * 1_000_000;
    }

    fn clocks(&self) -> MutexGuard<'_, Clocks> {
        // A test that failed elsewhere has said why already.
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        let clocks = self.clocks();
        Moment {
            time: Time::from_nanos(clocks.steps_ns - self.origin_ns),
            wall: WallTime::from_unix_nanos(clocks.wall.shows_ns),
        }
    }

    fn machine(&self) -> MachineTime {
        let clocks = self.clocks();
        MachineTime {
            boottime_ns: clocks.boottime.shows_ns,
            raw_ns: clocks.raw.shows_ns,
        }
    }
}

impl Hand {
    /// How far it moves.
    fn advance(&mut self, by: Duration) -> u64 {
        let by = i128::from(nanos(by));
        let skewed = by + by * i128::from(self.skew_ppm) / 1_000_000;
        let skewed = u64::try_from(skewed).unwrap_or_default();
        self.shows_ns += skewed;
        skewed
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// How long the machine runs already when a test begins.
const UPTIME_NS: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(clock: &ManualClock) -> [i64; 4] {
        let (now, machine) = (clock.now(), clock.machine());
        let ms = |ns: u64| i64::try_from(ns / 1_000_000).expect("small");
        [
            ms(now.time.as_nanos()),
            ms(machine.boottime_ns) - 3_600_000,
            ms(machine.raw_ns) - 3_600_000,
            ms(now.wall.as_unix_nanos()),
        ]
    }

    /// `[G16]`
    #[test]
    fn every_clock_moves_as_it_is_set() {
        let second = Duration::from_secs(1);
        let clock = ManualClock::starting_at_unix_millis(0);
        type Change = fn(&ManualClock);
        let fall_asleep: Change = |clock| {
            clock.skew(0, 0);
            clock.suspend(Duration::from_secs(2));
        };
        let rows: [(&str, Change, [i64; 4]); 7] = [
            ("even", |_| (), [1000, 1000, 1000, 1000]),
            (
                "slowed",
                |clock| clock.skew(-100_000, 0),
                [1900, 1900, 2000, 2000],
            ),
            (
                "hastened",
                |clock| clock.skew(100_000, 0),
                [2900, 3000, 3000, 3000],
            ),
            ("asleep before", fall_asleep, [3900, 6000, 4000, 6000]),
            (
                "raw too fast",
                |clock| clock.skew(0, 500_000),
                [4900, 7000, 5500, 7000],
            ),
            (
                "wall set",
                |clock| clock.set_wall_unix_millis(0),
                [5900, 8000, 7000, 1000],
            ),
            (
                "rebooted",
                ManualClock::reboot,
                [6900, -3_599_000, -3_598_500, 2000],
            ),
        ];
        for (name, change, want) in rows {
            change(&clock);
            clock.advance(second);
            assert_eq!(shows(&clock), want, "{name}");
        }
        let restarted = clock.restarted();
        assert_eq!(shows(&restarted), [0, -3_599_000, -3_598_500, 2000]);
        clock.advance(second);
        assert_eq!(shows(&restarted)[0], 1000);
        assert_eq!(shows(&clock)[0], 7900);
    }
}
