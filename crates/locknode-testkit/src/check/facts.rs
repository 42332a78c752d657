//! A history as checkers look at it: with the windows of its locks at hand.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::index::Index;
use crate::history::{AttemptNo, Event, History, Window};

/// A history and what several checkers need of it, computed once.
#[derive(Debug)]
pub(crate) struct Facts<'h> {
    pub(crate) history: &'h History,
    pub(crate) index: Index,
    /// Attempts that nodes have forgotten that need not remember them, so that too few are left.
    lost: BTreeSet<AttemptNo>,
}

impl<'h> Facts<'h> {
    pub(crate) fn of(history: &'h History) -> Self {
        Self {
            history,
            index: Index::of(history),
            lost: lost(history),
        }
    }

    /// Whether nodes that need not remember it have forgotten a lock, so that nothing is promised of it any more.
    pub(crate) fn is_lost(&self, window: &Window) -> bool {
        self.lost.contains(&window.attempt)
    }

    /// How many nodes are a majority.
    pub(crate) fn quorum(&self) -> usize {
        usize::from(self.history.nodes) / 2 + 1
    }
}

fn lost(history: &History) -> BTreeSet<AttemptNo> {
    let forgotten = history
        .entries
        .iter()
        .filter_map(|entry| match entry.event {
            Event::Forgotten { attempt, .. } => Some(attempt),
            _ => None,
        });
    // By attempt: the nodes that hold it, and whether one has forgotten it. One that went down counts again when it has the lock
    // again: what it waits for is the lock as it was, and that may have been extended since.
    let mut holders: BTreeMap<AttemptNo, (BTreeSet<u8>, bool)> = forgotten
        .map(|attempt| (attempt, Default::default()))
        .collect();
    let mut lost = BTreeSet::new();
    let quorum = usize::from(history.nodes) / 2 + 1;
    for entry in &history.entries {
        if holders.is_empty() {
            break;
        }
        match entry.event {
            Event::Granted { node, attempt, .. }
            | Event::Extended { node, attempt, .. }
            | Event::Restored { node, attempt, .. } => {
                if let Some((nodes, _)) = holders.get_mut(&attempt) {
                    nodes.insert(node);
                }
                continue;
            }
            Event::Forgotten { node, attempt, .. } => {
                if let Some((nodes, is_forgotten)) = holders.get_mut(&attempt) {
                    nodes.remove(&node);
                    *is_forgotten = true;
                }
            }
            Event::Down { node, .. } => {
                for (nodes, _) in holders.values_mut() {
                    nodes.remove(&node);
                }
            }
            _ => continue,
        }
        let few = holders
            .iter()
            .filter(|(_, (nodes, is_forgotten))| *is_forgotten && nodes.len() < quorum);
        lost.extend(few.map(|(attempt, _)| *attempt));
    }
    lost
}
