//! The outcome of many worlds, in bounded memory.

use std::collections::BTreeMap;

use locknode_testkit::{Counters, ViolationKind};

use super::inspection::{Seen, Trouble};

/// The outcome of the worlds so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) worlds: u64,
    pub(super) events: u64,
    pub(super) counters: Counters,
    /// How many worlds are in trouble, and of how many which promise was broken.
    pub(super) failing: u64,
    pub(super) broken: BTreeMap<ViolationKind, u64>,
    /// Those with the lowest seeds, at most [`SHOWN_MAX`].
    pub(super) lowest: BTreeMap<u64, Trouble>,
    /// Worlds whose faults do not allow to promise one holder ...
    pub(super) unpromised: u64,
    /// ... and those among them that had two.
    pub(super) unpromised_overlaps: u64,
}

impl Tally {
    /// Adds a world.
    pub(super) fn see(&mut self, seed: u64, seen: Seen) {
        self.worlds += 1;
        self.events += seen.events;
        self.counters.add(&seen.counters);
        self.unpromised += u64::from(seen.is_unpromised);
        self.unpromised_overlaps += u64::from(seen.has_unpromised_overlap);
        let Some(trouble) = seen.trouble else { return };
        self.failing += 1;
        if let Trouble::Broken(kinds) = &trouble {
            for kind in kinds {
                *self.broken.entry(*kind).or_default() += 1;
            }
        }
        self.lowest.insert(seed, trouble);
        while self.lowest.len() > SHOWN_MAX {
            self.lowest.pop_last();
        }
    }

    /// Forgets failing worlds but the first: which others were still begun depends on the threads.
    pub(super) fn keep_first(&mut self) {
        let Some((seed, trouble)) = self.lowest.pop_first() else {
            return;
        };
        self.failing = 1;
        self.broken.clear();
        if let Trouble::Broken(kinds) = &trouble {
            self.broken.extend(kinds.iter().map(|kind| (*kind, 1)));
        }
        self.lowest = BTreeMap::from([(seed, trouble)]);
    }
}

/// More seeds would not be read.
const SHOWN_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn failing() -> Seen {
        Seen {
            events: 10,
            counters: Counters::default(),
            trouble: Some(Trouble::Broken(vec![ViolationKind::Exclusion])),
            is_unpromised: false,
            has_unpromised_overlap: false,
        }
    }

    #[test]
    fn the_lowest_seeds_are_kept_in_whatever_order_they_come() {
        let mut tally = Tally::default();
        for seed in (0..100).rev() {
            tally.see(seed, failing());
        }
        assert_eq!(
            (tally.worlds, tally.events, tally.failing),
            (100, 1000, 100)
        );
        assert_eq!(
            tally.broken,
            BTreeMap::from([(ViolationKind::Exclusion, 100)])
        );
        assert!(tally.lowest.keys().copied().eq(0..20));
        tally.keep_first();
        assert_eq!((tally.failing, tally.lowest.len()), (1, 1));
        assert_eq!(
            tally.broken,
            BTreeMap::from([(ViolationKind::Exclusion, 1)])
        );
    }
}
