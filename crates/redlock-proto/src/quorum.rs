//! Node numbers, sets of nodes, and the quorum.

/// A node's index in the configured list, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(u8);

impl NodeId {
    /// The node at `index`; `None` if no cluster is that large.
    pub fn new(index: usize) -> Option<Self> {
        u8::try_from(index)
            .ok()
            .filter(|_| index < NODES_MAX)
            .map(Self)
    }

    /// The node's index in the configured list.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    fn bit(self) -> u16 {
        1 << self.0
    }
}

/// A set of nodes.
///
/// ```
/// # use redlock_proto as redlock_client;
/// use redlock_client::{NodeId, NodeSet};
///
/// let mut set = NodeSet::default();
/// let node = NodeId::new(2).unwrap();
/// assert!(set.insert(node));
/// assert!(!set.insert(node), "a node counts once");
/// assert_eq!(set.len(), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct NodeSet(u16);

impl NodeSet {
    /// No node.
    pub(crate) const NONE: Self = Self(0);

    /// The first `n` nodes of a list.
    pub(crate) fn first(n: u8) -> Self {
        Self(u16::try_from((1_u32 << n.min(16)) - 1).unwrap_or(u16::MAX))
    }

    /// Adds a node; false if it was in the set.
    pub fn insert(&mut self, node: NodeId) -> bool {
        let added = !self.contains(node);
        self.0 |= node.bit();
        added
    }

    /// Removes a node; false if it was not in the set.
    pub fn remove(&mut self, node: NodeId) -> bool {
        let removed = self.contains(node);
        self.0 &= !node.bit();
        removed
    }

    /// The nodes of this set that are not in `other`.
    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The nodes of this set and those of `other`.
    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the node is in the set.
    pub fn contains(self, node: NodeId) -> bool {
        self.0 & node.bit() != 0
    }

    /// The number of nodes in the set.
    pub fn len(self) -> usize {
        usize::try_from(self.0.count_ones()).unwrap_or(NODES_MAX)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The nodes in order.
    pub fn iter(self) -> impl Iterator<Item = NodeId> {
        (0..16_u8)
            .map(NodeId)
            .filter(move |node| self.contains(*node))
    }
}

impl FromIterator<NodeId> for NodeSet {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let bits = nodes.into_iter().map(NodeId::bit);
        Self(bits.fold(0, std::ops::BitOr::bitor))
    }
}

impl std::fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(self.iter().map(NodeId::index))
            .finish()
    }
}

/// The number of configured nodes, and of those that are a majority.
///
/// Invariant: the quorum is floor(n/2)+1 of the *configured* nodes, reachable or not, so any two quorums
/// share a node.
///
/// ```
/// # use redlock_proto as redlock_client;
/// use redlock_client::Quorum;
///
/// let quorums: Vec<_> = (1..=7).filter_map(Quorum::of).map(Quorum::needed).collect();
/// assert_eq!(quorums, [1, 2, 2, 3, 3, 4, 4]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Quorum {
    nodes: u8,
}

impl Quorum {
    /// A cluster of `nodes` nodes; `None` for zero or more than [`NODES_MAX`].
    pub fn of(nodes: usize) -> Option<Self> {
        let nodes = u8::try_from(nodes).ok()?;
        (nodes > 0 && usize::from(nodes) <= NODES_MAX).then_some(Self { nodes })
    }

    /// The number of configured nodes.
    pub fn nodes(self) -> usize {
        usize::from(self.nodes)
    }

    /// The number of nodes that are a majority.
    pub fn needed(self) -> usize {
        let needed = self.nodes() / 2 + 1;
        debug_assert!(2 * needed > self.nodes(), "two quorums share a node");
        needed
    }

    /// The number of nodes that may fail while a quorum remains.
    pub fn spare(self) -> usize {
        self.nodes() - self.needed()
    }

    /// All nodes.
    pub fn all(self) -> NodeSet {
        NodeSet::first(self.nodes)
    }
}

/// The most nodes in a cluster. Redlock needs 3 to 9: each further node makes every lock slower. With 16
/// a set of nodes fits in two bytes.
pub const NODES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether every majority of the first `longer` nodes leaves too few of the first `shorter` for a majority.
    fn meet(shorter: usize, longer: usize) -> bool {
        let (small, large) = (Quorum::of(shorter), Quorum::of(longer));
        let (small, large) = (small.expect("a size"), large.expect("a size"));
        let sets = (0..=large.all().0).map(NodeSet);
        let mut majorities = sets.filter(|set| set.len() == large.needed());
        majorities.all(|set| small.all().without(set).len() < small.needed())
    }

    /// docs/growing.md: a client with the list of n nodes and one with a node more are never holders together.
    #[test]
    fn majorities_of_lists_that_differ_by_one_node_meet_and_of_others_need_not() {
        for n in 1..NODES_MAX {
            assert!(meet(n, n + 1), "{n} and {}", n + 1);
        }
        assert!(!meet(3, 5));
        assert!(!meet(5, 7));
    }
}
