//! The limits of keys, TTLs and timeouts.

use std::time::Duration;

use redlock_proto::Drift;

use crate::error::Error;

/// The TTL in whole milliseconds, as nodes take it. It must be longer than the drift.
pub(crate) fn ttl(ttl: Duration, drift: Drift) -> Result<Duration, Error> {
    let millis = ttl.as_millis();
    let whole = match u64::try_from(millis) {
        Ok(millis) if millis <= TTL_MS_MAX => Duration::from_millis(millis),
        _ => {
            let message = format!("a TTL is at most {TTL_MS_MAX} ms, got {millis} ms");
            return Err(Error::config(message));
        }
    };
    let allowance = drift.of(whole);
    if whole <= allowance {
        return Err(Error::config(format!(
            "a TTL of {ttl:?} leaves no validity, because clocks may differ by {allowance:?}: use a longer one"
        )));
    }
    Ok(whole)
}

/// How long a node may take to reply. The default is a tenth of the TTL, 5 ms to 250 ms. Never zero,
/// and never over half of the TTL, which would leave nothing of the lock.
pub(crate) fn node_timeout(given: Option<Duration>, ttl: Duration) -> Duration {
    let wanted = given.unwrap_or((ttl / 10).min(NODE_TIMEOUT_MAX).max(NODE_TIMEOUT_MIN));
    wanted.min(ttl / 2).max(Duration::from_millis(1))
}

/// The key with its prefix, as the nodes see it.
pub(crate) fn whole_key(prefix: &[u8], key: &[u8]) -> Box<[u8]> {
    if prefix.is_empty() {
        key.into()
    } else {
        [prefix, key].concat().into()
    }
}

/// The key, unless it is empty or too long.
pub(crate) fn key(whole: Box<[u8]>) -> Result<Box<[u8]>, Error> {
    match whole.len() {
        0 => Err(Error::config("a key has at least one byte")),
        len if len > KEY_LEN_MAX => Err(Error::config(format!(
            "a key has at most {KEY_LEN_MAX} bytes, got {len}"
        ))),
        _ => Ok(whole),
    }
}

/// The longest TTL that every language and server represents exactly.
const TTL_MS_MAX: u64 = (1 << 53) - 1;

/// The longest key, prefix included. Every request sends it to every node.
const KEY_LEN_MAX: usize = 65_536;

/// A healthy node never takes a quarter of a second.
const NODE_TIMEOUT_MAX: Duration = Duration::from_millis(250);

/// With less, a scheduler's pause would fail a healthy node.
const NODE_TIMEOUT_MIN: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttls_leave_validity_and_can_be_counted() {
        let drift = Drift::default();
        let rows = [
            (Duration::ZERO, None),
            (Duration::from_nanos(999_999), None),
            (Duration::from_millis(2), None),
            (Duration::from_millis(3), Some(3)),
            (Duration::from_micros(5999), Some(5)),
            (Duration::from_millis((1 << 53) - 1), Some((1 << 53) - 1)),
            (Duration::from_millis(1 << 53), None),
            (Duration::MAX, None),
        ];
        for (given, expected) in rows {
            let checked = ttl(given, drift).ok();
            assert_eq!(checked, expected.map(Duration::from_millis), "{given:?}");
        }
    }

    #[test]
    fn a_node_timeout_is_at_least_a_millisecond_and_at_most_half_the_ttl() {
        let ms = Duration::from_millis;
        let rows = [
            (None, ms(10_000), ms(250)),
            (None, ms(1_000), ms(100)),
            (None, ms(20), ms(5)),
            (None, ms(6), ms(3)),
            (Some(ms(0)), ms(1_000), ms(1)),
            (Some(ms(5_000)), ms(1_000), ms(500)),
            (Some(ms(50)), ms(36_000_000), ms(50)),
        ];
        for (given, ttl, expected) in rows {
            assert_eq!(node_timeout(given, ttl), expected, "{given:?} of {ttl:?}");
        }
    }

    #[test]
    fn keys_have_one_to_many_bytes() {
        let check = |prefix: &[u8], rest: &[u8]| key(whole_key(prefix, rest));
        assert!(check(b"", b"").is_err());
        assert_eq!(check(b"a:", b"b\0").ok().as_deref(), Some(&b"a:b\0"[..]));
        assert!(check(b"", &[0; KEY_LEN_MAX]).is_ok());
        assert!(check(b"x", &[0; KEY_LEN_MAX]).is_err());
    }
}
