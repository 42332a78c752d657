//! One world: run, judged, and what is kept of it.

use locknode_testkit::{
    Counters, Promise, Report, Swarm, ViolationKind, check_all, check_determinism,
};

/// What is kept of a world.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) events: u64,
    pub(super) counters: Counters,
    /// What is wrong with it, if anything is.
    pub(super) trouble: Option<Trouble>,
    /// Its faults do not allow to promise that a lock has one holder ...
    pub(super) is_unpromised: bool,
    /// ... and there were two.
    pub(super) has_unpromised_overlap: bool,
}

/// What can be wrong with a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It broke these promises, in order and without repetition.
    Broken(Vec<ViolationKind>),
    /// It was another one when it ran again.
    Differs(String),
}

/// Runs and judges the world of a seed, twice if asked to.
pub(super) fn inspect(swarm: &Swarm, seed: u64, is_twice: bool) -> Seen {
    let scenario = swarm.scenario(seed);
    let report = Report::of(&scenario);
    let promise = Promise::of(&scenario).in_world(&scenario, report.history());
    let is_unpromised = !promise.has(ViolationKind::Exclusion);
    let mut kinds: Vec<ViolationKind> = report.violations().iter().map(|it| it.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let trouble = if kinds.is_empty() {
        let differs = is_twice.then(|| difference(&report)).flatten();
        differs.map(Trouble::Differs)
    } else {
        Some(Trouble::Broken(kinds))
    };
    let overlaps = || {
        let mut violations = check_all(report.history(), &scenario).into_iter();
        violations.any(|it| it.kind == ViolationKind::Exclusion)
    };
    Seen {
        events: report.events(),
        counters: report.counters().clone(),
        trouble,
        is_unpromised,
        has_unpromised_overlap: is_unpromised && overlaps(),
    }
}

/// Runs a world again. Returns the difference, if there is one.
pub(super) fn difference(report: &Report) -> Option<String> {
    let again = Report::of(report.scenario());
    let is_same = again.hash() == report.hash()
        && again.events() == report.events()
        && again.history().entries == report.history().entries;
    if is_same {
        return None;
    }
    let found = check_determinism(report.scenario());
    Some(found.map_or_else(
        || "two of its runs differed, two others did not".to_owned(),
        |difference| difference.to_string(),
    ))
}
