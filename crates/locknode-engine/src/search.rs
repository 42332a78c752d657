//! A KEYS between two of its turns.

/// What it has found, and where it goes on.
#[derive(Debug, Default)]
pub(crate) struct Search {
    /// The next sub-table.
    pub(crate) table: usize,
    /// The keys found so far, as elements of the reply.
    pub(crate) found: Vec<u8>,
    pub(crate) count: usize,
}

impl Search {
    /// Returns how many bytes it keeps.
    pub(crate) const fn size(&self) -> usize {
        self.found.capacity()
    }
}
