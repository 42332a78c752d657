//! An event and its place in the order of a world.

use std::cmp::Ordering;

use crate::sim::world::Event;

/// An event and when it is due.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) at: u64,
    pub(crate) place: Place,
    pub(crate) event: Event,
}

/// Its place among those that are due at the same moment: what has waited comes first, in the order in which it came, then the
/// others in the order in which they were pushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// When it was due at first.
    pub(crate) since: u64,
    pub(crate) seq: u64,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.place) == (other.at, other.place)
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    /// The earliest is the greatest, which is what a heap gives first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.place).cmp(&(self.at, self.place))
    }
}
