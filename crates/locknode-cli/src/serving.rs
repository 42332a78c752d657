//! Threads that serve nodes until a signal comes.
//!
//! ```text
//!  signals --> supervise --> Stage --> thread 0: Node::serve(socket), Node::serve(socket), ...
//!                              |-----> thread 1: ...
//! ```
//!
//! Each thread runs a tokio runtime of its own; a connection never moves to another thread. The first thread also
//! waits for signals, so that a node with one thread is a process with one thread.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use locknode::{Node, ServeError};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::log::Log;
use crate::pulse::Pulse;

/// A socket that is ready to accept.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// TCP whose clients speak TLS.
    #[cfg(feature = "tls")]
    Tls(TcpListener, locknode::Tls),
}

/// A node behind a socket.
#[derive(Debug)]
pub(crate) struct Service {
    pub(crate) node: Node,
    pub(crate) socket: Socket,
    /// Set when the socket is no longer served.
    pub(crate) ended: Arc<AtomicBool>,
    /// Connections of that socket that another process began.
    #[cfg(feature = "hand-over")]
    pub(crate) carried: Vec<locknode::CarriedConnection>,
}

/// How far the end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Serving,
    /// Accept no more, answer what was received.
    Draining,
    /// End at once.
    Stopped,
}

/// SIGTERM and SIGINT.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// The calling thread's runtime, and the signals that it listens to. Made before anybody learns that the nodes
/// listen, and before any thread serves: from then on a signal ends them in order and does not kill the process.
pub(crate) struct Serving {
    runtime: Runtime,
    signals: Signals,
}

impl Serving {
    /// Begins to listen to signals.
    ///
    /// # Errors
    ///
    /// When the runtime cannot be started or the signals cannot be listened to.
    pub(crate) fn prepare() -> Result<Self, Failure> {
        let runtime = runtime()?;
        let signals = {
            let _entered = runtime.enter();
            Signals::new()?
        };
        Ok(Self { runtime, signals })
    }

    /// Goes on after SIGHUP, from now until the process ends: a closed terminal or a rotated log is no reason to end a
    /// service, and a node that the signal kills begins its next run with a quarantine. Redis ignores it, too.
    ///
    /// Returns what receives each one. The process goes on even when that is dropped.
    ///
    /// # Errors
    ///
    /// When the signal cannot be listened to.
    pub(crate) fn hang_ups(&self) -> Result<Signal, Failure> {
        let _entered = self.runtime.enter();
        listen(SignalKind::hangup())
    }

    /// Goes on after SIGUSR2, and returns what receives it.
    ///
    /// # Errors
    ///
    /// When the signal cannot be listened to.
    #[cfg(feature = "hand-over")]
    pub(crate) fn user_signals(&self) -> Result<Signal, Failure> {
        let _entered = self.runtime.enter();
        listen(SignalKind::user_defined2())
    }

    /// Waits, before anything is served, for `until` or for SIGTERM or SIGINT, whose name it returns.
    pub(crate) fn wait(&mut self, until: impl Future<Output = ()>) -> Option<&'static str> {
        let Self { runtime, signals } = self;
        runtime.block_on(async {
            tokio::select! {
                () = until => None,
                name = signals.next() => Some(name),
            }
        })
    }

    /// Serves until SIGTERM or SIGINT, until a client has sent every node SHUTDOWN, or until `beside` fails. One
    /// thread is started for each entry of `threads` but the first, which the calling thread serves itself, along
    /// with `beside`. Each of them has a beat in the pulse, if somebody wants to feel one.
    ///
    /// # Errors
    ///
    /// When a thread or its runtime cannot be started, a listener fails for good, or `beside` failed.
    pub(crate) fn run(
        self,
        threads: Vec<Vec<Service>>,
        log: &Log,
        pulse: Option<&Pulse>,
        beside: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        let Self {
            runtime,
            mut signals,
        } = self;
        let stage = Arc::new(watch::Sender::new(Stage::Serving));
        // Every thread holds a sender; the channel ends when they all have ended.
        let (alive, mut all_ended) = mpsc::channel::<()>(1);
        let mut threads = threads.into_iter();
        let own = threads.next().unwrap_or_default();
        let mut others = Vec::new();
        for (number, services) in (1..).zip(threads) {
            let stage = Arc::clone(&stage);
            others.push(start(
                number,
                services,
                stage,
                pulse.cloned(),
                alive.clone(),
            )?);
        }
        let mut result = runtime.block_on(async {
            let work = async {
                let result = work(own, &stage, pulse, 0).await;
                drop(alive);
                result
            };
            let supervise = supervise(&stage, &mut signals, &mut all_ended, log, beside);
            let (worked, supervised) = tokio::join!(work, supervise);
            worked.and(supervised)
        });
        // Without the first thread there is nobody to wait for signals.
        let last = match result {
            Ok(()) => Stage::Draining,
            Err(_) => Stage::Stopped,
        };
        advance(&stage, last);
        drop(signals);
        drop(runtime);
        for other in others {
            let unexpected = |_| Err(Failure::internal("a thread ended unexpectedly"));
            result = result.and(other.join().unwrap_or_else(unexpected));
        }
        result
    }
}

/// A runtime for one thread.
///
/// # Errors
///
/// When the operating system has no descriptors left for it.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let built = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    built.map_err(|error| Failure::internal(format!("cannot start a runtime: {error}")))
}

/// Starts a thread.
///
/// # Errors
///
/// When the operating system has no thread left.
pub(crate) fn spawn<T: Send + 'static>(
    name: String,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Failure> {
    let started = thread::Builder::new().name(name).spawn(body);
    started.map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn listen(kind: SignalKind) -> Result<Signal, Failure> {
    signal(kind).map_err(|error| Failure::internal(format!("cannot wait for signals: {error}")))
}

fn start(
    number: usize,
    services: Vec<Service>,
    stage: Arc<watch::Sender<Stage>>,
    pulse: Option<Pulse>,
    alive: mpsc::Sender<()>,
) -> Result<JoinHandle<Result<(), Failure>>, Failure> {
    let body = move || {
        let work = work(services, &stage, pulse.as_ref(), number);
        let result = runtime().and_then(|runtime| runtime.block_on(work));
        if result.is_err() {
            advance(&stage, Stage::Draining);
        }
        drop(alive);
        result
    };
    spawn(format!("locknode-{number}"), body)
}

/// Serves until all services have ended.
async fn work(
    services: Vec<Service>,
    stage: &watch::Sender<Stage>,
    pulse: Option<&Pulse>,
    number: usize,
) -> Result<(), Failure> {
    let mut serving = JoinSet::new();
    for service in services {
        serving.spawn(serve(service, stage.subscribe()));
    }
    let mut result = Ok(());
    let drained = async {
        while let Some(ended) = serving.join_next().await {
            let failed = match ended {
                Ok(Ok(())) => continue,
                Ok(Err(failure)) => failure,
                Err(error) => Failure::internal(format!("a task ended unexpectedly: {error}")),
            };
            // A node that part of its clients cannot reach is worse than one that is restarted.
            advance(stage, Stage::Draining);
            result = Err(failed);
        }
    };
    let beat = async {
        match pulse {
            Some(pulse) => pulse.beat(number).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = drained => {}
        () = reached(stage.subscribe(), Stage::Stopped) => {}
        never = beat => match never {},
    }
    result
}

async fn serve(service: Service, stage: watch::Receiver<Stage>) -> Result<(), Failure> {
    let Service {
        node,
        socket,
        ended,
        #[cfg(feature = "hand-over")]
        carried,
    } = service;
    // The first connections are those.
    #[cfg(feature = "hand-over")]
    macro_rules! beginning {
        ($listener:expr) => {
            locknode::Resuming::new($listener, carried)
        };
    }
    #[cfg(not(feature = "hand-over"))]
    macro_rules! beginning {
        ($listener:expr) => {
            $listener
        };
    }
    let shutdown = reached(stage, Stage::Draining);
    let unusable = |error| Failure::internal(format!("cannot use a listening socket: {error}"));
    let served = match socket {
        Socket::Tcp(socket) => {
            let listener = tokio::net::TcpListener::from_std(socket).map_err(unusable)?;
            node.serve(beginning!(listener), shutdown).await
        }
        Socket::Unix(socket) => {
            let listener = tokio::net::UnixListener::from_std(socket).map_err(unusable)?;
            node.serve(beginning!(listener), shutdown).await
        }
        #[cfg(feature = "tls")]
        Socket::Tls(socket, tls) => {
            let listener = tokio::net::TcpListener::from_std(socket).map_err(unusable)?;
            node.serve(tls.listener(listener), shutdown).await
        }
    };
    ended.store(true, Ordering::Relaxed);
    served.map_err(|error: ServeError| Failure::unavailable(error.to_string()))
}

/// Turns signals into stages until all threads have ended.
async fn supervise(
    stage: &watch::Sender<Stage>,
    signals: &mut Signals,
    all_ended: &mut mpsc::Receiver<()>,
    log: &Log,
    beside: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let result = tokio::select! {
        name = signals.next() => {
            log.info(format_args!("{name}: answering the commands received, then stopping; send it again to stop at once"));
            Ok(())
        }
        _ = all_ended.recv() => return Ok(()),
        failed = async {
            match beside.await {
                Ok(()) => std::future::pending().await,
                Err(failure) => failure,
            }
        } => Err(failed),
    };
    advance(stage, Stage::Draining);
    tokio::select! {
        name = signals.next() => {
            log.info(format_args!("{name} again: stopping at once"));
            advance(stage, Stage::Stopped);
        }
        _ = all_ended.recv() => {}
    }
    result
}

async fn reached(mut stage: watch::Receiver<Stage>, wanted: Stage) {
    // The channel closes only when everything ends, which is a reason to stop too.
    let _ = stage.wait_for(|stage| *stage >= wanted).await;
}

fn advance(stage: &watch::Sender<Stage>, to: Stage) {
    stage.send_if_modified(|stage| {
        let is_later = to > *stage;
        *stage = to.max(*stage);
        is_later
    });
}
