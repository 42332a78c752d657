//! How often something took how long, by powers of two.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts durations: bucket `n` has those below 2^n microseconds that the ones before have not.
///
/// Plain loads and stores: with several threads a count may be lost.
#[derive(Debug)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_ns: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            sum_ns: AtomicU64::new(0),
        }
    }
}

impl Histogram {
    /// Counts a duration `weight` times.
    pub(crate) fn record(&self, took: Duration, weight: u64) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bits = (u64::BITS - us.leading_zeros()) as usize;
        add(&self.buckets[bits.min(BUCKETS - 1)], weight);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        add(&self.sum_ns, nanos.saturating_mul(weight));
    }

    /// Returns how many durations were counted.
    pub(crate) fn count(&self) -> u64 {
        self.buckets
            .iter()
            .map(|it| it.load(Ordering::Relaxed))
            .sum()
    }

    /// Returns the sum of the durations.
    pub(crate) fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.load(Ordering::Relaxed))
    }

    /// Returns the bounds of the buckets in microseconds, and how many durations are below each.
    pub(crate) fn below(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut sum = 0;
        (0..).zip(&self.buckets).map(move |(power, bucket)| {
            sum += bucket.load(Ordering::Relaxed);
            (1 << power, sum)
        })
    }

    /// Returns the bound in microseconds below which a share of the durations is; 0 without any.
    pub(crate) fn quantile_us(&self, share: f64) -> u64 {
        let count = self.count();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count is a count"
        )]
        let wanted = (count as f64 * share).ceil() as u64;
        let mut bounds = self
            .below()
            .filter(|(_, below)| *below >= wanted && count > 0);
        bounds.next().map_or(0, |(bound, _)| bound)
    }

    /// Counts from zero again.
    pub(crate) fn reset(&self) {
        for counter in self.buckets.iter().chain([&self.sum_ns]) {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Adds the counts of another one.
    pub(crate) fn add(&self, other: &Self) {
        let all = self.buckets.iter().chain([&self.sum_ns]);
        for (mine, others) in all.zip(other.buckets.iter().chain([&other.sum_ns])) {
            add(mine, others.load(Ordering::Relaxed));
        }
    }
}

fn add(counter: &AtomicU64, by: u64) {
    let sum = counter.load(Ordering::Relaxed).wrapping_add(by);
    counter.store(sum, Ordering::Relaxed);
}

/// The last one has what takes longer than three days.
const BUCKETS: usize = 39;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_below_the_bound_of_their_bucket() {
        let histogram = Histogram::default();
        for (us, weight) in [(0, 1), (1, 1), (2, 2), (3, 1), (1000, 5)] {
            histogram.record(Duration::from_micros(us), weight);
        }
        histogram.record(Duration::MAX, 0);
        histogram.record(Duration::from_nanos(400), 5);
        let below: Vec<_> = histogram.below().take(11).collect();
        let expected = [6, 7, 10, 10, 10, 10, 10, 10, 10, 10, 15];
        assert_eq!(
            below,
            (0..11).map(|n| (1 << n, expected[n])).collect::<Vec<_>>()
        );
        assert_eq!(histogram.count(), 15);
        assert_eq!(histogram.sum(), Duration::from_micros(1 + 4 + 3 + 5000 + 2));
        assert_eq!(
            [0.4, 0.6, 0.7, 1.0].map(|share| histogram.quantile_us(share)),
            [1, 4, 1024, 1024]
        );
        histogram.reset();
        assert_eq!((histogram.count(), histogram.quantile_us(0.5)), (0, 0));
    }
}
