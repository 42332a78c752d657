//! Lua 5.1 numbers as text: parsing them and the three ways to format them.
//!
//! A Lua number is a double. `tostring` and `..` write 14 significant digits. An argument of
//! `redis.call` is written as an integer if it is one, and otherwise with the fewest digits that
//! read back as the same number. A reply is truncated to an integer.

/// Parses a number like `tonumber`: surrounding blanks, decimal, hexadecimal, `inf` and `nan`.
pub(super) fn parse(text: &[u8]) -> Option<f64> {
    // C strings end at the first zero byte, and Lua 5.1 parses numbers as C strings.
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = trim(text);
    let (negative, digits) = match text.first() {
        Some(b'-') => (true, text.get(1..)?),
        Some(b'+') => (false, text.get(1..)?),
        _ => (false, text),
    };
    let value = match digits {
        [b'0', b'x' | b'X', hex @ ..] => hexadecimal(hex)?,
        [b'0'..=b'9' | b'.', ..] => decimal(digits)?,
        _ if digits.eq_ignore_ascii_case(b"inf") || digits.eq_ignore_ascii_case(b"infinity") => {
            f64::INFINITY
        }
        _ if digits.eq_ignore_ascii_case(b"nan") => f64::NAN,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

/// Formats a number like `tostring` and `..`: C's `%.14g`.
pub(super) fn display(value: f64) -> Vec<u8> {
    if let Some(special) = special(value) {
        return special.to_vec();
    }
    let (mantissa, exponent) = scientific(&format!("{value:.13e}"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest.to_owned()),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    if !(-4..14).contains(&exponent) {
        let fraction = digits.get(1..).unwrap_or_default().trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        let lead = digits.get(..1).unwrap_or("0");
        let mark = if exponent < 0 { '-' } else { '+' };
        let size = exponent.unsigned_abs();
        return format!("{sign}{lead}{point}{fraction}e{mark}{size:02}").into_bytes();
    }
    format!("{sign}{}", plain(&digits, exponent)).into_bytes()
}

/// Formats a number as `redis.call` passes it.
pub(super) fn argument(value: f64) -> Vec<u8> {
    if let Some(integer) = exact_integer(value) {
        return integer.to_string().into_bytes();
    }
    if let Some(special) = special(value) {
        return special.to_vec();
    }
    let (mantissa, exponent) = scientific(&format!("{value:e}"));
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest.to_owned()),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let scale = exponent - count + 1;
    let short = if scale >= 0 {
        exponent < count + 7
    } else {
        scale > -7 || exponent.abs() < 4
    };
    if short {
        return format!("{sign}{}", plain(&digits, exponent)).into_bytes();
    }
    let (lead, fraction) = digits.split_at(1.min(digits.len()));
    let point = if fraction.is_empty() { "" } else { "." };
    let mark = if exponent < 0 { '-' } else { '+' };
    format!(
        "{sign}{lead}{point}{fraction}e{mark}{}",
        exponent.unsigned_abs()
    )
    .into_bytes()
}

/// Truncates a number to the integer of a reply; out-of-range values become the least integer, as
/// on x86.
pub(super) fn integer(value: f64) -> i64 {
    if (-TWO_TO_63..TWO_TO_63).contains(&value) {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "in range; the cut is what is wanted"
        )]
        return value as i64;
    }
    i64::MIN
}

/// The integer that equals `value`, if one does.
pub(super) fn exact_integer(value: f64) -> Option<i64> {
    let cut = integer(value);
    #[expect(
        clippy::cast_precision_loss,
        reason = "compared with the number that it came from"
    )]
    let back = cut as f64;
    (back == value).then_some(cut)
}

/// Converts a number to an index into a list that starts at 1; `None` unless it is a positive
/// integer.
pub(super) fn index(value: f64) -> Option<usize> {
    exact_integer(value)
        .and_then(|index| usize::try_from(index).ok())
        .filter(|&index| index > 0)
}

/// Converts a count to a number; exact for every count that fits in memory.
pub(super) fn count(count: usize) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of things in memory are below 2^53"
    )]
    let number = count as f64;
    number
}

/// Converts an integer reply to a number, rounded above 2^53 as in Lua.
pub(super) fn from_integer(integer: i64) -> f64 {
    #[expect(
        clippy::cast_precision_loss,
        reason = "Lua has no other number to put it in"
    )]
    let number = integer as f64;
    number
}

/// The result of an undefined operation on numbers. Its sign is what x86 produces and Redis prints.
pub(super) fn undefined() -> f64 {
    f64::from_bits(0xfff8_0000_0000_0000)
}

fn special(value: f64) -> Option<&'static [u8]> {
    if value.is_nan() {
        return Some(if value.is_sign_negative() {
            b"-nan"
        } else {
            b"nan"
        });
    }
    if value.is_infinite() {
        return Some(if value < 0.0 { b"-inf" } else { b"inf" });
    }
    None
}

/// Splits Rust's `1.5e3` into mantissa and exponent.
fn scientific(text: &str) -> (String, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

/// Writes `digits`, the first of which stands for `10^exponent`, without an exponent.
fn plain(digits: &str, exponent: i32) -> String {
    let Ok(exponent) = usize::try_from(exponent) else {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("0.{zeros}{}", digits.trim_end_matches('0'));
    };
    let point = exponent + 1;
    if digits.len() <= point {
        return format!("{digits}{}", "0".repeat(point - digits.len()));
    }
    let (whole, fraction) = digits.split_at(point);
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{fraction}")
    }
}

fn trim(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let Some(first) = text.iter().position(|byte| !blank(byte)) else {
        return &[];
    };
    let last = text.iter().rposition(|byte| !blank(byte)).unwrap_or(first);
    text.get(first..=last).unwrap_or_default()
}

fn decimal(digits: &[u8]) -> Option<f64> {
    // Rust's own parser also accepts words such as "infinity", which were handled above.
    let allowed = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if !digits.iter().all(allowed) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Parses hexadecimal digits with an optional point and binary exponent, like C's `strtod`.
fn hexadecimal(text: &[u8]) -> Option<f64> {
    let mut value = 0.0_f64;
    let mut exponent: i32 = 0;
    let mut seen_digit = false;
    let mut seen_point = false;
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        match byte {
            b'.' if !seen_point => seen_point = true,
            b'p' | b'P' if seen_digit => {
                let power: i32 = std::str::from_utf8(tail).ok()?.parse().ok()?;
                exponent = exponent.checked_add(power)?;
                break;
            }
            _ => {
                let digit = char::from(*byte).to_digit(16)?;
                value = value * 16.0 + f64::from(digit);
                seen_digit = true;
                if seen_point {
                    exponent = exponent.checked_sub(4)?;
                }
            }
        }
        rest = tail;
    }
    seen_digit.then(|| value * 2.0_f64.powi(exponent))
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_as_the_number_that_lua_reads() {
        let rows: [(&str, Option<f64>); 18] = [
            ("12", Some(12.0)),
            ("  12\t\n", Some(12.0)),
            ("-1.5e2", Some(-150.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("0x10", Some(16.0)),
            ("-0xA", Some(-10.0)),
            ("0x.8p1", Some(1.0)),
            ("inf", Some(f64::INFINITY)),
            ("12\0abc", Some(12.0)),
            ("", None),
            (" ", None),
            ("12a", None),
            ("0x", None),
            ("1e", None),
            ("--1", None),
            (".", None),
            ("1 2", None),
        ];
        for (text, want) in rows {
            assert_eq!(parse(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn numbers_are_displayed_with_fourteen_digits() {
        let rows: [(f64, &str); 15] = [
            (5.0, "5"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (1e14, "1e+14"),
            (123_456.0, "123456"),
            (9_007_199_254_740_992.0, "9.007199254741e+15"),
            (99_999_999_999_999.0, "99999999999999"),
            (1e100, "1e+100"),
            (1e-5, "1e-05"),
            (0.0001, "0.0001"),
            (1.5, "1.5"),
            (1.0 / 3.0, "0.33333333333333"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (undefined(), "-nan"),
        ];
        for (value, want) in rows {
            assert_eq!(String::from_utf8_lossy(&display(value)), want);
        }
    }

    #[test]
    fn arguments_are_integers_or_the_shortest_digits() {
        let rows: [(f64, &str); 12] = [
            (0.1, "0.1"),
            (-0.0, "0"),
            (1e17, "100000000000000000"),
            (1e20, "1e+20"),
            (1e100, "1e+100"),
            (9_223_372_036_854_775_808.0, "9223372036854776000"),
            (-5.5e-7, "-5.5e-7"),
            (5e-324, "5e-324"),
            (1_234_567.125, "1234567.125"),
            (123_456_789_012.5, "123456789012.5"),
            (2.141_592_653_589_79, "2.14159265358979"),
            (f64::INFINITY, "inf"),
        ];
        for (value, want) in rows {
            assert_eq!(String::from_utf8_lossy(&argument(value)), want);
        }
    }

    #[test]
    fn replies_are_cut_to_integers() {
        let rows = [
            (1.9, 1),
            (-1.9, -1),
            (1e30, i64::MIN),
            (-1e30, i64::MIN),
            (f64::NAN, i64::MIN),
        ];
        for (value, want) in rows {
            assert_eq!(integer(value), want);
        }
    }
}
