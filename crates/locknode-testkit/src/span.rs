//! Times of a world, and how they are written: `1.2s`, `350ms`, `10us`, `17ns`.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment of a world in true time: nanoseconds since it began. No clock in the world shows it; faults and checkers use
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(u64);

impl SimTime {
    /// The beginning.
    pub const ZERO: Self = Self(0);

    /// A moment that does not come.
    pub const NEVER: Self = Self(u64::MAX);

    /// The moment `nanos` nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since an earlier moment; zero if that is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for SimTime {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for SimTime {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(span)))
    }
}

impl From<Duration> for SimTime {
    fn from(since_start: Duration) -> Self {
        Self(nanos(since_start))
    }
}

impl Display for SimTime {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        Span(Duration::from_nanos(self.0)).fmt(f)
    }
}

/// A duration, written without loss in the largest unit that needs at most nine decimals: `1.5s`, `20ms`, `7us`, `9ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Display for Span {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        match nanos(self.0) {
            0 => f.pad("0s"),
            nanos => f.pad(&in_unit(nanos, nanos)),
        }
    }
}

/// `nanos` nanoseconds, without loss, in the unit that fits the largest of several.
pub(crate) fn in_unit(nanos: u64, largest: u64) -> String {
    let (unit_ns, digits, unit) = match largest {
        1_000_000_000.. => (1_000_000_000, 9, "s"),
        1_000_000.. => (1_000_000, 6, "ms"),
        1_000.. => (1_000, 3, "us"),
        _ => (1, 1, "ns"),
    };
    let text = format!("{}.{:0digits$}", nanos / unit_ns, nanos % unit_ns);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{unit}")
}

/// Reads what [`Span`] writes, and minutes and hours: `90s`, `1.5m`, `2h`. `None` for anything else, and for more than a
/// year.
pub fn parse_span(text: &str) -> Option<Duration> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(split);
    let unit_ns: u64 = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && decimals.is_empty()) || decimals.len() > 12 {
        return None;
    }
    let mut nanos = whole.parse::<u64>().ok()?.checked_mul(unit_ns)?;
    let mut place = unit_ns;
    for digit in decimals.chars() {
        let digit = u64::from(digit.to_digit(10)?);
        if !place.is_multiple_of(10) && digit != 0 {
            return None;
        }
        place /= 10;
        nanos = nanos.checked_add(digit * place)?;
    }
    (nanos <= SPAN_NS_MAX).then(|| Duration::from_nanos(nanos))
}

pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A year: sums of a few of them are far from the end of 64 bits.
const SPAN_NS_MAX: u64 = 365 * 24 * 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for nanos in [
            0,
            1,
            17,
            999,
            1_000,
            1_001,
            350_000_000,
            1_200_000_000,
            60_000_000_001,
        ] {
            let span = Duration::from_nanos(nanos);
            assert_eq!(parse_span(&Span(span).to_string()), Some(span), "{nanos}");
        }
        assert_eq!(Span(Duration::from_millis(1200)).to_string(), "1.2s");
        assert_eq!(Span(Duration::from_micros(350)).to_string(), "350us");
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "s",
            "1",
            "1.s",
            ".5s",
            "1x",
            "-1s",
            "1.2.3s",
            "0.5ns",
            "99999999h",
            "1 s",
        ] {
            assert_eq!(parse_span(text), None, "{text}");
        }
        assert_eq!(parse_span("1.5m"), Some(Duration::from_secs(90)));
        assert_eq!(parse_span("2h"), Some(Duration::from_secs(7200)));
    }
}
