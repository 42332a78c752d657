//! The ticks of each process's own clock, in the lanes of those whose clock is not always right.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fault::Who;
use crate::history::{Event, History};
use crate::span::{SimTime, Span, nanos};
use crate::timeline::picture::Picture;
use crate::timeline::scale::Scale;

/// One clock, in the order of time.
type Stretches = Vec<Reading>;

/// What a clock shows at a moment, and how fast it runs from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    at: SimTime,
    shows: SimTime,
    per_million: u32,
}

impl Picture<'_> {
    /// The ticks of each clock that is not always right, at the lower edge of its lane, as far apart as those of the axis.
    pub(crate) fn clocks(&mut self) {
        for (who, stretches) in &clocks(self.history) {
            let Some(lane) = self.lanes.of(*who) else {
                continue;
            };
            for tick in ticks(stretches, self.scale) {
                let title = title(*who, &tick);
                self.sign("tick", tick.at, lane.bottom()).titled(&title);
            }
        }
    }
}

/// All clocks that a fault has changed.
fn clocks(history: &History) -> BTreeMap<Who, Stretches> {
    let mut clocks: BTreeMap<Who, Stretches> = BTreeMap::new();
    for entry in &history.entries {
        let Event::Clock {
            who,
            shows,
            per_million,
        } = entry.event
        else {
            continue;
        };
        let right = Reading {
            at: SimTime::ZERO,
            shows: SimTime::ZERO,
            per_million: 1_000_000,
        };
        let clock = clocks.entry(who).or_insert_with(|| vec![right]);
        clock.push(Reading {
            at: entry.at,
            shows,
            per_million,
        });
    }
    clocks
}

/// The round moments of a clock.
fn ticks(stretches: &[Reading], scale: Scale) -> Vec<Reading> {
    let step = scale.step_ns();
    let ends = stretches.iter().skip(1).map(|next| next.at);
    let ends = ends.chain([SimTime::NEVER]);
    let mut ticks = Vec::new();
    for (stretch, end) in stretches.iter().zip(ends) {
        let begin = stretch.at.max(scale.from());
        if stretch.per_million == 0 || begin >= end {
            continue;
        }
        let first = stretch.reading(begin).div_ceil(step);
        for place in (first..).take(TICKS_MAX) {
            let shows = SimTime::from_nanos(place.saturating_mul(step));
            let at = stretch.when(shows);
            if at >= end || at > scale.until() {
                break;
            }
            ticks.push(Reading {
                at,
                shows,
                per_million: stretch.per_million,
            });
        }
    }
    ticks.truncate(TICKS_MAX);
    ticks
}

impl Reading {
    /// What the clock shows at a moment of it, in nanoseconds.
    fn reading(self, at: SimTime) -> u64 {
        let passed = u128::from(nanos(at.since(self.at)));
        let passed = passed * u128::from(self.per_million) / 1_000_000;
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        self.shows.as_nanos().saturating_add(passed)
    }

    /// When the clock shows that.
    fn when(self, shows: SimTime) -> SimTime {
        let left = u128::from(nanos(shows.since(self.shows)));
        let wait = left * 1_000_000 / u128::from(self.per_million.max(1));
        self.at + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX))
    }
}

fn title(who: Who, tick: &Reading) -> String {
    let off = match tick.shows.cmp(&tick.at) {
        std::cmp::Ordering::Less => format!("{} behind", Span(tick.at.since(tick.shows))),
        std::cmp::Ordering::Equal => "right".to_owned(),
        std::cmp::Ordering::Greater => format!("{} ahead", Span(tick.shows.since(tick.at))),
    };
    let pace = i64::from(tick.per_million) - 1_000_000;
    let percent = |ppm: u64| {
        let text = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
        let text = text.trim_end_matches('0').trim_end_matches('.');
        format!("{text} %")
    };
    let pace = match pace {
        0 => "at the right pace".to_owned(),
        1.. => format!("{} too fast", percent(pace.unsigned_abs())),
        _ => format!("{} too slow", percent(pace.unsigned_abs())),
    };
    format!(
        "the clock of {who} shows {} at {}: {off}, and runs {pace}",
        tick.shows, tick.at
    )
}

/// Above what the fastest and most jumpy clock has between the ends of a picture whose axis has a dozen.
const TICKS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> SimTime {
        SimTime::from_nanos(ms * 1_000_000)
    }

    fn stretch(from: u64, shows: u64, per_million: u32) -> Reading {
        Reading {
            at: at(from),
            shows: at(shows),
            per_million,
        }
    }

    /// Where the ticks stand and what they show, in milliseconds.
    fn places(stretches: &[Reading], from: u64, until: u64) -> Vec<(u64, u64)> {
        let ms = |time: SimTime| time.as_nanos() / 1_000_000;
        let ticks = ticks(stretches, Scale::new(at(from), at(until)));
        ticks
            .iter()
            .map(|tick| (ms(tick.at), ms(tick.shows)))
            .collect()
    }

    #[test]
    fn ticks_stand_where_the_clock_is_round() {
        let right = stretch(0, 0, 1_000_000);
        let fast = [right, stretch(2_000, 2_000, 2_000_000)];
        let first = [
            (0, 0),
            (1_000, 1_000),
            (2_000, 2_000),
            (2_500, 3_000),
            (3_000, 4_000),
        ];
        assert_eq!(places(&fast, 0, 12_000).get(..5), Some(&first[..]));
        assert_eq!(places(&fast, 2_400, 14_400)[0], (2_500, 3_000));
        // It stands still, goes on, and is set ahead.
        let stopped = [
            right,
            stretch(1_500, 1_500, 0),
            stretch(4_200, 1_500, 1_000_000),
            stretch(5_000, 60_100, 500_000),
        ];
        let stopped = places(&stopped, 0, 12_000);
        assert_eq!(
            stopped,
            [
                (0, 0),
                (1_000, 1_000),
                (4_700, 2_000),
                (6_800, 61_000),
                (8_800, 62_000),
                (10_800, 63_000)
            ]
        );
    }

    #[test]
    fn no_clock_has_ticks_without_end() {
        for (from, shows, per_million) in [
            (0, 0, u32::MAX),
            (0, u64::MAX / 1_000_000, 1_000_000),
            (0, 0, 1),
        ] {
            let many = vec![stretch(from, shows, per_million); 300];
            assert!(ticks(&many, Scale::new(SimTime::ZERO, SimTime::NEVER)).len() <= TICKS_MAX);
            assert!(ticks(&many, Scale::new(at(5), at(5))).len() <= TICKS_MAX);
        }
    }

    #[test]
    fn a_tick_says_by_how_much_the_clock_is_wrong() {
        for (ms, shows, per_million, want) in [
            (
                2_500,
                3_000,
                2_000_000,
                "the clock of node 2 shows 3s at 2.5s: 500ms ahead, and runs 100 % too fast",
            ),
            (
                4_700,
                2_000,
                1_000_000,
                "the clock of node 2 shows 2s at 4.7s: 2.7s behind, and runs at the right pace",
            ),
            (
                2_000,
                2_000,
                998_500,
                "the clock of node 2 shows 2s at 2s: right, and runs 0.15 % too slow",
            ),
        ] {
            let tick = stretch(ms, shows, per_million);
            assert_eq!(title(Who::Node(2), &tick), want);
        }
    }
}
