//! The node: an engine, its clock, and the `serve` calls that bring it connections.

mod guarding;

use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use locknode_engine::durable::{Durability, Machine, Start, Store, StoreError, StoreSettings};
use locknode_engine::{Engine, EngineConfig, GuardConfig, GuardMode, Options, Peer, Stats};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::clock::{Clock, SystemClock};
use crate::connection::Connection;
use crate::directory::Directory;
use crate::error::ServeError;
use crate::keeper::{Desk, Keeper};
use crate::listener::{Accepted, Listener, set_keepalive};
use crate::machine_identity::machine_identity;
use crate::open_error::OpenNodeError;
use crate::process::{Process, Traffic};
use crate::scope::{Phase, Scope};
use crate::shared::Shared;
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
/// let node = locknode::Node::builder().first_start(true).build();
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
    restart_guard: bool,
    max_ttl: Duration,
    is_first_start: bool,
    needs_state: bool,
    durability: Durability,
    machine: Option<Machine>,
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
            restart_guard: true,
            max_ttl: MAX_TTL,
            is_first_start: false,
            needs_state: false,
            durability: Durability::Long,
            machine: None,
        }
    }

    /// Ends the node in order: nothing is granted any more, and all locks are written to the data directory, so that the
    /// next start has them and needs no wait `[G10]`. To be called when [`Node::serve`] has ended; connections that are
    /// served still get errors. After SHUTDOWN NOSAVE nothing is written. Without a data directory nothing is to be done.
    ///
    /// A node that is dropped without this has crashed, as far as its next start is concerned.
    ///
    /// It blocks the thread while it writes: about a second for ten million locks.
    ///
    /// Returns how many locks were written; `None` when nothing was.
    ///
    /// # Errors
    ///
    /// When the disk refuses, or has refused before. The next start then waits as after a crash.
    pub fn close(&self) -> Result<Option<u64>, StoreError> {
        let stopped = self.shared.keeper().take().map(Keeper::stop);
        self.shared.engine.close();
        self.shared.desk.tell_change();
        let Some(stopped) = stopped else {
            return Ok(None);
        };
        let Some(mut store) = stopped else {
            return Ok(None);
        };
        let guard = self.shared.engine.guard();
        // What was asked for while the thread ended; a grant after `close` asks for nothing.
        while let Some(work) = guard.take_work(self.shared.clock.now().time) {
            store.perform(&work, self.shared.clock.reading())?;
            guard.done(&work);
        }
        self.shared.desk.finish_round();
        if self.shared.leaves_no_snapshot.load(Ordering::Acquire) {
            return Ok(None);
        }
        let reading = self.shared.clock.reading();
        let mut table = self.shared.engine.table(reading.moment.time);
        store.close(&mut table, reading)?;
        Ok(Some(table.given()))
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
        let scope = Arc::new(Scope::new(self.shared.desk.open_lobby()));
        let mut stopped = self.shared.stopped.subscribe();
        let result = {
            let _attendance = scope.lobby().attend();
            let mut shutdown = pin!(shutdown);
            let mut stopped = pin!(stopped.wait_for(|&stopped| stopped));
            let mut sweep = pin!(sweeper::sweep(Arc::clone(&self.shared)));
            let mut close_idle = pin!(sweeper::close_idle(Arc::clone(&self.shared)));
            let mut accept = pin!(self.accept(&listener, &scope));
            // Polled by hand, in order, because `select!` would add a proc-macro dependency for one place.
            std::future::poll_fn(|cx| {
                use std::task::Poll;
                let desk = &self.shared.desk;
                if scope.lobby().turn(cx.waker(), desk.rounds()) {
                    self.shared.wake_disk();
                }
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
        let scope = Arc::new(Scope::new(self.shared.desk.open_lobby()));
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
    /// The most that [`max_ttl`](Self::max_ttl) takes. Nobody wants a node that stays away for longer than a day; locks for
    /// longer are on the log anyway.
    pub const MAX_TTL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

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

    /// Whether the node guards its restarts; on by default. Off is plain Redis behaviour: no quarantine, no limit on
    /// TTLs, and a restart forgets all locks `[G15]`.
    #[must_use]
    pub const fn restart_guard(mut self, is_on: bool) -> Self {
        self.restart_guard = is_on;
        self
    }

    /// The longest TTL that rides on the restart guard, 1 ms to 24 hours; 60 seconds by default. Longer ones, and locks
    /// without a TTL, are written to disk, or refused without a data directory. A node that knows nothing of its past
    /// waits so long after its start `[G3]`: lowering it shortens the wait for locks that an earlier run granted, unless there
    /// is a data directory, which remembers them `[G5]`.
    #[must_use]
    pub fn max_ttl(mut self, max_ttl: Duration) -> Self {
        self.max_ttl = max_ttl.clamp(Duration::from_millis(1), Self::MAX_TTL_MAX);
        self
    }

    /// Says that no node in this place of the clients' list has ever granted a lock, so that its first start needs no wait
    /// `[G4]`. A node of a test, whose clients know no earlier one, is such a node; one that takes the place of a node that is
    /// gone is not.
    #[must_use]
    pub const fn first_start(mut self, is_first_start: bool) -> Self {
        self.is_first_start = is_first_start;
        self
    }

    /// Whether [`open`](Self::open) refuses a data directory without a state, unless it is the
    /// [first start](Self::first_start); not by default. Then a node whose disk was lost waits until every lock with a TTL up to
    /// [`max_ttl`](Self::max_ttl) has expired; locks with a longer TTL or none are lost with the disk `[G3]`. With it nothing is
    /// lost, and somebody has to know when every long lock has ended before the node may start again.
    #[must_use]
    pub const fn require_state(mut self, needs_state: bool) -> Self {
        self.needs_state = needs_state;
        self
    }

    /// Which locks are written to disk before they are granted, when there is a data directory.
    #[must_use]
    pub const fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// The machine that the node's clock belongs to; the real one by default.
    #[must_use]
    pub const fn machine(mut self, machine: Machine) -> Self {
        self.machine = Some(machine);
        self
    }

    /// The node, without a data directory: a restart forgets its locks. Unless its restart guard is off or this is its
    /// [first start](NodeBuilder::first_start), it begins with a quarantine.
    pub fn build(self) -> Node {
        let reading = self.clock.reading();
        let (mode, start) = if self.restart_guard {
            let start = Start::without_directory(self.max_ttl, self.is_first_start, reading);
            (GuardMode::Memory, start)
        } else {
            (GuardMode::Off, Start::without_guard(reading))
        };
        let guard = GuardConfig::new(mode, self.max_ttl, &start);
        self.assemble(guard, Arc::default(), PathBuf::new()).0
    }

    /// The node, with a data directory: what is left there decides how long it stays out of every lock. The directory is
    /// created when it is missing, and is this node's alone until the node is [closed](Node::close) or dropped.
    ///
    /// A directory without a state is a disk that was lost: the node waits until every lock with a TTL up to
    /// [`max_ttl`](Self::max_ttl) has expired; locks with a longer TTL or none are lost with the disk, unless the node
    /// [requires](Self::require_state) a state.
    ///
    /// A thread of the node's own writes to it.
    ///
    /// # Errors
    ///
    /// When the directory cannot be used or is another's, or its files are damaged, newer than this version, or not what
    /// `first_start` says. Nothing is overwritten then, and the error says which file it is and what to do.
    pub fn open(self, directory: impl Into<PathBuf>) -> Result<Node, OpenNodeError> {
        let directory = Directory::open(directory)?;
        let path = directory.path().to_owned();
        let settings = StoreSettings {
            max_ttl: self.max_ttl,
            durability: self.durability,
            is_first_start: self.is_first_start,
            needs_state: self.needs_state,
        };
        let machine = self.machine.unwrap_or_else(machine_identity);
        let reading = self.clock.reading();
        let (store, start) = Store::open(directory, &settings, machine, reading, rand::random())?;
        let mode = GuardMode::Store(self.durability);
        let guard = GuardConfig::new(mode, self.max_ttl, &start);
        let desk = Arc::<Desk>::default();
        let (mut node, clock) = self.assemble(guard, Arc::clone(&desk), path);
        for lock in start.locks() {
            node.shared.engine.restore(&lock, reading.moment.time);
        }
        let engine = Arc::clone(&node.shared.engine);
        let keeper = Keeper::start(store, engine, clock, desk).map_err(OpenNodeError::thread)?;
        if let Some(shared) = Arc::get_mut(&mut node.shared) {
            shared.disk = Some(keeper.thread());
            shared.keeper = std::sync::Mutex::new(Some(keeper));
        }
        Ok(node)
    }

    fn assemble(
        self,
        guard: GuardConfig,
        desk: Arc<Desk>,
        directory: PathBuf,
    ) -> (Node, Arc<dyn Clock>) {
        let traffic = Arc::<Traffic>::default();
        let run_id: String = (0..5)
            .map(|_| format!("{:08x}", rand::random::<u32>()))
            .collect();
        let mut config = EngineConfig::new(rand::random(), run_id);
        config.options = self.options;
        config.shards = self.shards;
        config.guard = guard;
        config.host = Box::new(Process::new(
            Arc::clone(&traffic),
            Arc::clone(&desk),
            self.config_file,
            directory,
        ));
        let clock = Arc::clone(&self.clock);
        let engine = Engine::new(config, clock.now());
        let node = Node {
            shared: Arc::new(Shared::new(engine, self.clock, traffic, desk, self.drain)),
        };
        (node, clock)
    }
}

/// A node that knows nothing of its past stays away so long. Most locks are held for seconds, and a minute away is what
/// rolling restarts allow for.
const MAX_TTL: Duration = Duration::from_secs(60);

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
