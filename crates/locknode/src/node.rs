//! The node: an engine, its clock, and the `serve` calls that bring it connections.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use locknode_engine::durable::StoreError;
use locknode_engine::{Engine, GuardReport, GuardState, Options, Peer, Stats};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::connection::Connection;
use crate::disk_thread::{DiskThread, work};
use crate::error::ServeError;
use crate::listener::{Accepted, Listener};
use crate::scope::{Phase, Scope};
use crate::shared::Shared;
use crate::sweeper;
use crate::sync_waiters::{ServeGuard, lock};

/// A lock node. Cloning returns another handle to the same node.
///
/// A node without a data directory has no thread or runtime of its own, except for scripts that take
/// long: it runs inside the tasks of [`Node::serve`], on the caller's tokio runtime. A process can run any number of nodes.
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
    pub(crate) shared: Arc<Shared>,
}

impl Node {
    /// Stops the node cleanly: it grants nothing more and writes all locks to the data directory,
    /// so that the next start has them and serves at once `[G10]`.
    ///
    /// Call this after [`Node::serve`] has returned; connections still open get errors from here
    /// on. It writes nothing after SHUTDOWN NOSAVE or without a data directory. A node that is
    /// dropped without this call counts as crashed at its next start.
    ///
    /// This blocks the thread while it writes: about a second for ten million locks.
    ///
    /// Returns the number of locks written, or `None` when nothing was written.
    ///
    /// # Errors
    ///
    /// Fails when the disk fails now or has failed before. The next start then waits as after a
    /// crash.
    pub fn close(&self) -> Result<Option<u64>, StoreError> {
        let shared = &*self.shared;
        let disk_thread = lock(&shared.disk_thread).take();
        let stopped = disk_thread.and_then(DiskThread::stop);
        shared.engine.close();
        shared.disk_status.changed.notify_waiters();
        let Some(mut store) = stopped else {
            return Ok(None);
        };
        // Work requested while the thread was stopping; a grant after `close` requests none.
        while work(&mut store, &shared.engine, &*shared.clock)? {}
        shared.disk_status.finish_round();
        if shared.leaves_no_snapshot.load(Ordering::Acquire) {
            return Ok(None);
        }
        let reading = shared.clock.reading();
        let mut table = shared.engine.table(reading.moment.time);
        store.close(&mut table, reading)?;
        Ok(Some(table.record_count()))
    }

    /// Accepts and serves connections until `shutdown` completes or a client sends SHUTDOWN.
    ///
    /// Then it stops accepting, answers every command received, and returns when its connections
    /// have closed, at the latest after the drain time. It may be called several times on one node,
    /// for several listeners.
    ///
    /// # Errors
    ///
    /// Fails when the listener fails for good. Running out of descriptors is waited out.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops accepting; connections already accepted continue until their
    /// clients leave.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with time and I/O enabled.
    pub async fn serve<L: Listener>(
        &self,
        listener: L,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let scope = Scope::new(self.shared.disk_status.new_waiters());
        let mut stopped = self.shared.stopped.subscribe();
        let result = {
            let _serve_guard = ServeGuard(&scope.waiters);
            let mut shutdown = pin!(shutdown);
            let mut stopped = pin!(stopped.wait_for(|&stopped| stopped));
            let mut sweep = pin!(sweeper::sweep(Arc::clone(&self.shared)));
            let mut close_clients = pin!(sweeper::close_clients(Arc::clone(&self.shared)));
            let mut accept = pin!(self.accept(&listener, &scope));
            // Polled by hand, in order, because `select!` would add a proc-macro dependency for one
            // place.
            std::future::poll_fn(|cx| {
                use std::task::Poll;
                let round = self.shared.disk_status.rounds.load(Ordering::Acquire);
                if scope.waiters.poll_serve(cx.waker(), round) {
                    self.shared.wake_disk();
                }
                if shutdown.as_mut().poll(cx).is_ready() || stopped.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ok(()));
                }
                let Poll::Pending = sweep.as_mut().poll(cx);
                let Poll::Pending = close_clients.as_mut().poll(cx);
                accept.as_mut().poll(cx)
            })
            .await
        };
        drop(listener);
        self.end(&scope).await;
        result
    }

    /// Serves one byte stream of any kind: an in-memory pipe, TLS, a socket accepted elsewhere.
    ///
    /// Returns when the client has left or was refused.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; commands already executed stay executed.
    pub async fn serve_stream<S>(&self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let scope = Scope::new(self.shared.disk_status.new_waiters());
        let accepted = Accepted {
            stream,
            peer,
            is_local: true,
        };
        match self.admit(accepted, &scope) {
            Ok(connection) => connection.await,
            Err((stream, refusal)) => refuse(stream, refusal).await,
        }
    }

    /// Returns figures about the node for people and metrics.
    pub fn stats(&self) -> Stats {
        self.shared.engine.stats()
    }

    /// Returns the node's metrics in the text format of Prometheus; [`METRICS`](crate::METRICS) lists
    /// them. The caller needs no runtime, and serves it over HTTP as `text/plain; version=0.0.4`.
    #[cfg(feature = "metrics")]
    pub fn metrics(&self) -> String {
        self.shared.engine.metrics(self.shared.clock.now())
    }

    /// Returns whether a client has stopped the node with SHUTDOWN.
    #[cfg(feature = "metrics")]
    pub fn is_stopping(&self) -> bool {
        *self.shared.stopped.borrow()
    }

    /// Returns the options in force.
    pub fn options(&self) -> Options {
        self.shared.engine.options()
    }

    /// Adds an address that the node listens on, for INFO and CONFIG.
    pub fn listens_on(&self, address: SocketAddr) {
        self.shared.traffic.listens_on(address);
    }

    /// Adds an address on which the node speaks TLS.
    #[cfg(feature = "tls")]
    pub fn listens_with_tls_on(&self, address: SocketAddr) {
        self.shared.traffic.listens_with_tls_on(address);
    }

    /// Reports what the restart guard is doing: the quarantine, what is durable, trouble with the
    /// disk.
    pub fn guard(&self) -> GuardReport {
        let now = self.shared.clock.now().time;
        self.shared.engine.guard().report(now)
    }

    /// Waits until the state of the guard differs from `seen`, and returns the new report: the
    /// quarantine has ended, the disk is full, has failed, or works again.
    ///
    /// Programs that embed a node log these changes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    ///
    /// # Panics
    ///
    /// Panics outside a tokio runtime with time enabled.
    pub async fn guard_changed(&self, seen: GuardState) -> GuardReport {
        loop {
            let changed = self.shared.disk_status.changed.notified();
            let report = self.guard();
            if report.state != seen {
                return report;
            }
            if report.state == GuardState::Quarantine {
                // The node's time decides. Timers stop while the machine sleeps; they only say when
                // to look again.
                let until = report.quarantine_left.min(QUARANTINE_LOOK);
                let _ = tokio::time::timeout(until, changed).await;
            } else {
                changed.await;
            }
        }
    }

    /// Waits for the next line for a log: what an operator did through a command, such as releasing a
    /// lock by force. Such a line may have any character in it.
    pub async fn note(&self) -> String {
        self.shared.notes.next().await
    }

    /// Returns whether a client needs no password.
    pub fn is_open(&self) -> bool {
        self.shared.engine.is_open()
    }

    /// Returns how long the node still refuses locks; `None` when it serves.
    pub fn quarantine_left(&self) -> Option<Duration> {
        let now = self.shared.clock.now().time;
        self.shared.engine.guard().quarantine_left(now)
    }

    async fn accept<L: Listener>(&self, listener: &L, scope: &Scope) -> Result<(), ServeError> {
        let mut failures = 0;
        #[cfg(feature = "hand-over")]
        while let Some(resumed) = listener.resume() {
            listener.set_keepalive(&resumed.accepted.stream, self.options().tcp_keepalive);
            if let Some(mut connection) = self.readmit(resumed, scope) {
                connection.may_be_carried(L::duplicate);
                drop(tokio::spawn(connection));
            }
        }
        loop {
            match listener.accept().await {
                Ok(accepted) => {
                    failures = 0;
                    listener.set_keepalive(&accepted.stream, self.options().tcp_keepalive);
                    match self.admit(accepted, scope) {
                        #[cfg(feature = "hand-over")]
                        Ok(mut connection) => {
                            connection.may_be_carried(L::duplicate);
                            drop(tokio::spawn(connection));
                        }
                        #[cfg(not(feature = "hand-over"))]
                        Ok(connection) => drop(tokio::spawn(connection)),
                        // In a task of its own: over TLS, even a refusal waits for the peer.
                        Err((stream, refusal)) => drop(tokio::spawn(refuse(stream, refusal))),
                    }
                }
                Err(error) if failures >= ACCEPT_FAILURES_MAX => {
                    let source = Arc::new(error);
                    return Err(ServeError { source });
                }
                Err(_) => {
                    failures += 1;
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Admits a connection, or returns its stream and the reason why not.
    fn admit<S>(
        &self,
        accepted: Accepted<S>,
        scope: &Scope,
    ) -> Result<Connection<S>, (S, &'static [u8])> {
        let Accepted {
            stream,
            peer,
            is_local,
        } = accepted;
        let options = self.options();
        let session = if options.protected_mode && self.shared.engine.is_open() && !is_local {
            Err(DENIED.as_bytes())
        } else {
            let now = self.shared.clock.now().time;
            let session = self.shared.engine.connect(peer, now);
            session.ok_or(Engine::REFUSED_MAXCLIENTS)
        };
        match session {
            Ok(session) => {
                let shared = Arc::clone(&self.shared);
                Ok(Connection::new(stream, shared, scope.enter(), session))
            }
            Err(refusal) => Err((stream, refusal)),
        }
    }

    /// Goes on with a connection that another process began; `None` if it has no place here.
    #[cfg(feature = "hand-over")]
    fn readmit<S>(
        &self,
        resumed: crate::hand_over::Resumed<S>,
        scope: &Scope,
    ) -> Option<Connection<S>> {
        let Accepted { stream, peer, .. } = resumed.accepted;
        let now = self.shared.clock.now().time;
        let session = self.shared.engine.resume(peer, &resumed.session, now)?;
        let shared = Arc::clone(&self.shared);
        let mut connection = Connection::new(stream, shared, scope.enter(), session);
        connection.begin_with(resumed.unread, resumed.unsent);
        Some(connection)
    }

    /// Shuts down the connections of a `serve` call.
    async fn end(&self, scope: &Scope) {
        for (phase, patience) in [
            (Phase::Draining, self.shared.drain),
            (Phase::Aborting, ABORT),
        ] {
            scope.advance(phase);
            self.shared.engine.wake_clients();
            let emptied = tokio::time::timeout(patience, scope.emptied());
            if emptied.await.is_ok() {
                return;
            }
        }
    }
}

/// Tells a peer why it is not served. If that fails, the peer is gone.
async fn refuse<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, refusal: &[u8]) {
    let _ = stream.write_all(refusal).await;
    let _ = stream.shutdown().await;
}

/// How long killed connections have to close: they need one poll each.
const ABORT: Duration = Duration::from_secs(1);

/// The pause after a failed accept: descriptors become free when clients leave.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Failures in a row before the listener is given up: ten seconds of them.
const ACCEPT_FAILURES_MAX: u32 = 200;

/// Redis's text, adapted to the options of this server.
const DENIED: &str = "-DENIED locknode is running in protected mode because protected mode is enabled and no \
    password is set for the default user. In this mode connections are only accepted from the loopback interface. If \
    you want to connect from external computers, set a password with --requirepass, or, on a network that you trust, \
    turn protected mode off with --protected-mode no.\r\n";

/// How often a quarantine is checked: after the machine has slept, its end is noticed at most this
/// late.
const QUARANTINE_LOOK: Duration = Duration::from_secs(10);
