//! Where the client's time comes from.

use std::fmt::Debug;

use parking_lot::Mutex;
use redlock_proto::Time;
#[cfg(unix)]
use rustix::time::{ClockId, clock_gettime};

/// A source of time, by which the client decides whether a lock is still held. Timers of the runtime
/// only wake the client up.
pub trait Clock: Debug + Send + Sync {
    /// The current time. Never goes back.
    fn now(&self) -> Time;
}

/// The operating system's clocks, combined so that a lock never seems younger than it is.
///
/// One clock counts the time that the machine sleeps, but time synchronisation changes its speed by up
/// to a tenth. The other runs evenly, but stops while the machine sleeps. In each step the clock that
/// advanced more counts. (The clock of the standard library, and so tokio's, has both faults.)
///
/// On systems other than Linux, only the monotonic clock is used.
#[derive(Debug)]
pub struct SystemClock {
    mark: Mutex<Mark>,
}

/// One instant on both clocks and as the client's time, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Mark {
    counting: u64,
    even: u64,
    time: u64,
}

impl SystemClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self {
            mark: Mutex::new(Mark {
                counting: read(COUNTING),
                even: read(EVEN),
                time: 0,
            }),
        }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let mut mark = self.mark.lock();
        mark.advance(read(COUNTING), read(EVEN))
    }
}

impl Mark {
    /// The client's time for these readings.
    fn advance(&mut self, counting: u64, even: u64) -> Time {
        let passed = counting
            .saturating_sub(self.counting)
            .max(even.saturating_sub(self.even));
        let time = self.time.saturating_add(passed);
        // The clocks are read one after the other, so each step may add a few nanoseconds. Hence few steps.
        if passed >= STEP_NS {
            *self = Self {
                counting,
                even,
                time,
            };
        }
        Time::from_nanos(time)
    }
}

/// Nanoseconds on one of the system's clocks.
#[cfg(unix)]
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
#[cfg(all(unix, not(target_os = "linux")))]
const COUNTING: ClockId = ClockId::Monotonic;
#[cfg(all(unix, not(target_os = "linux")))]
const EVEN: ClockId = ClockId::Monotonic;

/// Nanoseconds on the standard library's monotonic clock.
#[cfg(not(unix))]
fn read((): ()) -> u64 {
    static FIRST: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let passed = FIRST.get_or_init(std::time::Instant::now).elapsed();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
const COUNTING: () = ();
#[cfg(not(unix))]
const EVEN: () = ();

/// The shortest step. Within a millisecond the clocks differ by less than a tenth of it, far below the
/// drift's constant.
const STEP_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_clock_counts_in_every_step() {
        let mut mark = Mark {
            counting: 100,
            even: 7,
            time: 0,
        };
        let ms = 1_000_000;
        let rows = [
            // Both run on.
            (100 + 2 * ms, 7 + 2 * ms, 2 * ms),
            // The machine slept for a second: one clock stood still.
            (100 + 1002 * ms, 7 + 2 * ms, 1002 * ms),
            // Synchronisation slows the other one down for a second.
            (100 + 1902 * ms, 7 + 1002 * ms, 2002 * ms),
            // A reading within the step.
            (100 + 1902 * ms + 5, 7 + 1002 * ms + 3, 2002 * ms + 5),
            // A reading that goes back does not turn time back.
            (0, 0, 2002 * ms),
        ];
        for (counting, even, time) in rows {
            assert_eq!(mark.advance(counting, even), Time::from_nanos(time));
        }
    }

    #[test]
    fn the_system_clock_never_goes_back() {
        let clock = SystemClock::start();
        let mut last = clock.now();
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
