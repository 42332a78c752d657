//! Decimal numbers as the protocol spells them: strict when read, fast when written.

/// Parses a number as Redis reads lengths: an optional minus, no plus, no leading zero, nothing else around it.
pub(crate) fn parse(text: &[u8]) -> Option<i64> {
    match *text {
        [b'0'] => Some(0),
        [b'-', b'1'..=b'9', ..] => {
            let digits = text.get(1..)?;
            digits.iter().try_fold(0_i64, |n, &digit| {
                n.checked_mul(10)?.checked_sub(value(digit)?)
            })
        }
        [b'1'..=b'9', ..] => text.iter().try_fold(0_i64, |n, &digit| {
            n.checked_mul(10)?.checked_add(value(digit)?)
        }),
        _ => None,
    }
}

/// Appends `prefix`, the number and CR LF: the whole of an integer reply or a length line.
#[inline]
pub(crate) fn append_line(out: &mut Vec<u8>, prefix: u8, n: u64) {
    // Almost every length and integer of a lock node is below 100; a constant-sized append is one store.
    if n < 10 {
        out.extend_from_slice(&[prefix, ascii(n), b'\r', b'\n']);
    } else if n < 100 {
        out.extend_from_slice(&[prefix, ascii(n / 10), ascii(n), b'\r', b'\n']);
    } else {
        append_medium_line(out, prefix, n);
    }
}

/// As [`append_line`], for numbers with a sign.
#[inline]
pub(crate) fn append_signed_line(out: &mut Vec<u8>, prefix: u8, n: i64) {
    match u64::try_from(n) {
        Ok(n) => append_line(out, prefix, n),
        Err(_) => append_long_line(out, &[prefix, b'-'], n.unsigned_abs()),
    }
}

/// Three to five digits: the TTLs of locks in milliseconds, and the lengths of scripts.
#[inline(never)]
fn append_medium_line(out: &mut Vec<u8>, prefix: u8, n: u64) {
    let (d, c, b, a) = (ascii(n), ascii(n / 10), ascii(n / 100), ascii(n / 1000));
    if n < 1000 {
        out.extend_from_slice(&[prefix, b, c, d, b'\r', b'\n']);
    } else if n < 10_000 {
        out.extend_from_slice(&[prefix, a, b, c, d, b'\r', b'\n']);
    } else if n < 100_000 {
        out.extend_from_slice(&[prefix, ascii(n / 10_000), a, b, c, d, b'\r', b'\n']);
    } else {
        append_long_line(out, &[prefix], n);
    }
}

#[inline(never)]
fn append_long_line(out: &mut Vec<u8>, prefix: &[u8], mut n: u64) {
    // Filled from the back, where the digits come from.
    let mut line = *b"....................\r\n";
    let mut start = DIGITS_MAX;
    for slot in line.iter_mut().take(DIGITS_MAX).rev() {
        *slot = ascii(n);
        start -= 1;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    debug_assert_eq!(n, 0, "20 digits hold every u64");
    out.extend_from_slice(prefix);
    out.extend_from_slice(line.get(start..).unwrap_or_default());
}

/// The last digit of `n`.
#[inline]
fn ascii(n: u64) -> u8 {
    b'0' + (n % 10) as u8
}

fn value(digit: u8) -> Option<i64> {
    digit.is_ascii_digit().then(|| i64::from(digit - b'0'))
}

/// Digits of `u64::MAX`.
const DIGITS_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;

    #[test]
    fn lengths_are_read_as_strictly_as_redis_reads_them() {
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
            assert_eq!(parse(text.as_bytes()), number, "{text:?}");
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
            prop_assert_eq!(parse(digits.as_bytes()), Some(n));
        }
    }
}
