//! Mutual exclusion in true time: no two clients believe at one time that they hold one key.
//!
//! A sweep over the windows of a key, by their beginnings. Windows do not include their end, so one that begins as another
//! ends is no overlap, and one of no length overlaps nothing.

use crate::check::evidence::{Evidence, Pair, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::Window;

/// Overlaps. Each window is reported with the one before it that lasts longest, so that of many windows over each other
/// each is told of once.
pub(crate) fn exclusion(facts: &Facts<'_>) -> Vec<Violation> {
    let mut pairs = Vec::new();
    for windows in facts.by_key().values() {
        let windows: Vec<&Window> = windows
            .iter()
            .copied()
            .filter(|it| !facts.is_lost(it))
            .collect();
        overlaps(&windows, &mut pairs);
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

fn overlaps<'h>(windows: &[&'h Window], pairs: &mut Vec<Pair<'h>>) {
    let mut longest: Option<&Window> = None;
    for window in windows.iter().filter(|window| window.from < window.until) {
        if pairs.len() >= FINDINGS_MAX {
            return;
        }
        let Some(earlier) = longest else {
            longest = Some(window);
            continue;
        };
        if window.from < earlier.until && window.lock != earlier.lock {
            pairs.push(Pair {
                kind: ViolationKind::Exclusion,
                earlier,
                later: window,
                from: window.from,
                until: earlier.until.min(window.until),
            });
        }
        if window.until > earlier.until {
            longest = Some(window);
        }
    }
}
