//! Decodes requests: the hot path of a node.
//!
//! ```text
//!  input ---> Decoder::decode ---> Frame: arguments as slices of the input, and their length in bytes
//!                  |
//!                  +--> None: call again with the same bytes and more
//!                  +--> ProtocolError: reply and close
//! ```
//! The state between calls is the position of the first byte not yet decoded and the spans of the
//! arguments before it, so a request that arrives byte by byte costs a constant per byte. Nothing
//! recurses, nothing is reserved because a client announced it, and a request that arrives whole
//! allocates nothing.
//!
//! Like Redis, it ignores the byte after a carriage return and the two bytes after an argument.
//! Unlike Redis, it never accepts a line that is too long, whatever arrives in one read, and it
//! rejects a NUL in a length line at once instead of waiting for more.

use crate::decimal;
use crate::frame::{Frame, Span};
use crate::inline::{self, Words};
use crate::limits::{Limits, UNAUTHENTICATED_ARGS_MAX, UNAUTHENTICATED_BULK_LEN_MAX};
use crate::protocol_error::{ProtocolError, ProtocolErrorKind};
use crate::short_args::{SHORT_ARGS_MAX, SHORT_LEN_MAX, TERMINATOR_LEN, short_args, short_request};

/// Decodes the requests of one connection.
///
/// Takes 64 bytes and, once used, a list of argument positions that shrinks after a large request.
/// Call [`decode`](Self::decode) until it returns `None`, even with no input left: that frees the
/// memory.
///
/// ```
/// use locknode_resp::{Decoder, Limits};
///
/// # fn main() -> Result<(), locknode_resp::ProtocolError> {
/// let mut decoder = Decoder::new();
/// let limits = Limits::default();
/// assert!(decoder.decode(b"*2\r\n$3\r\nGET\r\n$4\r\njo", &limits, true)?.is_none());
/// assert_eq!(decoder.needed(), 23);
/// let frame = decoder.decode(b"*2\r\n$3\r\nGET\r\n$4\r\njobs\r\nPING\r\n", &limits, true)?;
/// let frame = frame.expect("the request is complete");
/// assert_eq!(frame.args().collect::<Vec<_>>(), [&b"GET"[..], b"jobs"]);
/// assert_eq!(frame.consumed(), 23);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    /// The arguments found so far.
    spans: Vec<Span>,
    /// The words of an inline request without their quotes.
    scratch: Vec<u8>,
    /// Where the first argument not in `spans` starts: at its `$`, or at its bytes once `body_end`
    /// is known.
    pos: u32,
    /// Arguments not in `spans` yet; 0 between requests and while the first line is incomplete.
    missing: u32,
    /// How far the current line has been searched for its end; 0 when no line has begun.
    scanned: u32,
    /// Where the bytes of the argument at `pos` end; 0 when its length is not yet known.
    body_end: u32,
}

impl Decoder {
    /// Creates a decoder for a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes one request from `input`, which starts at the first byte not yet consumed by a
    /// frame.
    ///
    /// `None` means that the request is incomplete: call again with the same bytes and more after
    /// them; nothing is decoded twice. `authenticated` lifts the limits for clients that have not
    /// authenticated.
    ///
    /// # Errors
    /// Fails when the bytes break the protocol or a limit. Do not use the decoder again; close the
    /// connection after [`ProtocolError::append_reply`].
    #[inline]
    pub fn decode<'b>(
        &'b mut self,
        input: &'b [u8],
        limits: &Limits,
        authenticated: bool,
    ) -> Result<Option<Frame<'b>>, ProtocolError> {
        let window = input.get(..limits.request_len()).unwrap_or(input);
        let (mut missing, mut pos) = if self.missing == 0 {
            self.release();
            match *window {
                [b'*', digit @ b'1'..=b'9', b'\r', _, ..] if number(digit) <= limits.args() => {
                    (number(digit), 4)
                }
                [b'*', ..] => match self.array_header(window, limits, authenticated)? {
                    Some((0, len)) => return Ok(Some(Frame::new(input, &[], len))),
                    Some(header) => header,
                    None => return Ok(None),
                },
                _ => return self.inline(input, limits),
            }
        } else {
            match self.resume(window, limits)? {
                Some(state) => state,
                None => return Ok(None),
            }
        };

        loop {
            if limits.bulk_len_max >= SHORT_LEN_MAX {
                (missing, pos) = short_args(window, missing, pos, &mut self.spans);
            }
            if missing == 0 {
                break;
            }
            match self.arg(window, missing, pos, limits, authenticated)? {
                Some(next) => pos = next,
                None => return Ok(None),
            }
            missing -= 1;
        }
        // A resumed length line may have been short enough for the fast path.
        (self.missing, self.scanned) = (0, 0);
        Self::finish(input, &self.spans, pos)
    }

    /// Decodes the next request straight into `args` if it is complete and has at most nine
    /// arguments of at most 99 bytes, like nearly every request of a lock client. Returns
    /// them and the number of bytes consumed.
    ///
    /// The result is the same as that of [`decode`](Self::decode), for less than half of the cost;
    /// `None` means that `decode` must be called. Every limit that Redis accepts is above what this
    /// accepts.
    #[inline]
    pub fn decode_short<'a, 'b>(
        &self,
        input: &'b [u8],
        args: &'a mut [&'b [u8]; SHORT_ARGS_MAX],
    ) -> Option<(&'a [&'b [u8]], usize)> {
        if self.missing != 0 || self.scanned != 0 {
            return None;
        }
        short_request(input, args)
    }

    /// Returns how long the input must be, in bytes, before [`decode`](Self::decode) can get
    /// further than last time; 0 if unknown. This is only a hint for reading: a client announced
    /// it, so do not reserve memory for it.
    pub fn needed(&self) -> usize {
        match self.body_end {
            0 => 0,
            end => end as usize + TERMINATOR_LEN,
        }
    }

    /// Resets the previous request and frees what only a large one needs.
    #[inline]
    fn release(&mut self) {
        self.spans.clear();
        if self.spans.capacity() > SPANS_KEPT_MAX || self.scratch.capacity() > 0 {
            self.shrink();
        }
    }

    #[cold]
    fn shrink(&mut self) {
        if self.spans.capacity() > SPANS_KEPT_MAX {
            self.spans = Vec::new();
        }
        // Only people type quotes, so a buffer for them is not worth keeping.
        self.scratch = Vec::new();
    }

    #[inline]
    fn finish<'b>(
        bytes: &'b [u8],
        spans: &'b [Span],
        consumed: usize,
    ) -> Result<Option<Frame<'b>>, ProtocolError> {
        let frame = Frame::new(bytes, spans, consumed);
        // No command of the hot path starts with these letters.
        if let Some(name @ [b'P' | b'p' | b'H' | b'h', b'O' | b'o', ..]) = frame.arg(0)
            && is_http(name)
        {
            return Err(ProtocolError::new(ProtocolErrorKind::HttpAttack));
        }
        Ok(Some(frame))
    }

    /// Parses the `*` line: the number of arguments, and the length of the line. A count that Redis
    /// ignores is 0.
    #[cold]
    fn array_header(
        &mut self,
        window: &[u8],
        limits: &Limits,
        authenticated: bool,
    ) -> Result<Option<(usize, usize)>, ProtocolError> {
        let too_big = ProtocolErrorKind::TooBigMultibulkCount;
        let Some((count, len)) = self.line(window, 0, limits, too_big)? else {
            return Ok(None);
        };
        let count = decimal::parse_integer(count.get(1..).unwrap_or_default()).ok_or(
            ProtocolError::new(ProtocolErrorKind::InvalidMultibulkLength),
        )?;
        // A negative count is below every limit, and then ignored.
        let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
        if count > limits.args() {
            return Err(ProtocolError::new(
                ProtocolErrorKind::InvalidMultibulkLength,
            ));
        }
        if count > UNAUTHENTICATED_ARGS_MAX && !authenticated {
            return Err(ProtocolError::new(
                ProtocolErrorKind::UnauthenticatedMultibulkLength,
            ));
        }
        self.spans.reserve(count.min(SPANS_RESERVED_MAX));
        Ok(Some((count, len)))
    }

    /// Decodes the argument at `pos`, of any length, and returns where the next one starts. If the
    /// argument is incomplete, remembers how far it got.
    #[inline(never)]
    fn arg(
        &mut self,
        window: &[u8],
        missing: usize,
        pos: usize,
        limits: &Limits,
        authenticated: bool,
    ) -> Result<Option<usize>, ProtocolError> {
        let Some((len, header_len)) = self.bulk_header(window, pos, limits)? else {
            (self.missing, self.pos, self.body_end) = (offset(missing), offset(pos), 0);
            return Ok(None);
        };
        if len > limits.bulk_len_max {
            return Err(ProtocolError::new(ProtocolErrorKind::InvalidBulkLength));
        }
        if !authenticated && len > UNAUTHENTICATED_BULK_LEN_MAX {
            return Err(ProtocolError::new(
                ProtocolErrorKind::UnauthenticatedBulkLength,
            ));
        }
        let pos = pos + header_len;
        let end = pos.saturating_add(len);
        let next = end.saturating_add(TERMINATOR_LEN);
        if next <= window.len() {
            self.spans.push(Span::new(pos, len));
            return Ok(Some(next));
        }
        if next > limits.request_len() {
            return Err(ProtocolError::new(ProtocolErrorKind::RequestTooLarge));
        }
        (self.missing, self.pos, self.body_end) = (offset(missing), offset(pos), offset(end));
        Ok(None)
    }

    /// Parses the `$` line at `pos`: the length of the argument, and the length of the line.
    fn bulk_header(
        &mut self,
        window: &[u8],
        pos: usize,
        limits: &Limits,
    ) -> Result<Option<(usize, usize)>, ProtocolError> {
        // Script texts and SHA1 lists have three digits: too common for the general path.
        if let Some(
            [
                b'$',
                a @ b'1'..=b'9',
                b @ b'0'..=b'9',
                c @ b'0'..=b'9',
                b'\r',
                _,
                ..,
            ],
        ) = window.get(pos..)
        {
            return Ok(Some((number(*a) * 100 + number(*b) * 10 + number(*c), 6)));
        }
        let too_big = ProtocolErrorKind::TooBigBulkCount;
        let Some((length, len)) = self.line(window, pos, limits, too_big)? else {
            return Ok(None);
        };
        let digits = match *length {
            [b'$', ref digits @ ..] => digits,
            [found, ..] => return Err(ProtocolError::expected_dollar(found)),
            [] => return Err(ProtocolError::expected_dollar(b'\r')),
        };
        match decimal::parse_integer(digits).map(usize::try_from) {
            Some(Ok(length)) => Ok(Some((length, len))),
            _ => Err(ProtocolError::new(ProtocolErrorKind::InvalidBulkLength)),
        }
    }

    /// Finds the line that starts at `pos`: its text, and its length including the line end.
    fn line<'w>(
        &mut self,
        window: &'w [u8],
        pos: usize,
        limits: &Limits,
        too_big: ProtocolErrorKind,
    ) -> Result<Option<(&'w [u8], usize)>, ProtocolError> {
        let rest = window.get(pos..).unwrap_or_default();
        let seen = (self.scanned as usize).saturating_sub(pos);
        let unseen = rest.get(seen..).unwrap_or_default();
        let len = match unseen.iter().position(|&byte| byte == b'\r') {
            Some(len) => seen + len,
            None => rest.len(),
        };
        if len > limits.line_len() {
            return Err(ProtocolError::new(too_big));
        }
        if rest.len() < len + TERMINATOR_LEN {
            if window.len() >= limits.request_len() {
                return Err(ProtocolError::new(ProtocolErrorKind::RequestTooLarge));
            }
            self.scanned = offset(pos + len);
            return Ok(None);
        }
        self.scanned = 0;
        Ok(rest.get(..len).map(|text| (text, len + TERMINATOR_LEN)))
    }

    /// Resumes an incomplete request: the number of missing arguments, and where the next one
    /// starts.
    #[cold]
    fn resume(
        &mut self,
        window: &[u8],
        limits: &Limits,
    ) -> Result<Option<(usize, usize)>, ProtocolError> {
        let (missing, pos, end) = (
            self.missing as usize,
            self.pos as usize,
            self.body_end as usize,
        );
        if end == 0 {
            return Ok(Some((missing, pos)));
        }
        let next = end + TERMINATOR_LEN;
        if window.len() < next {
            // The limit may have been lowered in the meantime.
            if next > limits.request_len() {
                return Err(ProtocolError::new(ProtocolErrorKind::RequestTooLarge));
            }
            return Ok(None);
        }
        self.spans.push(Span::new(pos, end - pos));
        self.body_end = 0;
        Ok(Some((missing - 1, next)))
    }

    /// Decodes a request that does not start with `*`: a line of words.
    #[cold]
    fn inline<'b>(
        &'b mut self,
        input: &'b [u8],
        limits: &Limits,
    ) -> Result<Option<Frame<'b>>, ProtocolError> {
        if input.starts_with(TLS_HANDSHAKE) {
            return Err(ProtocolError::new(ProtocolErrorKind::Tls));
        }
        let seen = self.scanned as usize;
        // Redis searches with `strchr`, so a line with a NUL never ends, until it is too long.
        let found = input
            .get(seen..)
            .and_then(|unseen| unseen.iter().position(|&byte| matches!(byte, b'\n' | 0)));
        let len = found.map_or(input.len(), |len| seen + len);
        let ends = input.get(len) == Some(&b'\n');
        if len > limits.line_len() || (!ends && input.len() > limits.line_len()) {
            return Err(ProtocolError::new(ProtocolErrorKind::TooBigInlineRequest));
        }
        if !ends {
            self.scanned = offset(len);
            return Ok(None);
        }
        self.scanned = 0;
        let line = input.get(..len).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let bytes = match inline::split(line, &mut self.spans, &mut self.scratch) {
            Some(Words::InLine) => input,
            Some(Words::InScratch) => &self.scratch,
            None => return Err(ProtocolError::new(ProtocolErrorKind::UnbalancedQuotes)),
        };
        Self::finish(bytes, &self.spans, len + 1)
    }
}

/// A record of a handshake, of version 3: how every TLS client begins.
const TLS_HANDSHAKE: &[u8] = &[22, 3];

/// Returns the value of a digit.
#[inline]
fn number(digit: u8) -> usize {
    usize::from(digit - b'0')
}

/// Converts an offset to the form kept between calls; the limits keep it in range.
fn offset(n: usize) -> u32 {
    debug_assert!(u32::try_from(n).is_ok(), "offset beyond the request limit");
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Returns whether a command's name is one that browsers send. Redis compares C strings, hence the
/// NUL.
#[cold]
fn is_http(name: &[u8]) -> bool {
    let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// Spans kept between requests, 512 bytes: more than any lock script needs, and little for an idle
/// connection.
const SPANS_KEPT_MAX: usize = 64;
/// Spans reserved because a client announced them; the same number, so that ordinary requests
/// allocate at most once.
const SPANS_RESERVED_MAX: usize = SPANS_KEPT_MAX;

// One decoder per connection: ten thousand of them must be cheap.
const _: () = assert!(size_of::<Decoder>() <= 64);

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(decoder: &mut Decoder, input: &[u8]) -> Option<usize> {
        let frame = decoder.decode(input, &Limits::default(), true).unwrap();
        frame.map(|frame| frame.len())
    }

    #[test]
    fn an_announced_count_reserves_almost_nothing() {
        let mut decoder = Decoder::new();
        assert_eq!(decoded(&mut decoder, b"*1048576\r\n"), None);
        assert!(decoder.spans.capacity() <= SPANS_RESERVED_MAX);
    }

    #[test]
    fn an_announced_length_reserves_nothing() {
        let mut decoder = Decoder::new();
        assert_eq!(decoded(&mut decoder, b"*1\r\n$1048576\r\n"), None);
        assert_eq!(decoder.needed(), 14 + 1_048_576 + 2);
        assert!(decoder.spans.capacity() <= SPANS_RESERVED_MAX);
    }

    #[test]
    fn memory_of_a_large_request_is_freed() {
        let mut decoder = Decoder::new();
        let input = [&b"*10000\r\n"[..], &b"$1\r\nx\r\n".repeat(10_000)].concat();
        assert_eq!(decoded(&mut decoder, &input), Some(10_000));
        assert!(decoder.spans.capacity() >= 10_000);
        assert_eq!(decoded(&mut decoder, b""), None);
        assert!(decoder.spans.capacity() <= SPANS_KEPT_MAX);

        assert_eq!(decoded(&mut decoder, b"ECHO \"a b\"\r\n"), Some(2));
        assert!(decoder.scratch.capacity() > 0);
        assert_eq!(decoded(&mut decoder, b""), None);
        assert_eq!(decoder.scratch.capacity(), 0);
    }

    #[test]
    fn ordinary_requests_keep_their_one_allocation() {
        let mut decoder = Decoder::new();
        let input =
            b"*6\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nt\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n";
        assert_eq!(decoded(&mut decoder, input), Some(6));
        let before = (decoder.spans.as_ptr(), decoder.spans.capacity());
        for _ in 0..100 {
            assert_eq!(decoded(&mut decoder, input), Some(6));
        }
        assert_eq!((decoder.spans.as_ptr(), decoder.spans.capacity()), before);
    }

    #[test]
    fn a_limit_lowered_while_a_request_arrives_ends_it() {
        let mut decoder = Decoder::new();
        assert_eq!(decoded(&mut decoder, b"*1\r\n$5000\r\n"), None);
        let lower = Limits {
            request_len_max: 100,
            ..Limits::default()
        };
        let error = decoder
            .decode(b"*1\r\n$5000\r\nx", &lower, true)
            .unwrap_err();
        assert_eq!(error.kind(), ProtocolErrorKind::RequestTooLarge);
    }
}
