//! Where a node's time comes from.

use std::fmt::Debug;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use locknode_engine::{Moment, Time, WallTime};

/// A source of time. A node reads it once per batch of commands; tokio's timers only wake things up and never
/// decide whether a lock is alive.
pub trait Clock: Debug + Send + Sync {
    /// The present. The monotonic part never goes back.
    fn now(&self) -> Moment;
}

/// The operating system's clocks: the monotonic one decides, the wall clock translates absolute timestamps.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time begins now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Moment {
        let time = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Moment {
            time: Time::from_nanos(time),
            wall: WallTime::from_unix_nanos(u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX)),
        }
    }
}
