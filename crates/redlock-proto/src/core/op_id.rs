//! The name of an operation.

/// Which operation; never used again for another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OpId {
    pub(super) slot: u32,
    pub(super) generation: u32,
}

impl OpId {
    /// The place of the operation in a table; free again for another when this one is over.
    pub fn slot(self) -> usize {
        usize::try_from(self.slot).unwrap_or(usize::MAX)
    }
}
