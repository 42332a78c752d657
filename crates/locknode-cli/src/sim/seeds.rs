//! Ranges of seeds: `0..10000`.

use std::fmt;

/// Some seeds in a row, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seeds {
    pub(super) first: u64,
    last: u64,
}

impl Seeds {
    /// A few seconds of a core.
    pub(super) const DEFAULT: Self = Self {
        first: 0,
        last: 999,
    };

    pub(super) const fn one(seed: u64) -> Self {
        Self {
            first: seed,
            last: seed,
        }
    }

    /// Reads `0..10000`, or `0..=9999` for the same.
    ///
    /// # Errors
    ///
    /// A message with the form of a range, or that this one is empty.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let how = || "a range of seeds has the form 0..10000; use --seed for one seed".to_owned();
        let (first, end) = text.split_once("..").ok_or_else(how)?;
        let (end, is_inclusive) = match end.strip_prefix('=') {
            Some(end) => (end, true),
            None => (end, false),
        };
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if !is_number {
                return Err(how());
            }
            digits
                .parse::<u64>()
                .map_err(|_| format!("seeds end at {}", u64::MAX))
        };
        let (first, end) = (number(first)?, number(end)?);
        let last = if is_inclusive {
            Some(end)
        } else {
            end.checked_sub(1)
        };
        last.filter(|last| *last >= first)
            .map(|last| Self { first, last })
            .ok_or_else(|| "no seed is in it: the first number has to be the lower one".to_owned())
    }

    /// How many there are.
    pub(super) fn count(self) -> u128 {
        u128::from(self.last - self.first) + 1
    }

    /// The seed at a place, counted from 0.
    pub(super) fn at(self, place: u64) -> Option<u64> {
        self.first
            .checked_add(place)
            .filter(|seed| *seed <= self.last)
    }
}

impl fmt::Display for Seeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.last.checked_add(1) {
            Some(end) => write!(f, "{}..{end}", self.first),
            None => write!(f, "{}..={}", self.first, self.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_and_written() {
        for (text, expected) in [
            ("0..1", Some((0, 1))),
            ("7..10000", Some((7, 9993))),
            ("7..=7", Some((7, 1))),
            ("0..=18446744073709551615", Some((0, 1 << 64))),
            (
                "18446744073709551615..=18446744073709551615",
                Some((u64::MAX, 1)),
            ),
            ("0..0", None),
            ("5..5", None),
            ("9..3", None),
            ("9..=3", None),
            ("0..18446744073709551616", None),
            ("5", None),
            ("..5", None),
            ("5..", None),
            ("-1..5", None),
            ("+1..5", None),
            ("a..b", None),
            ("", None),
        ] {
            let seeds = Seeds::parse(text);
            let seen = seeds.as_ref().ok();
            let seen = seen.map(|seeds| (seeds.first, seeds.count()));
            assert_eq!(seen, expected, "{text:?}");
            if let Ok(seeds) = seeds {
                assert_eq!(Seeds::parse(&seeds.to_string()), Ok(seeds), "{text:?}");
            }
        }
    }

    #[test]
    fn places_end_with_the_range_and_with_the_numbers() {
        let seeds = Seeds::parse("18446744073709551613..=18446744073709551615").expect("a range");
        let all: Vec<_> = (0..4).map(|place| seeds.at(place)).collect();
        assert_eq!(
            all,
            [Some(u64::MAX - 2), Some(u64::MAX - 1), Some(u64::MAX), None]
        );
    }
}
