//! Encodes replies.

use crate::decimal;
use crate::number::double_text;
use crate::protocol::Protocol;

/// Appends replies to a buffer.
///
/// Its only state is the dialect, so creating one per command is free. An aggregate is a length
/// followed by as many calls for its elements; the encoder does not count them.
///
/// ```
/// use locknode_resp::{Encoder, Protocol};
///
/// let mut out = Vec::new();
/// let mut reply = Encoder::new(&mut out, Protocol::Resp3);
/// reply.map(1);
/// reply.bulk(b"proto");
/// reply.integer(3);
/// assert_eq!(out, b"%1\r\n$5\r\nproto\r\n:3\r\n");
/// ```
#[derive(Debug)]
pub struct Encoder<'o> {
    out: &'o mut Vec<u8>,
    protocol: Protocol,
}

impl<'o> Encoder<'o> {
    /// Creates an encoder that appends to `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// Returns the dialect that it writes.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the length of the buffer in bytes, a mark for [`truncate`](Self::truncate).
    #[inline]
    pub fn out_len(&self) -> usize {
        self.out.len()
    }

    /// Removes everything after a mark.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
    }

    /// Appends bytes that are already encoded replies.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// Appends a simple string; CR and LF in it become spaces.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// Appends an error; `message` starts with its code, as in `ERR syntax error`. CR and LF in it
    /// become spaces.
    pub fn error(&mut self, message: &str) {
        self.line(b'-', message.as_bytes());
    }

    /// Like [`error`](Self::error), for a message that quotes bytes from the client.
    pub fn error_bytes(&mut self, message: &[u8]) {
        self.line(b'-', message);
    }

    /// Appends an integer.
    #[inline]
    pub fn integer(&mut self, n: i64) {
        match n {
            0 => self.out.extend_from_slice(b":0\r\n"),
            1 => self.out.extend_from_slice(b":1\r\n"),
            n => decimal::append_signed_line(self.out, b':', n),
        }
    }

    /// Appends a string of any bytes.
    #[inline]
    pub fn bulk(&mut self, b: &[u8]) {
        decimal::append_line(self.out, b'$', b.len() as u64);
        self.out.extend_from_slice(b);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Appends null in place of a string.
    #[inline]
    pub fn null(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.out.extend_from_slice(b"$-1\r\n"),
            Protocol::Resp3 => self.out.extend_from_slice(b"_\r\n"),
        }
    }

    /// Appends null in place of an array.
    #[inline]
    pub fn null_array(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.out.extend_from_slice(b"*-1\r\n"),
            Protocol::Resp3 => self.out.extend_from_slice(b"_\r\n"),
        }
    }

    /// Begins an array of `len` elements.
    #[inline]
    pub fn array(&mut self, len: usize) {
        decimal::append_line(self.out, b'*', len as u64);
    }

    /// Begins a map of `pairs` keys, each followed by its value; a flat array in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(pairs.saturating_mul(2)),
            Protocol::Resp3 => decimal::append_line(self.out, b'%', pairs as u64),
        }
    }

    /// Begins a set of `len` elements; an array in RESP2.
    pub fn set(&mut self, len: usize) {
        self.aggregate(b'~', len);
    }

    /// Begins a push of `len` elements, which answers no request; an array in RESP2.
    pub fn push(&mut self, len: usize) {
        self.aggregate(b'>', len);
    }

    /// Appends a boolean; 1 or 0 in RESP2.
    pub fn boolean(&mut self, b: bool) {
        match (self.protocol, b) {
            (Protocol::Resp2, b) => self.integer(i64::from(b)),
            (Protocol::Resp3, true) => self.out.extend_from_slice(b"#t\r\n"),
            (Protocol::Resp3, false) => self.out.extend_from_slice(b"#f\r\n"),
        }
    }

    /// Appends a floating-point number as [`double_text`] writes it; a string in RESP2.
    pub fn double(&mut self, d: f64) {
        let text = double_text(d);
        match self.protocol {
            Protocol::Resp2 => self.bulk(text.as_bytes()),
            Protocol::Resp3 => self.line(b',', text.as_bytes()),
        }
    }

    /// Appends a text with its format, such as `txt`; a plain string in RESP2.
    pub fn verbatim(&mut self, format: [u8; 3], text: &[u8]) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                let len = text.len() + format.len() + 1;
                decimal::append_line(self.out, b'=', len as u64);
                self.out.extend_from_slice(&format);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    fn aggregate(&mut self, resp3: u8, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array(len),
            Protocol::Resp3 => decimal::append_line(self.out, resp3, len as u64),
        }
    }

    fn line(&mut self, prefix: u8, text: &[u8]) {
        self.out.reserve(text.len() + 3);
        self.out.push(prefix);
        let start = self.out.len();
        self.out.extend_from_slice(text);
        for byte in self.out.iter_mut().skip(start) {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: impl Fn(&mut Encoder<'_>), resp2: &str, resp3: &str) {
        for (protocol, expected) in [(Protocol::Resp2, resp2), (Protocol::Resp3, resp3)] {
            let mut out = b"before".to_vec();
            reply(&mut Encoder::new(&mut out, protocol));
            assert_eq!(
                out.escape_ascii().to_string(),
                format!("before{expected}"),
                "{protocol:?}"
            );
        }
    }

    #[test]
    fn every_reply_is_written_in_its_dialect() {
        check(|e| e.ok(), r"+OK\r\n", r"+OK\r\n");
        check(|e| e.simple("PONG"), r"+PONG\r\n", r"+PONG\r\n");
        check(
            |e| e.error("ERR syntax error"),
            r"-ERR syntax error\r\n",
            r"-ERR syntax error\r\n",
        );
        check(
            |e| e.error_bytes(b"ERR '\xff'"),
            r"-ERR \'\xff\'\r\n",
            r"-ERR \'\xff\'\r\n",
        );
        check(|e| e.integer(0), r":0\r\n", r":0\r\n");
        check(|e| e.integer(1), r":1\r\n", r":1\r\n");
        check(|e| e.integer(-2), r":-2\r\n", r":-2\r\n");
        check(|e| e.integer(30_000), r":30000\r\n", r":30000\r\n");
        check(|e| e.bulk(b""), r"$0\r\n\r\n", r"$0\r\n\r\n");
        check(
            |e| e.bulk(b"a\r\n\0"),
            r"$4\r\na\r\n\x00\r\n",
            r"$4\r\na\r\n\x00\r\n",
        );
        check(|e| e.null(), r"$-1\r\n", r"_\r\n");
        check(|e| e.null_array(), r"*-1\r\n", r"_\r\n");
        check(|e| e.array(12), r"*12\r\n", r"*12\r\n");
        check(|e| e.map(7), r"*14\r\n", r"%7\r\n");
        check(|e| e.set(3), r"*3\r\n", r"~3\r\n");
        check(|e| e.push(3), r"*3\r\n", r">3\r\n");
        check(|e| e.boolean(true), r":1\r\n", r"#t\r\n");
        check(|e| e.boolean(false), r":0\r\n", r"#f\r\n");
        check(
            |e| e.verbatim(*b"txt", b"hi"),
            r"$2\r\nhi\r\n",
            r"=6\r\ntxt:hi\r\n",
        );
        check(|e| e.raw(b"x\ny"), r"x\ny", r"x\ny");
    }

    #[test]
    fn doubles_are_short_and_never_hundreds_of_digits() {
        check(|e| e.double(0.0), r"$1\r\n0\r\n", r",0\r\n");
        check(|e| e.double(-1.5), r"$4\r\n-1.5\r\n", r",-1.5\r\n");
        check(|e| e.double(0.1), r"$3\r\n0.1\r\n", r",0.1\r\n");
        check(|e| e.double(1e300), r"$6\r\n1e+300\r\n", r",1e+300\r\n");
        let exact = r"789477797817528704\r\n";
        check(
            |e| e.double(789_477_797_817_528_756.0),
            &format!(r"$18\r\n{exact}"),
            &format!(",{exact}"),
        );
        let whole = r"100000000000000000\r\n";
        check(
            |e| e.double(1e17),
            &format!(r"$18\r\n{whole}"),
            &format!(",{whole}"),
        );
        check(|e| e.double(1.5e-9), r"$6\r\n1.5e-9\r\n", r",1.5e-9\r\n");
        check(|e| e.double(f64::INFINITY), r"$3\r\ninf\r\n", r",inf\r\n");
        check(
            |e| e.double(f64::NEG_INFINITY),
            r"$4\r\n-inf\r\n",
            r",-inf\r\n",
        );
        check(|e| e.double(f64::NAN), r"$3\r\nnan\r\n", r",nan\r\n");
    }

    #[test]
    fn line_ends_cannot_be_smuggled_into_a_line() {
        check(|e| e.simple("a\r\nb\n"), r"+a  b \r\n", r"+a  b \r\n");
        check(
            |e| e.error("ERR a\r\n+OK\r\n"),
            r"-ERR a  +OK  \r\n",
            r"-ERR a  +OK  \r\n",
        );
    }

    #[test]
    fn a_reply_can_be_removed() {
        let mut out = Vec::new();
        let mut reply = Encoder::new(&mut out, Protocol::Resp2);
        reply.ok();
        let mark = reply.out_len();
        reply.array(2);
        reply.truncate(mark);
        reply.null();
        assert_eq!(out, b"+OK\r\n$-1\r\n");
    }
}
