//! Who wants to know that a key has changed: those who watch it, cache it or subscribed to its events.
//!
//! ```text
//!  Shard --records a change, if anybody wants to know--> Shard::changes
//!  end of the command, or of a slice of the sweep -----> Observers::report --> mailboxes
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::client::Clients;
#[cfg(feature = "compat")]
use crate::watches::Watches;

/// All observers of a node.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// How many watches, subscriptions to events and tracking clients there are.
    interests: AtomicUsize,
    #[cfg(feature = "compat")]
    pub(crate) watches: Watches,
}

/// One change of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyChange {
    pub(crate) db: u8,
    /// Empty when all keys went.
    pub(crate) key: Box<[u8]>,
    pub(crate) kind: ChangeKind,
}

/// What happened to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    /// It did not exist before.
    Created,
    /// It has another value, or the same one set again.
    Written,
    /// Its deadline was set, moved or removed.
    DeadlineMoved,
    /// A command removed it.
    Removed,
    /// Its deadline passed, as a command or the sweep has seen.
    Expired,
    /// Every key of its database was removed, or of all if `is_all`.
    Cleared { is_all: bool },
}

/// What led to a change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cause {
    /// The command's name in lower case; `None` for the sweep.
    pub(crate) command: Option<&'static str>,
    /// The client that sent it.
    pub(crate) client: Option<u64>,
}

impl Observers {
    /// Returns whether changes are recorded.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        cfg!(feature = "compat") && self.interests.load(Ordering::Relaxed) != 0
    }

    /// Notes one interest more: from now on changes are recorded.
    pub(crate) fn add_interest(&self) {
        self.interests.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes one interest less.
    pub(crate) fn remove_interest(&self) {
        self.interests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Tells everyone who wants to know of the changes, in their order.
    #[cold]
    pub(crate) fn report(&self, changes: Vec<KeyChange>, cause: Cause, clients: &Clients) {
        for change in changes {
            #[cfg(feature = "compat")]
            self.watches.report(&change);
            let _ = (&change, cause, clients);
        }
    }
}
