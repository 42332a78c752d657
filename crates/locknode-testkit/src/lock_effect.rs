//! What one request and its reply say about locks.

use std::time::Duration;

/// What an answered request has done to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockEffect<'a> {
    /// A token has the key now.
    Grant {
        key: &'a [u8],
        token: &'a [u8],
        /// 0 when the reply does not say.
        counter: u64,
        ttl: Duration,
    },
    /// The holder of the key has it for longer.
    Extension { key: &'a [u8], ttl: Duration },
    /// The key is free.
    Release { key: &'a [u8] },
    /// A node was asked to accept a fencing token.
    WriteBack { is_taken: bool },
    /// The node refused, by the first word of its error.
    Refusal(&'static str),
    /// Nothing about locks.
    Nothing,
}

impl<'a> LockEffect<'a> {
    /// Looks at a request, by its words, and at the whole reply.
    pub(crate) fn of(args: &'a [impl AsRef<[u8]>], reply: &[u8]) -> Self {
        if let [b'-', error @ ..] = reply {
            return refusal(error).map_or(Self::Nothing, Self::Refusal);
        }
        let (Some(name), Some(key)) = (args.first(), args.get(1)) else {
            return Self::Nothing;
        };
        let (name, key) = (name.as_ref(), key.as_ref());
        let word = |place: usize| args.get(place).map_or(&[][..], |word| word.as_ref());
        let after = |name: &[u8]| {
            let place = args
                .iter()
                .position(|word| word.as_ref().eq_ignore_ascii_case(name))?;
            Some(word(place + 1))
        };
        let is_one = reply.starts_with(b":1\r");
        let grant = |counter, ttl: Option<Duration>| match ttl {
            Some(ttl) => Self::Grant {
                key,
                token: word(2),
                counter,
                ttl,
            },
            None => Self::Nothing,
        };
        let extension =
            |ttl: Option<Duration>| ttl.map_or(Self::Nothing, |ttl| Self::Extension { key, ttl });
        match &*name.to_ascii_lowercase() {
            b"lock.acquire" if reply.starts_with(GRANTED) => {
                let counter = reply.get(GRANTED.len()..).unwrap_or_default();
                let counter = counter.split(|byte| *byte == b'\r').next().and_then(number);
                grant(counter.unwrap_or(0), millis(word(3)))
            }
            b"set" if reply.starts_with(b"+OK") => {
                let ttl = after(b"px").and_then(millis);
                let ttl = ttl.or_else(|| after(b"ex").and_then(seconds));
                match after(b"ifeq") {
                    Some(_) => extension(ttl),
                    None => grant(0, ttl),
                }
            }
            b"lock.extend" if is_one => extension(millis(word(3))),
            b"pexpire" if is_one => extension(millis(word(2))),
            b"expire" if is_one => extension(seconds(word(2))),
            b"lock.release" | b"del" | b"delex" | b"delifeq" if is_one => Self::Release { key },
            // By their words, as clients everywhere have them: a key and a token, and a TTL when it is extended.
            b"eval" | b"evalsha" if is_one && word(2) == b"1" => match args.len() {
                5 => Self::Release { key: word(3) },
                6 => millis(word(5))
                    .map_or(Self::Nothing, |ttl| Self::Extension { key: word(3), ttl }),
                _ => Self::Nothing,
            },
            b"lock.fence" => Self::WriteBack { is_taken: is_one },
            _ => Self::Nothing,
        }
    }
}

/// The errors that say that a node takes no part, in all locks or in those of a longer TTL; others are of no interest here.
fn refusal(error: &[u8]) -> Option<&'static str> {
    const KNOWN: [&str; 5] = ["LOADING", "MISCONF", "OOM", "NOAUTH", "UNSUPPORTED"];
    KNOWN
        .into_iter()
        .find(|word| error.starts_with(word.as_bytes()))
}

pub(crate) fn millis(word: &[u8]) -> Option<Duration> {
    number(word).map(Duration::from_millis)
}

pub(crate) fn seconds(word: &[u8]) -> Option<Duration> {
    number(word).map(Duration::from_secs)
}

pub(crate) fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The beginning of the reply to LOCK.ACQUIRE that grants; the key's fence counter follows.
const GRANTED: &[u8] = b"*3\r\n:1\r\n:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_replies_say_what_became_of_locks() {
        let ms = Duration::from_millis;
        let grant = |counter| LockEffect::Grant {
            key: b"k",
            token: b"t",
            counter,
            ttl: ms(900),
        };
        let extension = LockEffect::Extension {
            key: b"k",
            ttl: ms(900),
        };
        let release = LockEffect::Release { key: b"k" };
        let rows: [(&str, &str, LockEffect<'_>); 21] = [
            (
                "LOCK.ACQUIRE k t 900",
                "*3\r\n:1\r\n:77\r\n:900\r\n",
                grant(77),
            ),
            (
                "LOCK.ACQUIRE k t 900",
                "*3\r\n:0\r\n:77\r\n:900\r\n",
                LockEffect::Nothing,
            ),
            ("set k t nx px 900", "+OK\r\n", grant(0)),
            ("set k t nx px 900", "$-1\r\n", LockEffect::Nothing),
            ("set k t", "+OK\r\n", LockEffect::Nothing),
            ("lock.extend k t 900", ":1\r\n", extension),
            ("lock.extend k t 900", ":0\r\n", LockEffect::Nothing),
            ("pexpire k 900", ":1\r\n", extension),
            ("delex k ifeq t", ":1\r\n", release),
            ("delifeq k t", ":1\r\n", release),
            ("set k t ifeq t px 900", "+OK\r\n", extension),
            ("set k t nx ex 2", "+OK\r\n", {
                let (key, token, ttl) = (&b"k"[..], &b"t"[..], Duration::from_secs(2));
                let counter = 0;
                LockEffect::Grant {
                    key,
                    token,
                    counter,
                    ttl,
                }
            }),
            ("evalsha b70c 1 k t", ":1\r\n", release),
            ("evalsha b70c 1 k t", ":0\r\n", LockEffect::Nothing),
            ("EVAL script 1 k t", ":1\r\n", release),
            ("eval script 1 k t 900", ":1\r\n", extension),
            ("eval script 2 k l t", ":1\r\n", LockEffect::Nothing),
            ("lock.release k t", ":0\r\n", LockEffect::Nothing),
            (
                "set k t",
                "-LOADING wait\r\n",
                LockEffect::Refusal("LOADING"),
            ),
            (
                "lock.acquire k t 9000",
                "-UNSUPPORTED the TTL\r\n",
                LockEffect::Refusal("UNSUPPORTED"),
            ),
            ("ping", "+PONG\r\n", LockEffect::Nothing),
        ];
        for (request, reply, want) in rows {
            let words = request.split(' ').map(|word| word.as_bytes().to_vec());
            let words: Vec<Vec<u8>> = words.collect();
            assert_eq!(
                LockEffect::of(&words, reply.as_bytes()),
                want,
                "{request} {reply}"
            );
        }
    }
}
