//! A history as checkers look at it: with the windows of its locks at hand.

use std::collections::{BTreeMap, BTreeSet};

use crate::history::{AttemptNo, Event, History, KeyNo, LockNo, Window};

/// A history and what several checkers need of it, computed once.
#[derive(Debug)]
pub(crate) struct Facts<'h> {
    pub(crate) history: &'h History,
    /// All windows, in the order in which they began.
    pub(crate) windows: Vec<Window>,
    places: BTreeMap<LockNo, usize>,
    /// Attempts that nodes have forgotten that need not remember them, so that too few are left.
    lost: BTreeSet<AttemptNo>,
}

impl<'h> Facts<'h> {
    pub(crate) fn of(history: &'h History) -> Self {
        let windows = history.windows();
        let places = windows
            .iter()
            .enumerate()
            .map(|(place, window)| (window.lock, place))
            .collect();
        Self {
            history,
            windows,
            places,
            lost: lost(history),
        }
    }

    /// Whether nodes that need not remember it have forgotten a lock, so that nothing is promised of it any more.
    pub(crate) fn is_lost(&self, window: &Window) -> bool {
        self.lost.contains(&window.attempt)
    }

    /// The place of a lock's window among all; none when it was not acquired. Of two locks the one with the lower place
    /// was acquired first.
    pub(crate) fn place(&self, lock: LockNo) -> Option<usize> {
        self.places.get(&lock).copied()
    }

    /// The window of a lock, if it was acquired.
    pub(crate) fn window(&self, lock: LockNo) -> Option<&Window> {
        self.windows.get(self.place(lock)?)
    }

    /// The windows of each key that has any, in the order in which they began.
    pub(crate) fn by_key(&self) -> BTreeMap<KeyNo, Vec<&Window>> {
        let mut keys: BTreeMap<KeyNo, Vec<&Window>> = BTreeMap::new();
        for window in &self.windows {
            keys.entry(window.key).or_default().push(window);
        }
        for windows in keys.values_mut() {
            windows.sort_by_key(|window| window.from);
        }
        keys
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
