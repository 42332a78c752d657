//! The outcome of a release.

use redlock_proto::{Cause, NodeId, NodeSet, Quorum};

/// The outcome of a release, node by node.
///
/// It is ready as soon as a majority of the nodes is known not to hold the lock. The other nodes are
/// pending; their releases go on in the background.
///
/// ```no_run
/// use redlock_client::ReleaseAnswer;
///
/// # async fn example(guard: redlock_client::Guard) {
/// let released = guard.release().await;
/// if !released.is_free() {
///     for (node, answer) in released.nodes().iter().enumerate() {
///         if let ReleaseAnswer::Unknown(cause) = answer {
///             println!("node {node}: {cause}");
///         }
///     }
/// }
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Released {
    pub(crate) quorum: Quorum,
    pub(crate) confirmed: NodeSet,
    pub(crate) not_held: NodeSet,
    pub(crate) pending: NodeSet,
    pub(crate) causes: Vec<(NodeId, Cause)>,
    pub(crate) is_kept: bool,
}

/// The outcome of a release on one node.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReleaseAnswer {
    /// It deleted the key.
    Confirmed,
    /// It did not hold the key with this token.
    NotHeld,
    /// The client did not wait for its reply.
    Pending,
    /// It could not be reached or did not reply. The client releases the key when the node is back,
    /// unless the TTL has expired by then.
    Unknown(Cause),
}

impl Released {
    /// A release that was sent to no node.
    pub(crate) fn nothing_sent(quorum: Quorum) -> Self {
        Self {
            quorum,
            confirmed: NodeSet::default(),
            not_held: NodeSet::default(),
            pending: NodeSet::default(),
            causes: Vec::new(),
            is_kept: false,
        }
    }

    /// Whether the nodes keep the key until the time of
    /// [`hold_at_least`](crate::LockRequest::hold_at_least) has passed. If so, "confirmed" means that a
    /// node will keep it until then.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The outcome on each node, in the configured order.
    pub fn nodes(&self) -> Vec<ReleaseAnswer> {
        let all = self.quorum.all();
        all.iter().map(|node| self.answer(node)).collect()
    }

    /// The number of nodes that deleted the key.
    pub fn confirmed(&self) -> usize {
        self.confirmed.len()
    }

    /// The number of nodes that did not hold the key: it had expired, or was never granted there.
    pub fn not_held(&self) -> usize {
        self.not_held.len()
    }

    /// The number of nodes whose reply the client did not wait for.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The number of nodes that could not be reached or did not reply.
    pub fn unknown(&self) -> usize {
        self.quorum.nodes() - self.confirmed() - self.not_held() - self.pending()
    }

    /// Whether a majority of the nodes replied that it deleted the key, did not hold it, or keeps it no
    /// longer than [`is_kept`](Self::is_kept) describes.
    pub fn is_settled(&self) -> bool {
        self.confirmed() + self.not_held() >= self.quorum.needed()
    }

    /// Whether a majority of the nodes is known not to hold the lock, so that others can acquire it.
    pub fn is_free(&self) -> bool {
        !self.is_kept && self.is_settled()
    }

    /// Whether a majority of the nodes is known to have deleted the key, so the lock was held to the
    /// end.
    ///
    /// Not every good release is confirmed: nodes that never granted the lock may reply first. Use
    /// [`is_free`](Self::is_free) to learn whether others can acquire the lock.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed() >= self.quorum.needed()
    }

    fn answer(&self, node: NodeId) -> ReleaseAnswer {
        if self.confirmed.contains(node) {
            ReleaseAnswer::Confirmed
        } else if self.not_held.contains(node) {
            ReleaseAnswer::NotHeld
        } else if let Some((_, cause)) = self.causes.iter().find(|(other, _)| *other == node) {
            ReleaseAnswer::Unknown(cause.clone())
        } else if self.pending.contains(node) {
            ReleaseAnswer::Pending
        } else {
            ReleaseAnswer::Unknown(Cause::Disconnected)
        }
    }
}
