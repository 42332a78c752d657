//! The same client for code without async: every call waits on its own thread until it is done.
//!
//! A blocking [`Redlock`] has one thread of its own, which all its clones and guards share. The
//! thread keeps the connections, renews the locks and releases them in the background. It ends
//! after the last clone and the last guard are dropped, once the releases that are under way are
//! done or two seconds have passed. A process that ends earlier leaves such locks to their TTL:
//! [`release`](Guard::release) them, or [`close`](Redlock::close) the client, before it does.
//!
//! Calls may be made from any thread, also from one that belongs to a tokio runtime; there they
//! hold up the other tasks of that thread, though, and the async client is the better choice.
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
//!     // ... the work, shorter than guard.validity() ...
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

/// A client of one cluster; cheap to clone, and for any number of threads.
#[derive(Clone, Debug)]
pub struct Redlock {
    client: Arc<Client>,
}

impl Builder {
    /// Makes a client for code without async, and starts its thread. No byte is sent yet.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Builder::build), and kind `Config` when the system has no thread left.
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

    /// A request that takes over a lock whose token is known, as the async client's
    /// [`adopt`](crate::Redlock::adopt).
    pub fn adopt(&self, key: impl AsRef<[u8]>, token: Token) -> LockRequest {
        LockRequest::new(self.client.inner.adopt(key, token), &self.client)
    }

    /// A request for several locks at once, all or none.
    pub fn lock_all<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> MultiLockRequest {
        MultiLockRequest::new(self.client.inner.lock_all(keys), &self.client)
    }

    /// A new owner of locks that it can enter again while it holds them.
    pub fn reentrant(&self) -> Reentrant {
        Reentrant::new(self.client.inner.reentrant(), &self.client)
    }

    /// Releases a lock of which only the key and the token are known.
    ///
    /// # Errors
    ///
    /// Those of the async client's [`release`](crate::Redlock::release).
    pub fn release(&self, key: impl AsRef<[u8]>, token: &Token) -> Result<Released, Error> {
        let (key, token) = (key.as_ref().to_vec(), *token);
        self.client
            .run(|inner| async move { inner.release(key, &token).await })?
    }

    /// What each node says of `key`, in the order of the nodes.
    ///
    /// # Errors
    ///
    /// Those of the async client's [`inspect`](crate::Redlock::inspect).
    pub fn inspect(&self, key: impl AsRef<[u8]>) -> Result<Vec<NodeView>, Error> {
        let key = key.as_ref().to_vec();
        self.client
            .run(|inner| async move { inner.inspect(key).await })?
    }

    /// Connects, and says who the nodes are and how they are.
    ///
    /// # Errors
    ///
    /// Those of the async client's [`nodes`](crate::Redlock::nodes).
    pub fn nodes(&self) -> Result<Vec<NodeStatus>, Error> {
        self.client
            .run(|inner| async move { inner.nodes().await })?
    }

    /// Takes the lock, runs `work` on this thread and releases the lock.
    ///
    /// The result of `work` is given back whatever happened to the lock meanwhile. Work that takes
    /// long looks at [`Guard::is_valid`] before each step that others must not see done twice.
    ///
    /// # Errors
    ///
    /// Those of [`LockRequest::acquire`]; `work` was not run then.
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

    /// Releases every lock that is still held, waits until all releases are done or two seconds are
    /// over, and closes the connections. Guards report their loss; whatever is asked afterwards is
    /// [`Cancelled`](ErrorKind::Cancelled).
    pub fn close(&self) {
        // A failure means that the thread is gone, and the connections with it.
        let _ = self.client.run(|inner| async move { inner.close().await });
    }

    /// How many nodes the cluster has.
    pub fn node_count(&self) -> usize {
        self.client.inner.node_count()
    }

    /// How many nodes must grant a lock.
    pub fn quorum(&self) -> usize {
        self.client.inner.quorum()
    }

    fn start(inner: crate::Redlock) -> Result<Self, Error> {
        let closing = inner.clone();
        let farewell = async move { closing.close().await };
        let worker = Worker::start(farewell, FAREWELL_TIME_MAX).map_err(|error| {
            let text = format!("the thread of the blocking client cannot be started: {error}");
            Error::config_by(text, error)
        })?;
        Ok(Self {
            client: Arc::new(Client { inner, worker }),
        })
    }
}

/// What the clones and guards of one client share.
#[derive(Debug)]
struct Client {
    inner: crate::Redlock,
    worker: Worker,
}

impl Client {
    /// Does work with the async client on the thread, and waits for it.
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
            let text = "the client's thread ended before the operation was done";
            Error::new(ErrorKind::Cancelled, text)
        })
    }

    /// A release of which nothing is known.
    fn nobody_told(&self) -> Released {
        let Some(quorum) = Quorum::of(self.inner.node_count()) else {
            unreachable!("a client that was built has a valid number of nodes");
        };
        Released::nobody_told(quorum)
    }
}

/// Closing takes two seconds at most. A thread that outlives its client by more serves nobody.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(5);
