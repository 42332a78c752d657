//! Mutual exclusion in true time: no two clients believe at one time that they hold one key.
//!
//! A sweep over the windows of a key, by their beginnings. Windows do not include their end, so one that begins as another
//! ends is no overlap, and one of no length overlaps nothing. A key that stays taken after its release, because its holder
//! wished so, counts as held until then.

use crate::check::evidence::{Evidence, Pair, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::Window;
use crate::history::index::{by_key, overlaps};

/// Overlaps. Each window is reported with the one before it that lasts longest, so that of many windows over each other
/// each is reported once.
pub(crate) fn exclusion(facts: &Facts<'_>) -> Vec<Violation> {
    let until = |window: &Window| {
        let kept = facts.index.call(window.lock).and_then(|call| call.kept);
        window.until.max(kept.unwrap_or_default())
    };
    let windows = facts.index.windows.iter().filter(|it| !facts.is_lost(it));
    let overlaps = by_key(windows)
        .into_values()
        .flat_map(|windows| overlaps(windows, until));
    let pairs: Vec<Pair<'_>> = overlaps
        .map(|(earlier, later)| Pair {
            kind: ViolationKind::Exclusion,
            earlier,
            later,
            from: later.from,
            until: until(earlier).min(until(later)),
        })
        .take(FINDINGS_MAX)
        .collect();
    Evidence::tell(facts, &pairs, |pair| {
        let (earlier, later) = (pair.earlier, pair.later);
        let (one, other) = (earlier.client, later.client);
        let key = facts.history.key(earlier.key);
        let who = if one == other {
            format!("client {one} held `{key}` twice")
        } else {
            format!("clients {one} and {other} both held `{key}`")
        };
        format!("{who} for {}", span(pair.from, pair.until))
    })
}
