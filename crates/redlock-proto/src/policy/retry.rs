//! When to retry after a failed attempt.

use std::time::Duration;

use crate::argument_error::ArgumentError;
use crate::time::{Time, nanos};

/// How often and how long to try for a lock. Every policy is bounded, by tries or by time.
///
/// Between two attempts the client pauses for a random time between the backoff's minimum and a maximum
/// that doubles with each attempt (full jitter), so that clients that split the votes do not split them
/// again. If nodes report the remaining TTL of the current holder's lock, no pause is longer than that.
///
/// ```
/// use std::time::Duration;
/// # use redlock_proto as redlock_client;
/// use redlock_client::RetryPolicy;
///
/// let patient = RetryPolicy::wait_for(Duration::from_secs(30))
///     .backoff(Duration::from_millis(10), Duration::from_secs(1));
/// assert_ne!(patient, RetryPolicy::default());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RetryPolicy {
    tries: u32,
    wait: Option<Duration>,
    backoff_min: Duration,
    backoff_max: Duration,
}

impl RetryPolicy {
    /// At most `tries` attempts, and at least one.
    pub const fn tries(tries: u32) -> Self {
        Self {
            tries: if tries == 0 { 1 } else { tries },
            wait: None,
            backoff_min: BACKOFF_MIN,
            backoff_max: BACKOFF_MAX,
        }
    }

    /// Attempts until `wait` has passed.
    pub const fn wait_for(wait: Duration) -> Self {
        Self {
            wait: Some(wait),
            ..Self::tries(u32::MAX)
        }
    }

    /// Sets the shortest pause, and the longest that doubling may reach. A minimum of zero counts as one
    /// millisecond, because clients that never pause starve each other.
    #[must_use]
    pub fn backoff(mut self, min: Duration, max: Duration) -> Self {
        self.backoff_min = min.max(Duration::from_millis(1));
        self.backoff_max = max.max(self.backoff_min);
        self
    }

    /// Checks that the policy makes at least one attempt.
    ///
    /// # Errors
    /// For a wait of zero.
    pub fn check(&self) -> Result<(), ArgumentError> {
        match self.wait {
            Some(Duration::ZERO) => Err(ArgumentError::new(
                "a wait of zero never acquires a lock: wait longer, or use try_acquire",
            )),
            _ => Ok(()),
        }
    }

    /// The wait, if the policy is bounded by time.
    pub fn wait(&self) -> Option<Duration> {
        self.wait
    }

    /// When a wait that starts at `now` ends.
    pub fn deadline(&self, now: Time) -> Time {
        self.wait.map_or(Time::NEVER, |wait| now + wait)
    }

    /// The same policy with the rest of its wait; `None` after its end.
    pub fn rest(mut self, now: Time, deadline: Time) -> Option<Self> {
        if self.wait.is_some() {
            let left = deadline.since(now);
            self.wait = Some(left);
            return (left > Duration::ZERO).then_some(self);
        }
        Some(self)
    }

    /// When to start the next attempt, later than `now`; `None` to give up. `tries` attempts have failed,
    /// the last one at `now`; `deadline` is [`Self::deadline`] of the start.
    pub(crate) fn next(&self, tries: u32, now: Time, deadline: Time, random: u64) -> Option<Time> {
        if tries >= self.tries || now >= deadline {
            return None;
        }
        let at = now + self.pause(tries, random);
        // If the pause exceeds the deadline, one last attempt is made shortly before it.
        let last = deadline.minus(LAST_TRY);
        let at = if now < last { at.min(last) } else { at };
        (at < deadline).then_some(at)
    }

    /// When to start another attempt after one that took `took` and found no holder.
    ///
    /// The pause is random over a span of several such attempts, which doubles each time, so that one of
    /// the competing clients is soon alone. `None` after [`CONTENDED_MAX`] attempts, or if the wait ends
    /// first.
    pub(crate) fn contended(
        &self,
        contended: u32,
        now: Time,
        took: Duration,
        deadline: Time,
        random: u64,
    ) -> Option<Time> {
        if contended >= CONTENDED_MAX {
            return None;
        }
        let first = nanos(self.backoff_min * 2).max(nanos(took).saturating_mul(2));
        let most = nanos(self.backoff_max).max(first);
        let span = first.saturating_mul(1 << contended.min(20)).min(most);
        let at = now + Duration::from_nanos(scale(random, span));
        (at < deadline).then_some(at)
    }

    /// The random pause after `tries` attempts: uniform between the minimum and the doubled maximum.
    fn pause(&self, tries: u32, random: u64) -> Duration {
        let min = nanos(self.backoff_min);
        let doublings = tries.min(20);
        let max = min
            .saturating_mul(4)
            .saturating_mul(1 << doublings)
            .min(nanos(self.backoff_max))
            .max(min);
        Duration::from_nanos(min + scale(random, max - min))
    }
}

impl Default for RetryPolicy {
    /// Three attempts.
    fn default() -> Self {
        Self::tries(3)
    }
}

/// Scales `random` from the full range of a `u64` to `0..=span`.
pub(crate) fn scale(random: u64, span: u64) -> u64 {
    let scaled = (u128::from(random) * (u128::from(span) + 1)) >> 64;
    // A 64-bit fraction of span + 1 is at most span.
    u64::try_from(scaled).unwrap_or(span)
}

/// The most extra attempts while no holder is found. Each attempt separates half of the competing
/// clients, so fewer than one in a thousand needs them all.
const CONTENDED_MAX: u32 = 10;

/// Several round trips in one data centre. Sooner, the lock is as likely held as before.
const BACKOFF_MIN: Duration = Duration::from_millis(10);

/// An attempt costs the nodes a dozen commands; two attempts per second are no load.
const BACKOFF_MAX: Duration = Duration::from_millis(500);

/// How long before the end of the wait the last attempt starts: enough for a round trip.
const LAST_TRY: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_policy_ends_by_tries_or_by_time() {
        let at = |n| Time::ZERO + ms(n);
        let rows = [
            (RetryPolicy::tries(1), 1, 0, None),
            (RetryPolicy::tries(0), 1, 0, None),
            (RetryPolicy::tries(2), 1, 0, Some(at(10))),
            (RetryPolicy::tries(2), 2, 0, None),
            (RetryPolicy::wait_for(ms(1000)), 500, 900, Some(at(910))),
            (RetryPolicy::wait_for(ms(1000)), 500, 975, Some(at(980))),
            (RetryPolicy::wait_for(ms(1000)), 500, 980, Some(at(990))),
            (RetryPolicy::wait_for(ms(1000)), 500, 985, Some(at(995))),
            (RetryPolicy::wait_for(ms(1000)), 500, 990, None),
            (RetryPolicy::wait_for(ms(1000)), 500, 1000, None),
        ];
        for (policy, tries, now, expected) in rows {
            let deadline = policy.deadline(Time::ZERO);
            let next = policy.next(tries, at(now), deadline, 0);
            assert_eq!(next, expected, "{policy:?} {tries} {now}");
        }
    }

    #[test]
    fn the_pause_is_spread_over_a_range_that_doubles_up_to_its_maximum() {
        let policy = RetryPolicy::tries(9).backoff(ms(10), ms(100));
        for (tries, longest) in [(1, 80), (2, 100), (3, 100), (u32::MAX, 100)] {
            assert_eq!(policy.pause(tries, 0), ms(10));
            assert_eq!(policy.pause(tries, u64::MAX), ms(longest));
        }
        let never_zero = RetryPolicy::tries(2).backoff(ms(0), ms(0));
        assert_eq!(never_zero.pause(1, u64::MAX), ms(1));
    }
}
