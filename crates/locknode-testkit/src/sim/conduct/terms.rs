//! What a caller wants of its client beside the lock.

use std::time::Duration;

use super::tale::{Part, Tale};
use super::{Conduct, Finding};

/// The terms of a call that the model knows of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms {
    /// How long it tries at most, if time bounds it.
    pub(crate) within: Option<Duration>,
    /// How often the lock is to be renewed as long as it is held.
    pub(crate) renews: Option<Duration>,
}

impl Conduct {
    /// What is wrong with an attempt for this key that begins now. Whose it is is not known when there are several calls.
    pub(super) fn is_untimely(&self, key: &[u8]) -> Option<Finding> {
        let mut calls = self.calls.iter().filter(|call| call.key == key);
        let call = calls.next().filter(|call| !call.takes_over)?;
        if calls.next().is_some() || self.failed_in == self.turn {
            return None;
        }
        let finding = |text: &str| Finding {
            key: key.to_vec(),
            text: text.to_owned(),
        };
        let is_over = |within| self.now >= call.since + within;
        if call.terms.within.is_some_and(is_over) {
            return Some(finding("tries for a lock after its caller's time limit"));
        }
        // Of one that no node of now has granted it may only now be told that it ended long ago.
        let has_just_ended = |tale: &Tale| {
            tale.key == key
                && tale.part == Part::Over(None, self.turn)
                && tale.stands.iter().any(|stand| stand.granted.is_some())
        };
        let rushes = call.turn != self.turn && self.tales.iter().any(has_just_ended);
        rushes.then(|| finding("tries for a lock again without a pause"))
    }

    /// What is to be renewed was asked for in its time, if there was a node to ask. One that failed is tried again sooner.
    pub(super) fn see_renewal(&mut self, tale: &mut Tale) {
        let Some(every) = tale.renews else { return };
        if !(0..tale.stands.len()).any(|node| self.is_quick(node)) {
            (tale.unrenewed_since, tale.overdue_since) = (None, None);
            return;
        }
        let timeout = crate::sim::timeout(tale.ttl) + SLACK;
        let since = *tale.unrenewed_since.get_or_insert(self.now);
        if self.now < since + every + timeout {
            return;
        }
        // One that went on just now after a sleep has given up what it asked for before, and tries again soon.
        let overdue = *tale.overdue_since.get_or_insert(self.now);
        if self.now >= overdue + every / 4 + timeout {
            tale.renews = None;
            self.find(&tale.key, "does not renew a lock as often as it is to");
        }
    }
}

/// What clocks of timers are late by.
const SLACK: Duration = Duration::from_millis(2);
