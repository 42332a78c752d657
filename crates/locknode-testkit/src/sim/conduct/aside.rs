//! Looks, locks of other clients, calls that are given up, releases, and what is left when all of that is over.

use std::time::Duration;

use redlock_proto::{OpId, Time};

use super::tale::{Part, Stand, Tale};
use super::{Conduct, Finding};

/// A question to all nodes who holds a key.
#[derive(Clone, Debug)]
pub(super) struct Look {
    op: OpId,
    key: Vec<u8>,
    due: Time,
}

impl Conduct {
    /// A caller asks who holds a key, and has the answer when `due` at the latest.
    pub(crate) fn looks(&mut self, op: OpId, key: &[u8], due: Time) {
        let key = key.to_vec();
        self.looks.push(Look { op, key, due });
    }

    /// The client says who holds the key.
    pub(crate) fn looked(&mut self, op: OpId) {
        self.looks.retain(|look| look.op != op);
    }

    /// The client has done all that was due.
    pub(super) fn see_looks(&mut self) {
        let now = self.now;
        for look in self.looks.extract_if(.., |look| look.due <= now) {
            let text = "does not say in time who holds a key".to_owned();
            self.findings.push(Finding {
                key: look.key,
                text,
            });
        }
    }

    /// A caller releases a lock that was another client's: any node may hold it.
    pub(crate) fn releases(&mut self, op: OpId, key: &[u8], token: &[u8]) {
        let (over, until) = (Part::Over(Some(op), self.turn), self.now + UNKNOWN_TTL);
        let place = self.tale(token);
        let place = place.unwrap_or_else(|| self.begin(key, token, over, Duration::ZERO));
        if let Some(tale) = self.tales.get_mut(place) {
            tale.part = over;
            for stand in &mut tale.stands {
                stand.may_hold = Some(until);
            }
        }
    }

    /// The caller of a call that is not decided has no more interest in it.
    pub(super) fn gives_up(&mut self, op: OpId) {
        if self.calls.iter().any(|call| call.op == op) {
            self.failed(op);
        }
    }

    /// The client has so many operations. One that nobody waits for and no node has anything to do with ends, when connections
    /// that are being made have come to something.
    pub(crate) fn sees_operations(&mut self, count: usize) {
        if count <= self.calls.len() + self.tales.len() + self.looks.len() {
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

    /// The client says that these nodes have deleted its lock.
    pub(crate) fn released(&mut self, op: OpId, mut nodes: impl Iterator<Item = usize>) {
        let of = |tale: &&Tale| matches!(tale.part, Part::Over(Some(of), _) if of == op);
        let Some(tale) = self.tales.iter().find(of) else {
            return;
        };
        let was_freed = |node| tale.stands.get(node).is_some_and(|it: &Stand| it.was_freed);
        if !nodes.all(was_freed) {
            let key = tale.key.clone();
            self.find(
                &key,
                "says that a node has released a lock that has not said so",
            );
        }
    }
}

/// For so long the client tries to release a token from elsewhere, whose TTL it does not know.
const UNKNOWN_TTL: Duration = Duration::from_secs(600);

/// Connections and silent nodes are given up after a second each.
const EXCESS_MAX: Duration = Duration::from_secs(5);

/// The longest time between two turns of a client that runs and waits for something.
const STEP_MAX: Duration = Duration::from_secs(1);
