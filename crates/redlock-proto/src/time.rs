//! The client's time: nanoseconds since an origin that only its clock knows.

use std::time::Duration;

/// A moment on the client's clock, in nanoseconds since that clock's own origin. All arithmetic saturates: no
/// span of time, however long, turns a moment into an earlier one.
///
/// ```
/// use std::time::Duration;
/// # use redlock_proto as redlock_client;
/// use redlock_client::Time;
///
/// let start = Time::from_nanos(5);
/// assert_eq!(start + Duration::from_nanos(2), Time::from_nanos(7));
/// assert_eq!(Time::from_nanos(7).since(start), Duration::from_nanos(2));
/// assert_eq!(start.since(Time::from_nanos(7)), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(u64);

impl Time {
    /// The clock's origin.
    pub const ZERO: Self = Self(0);

    /// A moment that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this moment, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment this long before, at the earliest the origin.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl std::ops::Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

/// A span in nanoseconds; spans over 584 years count as that.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
