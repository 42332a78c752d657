//! Who wants to know that a key has changed: those who watch it, cache it or subscribed to its events.
//!
//! ```text
//!  Shard --records a change, if anybody wants to know--> Shard::changes
//!  end of the command, or of a slice of the sweep -----> Observers::report --> mailboxes
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::client::Clients;
#[cfg(feature = "compat")]
use crate::key_change::ChangeKind;
use crate::key_change::{Cause, KeyChange};
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
