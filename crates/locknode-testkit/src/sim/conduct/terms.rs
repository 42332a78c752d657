//! What a caller wants of its client besides the lock.

use std::time::Duration;

use super::attempt::{Attempt, Part};
use super::{Conduct, Finding};

impl Conduct {
    /// What is wrong with an attempt for this key that begins now. With several calls nobody knows whose attempt it is.
    pub(super) fn is_untimely(&self, key: &[u8]) -> Option<Finding> {
        let mut calls = self.calls.iter().filter(|call| call.key == key);
        let call = calls.next().filter(|call| !call.takes_over)?;
        if calls.next().is_some() || self.failed_in == Some(self.turn) {
            return None;
        }
        let is_over = |within| self.now >= call.since + within;
        if call.within.is_some_and(is_over) {
            let text = "tries for a lock after its caller's time limit";
            return Some(Finding::new(key, text));
        }
        // One that no connected node has granted may have ended long ago without a sign of it until now.
        let has_just_ended = |attempt: &Attempt| {
            attempt.key == key
                && attempt.part == Part::Over(None, self.turn)
                && attempt.views.iter().any(|view| view.granted.is_some())
        };
        let rushes = call.turn != self.turn && self.attempts.iter().any(has_just_ended);
        rushes.then(|| Finding::new(key, "tries for a lock again without a pause"))
    }

    /// The client renews a lock in time if there is a node to ask. A renewal that failed is tried again sooner.
    pub(super) fn see_renewal(&mut self, attempt: &mut Attempt) {
        let Some(every) = attempt.renews else { return };
        if !(0..attempt.views.len()).any(|node| self.is_quick(node)) {
            (attempt.unrenewed_since, attempt.overdue_since) = (None, None);
            return;
        }
        let timeout = crate::sim::timeout(attempt.ttl) + SLACK;
        let since = *attempt.unrenewed_since.get_or_insert(self.now);
        if self.now < since + every + timeout {
            return;
        }
        // One that went on just now after a sleep has given up what it asked for before, and tries again soon.
        let overdue = *attempt.overdue_since.get_or_insert(self.now);
        if self.now >= overdue + every / 4 + timeout {
            attempt.renews = None;
            self.find(&attempt.key, "does not renew a lock as often as it is to");
        }
    }
}

/// How late timers are.
const SLACK: Duration = Duration::from_millis(2);
