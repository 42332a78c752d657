//! Continuity: who extends a lock has held it all the time.
//!
//! Of windows alone this is mutual exclusion: a window is all the time from acquiring to the end of the belief, with its
//! extensions, so another lock that begins within it overlaps it, unless it has no length. What is different is what the
//! client says. When another lock of the key was acquired and released in between, and the lock is extended all the same,
//! then nodes that had lost it counted for it: the holder was robbed and does not learn of it. A client that only extends
//! where it is held learns of it at its next extension, whatever else went wrong. So this reports an *extension that
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

use std::collections::BTreeSet;

use crate::check::evidence::{Evidence, Pair, span};
use crate::check::facts::Facts;
use crate::check::violation::{Violation, ViolationKind};

/// Extensions over the head of a later holder, each pair of locks once; and extensions after the end.
pub(crate) fn continuity(facts: &Facts<'_>) -> Vec<Violation> {
    let (mut robbed, mut late) = (Vec::new(), Vec::new());
    let mut told = BTreeSet::new();
    let window = |place: usize| facts.index.windows.get(place);
    for extension in &facts.index.extensions {
        let at = extension.at;
        let (Some(own), Some(newest)) = (window(extension.window), window(extension.newest)) else {
            continue;
        };
        if extension.ended < at {
            late.push(Pair {
                from: extension.ended,
                ..Pair::at(ViolationKind::Continuity, own, own, at)
            });
        }
        let is_robbed = newest.lock != own.lock && !facts.is_lost(own);
        if is_robbed && told.insert((own.lock, newest.lock)) {
            robbed.push(Pair::at(ViolationKind::Continuity, own, newest, at));
        }
    }
    let key = |pair: &Pair<'_>| facts.history.key(pair.earlier.key);
    let mut violations = Evidence::tell(facts, &robbed, |pair| {
        format!(
            "client {} extended its lock of `{}` although client {} had acquired one at {}",
            pair.earlier.client,
            key(pair),
            pair.later.client,
            pair.later.from,
        )
    });
    violations.extend(Evidence::tell(facts, &late, |pair| {
        format!(
            "client {} extended its lock of `{}` {} after its validity had ended",
            pair.earlier.client,
            key(pair),
            span(pair.from, pair.until),
        )
    }));
    violations
}
