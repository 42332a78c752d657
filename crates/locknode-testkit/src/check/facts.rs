//! A history as checkers look at it: with the windows of its locks at hand.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::lack::lack;
use crate::history::index::Index;
use crate::history::{AttemptNo, Event, History, Window};
use crate::span::SimTime;

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
        let index = Index::of(history);
        Self {
            history,
            lost: lost(history, &index),
            index,
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

/// What nodes have forgotten that need not remember it, when fewer than a majority hold the lock at some moment from then on while
/// its client believes in it. A node that went down counts again when it has the lock again: what it waits for is the lock as it
/// was, and that may have been extended since.
fn lost(history: &History, index: &Index) -> BTreeSet<AttemptNo> {
    let mut forgotten: BTreeMap<AttemptNo, SimTime> = BTreeMap::new();
    for entry in &history.entries {
        if let Event::Forgotten { attempt, .. } = entry.event {
            forgotten.entry(attempt).or_insert(entry.at);
        }
    }
    let is_lost = |window: &&Window| {
        let since = forgotten.get(&window.attempt);
        since.is_some_and(|since| lack(history, index, window, *since, false).is_some())
    };
    index
        .windows
        .iter()
        .filter(is_lost)
        .map(|it| it.attempt)
        .collect()
}
