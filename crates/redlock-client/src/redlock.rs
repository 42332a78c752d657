//! The client.

use std::sync::Arc;
use std::time::Duration;

use redlock_proto::{Cause, LockTerms, Look, ServerInfo, Token};
use tokio::sync::oneshot;

use crate::error::Error;
use crate::handle::Handle;
use crate::inbox::{Command, Config, Looks};
use crate::limits;
use crate::multi::MultiLockRequest;
use crate::node_view::{Forced, HeldKey, NodeForced, NodeStatus, NodeView};
use crate::reentrant::Reentrant;
use crate::released::Released;
use crate::request::LockRequest;

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

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn config(&self) -> &Config {
        &self.handle.config
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
        let terms = Arc::new(LockTerms::looking(
            self.whole_key(key)?,
            self.look_timeout(),
        ));
        let token = *token;
        let command = |answer| Command::ReleaseToken {
            terms,
            token,
            answer,
        };
        self.handle.ask(command).await
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
        let view = |name: &str, look: Look, _| NodeView::new(name, held_key(look));
        self.look(Some(self.whole_key(key)?), view).await
    }

    /// Releases a key on every node, no matter who holds it, and returns who held it, in the configured order.
    ///
    /// The holder is not told: it loses the lock when it next extends it, and goes on until then. Its
    /// fencing token is lower than the highest that a majority of the nodes returns, so a resource
    /// that is told that one turns the holder away.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for a bad key,
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the client is closed.
    ///
    /// # Cancel safety
    /// Nodes that were asked release the key.
    pub async fn force_release(&self, key: impl AsRef<[u8]>) -> Result<Vec<NodeForced>, Error> {
        let (key, timeout) = (self.whole_key(key)?, self.look_timeout());
        let command = |answer| Command::Force {
            key,
            timeout,
            answer,
        };
        let forced = |name: &str, look: Look, _| {
            let (was_held, fencing) = (look.was_freed, look.counter);
            NodeForced {
                address: name.to_owned(),
                answer: held_key(look).map(|holder| Forced {
                    was_held,
                    holder,
                    fencing,
                }),
            }
        };
        self.looks(command, forced).await
    }

    /// Connects to the nodes and returns what they are, in the configured order.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) when the client is closed.
    ///
    /// # Cancel safety
    /// The connections stay.
    pub async fn nodes(&self) -> Result<Vec<NodeStatus>, Error> {
        let status = |name: &str, look: Look, server: Option<Arc<ServerInfo>>| {
            let state = match (look.cause, server) {
                (Some(cause), _) => Err(cause),
                (None, Some(server)) => Ok((*server).clone()),
                (None, None) => Err(Cause::Disconnected),
            };
            NodeStatus::new(name, state)
        };
        self.look(None, status).await
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

    /// Asks every node about a key, or only who it is, and passes what each replied to `view`.
    async fn look<V>(
        &self,
        key: Option<Box<[u8]>>,
        view: impl Fn(&str, Look, Option<Arc<ServerInfo>>) -> V,
    ) -> Result<Vec<V>, Error> {
        let timeout = self.look_timeout();
        let command = |answer| Command::Look {
            key,
            timeout,
            answer,
        };
        self.looks(command, view).await
    }

    /// Asks every node, and passes what each replied to `view`.
    async fn looks<V>(
        &self,
        command: impl FnOnce(oneshot::Sender<Looks>) -> Command,
        view: impl Fn(&str, Look, Option<Arc<ServerInfo>>) -> V,
    ) -> Result<Vec<V>, Error> {
        let looks = self.handle.ask(command).await?;
        let names = &self.handle.config.names;
        let replies = looks.into_iter().zip(names);
        Ok(replies
            .map(|((look, server), name)| view(name, look, server))
            .collect())
    }

    /// The key as the nodes see it, if it is valid.
    fn whole_key(&self, key: impl AsRef<[u8]>) -> Result<Box<[u8]>, Error> {
        let prefix = &self.handle.config.key_prefix;
        limits::key(limits::whole_key(prefix, key.as_ref()))
    }

    /// How long a node has to reply to a request other than an attempt at a lock.
    fn look_timeout(&self) -> Duration {
        self.handle.config.connect_timeout
    }
}

/// What a node said of a key, or why it did not.
fn held_key(look: Look) -> Result<Option<HeldKey>, Cause> {
    match (look.cause, look.token) {
        (Some(cause), _) => Err(cause),
        (None, None) => Ok(None),
        (None, Some(token)) => match Token::new(token) {
            Ok(token) => Ok(Some(HeldKey {
                label: look.label,
                held_for: look.held_for,
                ..HeldKey::new(token, look.remaining)
            })),
            Err(error) => Err(Cause::Protocol(error.to_string().into())),
        },
    }
}
