//! What a client asks of a node and what the node replies, as far as locks are concerned.

use std::ops::Range;
use std::time::Duration;

use locknode_resp::{Decoder, Limits, Reply, ReplyDecoder, ReplyLimits};

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
    /// It was done; the counter of a grant, if it has one.
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
        let mut rest = bytes;
        while let Some((request, len)) = request(&mut Decoder::new(), rest) {
            let place = |word: &[u8]| {
                let start = word.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
                start..start.wrapping_add(word.len())
            };
            let (key, token) = (place(request.key), place(request.token));
            self.requests.push((key, token, request.ask));
            rest = rest.get(len..).unwrap_or_default();
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
pub(super) fn request<'b>(
    decoder: &'b mut Decoder,
    bytes: &'b [u8],
) -> Option<(Request<'b>, usize)> {
    let mut words = [&[][..]; WORDS_MAX];
    if let Some((_, len)) = decoder.decode_short(bytes, &mut words) {
        return Some((meant(&words), len));
    }
    let frame = decoder.decode(bytes, &Limits::default(), true).ok()??;
    words = [&[][..]; WORDS_MAX];
    for (word, arg) in words.iter_mut().zip(frame.args()) {
        *word = arg;
    }
    Some((meant(&words), frame.consumed()))
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
    // Most replies are these two.
    match bytes {
        [b':', b'0', b'\r', b'\n', ..] => return Some((Said::No, 4)),
        [b':', b'1', b'\r', b'\n', ..] => return Some((Said::Yes(None), 4)),
        _ => {}
    }
    let mut decoder = ReplyDecoder::new(ReplyLimits::default());
    let (reply, len) = decoder.decode(bytes).ok()??;
    let said = match &reply {
        Reply::Simple(text) if text == b"OK" => Said::Yes(None),
        Reply::Integer(1) => Said::Yes(None),
        Reply::Null | Reply::Integer(0) => Said::No,
        Reply::Error(text) if text.starts_with(b"NOSC") => Said::UnknownScript,
        Reply::Error(_) => Said::Error,
        Reply::Array(parts) => match parts[..] {
            [Reply::Integer(1), Reply::Integer(counter), _] => {
                Said::Yes(u64::try_from(counter).ok())
            }
            [Reply::Integer(0), _, _] => Said::No,
            _ => Said::Other,
        },
        _ => Said::Other,
    };
    Some((said, len))
}

fn number(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The words of a request that matter.
const WORDS_MAX: usize = 9;
