//! A blocking connection to any server that speaks the Redis protocol, for a few questions before a deadline.
//!
//! Not for load: one request at a time, one reply at a time.

use std::io::{self, Read, Write as _};
use std::net::{IpAddr, TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use locknode_resp::{Reply, ReplyDecoder, ReplyLimits};
use redlock_client::Endpoint;
use socket2::Socket;
#[cfg(feature = "tls")]
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::server_address::ServerAddress;

/// TCP or a Unix socket.
#[derive(Debug)]
enum Stream {
    Plain(Socket),
    #[cfg(feature = "tls")]
    Tls(Box<StreamOwned<ClientConnection, Socket>>),
}

/// A connection that is logged in.
#[derive(Debug)]
pub(crate) struct ServerConnection {
    stream: Stream,
    deadline: Instant,
    /// Bytes received and not yet used.
    received: Vec<u8>,
    replies: ReplyDecoder,
}

impl ServerConnection {
    /// Connects and logs in; everything on this connection has to be done by `deadline`.
    ///
    /// # Errors
    ///
    /// A reason for a person: not reachable, or the login was refused.
    pub(crate) fn open(address: &ServerAddress, deadline: Instant) -> Result<Self, String> {
        let stream = match address.node.endpoint() {
            #[cfg(feature = "tls")]
            Endpoint::Tcp { host, port } if address.tls.is_some() => {
                Stream::behind_tls(connect(host, *port, deadline)?, host, address)?
            }
            Endpoint::Tcp { host, port } => Stream::Plain(connect(host, *port, deadline)?.into()),
            Endpoint::Unix(path) => {
                let connected = UnixStream::connect(path).map_err(|error| reason(&error))?;
                Stream::Plain(connected.into())
            }
            _ => return Err("no way to get there".to_owned()),
        };
        let mut connection = Self {
            stream,
            deadline,
            received: Vec::new(),
            replies: ReplyDecoder::new(LIMITS),
        };
        for words in address.greeting() {
            let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
            if let Reply::Error(error) = connection.call(&words)? {
                return Err(format!("the login was refused: {}", printable(&error)));
            }
        }
        Ok(connection)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    ///
    /// A reason for a person: the connection broke, the deadline passed, or the bytes are not a reply.
    pub(crate) fn call(&mut self, args: &[&[u8]]) -> Result<Reply, String> {
        self.set_timeouts()?;
        let sent = self.stream.send(&encode(args));
        sent.map_err(|error| reason(&error))?;
        loop {
            let decoded = self.replies.decode(&self.received);
            if let Some((reply, len)) = decoded.map_err(|_| not_a_reply(&self.received))? {
                self.received.drain(..len);
                return Ok(reply);
            }
            self.receive()?;
        }
    }

    /// Whether both ends have an address of this machine. Behind the other one there may still be a tunnel.
    pub(crate) fn stays_on_this_machine(&self) -> bool {
        let socket = self.stream.socket();
        let own = socket.local_addr();
        let ends = own.and_then(|own| Ok((own.as_socket(), socket.peer_addr()?.as_socket())));
        ends.is_ok_and(|ends| match ends {
            (Some(own), Some(peer)) => own.ip() == peer.ip() || peer.ip().is_loopback(),
            // A Unix socket.
            _ => true,
        })
    }

    /// The address of the machine at the other end, unless that is this machine.
    pub(crate) fn machine(&self) -> Option<IpAddr> {
        if self.stays_on_this_machine() {
            return None;
        }
        let peer = self.stream.socket().peer_addr().ok()?;
        peer.as_socket().map(|peer| peer.ip())
    }

    /// Gives it more time.
    pub(crate) const fn extend(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    /// The socket of a connection without TLS.
    #[cfg(feature = "bench")]
    pub(crate) fn into_socket(self) -> Option<Socket> {
        match self.stream {
            Stream::Plain(socket) => Some(socket),
            #[cfg(feature = "tls")]
            Stream::Tls(_) => None,
        }
    }

    fn receive(&mut self) -> Result<(), String> {
        self.set_timeouts()?;
        let mut chunk = [0; 4096];
        match self.stream.receive(&mut chunk) {
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
        let socket = self.stream.socket();
        let set = socket.set_read_timeout(left);
        set.and_then(|()| socket.set_write_timeout(left))
            .map_err(|error| reason(&error))
    }
}

impl Stream {
    #[cfg(feature = "tls")]
    fn behind_tls(stream: TcpStream, host: &str, address: &ServerAddress) -> Result<Self, String> {
        let (config, name) = address.tls_for(host)?;
        let connection = ClientConnection::new(config, name).map_err(|error| error.to_string())?;
        let stream = StreamOwned::new(connection, stream.into());
        Ok(Self::Tls(Box::new(stream)))
    }

    const fn socket(&self) -> &Socket {
        match self {
            Self::Plain(socket) => socket,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => &stream.sock,
        }
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.write_all(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.read(bytes),
        }
    }
}

/// A command on the wire.
pub(crate) fn encode(args: &[&[u8]]) -> Vec<u8> {
    let mut request = Vec::new();
    locknode_resp::encode_command(&mut request, args);
    request
}

/// Text from elsewhere, short and without control characters, which could play tricks on a terminal.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars()
        .take(SHOWN_MAX)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// Why bytes that are not a reply cannot be from a Redis server.
fn not_a_reply(bytes: &[u8]) -> String {
    format!(
        "no Redis protocol: it sent {:?}",
        printable(&bytes[..bytes.len().min(20)])
    )
}

/// Opens a TCP connection.
///
/// # Errors
///
/// A reason for a person.
pub(crate) fn connect(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, String> {
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

/// Flat replies, far longer than INFO with every section.
const LIMITS: ReplyLimits = ReplyLimits {
    depth_max: 1,
    depth_kept: 1,
    elements_max: 1024,
    bytes_max: 4 << 20,
};

/// As much of a server's text as fits on a few lines.
const SHOWN_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_elsewhere_cannot_steer_the_terminal() {
        assert_eq!(printable(b"ERR \x1b[31mred\r\n"), "ERR ?[31mred??");
        assert_eq!(printable(&[b'x'; 1000]).len(), SHOWN_MAX);
    }
}
