//! Where a node's time comes from.
//!
//! A machine has two clocks that nobody can set. One counts the time that the machine sleeps, but
//! time synchronisation speeds it up or slows it down by up to a tenth. The other runs at an even
//! rate, but stops while the machine sleeps. A lock must not expire early, so a node's time is a
//! sum of short steps, and each step counts what the slower clock showed `[G16]`.
//!
//! Comparing totals instead would not do: a clock that was slow for an hour may be fast for the
//! next, and the difference would go unnoticed.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use locknode_engine::durable::{MachineTime, Reading};
use locknode_engine::{Moment, Time, WallTime};
use rustix::time::{ClockId, clock_gettime};

/// A source of time.
///
/// A node reads it once per batch of commands. Tokio's timers only wake tasks; they never decide
/// whether a lock is alive.
pub trait Clock: Debug + Send + Sync {
    /// Returns the current time. The monotonic part never goes back.
    fn now(&self) -> Moment;

    /// Reads the clocks that keep running while no node runs; a node stores their readings on disk.
    ///
    /// By default both are the node's own time.
    fn machine(&self) -> MachineTime {
        let time_ns = self.now().time.as_nanos();
        MachineTime {
            boottime_ns: time_ns,
            raw_ns: time_ns,
        }
    }

    /// Returns how far the node's time has fallen behind the machine's two clocks, on average:
    ///
    /// ```text
    /// slip = (boottime - time) / 2 + (raw - time) / 2
    /// ```
    ///
    /// The origins of the clocks do not matter, because only the growth of this value is used. If
    /// the node's time passes 10 s while one clock passes 10 s and the other 10.4 s, the slip grows
    /// by 0.2 s. A deadline stored as a reading of the machine's clocks may then be reached 0.2 s
    /// too early, so the guard adds the growth to what it stores `[G6]`: the clock that the node's
    /// time has followed more closely is never further ahead than the mean.
    fn slip_ns(&self) -> u64 {
        let Reading { moment, machine } = self.reading();
        let behind = |clock_ns: u64| clock_ns.saturating_sub(moment.time.as_nanos());
        behind(machine.boottime_ns) / 2 + behind(machine.raw_ns) / 2
    }

    /// Reads the node's time, then the machine's clocks.
    ///
    /// The order matters: a deadline translated from one to the other becomes later by the time
    /// between the two readings, never earlier.
    fn reading(&self) -> Reading {
        let moment = self.now();
        Reading {
            moment,
            machine: self.machine(),
        }
    }
}

/// The operating system's clocks: the slower of the two that nobody can set decides, and the wall
/// clock translates absolute timestamps.
///
/// Most readings look at one clock and take no lock; the second clock is read once 250 us have
/// passed since its last reading. In between, the time may be ahead by the difference between the
/// two clocks over one such step: 250 us at most, well inside the 2 ms that clients allow for.
///
/// The wall clock is read at most once per millisecond and extrapolated with the node's time in
/// between, so a jump of the wall clock is noticed up to a millisecond late.
///
/// On systems other than Linux, only the monotonic clock is used.
#[derive(Debug)]
pub struct SystemClock {
    /// The even clock's reading at the start; readings are counted from here.
    origin_ns: u64,
    /// The last step, for the thread that takes the next one.
    steps: Mutex<Steps>,
    /// The last step, for readers. A step stores `floor`, then `lag`, then `due`; readers load them
    /// in reverse order. A reader that sees the old `due` shows at most the new floor, and one that
    /// sees the new `due` also sees the new lag and floor. So no reading is less than an earlier
    /// one, on any thread.
    due: AtomicU64,
    lag: AtomicU64,
    floor: AtomicU64,
    /// How far the time has fallen behind the two clocks, on average.
    slip: AtomicU64,
    /// When the wall clock was last read, and how far it is ahead of the time; both in nanoseconds.
    wall_read_at: AtomicU64,
    wall_ahead: AtomicU64,
}

/// The two-clock rule `[G16]` as arithmetic on readings of the two clocks, all in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    /// What the clocks showed at the last step.
    even: u64,
    counting: u64,
    /// How far the time is behind the even clock; only grows.
    lag: u64,
    /// The least time that may still be shown.
    floor: u64,
    /// The sum of the differences between the clocks in each step: how far the time has fallen
    /// behind the two clocks together.
    apart: u64,
}

impl SystemClock {
    /// Creates a clock whose monotonic time begins now.
    pub fn start() -> Self {
        let origin_ns = read(EVEN);
        let steps = Steps {
            counting: counting(0),
            ..Steps::default()
        };
        Self {
            origin_ns,
            due: AtomicU64::new(steps.due()),
            lag: AtomicU64::default(),
            floor: AtomicU64::default(),
            slip: AtomicU64::default(),
            steps: Mutex::new(steps),
            wall_read_at: AtomicU64::new(NEVER_READ),
            wall_ahead: AtomicU64::new(0),
        }
    }

    #[inline]
    fn time_ns(&self) -> u64 {
        let even = read(EVEN).saturating_sub(self.origin_ns);
        if even >= self.due.load(Ordering::Acquire) {
            return self.step(even);
        }
        let lag = self.lag.load(Ordering::Acquire);
        shown(even, lag, self.floor.load(Ordering::Relaxed))
    }

    /// Takes a step, or waits for the thread that is taking it, which only has to read a clock.
    ///
    /// Continuing with the old lag instead could show a time that is ahead by more than a step
    /// after an idle period.
    #[cold]
    fn step(&self, even: u64) -> u64 {
        // Nothing in here panics, and every intermediate state is valid.
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if even >= steps.due() {
            steps.advance(even, counting(even));
            self.slip.store(steps.apart / 2, Ordering::Relaxed);
            self.floor.store(steps.floor, Ordering::Relaxed);
            self.lag.store(steps.lag, Ordering::Release);
            self.due.store(steps.due(), Ordering::Release);
        }
        steps.show(even)
    }

    #[cold]
    fn read_wall(&self, time_ns: u64) -> u64 {
        let ahead = read(ClockId::Realtime).saturating_sub(time_ns);
        self.wall_ahead.store(ahead, Ordering::Relaxed);
        self.wall_read_at.store(time_ns, Ordering::Relaxed);
        ahead
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Moment {
        let time_ns = self.time_ns();
        let since = time_ns.wrapping_sub(self.wall_read_at.load(Ordering::Relaxed));
        let ahead = if since < WALL_PERIOD_NS {
            self.wall_ahead.load(Ordering::Relaxed)
        } else {
            self.read_wall(time_ns)
        };
        Moment {
            time: Time::from_nanos(time_ns),
            wall: WallTime::from_unix_nanos(time_ns.saturating_add(ahead)),
        }
    }

    #[inline]
    fn slip_ns(&self) -> u64 {
        self.slip.load(Ordering::Relaxed)
    }

    fn machine(&self) -> MachineTime {
        let raw_ns = read(EVEN);
        MachineTime {
            boottime_ns: counting(raw_ns),
            raw_ns,
        }
    }
}

impl Steps {
    /// The even clock's reading at which the other clock must be read again.
    const fn due(&self) -> u64 {
        self.even.saturating_add(STEP_NS)
    }

    /// Takes the step to these readings.
    fn advance(&mut self, even: u64, counting: u64) {
        let by_even = even.saturating_sub(self.even);
        let by_counting = counting.saturating_sub(self.counting);
        // Readers saw at most this since the last step. It is less than a step ahead of the correct
        // time, and does not accumulate.
        let seen = self.due().min(even).saturating_sub(self.lag);
        self.floor = self.floor.max(seen);
        self.lag = self.lag.saturating_add(by_even.saturating_sub(by_counting));
        self.apart = self.apart.saturating_add(by_even.abs_diff(by_counting));
        self.even = self.even.max(even);
        self.counting = self.counting.max(counting);
    }

    /// The time at this reading of the even clock.
    fn show(&self, even: u64) -> u64 {
        shown(even, self.lag, self.floor)
    }
}

#[inline]
fn shown(even: u64, lag: u64, floor: u64) -> u64 {
    even.saturating_sub(lag).max(floor)
}

/// Reads the clock that counts sleep; `even` is what the other clock has just shown.
fn counting(even: u64) -> u64 {
    if COUNTING == EVEN {
        even
    } else {
        read(COUNTING)
    }
}

/// How long this machine has run, by a clock that no test moves: it limits the time of scripts.
pub(crate) fn stopwatch() -> Duration {
    Duration::from_nanos(read(EVEN))
}

/// Reads a clock, in nanoseconds since its own origin.
#[inline]
fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    // The kernel keeps this part below 10^9.
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(target_os = "linux")]
const COUNTING: ClockId = ClockId::Boottime;
#[cfg(target_os = "linux")]
const EVEN: ClockId = ClockId::MonotonicRaw;
#[cfg(not(target_os = "linux"))]
const COUNTING: ClockId = ClockId::Monotonic;
#[cfg(not(target_os = "linux"))]
const EVEN: ClockId = ClockId::Monotonic;

/// An eighth of the 2 ms that clients allow for. Each step may lose a few nanoseconds, because the
/// clocks are read one after the other, so steps must not be too frequent.
const STEP_NS: u64 = 250_000;

/// Before the first reading of the wall clock: always longer ago than the period.
const NEVER_READ: u64 = u64::MAX - WALL_PERIOD_NS;

/// Clients send and receive timestamps in milliseconds.
const WALL_PERIOD_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    /// `[F4]` The first reading decides where fence counters begin.
    #[test]
    fn the_first_reading_of_the_wall_clock_is_correct() {
        let before = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        let shown = SystemClock::start().now().wall.as_unix_nanos();
        let after = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
        // The wall clock may be set at any time, but not by a day.
        let day = 86_400_000_000_000;
        assert!(before - day < u128::from(shown) && u128::from(shown) < after + day);
    }

    const MS: u64 = 1_000_000;

    /// What the even clock and the one that counts sleep have advanced since the last row, and the
    /// time since the start; all in milliseconds.
    type Row = (u64, u64, u64);

    /// `[G16]`
    #[test]
    fn every_step_counts_what_the_slower_clock_shows() {
        let rows: &[(&str, &[Row])] = &[
            ("both run on", &[(1000, 1000, 1000), (1, 1, 1001)]),
            ("one is sped up", &[(1000, 1100, 1000), (1000, 1000, 2000)]),
            ("one is slowed", &[(1000, 900, 900), (1000, 1000, 1900)]),
            // The minimum of the totals would be 2000: the fast second would undo the slow one.
            (
                "one is slowed, then sped up",
                &[(1000, 900, 900), (1000, 1100, 1900)],
            ),
            (
                "one is sped up, then slowed",
                &[(1000, 1100, 1000), (1000, 900, 1900)],
            ),
            ("the machine sleeps", &[(10, 3_600_010, 10), (10, 10, 20)]),
            (
                "the even one is too fast",
                &[(1200, 1000, 1000), (1200, 1000, 2000)],
            ),
            (
                "the even one is too slow",
                &[(900, 1000, 900), (900, 1000, 1800)],
            ),
            ("one stands still", &[(500, 0, 0), (500, 500, 500)]),
        ];
        for (name, rows) in rows {
            let (mut even, mut counting) = (0, 77 * MS);
            let mut steps = Steps {
                counting,
                ..Steps::default()
            };
            for (by_even, by_counting, time) in *rows {
                even += by_even * MS;
                counting += by_counting * MS;
                steps.advance(even, counting);
                // What was shown before the step is never taken back.
                let want = (time * MS).max(steps.floor);
                assert_eq!(steps.show(even), want, "{name}");
                assert!(want - time * MS <= STEP_NS, "{name}");
            }
        }
    }

    /// `[G16]` Time synchronisation changes a clock's rate by a tenth at most, and steps are short
    /// while a node works.
    #[test]
    fn within_a_step_time_is_ahead_by_less_than_a_step() {
        let mut steps = Steps::default();
        let (mut even, mut counting, mut right, mut last) = (0, 0, 0, 0);
        for round in 0..100_000 {
            let by = 1 + (round * 7919) % 400_000;
            let (by_even, by_counting) = match round % 3 {
                0 => (by, by - by / 10),
                1 => (by - by / 10, by),
                _ => (by, 0),
            };
            even += by_even;
            counting += by_counting;
            if even >= steps.due() {
                let before = (steps.even, steps.counting);
                steps.advance(even, counting);
                right += (even - before.0).min(counting - before.1);
            }
            let time = steps.show(even);
            assert!(time >= last, "round {round}: it went back");
            assert!(
                time >= right && time <= right + 2 * STEP_NS,
                "round {round}"
            );
            last = time;
        }
    }

    /// `[G16]`
    #[test]
    fn time_never_goes_back_when_the_clocks_do() {
        let mut steps = Steps::default();
        steps.advance(9 * MS, 8 * MS);
        let time = steps.show(9 * MS);
        for (even, counting) in [(9 * MS, 3 * MS), (10 * MS, 8 * MS), (10 * MS, 9 * MS)] {
            steps.advance(even, counting);
            assert!(steps.show(even) >= time);
        }
    }

    /// `[G16]`
    #[test]
    fn the_system_clock_never_goes_back_on_any_thread() {
        let clock = SystemClock::start();
        let shared = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100_000 {
                        let seen = shared.load(Ordering::SeqCst);
                        let now = clock.now().time.as_nanos();
                        assert!(now >= seen);
                        shared.fetch_max(now, Ordering::SeqCst);
                    }
                });
            }
        });
    }

    /// `[G16]`
    #[test]
    fn the_system_clock_keeps_pace_with_the_machine() {
        let clock = SystemClock::start();
        let start = clock.reading();
        let passed = |now: Reading| {
            let raw = now.machine.raw_ns - start.machine.raw_ns;
            let counting = now.machine.boottime_ns - start.machine.boottime_ns;
            (now.moment.time.since(start.moment.time), raw.min(counting))
        };
        loop {
            let (time, machine) = passed(clock.reading());
            let time = u64::try_from(time.as_nanos()).unwrap();
            // The machine's clocks are read last, so the time may be ahead by one step only.
            assert!(time <= machine + STEP_NS, "{time} and {machine}");
            if machine > 20 * MS {
                // A thread that is held up between two readings loses that time for good, which is
                // safe.
                assert!(time > MS, "{time} and {machine}");
                break;
            }
        }
    }
}
