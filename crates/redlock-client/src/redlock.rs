//! The client.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redlock_proto::{Cause, LockTerms, Look, ServerInfo, Token};

use crate::error::Error;
use crate::handle::Handle;
use crate::inbox::Command;
use crate::limits;
use crate::multi::MultiLockRequest;
use crate::node_view::{HeldKey, NodeStatus, NodeView};
use crate::reentrant::Reentrant;
use crate::released::Released;
use crate::request::LockRequest;
use crate::scope::{self, Scope};

/// A client of a cluster of lock nodes. Cloning is cheap and shares the connections.
///
/// Nothing is sent before the first use. Then one task on the caller's tokio runtime does all I/O, over
/// one connection per node. After the last clone and the last guard are dropped, it finishes the
/// releases under way and ends.
///
/// ```no_run
/// use std::time::Duration;
/// use redlock_client::Redlock;
///
/// # async fn example() -> Result<(), redlock_client::Error> {
/// let redlock = Redlock::builder()
///     .nodes(["127.0.0.1:7101", "127.0.0.1:7102", "127.0.0.1:7103", "127.0.0.1:7104", "127.0.0.1:7105"])
///     .build()?;
/// let guard = redlock.lock("invoice/42").ttl(Duration::from_secs(10)).acquire().await?;
/// // Work, and check `guard.is_valid()` before each step that matters.
/// let released = guard.release().await;
/// assert!(released.is_free());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Redlock {
    handle: Arc<Handle>,
}

impl Redlock {
    pub(crate) fn new(handle: Handle) -> Self {
        Self {
            handle: Arc::new(handle),
        }
    }

    /// A request for the lock of `key`. Nothing happens until its `acquire` or `try_acquire`.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> LockRequest {
        LockRequest::new(Arc::clone(&self.handle), key.as_ref(), None)
    }

    /// A request that takes over a lock which another process acquired and whose token it passed on.
    ///
    /// `acquire` extends the lock to the request's TTL. It fails with
    /// [`ErrorKind::Lost`](crate::ErrorKind::Lost) if too few nodes hold the key with this token. A
    /// request that is dropped before it is decided leaves the lock alone.
    pub fn adopt(&self, key: impl AsRef<[u8]>, token: Token) -> LockRequest {
        LockRequest::new(Arc::clone(&self.handle), key.as_ref(), Some(token))
    }

    /// A request for several locks, all or none. Nothing happens until its `acquire` or `try_acquire`.
    pub fn lock_all<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> MultiLockRequest {
        MultiLockRequest::new(self.lock(""), keys)
    }

    /// A new owner of locks that it can enter again while it holds them.
    pub fn reentrant(&self) -> Reentrant {
        Reentrant::new(&self.handle)
    }

    /// Acquires a lock, does `work` while it is held, and releases it.
    ///
    /// If the lock is lost, or shortly before its validity ends, the work's future is dropped. The
    /// result of finished work is always returned: neither a loss at the same moment nor a failed
    /// release hides it.
    ///
    /// ```no_run
    /// # async fn example(redlock: redlock_client::Redlock) -> Result<(), redlock_client::Error> {
    /// let total = redlock
    ///     .with_lock(redlock.lock("report"), async |scope| {
    ///         scope.check()?;
    ///         Ok::<u32, redlock_client::Error>(7)
    ///     })
    ///     .await??;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`LockRequest::acquire`], and [`ErrorKind::Lost`](crate::ErrorKind::Lost) or
    /// [`ErrorKind::Expired`](crate::ErrorKind::Expired) if the work was dropped.
    ///
    /// # Cancel safety
    /// The work's future is dropped and the lock released in the background.
    pub async fn with_lock<T, F, Fut>(&self, request: LockRequest, work: F) -> Result<T, Error>
    where
        F: FnOnce(Scope) -> Fut,
        Fut: Future<Output = T>,
    {
        scope::with_lock(request, work).await
    }

    /// Releases a lock by its token, on every node.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a bad key,
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) if the client is closed. Failures of nodes,
    /// even of all of them, are in [`Released`].
    ///
    /// # Cancel safety
    /// The release goes on in the background.
    pub async fn release(&self, key: impl AsRef<[u8]>, token: &Token) -> Result<Released, Error> {
        let config = &self.handle.config;
        let key = limits::key(limits::whole_key(&config.key_prefix, key.as_ref()))?;
        let terms = Arc::new(LockTerms::looking(key, self.look_timeout()));
        let token = *token;
        self.handle
            .ask(Duration::ZERO, |answer| Command::ReleaseToken {
                terms,
                token,
                answer,
            })
            .await
    }

    /// What each node holds under a key, in the configured order. For people, not for decisions: it is
    /// out of date when it arrives.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a bad key,
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the client is closed.
    ///
    /// # Cancel safety
    /// Nothing is left behind.
    pub async fn inspect(&self, key: impl AsRef<[u8]>) -> Result<Vec<NodeView>, Error> {
        let config = &self.handle.config;
        let whole = limits::whole_key(&config.key_prefix, key.as_ref());
        let key = Some(limits::key(whole)?);
        let timeout = self.look_timeout();
        let looks = self
            .handle
            .ask(Duration::ZERO, |answer| Command::Look {
                key,
                timeout,
                answer,
            })
            .await?;
        let view = |((look, _), name): ((Look, _), &Arc<str>)| {
            let held = look.token.map(|token| match Token::new(token) {
                Ok(token) => Ok(HeldKey::new(token, look.remaining)),
                Err(error) => Err(Cause::Protocol(error.to_string().into())),
            });
            let answer = look.cause.map_or(held.transpose(), Err);
            NodeView::new(&**name, answer)
        };
        Ok(looks.into_iter().zip(&config.names).map(view).collect())
    }

    /// Connects to the nodes and returns what they are, in the configured order.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the client is closed.
    ///
    /// # Cancel safety
    /// The connections stay.
    pub async fn nodes(&self) -> Result<Vec<NodeStatus>, Error> {
        let timeout = self.look_timeout();
        let looks = self
            .handle
            .ask(Duration::ZERO, |answer| Command::Look {
                key: None,
                timeout,
                answer,
            })
            .await?;
        let status = |((look, server), name): ((Look, Option<Arc<ServerInfo>>), &Arc<str>)| {
            let state = match (look.cause, server) {
                (Some(cause), _) => Err(cause),
                (None, Some(server)) => Ok((*server).clone()),
                (None, None) => Err(Cause::Disconnected),
            };
            NodeStatus::new(&**name, state)
        };
        Ok(looks
            .into_iter()
            .zip(&self.handle.config.names)
            .map(status)
            .collect())
    }

    /// Releases all locks and closes the connections.
    ///
    /// Waits until all releases are done, for two seconds at most. Guards report their loss; later
    /// calls fail with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    ///
    /// # Cancel safety
    /// Closing goes on in the background.
    pub async fn close(&self) {
        self.handle.close().await;
    }

    /// The number of nodes.
    pub fn node_count(&self) -> usize {
        self.handle.config.quorum.nodes()
    }

    /// The number of nodes that are a majority.
    pub fn quorum(&self) -> usize {
        self.handle.config.quorum.needed()
    }

    /// How long a node has to reply to a request other than an attempt at a lock.
    fn look_timeout(&self) -> Duration {
        self.handle.config.connect_timeout
    }
}
