//! What the nodes said to a release.

use redlock_proto::{Cause, NodeId, NodeSet, Quorum};

/// The outcome of a release, node by node.
///
/// It is there as soon as a majority of the nodes is known not to hold the lock any more; the others are told in
/// the background and count as pending.
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
    quorum: Quorum,
    confirmed: NodeSet,
    not_held: NodeSet,
    pending: NodeSet,
    causes: Vec<(NodeId, Cause)>,
    is_kept: bool,
}

/// What one node said to a release.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReleaseAnswer {
    /// It deleted the key.
    Confirmed,
    /// It did not hold the key with this token.
    NotHeld,
    /// Its answer was not waited for.
    Pending,
    /// It could not be told, or did not answer. It will be told when it is back, if that is before the TTL ends.
    Unknown(Cause),
}

impl Released {
    pub(crate) fn new(
        quorum: Quorum,
        confirmed: NodeSet,
        not_held: NodeSet,
        pending: NodeSet,
        causes: Vec<(NodeId, Cause)>,
    ) -> Self {
        Self {
            quorum,
            confirmed,
            not_held,
            pending,
            causes,
            is_kept: false,
        }
    }

    /// A release that reached nobody.
    pub(crate) fn nobody_told(quorum: Quorum) -> Self {
        let nobody = NodeSet::default();
        Self::new(quorum, nobody, nobody, nobody, Vec::new())
    }

    pub(crate) fn set_kept(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Whether the key stays on the nodes until the time of
    /// [`hold_at_least`](crate::LockRequest::hold_at_least) is over; then confirmed means that a node will keep it
    /// until then.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// What each node said, in the configured order.
    pub fn nodes(&self) -> Vec<ReleaseAnswer> {
        let all = self.quorum.all();
        all.iter().map(|node| self.answer(node)).collect()
    }

    /// How many nodes deleted the key.
    pub fn confirmed(&self) -> usize {
        self.confirmed.len()
    }

    /// How many nodes did not hold it: it had expired, or was never granted there.
    pub fn not_held(&self) -> usize {
        self.not_held.len()
    }

    /// How many nodes' answers were not waited for.
    pub fn pending(&self) -> usize {
        self.count(&ReleaseAnswer::Pending)
    }

    /// How many nodes could not be told or did not answer.
    pub fn unknown(&self) -> usize {
        self.quorum.nodes() - self.confirmed() - self.not_held() - self.pending()
    }

    /// Whether a majority of the nodes answered: deleted the key, did not hold it, or will keep it no longer than
    /// [`is_kept`](Self::is_kept) says.
    pub fn is_settled(&self) -> bool {
        self.confirmed() + self.not_held() >= self.quorum.needed()
    }

    /// Whether a majority of the nodes is known not to hold the lock any more, so that others can have it.
    pub fn is_free(&self) -> bool {
        !self.is_kept && self.is_settled()
    }

    /// Whether a majority of the nodes is known to have deleted the key: the lock was held to the end. Not every good
    /// release is: the answers of nodes that never granted the lock may come first. Whether others can have the lock
    /// is what [`is_free`](Self::is_free) says.
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

    fn count(&self, wanted: &ReleaseAnswer) -> usize {
        let all = self.quorum.all();
        all.iter()
            .filter(|node| self.answer(*node) == *wanted)
            .count()
    }
}
