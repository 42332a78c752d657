//! What each node does by itself: it grants a key once at a time, counts its grants, and keeps out in its quarantine.
//!
//! A node is bound by what it has *reported*: a grant whose reply left before the node went down next. What it granted
//! and never reported may be forgotten in a crash; before it replies, it has to make durable what the grant rests on. A grant, and a
//! quarantine, ends when the node's clock says so; [`Tolerance`] allows for clocks that change their pace after the history
//! has noted in true time when that would be.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::check::evidence::Evidence;
use crate::check::facts::Facts;
use crate::check::tolerance::Tolerance;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{AttemptNo, Event, KeyNo};
use crate::span::SimTime;

/// Grants against grants that were reported, counters that did not rise, grants in quarantine, and replies that left too soon.
pub(crate) fn nodes(facts: &Facts<'_>, tolerance: impl Fn(u8) -> Tolerance) -> Vec<Violation> {
    let mut ledger = Ledger {
        tolerances: (0..facts.history.nodes).map(tolerance).collect(),
        ..Ledger::default()
    };
    for entry in &facts.history.entries {
        ledger.note(entry.at, &entry.event);
    }
    for node in 0..facts.history.nodes {
        ledger.serves(facts.history.end, node);
    }
    if ledger.found.is_empty() {
        return Vec::new();
    }
    let evidence = Evidence::of(facts, &BTreeSet::new());
    let violation = |found: Found| {
        let Found { at, node, .. } = found;
        let key = found
            .key
            .map(|key| format!(" (`{}`)", facts.history.key(key)));
        let meanwhile = evidence.meanwhile(found.since, at);
        let text = format!(
            "node {node} {}{}{meanwhile}",
            found.text,
            key.unwrap_or_default()
        );
        Violation {
            clients: found.clients.into_iter().collect(),
            nodes: vec![node],
            key: found.key,
            ..Violation::new(found.kind, at, at, text)
        }
    };
    ledger.found.into_iter().map(violation).collect()
}

/// What a node has reported of a key.
#[derive(Clone, Copy)]
struct Promised {
    attempt: AttemptNo,
    client: u8,
    at: SimTime,
    is_told: bool,
    /// When it ends by what was reported, or sooner.
    ends: Deadline,
}

#[derive(Clone, Copy)]
struct Deadline {
    set: SimTime,
    ends: SimTime,
}

/// A key's fence counter on a node.
#[derive(Clone, Copy, Default)]
struct Counted {
    last: u64,
    last_at: SimTime,
    /// The highest that was reported.
    told: u64,
    told_at: SimTime,
}

#[derive(Default)]
struct Ledger {
    /// Of each node.
    tolerances: Vec<Tolerance>,
    promises: BTreeMap<(u8, KeyNo), Promised>,
    counters: BTreeMap<(u8, KeyNo), Counted>,
    /// By node and attempt: what is still to be reported, in the order of the replies.
    untold: BTreeMap<(u8, AttemptNo), VecDeque<Untold>>,
    /// By node: since when it is in quarantine, and what it granted or extended in it.
    quarantined: BTreeMap<u8, (SimTime, Vec<Found>)>,
    counts: BTreeMap<ViolationKind, usize>,
    found: Vec<Found>,
}

/// A grant or an extension of which the reply is still to leave.
#[derive(Clone, Copy)]
struct Untold {
    key: KeyNo,
    /// Zero when it is an extension.
    counter: u64,
    deadline: Deadline,
}

struct Found {
    kind: ViolationKind,
    /// Since when what happened to the node may have led to it.
    since: SimTime,
    at: SimTime,
    node: u8,
    clients: BTreeSet<u8>,
    key: Option<KeyNo>,
    text: String,
}

impl Found {
    fn new(kind: ViolationKind, at: SimTime, (node, key): (u8, KeyNo), text: String) -> Self {
        Self {
            kind,
            since: at,
            at,
            node,
            clients: BTreeSet::new(),
            key: Some(key),
            text,
        }
    }
}

impl Ledger {
    fn note(&mut self, at: SimTime, event: &Event) {
        match *event {
            Event::Granted {
                node,
                key,
                attempt,
                client,
                counter,
                ends,
            } => {
                self.quarantine(at, node, key, "granted");
                self.grant(at, (node, key), attempt, client, ends);
                self.count(at, (node, key), counter);
                let deadline = Deadline { set: at, ends };
                self.owe((node, key), attempt, counter, deadline);
            }
            Event::Extended {
                node,
                key,
                attempt,
                ends,
            } => {
                self.quarantine(at, node, key, "extended");
                self.extend(at, (node, key), attempt, ends);
            }
            Event::Answered { node, attempt, .. } => self.tell(node, attempt),
            Event::Unanswered { node, attempt, .. } => self.lose(node, attempt),
            Event::Unkept {
                node, key, ref why, ..
            } => {
                let kind = ViolationKind::NodeDurability;
                self.report(Found::new(kind, at, (node, key), why.to_string()));
            }
            Event::RefusesItself { node, ref why } => {
                let text = format!("refuses files that nothing but itself had touched: {why}");
                let found = Found::new(ViolationKind::NodeFiles, at, (node, 0), text);
                self.report(Found { key: None, ..found });
            }
            // One that need not come back binds no more than one that was released.
            Event::Freed { node, key, attempt } | Event::Forgotten { node, key, attempt }
                if self.promised((node, key), attempt).is_some() =>
            {
                self.promises.remove(&(node, key));
            }
            Event::Shown {
                node,
                key,
                attempt,
                ends,
                ..
            } => self.show((node, key), attempt, Deadline { set: at, ends }),
            Event::Started {
                node,
                is_quarantined: true,
                ..
            } => {
                self.quarantined.insert(node, (at, Vec::new()));
            }
            Event::Serving { node } => self.serves(at, node),
            Event::Down { node, .. } => self.forget(at, node),
            _ => {}
        }
    }

    fn quarantine(&mut self, at: SimTime, node: u8, key: KeyNo, what: &str) {
        if let Some((since, grants)) = self.quarantined.get_mut(&node) {
            let text = format!("{what} a lock in its quarantine");
            grants.push(Found {
                since: *since,
                ..Found::new(ViolationKind::NodeQuarantine, at, (node, key), text)
            });
        }
    }

    /// The quarantine is over: it may have been a little sooner.
    fn serves(&mut self, at: SimTime, node: u8) {
        if let Some((since, grants)) = self.quarantined.remove(&node) {
            let sooner = at - self.sooner(node, at.since(since));
            for grant in grants.into_iter().filter(|grant| grant.at < sooner) {
                self.report(grant);
            }
        }
    }

    /// By how much a time of this length may be shorter on a node.
    fn sooner(&self, node: u8, span: Duration) -> Duration {
        let tolerance = self.tolerances.get(usize::from(node));
        tolerance.map_or(Duration::ZERO, |it| it.of_span(span))
    }

    fn report(&mut self, found: Found) {
        let count = self.counts.entry(found.kind).or_default();
        *count += 1;
        if *count <= FINDINGS_MAX {
            self.found.push(found);
        }
    }

    /// What a node has promised of a key, if it was to this attempt.
    fn promised(&mut self, place: (u8, KeyNo), attempt: AttemptNo) -> Option<&mut Promised> {
        let promised = self.promises.get_mut(&place);
        promised.filter(|it| it.attempt == attempt)
    }

    /// The reply to this is still to leave.
    fn owe(&mut self, place: (u8, KeyNo), attempt: AttemptNo, counter: u64, deadline: Deadline) {
        let (node, key) = place;
        let untold = self.untold.entry((node, attempt)).or_default();
        untold.push_back(Untold {
            key,
            counter,
            deadline,
        });
    }

    fn grant(
        &mut self,
        at: SimTime,
        place: (u8, KeyNo),
        attempt: AttemptNo,
        client: u8,
        ends: SimTime,
    ) {
        let deadline = Deadline { set: at, ends };
        let new = Promised {
            attempt,
            client,
            at,
            is_told: false,
            ends: deadline,
        };
        let Some(old) = self.promises.insert(place, new) else {
            return;
        };
        let Deadline { set, ends } = old.ends;
        let sooner = ends - self.sooner(place.0, ends.since(set));
        if old.is_told && old.attempt != attempt && at < sooner {
            let text = format!(
                "granted a lock to client {client} (attempt {attempt}), although it had told client {} \
                 (attempt {}) that it holds it: granted at {}, until {ends}",
                old.client, old.attempt, old.at
            );
            self.report(Found {
                since: old.at,
                clients: BTreeSet::from([old.client, client]),
                ..Found::new(ViolationKind::NodeGrant, at, place, text)
            });
        }
    }

    /// A sooner deadline counts at once, a later one when it is reported.
    fn extend(&mut self, at: SimTime, place: (u8, KeyNo), attempt: AttemptNo, ends: SimTime) {
        let Some(promised) = self.promised(place, attempt) else {
            return;
        };
        let deadline = Deadline { set: at, ends };
        if ends < promised.ends.ends {
            promised.ends = deadline;
        }
        self.owe(place, attempt, 0, deadline);
    }

    fn count(&mut self, at: SimTime, place: (u8, KeyNo), counter: u64) {
        if counter == 0 {
            return;
        }
        let counted = self.counters.entry(place).or_default();
        let (last, since) = if counted.last > 0 {
            (counted.last, counted.last_at)
        } else {
            (counted.told, counted.told_at)
        };
        (counted.last, counted.last_at) = (counter, at);
        if counter <= last {
            let text = format!("counted a grant as {counter}, after one at {since} as {last}");
            self.report(Found {
                since,
                ..Found::new(ViolationKind::NodeCounter, at, place, text)
            });
        }
    }

    /// A reply has left: the first of those about this attempt.
    fn tell(&mut self, node: u8, attempt: AttemptNo) {
        let Some(untold) = self.untold.get_mut(&(node, attempt)) else {
            return;
        };
        let told = untold.pop_front();
        let later = untold.iter().map(|later| later.deadline);
        // A sooner deadline that comes later may have been executed, and may never be reported.
        let ends = later
            .chain(told.map(|told| told.deadline))
            .min_by_key(|deadline| deadline.ends);
        if untold.is_empty() {
            self.untold.remove(&(node, attempt));
        }
        let (Some(told), Some(ends)) = (told, ends) else {
            return;
        };
        let place = (node, told.key);
        if let Some(promised) = self.promised(place, attempt) {
            promised.is_told = true;
            promised.ends = ends;
        }
        let counted = self.counters.get_mut(&place);
        if let Some(counted) = counted.filter(|it| told.counter > it.told) {
            (counted.told, counted.told_at) = (told.counter, told.deadline.set);
        }
    }

    /// A reply that shows the lock has left: the grant binds as if its own reply had.
    fn show(&mut self, place: (u8, KeyNo), attempt: AttemptNo, shown: Deadline) {
        let promised = self.promised(place, attempt);
        if let Some(promised) = promised.filter(|it| !it.is_told) {
            promised.is_told = true;
            if shown.ends < promised.ends.ends {
                promised.ends = shown;
            }
        }
    }

    /// A reply will never leave: the first of those about this attempt. Where several connections wait for one it may
    /// have been a later one, so what remains counts for no more than either.
    fn lose(&mut self, node: u8, attempt: AttemptNo) {
        let Some(untold) = self.untold.get_mut(&(node, attempt)) else {
            return;
        };
        let lost = untold.pop_front();
        let (Some(lost), Some(next)) = (lost, untold.front_mut()) else {
            self.untold.remove(&(node, attempt));
            return;
        };
        next.counter = next.counter.min(lost.counter);
        if lost.deadline.ends < next.deadline.ends {
            next.deadline = lost.deadline;
        }
    }

    /// The node went down: what it had not reported no longer binds it.
    fn forget(&mut self, at: SimTime, node: u8) {
        self.serves(at, node);
        let all = (node, KeyNo::MIN)..=(node, KeyNo::MAX);
        self.promises
            .retain(|(of, _), promised| *of != node || promised.is_told);
        for (_, counted) in self.counters.range_mut(all) {
            counted.last = 0;
        }
        self.untold.retain(|(of, _), _| *of != node);
    }
}
