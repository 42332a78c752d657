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
use crate::check::lack::{Lack, lack};
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::{AttemptNo, Window};

/// The first time without a majority of each window that has one.
pub(crate) fn majority(facts: &Facts<'_>) -> Vec<Violation> {
    let windows = facts.index.windows.iter().filter(|it| !facts.is_lost(it));
    let lacks = windows.filter_map(|window| {
        let lack = lack(facts.history, &facts.index, window, window.from, true)?;
        Some((window, lack))
    });
    let lacks: Vec<(&Window, Lack)> = lacks.take(FINDINGS_MAX).collect();
    if lacks.is_empty() {
        return Vec::new();
    }
    let attempts: BTreeSet<AttemptNo> = lacks.iter().map(|(window, _)| window.attempt).collect();
    let evidence = Evidence::of(facts, &attempts);
    let violation = |(window, lack): (&Window, Lack)| {
        let text = format!(
            "client {} believed to hold `{}` with {} of {} nodes behind it",
            window.client,
            facts.history.key(window.key),
            usize::from(facts.history.nodes) - lack.missing.len(),
            facts.history.nodes,
        );
        let text = text + &evidence.lock(window) + &evidence.meanwhile(window.called, lack.from);
        Violation {
            clients: vec![window.client],
            nodes: lack.missing,
            key: Some(window.key),
            ..Violation::new(ViolationKind::Majority, lack.from, lack.until, text)
        }
    };
    lacks.into_iter().map(violation).collect()
}
