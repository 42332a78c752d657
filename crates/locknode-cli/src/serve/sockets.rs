//! The sockets that a node listens on.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;

use locknode::Node;

use super::flags::ServeFlags;
use super::hand_over::{self, Offer, Passed, Purpose};
use super::tls_port::{self, TlsPort};
use super::unix_socket::{self, SocketFile};
use crate::failure::Failure;
use crate::listening;
use crate::log::Log;
use crate::serving::Socket;

/// The open sockets of a node.
pub(super) struct Sockets {
    pub(super) tcp: Vec<SocketAddr>,
    pub(super) tls: Vec<SocketAddr>,
    /// Whether somebody without a password needs a certificate on the latter.
    pub(super) checks_certificates: bool,
    /// What each thread accepts from.
    pub(super) threads: Vec<Vec<Socket>>,
    /// Removes the Unix socket's file at the end.
    pub(super) file: Option<SocketFile>,
}

impl Sockets {
    /// Reports where the node listens, in INFO and on standard error.
    pub(super) fn announce(&self, node: &Node, setup: &ServeFlags, log: &Log) {
        for address in &self.tcp {
            node.listens_on(*address);
            log.info(format_args!("listening on {address}"));
        }
        for address in &self.tls {
            tls_port::announce(node, *address);
            log.info(format_args!("listening on {address} with TLS"));
        }
        if let Some(path) = &setup.unixsocket {
            log.info(format_args!("listening on unix:{}", path.display()));
        }
    }

    /// The sockets for another process, once each.
    ///
    /// # Errors
    ///
    /// When there are no descriptors left.
    pub(super) fn passed(&self) -> Result<Vec<Passed>, Failure> {
        let mut all = Vec::new();
        for (thread, socket) in self
            .threads
            .iter()
            .enumerate()
            .flat_map(|(thread, sockets)| sockets.iter().map(move |socket| (thread, socket)))
        {
            let (purpose, address, socket) = match socket {
                Socket::Tcp(socket) => (Purpose::Tcp, socket.local_addr(), socket.as_fd()),
                #[cfg(feature = "tls")]
                Socket::Tls(socket, _) => (Purpose::Tls, socket.local_addr(), socket.as_fd()),
                // The threads share it.
                Socket::Unix(_) if thread > 0 => continue,
                Socket::Unix(socket) => {
                    let bound = socket.local_addr().map_err(unusable)?;
                    let path = bound.as_pathname().map(hand_over::absolute);
                    let path = path.unwrap_or_default().display().to_string();
                    all.push(Passed::of(Purpose::Unix, path, socket.as_fd())?);
                    continue;
                }
            };
            let address = address.map_err(unusable)?.to_string();
            all.push(Passed::of(purpose, address, socket)?);
        }
        Ok(all)
    }

    /// Opens a port on every address, for each thread; returns the addresses.
    fn open_tcp(
        &mut self,
        setup: &ServeFlags,
        mut port: u16,
        (flag, purpose): (&str, Purpose),
        offer: &mut Offer,
        socket: impl Fn(TcpListener) -> Socket,
    ) -> Result<Vec<SocketAddr>, Failure> {
        let mut addresses = Vec::new();
        // With port 0 the first address gets a free port, and the others the same.
        for bind in setup.bind.iter().flatten() {
            let addr = match bind.resolve(port) {
                Err(_) if bind.is_optional => continue,
                resolved => resolved?,
            };
            let backlog = i32::from(setup.tcp_backlog);
            let threads = self.threads.len();
            let given = offer.tcp(purpose, addr);
            let opened = if given.is_empty() {
                match listening::listen(addr, backlog, threads) {
                    Err(error) if bind.is_optional && is_absent(&error) => continue,
                    opened => opened.map_err(|error| listening::explain(addr, flag, &error))?,
                }
            } else {
                listening::share(given, threads)
                    .map_err(|error| listening::explain(addr, flag, &error))?
            };
            if let Some(Ok(actual)) = opened.first().map(TcpListener::local_addr) {
                port = actual.port();
                addresses.push(actual);
            }
            for (index, opened) in opened.into_iter().enumerate() {
                self.threads[index % threads].push(socket(opened));
            }
        }
        Ok(addresses)
    }
}

/// Opens the sockets, or takes those that another process gave.
///
/// # Errors
///
/// When an address cannot be listened on, or there is none.
pub(super) fn open(
    setup: &ServeFlags,
    tls: Option<&TlsPort>,
    offer: &mut Offer,
) -> Result<Sockets, Failure> {
    let mut sockets = Sockets {
        tcp: Vec::new(),
        tls: Vec::new(),
        checks_certificates: tls.is_some_and(TlsPort::checks_certificates),
        threads: Vec::new(),
        file: None,
    };
    sockets
        .threads
        .resize_with(usize::from(setup.threads), Vec::new);
    if setup.port != 0 || tls.is_none() {
        let what = ("--port", Purpose::Tcp);
        sockets.tcp = sockets.open_tcp(setup, setup.port, what, offer, Socket::Tcp)?;
    }
    if let Some(tls) = tls {
        let what = ("--tls-port", Purpose::Tls);
        let socket = |opened| tls.socket(opened);
        sockets.tls = sockets.open_tcp(setup, tls.port(), what, offer, socket)?;
    }
    if let Some(path) = &setup.unixsocket {
        let (socket, file) = match offer.unix(path) {
            Some(given) => {
                let file = SocketFile::found_at(path).map_err(unusable)?;
                (given, file)
            }
            None => {
                let backlog = setup.tcp_backlog.into();
                unix_socket::listen(path, setup.unixsocketperm, backlog, "--unixsocket")?
            }
        };
        sockets.file = Some(file);
        for thread in &mut sockets.threads {
            // A path has one socket: the threads share it, and the one that is free first accepts.
            thread.push(Socket::Unix(socket.try_clone().map_err(unusable)?));
        }
    }
    if sockets.threads.iter().all(Vec::is_empty) {
        return Err(Failure::usage(
            "nothing to listen on: give an address with --bind or a path with --unixsocket",
        ));
    }
    Ok(sockets)
}

fn unusable(error: std::io::Error) -> Failure {
    Failure::internal(format!("cannot use a socket: {error}"))
}

/// Whether the machine does not have the address, or not that kind of address.
fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::AddrNotAvailable | ErrorKind::Unsupported
    ) || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}
