//! Who wants to know that a key has changed: those who watch it, cache it or subscribed to its events.
//!
//! ```text
//!  Shard --records a change, if anybody wants to know--> Shard::changes
//!  end of the command, or of a slice of the sweep -----> Observers::report --> mailboxes
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::client::Clients;
#[cfg(feature = "compat")]
use crate::monitors::Monitors;
#[cfg(feature = "compat")]
use crate::notifications::Notifications;
#[cfg(feature = "compat")]
use crate::tracking::Tracking;
#[cfg(feature = "compat")]
use crate::watches::Watches;

/// All observers of a node.
#[derive(Debug, Default)]
pub(crate) struct Observers {
    /// How many watches, subscriptions to events and tracking clients there are.
    interests: AtomicUsize,
    #[cfg(feature = "compat")]
    pub(crate) notifications: Notifications,
    #[cfg(feature = "compat")]
    pub(crate) watches: Watches,
    #[cfg(feature = "compat")]
    pub(crate) monitors: Monitors,
    #[cfg(feature = "compat")]
    pub(crate) tracking: Tracking,
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
    /// Its deadline was set or moved.
    DeadlineMoved,
    /// Its deadline was removed.
    DeadlineRemoved,
    /// A command removed it.
    Removed,
    /// Its deadline passed, as a command or the sweep has seen.
    Expired,
    /// Every key of its database was removed, or of all if `is_all`.
    Cleared { is_all: bool },
    /// It was read and is missing, which changes nothing; only events tell of it.
    Missed,
    /// Nothing: a tracking client has read it. A script may set a key and read it, and then the
    /// client wants to know of the changes after that, so reads keep their place among the changes.
    #[cfg(feature = "compat")]
    Read,
}

/// What led to a change.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "compat"), expect(dead_code, reason = "no observers"))]
pub(crate) struct Cause {
    /// The command's name in lower case; `None` for the sweep.
    pub(crate) command: Option<&'static str>,
    /// The client that sent it.
    pub(crate) client: Option<u64>,
}

/// What CLIENT LIST and CLIENT TRACKINGINFO show of a tracking client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracked {
    pub(crate) redirect: u64,
    pub(crate) is_broadcast: bool,
    /// An invalidation could not be redirected, because that client is gone.
    pub(crate) is_broken: bool,
}

/// The figures of INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TrackingTotals {
    pub(crate) clients: usize,
    pub(crate) keys: usize,
    /// Pairs of a key and a client.
    pub(crate) items: usize,
    pub(crate) prefixes: usize,
}

impl Observers {
    /// Returns whether changes are recorded.
    #[inline]
    pub(crate) fn are_there(&self) -> bool {
        cfg!(feature = "compat") && self.interests.load(Ordering::Relaxed) != 0
    }

    /// Notes one interest more: from now on changes are recorded.
    #[cfg(feature = "compat")]
    pub(crate) fn add_interest(&self) {
        self.interests.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes one interest less.
    #[cfg(feature = "compat")]
    pub(crate) fn remove_interest(&self) {
        self.interests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts the subscriptions to keyspace events, or no longer does; called when either the
    /// subscriptions or the published events have changed.
    #[cfg(feature = "compat")]
    pub(crate) fn settle_notifications(&self) {
        let mut is_counted = self.notifications.is_counted.lock();
        let wants = self.notifications.wants_changes();
        match (std::mem::replace(&mut *is_counted, wants), wants) {
            (false, true) => self.add_interest(),
            (true, false) => self.remove_interest(),
            _ => {}
        }
    }

    /// Tells everyone who wants to know of the changes, in their order.
    #[cfg(feature = "compat")]
    #[cold]
    pub(crate) fn report(&self, changes: Vec<KeyChange>, cause: Cause, clients: &Clients) {
        for change in changes {
            if change.kind != ChangeKind::Missed {
                self.tracking.report(&change, cause, clients);
            }
            if change.kind != ChangeKind::Read {
                self.notifications.report(&change, cause, clients);
            }
            if !matches!(change.kind, ChangeKind::Missed | ChangeKind::Read) {
                self.watches.report(&change);
            }
        }
    }

    /// Does nothing: there are no observers.
    #[cfg(not(feature = "compat"))]
    pub(crate) fn report(&self, _: Vec<KeyChange>, _: Cause, _: &Clients) {}

    /// Returns how a client tracks; `None` if it does not.
    pub(crate) fn tracked(&self, id: u64) -> Option<Tracked> {
        #[cfg(feature = "compat")]
        return self.tracking.of(id);
        #[cfg(not(feature = "compat"))]
        {
            let _ = id;
            None
        }
    }

    /// Returns whether a client watches the others by MONITOR.
    pub(crate) fn has_monitor(&self, id: u64) -> bool {
        #[cfg(feature = "compat")]
        return self.monitors.has(id);
        #[cfg(not(feature = "compat"))]
        {
            let _ = id;
            false
        }
    }

    /// Returns what INFO reports about tracking.
    pub(crate) fn tracking_totals(&self) -> TrackingTotals {
        #[cfg(feature = "compat")]
        return self.tracking.totals();
        #[cfg(not(feature = "compat"))]
        TrackingTotals::default()
    }

    /// Sends what observers get once for all changes; called after a command and a slice of the
    /// sweep.
    #[cold]
    pub(crate) fn deliver(&self, clients: &Clients) {
        #[cfg(feature = "compat")]
        self.tracking.deliver(clients);
        let _ = clients;
    }
}
