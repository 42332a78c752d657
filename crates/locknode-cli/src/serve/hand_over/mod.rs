//! A node that goes on in another process, which takes its listening sockets, its locks and its connections over.
//!
//! ```text
//!  predecessor                                    successor
//!      | <------------ greeting: version, place --- |
//!      | --- yes, listening sockets -------------> | opens what else it needs
//!      | <------------------------------- ready --- |
//!      | stops executing, answers, grants nothing   |
//!      | --- locks, scripts, connections, done ---> | serves
//! ```
//!
//! There is a point after which the predecessor grants nothing: before it sends what it leaves. Until the successor has
//! *done*, it grants nothing. If one of them ends on the way, the other never serves on the sockets of both: a
//! predecessor that has not begun to stop goes on; a successor without *done* lets go of all it has got, and starts as
//! after a crash, for which it must get the port, and the lock of the directory, by itself.

mod frame;
mod predecessor;
mod successor;

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use locknode::Node;
use tokio::signal::unix::Signal;

use self::predecessor::Predecessor;
use super::restart::RestartFlags;
use crate::failure::Failure;
use crate::log::Log;
use crate::serving::Serving;

pub(super) use self::predecessor::Waiting;
pub(super) use self::successor::{Inheritance, Offer};

/// The flag about it.
#[derive(Debug, clap::Args)]
pub(super) struct HandOverFlags {
    /// Unix socket at which the node hands over to the next process with this flag, which goes on in its place
    ///
    /// A node that starts and finds another one there takes over its listening sockets, its locks and
    /// its connections, and the other one ends: clients see a pause of some milliseconds. SIGUSR2 has a
    /// node start its program again with the same arguments, for an upgrade. Both need the same --dir.
    #[arg(long, value_name = "PATH", verbatim_doc_comment)]
    pub(super) hand_over: Option<PathBuf>,
}

/// A listening socket on its way to another process, or from one.
#[derive(Debug)]
pub(super) struct Passed {
    pub(super) purpose: Purpose,
    /// Where it listens.
    pub(super) address: String,
    pub(super) socket: OwnedFd,
}

/// What a listening socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Tcp,
    Tls,
    Unix,
    Metrics,
}

/// What has this program started again.
pub(super) struct Again(Option<Signal>);

/// Waits for another process, if the flag says so, and returns where that then is.
///
/// # Errors
///
/// When the socket cannot be used, or the system has no thread left.
pub(super) fn wait(
    flags: &HandOverFlags,
    restart: &RestartFlags,
    drain: Duration,
    node: &Node,
    sockets: impl Iterator<Item = Passed>,
    log: &Log,
) -> Result<Option<Waiting>, Failure> {
    let Some(path) = &flags.hand_over else {
        return Ok(None);
    };
    let predecessor = Predecessor {
        node: node.clone(),
        place: place(restart),
        drain,
        sockets: sockets.collect(),
        log: log.clone(),
    };
    predecessor.wait_at(path).map(Some)
}

/// Tries again for some time what fails while another process ends.
///
/// # Errors
///
/// The last one.
pub(super) fn insist<T>(mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<T, Failure> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(_) if began.elapsed() < ENDING => sleep(PAUSE),
            done => return done,
        }
    }
}

impl Again {
    /// Begins to listen to SIGUSR2, if the node can hand over.
    ///
    /// # Errors
    ///
    /// When the signal cannot be listened to.
    pub(super) fn listen(flags: &HandOverFlags, serving: &Serving) -> Result<Self, Failure> {
        let signal = flags.hand_over.as_ref().map(|_| serving.user_signals());
        signal.transpose().map(Self)
    }

    /// Starts this program again at each signal.
    pub(super) async fn start(&mut self, log: &Log) {
        while let Some(signal) = &mut self.0 {
            signal.recv().await;
            log.info("SIGUSR2: starting this program again, which is to go on");
            if let Err(failure) = predecessor::start_again(log) {
                log.warn(format_args!("SIGUSR2: {failure}"));
            }
        }
    }
}

impl Passed {
    /// Another descriptor of a socket, to pass on.
    ///
    /// # Errors
    ///
    /// When the process has no descriptor left.
    pub(super) fn of(
        purpose: Purpose,
        address: String,
        socket: BorrowedFd<'_>,
    ) -> Result<Self, Failure> {
        let socket = socket.try_clone_to_owned();
        let socket = socket
            .map_err(|error| Failure::internal(format!("cannot pass a socket on: {error}")))?;
        Ok(Self {
            purpose,
            address,
            socket,
        })
    }
}

impl Purpose {
    const ALL: [(Self, &'static str); 4] = [
        (Self::Tcp, "tcp"),
        (Self::Tls, "tls"),
        (Self::Unix, "unix"),
        (Self::Metrics, "metrics"),
    ];

    fn name(self) -> &'static str {
        let named = Self::ALL.iter().find(|(purpose, _)| *purpose == self);
        named.map_or("", |(_, name)| name)
    }

    fn of(name: &str) -> Option<Self> {
        let named = Self::ALL.iter().find(|(_, known)| *known == name);
        named.map(|(purpose, _)| *purpose)
    }
}

/// Where a node keeps its locks, as both processes name it: one that keeps them elsewhere cannot go on with them.
fn place(flags: &RestartFlags) -> String {
    match &flags.dir {
        None if flags.is_guarded() => "memory".to_owned(),
        None => "memory, without a restart guard".to_owned(),
        Some(dir) => format!("directory {}", absolute(dir).display()),
    }
}

pub(super) fn absolute(path: &Path) -> PathBuf {
    let found = path.canonicalize().or_else(|_| std::path::absolute(path));
    found.unwrap_or_else(|_| path.to_owned())
}

/// A process that was killed is gone within milliseconds; one that still serves stays.
const ENDING: Duration = Duration::from_secs(2);

const PAUSE: Duration = Duration::from_millis(5);

/// The beginning of a greeting; the version follows.
const GREETING: &str = "locknode hand-over ";

/// The version of all that follows the greeting. Another one is not tried: the predecessor stops as SIGTERM has it do.
const VERSION: &str = "2";
