//! What the replies of a batch rest on, while it runs.

use super::Need;
use crate::keyspace::KeyHash;

/// What the changes of a batch need, and what it saw of changes that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// What the replies so far need.
    pub(crate) need: Need,
    /// What the running command saw rests on this.
    seen: Need,
    /// Keys that it saw so and has not released.
    kept: Vec<KeyHash>,
    /// A script runs: what it leaves is judged when it ends, by its journal.
    pub(crate) is_provisional: bool,
}

impl Rest {
    /// The running command has looked at a key of which something is not durable.
    pub(crate) fn saw(&mut self, need: Need, key: KeyHash) {
        self.seen = self.seen.and(need);
        self.kept.push(key);
    }

    /// The running command has looked at the whole table, in which something is not durable.
    pub(crate) fn saw_all(&mut self, need: Need) {
        self.need = self.need.and(need);
    }

    /// It has released a key that it saw so.
    #[inline]
    pub(crate) fn released(&mut self, key: KeyHash) {
        if !self.kept.is_empty() {
            self.kept.retain(|kept| *kept != key);
        }
    }

    /// Ends the command. A reply tells what was seen, unless all of that was released: what a release tells no crash makes
    /// untrue, or the release itself waits `[L3]` `[G17]`.
    pub(crate) fn end_command(&mut self) {
        let seen = std::mem::take(&mut self.seen);
        if !self.kept.is_empty() {
            self.kept.clear();
            self.need = self.need.and(seen);
        }
    }
}
