//! The process that serves, and hands over when another one comes.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use locknode::Node;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::frame::{Kind, line, receive, send};
use super::{GREETING, Passed, VERSION};
use crate::failure::Failure;
use crate::log::Log;
use crate::serve::unix_socket::{self, SocketFile};
use crate::serving;

/// What a node that serves has to hand over.
#[derive(Debug)]
pub(crate) struct Predecessor {
    pub(crate) node: Node,
    /// Where it keeps its locks.
    pub(crate) place: String,
    /// How long it may take to stop.
    pub(crate) drain: Duration,
    pub(crate) sockets: Vec<Passed>,
    pub(crate) log: Log,
}

/// Where the other process is once it is ready, and the file of the socket, which is removed with this.
#[derive(Debug)]
pub(crate) struct Waiting {
    successor: Arc<Mutex<Option<Successor>>>,
    file: SocketFile,
}

/// The other process, which waits for what the node leaves.
#[derive(Debug)]
pub(crate) struct Successor {
    stream: UnixStream,
    id: u32,
    /// When the node was told to stop executing commands.
    since: Instant,
}

/// What another process asks for.
enum Asked {
    /// All that the node has.
    Everything,
    /// Of another version: that the node stops.
    Stop,
}

impl Predecessor {
    /// Waits for another process at a socket, on a thread of its own, until the process ends.
    ///
    /// # Errors
    ///
    /// When the socket cannot be used, or the system has no thread left.
    pub(crate) fn wait_at(self, path: &Path) -> Result<Waiting, Failure> {
        let (listener, file) = unix_socket::listen(path, Some(0o600), BACKLOG, "--hand-over")?;
        let successor = Arc::<Mutex<Option<Successor>>>::default();
        let slot = Arc::clone(&successor);
        let wait = move || {
            if let Err(error) = self.wait(listener, &slot) {
                let log = &self.log;
                log.warn(format_args!(
                    "waits for no other process any more (--hand-over): {error}"
                ));
            }
        };
        serving::spawn("locknode-handover".to_owned(), wait)?;
        Ok(Waiting { successor, file })
    }

    fn wait(&self, listener: UnixListener, slot: &Mutex<Option<Successor>>) -> io::Result<()> {
        listener.set_nonblocking(false)?;
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // Descriptors become free when clients leave.
                sleep(PAUSE);
                continue;
            };
            let asked = match self.talk(&stream) {
                Ok(asked) => asked,
                Err(error) => {
                    let log = &self.log;
                    log.warn(format_args!(
                        "another process came to take over and failed, this one goes on: {error}"
                    ));
                    continue;
                }
            };
            // Before the other process listens there.
            drop(listener);
            if matches!(asked, Asked::Everything) {
                let id = socket_peercred(&stream).map_or(0, |peer| peer.pid.as_raw_nonzero().get());
                let successor = Successor {
                    stream,
                    id: u32::try_from(id).unwrap_or(0),
                    since: Instant::now(),
                };
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(successor);
                self.node.begin_hand_over();
            } else {
                self.log.info("another process, of another version, is to go on: answering the commands received, then stopping");
                self.node.stop();
                // It sees the end of this process as the end of the connection.
                std::mem::forget(stream);
            }
            return Ok(());
        }
    }

    /// Gives another process what it needs before this one stops.
    fn talk(&self, stream: &UnixStream) -> io::Result<Asked> {
        stream.set_read_timeout(Some(HASTE))?;
        stream.set_write_timeout(Some(HASTE))?;
        if socket_peercred(stream)?.uid != geteuid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let greeting = line(stream)?;
        let drain_ms = self.drain.as_millis();
        let mut out = stream;
        let Some(theirs) = greeting.strip_prefix(GREETING) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it does not greet",
            ));
        };
        let (version, place) = theirs.split_once(' ').unwrap_or((theirs, ""));
        if version != VERSION {
            writeln!(out, "stopping {drain_ms}")?;
            return Ok(Asked::Stop);
        }
        if place != self.place {
            let reason = format!("the node that runs keeps its locks in {}", self.place);
            writeln!(out, "no {reason}")?;
            return Err(io::Error::other(format!(
                "it would keep its locks in {place}"
            )));
        }
        writeln!(out, "yes {drain_ms}")?;
        for passed in &self.sockets {
            let text = format!("{} {}", passed.purpose.name(), passed.address);
            send(
                stream,
                Kind::Listener,
                text.as_bytes(),
                Some(passed.socket.as_fd()),
            )?;
        }
        send(stream, Kind::ListenersEnd, &[], None)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        match receive(stream)?.kind {
            Kind::Ready => Ok(Asked::Everything),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

impl Waiting {
    /// Whether another process is to go on.
    pub(crate) fn is_over(&self) -> bool {
        let slot = self.successor.lock();
        slot.unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// The process that is to go on, if there is one; the file then is its.
    pub(crate) fn successor(self) -> Option<Successor> {
        let successor = self
            .successor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if successor.is_some() {
            self.file.leave();
        }
        successor
    }
}

impl Successor {
    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// Leaves it everything that the node has. The node, which serves no longer, grants nothing from here on.
    ///
    /// # Errors
    ///
    /// When the locks cannot be written. What was sent lets the other process start as after a crash.
    pub(crate) fn inherit(&self, node: &Node, log: &Log) -> Result<(), Failure> {
        let (legacy, connections) = node.hand_over().map_err(|error| {
            let waits = "the next start waits as after a crash";
            Failure::internal(format!("cannot write the locks: {error}; {waits}"))
        })?;
        let count = connections.len();
        let send_all = || -> io::Result<()> {
            self.stream.set_write_timeout(Some(PATIENCE))?;
            let mut bytes = Vec::new();
            legacy.encode(&mut bytes);
            send(&self.stream, Kind::Legacy, &bytes, None)?;
            for connection in &connections {
                bytes.clear();
                connection.encode(&mut bytes);
                let socket = connection.socket.as_fd();
                send(&self.stream, Kind::Connection, &bytes, Some(socket))?;
            }
            let micros = self.since.elapsed().as_micros();
            send(
                &self.stream,
                Kind::Done,
                micros.to_string().as_bytes(),
                None,
            )
        };
        match send_all() {
            Ok(()) => log.info(format_args!(
                "handed over to process {}, with {count} open connections",
                self.id
            )),
            Err(error) => log.warn(format_args!(
                "process {} is not there any more: {error}",
                self.id
            )),
        }
        Ok(())
    }
}

/// Starts this program again, as it was started, and reports when that fails. `SIGUSR2` asks for it.
///
/// # Errors
///
/// When the system has no thread left to wait for it.
pub(crate) fn start_again(log: &Log) -> Result<(), Failure> {
    let mut args = std::env::args_os();
    let Some(program) = args.next() else {
        return Ok(());
    };
    let log = log.clone();
    let mut again = Command::new(&program);
    // systemd sets it to the number of this process.
    again.args(args).env_remove("WATCHDOG_PID");
    let wait = move || match again.status() {
        Ok(status) => log.warn(format_args!(
            "SIGUSR2: the other process ended ({status}), this one goes on"
        )),
        Err(error) => {
            let program = program.display();
            log.warn(format_args!(
                "SIGUSR2: cannot start {program} again, this process goes on: {error}"
            ));
        }
    };
    serving::spawn("locknode-again".to_owned(), wait)?;
    Ok(())
}

/// Those who come while another one is there find out what became of it.
const BACKLOG: i32 = 8;

/// The pause after a failed accept.
const PAUSE: Duration = Duration::from_secs(1);

/// A process that has just connected says at once what it wants.
const HASTE: Duration = Duration::from_secs(5);

/// What another process may take to open its files, or to read what it is sent.
const PATIENCE: Duration = Duration::from_secs(60);
