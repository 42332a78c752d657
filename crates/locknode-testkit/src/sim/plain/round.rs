//! One question to all nodes, and who answered what.

use redlock_proto::{NODES_MAX, Time};

/// A set of nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nodes(u16);

/// The votes of the round that runs. Replies carry the number of their round, so that none counts in another.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    number: u32,
    started: Time,
    acks: Nodes,
    refused: Nodes,
    outstanding: Nodes,
    released: Nodes,
    /// The counter that each node told, or accepted since.
    fences: [u64; NODES_MAX],
}

impl Nodes {
    /// The first so many of the list.
    pub(super) fn first(count: usize) -> Self {
        (0..16).take(count).fold(Self(0), |mut nodes, node| {
            nodes.insert(node);
            nodes
        })
    }

    /// One node.
    pub(super) fn one(node: u8) -> Self {
        Self(1_u16.checked_shl(u32::from(node)).unwrap_or(0))
    }

    pub(super) fn insert(&mut self, node: u8) {
        self.0 |= Self::one(node).0;
    }

    pub(super) fn remove(&mut self, node: u8) {
        self.0 &= !Self::one(node).0;
    }

    pub(super) fn len(self) -> usize {
        usize::try_from(self.0.count_ones()).unwrap_or(NODES_MAX)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The nodes in order.
    pub(super) fn iter(self) -> impl Iterator<Item = u8> {
        (0..16_u8).filter(move |node| self.0 & Self::one(*node).0 != 0)
    }
}

impl Round {
    /// The next round, which asks so many nodes. `now` is before the first byte.
    pub(super) fn begin(&mut self, now: Time, nodes: usize, keeps_votes: bool) {
        self.number += 1;
        self.started = now;
        if !keeps_votes {
            self.acks = Nodes::default();
        }
        self.refused = Nodes::default();
        self.outstanding = Nodes::first(nodes);
    }

    /// The next round, in which all nodes are asked to release the lock.
    pub(super) fn begin_release(&mut self, nodes: usize) {
        self.number += 1;
        self.released = Nodes::default();
        self.outstanding = Nodes::first(nodes);
    }

    pub(super) fn acknowledge(&mut self, node: u8, fence: u64) {
        self.outstanding.remove(node);
        self.acks.insert(node);
        self.grants(node, fence);
    }

    /// Notes a node's counter, without a vote.
    pub(super) fn grants(&mut self, node: u8, fence: u64) {
        if let Some(slot) = self.fences.get_mut(usize::from(node)) {
            *slot = fence;
        }
    }

    pub(super) fn release(&mut self, node: u8) {
        self.outstanding.remove(node);
        self.released.insert(node);
    }

    pub(super) fn refuse(&mut self, node: u8) {
        self.outstanding.remove(node);
        self.refused.insert(node);
    }

    pub(super) fn fail(&mut self, node: u8) {
        self.outstanding.remove(node);
    }

    /// Takes the votes of the nodes behind `fence` back and awaits them anew.
    pub(super) fn reopen_lagging(&mut self, fence: u64) -> Nodes {
        let mut lagging = Nodes::default();
        for node in self.acks.iter().filter(|node| self.fence(*node) < fence) {
            lagging.insert(node);
        }
        for node in lagging.iter() {
            self.acks.remove(node);
            self.outstanding.insert(node);
        }
        lagging
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn started(&self) -> Time {
        self.started
    }

    pub(super) fn acks(&self) -> usize {
        self.acks.len()
    }

    pub(super) fn released(&self) -> usize {
        self.released.len()
    }

    pub(super) fn refused(&self) -> usize {
        self.refused.len()
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Whether every node has answered or had its time.
    pub(super) fn is_complete(&self) -> bool {
        self.outstanding.is_empty()
    }

    /// The counter of one node.
    pub(super) fn fence(&self, node: u8) -> u64 {
        self.fences.get(usize::from(node)).copied().unwrap_or(0)
    }

    /// The highest counter of those that granted.
    pub(super) fn highest_fence(&self) -> u64 {
        let fences = self.acks.iter().map(|node| self.fence(node));
        fences.max().unwrap_or(0)
    }

    /// How many of those that granted have exactly this counter.
    pub(super) fn acks_at(&self, fence: u64) -> usize {
        let acks = self.acks.iter();
        acks.filter(|node| self.fence(*node) == fence).count()
    }
}
