//! The node: an engine, its clock, and the `serve` calls that bring it connections.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use locknode_engine::{Engine, EngineConfig, Options, Peer, Stats};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Mutex, Notify, watch};

use crate::clock::{Clock, SystemClock};
use crate::connection::Connection;
use crate::error::ServeError;
use crate::listener::{Accepted, Listener, set_keepalive};
use crate::process::{Process, Traffic};
use crate::scope::{Phase, Scope};
use crate::sweeper;

/// A lock node. Cloning gives another handle to the same node.
///
/// A node has no threads and no runtime of its own: it works inside the tasks of [`Node::serve`], on the caller's
/// tokio runtime. Any number of nodes live in one process.
///
/// # Examples
///
/// ```
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
/// use tokio::net::{TcpListener, TcpStream};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let address = listener.local_addr()?;
/// let node = locknode::Node::builder().build();
/// tokio::spawn(async move { node.serve(listener, std::future::pending()).await });
///
/// let mut client = TcpStream::connect(address).await?;
/// client.write_all(b"SET invoice:7 token-a NX PX 30000\r\n").await?;
/// let mut reply = [0; 5];
/// client.read_exact(&mut reply).await?;
/// assert_eq!(&reply, b"+OK\r\n");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Node {
    shared: Arc<Shared>,
}

/// Builds a [`Node`].
#[derive(Debug)]
pub struct NodeBuilder {
    options: Options,
    shards: usize,
    clock: Arc<dyn Clock>,
    drain: Duration,
    config_file: String,
}

/// What all tasks of a node share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) traffic: Arc<Traffic>,
    /// Held by the one sweeper that works.
    pub(crate) sweep_turn: Mutex<()>,
    /// Whether the sweeper waits for a command.
    is_sweeper_parked: AtomicBool,
    commands_came: Notify,
    stopped: watch::Sender<bool>,
    drain: Duration,
}

impl Node {
    /// A builder with the defaults of [`Options`], one shard and the system's clocks.
    pub fn builder() -> NodeBuilder {
        NodeBuilder {
            options: Options::default(),
            shards: 1,
            clock: Arc::new(SystemClock::start()),
            drain: DRAIN,
            config_file: String::new(),
        }
    }

    /// Accepts and serves connections until `shutdown` completes or a client sends SHUTDOWN. Then it accepts no more,
    /// answers every command that was received, and returns when its connections have ended, at the latest after the
    /// drain time. It may be called several times on one node, for several listeners.
    ///
    /// # Errors
    ///
    /// When the listener fails for good. Running out of descriptors is waited out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops accepting; connections already accepted go on until their clients leave.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time and I/O enabled.
    pub async fn serve<L: Listener>(
        &self,
        listener: L,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let scope = Arc::new(Scope::default());
        let mut stopped = self.shared.stopped.subscribe();
        let result = {
            let mut shutdown = pin!(shutdown);
            let mut stopped = pin!(stopped.wait_for(|&stopped| stopped));
            let mut sweep = pin!(sweeper::sweep(Arc::clone(&self.shared)));
            let mut close_idle = pin!(sweeper::close_idle(Arc::clone(&self.shared)));
            let mut accept = pin!(self.accept(&listener, &scope));
            // Polled by hand, in order, because `select!` would add a proc-macro dependency for one place.
            std::future::poll_fn(|cx| {
                use std::task::Poll;
                if shutdown.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(()));
                }
                if stopped.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(()));
                }
                let (Poll::Pending, Poll::Pending) =
                    (sweep.as_mut().poll(cx), close_idle.as_mut().poll(cx))
                else {
                    unreachable!("background work never ends");
                };
                accept.as_mut().poll(cx)
            })
            .await
        };
        drop(listener);
        self.end(&scope).await;
        result
    }

    /// Serves one byte stream, whatever it is: an in-memory pipe, TLS, a socket accepted elsewhere. Returns when the
    /// client has left or was refused.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; commands already executed stay executed.
    pub async fn serve_stream<S>(&self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let scope = Arc::new(Scope::default());
        if let Some(connection) = self
            .admit(
                Accepted {
                    stream,
                    peer,
                    is_local: true,
                },
                &scope,
            )
            .await
        {
            connection.await;
        }
    }

    /// A look at the node for people and metrics.
    pub fn stats(&self) -> Stats {
        self.shared.engine.stats()
    }

    /// The options in force.
    pub fn options(&self) -> Options {
        self.shared.engine.options()
    }

    /// Tells INFO and CONFIG an address that the node listens on.
    pub fn listens_on(&self, address: SocketAddr) {
        self.shared.traffic.listens_on(address);
    }

    async fn accept<L: Listener>(
        &self,
        listener: &L,
        scope: &Arc<Scope>,
    ) -> Result<(), ServeError> {
        let mut failures = 0;
        loop {
            match listener.accept().await {
                Ok(accepted) => {
                    failures = 0;
                    set_keepalive(&accepted.stream, self.options().tcp_keepalive);
                    let node = self.clone();
                    let scope = Arc::clone(scope);
                    if let Some(connection) = node.admit(accepted, &scope).await {
                        tokio::spawn(connection);
                    }
                }
                Err(error) if failures >= ACCEPT_FAILURES_MAX => {
                    return Err(ServeError::accept(error));
                }
                Err(_) => {
                    failures += 1;
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Enters a connection, or tells it why not.
    async fn admit<S>(&self, accepted: Accepted<S>, scope: &Arc<Scope>) -> Option<Connection<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Accepted {
            mut stream,
            peer,
            is_local,
        } = accepted;
        let options = self.options();
        let refusal = if options.protected_mode && options.requirepass.is_empty() && !is_local {
            Some(DENIED.as_bytes())
        } else {
            None
        };
        let now = self.shared.clock.now().time;
        let session = match refusal {
            Some(refusal) => Err(refusal),
            None => self
                .shared
                .engine
                .connect(peer, now)
                .ok_or(Engine::REFUSED_MAXCLIENTS),
        };
        match session {
            Ok(session) => Some(Connection::new(
                stream,
                Arc::clone(&self.shared),
                scope.enter(),
                session,
            )),
            Err(refusal) => {
                // The socket's buffer is empty, so this does not wait for the peer; if it fails, the peer is gone.
                let _ = stream.write_all(refusal).await;
                let _ = stream.shutdown().await;
                None
            }
        }
    }

    /// Ends the connections of a `serve` call.
    async fn end(&self, scope: &Scope) {
        for (phase, patience) in [
            (Phase::Draining, self.shared.drain),
            (Phase::Aborting, ABORT),
        ] {
            scope.advance(phase);
            self.shared.engine.wake_clients();
            if tokio::time::timeout(patience, scope.emptied())
                .await
                .is_ok()
            {
                return;
            }
        }
    }
}

impl NodeBuilder {
    /// The options under their Redis names.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Shards of the lock table, 1 to 64, rounded up to a power of two: 1 (the default) when one thread serves the
    /// node, 64 when several do.
    #[must_use]
    pub const fn shards(mut self, shards: usize) -> Self {
        self.shards = shards;
        self
    }

    /// Where the node's time comes from; the system's clocks by default.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// How long the end of [`Node::serve`] waits for clients to take their replies; 5 seconds by default.
    #[must_use]
    pub const fn drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// The configuration file that INFO names.
    #[must_use]
    pub fn config_file(mut self, path: impl Into<String>) -> Self {
        self.config_file = path.into();
        self
    }

    /// The node. It starts empty.
    pub fn build(self) -> Node {
        let traffic = Arc::<Traffic>::default();
        let run_id: String = (0..5)
            .map(|_| format!("{:08x}", rand::random::<u32>()))
            .collect();
        let mut config = EngineConfig::new(rand::random(), run_id);
        config.options = self.options;
        config.shards = self.shards;
        config.host = Box::new(Process::new(Arc::clone(&traffic), self.config_file));
        let engine = Engine::new(config, self.clock.now());
        Node {
            shared: Arc::new(Shared {
                engine,
                clock: self.clock,
                traffic,
                sweep_turn: Mutex::new(()),
                is_sweeper_parked: AtomicBool::new(false),
                commands_came: Notify::new(),
                stopped: watch::Sender::new(false),
                drain: self.drain,
            }),
        }
    }
}

impl Shared {
    /// Ends every `serve` call of the node.
    pub(crate) fn stop(&self) {
        self.stopped.send_replace(true);
    }

    /// Wakes the sweeper if it waits for work; once per batch.
    #[inline]
    pub(crate) fn after_batch(&self) {
        if self.is_sweeper_parked.load(Ordering::Relaxed) {
            self.is_sweeper_parked.store(false, Ordering::Relaxed);
            self.commands_came.notify_one();
        }
    }

    /// Waits until a command was executed.
    pub(crate) async fn wait_for_commands(&self) {
        self.is_sweeper_parked.store(true, Ordering::SeqCst);
        // A lock set before the line above has not woken anyone.
        if self.engine.next_deadline().is_none() {
            self.commands_came.notified().await;
        }
    }
}

/// How long clients have to take their replies at the end.
const DRAIN: Duration = Duration::from_secs(5);

/// How long killed connections have to go away: they need one poll each.
const ABORT: Duration = Duration::from_secs(1);

/// Pause after a failed accept: descriptors come free when clients leave.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Failures in a row after which the listener is given up: ten seconds of them.
const ACCEPT_FAILURES_MAX: u32 = 200;

/// As Redis words it, for the options that we have.
const DENIED: &str = "-DENIED locknode is running in protected mode because protected mode is enabled and no \
    password is set for the default user. In this mode connections are only accepted from the loopback interface. If \
    you want to connect from external computers, set a password with --requirepass, or, on a network that you trust, \
    turn protected mode off with --protected-mode no.\r\n";
