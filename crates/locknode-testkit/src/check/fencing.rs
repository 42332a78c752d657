//! Fencing tokens: no two locks of a key have the same one, and who comes later has a higher one.
//!
//! *Later* is what somebody outside can see: called for after the other was acquired. Tokens of locks that were called for
//! while the other was still being acquired may be in any order. Nothing here rests on a clock.

use std::collections::BTreeMap;

use crate::check::evidence::{Evidence, Pair};
use crate::check::facts::Facts;
use crate::check::violation::{Violation, ViolationKind};
use crate::history::Window;
use crate::history::index::by_key;

/// Equal tokens, and tokens in the wrong order.
pub(crate) fn fencing(facts: &Facts<'_>) -> Vec<Violation> {
    let mut duplicates = Vec::new();
    let mut disorders = Vec::new();
    for windows in by_key(&facts.index.windows).values() {
        let windows: Vec<(u64, &Window)> = windows
            .iter()
            .filter_map(|window| Some((window.fencing?, *window)))
            .collect();
        find_duplicates(&windows, &mut duplicates);
        find_disorder(&windows, &mut disorders);
    }
    let mut violations = Evidence::tell(facts, &duplicates, |pair| {
        let token = pair.later.fencing.unwrap_or(0);
        format!(
            "two locks of `{}` have the fencing token {token}",
            facts.history.key(pair.later.key)
        )
    });
    violations.extend(Evidence::tell(facts, &disorders, |pair| {
        format!(
            "a lock of `{}` has the fencing token {}, one that was held before it was called for has {}",
            facts.history.key(pair.later.key),
            pair.later.fencing.unwrap_or(0),
            pair.earlier.fencing.unwrap_or(0),
        )
    }));
    violations
}

fn find_duplicates<'h>(windows: &[(u64, &'h Window)], pairs: &mut Vec<Pair<'h>>) {
    let mut firsts: BTreeMap<u64, &Window> = BTreeMap::new();
    for (token, window) in windows {
        if let Some(earlier) = firsts.insert(*token, window) {
            let kind = ViolationKind::FencingDuplicate;
            pairs.push(Pair::at(kind, earlier, window, window.from));
        }
    }
}

/// Those who were acquired are taken in that order, those who called in that one: the highest token among the first who
/// were done before the second called has to be lower. Equal ones are reported as duplicates.
fn find_disorder<'h>(windows: &[(u64, &'h Window)], pairs: &mut Vec<Pair<'h>>) {
    let mut calls = windows.to_vec();
    calls.sort_by_key(|(_, window)| window.called);
    let mut acquired = windows.iter().peekable();
    let mut highest: Option<(u64, &Window)> = None;
    for (token, window) in calls {
        while let Some((token, done)) = acquired.next_if(|(_, done)| done.from < window.called) {
            if highest.is_none_or(|(highest, _)| *token > highest) {
                highest = Some((*token, done));
            }
        }
        if let Some((_, earlier)) = highest.filter(|(highest, _)| *highest > token) {
            let kind = ViolationKind::FencingOrder;
            pairs.push(Pair::at(kind, earlier, window, window.from));
        }
    }
}
