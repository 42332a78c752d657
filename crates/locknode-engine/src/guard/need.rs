//! What has to be durable before a batch's replies may leave.

/// What the replies of a batch rest on; get it from [`Batch::finish`](crate::Batch::finish), ask
/// [`Guard::is_durable`](crate::Guard::is_durable).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "replies must not leave before what they rest on is durable"]
pub struct Need {
    /// The version of the state: horizon, TTL in use and ceiling; 0 for none.
    pub(super) state: u64,
    /// The number of the last record of the log; 0 for none.
    pub(super) records: u64,
}

impl Need {
    /// Nothing: the replies may leave at once.
    pub const NONE: Self = Self {
        state: 0,
        records: 0,
    };

    /// Whether the replies may leave at once.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.state == 0 && self.records == 0
    }

    /// What both need together.
    pub fn and(self, other: Self) -> Self {
        Self {
            state: self.state.max(other.state),
            records: self.records.max(other.records),
        }
    }
}
