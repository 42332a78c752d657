//! The process that comes to go on in another's place.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use locknode::{CarriedConnection, Legacy, NodeBuilder};
use rustix::net::{AddressFamily, sockopt::socket_domain};

use super::frame::{Kind, line, receive, send};
use super::{GREETING, HandOverFlags, Passed, Purpose, VERSION, place};
use crate::failure::Failure;
use crate::log::Log;
use crate::serve::restart::RestartFlags;
use crate::serving::{Service, Socket};

/// Another process that is to hand over, and the sockets that it gave. Without one, all of this is empty.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    predecessor: Option<UnixStream>,
    sockets: Vec<Passed>,
    /// How long the other process may take to stop.
    drain: Duration,
}

/// What another process left.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    legacy: Legacy,
    connections: Vec<CarriedConnection>,
    /// When the other process stopped executing commands; `None` without one.
    since: Option<Instant>,
}

impl Offer {
    /// Asks the process at a socket. When nobody is there, or one of another version, which then stops, there is nothing
    /// to take over, and the node starts as after any other.
    ///
    /// # Errors
    ///
    /// When the other process keeps its locks elsewhere.
    pub(crate) fn ask(
        flags: &HandOverFlags,
        restart: &RestartFlags,
        log: &Log,
    ) -> Result<Self, Failure> {
        let Some(path) = &flags.hand_over else {
            return Ok(Self::default());
        };
        let Ok(stream) = UnixStream::connect(path) else {
            return Ok(Self::default());
        };
        match Self::of(stream, &place(restart), log) {
            Ok(answered) => answered,
            Err(error) => {
                let path = path.display();
                log.warn(format_args!(
                    "the process at {path} does not hand over: {error}"
                ));
                Ok(Self::default())
            }
        }
    }

    fn of(stream: UnixStream, place: &str, log: &Log) -> io::Result<Result<Self, Failure>> {
        stream.set_read_timeout(Some(HASTE))?;
        stream.set_write_timeout(Some(HASTE))?;
        writeln!(&stream, "{GREETING}{VERSION} {place}")?;
        let answer = line(&stream)?;
        let (word, rest) = answer.split_once(' ').unwrap_or((&answer, ""));
        let drain = Duration::from_millis(rest.parse().unwrap_or(0));
        match word {
            "yes" => {}
            "no" => {
                let place = format!("{rest}, this one would keep them in {place}");
                let advice = "give both the same --dir, or stop the other one first (--hand-over)";
                return Ok(Err(Failure::unavailable(format!("{place}: {advice}"))));
            }
            "stopping" => {
                log.info("the node that runs is of another version: waiting until it has stopped");
                stream.set_read_timeout(Some(drain + PATIENCE))?;
                // Its end is all that is to come.
                let _ = receive(&stream);
                return Ok(Ok(Self::default()));
            }
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
        let mut sockets = Vec::new();
        loop {
            let frame = receive(&stream)?;
            match (frame.kind, frame.socket) {
                (Kind::Listener, Some(socket)) => {
                    let text = String::from_utf8_lossy(&frame.bytes);
                    let (purpose, address) = text.split_once(' ').unwrap_or((&text, ""));
                    sockets.extend(Purpose::of(purpose).map(|purpose| Passed {
                        purpose,
                        address: address.to_owned(),
                        socket,
                    }));
                }
                (Kind::ListenersEnd, _) => break,
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(Ok(Self {
            predecessor: Some(stream),
            sockets,
            drain,
        }))
    }

    pub(crate) const fn is_there(&self) -> bool {
        self.predecessor.is_some()
    }

    /// The sockets that listen at an address; at any port when that is 0.
    pub(crate) fn tcp(&mut self, purpose: Purpose, wanted: SocketAddr) -> Vec<TcpListener> {
        let is_it = |passed: &mut Passed| {
            let address = passed.address.parse::<SocketAddr>();
            passed.purpose == purpose
                && address.is_ok_and(|it| {
                    it.ip() == wanted.ip() && (it.port() == wanted.port() || wanted.port() == 0)
                })
        };
        let found = self.sockets.extract_if(.., is_it);
        found.map(|passed| passed.socket.into()).collect()
    }

    /// The socket that listens at a path.
    pub(crate) fn unix(&mut self, path: &Path) -> Option<UnixListener> {
        let path = super::absolute(path).display().to_string();
        let is_it = |passed: &Passed| passed.purpose == Purpose::Unix && passed.address == path;
        let place = self.sockets.iter().position(is_it)?;
        Some(self.sockets.swap_remove(place).socket.into())
    }

    /// Tells the other process that this one is ready, and waits for what it leaves. From then on it grants nothing.
    /// `None` when it ended before that: what it gave must not be used.
    pub(crate) fn accept(self, log: &Log) -> Option<Inheritance> {
        let Some(stream) = self.predecessor else {
            return Some(Inheritance::default());
        };
        match receive_all(&stream, self.drain) {
            Ok(inheritance) => Some(inheritance),
            Err(error) => {
                log.warn(format_args!(
                    "the process that was to hand over ended before it had, or took too long: {error}"
                ));
                None
            }
        }
    }
}

impl Inheritance {
    pub(crate) const fn is_some(&self) -> bool {
        self.since.is_some()
    }

    /// Has a node begin with it.
    pub(crate) fn left_to(&mut self, builder: NodeBuilder) -> NodeBuilder {
        builder.take_over(std::mem::take(&mut self.legacy))
    }

    /// Says that this process goes on, and how long nobody was served.
    pub(crate) fn announce(&self, log: &Log) {
        if let Some(since) = self.since {
            log.info(format_args!(
                "goes on in the place of another process, with {} open connections; nobody was served for {:.1} ms",
                self.connections.len(),
                since.elapsed().as_secs_f64() * 1e3
            ));
        }
    }

    /// Gives the connections to the threads that serve their kind of socket.
    pub(crate) fn spread(self, threads: &mut [Vec<Service>]) {
        let count = threads.len().max(1);
        for (index, connection) in self.connections.into_iter().enumerate() {
            let is_unix = socket_domain(&connection.socket) == Ok(AddressFamily::UNIX);
            let mut services = threads.get_mut(index % count).into_iter().flatten();
            let service = services.find(|service| match service.socket {
                Socket::Tcp(_) => !is_unix,
                Socket::Unix(_) => is_unix,
                #[cfg(feature = "tls")]
                Socket::Tls(..) => false,
            });
            // Without one, this node does not serve that kind, and the peer sees its connection end.
            if let Some(service) = service {
                service.carried.push(connection);
            }
        }
    }
}

fn receive_all(stream: &UnixStream, drain: Duration) -> io::Result<Inheritance> {
    stream.set_read_timeout(Some(drain + PATIENCE))?;
    send(stream, Kind::Ready, &[], None)?;
    let mut inheritance = Inheritance::default();
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    loop {
        let frame = receive(stream)?;
        match (frame.kind, frame.socket) {
            (Kind::Legacy, _) => {
                inheritance.legacy = Legacy::decode(&frame.bytes).ok_or_else(broken)?;
            }
            (Kind::Connection, Some(socket)) => {
                let connection = CarriedConnection::decode(&frame.bytes, socket);
                inheritance.connections.push(connection.ok_or_else(broken)?);
            }
            // The system had no descriptor left for it: its peer sees it close.
            (Kind::Connection, None) => {}
            (Kind::Done, _) => {
                let micros = std::str::from_utf8(&frame.bytes)
                    .ok()
                    .and_then(|it| it.parse().ok());
                let since = Duration::from_micros(micros.ok_or_else(broken)?);
                inheritance.since = Instant::now().checked_sub(since);
                return Ok(inheritance);
            }
            _ => return Err(broken()),
        }
    }
}

/// A node that runs answers at once.
const HASTE: Duration = Duration::from_secs(5);

/// How long it may take beyond its drain to write its locks.
const PATIENCE: Duration = Duration::from_secs(60);
