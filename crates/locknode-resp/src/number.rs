//! Floating-point numbers as Redis writes them.

/// Writes a number as Redis does: a whole one with all its digits, any other with the fewest that read
/// back as the same, in the layout of Redis's library `fpconv`.
pub fn double_text(d: f64) -> String {
    if d.is_nan() {
        return "nan".to_owned();
    }
    if d.is_infinite() {
        return format!("{d}");
    }
    if d.fract() == 0.0 && d.abs() <= WHOLE_MAX {
        return format!("{d:.0}");
    }
    // Rust has the digits, `d.ddd` and an exponent of ten.
    let scientific = format!("{:e}", d.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let len = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    // How many zeros follow the digits; negative when the point is within or before them.
    let zeros = exponent + 1 - len;
    let sign = if d < 0.0 { "-" } else { "" };
    if zeros >= 0 && exponent.abs() < len + 7 {
        return format!("{d}");
    }
    if zeros < 0 && (zeros > -7 || exponent.abs() < 4) {
        return format!("{d}");
    }
    let (first, rest) = digits.split_at_checked(1).unwrap_or((&digits, ""));
    let point = if rest.is_empty() { "" } else { "." };
    let plus = if exponent < 0 { "" } else { "+" };
    format!("{sign}{first}{point}{rest}e{plus}{exponent}")
}

/// Redis writes whole numbers up to here with all digits: 2^62.
const WHOLE_MAX: f64 = 4_611_686_018_427_387_904.0;

#[cfg(test)]
mod tests {
    use super::double_text;

    /// As ZSCORE and ZINCRBY of Redis 8.0.6 reply.
    #[test]
    fn numbers_are_written_as_redis_writes_them() {
        let rows = [
            ("3", "3"),
            ("-0.0", "-0"),
            ("3.5", "3.5"),
            ("1e20", "1e+20"),
            ("1e17", "100000000000000000"),
            ("1e18", "1000000000000000000"),
            ("4611686018427387904", "4611686018427387904"),
            ("5e18", "5e+18"),
            ("1e19", "1e+19"),
            ("1700000000000.123", "1700000000000.123"),
            ("123456789012345680", "123456789012345680"),
            ("1e-5", "0.00001"),
            ("1e-7", "1e-7"),
            ("-2.5e-10", "-2.5e-10"),
            ("1.5e300", "1.5e+300"),
            ("inf", "inf"),
            ("-inf", "-inf"),
        ];
        for (number, want) in rows {
            assert_eq!(double_text(number.parse().unwrap()), want, "{number}");
        }
    }
}
