//! How fast a server's clock runs beside ours, from its replies to TIME. Pure: from readings to a rate.

use std::time::Duration;

/// One reply to TIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockReading {
    /// When it was asked for, on our monotonic clock.
    pub(super) asked: Duration,
    /// How long the reply took.
    pub(super) round_trip: Duration,
    /// The server's wall clock, since 1970.
    pub(super) shown: Duration,
}

/// How much faster than ours the server's clock runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClockRate {
    /// In millionths; negative when it is slower.
    pub(super) ppm: f64,
    /// By how much that may be wrong, because nobody knows when within a round trip the server read its clock.
    pub(super) error_ppm: f64,
}

impl ClockRate {
    /// Compares the first readings with the last ones, of each the quickest; `None` without two that are apart.
    pub(super) fn of(first: &[ClockReading], last: &[ClockReading]) -> Option<Self> {
        let (first, last) = (quickest(first)?, quickest(last)?);
        let ours = last.middle() - first.middle();
        if ours <= 0.0 {
            return None;
        }
        let theirs = last.shown.as_secs_f64() - first.shown.as_secs_f64();
        let unknown = (first.round_trip + last.round_trip).as_secs_f64() / 2.0 + RESOLUTION;
        Some(Self {
            ppm: (theirs / ours - 1.0) * 1e6,
            error_ppm: unknown / ours * 1e6,
        })
    }

    /// By how much it certainly differs from ours, in millionths.
    pub(super) fn certain_ppm(&self) -> f64 {
        (self.ppm.abs() - self.error_ppm).max(0.0)
    }
}

impl ClockReading {
    fn middle(&self) -> f64 {
        self.asked.as_secs_f64() + self.round_trip.as_secs_f64() / 2.0
    }

    /// How far the server's clock is ahead of the origin of ours, in seconds.
    pub(super) fn ahead(&self) -> f64 {
        self.shown.as_secs_f64() - self.middle()
    }
}

/// The reading that leaves least open when it was taken.
pub(super) fn quickest(readings: &[ClockReading]) -> Option<&ClockReading> {
    readings.iter().min_by_key(|reading| reading.round_trip)
}

/// TIME is in microseconds: each of two readings may be off by one.
const RESOLUTION: f64 = 2e-6;

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(asked_ms: u64, round_trip_us: u64, shown_us: u64) -> ClockReading {
        ClockReading {
            asked: Duration::from_millis(asked_ms),
            round_trip: Duration::from_micros(round_trip_us),
            shown: Duration::from_micros(1_800_000_000_000_000 + shown_us),
        }
    }

    #[test]
    fn a_rate_is_known_as_well_as_the_round_trips_are_short() {
        let first = [reading(0, 900, 999_999), reading(1, 100, 1050)];
        for (shown_us, ppm) in [
            (4_001_050, 0.0),
            (4_041_050, 10_000.0),
            (3_961_050, -10_000.0),
        ] {
            let last = [reading(4001, 100, shown_us), reading(4001, 5000, 0)];
            let rate = ClockRate::of(&first, &last).expect("a rate");
            assert!((rate.ppm - ppm).abs() < 1.0, "{rate:?}");
            assert!((rate.error_ppm - 25.5).abs() < 0.1, "{rate:?}");
            assert!(rate.certain_ppm() <= ppm.abs() && rate.certain_ppm() >= ppm.abs() - 30.0);
        }
        assert_eq!(ClockRate::of(&first, &[]), None);
        assert_eq!(ClockRate::of(&first, &first), None);
    }
}
