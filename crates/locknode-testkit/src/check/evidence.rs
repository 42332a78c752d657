//! What led to a violation, in words: the votes behind a lock and what went wrong meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{AttemptNo, Event, Window};
use crate::span::{SimTime, Span};

/// Two locks of one key that do not go together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair<'h> {
    pub(crate) kind: ViolationKind,
    pub(crate) earlier: &'h Window,
    pub(crate) later: &'h Window,
    /// When the rule was broken.
    pub(crate) from: SimTime,
    pub(crate) until: SimTime,
}

impl<'h> Pair<'h> {
    /// Two locks of which the later one broke a rule at a moment; the same one twice when it did so by itself.
    pub(crate) const fn at(
        kind: ViolationKind,
        earlier: &'h Window,
        later: &'h Window,
        at: SimTime,
    ) -> Self {
        Self {
            kind,
            earlier,
            later,
            from: at,
            until: at,
        }
    }
}

/// Votes and mishaps of a history, for the attempts that a violation is about.
#[derive(Debug)]
pub(crate) struct Evidence {
    votes: BTreeMap<AttemptNo, Vec<Vote>>,
    mishaps: Vec<(SimTime, String)>,
}

#[derive(Clone, Copy, Debug)]
struct Vote {
    at: SimTime,
    node: u8,
    what: &'static str,
}

impl Evidence {
    pub(crate) fn of(facts: &Facts<'_>, attempts: &BTreeSet<AttemptNo>) -> Self {
        let mut votes: BTreeMap<AttemptNo, Vec<Vote>> = BTreeMap::new();
        let mut mishaps = Vec::new();
        for entry in &facts.history.entries {
            let at = entry.at;
            let (node, attempt, what) = match entry.event {
                Event::Granted { node, attempt, .. } => (node, attempt, "granted"),
                Event::Restored { node, attempt, .. } => (node, attempt, "restored"),
                Event::Extended { node, attempt, .. } => (node, attempt, "extended"),
                Event::Freed { node, attempt, .. } => (node, attempt, "freed"),
                ref other => {
                    mishaps.extend(mishap(other).map(|text| (at, text)));
                    continue;
                }
            };
            if attempts.contains(&attempt) {
                let votes = votes.entry(attempt).or_default();
                votes.push(Vote { at, node, what });
            }
        }
        Self { votes, mishaps }
    }

    /// Violations out of pairs of locks.
    pub(crate) fn tell<'h>(
        facts: &Facts<'_>,
        pairs: &[Pair<'h>],
        summary: impl Fn(&Pair<'h>) -> String,
    ) -> Vec<Violation> {
        if pairs.is_empty() {
            return Vec::new();
        }
        let pairs = &pairs[..pairs.len().min(FINDINGS_MAX)];
        let windows = pairs.iter().flat_map(|pair| [pair.earlier, pair.later]);
        let evidence = Self::of(facts, &windows.map(|window| window.attempt).collect());
        let violation = |pair: &Pair<'h>| {
            let (earlier, later) = (pair.earlier, pair.later);
            let since = earlier.called.min(later.called).min(pair.from);
            let mut both = vec![earlier, later];
            both.dedup_by_key(|window| window.lock);
            let lines: String = both.iter().map(|window| evidence.lock(window)).collect();
            let clients = BTreeSet::from([earlier.client, later.client]);
            let nodes = both.iter().flat_map(|window| evidence.votes(window));
            let nodes: BTreeSet<u8> = nodes.map(|vote| vote.node).collect();
            let text = summary(pair) + &lines + &evidence.meanwhile(since, pair.until);
            Violation {
                clients: clients.into_iter().collect(),
                nodes: nodes.into_iter().collect(),
                key: Some(earlier.key),
                ..Violation::new(pair.kind, pair.from, pair.until, text)
            }
        };
        pairs.iter().map(violation).collect()
    }

    fn votes(&self, window: &Window) -> &[Vote] {
        self.votes.get(&window.attempt).map_or(&[], Vec::as_slice)
    }

    /// A lock: when it was held and who voted for it. Begins with a line break.
    pub(crate) fn lock(&self, window: &Window) -> String {
        let mut text = format!(
            "\n  lock {} of client {}: called for at {}, held {}..{}",
            window.lock, window.client, window.called, window.from, window.until
        );
        if let Some(fencing) = window.fencing {
            let _ = write!(text, ", fencing token {fencing}");
        }
        let _ = match window.extensions {
            0 => Ok(()),
            1 => write!(text, ", extended once"),
            times => write!(text, ", extended {times} times"),
        };
        let _ = write!(text, "\n    attempt {}:", window.attempt);
        let mut by_node: BTreeMap<u8, Vec<&Vote>> = BTreeMap::new();
        for vote in self.votes(window) {
            by_node.entry(vote.node).or_default().push(vote);
        }
        if by_node.is_empty() {
            text.push_str(" no node granted it");
        }
        for (place, (node, votes)) in by_node.iter().enumerate() {
            let _ = write!(text, "{} node {node}", if place == 0 { "" } else { ";" });
            let skipped = votes.len().saturating_sub(VOTES_MAX);
            let mut votes = votes
                .iter()
                .map(|vote| format!("{} {}", vote.what, vote.at));
            let mut told: Vec<String> = votes.by_ref().take(1).collect();
            if skipped > 0 {
                told.push(format!("{skipped} more"));
            }
            told.extend(votes.skip(skipped));
            let _ = write!(text, " {}", told.join(", "));
        }
        text
    }

    /// What went wrong between two moments, a line each; nothing when nothing did.
    pub(crate) fn meanwhile(&self, from: SimTime, until: SimTime) -> String {
        let first = self.mishaps.partition_point(|(at, _)| *at < from);
        let last = self.mishaps.partition_point(|(at, _)| *at <= until);
        let mishaps = self.mishaps.get(first..last).unwrap_or_default();
        let mut text = String::new();
        for (at, what) in mishaps.iter().take(MISHAPS_MAX) {
            let _ = write!(text, "\n  {at}: {what}");
        }
        if let Some(more) = mishaps.len().checked_sub(MISHAPS_MAX + 1) {
            let _ = write!(text, "\n  ... and {} more until {until}", more + 1);
        }
        text
    }
}

/// What went wrong, or was put right, in words.
fn mishap(event: &Event) -> Option<String> {
    Some(match event {
        Event::Fault(text) => text.to_string(),
        Event::Started {
            node,
            is_quarantined,
            reason,
        } => {
            let wait = if *is_quarantined {
                ", in quarantine"
            } else {
                ""
            };
            format!("node {node} starts: {reason}{wait}")
        }
        Event::Serving { node } => format!("node {node} serves"),
        Event::Down { node, how } => format!("node {node} is down: {}", how.name()),
        Event::StaysDown { node, why } => format!("node {node} stays down: {why}"),
        Event::ClientDown { client } => format!("client {client} is down"),
        _ => return None,
    })
}

/// The time from one moment to another, as it is written.
pub(crate) fn span(from: SimTime, until: SimTime) -> Span {
    Span(until.since(from))
}

/// A window with more mishaps in it is read in the timeline.
const MISHAPS_MAX: usize = 16;

/// The grant and the last votes of a node for a lock; one that is extended for an hour has thousands.
const VOTES_MAX: usize = 4;
