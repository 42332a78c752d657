//! What a request wants of a lock, by its words, and whether the reply grants it.
//!
//! Commands say it by their names. Scripts are read by their arguments, as lock libraries everywhere pass them: the keys and a
//! token to release, a TTL behind the token to acquire or to extend. Whether a script acquired or extended does not matter here:
//! either way the token holds the keys from then on.

use std::time::Duration;

/// What one request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish<'a> {
    /// These keys for this token, for so long; for ever without a TTL.
    Take {
        keys: Vec<&'a [u8]>,
        token: &'a [u8],
        ttl: Option<Duration>,
        /// The TTL is added to what is left of it.
        adds: bool,
    },
    /// A TTL for a key, whose holder is not named.
    Keep { key: &'a [u8], ttl: Duration },
    /// These keys free; of every holder when none is named.
    LetGo {
        keys: Vec<&'a [u8]>,
        token: Option<&'a [u8]>,
    },
    /// A script or a transaction whose effect its words do not show.
    Unread,
    /// Nothing of a lock.
    Nothing,
}

impl<'a> Wish<'a> {
    pub(crate) fn of(words: &'a [Vec<u8>]) -> Self {
        let Some(name) = words.first() else {
            return Self::Nothing;
        };
        let word = |place: usize| words.get(place).map_or(&[][..], Vec::as_slice);
        let key = word(1);
        let take = |token, ttl| Self::Take {
            keys: vec![key],
            token,
            ttl,
            adds: false,
        };
        let let_go = |token| Self::LetGo {
            keys: vec![key],
            token,
        };
        let keep = |ttl: Option<Duration>| ttl.map_or(Self::Nothing, |ttl| Self::Keep { key, ttl });
        match (&*name.to_ascii_lowercase(), words.len()) {
            (b"set", 3..) => set(words).map_or(Self::Nothing, |ttl| take(word(2), ttl)),
            (b"setnx", 3) => take(word(2), None),
            (b"lock.acquire" | b"lock.extend", 4..) => {
                millis(word(3)).map_or(Self::Nothing, |ttl| take(word(2), Some(ttl)))
            }
            (b"pexpire", 3..) => keep(millis(word(2))),
            (b"expire", 3..) => keep(seconds(word(2))),
            (b"lock.release" | b"delifeq", 3) => let_go(Some(word(2))),
            (b"delex", 4) if word(2).eq_ignore_ascii_case(b"ifeq") => let_go(Some(word(3))),
            (b"del" | b"unlink", 2..) => Self::LetGo {
                keys: words.iter().skip(1).map(Vec::as_slice).collect(),
                token: None,
            },
            (b"eval", 3..) => script(words, Some(word(1))),
            (b"evalsha", 3..) => script(words, None),
            (b"fcall" | b"exec", _) => Self::Unread,
            _ => Self::Nothing,
        }
    }

    /// Whether this is the reply of a node that has done it.
    pub(crate) fn is_done(&self, reply: &[u8]) -> bool {
        match self {
            Self::Take { .. } => {
                reply.starts_with(b"+OK") || reply.starts_with(GRANTED) || count(reply) > Some(0)
            }
            Self::Keep { .. } | Self::LetGo { .. } => count(reply) > Some(0),
            Self::Unread => !reply.starts_with(b"-"),
            Self::Nothing => false,
        }
    }

    /// Whether the reply shows that it was no release, whatever its words looked like: a release answers how many were there.
    pub(crate) fn is_refuted(&self, reply: &[u8]) -> bool {
        match (self, count(reply)) {
            (Self::LetGo { keys, .. }, Some(count)) => {
                count < 0 || usize::try_from(count).is_ok_and(|count| count > keys.len())
            }
            _ => true,
        }
    }
}

/// The TTL that a SET gives, if it can be the one of a lock.
fn set(words: &[Vec<u8>]) -> Option<Option<Duration>> {
    let mut options = words.iter().skip(3);
    let mut ttl = None;
    while let Some(option) = options.next() {
        match &*option.to_ascii_lowercase() {
            b"px" => ttl = Some(millis(options.next()?)?),
            b"ex" => ttl = Some(seconds(options.next()?)?),
            b"ifeq" | b"ifne" => drop(options.next()),
            // What is there keeps its end, or gets one that only a calendar tells.
            b"keepttl" | b"pxat" | b"exat" | b"get" => return None,
            _ => {}
        }
    }
    Some(ttl)
}

fn script<'a>(words: &'a [Vec<u8>], text: Option<&[u8]>) -> Wish<'a> {
    let keys_len = words.get(2).and_then(|word| number(word));
    let keys_len = keys_len.and_then(|len| usize::try_from(len).ok());
    let Some((keys, rest)) = keys_len.and_then(|len| words.get(3..)?.split_at_checked(len)) else {
        return Wish::Nothing;
    };
    if keys.is_empty() {
        return Wish::Nothing;
    }
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let deletes = |text: &[u8]| {
        text.to_ascii_lowercase()
            .windows(3)
            .any(|part| part == b"del")
    };
    match rest {
        [token] if text.is_none_or(deletes) => Wish::LetGo {
            keys,
            token: Some(token),
        },
        // A look at what is there.
        [] | [_] => Wish::Nothing,
        [token, ttl, more @ ..] => match millis(ttl) {
            Some(ttl) => Wish::Take {
                keys,
                token,
                ttl: Some(ttl),
                adds: matches!(more, [flag] if flag == b"0"),
            },
            None => Wish::Unread,
        },
    }
}

/// The number that a whole reply is.
fn count(reply: &[u8]) -> Option<i64> {
    let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn millis(word: &[u8]) -> Option<Duration> {
    number(word).map(Duration::from_millis)
}

fn seconds(word: &[u8]) -> Option<Duration> {
    number(word).map(Duration::from_secs)
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The beginning of the reply to LOCK.ACQUIRE that grants.
const GRANTED: &[u8] = b"*3\r\n:1\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read from a request, and whether its reply says that it was done.
    fn read(request: &str, reply: &str) -> (String, bool) {
        let words: Vec<Vec<u8>> = request.split(' ').map(|word| word.into()).collect();
        let wish = Wish::of(&words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = match &wish {
            Wish::Take {
                keys,
                token,
                ttl,
                adds,
            } => format!(
                "{} takes {}x{}{}{}",
                text(token),
                keys.len(),
                text(keys[0]),
                if *adds { " +" } else { " " },
                ttl.map_or("ever".to_owned(), |ttl| ttl.as_millis().to_string())
            ),
            Wish::Keep { key, ttl } => format!("{} for {}", text(key), ttl.as_millis()),
            Wish::LetGo { keys, token } => format!(
                "{} leaves {}x{}",
                token.map_or("any".to_owned(), text),
                keys.len(),
                text(keys[0])
            ),
            Wish::Unread => "unread".to_owned(),
            Wish::Nothing => "nothing".to_owned(),
        };
        (told, wish.is_done(reply.as_bytes()))
    }

    #[test]
    fn requests_of_lock_libraries_are_read() {
        for (request, reply, want, is_done) in [
            ("SET k t NX PX 900", "+OK\r\n", "t takes 1xk 900", true),
            ("SET k t NX PX 900", "$-1\r\n", "t takes 1xk 900", false),
            ("SET k t NX PX 900", "_\r\n", "t takes 1xk 900", false),
            ("set k t ex 2 nx", "+OK\r\n", "t takes 1xk 2000", true),
            ("set k t nx", "+OK\r\n", "t takes 1xk ever", true),
            ("set k t ifeq t px 5", "+OK\r\n", "t takes 1xk 5", true),
            ("set k t nx pxat 99", "+OK\r\n", "nothing", false),
            ("setnx k t", ":1\r\n", "t takes 1xk ever", true),
            ("setnx k t", ":0\r\n", "t takes 1xk ever", false),
            (
                "LOCK.ACQUIRE k t 9",
                "*3\r\n:1\r\n:7\r\n:9\r\n",
                "t takes 1xk 9",
                true,
            ),
            (
                "LOCK.ACQUIRE k t 9",
                "*3\r\n:0\r\n:7\r\n:9\r\n",
                "t takes 1xk 9",
                false,
            ),
            ("LOCK.EXTEND k t 9", ":1\r\n", "t takes 1xk 9", true),
            ("LOCK.RELEASE k t", ":1\r\n", "t leaves 1xk", true),
            ("delex k ifeq t", ":0\r\n", "t leaves 1xk", false),
            ("delifeq k t", ":1\r\n", "t leaves 1xk", true),
            ("del k", ":1\r\n", "any leaves 1xk", true),
            ("pexpire k 70", ":1\r\n", "k for 70", true),
            ("expire k 70", ":0\r\n", "k for 70000", false),
            // Acquire, extend and release scripts of several libraries.
            ("EVALSHA 5f 1 k t 900", ":1\r\n", "t takes 1xk 900", true),
            (
                "EVALSHA 5f 1 k t 900",
                "-NOSCRIPT no\r\n",
                "t takes 1xk 900",
                false,
            ),
            ("EVALSHA 5f 2 k l t 900", ":2\r\n", "t takes 2xk 900", true),
            (
                "EVALSHA 5f 1 k t 900 yes",
                "+OK\r\n",
                "t takes 1xk 900",
                true,
            ),
            ("EVALSHA 5f 1 k t 900 0", ":1\r\n", "t takes 1xk +900", true),
            ("EVALSHA 5f 1 k t 900 1", ":1\r\n", "t takes 1xk 900", true),
            ("EVALSHA 5f 1 k t", ":1\r\n", "t leaves 1xk", true),
            (
                "EVAL redis.call('DEL',k) 1 k t",
                ":0\r\n",
                "t leaves 1xk",
                false,
            ),
            (
                "EVAL redis.call('get',k) 1 k t",
                "$1\r\nt\r\n",
                "nothing",
                false,
            ),
            ("EVAL x 1 k t soon", ":1\r\n", "unread", true),
            ("EVAL x 0 t 900", ":1\r\n", "nothing", false),
            ("EVAL x 9 k t", ":1\r\n", "nothing", false),
            ("exec", "*1\r\n+OK\r\n", "unread", true),
            ("get k", "$1\r\nt\r\n", "nothing", false),
            ("ping", "+PONG\r\n", "nothing", false),
        ] {
            let want = (want.to_owned(), is_done);
            assert_eq!(read(request, reply), want, "{request}, {reply:?}");
        }
    }

    #[test]
    fn a_reply_shows_what_was_no_release() {
        let words: Vec<Vec<u8>> = ["evalsha", "5f", "1", "k", "t"]
            .map(|word| word.into())
            .into();
        for (reply, is_refuted) in [
            (":1\r\n", false),
            (":0\r\n", false),
            // A script that tells how long the lock lasts.
            (":28000\r\n", true),
            (":-2\r\n", true),
            ("$1\r\nt\r\n", true),
            ("-NOSCRIPT No matching script.\r\n", true),
        ] {
            assert_eq!(
                Wish::of(&words).is_refuted(reply.as_bytes()),
                is_refuted,
                "{reply}"
            );
        }
    }
}
