//! What a reply means for the question it answers.

use std::sync::Arc;
use std::time::Duration;

use locknode_resp::Reply;

use crate::cause::Cause;
use crate::round::Answer;

/// A reply, the frequent ones without allocation.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Heard {
    Ok,
    Null,
    Integer(i64),
    /// What `LOCK.ACQUIRE` answers.
    Integers([i64; 3]),
    Other(Reply),
}

impl Heard {
    /// The reply at the start of `input` if it is one of the frequent ones, and its length.
    pub(crate) fn short(input: &[u8]) -> Option<(Self, usize)> {
        match input {
            [b'+', b'O', b'K', b'\r', b'\n', ..] => Some((Self::Ok, 5)),
            [b'$', b'-', b'1', b'\r', b'\n', ..] => Some((Self::Null, 5)),
            [b':', digit @ b'0'..=b'9', b'\r', b'\n', ..] => {
                Some((Self::Integer(i64::from(digit - b'0')), 4))
            }
            [b'*', b'3', b'\r', b'\n', rest @ ..] => {
                let mut integers = [0; 3];
                let mut left = rest;
                for integer in &mut integers {
                    (*integer, left) = short_integer(left)?;
                }
                Some((Self::Integers(integers), input.len() - left.len()))
            }
            _ => None,
        }
    }

    pub(crate) fn of(reply: Reply) -> Self {
        match reply {
            Reply::Simple(text) if text == b"OK" => Self::Ok,
            Reply::Null => Self::Null,
            Reply::Integer(n) => Self::Integer(n),
            Reply::Array(entries) => match entries[..] {
                [Reply::Integer(a), Reply::Integer(b), Reply::Integer(c)] => {
                    Self::Integers([a, b, c])
                }
                _ => Self::Other(Reply::Array(entries)),
            },
            other => Self::Other(other),
        }
    }

    /// The vote that the reply is, for a question that is voted on.
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Self::Ok | Self::Integer(1) | Self::Integers([1, ..]) => Answer::Yes,
            Self::Null | Self::Integer(0) | Self::Integers([0, ..]) => Answer::No,
            _ => Answer::Failed,
        }
    }

    /// The error in the reply, or that it is no answer to the question.
    pub(crate) fn cause(&self, question: &str) -> Cause {
        match self {
            Self::Other(Reply::Error(text)) => error_cause(text),
            other => Cause::Protocol(shorten(&format!("{other:?} to {question}"))),
        }
    }

    /// Whether the node certainly did not do what it was asked: it said so, in its own words, by null or by a zero.
    pub(crate) fn is_definite(&self) -> bool {
        matches!(
            self,
            Self::Null | Self::Integers([0, ..]) | Self::Other(Reply::Error(_))
        )
    }

    /// Whether a script is unknown to the node.
    pub(crate) fn is_noscript(&self) -> bool {
        matches!(self, Self::Other(Reply::Error(text)) if text.starts_with(b"NOSCRIPT"))
    }
}

/// An integer reply at the start of `input`, and what follows it. Not one that could overflow: the decoder has those.
fn short_integer(input: &[u8]) -> Option<(i64, &[u8])> {
    let rest = input.strip_prefix(b":")?;
    let (is_negative, mut rest) = match rest.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (mut n, mut digits) = (0_i64, 0);
    while let [digit @ b'0'..=b'9', more @ ..] = rest
        && digits < DIGITS_MAX
    {
        n = n * 10 + i64::from(digit - b'0');
        (digits, rest) = (digits + 1, more);
    }
    let rest = rest.strip_prefix(b"\r\n").filter(|_| digits > 0)?;
    Some((if is_negative { -n } else { n }, rest))
}

fn error_cause(text: &[u8]) -> Cause {
    match text.strip_prefix(b"LOADING ") {
        Some(rest) => Cause::Quarantined(remaining(rest)),
        None => Cause::ServerError(shorten(&String::from_utf8_lossy(text))),
    }
}

/// The number before ` ms left`, as a lock node ends its quarantine message.
fn remaining(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let (head, _) = text.split_once(" ms left")?;
    let digits = head.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok().map(Duration::from_millis)
}

/// A server's words, cut where they stop being useful to a person.
pub(crate) fn shorten(text: &str) -> Arc<str> {
    match text.char_indices().nth(CAUSE_CHARS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}

/// Longest error text kept per node: an error of a server is one line, and an attacker's could be megabytes.
const CAUSE_CHARS_MAX: usize = 200;

/// The most digits of an integer that is read without the decoder: this many always fit.
const DIGITS_MAX: usize = 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_replies_become_causes() {
        let ms = Duration::from_millis;
        let rows: [(&[u8], Cause); 5] = [
            (
                b"LOADING locknode is in its restart quarantine, 1234 ms left",
                Cause::Quarantined(Some(ms(1234))),
            ),
            (
                b"LOADING Redis is loading the dataset in memory",
                Cause::Quarantined(None),
            ),
            (
                b"LOADING x, 99999999999999999999 ms left",
                Cause::Quarantined(None),
            ),
            (b"OOM no", Cause::ServerError("OOM no".into())),
            (b"ERR \xff", Cause::ServerError("ERR \u{fffd}".into())),
        ];
        for (text, cause) in rows {
            assert_eq!(
                Heard::Other(Reply::Error(text.to_vec())).cause("SET"),
                cause
            );
        }
        let Cause::Protocol(text) = Heard::Integer(7).cause("SET") else {
            unreachable!("an integer is no answer to SET");
        };
        assert_eq!(&*text, "Integer(7) to SET");
        assert_eq!(shorten(&"x".repeat(1000)).len(), 203);
    }

    #[test]
    fn frequent_replies_are_read_without_a_decoder() {
        for text in ["+OK\r\n", "$-1\r\n", ":1\r\n", ":0\r\n:1\r\n"] {
            assert!(Heard::short(text.as_bytes()).is_some(), "{text}");
        }
        for text in ["+OK\r", ":10\r\n", "$-", "+OKAY\r\n", "-ERR\r\n", ""] {
            assert_eq!(Heard::short(text.as_bytes()), None, "{text}");
        }
    }

    /// `[F8]`
    #[test]
    fn three_integers_are_read_as_the_decoder_reads_them_and_without_it() {
        let rows: [(&str, [i64; 3]); 4] = [
            ("*3\r\n:1\r\n:7\r\n:10000\r\n", [1, 7, 10_000]),
            ("*3\r\n:0\r\n:0\r\n:-1\r\n", [0, 0, -1]),
            (
                "*3\r\n:1\r\n:9007199254740991\r\n:0\r\n",
                [1, 9_007_199_254_740_991, 0],
            ),
            (
                "*3\r\n:1\r\n:999999999999999999\r\n:-999999999999999999\r\n",
                [1, 999_999_999_999_999_999, -999_999_999_999_999_999],
            ),
        ];
        for (text, integers) in rows {
            let expected = Some((Heard::Integers(integers), text.len()));
            let followed = format!("{text}+OK\r\n");
            assert_eq!(Heard::short(text.as_bytes()), expected);
            assert_eq!(Heard::short(followed.as_bytes()), expected);
            let mut decoder =
                locknode_resp::ReplyDecoder::new(locknode_resp::ReplyLimits::default());
            let (reply, len) = decoder.decode(text.as_bytes()).unwrap().unwrap();
            assert_eq!(Some((Heard::of(reply), len)), expected);
            for cut in 0..text.len() {
                assert_eq!(Heard::short(&text.as_bytes()[..cut]), None, "cut at {cut}");
            }
        }
        for text in [
            "*3\r\n:1\r\n:x\r\n:1\r\n",
            "*3\r\n:1\r\n:\r\n:1\r\n",
            "*3\r\n:1\r\n$-1\r\n:1\r\n",
            "*3\r\n:1\r\n:9223372036854775808\r\n:1\r\n",
            "*2\r\n:1\r\n:1\r\n:1\r\n",
        ] {
            assert_eq!(Heard::short(text.as_bytes()), None, "{text}");
        }
    }
}
