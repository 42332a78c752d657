//! Time as the engine sees it: always an argument, never read from a clock.
//!
//! [`Time`] is monotonic and decides everything. [`WallTime`] is the calendar, which only
//! translates the absolute timestamps of `EXAT`, `PXAT`, `EXPIREAT`, `EXPIRETIME` and `TIME`, so a
//! wall clock that jumps expires nothing. [`Deadline`] is the instant at which a lock expires.

use std::time::Duration;

/// A monotonic instant, in nanoseconds since an origin that the driver chooses, such as its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The driver's origin.
    pub const ZERO: Self = Self(0);

    /// Returns the instant `nanos` nanoseconds after the origin, at most 2^63 - 1 (292 years).
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos < FAR {
            Self(nanos)
        } else {
            Self(FAR - 1)
        }
    }

    /// Returns the instant `millis` milliseconds after the origin, clamped like
    /// [`Time::from_nanos`].
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_nanos(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// Returns the nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns this instant moved `by` into the future, clamped like [`Time::from_nanos`].
    #[must_use]
    pub fn saturating_add(self, by: Duration) -> Self {
        Self::from_nanos(
            self.0
                .saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// Returns the time from `earlier` to this instant; zero when `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A calendar instant in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(u64);

impl WallTime {
    /// Returns the instant `nanos` nanoseconds after the Unix epoch.
    pub const fn from_unix_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the Unix epoch.
    pub const fn as_unix_nanos(self) -> u64 {
        self.0
    }

    /// Returns the whole milliseconds since the Unix epoch.
    pub const fn as_unix_millis(self) -> i64 {
        // u64::MAX / 10^6 is below 2^45, so the cast keeps the value.
        (self.0 / NANOS_PER_MILLI).cast_signed()
    }
}

/// The time of both clocks, read together once per readiness batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Decides whether a lock is alive.
    pub time: Time,
    /// Translates absolute timestamps; decides nothing.
    pub wall: WallTime,
}

/// The instant at which a lock expires: it is alive at exactly that instant, and gone one
/// nanosecond later.
///
/// Near deadlines are in nanoseconds. A deadline 2^63 ns (292 years) or more after the origin is in
/// milliseconds with the top bit set, so that every TTL that Redis accepts keeps its value, and
/// integer order is deadline order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(u64);

impl Deadline {
    /// No deadline: the lock is held until it is released.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the deadline `ttl_ms` milliseconds after `now`. A TTL of zero or less returns a
    /// deadline that every later instant is past.
    pub fn after_millis(now: Time, ttl_ms: i64) -> Self {
        let Ok(ttl_ms) = u64::try_from(ttl_ms) else {
            return Self(0);
        };
        match ttl_ms
            .checked_mul(NANOS_PER_MILLI)
            .and_then(|ns| ns.checked_add(now.0))
        {
            Some(ns) if ns < FAR => Self(ns),
            _ => {
                let ms = (now.0 / NANOS_PER_MILLI).saturating_add(ttl_ms);
                Self(FAR | ms.min(FAR - 2))
            }
        }
    }

    /// Returns the deadline at calendar time `unix_ms`, as seen from `moment`. A timestamp in the
    /// past returns a deadline before `moment.time`, or zero.
    pub fn at_unix_millis(moment: Moment, unix_ms: i64) -> Self {
        let wall_ms = moment.wall.as_unix_millis();
        let ahead_ms = unix_ms.saturating_sub(wall_ms);
        let sub_ms_ns = moment.wall.0 % NANOS_PER_MILLI;
        match Self::after_millis(moment.time, ahead_ms) {
            Self(ns) if ns < FAR => Self(ns.saturating_sub(sub_ms_ns)),
            _ => {
                let ms = i128::from(unix_ms) - offset_millis(moment);
                Self(FAR | u64::try_from(ms).unwrap_or(0).min(FAR - 2))
            }
        }
    }

    /// Returns whether a lock with this deadline has expired at `now`.
    pub const fn is_past(self, now: Time) -> bool {
        now.0 > self.0
    }

    /// Returns the milliseconds left at `now`; `None` without a deadline. Rounded up, so that a
    /// live lock shows zero only at its last instant.
    pub fn remaining_millis(self, now: Time) -> Option<i64> {
        if self == Self::NEVER {
            return None;
        }
        let ms = if self.0 < FAR {
            self.0.saturating_sub(now.0).div_ceil(NANOS_PER_MILLI)
        } else {
            (self.0 & !FAR).saturating_sub(now.0 / NANOS_PER_MILLI)
        };
        Some(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    /// Returns this deadline in Unix milliseconds, as seen from `moment`; `None` without a
    /// deadline.
    pub fn unix_millis(self, moment: Moment) -> Option<i64> {
        if self == Self::NEVER {
            return None;
        }
        let ms = if self.0 < FAR {
            let wall_ns =
                i128::from(moment.wall.0) + i128::from(self.0) - i128::from(moment.time.0);
            // Rounded half up, so that a timestamp in milliseconds reads back as it was given.
            (wall_ns + i128::from(NANOS_PER_MILLI / 2)).div_euclid(i128::from(NANOS_PER_MILLI))
        } else {
            i128::from(self.0 & !FAR) + offset_millis(moment)
        };
        Some(i64::try_from(ms).unwrap_or(i64::MAX))
    }

    /// Returns the bits that are stored; their order is deadline order.
    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`Deadline::to_bits`].
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Translates this deadline from a node whose time was `from` to a node whose time is `to`,
    /// when `passed` elapsed between the two; `None` when it has expired. Never early: milliseconds
    /// are rounded up.
    pub(crate) fn carried(self, from: Time, to: Time, passed: Duration) -> Option<Self> {
        if self == Self::NEVER {
            return Some(self);
        }
        let ns = if self.0 < FAR {
            i128::from(self.0)
        } else {
            i128::from(self.0 & !FAR) * i128::from(NANOS_PER_MILLI)
        };
        let passed = i128::try_from(passed.as_nanos()).unwrap_or(i128::MAX >> 1);
        let left = u128::try_from(ns - i128::from(from.0) - passed).ok()?;
        let ns = left + u128::from(to.0);
        Some(match u64::try_from(ns) {
            Ok(ns) if ns < FAR => Self(ns),
            _ => {
                let ms = ns.div_ceil(u128::from(NANOS_PER_MILLI));
                Self(FAR | u64::try_from(ms).unwrap_or(u64::MAX).min(FAR - 2))
            }
        })
    }

    /// Returns the deadline as an instant to wake up at; `None` without one or beyond 292 years.
    pub fn as_time(self) -> Option<Time> {
        (self.0 < FAR).then_some(Time(self.0))
    }
}

/// How far the wall clock is ahead of the monotonic one, in whole milliseconds. This stays the same
/// while both run, so that a far timestamp reads back as it was given.
fn offset_millis(moment: Moment) -> i128 {
    let offset_ns = i128::from(moment.wall.0) - i128::from(moment.time.0);
    (offset_ns + i128::from(NANOS_PER_MILLI / 2)).div_euclid(i128::from(NANOS_PER_MILLI))
}

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Deadlines from here on are in milliseconds. 2^63 ns is 292 years of uptime.
const FAR: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(time_ns: u64, wall_ns: u64) -> Moment {
        Moment {
            time: Time::from_nanos(time_ns),
            wall: WallTime::from_unix_nanos(wall_ns),
        }
    }

    #[test]
    fn a_lock_is_alive_at_its_deadline_and_expired_one_nanosecond_later() {
        let deadline = Deadline::after_millis(Time::from_nanos(7), 1);
        assert!(!deadline.is_past(Time::from_nanos(1_000_007)));
        assert!(deadline.is_past(Time::from_nanos(1_000_008)));
    }

    #[test]
    fn remaining_time_is_rounded_up() {
        let deadline = Deadline::after_millis(Time::ZERO, 2);
        for (now_ns, want) in [
            (0, 2),
            (1, 2),
            (999_999, 2),
            (1_000_000, 1),
            (1_999_999, 1),
            (2_000_000, 0),
        ] {
            assert_eq!(
                deadline.remaining_millis(Time::from_nanos(now_ns)),
                Some(want),
                "at {now_ns} ns"
            );
        }
        assert_eq!(Deadline::NEVER.remaining_millis(Time::ZERO), None);
    }

    #[test]
    fn a_timestamp_in_milliseconds_reads_back_as_given() {
        for wall_ns in [
            1_700_000_000_000_000_000,
            1_700_000_000_123_456_789,
            1_700_000_000_000_999_999,
        ] {
            for unix_ms in [1_700_000_000_200, 1_700_000_100_000, 4_000_000_000_000] {
                let at = moment(55_555, wall_ns);
                let deadline = Deadline::at_unix_millis(at, unix_ms);
                assert_eq!(deadline.unix_millis(at), Some(unix_ms), "wall {wall_ns}");
            }
        }
    }

    #[test]
    fn a_far_timestamp_reads_back_as_given_at_every_later_moment() {
        let (start, wall) = (777_123, 1_700_000_000_123_456_789);
        let deadline = Deadline::at_unix_millis(moment(start, wall), 33_177_117_420_000);
        for later_ns in [
            0,
            1,
            300_000,
            543_210,
            876_544,
            999_999,
            1_000_000,
            77_123_456_789,
        ] {
            let at = moment(start + later_ns, wall + later_ns);
            assert_eq!(
                deadline.unix_millis(at),
                Some(33_177_117_420_000),
                "{later_ns} ns later"
            );
        }
    }

    #[test]
    fn the_largest_ttl_keeps_its_value_and_its_order() {
        let now = Time::from_nanos(3_000_000);
        let wall_ms = 1_700_000_000_000;
        let far = Deadline::after_millis(now, i64::MAX - wall_ms);
        assert_eq!(far.remaining_millis(now), Some(i64::MAX - wall_ms));
        assert!(far < Deadline::NEVER);
        assert!(far > Deadline::after_millis(now, 1_000_000));
        assert!(!far.is_past(Time::from_nanos(u64::MAX)));
    }

    #[test]
    fn a_ttl_of_zero_or_less_is_past_for_every_later_instant() {
        for ttl in [0, -1, i64::MIN] {
            assert!(Deadline::after_millis(Time::from_nanos(9), ttl).is_past(Time::from_nanos(10)));
        }
    }

    #[test]
    fn a_translated_deadline_keeps_the_time_left() {
        let (from, to) = (Time::from_millis(1_000), Time::from_millis(50));
        let second = Duration::from_secs(1);
        let near = Deadline::after_millis(from, 3_000);
        let carried = near.carried(from, to, second).unwrap();
        assert_eq!(carried, Deadline::after_millis(to, 2_000));
        assert_eq!(near.carried(from, to, 3 * second).unwrap().0, to.0);
        assert_eq!(
            near.carried(from, to, Duration::from_nanos(3_000_000_001)),
            None
        );
        assert_eq!(Deadline(0).carried(from, to, Duration::ZERO), None);
        assert_eq!(
            Deadline::NEVER.carried(from, to, Duration::MAX),
            Some(Deadline::NEVER)
        );
        assert_eq!(Deadline(0).carried(from, to, Duration::MAX), None);
    }

    #[test]
    fn a_translated_far_deadline_is_never_early_and_never_none() {
        let (from, to) = (Time::from_nanos(1_999_999), Time::from_nanos(7));
        let ttl_ms = i64::MAX - 1_000;
        let far = Deadline::after_millis(from, ttl_ms);
        for (passed_ns, want) in [(0, ttl_ms), (1, ttl_ms), (2_000_000, ttl_ms - 2)] {
            let carried = far
                .carried(from, to, Duration::from_nanos(passed_ns))
                .unwrap();
            assert_eq!(carried.remaining_millis(to), Some(want), "{passed_ns}");
            assert!(carried < Deadline::NEVER);
        }
        // A deadline that is far from one origin may be near another, and vice versa.
        let edge = Deadline::after_millis(Time::from_nanos(FAR - 1), 1_000);
        assert!(edge.as_time().is_none());
        let near = edge
            .carried(Time::from_nanos(FAR - 1), Time::ZERO, Duration::ZERO)
            .unwrap();
        assert!(near.remaining_millis(Time::ZERO).unwrap() >= 999);
        let back = near
            .carried(Time::ZERO, Time::from_nanos(FAR - 1), Duration::ZERO)
            .unwrap();
        assert!(back.as_time().is_none() && back >= edge);
    }
}
