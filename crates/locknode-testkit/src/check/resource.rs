//! What the locks are for: writes to a resource, and which of them came too late.
//!
//! A write is late when a lock of the key that was acquired later has written already. A resource that checks nothing takes
//! it: a client that stood still between looking at its lock and writing is enough, and no lock service can prevent that.
//! A resource that checks fencing tokens has to turn it away.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::evidence::{Evidence, Pair};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{Event, KeyNo, LockNo, Window};
use crate::span::SimTime;

/// Late writes: all of them, as a resource sees them that takes what comes, and those that the fenced one took.
pub(crate) fn resource(facts: &Facts<'_>) -> Vec<Violation> {
    let mut writes = Writes::default();
    for entry in &facts.history.entries {
        if let Event::Wrote {
            lock,
            key,
            fencing,
            is_accepted,
            ..
        } = entry.event
        {
            let place = facts.index.call(lock).and_then(|call| call.window);
            let Some((place, window)) = place.zip(facts.index.window(lock)) else {
                continue;
            };
            let write = Write {
                at: entry.at,
                place,
                window,
            };
            let seen = writes.keys.entry(key).or_default();
            let late = seen.unfenced(write);
            let token = fencing.filter(|_| is_accepted);
            let taken = token.and_then(|token| seen.fenced(write, token));
            if let Some(other) = late {
                writes.report(ViolationKind::Resource, write, other);
            }
            if let Some(other) = taken {
                writes.report(ViolationKind::FencedResource, write, other);
            }
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

#[derive(Clone, Copy)]
struct Write<'h> {
    at: SimTime,
    place: usize,
    window: &'h Window,
}

#[derive(Default)]
struct Writes<'h> {
    keys: BTreeMap<KeyNo, Seen<'h>>,
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
    /// Each pair of locks is told of once.
    fn report(&mut self, kind: ViolationKind, write: Write<'h>, later: &'h Window) {
        let pairs = match kind {
            ViolationKind::Resource => &mut self.late,
            _ => &mut self.taken,
        };
        if pairs.len() < FINDINGS_MAX && self.told.insert((kind, write.window.lock, later.lock)) {
            pairs.push(Pair {
                kind,
                earlier: write.window,
                later,
                from: write.at,
                until: write.at,
            });
        }
    }
}

impl<'h> Seen<'h> {
    /// Notes a write; the later lock that has written before it, if there is one.
    fn unfenced(&mut self, write: Write<'h>) -> Option<&'h Window> {
        match self.newest {
            Some((place, newest)) if place > write.place => Some(newest),
            _ => {
                self.newest = Some((write.place, write.window));
                None
            }
        }
    }

    /// Notes a write that was taken; the lock of which one had been taken that makes it wrong. The tokens tell: they must
    /// not fall. And the locks: if this one was acquired before that one was called for, tokens that do their work put it
    /// first.
    fn fenced(&mut self, write: Write<'h>, token: u64) -> Option<&'h Window> {
        let higher = self
            .highest
            .filter(|(highest, _)| *highest > token)
            .map(|(_, other)| other);
        let later = self
            .last_called
            .filter(|last| write.window.from < last.called);
        if higher.is_none() {
            self.highest = Some((token, write.window));
        }
        if self
            .last_called
            .is_none_or(|last| last.called < write.window.called)
        {
            self.last_called = Some(write.window);
        }
        higher.or(later)
    }
}
