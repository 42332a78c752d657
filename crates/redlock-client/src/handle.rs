//! How callers reach the driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;
use redlock_proto::{
    Drift, ErrorKind, FencingToken, LockTerms, Look, Quorum, RetryPolicy, ServerInfo, Time, Token,
};
use tokio::sync::oneshot;

use crate::address::NodeAddress;
use crate::clock::Clock;
use crate::connector::Connector;
use crate::driver::Driver;
use crate::error::Error;
use crate::lock_state::LockState;
use crate::observer::{Event, Observer};
use crate::released::Released;
use crate::socket::Tls;

/// What a client was built with.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) addresses: Vec<NodeAddress>,
    /// The addresses as people see them.
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
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Config {
    pub(crate) fn observe(&self, event: &Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.on_event(event);
        }
    }
}

/// A lock that was had.
#[derive(Debug)]
pub(crate) struct Granted {
    pub(crate) token: Token,
    pub(crate) fencing: Option<FencingToken>,
    pub(crate) tries: u32,
}

/// What every node said when it was looked at, and who it is.
pub(crate) type Looks = Vec<(Look, Option<Arc<ServerInfo>>)>;

/// What the driver is asked to do.
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
    /// Without a receiver nobody waits: a guard or an acquire was dropped.
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
    Close {
        answer: oneshot::Sender<()>,
    },
}

/// The way to the driver, shared by the client's clones and its guards. When the last of them is gone the driver
/// finishes its releases and ends.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) config: Arc<Config>,
    inbox: Arc<Mutex<Inbox>>,
    pulse: Arc<Pulse>,
}

/// Counts the turns of the drivers: how callers see that the driver's runtime still runs it.
#[derive(Debug, Default)]
pub(crate) struct Pulse(AtomicU64);

impl Pulse {
    pub(crate) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn beats(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What was asked and not taken by the driver yet.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    pub(crate) commands: Vec<Command>,
    pub(crate) waker: Option<Waker>,
    /// Which driver takes from this inbox; zero for none.
    pub(crate) driver: u64,
    /// Drivers so far.
    drivers: u64,
    /// No handle is left.
    pub(crate) is_orphaned: bool,
    pub(crate) is_closed: bool,
    /// What the last driver panicked with.
    pub(crate) panic: Option<Arc<str>>,
}

impl Inbox {
    /// Why no driver answers any more.
    pub(crate) fn end(&self) -> Error {
        match &self.panic {
            Some(panic) => Error::new(
                ErrorKind::Cancelled,
                format!(
                    "the client's task panicked, in an observer or a connector, or on a runtime that lacks timers or \
                     I/O (enable_all): {panic}"
                ),
            ),
            None => closed(),
        }
    }
}

impl Handle {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config: Arc::new(config),
            inbox: Arc::default(),
            pulse: Arc::default(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.config.clock.now()
    }

    /// Gives the driver a command, and starts one if there is none.
    ///
    /// # Errors
    /// When the client is closed or there is no runtime to start a driver on.
    pub(crate) fn submit(&self, command: Command) -> Result<(), Error> {
        let mut inbox = self.inbox.lock();
        if inbox.is_closed {
            return Err(closed());
        }
        if inbox.driver == 0 {
            let Ok(runtime) = tokio::runtime::Handle::try_current() else {
                return Err(Error::config(
                    "there is no tokio runtime here: call from within one, or use the blocking interface",
                ));
            };
            inbox.drivers += 1;
            inbox.driver = inbox.drivers;
            let config = Arc::clone(&self.config);
            inbox.panic = None;
            let (shared, pulse) = (Arc::clone(&self.inbox), Arc::clone(&self.pulse));
            let driver = Driver::new(config, shared, pulse, inbox.driver);
            drop(runtime.spawn(driver));
        }
        inbox.commands.push(command);
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(())
    }

    /// Gives a running driver a command; false if there is none.
    pub(crate) fn submit_if_running(&self, command: Command) -> bool {
        let mut inbox = self.inbox.lock();
        if inbox.driver == 0 {
            return false;
        }
        inbox.commands.push(command);
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Closes the client for good; resolves when its driver has ended. `None` if there is none.
    pub(crate) fn begin_close(&self) -> Option<oneshot::Receiver<()>> {
        let (answer, answered) = oneshot::channel();
        let mut inbox = self.inbox.lock();
        inbox.is_closed = true;
        if inbox.driver == 0 {
            return None;
        }
        inbox.commands.push(Command::Close { answer });
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
        Some(answered)
    }

    /// Gives the driver a command and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        patience: Duration,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        self.submit(command(answer))?;
        self.answer(answered, patience).await
    }

    /// Waits for an answer of the driver: as long as its runtime runs it, and for `patience` at least. The caller's own
    /// timer decides, since the driver lives on the runtime that the client was first used on, which may be idle by now.
    pub(crate) async fn answer<T>(
        &self,
        mut answered: oneshot::Receiver<T>,
        patience: Duration,
    ) -> Result<T, Error> {
        // Without a runtime there is no timer, and the caller has a clock of its own, if any.
        if tokio::runtime::Handle::try_current().is_err() {
            return answered.await.map_err(|_| self.inbox.lock().end());
        }
        let mut wait = patience.max(STALL);
        loop {
            let beats = self.pulse.beats();
            let Some(timer) = timer(wait) else {
                return Err(Error::config(
                    "the tokio runtime here has no timers: build it with enable_time or enable_all",
                ));
            };
            tokio::select! {
                biased;
                answer = &mut answered => return answer.map_err(|_| self.inbox.lock().end()),
                () = timer => {}
            }
            if self.pulse.beats() == beats {
                return Err(stalled());
            }
            wait = STALL;
        }
    }
}

/// A timer of the caller's runtime; `None` if that has none, which tokio tells by a panic.
fn timer(wait: Duration) -> Option<tokio::time::Sleep> {
    std::panic::catch_unwind(|| tokio::time::sleep(wait)).ok()
}

/// The driver does not get its turn.
fn stalled() -> Error {
    Error::new(
        ErrorKind::Timeout,
        "the client's task does not run: the runtime that the client was first used on is idle, blocked, or was left \
         behind by a fork; build a client for this runtime",
    )
}

/// A driver with something to do looks at the time at least every second.
const STALL: Duration = Duration::from_secs(2);

impl Drop for Handle {
    fn drop(&mut self) {
        let mut inbox = self.inbox.lock();
        inbox.is_orphaned = true;
        let waker = inbox.waker.take();
        drop(inbox);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The client is closed, or the runtime that its driver ran on has ended.
pub(crate) fn closed() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        "the client was closed, or the runtime it ran on has ended",
    )
}
