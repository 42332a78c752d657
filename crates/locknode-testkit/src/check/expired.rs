//! Locks that have expired when they are handed out: a client that gets one holds nothing.

use crate::check::evidence::{Evidence, Pair, span};
use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::Event;

/// Locks of which the validity had ended when they were handed out.
pub(crate) fn expired(facts: &Facts<'_>) -> Vec<Violation> {
    let late = facts
        .history
        .entries
        .iter()
        .filter_map(|entry| match entry.event {
            Event::Acquired {
                lock, valid_until, ..
            } if valid_until <= entry.at => {
                let window = facts.index.window(lock)?;
                Some(Pair::at(ViolationKind::Expired, window, window, entry.at))
            }
            _ => None,
        });
    let late: Vec<Pair<'_>> = late.take(FINDINGS_MAX).collect();
    Evidence::tell(facts, &late, |pair| {
        format!(
            "client {} was handed a lock of `{}` that was over, {} after it was called for",
            pair.earlier.client,
            facts.history.key(pair.earlier.key),
            span(pair.earlier.called, pair.from)
        )
    })
}
