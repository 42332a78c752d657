//! Keys spread over several quorums, and the way from one such layout to another.
//!
//! ```text
//!   clients, over time   old   old   both   both   new   new
//!   a key's quorums      A     A     A, B   A, B   B     B
//! ```
//!
//! Invariant: two clients whose layouts may be in use at one time have a quorum in common for each key.
//! So they exclude each other there, whatever happens elsewhere. "Old" and "new" have none, which is why
//! no client may use the new layout alone before the last one that uses the old layout alone is gone.

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use redlock_proto::{FencingToken, RenewPolicy, RetryPolicy};

use crate::error::Error;
use crate::guard::Guard;
use crate::multi::{MultiGuard, acquire_in_order};
use crate::redlock::Redlock;
use crate::released::Released;
use crate::request::{LockRequest, options};

/// Several clusters of lock nodes, over which keys are spread. Cloning is cheap and shares connections.
///
/// Each key belongs to one of them, by rendezvous hashing of the key and the names: where a cluster is
/// added or removed, only the keys that go to it or were on it belong to another one than before. All
/// clients must have the same names for the same clusters.
///
/// ```no_run
/// use redlock_client::{Redlock, Shards};
///
/// # async fn example() -> Result<(), redlock_client::Error> {
/// let cluster = |nodes: [&str; 3]| Redlock::builder().nodes(nodes).build();
/// let shards = Shards::new([
///     ("blue", cluster(["10.0.1.1", "10.0.1.2", "10.0.1.3"])?),
///     ("green", cluster(["10.0.2.1", "10.0.2.2", "10.0.2.3"])?),
/// ])?;
/// let guard = shards.lock("invoice/42").acquire().await?;
/// guard.release().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Shards {
    layout: Layout,
    /// The layout to which clients move.
    next: Option<Layout>,
}

/// The clusters by name.
type Layout = Vec<(Arc<str>, Redlock)>;

impl Shards {
    /// Spreads keys over these clusters.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) for no clusters, names that are empty or occur
    /// twice, a node that is in two of them, or key prefixes that differ.
    pub fn new<N: Into<Arc<str>>>(
        clusters: impl IntoIterator<Item = (N, Redlock)>,
    ) -> Result<Self, Error> {
        let clusters = clusters.into_iter();
        let layout = clusters.map(|(name, redlock)| (name.into(), redlock));
        let shards = Self {
            layout: layout.collect(),
            next: None,
        };
        shards.check().map(|()| shards)
    }

    /// Holds each lock in this layout and in the `next` one, while clients move from one to the other.
    ///
    /// The move has three steps, each of which a client takes by being started anew:
    ///
    /// 1. From the old layout to both: `old.moving_to(new)`. Wait until the last client that used the
    ///    old layout alone has ended, and its locks have expired or were released.
    /// 2. From both to the new layout alone.
    /// 3. When the last client that used both has ended, the nodes of the old layout can go.
    ///
    /// A key whose cluster has the same name in both is locked there once. Any other is locked in the
    /// old cluster first and then in the new one, and is held while both hold it. It has no fencing
    /// token: the counters of two clusters do not follow one order.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if a cluster of the same name has other nodes, a
    /// node is in two clusters, key prefixes differ, or one of the two is a move already.
    pub fn moving_to(self, next: Self) -> Result<Self, Error> {
        if self.next.is_some() || next.next.is_some() {
            return Err(Error::config("a move has two layouts: finish one first"));
        }
        let shards = Self {
            layout: self.layout,
            next: Some(next.layout),
        };
        shards.check().map(|()| shards)
    }

    /// A request for the lock of `key`. Nothing happens until its `acquire` or `try_acquire`.
    pub fn lock(&self, key: impl AsRef<[u8]>) -> ShardsRequest {
        let key = key.as_ref();
        let route: Vec<Redlock> = self.route(key).into_iter().cloned().collect();
        let [first, ..] = &route[..] else {
            unreachable!("there is at least one cluster");
        };
        ShardsRequest {
            key: key.into(),
            each: first.lock(key),
            route,
        }
    }

    /// The name of the cluster that a key belongs to, in the layout to which clients move if they do.
    pub fn name_of(&self, key: impl AsRef<[u8]>) -> &str {
        let layout = self.next.as_ref().unwrap_or(&self.layout);
        let key = self.whole_key(key.as_ref());
        owner(layout, &key).map_or("", |(name, _)| name)
    }

    /// The clusters that hold the lock of a key, in the order in which they are asked.
    fn route(&self, key: &[u8]) -> Vec<&Redlock> {
        let key = self.whole_key(key);
        let old = owner(&self.layout, &key);
        let new = self.next.as_ref().and_then(|next| owner(next, &key));
        let new = new.filter(|(new, _)| old.is_none_or(|(old, _)| old != new));
        let route = old.into_iter().chain(new);
        route.map(|(_, redlock)| redlock).collect()
    }

    fn whole_key(&self, key: &[u8]) -> Vec<u8> {
        [&*self.prefix(), key].concat()
    }

    fn check(&self) -> Result<(), Error> {
        let mut nodes_of: HashMap<&str, &[Arc<str>]> = HashMap::new();
        let mut cluster_of: HashMap<&str, &str> = HashMap::new();
        let all = [Some(&self.layout), self.next.as_ref()];
        for layout in all.into_iter().flatten() {
            let mut seen = HashSet::new();
            for (name, redlock) in layout {
                let config = redlock.config();
                if name.is_empty() || !seen.insert(name) {
                    return Err(Error::config("each cluster has a name of its own"));
                }
                if config.key_prefix != self.prefix() {
                    return Err(Error::config(
                        "the clusters have different key prefixes: a key would have two names",
                    ));
                }
                if nodes_of
                    .insert(name, &config.names)
                    .is_some_and(|it| it != config.names)
                {
                    return Err(Error::config(format!(
                        "the cluster {name} has other nodes in the new layout: give it a new name"
                    )));
                }
                for node in &config.names {
                    let other = cluster_of.insert(node, name);
                    if let Some(other) = other.filter(|other| *other != &**name) {
                        return Err(Error::config(format!(
                            "{node} is a node of the clusters {other} and {name}: it belongs to one"
                        )));
                    }
                }
            }
            if seen.is_empty() {
                return Err(Error::config("no clusters: configure at least one"));
            }
        }
        Ok(())
    }

    /// The prefix of all keys, which all clusters have.
    fn prefix(&self) -> Box<[u8]> {
        let first = self.layout.first();
        first.map_or_else(Box::default, |(_, it)| it.config().key_prefix.clone())
    }
}

/// The cluster of a layout to which a key belongs: the one with the highest score.
fn owner<'a>(layout: &'a Layout, key: &[u8]) -> Option<&'a (Arc<str>, Redlock)> {
    let score = |(name, _): &&(Arc<str>, Redlock)| (score(name.as_bytes(), key), Arc::clone(name));
    layout.iter().max_by_key(score)
}

/// How much a cluster wants a key: FNV-1a of name, 255 and key, mixed so that each bit depends on all.
/// It is the same for ever and everywhere: clients that disagreed would not exclude each other.
fn score(name: &[u8], key: &[u8]) -> u64 {
    let bytes = name.iter().chain(&[0xff]).chain(key);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// A request for a lock of [`Shards`].
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until `acquire` or `try_acquire`"]
pub struct ShardsRequest {
    key: Box<[u8]>,
    each: LockRequest,
    /// One cluster, or the old one and the new one.
    route: Vec<Redlock>,
}

impl ShardsRequest {
    options!(each);

    /// Tries once. `None` means that another client holds the lock.
    ///
    /// # Errors
    /// Those of [`LockRequest::try_acquire`].
    ///
    /// # Cancel safety
    /// What was granted is released in the background.
    pub async fn try_acquire(mut self) -> Result<Option<ShardsGuard>, Error> {
        self.each = self.each.retry(RetryPolicy::tries(1));
        self.acquire().await.map(Some).or_else(Error::none_if_busy)
    }

    /// Tries until it acquires the lock or the retry policy ends.
    ///
    /// # Errors
    /// Those of [`LockRequest::acquire`], and [`ErrorKind::Expired`](crate::ErrorKind::Expired) if the
    /// lock expired in the old layout before it was acquired in the new one.
    ///
    /// # Cancel safety
    /// What was granted is released in the background.
    pub async fn acquire(self) -> Result<ShardsGuard, Error> {
        let Self { key, each, route } = self;
        let requests = route
            .iter()
            .map(|redlock| each.clone().on(redlock.handle(), &key));
        let guards = acquire_in_order(requests.collect()).await?;
        Ok(ShardsGuard { guards })
    }
}

/// A held lock of [`Shards`]. Dropping it releases it in the background.
#[derive(Debug)]
#[must_use = "a guard that is dropped releases its lock at once"]
pub struct ShardsGuard {
    guards: MultiGuard,
}

impl ShardsGuard {
    /// The lock's fencing token, as [`Guard::fencing`]; `None` while it is held in two layouts.
    pub fn fencing(&self) -> Option<FencingToken> {
        match self.guards() {
            [only] => only.fencing(),
            _ => None,
        }
    }

    /// The lock in each cluster that it is held in: the old layout's first.
    pub fn guards(&self) -> &[Guard] {
        self.guards.guards()
    }

    /// How long the lock is certain to be held, as [`Guard::validity`].
    pub fn validity(&self) -> Duration {
        self.guards.validity()
    }

    /// Whether the lock is held now.
    pub fn is_valid(&self) -> bool {
        self.guards.is_valid()
    }

    /// Gives the lock a new TTL, as [`Guard::extend`].
    ///
    /// # Errors
    /// Those of [`Guard::extend`].
    ///
    /// # Cancel safety
    /// The extension goes on in the background and takes effect when it succeeds.
    pub async fn extend(&self, ttl: Duration) -> Result<(), Error> {
        self.guards.extend(ttl).await
    }

    /// Releases the lock. The outcomes are those of [`guards`](Self::guards).
    ///
    /// # Cancel safety
    /// The release goes on in the background.
    pub async fn release(self) -> Vec<Released> {
        self.guards.release().await
    }

    /// Resolves when the lock is lost, or shortly before its validity ends.
    ///
    /// # Cancel safety
    /// Safe to drop and to call again.
    pub async fn lost(&self) -> Error {
        self.guards.lost().await
    }
}
