//! What a command does to its keys, and what a user may do to keys: read, write, both.

/// A set of what is done to a key. A command that only asks whether there is a key does neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access(u8);

impl Access {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const READ: Self = Self(1);
    pub(crate) const WRITE: Self = Self(2);
    pub(crate) const BOTH: Self = Self(3);

    /// Returns whether all of `other` is in this set.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
