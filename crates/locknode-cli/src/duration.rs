//! Spans of time on the command line: `30s`, `250ms`, `5m`, `1h`.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Reads a span of time with its unit.
///
/// # Errors
///
/// A sentence that shows how to write one.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    read(text, None)
        .ok_or_else(|| "a duration is a number with its unit: 250ms, 30s, 5m or 1h".to_owned())
}

/// Reads a span of time between two others.
///
/// # Errors
///
/// A sentence that shows how to write one, or the limits.
pub(crate) fn parse_within(
    text: &str,
    range: RangeInclusive<Duration>,
) -> Result<Duration, String> {
    let duration = parse(text)?;
    if range.contains(&duration) {
        return Ok(duration);
    }
    let (low, high) = (display(*range.start()), display(*range.end()));
    Err(format!("must be within {low} and {high}"))
}

/// Writes whole milliseconds as [`parse`] reads them: `10m`, `90s`, `250ms`.
pub(crate) fn display(span: Duration) -> String {
    let ms = span.as_millis();
    let mut units = [(3_600_000, "h"), (60_000, "m"), (1000, "s")].into_iter();
    let unit = units.find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "ms"));
    format!("{}{name}", ms / unit)
}

/// Reads a whole number of seconds, the unit of Redis' own options: `300`, or with a unit `5m`.
///
/// # Errors
///
/// A sentence that shows how to write one.
pub(crate) fn parse_seconds(text: &str) -> Result<u64, String> {
    let duration = read(text, Some(1000)).filter(|duration| duration.subsec_nanos() == 0);
    duration.map(|duration| duration.as_secs()).ok_or_else(|| {
        "a whole number of seconds, such as 300, or with a unit: 300s, 5m, 1h".to_owned()
    })
}

/// Writes a span of time for a person, in its two largest units: `3d 4h`, `59s`.
pub(crate) fn display_seconds(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// `unit_default` is what a bare number counts in, in milliseconds; without it the unit must be written.
fn read(text: &str, unit_default: Option<u64>) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "" => unit_default?,
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(scale)
        .map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_read_with_and_without_a_unit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("300", Some(300)),
            ("300s", Some(300)),
            ("5m", Some(300)),
            ("1h", Some(3600)),
            ("2000ms", Some(2)),
            ("1500ms", None),
            ("", None),
            ("s", None),
            ("-1", None),
            ("1d", None),
            ("99999999999999999999", None),
            ("18446744073709551615", None),
        ] {
            assert_eq!(parse_seconds(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn durations_need_their_unit() {
        for (text, expected) in [
            ("30s", Some(30_000)),
            ("250ms", Some(250)),
            ("30", None),
            ("s30", None),
            ("1.5s", None),
        ] {
            assert_eq!(
                parse(text).ok(),
                expected.map(Duration::from_millis),
                "{text:?}"
            );
        }
    }

    #[test]
    fn spans_are_shown_in_two_units() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (61, "1m 1s"),
            (3_660, "1h 1m"),
            (273_600, "3d 4h"),
        ] {
            assert_eq!(display_seconds(seconds), expected);
        }
    }
}
