//! Sizes in bytes as Redis's options write them: `512`, `1k`, `1kb`, `64mb`, `1G`.

/// Parses a number of bytes; `None` if it is invalid or exceeds 64 bits. `k`, `m` and `g` are
/// powers of 1000, `kb`, `mb` and `gb` of 1024. As in Redis, no digits at all mean zero.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let number = number.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))
    })?;
    number.checked_mul(match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    })
}

/// Writes a size with the largest unit that divides it: `64mb`.
pub(crate) fn exact(bytes: u64) -> String {
    let units = [(1_u64 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")];
    match units
        .iter()
        .find(|(unit, _)| bytes != 0 && bytes.is_multiple_of(*unit))
    {
        Some((unit, name)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Formats a size for people, rounded as in Redis: `512B`, `1.50K`, `2.00G`.
pub(crate) fn human(bytes: u64) -> String {
    let units = [
        (1_u64 << 50, "P"),
        (1 << 40, "T"),
        (1 << 30, "G"),
        (1 << 20, "M"),
        (1 << 10, "K"),
    ];
    let Some(&(unit, letter)) = units.iter().find(|(unit, _)| bytes >= *unit) else {
        return format!("{bytes}B");
    };
    let hundredths = (u128::from(bytes) * 100 + u128::from(unit) / 2) / u128::from(unit);
    format!("{}.{:02}{letter}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::{human, parse};

    #[test]
    fn sizes_are_read_as_redis_reads_them() {
        let rows: [(&str, Option<u64>); 22] = [
            ("0", Some(0)),
            ("", Some(0)),
            ("b", Some(0)),
            ("1", Some(1)),
            ("1b", Some(1)),
            ("1k", Some(1000)),
            ("1kb", Some(1024)),
            ("1K", Some(1000)),
            ("1Kb", Some(1024)),
            ("2m", Some(2_000_000)),
            ("2mb", Some(2 << 20)),
            ("3g", Some(3_000_000_000)),
            ("3GB", Some(3 << 30)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("99999999999gb", None),
            ("-1", None),
            ("1.5mb", None),
            (" 1", None),
            ("1 mb", None),
            ("1x", None),
            ("5%", None),
        ];
        for (text, want) in rows {
            assert_eq!(parse(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn sizes_are_shown_with_two_decimals() {
        for (bytes, want) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (1536, "1.50K"),
            (1_832_584, "1.75M"),
            (25_276_510_208, "23.54G"),
            (u64::MAX, "16384.00P"),
        ] {
            assert_eq!(human(bytes), want, "{bytes}");
        }
    }
}
