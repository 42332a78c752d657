//! What the nodes said to a release.

use std::sync::Arc;

use crate::cause::Cause;
use crate::quorum::{NodeId, NodeSet, Quorum};

/// The outcome of a release, node by node.
///
/// It is there as soon as a majority of the nodes is known not to hold the lock any more; the others are told in
/// the background and count as pending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Released {
    nodes: Arc<[ReleaseAnswer]>,
    needed: usize,
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
        causes: &[(NodeId, Cause)],
    ) -> Self {
        let answer = |node: NodeId| {
            if confirmed.contains(node) {
                ReleaseAnswer::Confirmed
            } else if not_held.contains(node) {
                ReleaseAnswer::NotHeld
            } else if let Some((_, cause)) = causes.iter().find(|(other, _)| *other == node) {
                ReleaseAnswer::Unknown(cause.clone())
            } else if pending.contains(node) {
                ReleaseAnswer::Pending
            } else {
                ReleaseAnswer::Unknown(Cause::Disconnected)
            }
        };
        Self {
            nodes: quorum.all().iter().map(answer).collect(),
            needed: quorum.needed(),
            is_kept: false,
        }
    }

    /// A release that reached nobody.
    pub(crate) fn nobody_told(quorum: Quorum) -> Self {
        let nobody = NodeSet::default();
        Self::new(quorum, nobody, nobody, nobody, &[])
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
    pub fn nodes(&self) -> &[ReleaseAnswer] {
        &self.nodes
    }

    /// How many nodes deleted the key.
    pub fn confirmed(&self) -> usize {
        self.count(|answer| *answer == ReleaseAnswer::Confirmed)
    }

    /// How many nodes did not hold it: it had expired, or was never granted there.
    pub fn not_held(&self) -> usize {
        self.count(|answer| *answer == ReleaseAnswer::NotHeld)
    }

    /// How many nodes' answers were not waited for.
    pub fn pending(&self) -> usize {
        self.count(|answer| *answer == ReleaseAnswer::Pending)
    }

    /// How many nodes could not be told or did not answer.
    pub fn unknown(&self) -> usize {
        self.count(|answer| matches!(answer, ReleaseAnswer::Unknown(_)))
    }

    /// Whether a majority of the nodes is known not to hold the lock any more, so that others can have it.
    pub fn is_free(&self) -> bool {
        !self.is_kept && self.confirmed() + self.not_held() >= self.needed
    }

    /// Whether a majority of the nodes is known to have deleted the key: the lock was held to the end. Not every good
    /// release is: the answers of nodes that never granted the lock may come first. Whether others can have the lock
    /// is what [`is_free`](Self::is_free) says.
    pub fn is_confirmed(&self) -> bool {
        self.confirmed() >= self.needed
    }

    fn count(&self, is: impl Fn(&ReleaseAnswer) -> bool) -> usize {
        self.nodes.iter().filter(|answer| is(answer)).count()
    }
}
