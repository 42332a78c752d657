//! Decimal numbers of the protocol: strict when parsed, fast when written.

/// Parses an integer exactly as Redis parses arguments and lengths: decimal, no sign but `-`, no
/// spaces, no leading zeros; `None` otherwise.
#[inline]
pub fn parse_integer(bytes: &[u8]) -> Option<i64> {
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

/// Appends `prefix`, the number and CR LF: a whole integer reply or length line.
#[inline]
pub(crate) fn append_line(out: &mut Vec<u8>, prefix: u8, n: u64) {
    // Almost every length and integer of a lock node is below 100; a constant-sized append is one
    // store.
    if n < 10 {
        out.extend_from_slice(&[prefix, ascii(n), b'\r', b'\n']);
    } else if n < 100 {
        out.extend_from_slice(&[prefix, ascii(n / 10), ascii(n), b'\r', b'\n']);
    } else {
        append_long_line(out, prefix, n);
    }
}

/// Like [`append_line`], for signed numbers.
#[inline]
pub(crate) fn append_signed_line(out: &mut Vec<u8>, prefix: u8, n: i64) {
    match u64::try_from(n) {
        Ok(n) => append_line(out, prefix, n),
        Err(_) => append_long_line(out, prefix, n),
    }
}

#[inline(never)]
fn append_long_line(out: &mut Vec<u8>, prefix: u8, n: impl itoa::Integer) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(n).as_bytes();
    out.reserve(digits.len() + 3);
    out.push(prefix);
    out.extend_from_slice(digits);
    out.extend_from_slice(b"\r\n");
}

/// The last digit of `n`.
#[inline]
fn ascii(n: u64) -> u8 {
    b'0' + (n % 10) as u8
}

/// i64::MIN and i64::MAX have 19 digits.
const DIGITS_MAX: usize = 19;

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    #[test]
    fn lengths_are_parsed_as_strictly_as_in_redis() {
        for (text, number) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("10", Some(10)),
            ("-1", Some(-1)),
            ("-10", Some(-10)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-9223372036854775809", None),
            ("99999999999999999999999", None),
            ("", None),
            ("-", None),
            ("-0", None),
            ("00", None),
            ("01", None),
            ("-01", None),
            ("+1", None),
            (" 1", None),
            ("1 ", None),
            ("1a", None),
            ("1.0", None),
            ("\u{0}1", None),
        ] {
            assert_eq!(parse_integer(text.as_bytes()), number, "{text:?}");
        }
    }

    fn written(n: i64) -> String {
        let mut out = b"before".to_vec();
        append_signed_line(&mut out, b':', n);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_at_every_length_and_sign() {
        let mut power = 1_i64;
        loop {
            for n in [power - 1, power, power.saturating_add(1)] {
                assert_eq!(written(n), format!("before:{n}\r\n"));
                assert_eq!(written(-n), format!("before:{}\r\n", -n));
            }
            let Some(next) = power.checked_mul(10) else {
                break;
            };
            power = next;
        }
        for n in [i64::MIN, i64::MAX] {
            assert_eq!(written(n), format!("before:{n}\r\n"));
        }
        let mut out = Vec::new();
        append_line(&mut out, b'$', u64::MAX);
        assert_eq!(out, b"$18446744073709551615\r\n");
    }

    proptest! {
        #[test]
        fn written_numbers_are_read_back(n: i64) {
            let line = written(n);
            let digits = line.trim_start_matches("before:").trim_end();
            prop_assert_eq!(parse_integer(digits.as_bytes()), Some(n));
        }
    }
}
