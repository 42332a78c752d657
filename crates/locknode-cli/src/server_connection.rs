//! A blocking connection to any server that speaks RESP2, for a few questions before a deadline.
//!
//! Not for load: one request at a time, one reply at a time.

use std::io::{self, Read, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use redlock_client::Endpoint;

use crate::server_address::ServerAddress;

/// A connection that is logged in.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    stream: Stream,
    deadline: Instant,
    /// Bytes received and not yet used.
    received: Vec<u8>,
}

/// A reply. Arrays are not asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A simple or bulk string.
    Text(Vec<u8>),
    /// An error, without the leading `-`.
    Error(String),
    Integer(i64),
    Null,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ServerConnection {
    /// Connects and logs in; everything on this connection has to be done by `deadline`.
    ///
    /// # Errors
    ///
    /// A reason for a person: not reachable, or the login was refused.
    pub(crate) fn open(address: &ServerAddress, deadline: Instant) -> Result<Self, String> {
        let stream = match address.node().endpoint() {
            Endpoint::Tcp { host, port } => Stream::Tcp(connect(host, *port, deadline)?),
            Endpoint::Unix(path) => {
                Stream::Unix(UnixStream::connect(path).map_err(|error| reason(&error))?)
            }
            _ => return Err("no way to get there".to_owned()),
        };
        let mut connection = Self {
            stream,
            deadline,
            received: Vec::new(),
        };
        for words in address.greeting() {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            if let Reply::Error(error) = connection.call(&words)? {
                return Err(format!("the login was refused: {error}"));
            }
        }
        Ok(connection)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    ///
    /// A reason for a person: the connection broke, the deadline passed, or the bytes are no RESP2 reply.
    pub(crate) fn call(&mut self, args: &[&[u8]]) -> Result<Reply, String> {
        let request = encode(args);
        self.set_timeouts()?;
        let sent = match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(&request),
            Stream::Unix(stream) => stream.write_all(&request),
        };
        sent.map_err(|error| reason(&error))?;
        loop {
            if let Some((reply, len)) = decode(&self.received)? {
                self.received.drain(..len);
                return Ok(reply);
            }
            self.receive()?;
        }
    }

    fn receive(&mut self) -> Result<(), String> {
        self.set_timeouts()?;
        let mut chunk = [0; 4096];
        let read = match &mut self.stream {
            Stream::Tcp(stream) => stream.read(&mut chunk),
            Stream::Unix(stream) => stream.read(&mut chunk),
        };
        match read {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(len) => {
                self.received.extend_from_slice(&chunk[..len]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(reason(&error)),
        }
    }

    fn set_timeouts(&self) -> Result<(), String> {
        let left = Some(left_until(self.deadline)?);
        let set = match &self.stream {
            Stream::Tcp(stream) => stream
                .set_read_timeout(left)
                .and_then(|()| stream.set_write_timeout(left)),
            Stream::Unix(stream) => stream
                .set_read_timeout(left)
                .and_then(|()| stream.set_write_timeout(left)),
        };
        set.map_err(|error| reason(&error))
    }
}

/// A command as an array of bulk strings.
pub(crate) fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        request.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        request.extend_from_slice(arg);
        request.extend_from_slice(b"\r\n");
    }
    request
}

/// The first reply in `bytes` and its length, or `None` while it is incomplete.
pub(crate) fn decode(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let Some(line_len) = bytes
        .windows(2)
        .take(LINE_LEN_MAX)
        .position(|pair| pair == b"\r\n")
    else {
        if bytes.len() > LINE_LEN_MAX {
            return Err(not_a_reply(bytes));
        }
        return Ok(None);
    };
    let (line, end) = (&bytes[..line_len], line_len + 2);
    let Some((kind, text)) = line.split_first() else {
        return Err(not_a_reply(bytes));
    };
    let number = || {
        std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse::<i64>().ok())
    };
    match (kind, number()) {
        (b'+', _) => Ok(Some((Reply::Text(text.to_vec()), end))),
        (b'-', _) => Ok(Some((Reply::Error(printable(text)), end))),
        (b':', Some(number)) => Ok(Some((Reply::Integer(number), end))),
        (b'$', Some(-1)) => Ok(Some((Reply::Null, end))),
        (b'$', Some(len)) => {
            let len = usize::try_from(len).ok().filter(|len| *len <= BULK_LEN_MAX);
            let len = len.ok_or_else(|| not_a_reply(bytes))?;
            let bulk = bytes
                .get(end..end + len)
                .filter(|_| bytes.len() >= end + len + 2);
            Ok(bulk.map(|bulk| (Reply::Text(bulk.to_vec()), end + len + 2)))
        }
        _ => Err(not_a_reply(bytes)),
    }
}

/// Text from elsewhere, short and without control characters, which could play tricks on a terminal.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .take(SHOWN_MAX)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

fn not_a_reply(bytes: &[u8]) -> String {
    format!(
        "no Redis protocol: it sent {:?}",
        printable(&bytes[..bytes.len().min(20)])
    )
}

fn connect(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, String> {
    let found = (host, port)
        .to_socket_addrs()
        .map_err(|error| format!("unknown host: {error}"))?;
    let mut last = "the host has no address".to_owned();
    for addr in found {
        match TcpStream::connect_timeout(&addr, left_until(deadline)?) {
            Ok(stream) => {
                stream.set_nodelay(true).map_err(|error| reason(&error))?;
                return Ok(stream);
            }
            Err(error) => last = reason(&error),
        }
    }
    Err(last)
}

fn left_until(deadline: Instant) -> Result<Duration, String> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        Err(TIMED_OUT.to_owned())
    } else {
        Ok(left)
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => TIMED_OUT.to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused: nothing listens there".to_owned(),
        io::ErrorKind::NotFound => "there is no such socket".to_owned(),
        _ => error.to_string(),
    }
}

pub(crate) const TIMED_OUT: &str = "no answer in time";

/// Far longer than any status or error line; keeps a stranger's endless line from filling memory.
const LINE_LEN_MAX: usize = 64 << 10;

/// Far longer than INFO with every section.
const BULK_LEN_MAX: usize = 4 << 20;

/// As much of a server's text as fits on a few lines.
const SHOWN_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_decoded_when_they_are_complete() {
        let text = |text: &str| Reply::Text(text.as_bytes().to_vec());
        for (bytes, expected) in [
            ("+OK\r\n", text("OK")),
            ("-ERR no\r\n", Reply::Error("ERR no".to_owned())),
            (":-7\r\n", Reply::Integer(-7)),
            ("$-1\r\n", Reply::Null),
            ("$0\r\n\r\n", text("")),
            ("$5\r\na\r\nbc\r\n", text("a\r\nbc")),
        ] {
            for len in 0..bytes.len() {
                assert_eq!(decode(&bytes.as_bytes()[..len]), Ok(None), "{bytes:?}");
            }
            let more = format!("{bytes}+next\r\n");
            assert_eq!(
                decode(more.as_bytes()),
                Ok(Some((expected, bytes.len()))),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        for bytes in [
            "HTTP/1.1 400 Bad Request\r\n",
            "\r\n",
            ":x\r\n",
            "$-2\r\n",
            "$99999999\r\n",
            "*1\r\n:1\r\n",
        ] {
            assert!(decode(bytes.as_bytes()).is_err(), "{bytes:?}");
        }
        assert!(decode(&[b'+'; LINE_LEN_MAX + 1]).is_err());
    }

    #[test]
    fn text_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(printable(b"ERR \x1b[31mred\r\n"), "ERR ?[31mred??");
        assert_eq!(printable(&[b'x'; 1000]).len(), SHOWN_MAX);
    }
}
