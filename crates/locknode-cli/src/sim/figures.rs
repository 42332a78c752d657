//! Numbers for people.

use std::time::Duration;

pub(super) use crate::figures::{counted, grouped, per_second};

/// A span times a number, in a unit for people: `41 s`, `1.6 h`.
pub(super) fn simulated(each: Duration, count: u64) -> String {
    let seconds = each.as_millis() * u128::from(count) / 1000;
    let (unit, name) = match seconds {
        0..120 => return format!("{seconds} s"),
        120..7_200 => (60, "min"),
        7_200..172_800 => (3_600, "h"),
        172_800..31_557_600 => (86_400, "d"),
        _ => (31_557_600, "years"),
    };
    let tenths = seconds * 10 / unit;
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_spans_are_for_people() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), expected);
        }
        for (count, expected) in [
            (1, "60 s"),
            (2, "2.0 min"),
            (1_000, "16.6 h"),
            (10_000, "6.9 d"),
            (1_000_000, "1.9 years"),
        ] {
            assert_eq!(simulated(Duration::from_secs(60), count), expected);
        }
        assert_eq!(per_second(500, Duration::from_millis(250)), 2_000);
        assert_eq!(per_second(500, Duration::ZERO), 500_000);
    }
}
