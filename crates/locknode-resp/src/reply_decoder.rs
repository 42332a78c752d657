//! Decodes replies, for clients.
//!
//! Aggregates use an explicit stack, so nesting costs a bounded list instead of call frames, and
//! the limits apply before anything is stored. The four scalars that lock nodes send are decoded
//! here; every other one, once complete, is passed alone to the `redis-protocol` crate. That crate
//! recurses into aggregates, reserves what a peer announces and loses the order of maps, none of
//! which a single scalar can trigger.

use redis_protocol::resp3::decode::complete::decode_range;
use redis_protocol::resp3::types::RangeFrame;

use crate::decimal;
use crate::reply::Reply;
use crate::reply_error::{ReplyError, ReplyErrorKind};
use crate::reply_limits::ReplyLimits;

/// Decodes the replies on one connection, RESP2 and RESP3 alike. Attributes are skipped.
///
/// ```
/// use locknode_resp::{Reply, ReplyDecoder, ReplyLimits};
///
/// # fn main() -> Result<(), locknode_resp::ReplyError> {
/// let mut decoder = ReplyDecoder::new(ReplyLimits::default());
/// assert_eq!(decoder.decode(b"*2\r\n:1\r\n$-")?, None);
/// let reply = decoder.decode(b"*2\r\n:1\r\n$-1\r\n+OK\r\n")?;
/// assert_eq!(reply, Some((Reply::Array(vec![Reply::Integer(1), Reply::Null]), 13)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ReplyDecoder {
    limits: ReplyLimits,
    /// The open aggregates, outermost first.
    open: Vec<Aggregate>,
    /// Where the next element starts.
    pos: usize,
    /// How far its first line has been searched for its end.
    scanned: usize,
    /// The number of elements begun or announced so far.
    elements: usize,
}

impl ReplyDecoder {
    /// Creates a decoder for a new connection.
    pub fn new(limits: ReplyLimits) -> Self {
        Self {
            limits,
            open: Vec::new(),
            pos: 0,
            scanned: 0,
            elements: 0,
        }
    }

    /// Decodes one reply from `input`, which starts at the first byte not yet consumed, and returns
    /// it with its length in bytes. `None` means that it is incomplete: call again with the same
    /// bytes and more after them.
    ///
    /// # Errors
    /// Fails when the bytes are not a reply or break a limit. Do not use the decoder again.
    pub fn decode(&mut self, input: &[u8]) -> Result<Option<(Reply, usize)>, ReplyError> {
        let window = input.get(..self.limits.bytes_max).unwrap_or(input);
        loop {
            let Some((element, len)) = self.element(window)? else {
                if window.len() < self.limits.bytes_max {
                    return Ok(None);
                }
                return Err(ReplyError::new(ReplyErrorKind::TooLong));
            };
            self.pos += len;
            self.scanned = self.pos;
            let complete = match element {
                Element::Scalar(reply) => self.close(Some(reply)),
                Element::Open(tag, missing) => self.enter(tag, missing)?,
            };
            if let Some(reply) = complete {
                let consumed = self.pos;
                (self.pos, self.scanned, self.elements) = (0, 0, 0);
                return Ok(Some((reply, consumed)));
            }
        }
    }

    /// Decodes the scalar, or the first line of the aggregate, at `pos`, and returns its length in
    /// bytes.
    fn element(&mut self, window: &[u8]) -> Result<Option<(Element, usize)>, ReplyError> {
        let rest = window.get(self.pos..).unwrap_or_default();
        let seen = self.scanned.saturating_sub(self.pos);
        let unseen = rest.get(seen..).unwrap_or_default();
        let Some(end) = unseen.iter().position(|&byte| byte == b'\n') else {
            self.scanned = window.len();
            return Ok(None);
        };
        let line_len = seen + end + 1;
        // The line is searched again only if a string after it is incomplete, from its last byte
        // on.
        self.scanned = self.pos + line_len - 1;
        let line = rest
            .get(..line_len)
            .and_then(|line| line.strip_suffix(b"\r\n"));
        let [tag, text @ ..] = line.ok_or(MALFORMED)? else {
            return Err(MALFORMED);
        };
        let reply = match tag {
            b'+' | b'-' if !self.keeps(self.open.len()) => Some(Reply::Null),
            b'+' => Some(Reply::Simple(text.to_vec())),
            b'-' => Some(Reply::Error(text.to_vec())),
            // The crate accepts other forms as well.
            b':' => decimal::parse_integer(text).map(Reply::Integer),
            _ => None,
        };
        if let Some(reply) = reply {
            return Ok(Some((Element::Scalar(reply), line_len)));
        }
        match tag {
            // The crate accepts anything after these two.
            b'_' if !text.is_empty() => Err(MALFORMED),
            b'(' if !is_integer(text) => Err(MALFORMED),
            b':' | b'_' | b',' | b'#' | b'(' => {
                scalar(rest, line_len).map(|reply| Some((Element::Scalar(reply), line_len)))
            }
            b'$' | b'!' | b'=' => self.string(*tag, text, rest, line_len),
            b'*' | b'%' | b'~' | b'>' | b'|' => {
                aggregate(*tag, text).map(|element| Some((element, line_len)))
            }
            _ => Err(MALFORMED),
        }
    }

    /// Decodes a string with a length line once all its bytes are there.
    fn string(
        &self,
        tag: u8,
        text: &[u8],
        rest: &[u8],
        line_len: usize,
    ) -> Result<Option<(Element, usize)>, ReplyError> {
        if (tag, text) == (b'$', b"-1") {
            return Ok(Some((Element::Scalar(Reply::Null), line_len)));
        }
        let len = length(text)?;
        let end = line_len.saturating_add(len);
        let total = end.saturating_add(2);
        if self.pos.saturating_add(total) > self.limits.bytes_max {
            return Err(ReplyError::new(ReplyErrorKind::TooLong));
        }
        let (Some(body), Some(terminator)) = (rest.get(line_len..end), rest.get(end..total)) else {
            return Ok(None);
        };
        if terminator != b"\r\n" {
            return Err(MALFORMED);
        }
        let reply = match (tag, body) {
            (b'$', _) if !self.keeps(self.open.len()) => Reply::Null,
            (b'$', _) => Reply::Bulk(body.to_vec()),
            // The crate knows only two formats.
            (b'=', &[a, b, c, b':', ref text @ ..]) => Reply::Verbatim {
                format: [a, b, c],
                text: text.to_vec(),
            },
            (b'=', _) => return Err(MALFORMED),
            _ => scalar(rest, total)?,
        };
        Ok(Some((Element::Scalar(reply), total)))
    }

    /// Begins an aggregate; one without elements is complete at once.
    fn enter(&mut self, tag: u8, missing: usize) -> Result<Option<Reply>, ReplyError> {
        self.elements = self.elements.saturating_add(missing);
        if self.elements > self.limits.elements_max {
            return Err(ReplyError::new(ReplyErrorKind::TooManyElements));
        }
        if self.open.len() >= self.limits.depth_max {
            return Err(ReplyError::new(ReplyErrorKind::TooDeep));
        }
        let elements = if self.keeps(self.open.len() + 1) {
            Vec::with_capacity(missing.min(RESERVED_MAX))
        } else {
            Vec::new()
        };
        self.open.push(Aggregate {
            tag,
            missing,
            elements,
        });
        Ok(self.close(None))
    }

    /// Whether elements inside this many aggregates are kept.
    const fn keeps(&self, depth: usize) -> bool {
        depth <= self.limits.depth_kept
    }

    /// Adds an element to the innermost aggregate and closes every aggregate that this completes;
    /// returns the reply when none is left open.
    fn close(&mut self, mut element: Option<Reply>) -> Option<Reply> {
        loop {
            let is_kept = self.keeps(self.open.len());
            let Some(top) = self.open.last_mut() else {
                return element;
            };
            if let Some(element) = element.take() {
                if is_kept {
                    top.elements.push(element);
                }
                top.missing -= 1;
            }
            if top.missing > 0 {
                return None;
            }
            // An attribute is not an element: what it describes comes next.
            element = Some(self.open.pop().and_then(Aggregate::into_reply)?);
        }
    }
}

/// The content of one line, with the string that may follow it.
enum Element {
    Scalar(Reply),
    /// An aggregate's tag and its number of elements; keys and values count separately.
    Open(u8, usize),
}

/// An aggregate with elements still to come.
#[derive(Clone, Debug)]
struct Aggregate {
    tag: u8,
    missing: usize,
    elements: Vec<Reply>,
}

impl Aggregate {
    /// Returns the reply; `None` for an attribute.
    fn into_reply(self) -> Option<Reply> {
        match self.tag {
            b'*' => Some(Reply::Array(self.elements)),
            b'~' => Some(Reply::Set(self.elements)),
            b'>' => Some(Reply::Push(self.elements)),
            b'%' => {
                let mut pairs = Vec::with_capacity(self.elements.len() / 2);
                let mut elements = self.elements.into_iter();
                while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
                    pairs.push((key, value));
                }
                Some(Reply::Map(pairs))
            }
            _ => None,
        }
    }
}

fn aggregate(tag: u8, text: &[u8]) -> Result<Element, ReplyError> {
    if (tag, text) == (b'*', b"-1") {
        return Ok(Element::Scalar(Reply::Null));
    }
    let len = length(text)?;
    let each = if matches!(tag, b'%' | b'|') { 2 } else { 1 };
    Ok(Element::Open(tag, len.saturating_mul(each)))
}

/// Passes the first `len` bytes, which are one scalar, to `redis-protocol`.
fn scalar(rest: &[u8], len: usize) -> Result<Reply, ReplyError> {
    let bytes = rest.get(..len).ok_or(MALFORMED)?;
    let frame = match decode_range(bytes) {
        Ok(Some((frame, taken))) if taken == len => frame,
        _ => return Err(MALFORMED),
    };
    let owned =
        |(start, end): (usize, usize)| bytes.get(start..end).map(<[u8]>::to_vec).ok_or(MALFORMED);
    Ok(match frame {
        RangeFrame::BlobError { data, .. } => Reply::Error(owned(data)?),
        RangeFrame::BigNumber { data, .. } => Reply::BigNumber(owned(data)?),
        RangeFrame::Number { data, .. } => Reply::Integer(data),
        RangeFrame::Double { data, .. } => Reply::Double(data),
        RangeFrame::Boolean { data, .. } => Reply::Boolean(data),
        RangeFrame::Null => Reply::Null,
        _ => return Err(MALFORMED),
    })
}

fn length(text: &[u8]) -> Result<usize, ReplyError> {
    decimal::parse_integer(text)
        .and_then(|len| usize::try_from(len).ok())
        .ok_or(MALFORMED)
}

fn is_integer(text: &[u8]) -> bool {
    let digits = text
        .strip_prefix(b"-")
        .or(text.strip_prefix(b"+"))
        .unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

const MALFORMED: ReplyError = ReplyError::MALFORMED;
/// Elements reserved because a server announced them; longer aggregates grow with the bytes that
/// arrive.
const RESERVED_MAX: usize = 64;
