//! Where a node's time comes from.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

use locknode_engine::{Moment, Time, WallTime};
use rustix::time::{ClockId, clock_gettime};

/// A source of time. A node reads it once per batch of commands; tokio's timers only wake things up and never
/// decide whether a lock is alive.
pub trait Clock: Debug + Send + Sync {
    /// The present. The monotonic part never goes back.
    fn now(&self) -> Moment;
}

/// The operating system's clocks: the monotonic one decides, the wall clock translates absolute timestamps.
///
/// The wall clock is read at most once per millisecond and carried on by the monotonic one in between: a batch of
/// commands costs one clock reading, and a jump of the wall clock is noticed a millisecond late.
#[derive(Debug)]
pub struct SystemClock {
    origin_ns: u64,
    /// When the wall clock was last read, and what to add to the time to get the wall time; both in nanoseconds.
    wall_read_at: AtomicU64,
    wall_ahead: AtomicU64,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    pub fn start() -> Self {
        Self {
            origin_ns: read(ClockId::Monotonic),
            wall_read_at: AtomicU64::new(u64::MAX),
            wall_ahead: AtomicU64::new(0),
        }
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
        let time_ns = read(ClockId::Monotonic).saturating_sub(self.origin_ns);
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
}

/// A clock in nanoseconds since its own origin.
#[inline]
fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    // The kernel keeps this part below 10^9.
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Timestamps that clients give and get are milliseconds.
const WALL_PERIOD_NS: u64 = 1_000_000;
