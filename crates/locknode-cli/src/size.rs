//! Sizes in bytes for people.

/// Writes a size: three digits and a unit.
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

#[cfg(test)]
mod tests {
    use super::*;

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
