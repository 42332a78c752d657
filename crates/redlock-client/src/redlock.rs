//! The client that users hold.

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
/// Nothing is sent before the first use; then one task on the caller's tokio runtime does all input and output over
/// one connection per node. It ends when the last clone and the last guard are gone, after releasing what is left
/// to release.
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
/// // Work, and look at `guard.is_valid()` before each step that matters.
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

    /// A lock that is wanted. Nothing happens until the request's `acquire` or `try_acquire`.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> LockRequest {
        LockRequest::new(Arc::clone(&self.handle), key.as_ref(), None)
    }

    /// A lock that another process acquired and whose token came from there: `acquire` takes it over by extending
    /// it to the request's TTL, and fails with [`ErrorKind::Lost`](crate::ErrorKind::Lost) when a majority of the
    /// nodes does not hold it with this token.
    ///
    /// A request that is dropped before it is decided leaves the lock alone.
    pub fn adopt(&self, key: impl AsRef<[u8]>, token: Token) -> LockRequest {
        LockRequest::new(Arc::clone(&self.handle), key.as_ref(), Some(token))
    }

    /// Several locks, all or none. Nothing happens until the request's `acquire` or `try_acquire`.
    pub fn lock_all<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> MultiLockRequest {
        MultiLockRequest::new(self.lock(""), keys)
    }

    /// A new owner of locks that it can enter again while it holds them.
    pub fn reentrant(&self) -> Reentrant {
        Reentrant::new(&self.handle)
    }

    /// Acquires a lock, does `work` while it is held, and releases it.
    ///
    /// When the lock is lost, or shortly before its validity ends, the work's future is dropped. Its result, once
    /// there is one, is always returned: neither a loss at the same moment nor a failing release hides it.
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
    /// [`ErrorKind::Expired`](crate::ErrorKind::Expired) when the work was given up.
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
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the client is closed. What the nodes said, even
    /// that none could be reached, is in the [`Released`].
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

    /// What each node says of a key, in the configured order: for people, not for decisions, since it is the past
    /// when it arrives.
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

    /// Connects to the nodes and says who they are, in the configured order.
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

    /// Releases every lock that is still held, waits until all releases are done or two seconds are over, and
    /// closes the connections. Guards report their loss; whatever is asked afterwards is
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    ///
    /// # Cancel safety
    /// Closing goes on in the background.
    pub async fn close(&self) {
        self.handle.close().await;
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.handle.config.quorum.nodes()
    }

    /// How many of them are a majority.
    pub fn quorum(&self) -> usize {
        self.handle.config.quorum.needed()
    }

    /// How long a node has to answer what is no attempt at a lock: looking is worth a connection's time.
    fn look_timeout(&self) -> Duration {
        self.handle.config.connect_timeout
    }
}
