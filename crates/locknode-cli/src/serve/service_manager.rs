//! What systemd is told about the node, in its notify protocol: that it listens, what it does, that it reads its files
//! again, that it stops, and, for as long as its threads run, that they do.
//!
//! A manager that cannot be told never holds up the node: messages are sent without waiting, except the first.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use locknode::{GuardState, Node};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::timeout;

use super::condition::condition;
use crate::failure::Failure;
use crate::log::Log;
use crate::pulse::{Felt, Pulse};
use crate::serving;

/// The way to the manager, if there is one.
#[derive(Clone, Debug, Default)]
pub(super) struct ServiceManager {
    socket: Option<Arc<UnixDatagram>>,
    /// How long it waits for a sign of life before it ends the node.
    patience: Option<Duration>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub(super) fn of_environment(log: &Log) -> Self {
        let Some(address) = std::env::var_os(SOCKET).filter(|address| !address.is_empty()) else {
            return Self::default();
        };
        let socket = match connect(&address) {
            Ok(socket) => Some(Arc::new(socket)),
            Err(error) => {
                log.warn(format_args!(
                    "cannot tell the service manager anything: {SOCKET} is {}: {error}",
                    address.display()
                ));
                None
            }
        };
        let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_ours = number("WATCHDOG_PID").is_none_or(|id| id == u64::from(std::process::id()));
        let patience = number("WATCHDOG_USEC").filter(|micros| *micros > 0 && is_ours);
        Self {
            patience: patience
                .map(Duration::from_micros)
                .filter(|_| socket.is_some()),
            socket,
        }
    }

    /// How often each thread has to show that it runs.
    pub(super) fn beat(&self) -> Option<Duration> {
        self.patience.map(|patience| patience / 4)
    }

    /// Shows the manager twice per its patience that the threads run, as long as they all do. One that hangs, or a
    /// process that is stopped, is not vouched for.
    ///
    /// # Errors
    ///
    /// When the operating system has no thread left.
    pub(super) fn watch(&self, pulse: Option<&Pulse>) -> Result<(), Failure> {
        let (Some(patience), Some(pulse)) = (self.patience, pulse) else {
            return Ok(());
        };
        let (manager, pulse) = (self.clone(), pulse.clone());
        let watch = move || {
            let mut felt = Felt::default();
            loop {
                thread::sleep(patience / 2);
                if pulse.feel(&mut felt) {
                    manager.tell("WATCHDOG=1");
                }
            }
        };
        serving::spawn("locknode-watch".to_owned(), watch)?;
        Ok(())
    }

    /// The node listens. Waits, for a second at most, for a manager that has much to read: without this message it
    /// would end the node.
    pub(super) fn ready(&self, node: &Node) {
        if let Some(socket) = &self.socket {
            let _ = socket.set_nonblocking(false);
            let _ = socket.set_write_timeout(Some(Duration::from_secs(1)));
        }
        let status = condition(&node.guard());
        self.tell(&format!("READY=1\nSTATUS={status}"));
        if let Some(socket) = &self.socket {
            let _ = socket.set_nonblocking(true);
        }
    }

    /// The node does not listen yet, and needs more time than the manager gives.
    pub(super) fn not_yet(&self, node: &Node, more: Duration) {
        let status = condition(&node.guard());
        let micros = more.as_micros();
        self.tell(&format!(
            "EXTEND_TIMEOUT_USEC={micros}\nSTATUS=not listening: {status}"
        ));
    }

    /// Reads files again, between two messages.
    pub(super) fn reloading(&self, reload: impl FnOnce()) {
        let now = clock_gettime(ClockId::Monotonic);
        let micros = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
        reload();
        self.tell("READY=1");
    }

    /// Another process, of this unit, goes on in this one's place.
    pub(super) fn goes_on_in(&self, process: u32) {
        self.tell(&format!("MAINPID={process}"));
    }

    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=answering the commands received, then stopping");
    }

    /// Keeps the status up to date: in quarantine every second, otherwise when it changes.
    pub(super) async fn follow(&self, node: &Node) {
        if self.socket.is_none() {
            return;
        }
        loop {
            let seen = node.guard().state;
            let changed = node.guard_changed(seen);
            if seen == GuardState::Quarantine {
                let _ = timeout(Duration::from_secs(1), changed).await;
            } else {
                changed.await;
            }
            let status = condition(&node.guard());
            self.tell(&format!("STATUS={status}"));
        }
    }

    fn tell(&self, lines: &str) {
        if let Some(socket) = &self.socket {
            // Nobody else could be told of an error.
            let _ = socket.send(lines.as_bytes());
        }
    }
}

/// Opens the way to an address: a path, or, behind an `@`, a name in Linux's abstract namespace.
fn connect(address: &OsStr) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    match address.as_bytes() {
        [b'/', ..] => socket.connect(address)?,
        [b'@', name @ ..] => socket.connect_addr(&abstract_address(name)?)?,
        _ => {
            let unknown = "neither a path nor an abstract name";
            return Err(io::Error::new(io::ErrorKind::Unsupported, unknown));
        }
    }
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_: &[u8]) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::Unsupported.into())
}

const SOCKET: &str = "NOTIFY_SOCKET";
