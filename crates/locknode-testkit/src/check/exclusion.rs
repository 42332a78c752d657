//! Mutual exclusion in true time: no two clients believe at one time that they hold one key.
//!
//! A sweep over the windows of a key, by their beginnings. Windows do not include their end, so one that begins as another
//! ends is no overlap, and one of no length overlaps nothing. A key that stays taken after its release, because its holder
//! wished so, counts as held until then.

use std::collections::BTreeMap;

use crate::check::evidence::{Evidence, Pair, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{Event, LockNo, Window};
use crate::span::SimTime;

/// Overlaps. Each window is reported with the one before it that lasts longest, so that of many windows over each other
/// each is told of once.
pub(crate) fn exclusion(facts: &Facts<'_>) -> Vec<Violation> {
    let kept = facts
        .history
        .entries
        .iter()
        .filter_map(|entry| match entry.event {
            Event::Kept { lock, until, .. } => Some((lock, until)),
            _ => None,
        });
    let kept: BTreeMap<LockNo, SimTime> = kept.collect();
    let until = |window: &Window| match kept.get(&window.lock) {
        Some(until) => window.until.max(*until),
        None => window.until,
    };
    let mut pairs = Vec::new();
    for windows in facts.by_key().values() {
        let windows: Vec<&Window> = windows
            .iter()
            .copied()
            .filter(|it| !facts.is_lost(it))
            .collect();
        overlaps(&windows, until, &mut pairs);
    }
    Evidence::tell(facts, &pairs, |pair| {
        let (earlier, later) = (pair.earlier, pair.later);
        let who = match earlier.client == later.client {
            true => format!(
                "client {} held `{}` twice",
                earlier.client,
                facts.history.key(earlier.key)
            ),
            false => format!(
                "clients {} and {} both held `{}`",
                earlier.client,
                later.client,
                facts.history.key(earlier.key)
            ),
        };
        format!("{who} for {}", span(pair.from, pair.until))
    })
}

fn overlaps<'h>(
    windows: &[&'h Window],
    until: impl Fn(&Window) -> SimTime,
    pairs: &mut Vec<Pair<'h>>,
) {
    let mut longest: Option<&Window> = None;
    for window in windows.iter().filter(|window| window.from < until(window)) {
        if pairs.len() >= FINDINGS_MAX {
            return;
        }
        let Some(earlier) = longest else {
            longest = Some(window);
            continue;
        };
        if window.from < until(earlier) && window.lock != earlier.lock {
            pairs.push(Pair {
                kind: ViolationKind::Exclusion,
                earlier,
                later: window,
                from: window.from,
                until: until(earlier).min(until(window)),
            });
        }
        if until(window) > until(earlier) {
            longest = Some(window);
        }
    }
}
