//! What callers are told too late: a holder learns of the end of its lock before that end, by its own clock.
//!
//! A client that stands still when its lock ends is told when it goes on. Only for simulated worlds: where callers run in threads
//! of their own, they note what they were told a moment after they were.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::fault::{Fault, Who};
use crate::history::{Event, KeyNo, LockNo};
use crate::scenario::{Deed, Scenario};
use crate::span::SimTime;

/// A lock that somebody believes in.
#[derive(Clone, Copy)]
struct Belief {
    client: u8,
    key: KeyNo,
    valid_until: SimTime,
}

/// Ends that were told too late, or never.
pub(crate) fn late(facts: &Facts<'_>, scenario: &Scenario) -> Vec<Violation> {
    let mut beliefs: BTreeMap<LockNo, Belief> = BTreeMap::new();
    let mut stops: BTreeMap<u8, Vec<(SimTime, SimTime)>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut judge = |belief: Belief, at: SimTime, stops: &BTreeMap<u8, Vec<(SimTime, SimTime)>>| {
        let stops = stops.get(&belief.client).map_or(&[][..], Vec::as_slice);
        let slack = noise(scenario, belief.client) + SLACK;
        let due = excused(belief.valid_until, slack, stops);
        if at > due + slack && found.len() < FINDINGS_MAX {
            found.push(told(facts, belief, at));
        }
    };
    for entry in &facts.history.entries {
        match entry.event {
            Event::Acquired {
                client,
                lock,
                key,
                valid_until,
                ..
            } => {
                let belief = Belief {
                    client,
                    key,
                    valid_until,
                };
                beliefs.insert(lock, belief);
            }
            Event::Validity {
                lock, valid_until, ..
            } => {
                if let Some(belief) = beliefs.get_mut(&lock) {
                    belief.valid_until = valid_until;
                }
            }
            Event::Lost { lock, .. } | Event::Releases { lock, .. } => {
                if let Some(belief) = beliefs.remove(&lock) {
                    judge(belief, entry.at, &stops);
                }
            }
            Event::ClientDown { client } => {
                beliefs.retain(|_, belief| {
                    let ended = belief.client == client;
                    if ended {
                        judge(*belief, entry.at, &stops);
                    }
                    !ended
                });
            }
            Event::Stopped {
                who: Who::Client(client),
                until,
                ..
            } => {
                stops.entry(client).or_default().push((entry.at, until));
            }
            _ => {}
        }
    }
    for belief in beliefs.into_values() {
        judge(belief, facts.history.end, &stops);
    }
    found
}

/// When a client can have been told at the latest: at once, or when it goes on that stood still.
fn excused(valid_until: SimTime, slack: Duration, stops: &[(SimTime, SimTime)]) -> SimTime {
    stops.iter().fold(valid_until, |due, (from, until)| {
        match *from <= due + slack {
            true => due.max(*until),
            false => due,
        }
    })
}

fn told(facts: &Facts<'_>, belief: Belief, at: SimTime) -> Violation {
    Violation {
        kind: ViolationKind::LateLoss,
        from: belief.valid_until,
        until: at,
        clients: vec![belief.client],
        nodes: Vec::new(),
        key: Some(belief.key),
        text: format!(
            "client {} was not told of the end of its lock of `{}` at {} before {at}",
            belief.client,
            facts.history.key(belief.key),
            belief.valid_until
        ),
    }
}

/// By how much the clock of a client may show less than it is.
fn noise(scenario: &Scenario, client: u8) -> Duration {
    let spans = scenario.steps.iter().filter_map(|step| match step.what {
        Deed::Fault(Fault::Noise(who, span)) if who == Who::Client(client) => Some(span),
        _ => None,
    });
    spans.max().unwrap_or_default()
}

/// Roundings.
const SLACK: Duration = Duration::from_micros(10);
