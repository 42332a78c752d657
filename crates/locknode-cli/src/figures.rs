//! Numbers for people.

use std::time::Duration;

/// How many in a second.
pub(crate) fn per_second(count: u64, elapsed: Duration) -> u128 {
    u128::from(count) * 1000 / elapsed.as_millis().max(1)
}

/// A number with commas between its thousands.
pub(crate) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// `1 reply`, `2 replies`.
pub(crate) fn counted(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    match what.strip_suffix("ly") {
        _ if count == 1 => format!("1 {what}"),
        Some(stem) => format!("{count} {stem}lies"),
        None if what.ends_with("sh") => format!("{count} {what}es"),
        None => format!("{count} {what}s"),
    }
}
