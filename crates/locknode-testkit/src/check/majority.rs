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

use std::collections::{BTreeMap, BTreeSet};

use crate::check::absence::{Absence, Absences};
use crate::check::evidence::Evidence;
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{AttemptNo, Event, KeyNo, Window};
use crate::span::SimTime;

/// The first time without a majority of each window that has one.
pub(crate) fn majority(facts: &Facts<'_>) -> Vec<Violation> {
    let absences = Absences::of(facts.history);
    let votes = Votes::of(facts);
    let mut lacks = Vec::new();
    for window in facts.windows.iter().filter(|it| !facts.is_lost(it)) {
        if lacks.len() >= FINDINGS_MAX {
            break;
        }
        lacks.extend(lack(facts, &absences, &votes, window).map(|lack| (window, lack)));
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
struct Lack {
    from: SimTime,
    until: SimTime,
    missing: Vec<u8>,
}

/// When nodes held the locks of which there are windows.
struct Votes {
    held: BTreeMap<AttemptNo, Vec<Vote>>,
    /// Whose lock each node has, or had last.
    holders: BTreeMap<(u8, KeyNo), AttemptNo>,
    /// When each node went down, by the place of that in the history.
    downs: BTreeMap<u8, Vec<(usize, SimTime)>>,
}

struct Vote {
    node: u8,
    /// The place in the history at which it was given.
    place: usize,
    span: Absence,
}

impl Votes {
    fn of(facts: &Facts<'_>) -> Self {
        let attempts = facts
            .windows
            .iter()
            .map(|window| (window.attempt, Vec::new()));
        let mut votes = Self {
            held: attempts.collect(),
            holders: BTreeMap::new(),
            downs: BTreeMap::new(),
        };
        for (place, entry) in facts.history.entries.iter().enumerate() {
            let at = entry.at;
            match entry.event {
                Event::Granted {
                    node,
                    key,
                    attempt,
                    ends,
                    ..
                }
                | Event::Restored {
                    node,
                    key,
                    attempt,
                    ends,
                } => {
                    votes.replace(at, node, key, attempt);
                    votes.give(place, at, node, attempt, ends);
                }
                Event::Extended {
                    node,
                    attempt,
                    ends,
                    ..
                } => votes.give(place, at, node, attempt, ends),
                Event::Freed { node, attempt, .. } => votes.take(at, node, attempt),
                Event::Down { node, .. } => {
                    votes.downs.entry(node).or_default().push((place, at));
                }
                _ => {}
            }
        }
        for held in votes.held.values_mut().flatten() {
            cut(&votes.downs, held);
        }
        votes
    }

    /// A node has one lock of a key: that of another attempt has ended, rightly or not.
    fn replace(&mut self, at: SimTime, node: u8, key: KeyNo, attempt: AttemptNo) {
        let old = self.holders.insert((node, key), attempt);
        if let Some(old) = old.filter(|old| *old != attempt) {
            self.take(at, node, old);
        }
    }

    /// A node holds the lock until `ends`: a lock that it holds already ends then instead.
    fn give(&mut self, place: usize, at: SimTime, node: u8, attempt: AttemptNo, ends: SimTime) {
        let Some(held) = self.held.get_mut(&attempt) else {
            return;
        };
        if let Some(vote) = held.iter_mut().rev().find(|vote| vote.node == node) {
            cut(&self.downs, vote);
            if vote.span.until > at {
                vote.span.until = ends;
                return;
            }
        }
        let span = Absence {
            from: at,
            until: ends,
        };
        held.push(Vote { node, place, span });
    }

    fn take(&mut self, at: SimTime, node: u8, attempt: AttemptNo) {
        let votes = self.held.get_mut(&attempt).into_iter().flatten();
        if let Some(vote) = votes.rev().find(|vote| vote.node == node) {
            vote.span.until = vote.span.until.min(at);
        }
    }
}

/// A vote ends when its node goes down.
fn cut(downs: &BTreeMap<u8, Vec<(usize, SimTime)>>, vote: &mut Vote) {
    let Some(downs) = downs.get(&vote.node) else {
        return;
    };
    let next = downs.partition_point(|(place, _)| *place < vote.place);
    if let Some((_, at)) = downs.get(next) {
        vote.span.until = vote.span.until.min(*at);
    }
}

/// The first time in a window in which too many nodes neither held its lock nor were away.
fn lack(facts: &Facts<'_>, absences: &Absences, votes: &Votes, window: &Window) -> Option<Lack> {
    let until = window.until.min(facts.history.end);
    if window.from >= until {
        return None;
    }
    let held = votes
        .held
        .get(&window.attempt)
        .map(Vec::as_slice)
        .unwrap_or_default();
    // When nodes begin to be missing, and when they are there again: the latter first at one moment.
    let mut changes: Vec<(SimTime, bool, u8)> = Vec::new();
    for node in 0..facts.history.nodes {
        let mut there: Vec<Absence> = absences.within(node.into(), window.from, until).to_vec();
        there.extend(
            held.iter()
                .filter(|vote| vote.node == node)
                .map(|vote| vote.span),
        );
        there.sort_by_key(|span| span.from);
        let mut covered = window.from;
        for span in there.into_iter().filter(|span| span.from < until) {
            if span.from > covered {
                changes.extend([(covered, true, node), (span.from, false, node)]);
            }
            covered = covered.max(span.until);
        }
        if covered < until {
            changes.push((covered, true, node));
        }
    }
    changes.sort_unstable();
    let mut missing: BTreeSet<u8> = BTreeSet::new();
    let too_many = usize::from(facts.history.nodes) - facts.quorum() + 1;
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
