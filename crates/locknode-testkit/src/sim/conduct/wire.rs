//! What a client asks of a node and what the node says, as far as locks are concerned. Both come from code of this workspace,
//! so that nothing here has limits.

use std::ops::Range;
use std::time::Duration;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) key: &'a [u8],
    pub(super) token: &'a [u8],
    pub(super) ask: Ask,
}

/// What it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// The key, if nobody has it.
    Acquire { ttl: Duration },
    /// Another TTL for the key, if this token has it.
    Extend { ttl: Duration },
    /// That the node counts from here on.
    Fence { fence: u64 },
    /// The end of the lock.
    Release,
    /// Something else.
    Other,
}

/// A reply of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It was done; the counter of a grant, if it tells one.
    Yes(Option<u64>),
    /// It was not, because the key is not as it has to be.
    No,
    /// The script is to be sent in full.
    UnknownScript,
    Error,
    Other,
}

/// What a client has written last. It writes the same to each node, which is read once.
#[derive(Clone, Debug, Default)]
pub(super) struct Written {
    bytes: Vec<u8>,
    /// Where key and token are, and what is asked for.
    requests: Vec<(Range<usize>, Range<usize>, Ask)>,
}

impl Written {
    pub(super) fn read(&mut self, bytes: &[u8]) {
        if self.bytes == bytes {
            return;
        }
        self.requests.clear();
        let mut at = 0;
        while let Some((request, len)) = bytes.get(at..).and_then(request) {
            let place = |word: &[u8]| {
                let start = word.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
                start..start.wrapping_add(word.len())
            };
            let (key, token) = (place(request.key), place(request.token));
            self.requests.push((key, token, request.ask));
            at += len;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
    }

    pub(super) fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        let word = |range: &Range<usize>| self.bytes.get(range.clone()).unwrap_or_default();
        self.requests.iter().map(move |(key, token, ask)| Request {
            key: word(key),
            token: word(token),
            ask: *ask,
        })
    }
}

/// The next request in these bytes, and how long it is.
pub(super) fn request(bytes: &[u8]) -> Option<(Request<'_>, usize)> {
    let mut words = [&[][..]; WORDS_MAX];
    let (count, mut at) = header(bytes, b'*')?;
    for place in 0..usize::try_from(count).ok()? {
        let (len, head) = header(bytes.get(at..)?, b'$')?;
        let end = at + head + usize::try_from(len).ok()?;
        if let Some(word) = words.get_mut(place) {
            *word = bytes.get(at + head..end)?;
        }
        at = end + 2;
    }
    Some((meant(&words), at))
}

fn meant<'a>(words: &[&'a [u8]; WORDS_MAX]) -> Request<'a> {
    let ms = |word: &[u8]| Duration::from_millis(number(word).unwrap_or(0));
    let (key, token, ask) = match *words {
        [b"LOCK.ACQUIRE", key, token, ttl, ..] | [b"SET", key, token, b"NX", b"PX", ttl, ..] => {
            (key, token, Ask::Acquire { ttl: ms(ttl) })
        }
        [b"LOCK.EXTEND", key, token, ttl, ..]
        | [b"SET", key, _, b"IFEQ", token, b"PX", ttl, ..] => {
            (key, token, Ask::Extend { ttl: ms(ttl) })
        }
        [b"LOCK.FENCE", key, token, _, fence, ..] => {
            let fence = number(fence).unwrap_or(0);
            (key, token, Ask::Fence { fence })
        }
        [b"LOCK.RELEASE" | b"DELIFEQ", key, token, ..] | [b"DELEX", key, b"IFEQ", token, ..] => {
            (key, token, Ask::Release)
        }
        // By their words, as `LockEffect` has them.
        [b"EVALSHA" | b"EVAL", _, b"1", key, token, b"", ..] => (key, token, Ask::Release),
        [b"EVALSHA" | b"EVAL", _, b"1", key, token, ttl, ..] => {
            (key, token, Ask::Extend { ttl: ms(ttl) })
        }
        _ => (&[][..], &[][..], Ask::Other),
    };
    Request { key, token, ask }
}

/// What the next reply in these bytes says, and how long it is; `None` while it is not complete.
pub(super) fn reply(bytes: &[u8]) -> Option<(Said, usize)> {
    let len = match bytes {
        [b':', _, b'\r', b'\n', ..] => 4,
        _ => reply_len(bytes)?,
    };
    let said = match bytes.get(..len)? {
        b"+OK\r\n" | b":1\r\n" => Said::Yes(None),
        b"$-1\r\n" | b":0\r\n" => Said::No,
        [b'-', b'N', b'O', b'S', b'C', ..] => Said::UnknownScript,
        [b'-', ..] => Said::Error,
        other => match other.strip_prefix(b"*3\r\n:") {
            Some([b'0', b'\r', ..]) => Said::No,
            Some([b'1', b'\r', b'\n', b':', rest @ ..]) => {
                Said::Yes(rest.split(|byte| *byte == b'\r').next().and_then(number))
            }
            _ => Said::Other,
        },
    };
    Some((said, len))
}

fn reply_len(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut missing) = (0, 1);
    while missing > 0 {
        let rest = bytes.get(at..)?;
        missing -= 1;
        match rest.first()? {
            mark @ (b'$' | b'*' | b':') => {
                let (number, head) = header(rest, *mark)?;
                at += head;
                match (mark, usize::try_from(number)) {
                    (b'$', Ok(len)) => at += len + 2,
                    (b'*', Ok(len)) => missing += len,
                    _ => {}
                }
            }
            _ => at += line(rest)?.len() + 2,
        }
    }
    (bytes.len() >= at).then_some(at)
}

/// The number in a first line that begins so, and where what it tells of begins; `-1` for any below zero.
fn header(bytes: &[u8], first: u8) -> Option<(i64, usize)> {
    if bytes.get(1) == Some(&b'-') {
        return Some((-1, line(bytes)?.len() + 2));
    }
    let (mut count, mut at) = (0, 1);
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        (count, at) = (count * 10 + i64::from(digit - b'0'), at + 1);
    }
    let is_whole = bytes.first() == Some(&first) && bytes.get(at + 1).is_some();
    is_whole.then_some((count, at + 2))
}

fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    bytes.get(..=end + 1)?;
    bytes.get(..end)
}

fn number(word: &[u8]) -> Option<u64> {
    word.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

/// The words of a request that matter.
const WORDS_MAX: usize = 8;
