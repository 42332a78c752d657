//! What the rounds of both models have in common: three nodes, one connection to each.

use redlock_proto::round::{RoundId, Vote};
use redlock_proto::{NodeId, Quorum};

pub(crate) const NODES: usize = 3;

/// Of the only connection to each node.
pub(crate) const INCARNATION: u32 = 1;

pub(crate) fn id(node: usize) -> NodeId {
    NodeId::new(node).expect("one of three")
}

pub(crate) fn quorum() -> Quorum {
    Quorum::of(NODES).expect("three nodes")
}

pub(crate) fn vote(round: RoundId, node: usize) -> Vote {
    Vote {
        round,
        node: id(node),
        incarnation: INCARNATION,
    }
}
