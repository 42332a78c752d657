//! Looks, locks of other clients, releases, and what is left when all of that is over.

use std::time::Duration;

use redlock_proto::{OpId, Time};

use super::attempt::{Attempt, NodeView, Part};
use super::{Conduct, Finding};

/// A question to all nodes who holds a key.
#[derive(Clone, Debug)]
pub(super) struct Look {
    op: OpId,
    key: Vec<u8>,
    due: Time,
}

impl Conduct {
    /// A caller asks who holds a key, and gets the answer at `due` at the latest.
    pub(crate) fn looks(&mut self, op: OpId, key: &[u8], due: Time) {
        let key = key.to_vec();
        self.looks.push(Look { op, key, due });
    }

    /// The client reports who holds the key.
    pub(crate) fn looked(&mut self, op: OpId) {
        self.looks.retain(|look| look.op != op);
    }

    /// The client has done all that was due.
    pub(super) fn see_looks(&mut self) {
        let now = self.now;
        for look in self.looks.extract_if(.., |look| look.due <= now) {
            let finding = Finding::new(&look.key, "does not say in time who holds a key");
            self.findings.push(finding);
        }
    }

    /// A caller releases a lock that was another client's: any node may hold it.
    pub(crate) fn releases(&mut self, op: OpId, key: &[u8], token: &[u8]) {
        let (over, until) = (Part::Over(Some(op), self.turn), self.now + UNKNOWN_TTL);
        let place = self.attempt(token);
        let place = place.unwrap_or_else(|| self.begin(key, token, over, Duration::ZERO));
        if let Some(attempt) = self.attempts.get_mut(place) {
            attempt.part = over;
            for view in &mut attempt.views {
                view.may_hold = Some(until);
            }
        }
    }

    /// The client has `count` operations. One that nobody waits for and that concerns no node ends once the connections that are
    /// being opened are open or refused.
    pub(crate) fn sees_operations(&mut self, count: usize) {
        if count <= self.calls.len() + self.attempts.len() + self.looks.len() {
            self.excess = None;
            return;
        }
        let (last, lasted) = self.excess.get_or_insert((self.now, Duration::ZERO));
        // Its process may have been stopped since.
        *lasted += self.now.since(*last).min(STEP_MAX);
        *last = self.now;
        if *lasted >= EXCESS_MAX {
            *lasted = Duration::ZERO;
            self.find(&[], "keeps operations that are over");
        }
    }

    /// The client reports that these nodes have deleted its lock.
    pub(crate) fn released(&mut self, op: OpId, mut nodes: impl Iterator<Item = usize>) {
        let of = |attempt: &&Attempt| matches!(attempt.part, Part::Over(Some(of), _) if of == op);
        let Some(attempt) = self.attempts.iter().find(of) else {
            return;
        };
        let was_freed = |node| {
            attempt
                .views
                .get(node)
                .is_some_and(|it: &NodeView| it.was_freed)
        };
        if !nodes.all(was_freed) {
            let key = attempt.key.clone();
            let text = "says that a node has released a lock that has not said so";
            self.find(&key, text);
        }
    }
}

/// How long the client tries to release another client's token, whose TTL it does not know.
const UNKNOWN_TTL: Duration = Duration::from_secs(600);

/// Connections and silent nodes are given up after a second each.
const EXCESS_MAX: Duration = Duration::from_secs(5);

/// The longest time between two turns of a client that runs and waits for something.
const STEP_MAX: Duration = Duration::from_secs(1);
