//! The client's time: nanoseconds since its clock's own origin.

use std::time::Duration;

/// An instant on the client's clock, in nanoseconds since the clock's own origin. All arithmetic
/// saturates, so adding a span never yields an earlier instant.
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

    /// An instant that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to this instant, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` earlier, at the earliest the origin.
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
