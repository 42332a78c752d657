//! The number of a command, under which clients and counters record it.

/// The number of a command: its place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandId(u16);

impl CommandId {
    pub(crate) const fn new(place: u16) -> Self {
        Self(place)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    pub(crate) fn number(self) -> u32 {
        u32::from(self.0)
    }
}
