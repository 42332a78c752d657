//! Where a moment stands in the picture, and the ticks of the time axis.

use std::time::Duration;

use crate::span::{SimTime, in_unit, nanos};

/// The stretch of true time that a picture shows, from its left edge to its right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    from: SimTime,
    span_ns: u64,
}

impl Scale {
    /// From one moment to another; a second when that is no time at all.
    pub(crate) fn new(from: SimTime, until: SimTime) -> Self {
        let span_ns = match nanos(until.since(from)) {
            0 => 1_000_000_000,
            span_ns => span_ns,
        };
        Self { from, span_ns }
    }

    pub(crate) const fn from(self) -> SimTime {
        self.from
    }

    pub(crate) fn until(self) -> SimTime {
        self.from + Duration::from_nanos(self.span_ns)
    }

    pub(crate) const fn span_ns(self) -> u64 {
        self.span_ns
    }

    /// Thousandths of a pixel from the left edge; what is outside stands at an edge.
    pub(crate) fn x(self, at: SimTime) -> u64 {
        let since_ns = nanos(at.since(self.from)).min(self.span_ns);
        let x = u128::from(since_ns) * u128::from(WIDTH * 1000) / u128::from(self.span_ns);
        u64::try_from(x).unwrap_or(WIDTH * 1000)
    }

    /// Whether any of this time is shown.
    pub(crate) fn shows(self, from: SimTime, until: SimTime) -> bool {
        from <= self.until() && until >= self.from
    }

    /// From one tick to the next.
    pub(crate) fn step_ns(self) -> u64 {
        round_step(self.span_ns.div_ceil(TICKS_MAX))
    }

    /// The moments that the axis names, and how: at most a dozen, at round distances.
    pub(crate) fn ticks(self) -> Vec<(SimTime, String)> {
        let step_ns = self.step_ns();
        let first = self.from.as_nanos().div_ceil(step_ns);
        // All names have one unit: the one that fits the largest.
        let largest_ns = self.until().as_nanos();
        let last = largest_ns / step_ns;
        (first..=last)
            .take(usize::from(u8::MAX))
            .map(|place| place.saturating_mul(step_ns))
            .map(|at_ns| (SimTime::from_nanos(at_ns), in_unit(at_ns, largest_ns)))
            .collect()
    }
}

/// The least of 1, 2, 5, 10, 20, ... that is not below.
fn round_step(least: u64) -> u64 {
    let mut step: u64 = 1;
    loop {
        for factor in [1, 2, 5] {
            match step.checked_mul(factor) {
                Some(round) if round >= least => return round,
                Some(_) => {}
                None => return u64::MAX,
            }
        }
        step = step.saturating_mul(10);
    }
}

/// Pixels from the left edge of the lanes to the right one: with their names, a wide window of a small screen, or a page
/// of paper on its side.
pub(crate) const WIDTH: u64 = 1280;

/// Names such as `12.345s` have room.
const TICKS_MAX: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few_enough_to_read() {
        let rows: [(u64, u64, &[&str]); 4] = [
            (0, 1_000, &["0us", "0.1us", "0.2us", "0.3us", "0.4us"]),
            (0, 60_000_000_000, &["0s", "5s", "10s", "15s", "20s"]),
            (
                1_199_500_000,
                1_206_000_000,
                &["1.2s", "1.201s", "1.202s", "1.203s", "1.204s"],
            ),
            (7, 9, &["7ns", "8ns", "9ns"]),
        ];
        for (from, until, names) in rows {
            let scale = Scale::new(SimTime::from_nanos(from), SimTime::from_nanos(until));
            let ticks = scale.ticks();
            assert!(ticks.len() <= 13, "{from} to {until}: {ticks:?}");
            let found: Vec<&str> = ticks.iter().map(|(_, name)| name.as_str()).collect();
            assert_eq!(found.get(..names.len()), Some(names), "{from} to {until}");
        }
    }

    #[test]
    fn what_is_outside_stands_at_an_edge() {
        let at = SimTime::from_nanos;
        let scale = Scale::new(at(100), at(300));
        for (moment, x) in [
            (0, 0),
            (100, 0),
            (200, 640_000),
            (300, 1_280_000),
            (u64::MAX, 1_280_000),
        ] {
            assert_eq!(scale.x(at(moment)), x, "{moment}");
        }
        let forever = Scale::new(SimTime::ZERO, SimTime::NEVER);
        assert_eq!(forever.x(SimTime::NEVER), 1_280_000);
        assert!(forever.ticks().len() <= 13);
        assert!(!Scale::new(at(5), at(5)).ticks().is_empty());
    }
}
