//! What nodes answered against what they have to answer, and what clients did to the locks of others.

use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::Event;

/// Answers that no node may give, and locks that somebody else extended or released.
pub(crate) fn answers(facts: &Facts<'_>) -> Vec<Violation> {
    let history = facts.history;
    let found = history.entries.iter().filter_map(|entry| {
        let (kind, node, client, key, text) = match &entry.event {
            Event::Deviated { node, client, text } => {
                (ViolationKind::NodeAnswer, *node, *client, None, format!("node {node} {text}"))
            }
            Event::Robbed { node, client, key, attempt } => {
                let name = history.key(*key);
                let text = format!(
                    "client {client} extended or released the lock of somebody else (attempt {attempt} of `{name}`) on node {node}"
                );
                (ViolationKind::Robbery, *node, *client, Some(*key), text)
            }
            _ => return None,
        };
        Some(Violation {
            kind,
            from: entry.at,
            until: entry.at,
            clients: vec![client],
            nodes: vec![node],
            key,
            text,
        })
    });
    found.take(FINDINGS_MAX).collect()
}
