//! How much clocks may disagree.

use std::time::Duration;

use crate::time::Time;

/// The part of the TTL that does not count as validity, because a node's clock may run faster than the
/// client's.
///
/// It is a share of the TTL in parts per million, plus a constant for the resolution of timers. Default:
/// 10,000 ppm (1 %) and 2 ms, as in the Redlock description.
///
/// Invariant: a client considers a lock held until `start + ttl - drift` and not one nanosecond longer,
/// where `start` is before the first byte was sent.
///
/// ```
/// use std::time::Duration;
/// # use redlock_proto as redlock_client;
/// use redlock_client::Drift;
///
/// let drift = Drift::default();
/// assert_eq!(drift.of(Duration::from_secs(10)), Duration::from_millis(102));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Drift {
    ppm: u32,
    constant: Duration,
}

impl Drift {
    /// An allowance of `ppm` millionths of the TTL plus `constant`.
    pub const fn new(ppm: u32, constant: Duration) -> Self {
        Self { ppm, constant }
    }

    /// The allowance for a TTL, rounded up to whole nanoseconds.
    pub fn of(self, ttl: Duration) -> Duration {
        let share = ttl
            .as_nanos()
            .saturating_mul(u128::from(self.ppm))
            .div_ceil(1_000_000);
        let (seconds, nanos) = (share / 1_000_000_000, share % 1_000_000_000);
        let share = match (u64::try_from(seconds), u32::try_from(nanos)) {
            (Ok(seconds), Ok(nanos)) => Duration::new(seconds, nanos),
            _ => Duration::MAX,
        };
        share.saturating_add(self.constant)
    }

    /// When a lock requested at `started` stops being valid. Equals `started` if the TTL is within the
    /// drift.
    pub fn valid_until(self, started: Time, ttl: Duration) -> Time {
        started + ttl.saturating_sub(self.of(ttl))
    }
}

impl Default for Drift {
    fn default() -> Self {
        Self::new(10_000, Duration::from_millis(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_the_ttl_less_the_drift_and_never_more_than_the_ttl() {
        let ms = Duration::from_millis;
        let rows = [
            (0, ms(0), ms(1_000), ms(1_000)),
            (10_000, ms(2), ms(1_000), ms(988)),
            (10_000, ms(2), ms(2), ms(0)),
            (10_000, ms(2), ms(1), ms(0)),
            (1_000_000, ms(0), ms(500), ms(0)),
            (2_000_000, ms(0), ms(500), ms(0)),
            (1, ms(0), Duration::from_nanos(1), ms(0)),
        ];
        for (ppm, constant, ttl, validity) in rows {
            let drift = Drift::new(ppm, constant);
            let start = Time::from_nanos(77);
            assert_eq!(
                drift.valid_until(start, ttl).since(start),
                validity,
                "{drift:?} {ttl:?}"
            );
        }
    }

    #[test]
    fn no_ttl_overflows() {
        let millis = Duration::from_millis((1 << 53) - 1);
        let validity = Drift::default().valid_until(Time::ZERO, millis);
        assert_eq!(validity, Time::NEVER, "longer than the clock counts");
        let drift = Drift::new(u32::MAX, Duration::MAX);
        assert_eq!(drift.valid_until(Time::NEVER, Duration::MAX), Time::NEVER);
        assert_eq!(
            Drift::new(0, Duration::ZERO).valid_until(Time::ZERO, Duration::MAX),
            Time::NEVER
        );
    }
}
