//! Sizes in bytes as Redis writes them: `100mb`, `1gb`, `512`.

/// Reads a size. `k`, `m`, `g` are powers of 1000 and `kb`, `mb`, `gb` powers of 1024, in any case, as in
/// redis.conf; `KiB`, `MiB`, `GiB` are powers of 1024 too.
///
/// # Errors
///
/// A sentence that shows how to write a size.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let scale = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .map(|&(_, scale)| scale);
    let bytes = match (number.parse::<u64>(), scale) {
        (Ok(number), Some(scale)) => number.checked_mul(scale),
        _ => None,
    };
    bytes.ok_or_else(|| {
        "a size is a number of bytes, or a number with kb, mb or gb: 100mb".to_owned()
    })
}

/// Writes a size for a person: three digits and a unit.
#[cfg(feature = "status")]
pub(crate) fn display(bytes: u64) -> String {
    let mut scaled = bytes;
    let mut rest = 0;
    for unit in ["B", "KB", "MB", "GB", "TB"] {
        if scaled < 1024 || unit == "TB" {
            return match (unit, scaled) {
                ("B", _) | (_, 100..) => format!("{scaled} {unit}"),
                _ => format!("{scaled}.{} {unit}", rest * 10 / 1024),
            };
        }
        rest = scaled % 1024;
        scaled /= 1024;
    }
    unreachable!("the last unit takes every size")
}

const UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1000),
    ("kb", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1_000_000),
    ("mb", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1_000_000_000),
    ("gb", 1 << 30),
    ("gib", 1 << 30),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_redis_reads_them() {
        for (text, expected) in [
            ("0", Some(0)),
            ("512", Some(512)),
            ("512b", Some(512)),
            ("1k", Some(1000)),
            ("1KB", Some(1024)),
            ("64KiB", Some(65536)),
            ("100mb", Some(104_857_600)),
            ("2g", Some(2_000_000_000)),
            ("1gb", Some(1 << 30)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("18446744073709551615kb", None),
            ("", None),
            ("mb", None),
            ("-1", None),
            ("1.5gb", None),
            ("1 mb", None),
            ("1tb", None),
        ] {
            assert_eq!(parse(text).ok(), expected, "{text:?}");
        }
    }

    #[cfg(feature = "status")]
    #[test]
    fn sizes_are_shown_short() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KB"),
            (1536, "1.5 KB"),
            (950_000, "927 KB"),
            (7 << 20, "7.0 MB"),
            (u64::MAX, "16777215 TB"),
        ] {
            assert_eq!(display(bytes), expected);
        }
    }
}
