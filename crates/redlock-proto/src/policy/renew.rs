//! When to renew a lock, and when to stop.

use std::time::Duration;

use crate::argument_error::ArgumentError;
use crate::time::Time;

/// Automatic extension of a lock, bounded by time or by count: a holder that hangs must not keep
/// everyone else out for ever.
///
/// ```
/// use std::time::Duration;
/// # use redlock_proto as redlock_client;
/// use redlock_client::RenewPolicy;
///
/// let at_most_an_hour = RenewPolicy::until(Duration::from_secs(3600));
/// let three_times = RenewPolicy::times(3).every(Duration::from_secs(5));
/// assert_ne!(at_most_an_hour, three_times);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RenewPolicy {
    hold_max: Option<Duration>,
    times: u32,
    every: Option<Duration>,
}

impl RenewPolicy {
    /// Renew until `hold_max` after the acquisition. The last renewal is shortened so that the lock's
    /// validity ends then.
    pub const fn until(hold_max: Duration) -> Self {
        Self {
            hold_max: Some(hold_max),
            ..Self::times(u32::MAX)
        }
    }

    /// Renew at most `times` times.
    pub const fn times(times: u32) -> Self {
        Self {
            hold_max: None,
            times,
            every: None,
        }
    }

    /// Renew `period` after the last extension, at most half of the TTL. Default: a third of the TTL,
    /// which leaves time for two more tries before the validity ends.
    #[must_use]
    pub const fn every(mut self, period: Duration) -> Self {
        self.every = Some(period);
        self
    }

    /// Checks the policy for a lock of this TTL.
    ///
    /// # Errors
    /// If the period is too short or too long, or the bound is zero.
    pub fn check(&self, ttl: Duration) -> Result<(), ArgumentError> {
        match self.every {
            Some(period) if period < PERIOD_MIN => Err(ArgumentError::new(format!(
                "a renewal every {period:?} would keep the nodes busy: use at least {PERIOD_MIN:?}"
            ))),
            Some(period) if period > ttl / 2 => Err(ArgumentError::new(format!(
                "a renewal every {period:?} is too late for a TTL of {ttl:?}: use at most half of it"
            ))),
            _ if self.hold_max == Some(Duration::ZERO) => Err(ArgumentError::new(
                "renewing until zero never renews: leave the policy out",
            )),
            _ => Ok(()),
        }
    }
}

/// The renewal of one lock.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Renewal {
    policy: RenewPolicy,
    ttl: Duration,
    acquired: Time,
    done: u32,
    /// When the TTL of the last confirmed extension ends.
    reach: Time,
    /// When to extend next; [`Time::NEVER`] once the bound is reached.
    pub(crate) next: Time,
}

impl Renewal {
    /// The renewal of a lock of this TTL, requested at `acquired`.
    pub(crate) fn new(policy: RenewPolicy, ttl: Duration, acquired: Time) -> Self {
        let mut renewal = Self {
            policy,
            ttl,
            acquired,
            done: 0,
            reach: acquired + ttl,
            next: Time::NEVER,
        };
        renewal.next = renewal.after(acquired, renewal.period());
        renewal
    }

    /// The TTL to request at `now`, in whole milliseconds.
    pub(crate) fn ttl(&self, now: Time) -> Duration {
        match self.policy.hold_max {
            Some(hold_max) => {
                let left = (self.acquired + hold_max).since(now);
                let part = left.subsec_nanos() % 1_000_000;
                self.ttl.min(left - Duration::from_nanos(part.into()))
            }
            None => self.ttl,
        }
    }

    /// An extension that began at `started` was confirmed.
    pub(crate) fn succeeded(&mut self, started: Time) {
        self.done = self.done.saturating_add(1);
        self.reach = started + self.ttl(started);
        self.next = self.after(started, self.period());
    }

    /// The holder extended the lock itself: restart the period at `started`.
    pub(crate) fn postponed(&mut self, started: Time, ttl: Duration) {
        self.reach = self.reach.max(started + ttl);
        self.next = self.after(started, self.period());
    }

    /// An extension failed at `now` while the lock is still valid: retry soon.
    pub(crate) fn failed(&mut self, now: Time) {
        self.next = self.after(now, (self.period() / 4).max(PERIOD_MIN));
    }

    fn after(&self, moment: Time, wait: Duration) -> Time {
        if self.done >= self.policy.times {
            return Time::NEVER;
        }
        // No renewal can help once the TTL reaches the bound.
        match self.policy.hold_max {
            Some(hold_max) if self.reach + PERIOD_MIN >= self.acquired + hold_max => Time::NEVER,
            _ => moment + wait,
        }
    }

    fn period(&self) -> Duration {
        self.policy.every.unwrap_or(self.ttl / 3)
    }
}

/// The unit of the nodes' TTLs.
const PERIOD_MIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// The moments of all renewals and the TTL of each, when every one succeeds at once.
    fn schedule(policy: RenewPolicy) -> Vec<(u64, u64)> {
        let mut renewal = Renewal::new(policy, ms(300), Time::ZERO);
        let mut moments = Vec::new();
        while renewal.next != Time::NEVER && moments.len() < 100 {
            let now = renewal.next;
            let ttl = renewal.ttl(now);
            moments.push((
                now.as_nanos() / 1_000_000,
                u64::try_from(ttl.as_millis()).unwrap(),
            ));
            renewal.succeeded(now);
        }
        moments
    }

    #[test]
    fn renewal_is_bounded_by_count_and_by_time() {
        assert_eq!(schedule(RenewPolicy::times(0)), []);
        assert_eq!(schedule(RenewPolicy::times(2)), [(100, 300), (200, 300)]);
        assert_eq!(
            schedule(RenewPolicy::times(2).every(ms(50))),
            [(50, 300), (100, 300)]
        );
        assert_eq!(
            schedule(RenewPolicy::until(ms(550))),
            [(100, 300), (200, 300), (300, 250)]
        );
        assert_eq!(schedule(RenewPolicy::until(ms(200))), []);
        let last = schedule(RenewPolicy::until(ms(10_000)));
        assert!(last.len() < 100, "it ends");
        let (moment, ttl) = *last.last().unwrap();
        assert!(moment + ttl <= 10_000, "never beyond the bound");
    }

    #[test]
    fn periods_that_are_too_short_or_too_long_are_refused() {
        let ttl = ms(300);
        for (period, is_ok) in [
            (0, false),
            (999, false),
            (1_000, true),
            (150_000, true),
            (150_001, false),
        ] {
            let policy = RenewPolicy::times(1).every(Duration::from_micros(period));
            assert_eq!(policy.check(ttl).is_ok(), is_ok, "{period} us");
        }
        assert!(RenewPolicy::until(ms(0)).check(ttl).is_err());
    }

    #[test]
    fn a_renewal_requests_whole_milliseconds() {
        let renewal = Renewal::new(RenewPolicy::until(ms(400)), ms(300), Time::ZERO);
        assert_eq!(renewal.ttl(Time::from_nanos(100_000_001)), ms(299));
        assert_eq!(renewal.ttl(Time::from_nanos(100_000_000)), ms(300));
    }

    #[test]
    fn a_failed_renewal_is_retried_while_the_lock_is_valid() {
        let mut renewal = Renewal::new(RenewPolicy::times(5), ms(400), Time::ZERO);
        renewal.failed(at(140));
        assert!(renewal.next > at(140) && renewal.next < at(200));
    }
}
