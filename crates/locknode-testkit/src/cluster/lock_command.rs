//! What a request asks of locks, and whether the reply grants it.
//!
//! Commands say it by their names. Scripts are read by their arguments, as lock libraries everywhere pass them: the keys and a
//! token to release, a TTL behind the token to acquire or to extend. Whether a script acquired or extended does not matter here:
//! either way the token holds the keys from then on.

use std::time::Duration;

use crate::lock_effect::{millis, number, seconds};

/// What one request asks of locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LockCommand<'a> {
    /// To hold these keys.
    Hold {
        keys: Vec<&'a [u8]>,
        /// The token that is to hold them; the present holder when none is named.
        token: Option<&'a [u8]>,
        /// For how long; for ever without a TTL.
        ttl: Option<Duration>,
        /// The TTL is added to what is left of it.
        adds: bool,
    },
    /// To free these keys; of every holder when none is named.
    Release {
        keys: Vec<&'a [u8]>,
        token: Option<&'a [u8]>,
    },
    /// A script or a transaction whose effect its words do not show.
    Unread,
}

impl<'a> LockCommand<'a> {
    /// Reads the words of a request; `None` when it is not about locks.
    pub(crate) fn of(words: &'a [Vec<u8>]) -> Option<Self> {
        let word = |place: usize| words.get(place).map_or(&[][..], Vec::as_slice);
        let keys = vec![word(1)];
        let hold = |keys, token, ttl| Self::Hold {
            keys,
            token,
            ttl,
            adds: false,
        };
        let release = |keys, token| Self::Release { keys, token };
        let all_keys = || words.iter().skip(1).map(Vec::as_slice).collect();
        Some(match (&*words.first()?.to_ascii_lowercase(), words.len()) {
            (b"set", 3..) => hold(keys, Some(word(2)), ttl_of_set(words)?),
            (b"setnx", 3) => hold(keys, Some(word(2)), None),
            (b"lock.acquire" | b"lock.extend", 4..) => {
                hold(keys, Some(word(2)), Some(millis(word(3))?))
            }
            (b"pexpire", 3..) => hold(keys, None, Some(millis(word(2))?)),
            (b"expire", 3..) => hold(keys, None, Some(seconds(word(2))?)),
            (b"lock.release" | b"delifeq", 3) => release(keys, Some(word(2))),
            (b"delex", 4) if word(2).eq_ignore_ascii_case(b"ifeq") => release(keys, Some(word(3))),
            (b"del" | b"unlink", 2..) => release(all_keys(), None),
            (b"eval", 3..) => return script(words, Some(word(1))),
            (b"evalsha", 3..) => return script(words, None),
            (b"fcall" | b"exec", _) => Self::Unread,
            _ => return None,
        })
    }

    /// Whether this is the reply of a node that has done it.
    pub(crate) fn is_done(&self, reply: &[u8]) -> bool {
        match self {
            Self::Unread => !reply.starts_with(b"-"),
            Self::Hold { .. } if reply.starts_with(b"+OK") || reply.starts_with(GRANTED) => true,
            Self::Hold { .. } | Self::Release { .. } => count(reply) > Some(0),
        }
    }

    /// Whether the reply shows that it was no release, whatever its words looked like: a release answers how many were there.
    pub(crate) fn is_refuted(&self, reply: &[u8]) -> bool {
        match (self, count(reply)) {
            (Self::Release { keys, .. }, Some(count)) => {
                usize::try_from(count).map_or(true, |count| count > keys.len())
            }
            _ => true,
        }
    }
}

/// The TTL that a SET gives, if it can be the one of a lock.
fn ttl_of_set(words: &[Vec<u8>]) -> Option<Option<Duration>> {
    let mut options = words.iter().skip(3);
    let mut ttl = None;
    while let Some(option) = options.next() {
        match &*option.to_ascii_lowercase() {
            b"px" => ttl = Some(millis(options.next()?)?),
            b"ex" => ttl = Some(seconds(options.next()?)?),
            b"ifeq" | b"ifne" => drop(options.next()),
            // The key keeps its deadline, or gets one that is a date.
            b"keepttl" | b"pxat" | b"exat" | b"get" => return None,
            _ => {}
        }
    }
    Some(ttl)
}

fn script<'a>(words: &'a [Vec<u8>], text: Option<&[u8]>) -> Option<LockCommand<'a>> {
    let keys_len = usize::try_from(number(words.get(2)?)?).ok()?;
    let (keys, rest) = words.get(3..)?.split_at_checked(keys_len)?;
    let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    let deletes = |text: &[u8]| {
        let text = text.to_ascii_lowercase();
        text.windows(3).any(|part| part == b"del")
    };
    match rest {
        _ if keys.is_empty() => None,
        [token] if text.is_none_or(deletes) => Some(LockCommand::Release {
            keys,
            token: Some(token),
        }),
        // A look at what is there.
        [] | [_] => None,
        [token, ttl, more @ ..] => Some(match millis(ttl) {
            Some(ttl) => LockCommand::Hold {
                keys,
                token: Some(token),
                ttl: Some(ttl),
                adds: matches!(more, [flag] if flag == b"0"),
            },
            None => LockCommand::Unread,
        }),
    }
}

/// The number that a whole reply is.
fn count(reply: &[u8]) -> Option<i64> {
    let digits = reply.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The beginning of the reply to LOCK.ACQUIRE that grants.
const GRANTED: &[u8] = b"*3\r\n:1\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read from a request, and whether its reply says that it was done.
    fn read(request: &str, reply: &str) -> (String, bool) {
        let words: Vec<Vec<u8>> = request.split(' ').map(|word| word.into()).collect();
        let command = LockCommand::of(&words);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let who = |token: &Option<&[u8]>| token.map_or("any".to_owned(), text);
        let shown = match &command {
            Some(LockCommand::Hold {
                keys,
                token,
                ttl,
                adds,
            }) => format!(
                "{} takes {}x{}{}{}",
                who(token),
                keys.len(),
                text(keys[0]),
                if *adds { " +" } else { " " },
                ttl.map_or("ever".to_owned(), |ttl| ttl.as_millis().to_string())
            ),
            Some(LockCommand::Release { keys, token }) => {
                format!("{} leaves {}x{}", who(token), keys.len(), text(keys[0]))
            }
            Some(LockCommand::Unread) => "unread".to_owned(),
            None => "nothing".to_owned(),
        };
        let is_done = command.is_some_and(|it| it.is_done(reply.as_bytes()));
        (shown, is_done)
    }

    /// Rows: a request, its reply with a space for each end of a line, what is read from the request, and whether the reply says
    /// that it was done. The scripts acquire, extend and release as those of several libraries do.
    const ROWS: &str = "
SET k t NX PX 900                    | +OK            | t takes 1xk 900    | done
SET k t NX PX 900                    | $-1            | t takes 1xk 900    |
SET k t NX PX 900                    | _              | t takes 1xk 900    |
set k t ex 2 nx                      | +OK            | t takes 1xk 2000   | done
set k t nx                           | +OK            | t takes 1xk ever   | done
set k t ifeq t px 5                  | +OK            | t takes 1xk 5      | done
set k t nx pxat 99                   | +OK            | nothing            |
setnx k t                            | :1             | t takes 1xk ever   | done
setnx k t                            | :0             | t takes 1xk ever   |
LOCK.ACQUIRE k t 9                   | *3 :1 :7 :9    | t takes 1xk 9      | done
LOCK.ACQUIRE k t 9                   | *3 :0 :7 :9    | t takes 1xk 9      |
LOCK.EXTEND k t 9                    | :1             | t takes 1xk 9      | done
LOCK.RELEASE k t                     | :1             | t leaves 1xk       | done
delex k ifeq t                       | :0             | t leaves 1xk       |
delifeq k t                          | :1             | t leaves 1xk       | done
del k                                | :1             | any leaves 1xk     | done
pexpire k 70                         | :1             | any takes 1xk 70   | done
expire k 70                          | :0             | any takes 1xk 70000 |
EVALSHA 5f 1 k t 900                 | :1             | t takes 1xk 900    | done
EVALSHA 5f 1 k t 900                 | -NOSCRIPT no   | t takes 1xk 900    |
EVALSHA 5f 2 k l t 900               | :2             | t takes 2xk 900    | done
EVALSHA 5f 1 k t 900 yes             | +OK            | t takes 1xk 900    | done
EVALSHA 5f 1 k t 900 0               | :1             | t takes 1xk +900   | done
EVALSHA 5f 1 k t 900 1               | :1             | t takes 1xk 900    | done
EVALSHA 5f 1 k t                     | :1             | t leaves 1xk       | done
EVAL redis.call('DEL',k) 1 k t       | :0             | t leaves 1xk       |
EVAL redis.call('get',k) 1 k t       | $1 t           | nothing            |
EVAL x 1 k t soon                    | :1             | unread             | done
EVAL x 0 t 900                       | :1             | nothing            |
EVAL x 9 k t                         | :1             | nothing            |
exec                                 | *1 +OK         | unread             | done
get k                                | $1 t           | nothing            |
ping                                 | +PONG          | nothing            |
";

    #[test]
    fn requests_of_lock_libraries_are_read() {
        for row in ROWS.trim().lines() {
            let columns: Vec<&str> = row.split('|').map(str::trim).collect();
            let [request, reply, want, done] = columns[..] else {
                panic!("{row}")
            };
            let reply = reply.replace(' ', "\r\n") + "\r\n";
            let want = (want.to_owned(), done == "done");
            assert_eq!(read(request, &reply), want, "{row}");
        }
    }

    #[test]
    fn a_reply_shows_what_was_no_release() {
        let words = ["evalsha", "5f", "1", "k", "t"].map(Vec::from);
        for (reply, is_refuted) in [
            (":1\r\n", false),
            (":0\r\n", false),
            // A script that tells how long the lock lasts.
            (":28000\r\n", true),
            (":-2\r\n", true),
            ("$1\r\nt\r\n", true),
            ("-NOSCRIPT No matching script.\r\n", true),
        ] {
            let command = LockCommand::of(&words).unwrap();
            assert_eq!(command.is_refuted(reply.as_bytes()), is_refuted, "{reply}");
        }
    }
}
