//! What the replies of a batch depend on, collected while it runs.

use super::Need;
use crate::key_hash::KeyHash;

/// What the changes of a batch need, and which changes not yet durable it has seen.
#[derive(Debug, Default)]
pub(crate) struct BatchNeeds {
    /// What the replies so far need.
    pub(crate) need: Need,
    /// Whether a script is running: its journal requests permits for what it leaves at the end.
    pub(crate) is_provisional: bool,
    /// `None` while everything seen is durable.
    seen: Option<Box<Seen>>,
}

/// What the running command has seen that is not yet durable.
#[derive(Debug, Default)]
struct Seen {
    /// What all of it depends on.
    need: Need,
    /// The keys that the command has not released.
    kept: Vec<KeyHash>,
}

impl BatchNeeds {
    /// Notes that the running command saw a key with changes that are not yet durable.
    pub(crate) fn saw(&mut self, need: Need, key: KeyHash) {
        let seen = self.seen.get_or_insert_default();
        seen.need = seen.need.and(need);
        seen.kept.push(key);
    }

    /// Notes that the running command saw the whole table, which has changes that are not yet
    /// durable.
    pub(crate) fn saw_all(&mut self, need: Need) {
        self.need = self.need.and(need);
    }

    /// Notes that the command released a key.
    #[inline]
    pub(crate) fn released(&mut self, key: KeyHash) {
        if let Some(seen) = &mut self.seen {
            seen.kept.retain(|kept| *kept != key);
        }
    }

    /// Ends the command.
    ///
    /// Its reply depends on what it saw, unless it released all those keys: a crash cannot make the
    /// reply to a release untrue, or else the release itself waits `[L3]` `[G17]`.
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
