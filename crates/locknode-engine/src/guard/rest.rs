//! What the replies of a batch rest on, while it runs.

use super::Need;
use crate::key_hash::KeyHash;

/// What the changes of a batch need, and what it saw of changes that are not durable yet.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    /// What the replies so far need.
    pub(crate) need: Need,
    /// A script runs: what it leaves is judged when it ends, by its journal.
    pub(crate) is_provisional: bool,
    /// None as long as all is durable that was looked at.
    seen: Option<Box<Seen>>,
}

/// What the running command has looked at and is not durable yet.
#[derive(Debug, Default)]
struct Seen {
    /// All of it rests on this.
    need: Need,
    /// Keys that the command has not released.
    kept: Vec<KeyHash>,
}

impl Rest {
    /// The running command has looked at a key of which something is not durable.
    pub(crate) fn saw(&mut self, need: Need, key: KeyHash) {
        let seen = self.seen.get_or_insert_default();
        seen.need = seen.need.and(need);
        seen.kept.push(key);
    }

    /// The running command has looked at the whole table, in which something is not durable.
    pub(crate) fn saw_all(&mut self, need: Need) {
        self.need = self.need.and(need);
    }

    /// It has released a key that it saw so.
    #[inline]
    pub(crate) fn released(&mut self, key: KeyHash) {
        if let Some(seen) = &mut self.seen {
            seen.kept.retain(|kept| *kept != key);
        }
    }

    /// Ends the command. A reply tells what was seen, unless all of that was released: what a release tells no crash makes
    /// untrue, or the release itself waits `[L3]` `[G17]`.
    pub(crate) fn end_command(&mut self) {
        if let Some(seen) = &mut self.seen {
            if !seen.kept.is_empty() {
                self.need = self.need.and(seen.need);
            }
            seen.kept.clear();
            seen.need = Need::NONE;
        }
    }
}
