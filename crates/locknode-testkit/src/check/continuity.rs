//! Continuity: who extends a lock has held it all the time.
//!
//! Of windows alone this is mutual exclusion: a window is all the time from acquiring to the end of the belief, with its
//! extensions, so another lock that begins within it overlaps it, unless it has no length. What is different is what the
//! client says. When another lock of the key was acquired and let go in between, and the lock is extended all the same,
//! then nodes that had lost it counted for it: the holder was robbed and does not learn of it. A client that only extends
//! where it is held learns of it at its next extension, whatever else went wrong. So this tells of an *extension that
//! succeeded after another lock of the key had been acquired since*.
//!
//! And the holder has to have believed all the time: an extension that succeeds when the validity had ended by the client's
//! own clock makes one window of two, with a time between them in which anybody could have the lock.
//!
//! The first is sound wherever exclusion is: with clocks that agree within the drift and nodes that guard their restarts, a
//! majority holds the lock until the client has stopped believing in it, and no other lock finds a majority. It also is where
//! nodes forget at a crash, and so exclusion is not promised, as long as nothing comes late: then a node that forgot a lock
//! does not get it back, and refuses its extension. A request for the lock that comes to such a node only after the crash would
//! bring it back, and a reply that was given before the crash and comes later than the other holder is about the past; see
//! [`Promise`](crate::Promise).

use std::collections::{BTreeMap, BTreeSet};

use crate::check::evidence::{Evidence, Pair, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{Event, KeyNo, LockNo, Window};
use crate::span::SimTime;

/// Extensions over the head of a later holder, each pair of locks once; and extensions after the end.
pub(crate) fn continuity(facts: &Facts<'_>) -> Vec<Violation> {
    let mut extensions = Extensions::default();
    for entry in &facts.history.entries {
        extensions.note(facts, entry.at, &entry.event);
    }
    let key = |pair: &Pair<'_>| facts.history.key(pair.earlier.key);
    let mut violations = Evidence::tell(facts, &extensions.robbed, |pair| {
        format!(
            "client {} extended its lock of `{}` although client {} had acquired one at {}",
            pair.earlier.client,
            key(pair),
            pair.later.client,
            pair.later.from,
        )
    });
    violations.extend(Evidence::tell(facts, &extensions.late, |pair| {
        format!(
            "client {} extended its lock of `{}` {} after its validity had ended",
            pair.earlier.client,
            key(pair),
            span(pair.from, pair.until),
        )
    }));
    violations
}

#[derive(Default)]
struct Extensions<'h> {
    /// The lock of each key that was acquired last.
    newest: BTreeMap<KeyNo, &'h Window>,
    /// The locks that are held, with the ends of their validity.
    held: BTreeMap<LockNo, SimTime>,
    told: BTreeSet<(LockNo, LockNo)>,
    robbed: Vec<Pair<'h>>,
    /// Each lock with itself, from the end of its validity to the extension.
    late: Vec<Pair<'h>>,
}

impl<'h> Extensions<'h> {
    fn note(&mut self, facts: &'h Facts<'_>, at: SimTime, event: &Event) {
        match *event {
            Event::Acquired {
                lock,
                key,
                valid_until,
                ..
            } => {
                if let Some(window) = facts.index.window(lock) {
                    self.newest.insert(key, window);
                    self.held.insert(lock, valid_until.max(at));
                }
            }
            Event::Lost { lock, .. } | Event::Releases { lock, .. } => {
                self.held.remove(&lock);
            }
            Event::ClientDown { client } => {
                let is_others = |lock| {
                    facts
                        .index
                        .window(lock)
                        .is_some_and(|it| it.client != client)
                };
                self.held.retain(|lock, _| is_others(*lock));
            }
            Event::Validity {
                lock,
                valid_until,
                is_extension,
                ..
            } => {
                let (Some(until), Some(window)) =
                    (self.held.get_mut(&lock), facts.index.window(lock))
                else {
                    return;
                };
                let ended = *until;
                if is_extension || ended > at {
                    *until = valid_until.max(at);
                }
                if is_extension {
                    self.extension(at, ended, window, facts.is_lost(window));
                }
            }
            _ => {}
        }
    }

    fn extension(&mut self, at: SimTime, ended: SimTime, window: &'h Window, is_lost: bool) {
        let pair = |later: &'h Window, from| Pair {
            kind: ViolationKind::Continuity,
            earlier: window,
            later,
            from,
            until: at,
        };
        if ended < at && self.late.len() < FINDINGS_MAX {
            self.late.push(pair(window, ended));
        }
        let newest = self
            .newest
            .get(&window.key)
            .filter(|newest| newest.lock != window.lock);
        if let Some(later) = newest
            && !is_lost
            && self.robbed.len() < FINDINGS_MAX
            && self.told.insert((window.lock, later.lock))
        {
            self.robbed.push(pair(later, at));
        }
    }
}
