//! What the locks are for: writes to a resource, and which of them came too late.
//!
//! A write is late when a lock of the key that was acquired later has written already. A resource that checks nothing takes
//! it: a client that stood still between looking at its lock and writing is enough, and no lock service can prevent that.
//! A resource that checks fencing tokens has to turn it away.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::evidence::{Evidence, Pair};
use crate::check::facts::Facts;
use crate::check::violation::{Violation, ViolationKind};
use crate::history::{Event, KeyNo, LockNo, Window};

/// Late writes: all of them, as a resource sees them that takes what comes, and those that the fenced one took.
pub(crate) fn resource(facts: &Facts<'_>) -> Vec<Violation> {
    let mut writes = Writes::default();
    for entry in &facts.history.entries {
        let Event::Wrote {
            lock,
            key,
            fencing,
            is_accepted,
            ..
        } = entry.event
        else {
            continue;
        };
        let place = facts.index.call(lock).and_then(|call| call.window);
        let Some((place, window)) = place.zip(facts.index.window(lock)) else {
            continue;
        };
        let seen = writes.keys.entry(key).or_default();
        let late = seen.unfenced(place, window);
        let token = fencing.filter(|_| is_accepted);
        let taken = token.and_then(|token| seen.fenced(window, token));
        let found = [
            (ViolationKind::Resource, late),
            (ViolationKind::FencedResource, taken),
        ];
        for (kind, later) in found {
            let later = later.filter(|later| writes.told.insert((kind, lock, later.lock)));
            let pair = later.map(|later| Pair::at(kind, window, later, entry.at));
            writes.pairs(kind).extend(pair);
        }
    }
    let mut violations = Evidence::tell(facts, &writes.late, |pair| {
        format!(
            "client {} wrote to `{}` after client {}, who acquired the lock after it, had written",
            pair.earlier.client,
            facts.history.key(pair.earlier.key),
            pair.later.client,
        )
    });
    violations.extend(Evidence::tell(facts, &writes.taken, |pair| {
        format!(
            "a resource that checks fencing tokens took a write to `{}` of client {} after one of client {}, whose lock came later",
            facts.history.key(pair.earlier.key),
            pair.earlier.client,
            pair.later.client,
        )
    }));
    violations
}

#[derive(Default)]
struct Writes<'h> {
    keys: BTreeMap<KeyNo, Seen<'h>>,
    /// Each pair of locks is reported once.
    told: BTreeSet<(ViolationKind, LockNo, LockNo)>,
    late: Vec<Pair<'h>>,
    taken: Vec<Pair<'h>>,
}

/// What a resource has seen of one key.
#[derive(Default)]
struct Seen<'h> {
    /// The lock that was acquired last of those that have written, by its place.
    newest: Option<(usize, &'h Window)>,
    /// The highest token that was taken.
    highest: Option<(u64, &'h Window)>,
    /// The lock that was called for last of those of which a write was taken.
    last_called: Option<&'h Window>,
}

impl<'h> Writes<'h> {
    const fn pairs(&mut self, kind: ViolationKind) -> &mut Vec<Pair<'h>> {
        match kind {
            ViolationKind::Resource => &mut self.late,
            _ => &mut self.taken,
        }
    }
}

impl<'h> Seen<'h> {
    /// Notes a write; the later lock that has written before it, if there is one.
    fn unfenced(&mut self, place: usize, window: &'h Window) -> Option<&'h Window> {
        match self.newest {
            Some((newest, later)) if newest > place => Some(later),
            _ => {
                self.newest = Some((place, window));
                None
            }
        }
    }

    /// Notes a write that was taken. Returns the lock whose earlier write makes it wrong, if there is one. By their tokens:
    /// these must not fall. And the locks: if this one was acquired before that one was called for, tokens that do their work put it
    /// first.
    fn fenced(&mut self, window: &'h Window, token: u64) -> Option<&'h Window> {
        let higher = self.highest.filter(|(highest, _)| *highest > token);
        let last_called = self.last_called;
        if higher.is_none() {
            self.highest = Some((token, window));
        }
        if last_called.is_none_or(|last| last.called < window.called) {
            self.last_called = Some(window);
        }
        let later = last_called.filter(|last| window.from < last.called);
        higher.map(|(_, other)| other).or(later)
    }
}
