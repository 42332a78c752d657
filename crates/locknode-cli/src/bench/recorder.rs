//! What one load thread measured.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::failure::Failure;

/// Latencies and counts of one thread, or of several merged.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    /// Latencies in nanoseconds, for each step of the workload.
    pub(super) steps: Vec<Histogram<u64>>,
    /// Replies since the thread began, those of the warm-up included.
    pub(super) replies_total: u64,
    started: Option<Instant>,
    ended: Option<Instant>,
    /// The longest time that one of the merged threads measured.
    pub(super) elapsed: Duration,
}

impl Recorder {
    /// # Errors
    ///
    /// Never with these bounds; the histogram's constructor may refuse others.
    pub(super) fn new(step_count: usize) -> Result<Self, Failure> {
        Ok(Self {
            steps: vec![empty_histogram()?; step_count],
            replies_total: 0,
            started: None,
            ended: None,
            elapsed: Duration::ZERO,
        })
    }

    /// From now on latencies count.
    pub(super) fn start(&mut self) {
        self.started = Some(Instant::now());
    }

    /// From now on they do not.
    pub(super) fn stop(&mut self) {
        if let (Some(started), None) = (self.started, self.ended) {
            let now = Instant::now();
            self.ended = Some(now);
            self.elapsed = now - started;
        }
    }

    /// Notes that `replies` to commands of a step came `latency` after they were sent.
    #[inline]
    pub(super) fn note(&mut self, step: usize, latency: Duration, replies: u64) {
        self.replies_total += replies;
        if self.started.is_some()
            && self.ended.is_none()
            && let Some(histogram) = self.steps.get_mut(step)
        {
            let latency_ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
            histogram.saturating_record_n(latency_ns, replies);
        }
    }

    /// The latencies of all steps together.
    ///
    /// # Errors
    ///
    /// As [`Recorder::new`].
    pub(super) fn all(&self) -> Result<Histogram<u64>, Failure> {
        let mut all = empty_histogram()?;
        for step in &self.steps {
            // All have the same bounds, so nothing is out of range.
            let _ = all.add(step);
        }
        Ok(all)
    }

    /// Adds what another thread measured at the same time.
    pub(super) fn merge(&mut self, other: &Self) {
        for (own, other) in self.steps.iter_mut().zip(&other.steps) {
            // Both have the same bounds, so nothing is out of range.
            let _ = own.add(other);
        }
        self.replies_total += other.replies_total;
        self.elapsed = self.elapsed.max(other.elapsed);
    }
}

/// A histogram of latencies in nanoseconds.
///
/// # Errors
///
/// As [`Recorder::new`].
pub(super) fn empty_histogram() -> Result<Histogram<u64>, Failure> {
    let empty = Histogram::new_with_bounds(1, LATENCY_MAX_NS, DIGITS);
    empty.map_err(|error| Failure::internal(format!("no histogram: {error}")))
}

/// Counts and nanoseconds of a run are far below 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "values above 2^53 do not occur and would only be rounded"
)]
pub(super) fn exact(number: u64) -> f64 {
    number as f64
}

/// A minute: longer waits are a stalled server, which ends the run before.
const LATENCY_MAX_NS: u64 = 60_000_000_000;

/// Significant digits of a latency: an error of at most 0.1 %.
const DIGITS: u8 = 3;
