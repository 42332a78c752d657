//! What must be durable before the replies of a batch may be sent.

/// What the replies of a batch depend on.
///
/// [`Batch::finish`](crate::Batch::finish) returns it, and
/// [`Guard::is_durable`](crate::Guard::is_durable) checks it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "replies must not be sent before what they depend on is durable"]
pub struct Need {
    /// The version of the state (horizon, TTL in use and ceiling); 0 for none.
    pub(super) state: u64,
    /// The number of the last log record; 0 for none.
    pub(super) records: u64,
}

impl Need {
    /// Nothing: the replies may be sent at once.
    pub const NONE: Self = Self {
        state: 0,
        records: 0,
    };

    /// Returns whether the replies may be sent at once.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.state == 0 && self.records == 0
    }

    /// Returns what both need together.
    pub fn and(self, other: Self) -> Self {
        Self {
            state: self.state.max(other.state),
            records: self.records.max(other.records),
        }
    }
}
