//! The messages between callers and the driver.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use redlock_proto::{
    Drift, ErrorKind, FencingToken, LockTerms, Look, Quorum, RetryPolicy, ServerInfo, Time, Token,
};
use tokio::sync::oneshot;

use crate::address::NodeAddress;
use crate::clock::Clock;
use crate::connector::Connector;
use crate::error::Error;
use crate::lock_state::LockState;
use crate::observer::{Event, Observer};
use crate::released::Released;
use crate::socket::Tls;

/// The settings of a client.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) addresses: Vec<NodeAddress>,
    /// The addresses as text, without passwords.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) quorum: Quorum,
    pub(crate) tls: Option<Tls>,
    pub(crate) clock: Arc<dyn Clock>,
    /// `None` for the network.
    pub(crate) connector: Option<Arc<dyn Connector>>,
    pub(crate) drift: Drift,
    pub(crate) connect_timeout: Duration,
    pub(crate) node_timeout: Option<Duration>,
    pub(crate) retry: RetryPolicy,
    pub(crate) key_prefix: Box<[u8]>,
    /// What nodes are told of the holders of locks.
    pub(crate) label: Option<Arc<str>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Config {
    pub(crate) fn observe(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.on_event(event);
        }
    }
}

/// An acquired lock.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) token: Token,
    pub(crate) fencing: Option<FencingToken>,
    pub(crate) tries: u32,
}

/// Each node's reply to a look, and what server it is.
pub(crate) type Looks = Vec<(Look, Option<Arc<ServerInfo>>)>;

/// A request to the driver.
#[derive(Debug)]
pub(crate) enum Command {
    Acquire {
        state: Arc<LockState>,
        terms: Arc<LockTerms>,
        adopt: Option<Token>,
        answer: oneshot::Sender<Result<Granted, Error>>,
    },
    Extend {
        state: Arc<LockState>,
        ttl: Duration,
        answer: oneshot::Sender<Result<Time, Error>>,
    },
    /// Without `answer`, a guard or an acquire was dropped and nobody waits.
    Release {
        state: Arc<LockState>,
        token: Option<Token>,
        answer: Option<oneshot::Sender<Released>>,
    },
    Leak {
        state: Arc<LockState>,
    },
    ReleaseToken {
        terms: Arc<LockTerms>,
        token: Token,
        answer: oneshot::Sender<Released>,
    },
    Look {
        key: Option<Box<[u8]>>,
        timeout: Duration,
        answer: oneshot::Sender<Looks>,
    },
    Force {
        key: Box<[u8]>,
        timeout: Duration,
        answer: oneshot::Sender<Looks>,
    },
    Close {
        answer: oneshot::Sender<()>,
    },
}

/// The commands that the driver has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) commands: Vec<Command>,
    pub(crate) waker: Option<Waker>,
    /// The number of the driver that takes from this inbox; zero for none.
    pub(crate) driver: u64,
    /// The number of drivers so far.
    pub(crate) drivers: u64,
    /// No handle is left.
    pub(crate) is_orphaned: bool,
    pub(crate) is_closed: bool,
    /// The message of the last driver's panic.
    pub(crate) panic: Option<Arc<str>>,
}

impl Inbox {
    /// Why there is no driver any more.
    pub(crate) fn end(&self) -> Error {
        match &self.panic {
            Some(panic) => Error::new(
                ErrorKind::Cancelled,
                format!(
                    "the client's task panicked, in an observer or a connector, or because the runtime lacks timers \
                     or I/O (enable_all): {panic}"
                ),
            ),
            None => closed(),
        }
    }
}

/// The client is closed, or its driver's runtime was shut down.
pub(crate) fn closed() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        "the client was closed, or its runtime was shut down",
    )
}
