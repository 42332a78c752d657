//! A clock that moves only when a test moves it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use locknode::{Clock, Moment, Time, WallTime};

/// Both clocks of a node under a test's control. Clones share the time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    time_ns: Arc<AtomicU64>,
    wall_ns: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock at monotonic zero and the given calendar time in Unix milliseconds.
    pub fn starting_at_unix_millis(unix_ms: u64) -> Self {
        Self {
            time_ns: Arc::default(),
            wall_ns: Arc::new(AtomicU64::new(unix_ms * 1_000_000)),
        }
    }

    /// Lets time pass on both clocks.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        self.time_ns.fetch_add(by, Ordering::SeqCst);
        self.wall_ns.fetch_add(by, Ordering::SeqCst);
    }

    /// Sets the wall clock, as an administrator or NTP does.
    pub fn set_wall_unix_millis(&self, unix_ms: u64) {
        self.wall_ns.store(unix_ms * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment {
            time: Time::from_nanos(self.time_ns.load(Ordering::SeqCst)),
            wall: WallTime::from_unix_nanos(self.wall_ns.load(Ordering::SeqCst)),
        }
    }
}
