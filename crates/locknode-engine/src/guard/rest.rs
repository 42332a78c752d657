//! What the replies of a batch rest on, while it runs.

use super::Need;

/// What the changes of a batch need, and what it saw of changes that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// What the replies so far need.
    pub(crate) need: Need,
    /// What the running command saw rests on this.
    seen: Need,
    /// Keys that it saw so and has not released.
    kept: u32,
}

impl Rest {
    /// The running command has looked at a key of which something is not durable.
    pub(crate) fn saw(&mut self, need: Need) {
        self.seen = self.seen.and(need);
        self.kept += 1;
    }

    /// It has released a key that it saw so.
    pub(crate) const fn released(&mut self) {
        self.kept = self.kept.saturating_sub(1);
    }

    /// Ends the command. A reply tells what was seen, unless all of that was released: what a release tells no crash makes
    /// untrue, or the release itself waits `[L3]` `[G17]`.
    pub(crate) fn end_command(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        if std::mem::take(&mut self.kept) != 0 {
            self.need = self.need.and(seen);
        }
    }
}
