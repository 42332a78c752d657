//! What nodes answered against what they have to answer, what clients did to the locks of others, and what they said and did
//! against what they had heard.

use crate::check::facts::Facts;
use crate::check::violation::{FINDINGS_MAX, Violation, ViolationKind};
use crate::history::Event;

/// Answers that no node may give, locks that somebody else extended or released, and clients that misbehaved.
pub(crate) fn answers(facts: &Facts<'_>) -> Vec<Violation> {
    let history = facts.history;
    let found = history.entries.iter().filter_map(|entry| {
        let (kind, node, client, key, text) = match &entry.event {
            Event::Deviated { node, client, text } => {
                let text = format!("node {node} {text}");
                (ViolationKind::NodeAnswer, Some(*node), *client, None, text)
            }
            Event::Robbed { node, client, key, attempt } => {
                let name = history.key(*key);
                let text = format!(
                    "client {client} extended or released the lock of somebody else (attempt {attempt} of `{name}`) on node {node}"
                );
                (ViolationKind::Robbery, Some(*node), *client, Some(*key), text)
            }
            Event::Misbehaved { client, key, text } => {
                let text = format!("client {client} {text} (`{}`)", history.key(*key));
                (ViolationKind::ClientConduct, None, *client, Some(*key), text)
            }
            _ => return None,
        };
        Some(Violation {
            clients: vec![client],
            nodes: node.into_iter().collect(),
            key,
            ..Violation::new(kind, entry.at, entry.at, text)
        })
    });
    found.take(FINDINGS_MAX).collect()
}
