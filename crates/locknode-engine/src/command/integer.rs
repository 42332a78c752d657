//! Integers as Redis reads them from arguments: decimal, no sign but `-`, no spaces, no leading zeros.

/// The integer that the bytes spell exactly, in Redis' strict form; `None` otherwise.
#[inline]
pub(crate) fn parse(bytes: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] => return (!is_negative).then_some(0),
        [b'1'..=b'9', ..] if digits.len() <= DIGITS_MAX => {}
        _ => return None,
    }
    let mut magnitude = 0_u64;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        // 19 digits never overflow 64 bits.
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    if is_negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// i64::MIN and i64::MAX have 19 digits.
const DIGITS_MAX: usize = 19;

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn integers_are_read_as_redis_reads_them() {
        let rows: [(&str, Option<i64>); 18] = [
            ("0", Some(0)),
            ("-0", None),
            ("1", Some(1)),
            ("-1", Some(-1)),
            ("30000", Some(30_000)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
            ("99999999999999999999", None),
            ("", None),
            ("-", None),
            ("+1", None),
            ("01", None),
            (" 1", None),
            ("1 ", None),
            ("1.5", None),
            ("0x10", None),
        ];
        for (text, want) in rows {
            assert_eq!(parse(text.as_bytes()), want, "{text:?}");
        }
    }
}
