//! Locks that are over when they are handed out: whoever gets one was told nothing, or less than that.

use std::collections::BTreeSet;

use crate::check::evidence::{Evidence, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{AttemptNo, Event, Window};
use crate::span::SimTime;

/// Locks of which the validity had ended when they were handed out.
pub(crate) fn expired(facts: &Facts<'_>) -> Vec<Violation> {
    let mut late = Vec::new();
    for entry in &facts.history.entries {
        if late.len() >= FINDINGS_MAX {
            break;
        }
        if let Event::Acquired {
            lock, valid_until, ..
        } = entry.event
            && valid_until <= entry.at
            && let Some(window) = facts.index.window(lock)
        {
            late.push((window, entry.at));
        }
    }
    if late.is_empty() {
        return Vec::new();
    }
    let attempts: BTreeSet<AttemptNo> = late.iter().map(|(window, _)| window.attempt).collect();
    let evidence = Evidence::of(facts, &attempts);
    let violation = |(window, at): (&Window, SimTime)| {
        let text = format!(
            "client {} was handed a lock of `{}` that was over, {} after it was called for",
            window.client,
            evidence.key(window),
            span(window.called, at)
        );
        Violation {
            kind: ViolationKind::Expired,
            from: at,
            until: at,
            clients: vec![window.client],
            nodes: BTreeSet::from_iter(evidence.nodes(window.attempt))
                .into_iter()
                .collect(),
            key: Some(window.key),
            text: text + &evidence.lock(window) + &evidence.meanwhile(window.called, at),
        }
    };
    late.into_iter().map(violation).collect()
}
