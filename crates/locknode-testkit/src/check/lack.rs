//! When too few nodes hold a client's lock while the client believes in it.

use std::collections::BTreeSet;

use crate::history::index::{Holding, Index};
use crate::history::{History, Window};
use crate::span::SimTime;

/// A time without a majority, and which nodes were missing when it began.
pub(crate) struct Lack {
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
    pub(crate) missing: Vec<u8>,
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
    let mut lack: Option<Lack> = None;
    for (place, &(at, is_missing, node)) in changes.iter().enumerate() {
        if is_missing {
            missing.insert(node);
        } else {
            missing.remove(&node);
        }
        let is_lacking = missing.len() >= too_many;
        let is_last_now = changes.get(place + 1).is_none_or(|(next, ..)| *next > at);
        match &mut lack {
            Some(lack) if !is_lacking => {
                lack.until = at;
                break;
            }
            None if is_lacking && is_last_now => {
                lack = Some(Lack {
                    from: at,
                    until,
                    missing: missing.iter().copied().collect(),
                });
            }
            _ => {}
        }
    }
    lack
}
