//! What happened in worlds, and what never did: a clean run proves little of faults that never came.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use locknode_testkit::{Counters, FaultKind, FaultKinds, GuardMode};

use super::figures::grouped;
use crate::json::Object;

/// What may happen in the worlds of a swarm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    pub(super) faults: FaultKinds,
    pub(super) guard: Option<GuardMode>,
}

/// A table for people. `reach` determines what should have happened.
pub(super) fn text(counters: &Counters, reach: Option<Reach>) -> String {
    let mut text = String::from("\ncounts of faults and states:\n");
    for (name, count) in counters.iter() {
        let _ = writeln!(text, "  {name:<26} {:>15}", grouped(count.into()));
    }
    let Some(reach) = reach else { return text };
    let missing = missing(counters, reach);
    if missing.is_empty() {
        text.push_str("everything that these faults can cause has happened\n");
    } else {
        let _ = writeln!(
            text,
            "never happened (run more seeds): {}",
            missing.join(", ")
        );
    }
    text
}

/// The counts for machines.
pub(super) fn object(counters: &Counters) -> Object {
    let object = Object::default();
    counters
        .iter()
        .fold(object, |object, (name, count)| object.number(name, count))
}

/// What might have happened and did not.
pub(super) fn missing(counters: &Counters, reach: Reach) -> Vec<&'static str> {
    let happened: BTreeSet<&str> = counters.iter().map(|(name, _)| name).collect();
    let has_directory = !matches!(reach.guard, Some(GuardMode::Off | GuardMode::Memory));
    let is_reached =
        |kind: &&FaultKind| reach.faults.has(**kind) && (has_directory || !kind.is_of_disks());
    let mut of_faults: Vec<&str> = FaultKind::ALL
        .iter()
        .filter(is_reached)
        .flat_map(|kind| kind.counts())
        .copied()
        .filter(|name| !happened.contains(name))
        .collect();
    // Some come of several kinds.
    of_faults.sort_unstable();
    of_faults.dedup();
    let others = COUNTED.iter().filter(|(name, of, place)| {
        let has_fault = of.is_empty() || of.iter().any(|kind| reach.faults.has(*kind));
        has_fault && (has_directory || *place == ANYWHERE) && !happened.contains(name)
    });
    of_faults
        .into_iter()
        .chain(others.map(|(name, ..)| *name))
        .collect()
}

use FaultKind as Kind;

const STOPS: &[FaultKind] = &[Kind::Pause, Kind::Suspend, Kind::Freeze];

const DOWNS: &[FaultKind] = &[
    Kind::Crash,
    Kind::PowerLoss,
    Kind::CleanStop,
    Kind::DiskLost,
    Kind::Moved,
    Kind::Rollback,
    Kind::MaxTtl,
];

const ANYWHERE: bool = false;
const ON_DISK: bool = true;

/// What is worth reaching besides the faults themselves: its name, the faults of which any can cause it (none where it happens
/// without faults), and whether it happens only with a data directory.
const COUNTED: &[(&str, &[FaultKind], bool)] = &[
    ("calm", &[], ANYWHERE),
    ("acquired", &[], ANYWHERE),
    ("extended", &[], ANYWHERE),
    ("failed-busy", &[Kind::Rivalry], ANYWHERE),
    ("failed-no-quorum", DOWNS, ANYWHERE),
    ("lock-lost", DOWNS, ANYWHERE),
    ("extension-failed", DOWNS, ANYWHERE),
    ("write-fenced-off", STOPS, ANYWHERE),
    ("act-while-stopped", STOPS, ANYWHERE),
    ("quarantine-refusal", DOWNS, ANYWHERE),
    ("reply-waits-for-disk", &[], ON_DISK),
    ("reply-lost-to-disk", &[Kind::Disk], ON_DISK),
    ("disk-refused", &[Kind::Disk], ON_DISK),
    ("refused-by-failed-disk", &[Kind::Disk], ON_DISK),
    ("lock-restored", DOWNS, ON_DISK),
    ("start-after-clean-stop", &[Kind::CleanStop], ON_DISK),
    ("stop-cut-short", &[Kind::CleanStop], ON_DISK),
    ("stop-hurried", &[Kind::CleanStop], ON_DISK),
    ("stop-without-mark", &[Kind::CleanStop], ON_DISK),
    ("start-after-crash", &[Kind::Crash], ON_DISK),
    ("start-after-reboot", &[Kind::PowerLoss], ON_DISK),
    ("start-on-empty-disk", &[Kind::DiskLost], ON_DISK),
    ("start-from-log", DOWNS, ON_DISK),
    (
        "lost-request",
        &[Kind::Partition, Kind::OneWay, Kind::Drop],
        ANYWHERE,
    ),
    (
        "lost-reply",
        &[Kind::Partition, Kind::OneWay, Kind::Drop],
        ANYWHERE,
    ),
    ("duplicated-request", &[Kind::Duplicate], ANYWHERE),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_happen_is_missed() {
        let none = Counters::default();
        let reach = |faults, guard| Reach { faults, guard };
        let missed = missing(&none, reach(FaultKinds::NONE, Some(GuardMode::Memory)));
        assert_eq!(missed, ["calm", "acquired", "extended"]);
        let missed = missing(&none, reach(FaultKinds::PROMISED, None));
        assert!(
            missed.contains(&"kill") && missed.contains(&"disk-full"),
            "{missed:?}"
        );
        assert!(
            !missed.contains(&"node-freeze") && !missed.contains(&"rollback"),
            "{missed:?}"
        );
    }
}
