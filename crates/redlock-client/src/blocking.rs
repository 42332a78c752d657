//! The client without async: every call blocks its thread until it is done.
//!
//! A blocking [`Redlock`] has one thread, which all its clones and guards share. That thread keeps the
//! connections, and renews and releases the locks. After the last clone and the last guard are
//! dropped, it finishes the releases under way, within two seconds, and ends. If the process exits
//! earlier, those locks are left to their TTL: [`release`](Guard::release) them, or
//! [`close`](Redlock::close) the client first.
//!
//! Any thread may call, even one of a tokio runtime. There a call blocks the other tasks of that
//! thread, so the async client is the better choice.
//!
//! # Examples
//!
//! ```no_run
//! use std::time::Duration;
//! use redlock_client::blocking::Redlock;
//!
//! # fn main() -> Result<(), redlock_client::Error> {
//! let redlock = Redlock::builder()
//!     .nodes(["10.0.0.1", "10.0.0.2", "10.0.0.3"])
//!     .build_blocking()?;
//! let request = redlock.lock("report").ttl(Duration::from_secs(30));
//! if let Some(guard) = request.try_acquire()? {
//!     // ... work for less than guard.validity() ...
//!     guard.release();
//! }
//! # Ok(())
//! # }
//! ```

mod guard;
mod mirror;
mod multi;
mod reentrant;
mod request;
mod worker;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

pub use self::guard::Guard;
pub use self::multi::{MultiGuard, MultiLockRequest};
pub use self::reentrant::{Reentrant, ReentrantGuard};
pub use self::request::LockRequest;
use redlock_proto::{ErrorKind, Quorum};

use self::worker::Worker;
use crate::error::Error;
use crate::{Builder, NodeStatus, NodeView, Released, Token};

/// A client of a cluster of lock nodes. Cheap to clone, and usable from any number of threads.
#[derive(Clone, Debug)]
pub struct Redlock {
    client: Arc<Client>,
}

impl Builder {
    /// Builds a blocking client and starts its thread. It sends nothing yet.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Builder::build), and kind `Config` if the thread cannot be started.
    pub fn build_blocking(self) -> Result<Redlock, Error> {
        Redlock::start(self.build()?)
    }
}

impl Redlock {
    /// A builder with the defaults; end with [`build_blocking`](Builder::build_blocking).
    pub fn builder() -> Builder {
        crate::Redlock::builder()
    }

    /// A request for the lock of `key`.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> LockRequest {
        LockRequest::new(self.client.inner.lock(key), &self.client)
    }

    /// A request that takes over a lock by its token, as the async client's
    /// [`adopt`](crate::Redlock::adopt).
    pub fn adopt(&self, key: impl AsRef<[u8]>, token: Token) -> LockRequest {
        LockRequest::new(self.client.inner.adopt(key, token), &self.client)
    }

    /// A request for several locks, all or none.
    pub fn lock_all<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> MultiLockRequest {
        MultiLockRequest::new(self.client.inner.lock_all(keys), &self.client)
    }

    /// A new owner of locks that it can enter again while it holds them.
    pub fn reentrant(&self) -> Reentrant {
        Reentrant::new(self.client.inner.reentrant(), &self.client)
    }

    /// Releases a lock by its token, on every node.
    ///
    /// # Errors
    ///
    /// Those of the async client's [`release`](crate::Redlock::release).
    pub fn release(&self, key: impl AsRef<[u8]>, token: &Token) -> Result<Released, Error> {
        let (key, token) = (key.as_ref().to_vec(), *token);
        self.client
            .run(|inner| async move { inner.release(key, &token).await })?
    }

    /// What each node holds under a key, in the configured order.
    ///
    /// # Errors
    ///
    /// Those of the async client's [`inspect`](crate::Redlock::inspect).
    pub fn inspect(&self, key: impl AsRef<[u8]>) -> Result<Vec<NodeView>, Error> {
        let key = key.as_ref().to_vec();
        self.client
            .run(|inner| async move { inner.inspect(key).await })?
    }

    /// Connects to the nodes and returns what they are, in the configured order.
    ///
    /// # Errors
    ///
    /// Those of the async client's [`nodes`](crate::Redlock::nodes).
    pub fn nodes(&self) -> Result<Vec<NodeStatus>, Error> {
        self.client
            .run(|inner| async move { inner.nodes().await })?
    }

    /// Acquires the lock, runs `work` on this thread and releases the lock.
    ///
    /// Returns the result of `work` even if the lock was lost meanwhile. Long work should check
    /// [`Guard::is_valid`] before each step that must not be done twice.
    ///
    /// # Errors
    ///
    /// Those of [`LockRequest::acquire`]. `work` has not run then.
    pub fn with_lock<T>(
        &self,
        request: LockRequest,
        work: impl FnOnce(&Guard) -> T,
    ) -> Result<T, Error> {
        let guard = request.acquire()?;
        let result = work(&guard);
        guard.release();
        Ok(result)
    }

    /// Releases all locks and closes the connections.
    ///
    /// Waits until all releases are done, for two seconds at most. Guards report their loss; later
    /// calls fail with [`Cancelled`](ErrorKind::Cancelled).
    pub fn close(&self) {
        // It fails only if the thread has ended, and the connections with it.
        let _ = self.client.run(|inner| async move { inner.close().await });
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.client.inner.node_count()
    }

    /// The number of nodes that are a majority.
    pub fn quorum(&self) -> usize {
        self.client.inner.quorum()
    }

    fn start(inner: crate::Redlock) -> Result<Self, Error> {
        let closing = inner.clone();
        let farewell = async move { closing.close().await };
        let worker = Worker::start(farewell, FAREWELL_TIME_MAX).map_err(|error| {
            let text = format!("cannot start the thread of the blocking client: {error}");
            Error::config_by(text, error)
        })?;
        Ok(Self {
            client: Arc::new(Client { inner, worker }),
        })
    }
}

/// The state that a client's clones and guards share.
#[derive(Debug)]
struct Client {
    inner: crate::Redlock,
    worker: Worker,
}

impl Client {
    /// Runs `work` with the async client on the thread, and waits for it.
    fn run<F, W>(&self, work: W) -> Result<F::Output, Error>
    where
        F: Future<Output: Send> + Send + 'static,
        W: FnOnce(crate::Redlock) -> F,
    {
        self.wait(work(self.inner.clone()))
    }

    /// Runs a future on the thread, and waits for it.
    fn wait<F>(&self, future: F) -> Result<F::Output, Error>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.worker.run(future).ok_or_else(|| {
            let text = if self.worker.is_here() {
                "the client's thread ended before the operation was done"
            } else {
                "the client's thread stayed in the process that this one was forked from: build a client here"
            };
            Error::new(ErrorKind::Cancelled, text)
        })
    }

    /// A release that was sent to no node.
    fn nothing_sent(&self) -> Released {
        let Some(quorum) = Quorum::of(self.inner.node_count()) else {
            unreachable!("a client that was built has a valid number of nodes");
        };
        Released::nothing_sent(quorum)
    }
}

/// Closing takes two seconds at most, so a thread that takes longer is stuck.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(5);
