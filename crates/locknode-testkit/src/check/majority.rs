//! A majority behind every moment of a belief, whether or not anybody else wants the lock.
//!
//! At each moment of a window at least a majority of the nodes either hold the attempt's lock, or take part in no lock at
//! all because they are down or in quarantine. Otherwise a majority was free for somebody else, and that nobody came is
//! luck. It is sound wherever exclusion is promised: a vote that counted was given after the round began and lasts a TTL
//! on the node's clock, the client believes for less than that on its own, a node that forgets the vote is out until the
//! vote would have ended, and a release comes after the belief.
//!
//! It does not say that the majority is the same at each moment, nor that a node held the lock without a break: that is
//! what a client may not count on.

use std::collections::BTreeSet;

use crate::check::evidence::Evidence;
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::index::{Holding, Index};
use crate::history::{AttemptNo, History, Window};
use crate::span::SimTime;

/// The first time without a majority of each window that has one.
pub(crate) fn majority(facts: &Facts<'_>) -> Vec<Violation> {
    let mut lacks = Vec::new();
    for window in facts.index.windows.iter().filter(|it| !facts.is_lost(it)) {
        if lacks.len() >= FINDINGS_MAX {
            break;
        }
        let lack = lack(facts.history, &facts.index, window, window.from, true);
        lacks.extend(lack.map(|lack| (window, lack)));
    }
    if lacks.is_empty() {
        return Vec::new();
    }
    let attempts: BTreeSet<AttemptNo> = lacks.iter().map(|(window, _)| window.attempt).collect();
    let evidence = Evidence::of(facts, &attempts);
    let violation = |(window, lack): (&Window, Lack)| {
        let text = format!(
            "client {} believed to hold `{}` with {} of {} nodes behind it",
            window.client,
            evidence.key(window),
            usize::from(facts.history.nodes) - lack.missing.len(),
            facts.history.nodes,
        );
        Violation {
            kind: ViolationKind::Majority,
            from: lack.from,
            until: lack.until,
            clients: vec![window.client],
            text: text + &evidence.lock(window) + &evidence.meanwhile(window.called, lack.from),
            nodes: lack.missing,
            key: Some(window.key),
        }
    };
    lacks.into_iter().map(violation).collect()
}

/// A time without a majority, and which nodes were missing when it began.
pub(crate) struct Lack {
    from: SimTime,
    until: SimTime,
    missing: Vec<u8>,
}

/// The first time from `from` on in a window in which too many nodes did not hold its lock. With `counts_absent` a node that was
/// away counts like one that held it.
pub(crate) fn lack(
    history: &History,
    index: &Index,
    window: &Window,
    from: SimTime,
    counts_absent: bool,
) -> Option<Lack> {
    let (from, until) = (from.max(window.from), window.until.min(history.end));
    if from >= until {
        return None;
    }
    let held = index.holdings(window.attempt).iter();
    let held: Vec<&Holding> = held.filter(|it| !it.is_forgotten).collect();
    // When nodes begin to be missing, and when they are there again: the latter first at one moment.
    let mut changes: Vec<(SimTime, bool, u8)> = Vec::new();
    for node in 0..history.nodes {
        let absences = index
            .absences(node, from, until)
            .iter()
            .filter(|_| counts_absent);
        let votes = held.iter().filter(|it| it.node == node);
        let mut there: Vec<(SimTime, SimTime)> = absences
            .map(|it| (it.from, it.until))
            .chain(votes.map(|it| (it.from, it.until)))
            .filter(|(from, _)| *from < until)
            .collect();
        there.sort_unstable();
        let mut covered = from;
        for (from, until) in there {
            if from > covered {
                changes.extend([(covered, true, node), (from, false, node)]);
            }
            covered = covered.max(until);
        }
        if covered < until {
            changes.push((covered, true, node));
        }
    }
    changes.sort_unstable();
    let mut missing: BTreeSet<u8> = BTreeSet::new();
    let too_many = usize::from(history.nodes).div_ceil(2);
    for (place, (at, is_missing, node)) in changes.iter().enumerate() {
        match is_missing {
            true => missing.insert(*node),
            false => missing.remove(node),
        };
        let is_last_now = changes.get(place + 1).is_none_or(|(next, ..)| next > at);
        if is_last_now && missing.len() >= too_many {
            let rest = changes.get(place + 1..).unwrap_or_default();
            let end = back(rest, missing.clone(), too_many).unwrap_or(until);
            return Some(Lack {
                from: *at,
                until: end,
                missing: missing.into_iter().collect(),
            });
        }
    }
    None
}

/// When enough nodes are there again.
fn back(
    changes: &[(SimTime, bool, u8)],
    mut missing: BTreeSet<u8>,
    too_many: usize,
) -> Option<SimTime> {
    for (at, is_missing, node) in changes {
        match is_missing {
            true => missing.insert(*node),
            false => missing.remove(node),
        };
        if missing.len() < too_many {
            return Some(*at);
        }
    }
    None
}
