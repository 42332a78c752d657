//! Decimal numbers of the protocol: strict when parsed, fast when written.

/// Parses an integer exactly as Redis parses arguments and lengths: decimal, no sign but `-`, no
/// spaces, no leading zeros; `None` otherwise.
#[inline]
pub fn parse_integer(bytes: &[u8]) -> Option<i64> {
    match bytes {
        [digit @ b'0'..=b'9'] => Some(i64::from(digit - b'0')),
        _ => parse_long_integer(bytes),
    }
}

fn parse_long_integer(bytes: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !matches!(digits, [b'1'..=b'9', ..]) || digits.len() > DIGITS_MAX {
        return None;
    }
    if digits.len() <= 8 && !is_negative {
        return up_to_eight(digits);
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

/// Parses one to eight digits at once.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "eight digits are below 2^63")]
fn up_to_eight(digits: &[u8]) -> Option<i64> {
    let bits = u32::try_from(digits.len()).ok()? * 8;
    let zeros = ZEROS.unbounded_shr(bits);
    // Zeros in front; then a digit's value in each byte.
    let values = (first_eight(digits) << ((64 - bits) % 64) | zeros) ^ ZEROS;
    let are_digits = (values | values.wrapping_add(0x0606_0606_0606_0606)) & HIGH_NIBBLES == 0;
    // Neighbours become one number, in bytes, then in halves, then in the whole.
    let pairs = (values.wrapping_mul(0x0a01) >> 8) & 0x00ff_00ff_00ff_00ff;
    let quads = (pairs.wrapping_mul(0x0064_0001) >> 16) & 0x0000_ffff_0000_ffff;
    are_digits.then_some((quads.wrapping_mul(0x2710_0000_0001) >> 32) as i64)
}

/// Returns the first eight bytes as a little-endian number, padded with zeros; loads of fixed sizes
/// cost less than a copy of variable length.
#[inline]
pub fn first_eight(bytes: &[u8]) -> u64 {
    if let Some(eight) = bytes.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let shift = (bytes.len() - 4) * 8;
        return u64::from(u32::from_le_bytes(*first))
            | u64::from(u32::from_le_bytes(*last)) << shift;
    }
    u64::from(u32::from_le_bytes(match *bytes {
        [a, b, c, ..] => [a, b, c, 0],
        [a, b] => [a, b, 0, 0],
        [a] => [a, 0, 0, 0],
        [] => [0; 4],
    }))
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

/// The digit 0 eight times.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);
const HIGH_NIBBLES: u64 = 0xf0f0_f0f0_f0f0_f0f0;

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
