//! Opening the TCP sockets that nodes listen on, and saying what to do when one cannot be opened.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs as _};

use socket2::{Domain, Protocol, Socket, Type};

use crate::failure::Failure;

/// One address of `--bind`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bind {
    host: String,
    /// Written with a `-` in front: the machine need not have it.
    pub(crate) is_optional: bool,
}

impl Bind {
    /// Reads addresses with commas or spaces between them.
    ///
    /// # Errors
    ///
    /// A sentence about what is not an address.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>, String> {
        let words = text
            .split(|c: char| c == ',' || c.is_whitespace())
            .filter(|word| !word.is_empty());
        words.map(Self::parse).collect()
    }

    fn parse(word: &str) -> Result<Self, String> {
        let (host, is_optional) = match word.strip_prefix('-') {
            Some(host) => (host, true),
            None => (word, false),
        };
        let bare = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        let is_name = bare
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
        if bare.is_empty()
            || !(is_name || bare == "*" || bare == "::*" || bare.parse::<IpAddr>().is_ok())
        {
            return Err(format!(
                "{word:?} is not an address: write one such as 127.0.0.1, ::1, * or a host name (the \
                port goes into --port)"
            ));
        }
        Ok(Self {
            host: bare.to_owned(),
            is_optional,
        })
    }

    /// The address with `port`.
    ///
    /// # Errors
    ///
    /// When the name is unknown.
    pub(crate) fn resolve(&self, port: u16) -> Result<SocketAddr, Failure> {
        match self.host.as_str() {
            "*" => return Ok((Ipv4Addr::UNSPECIFIED, port).into()),
            "::*" => return Ok((Ipv6Addr::UNSPECIFIED, port).into()),
            _ => {}
        }
        let found = (self.host.as_str(), port)
            .to_socket_addrs()
            .map(|mut found| found.next());
        match found {
            Ok(Some(addr)) => Ok(addr),
            Ok(None) => Err(Failure::unavailable(format!(
                "{self} has no address: change --bind"
            ))),
            Err(error) => Err(Failure::unavailable(format!(
                "{self} has no address ({error}): change --bind"
            ))),
        }
    }
}

impl fmt::Display for Bind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.host)
    }
}

/// Listens on `addr` with one socket for each of `threads`; the kernel spreads connections over them.
///
/// # Errors
///
/// Whatever the operating system says about the address.
pub(crate) fn listen(
    addr: SocketAddr,
    backlog: i32,
    threads: usize,
) -> io::Result<Vec<TcpListener>> {
    let first = open(addr)?;
    // The first socket is bound alone, so that a port is never shared with another process: two nodes behind one
    // address would both grant the same lock. Only then are the other threads' sockets let in.
    first.bind(&addr.into())?;
    if threads > 1 {
        first.set_reuse_port(true)?;
    }
    first.listen(backlog)?;
    let first = TcpListener::from(first);
    let addr = first.local_addr()?;
    let mut sockets = Vec::with_capacity(threads);
    for _ in 1..threads {
        sockets.push(match join(addr, backlog) {
            Ok(socket) => socket,
            // A system that does not let sockets share the port after all: the threads share the socket.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => first.try_clone()?,
            Err(error) => return Err(error),
        });
    }
    sockets.insert(0, first);
    Ok(sockets)
}

/// Shares listening sockets among threads: each has one at least, and all are served, whose queues may hold connections.
///
/// # Errors
///
/// When there are no descriptors left.
pub(crate) fn share(mut sockets: Vec<TcpListener>, threads: usize) -> io::Result<Vec<TcpListener>> {
    for index in 0..threads.saturating_sub(sockets.len()) {
        let shared = sockets.get(index).map(TcpListener::try_clone);
        sockets.extend(shared.transpose()?);
    }
    Ok(sockets)
}

/// What a person can do about an address that cannot be listened on, whose port `flag` sets.
pub(crate) fn explain(addr: SocketAddr, flag: &str, error: &io::Error) -> Failure {
    let port = addr.port();
    Failure::unavailable(match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "port {port} on {} is taken by another server: stop that one, or choose another port with {flag}",
            addr.ip()
        ),
        io::ErrorKind::AddrNotAvailable => {
            format!(
                "{} is not an address of this machine: change --bind",
                addr.ip()
            )
        }
        io::ErrorKind::PermissionDenied => format!(
            "no permission to listen on {addr}: ports below 1024 are reserved, choose a higher one with {flag}"
        ),
        _ => format!("cannot listen on {addr}: {error}"),
    })
}

fn open(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    if addr.is_ipv6() {
        // As Redis does: an IPv6 address means IPv6 only, so that `*` and `::*` can stand side by side.
        socket.set_only_v6(true)?;
    }
    // Lets a restarted node have its port back while old connections linger; does not let two servers share it.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn join(addr: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = open(addr)?;
    socket.set_reuse_port(true)?;
    socket.bind(&addr.into())?;
    socket.listen(backlog)?;
    Ok(socket.into())
}

/// Redis' default for `tcp-backlog`.
pub(crate) const BACKLOG: i32 = 511;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bind_lists_are_read_as_in_redis() {
        let bind = |host: &str, is_optional| Bind {
            host: host.to_owned(),
            is_optional,
        };
        for (text, expected) in [
            ("127.0.0.1", Some(vec![bind("127.0.0.1", false)])),
            (
                "127.0.0.1 -::1",
                Some(vec![bind("127.0.0.1", false), bind("::1", true)]),
            ),
            ("*,-::*", Some(vec![bind("*", false), bind("::*", true)])),
            ("[::1]", Some(vec![bind("::1", false)])),
            ("localhost", Some(vec![bind("localhost", false)])),
            ("", Some(vec![])),
            ("127.0.0.1:6379", None),
            ("-", None),
            ("a/b", None),
        ] {
            assert_eq!(Bind::parse_list(text).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_port_is_never_shared_with_another_server() {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        for threads in [1, 3] {
            let sockets = listen(addr, 16, threads).expect("a free port");
            assert_eq!(sockets.len(), threads);
            let taken = sockets[0].local_addr().expect("an address");
            assert!(
                sockets
                    .iter()
                    .all(|socket| socket.local_addr().ok() == Some(taken))
            );
            for other_threads in [1, 3] {
                let error = listen(taken, 16, other_threads).expect_err("the port is taken");
                assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
                let text = explain(taken, "--port", &error).to_string();
                assert!(text.contains(&taken.port().to_string()), "{text}");
                assert!(text.contains("--port"), "{text}");
            }
        }
    }
}
