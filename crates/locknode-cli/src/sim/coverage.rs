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

/// Something that a world counts.
#[derive(Debug)]
struct Counted {
    name: &'static str,
    /// Any of these kinds of faults can cause it; empty if it happens without faults.
    of: &'static [FaultKind],
    /// It happens only with a data directory.
    needs_directory: bool,
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
    let may_happen = |counted: &&Counted| {
        let has_fault =
            counted.of.is_empty() || counted.of.iter().any(|kind| reach.faults.has(*kind));
        has_fault && (has_directory || !counted.needs_directory)
    };
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
    let others = COUNTED
        .iter()
        .filter(may_happen)
        .map(|counted| counted.name)
        .filter(|name| !happened.contains(name));
    of_faults.into_iter().chain(others).collect()
}

const fn always(name: &'static str) -> Counted {
    with(name, &[])
}

const fn with(name: &'static str, of: &'static [FaultKind]) -> Counted {
    Counted {
        name,
        of,
        needs_directory: false,
    }
}

const fn on_disk(name: &'static str, of: &'static [FaultKind]) -> Counted {
    Counted {
        name,
        of,
        needs_directory: true,
    }
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

/// What is worth reaching beside the faults themselves.
const COUNTED: &[Counted] = &[
    always("calm"),
    always("acquired"),
    always("extended"),
    with("failed-busy", &[Kind::Rivalry]),
    with("failed-no-quorum", DOWNS),
    with("lock-lost", DOWNS),
    with("extension-failed", DOWNS),
    with("write-fenced-off", STOPS),
    with("act-while-stopped", STOPS),
    with("quarantine-refusal", DOWNS),
    on_disk("reply-waits-for-disk", &[]),
    on_disk("reply-lost-to-disk", &[Kind::Disk]),
    on_disk("disk-refused", &[Kind::Disk]),
    on_disk("refused-by-failed-disk", &[Kind::Disk]),
    on_disk("lock-restored", DOWNS),
    on_disk("start-after-clean-stop", &[Kind::CleanStop]),
    on_disk("stop-cut-short", &[Kind::CleanStop]),
    on_disk("stop-hurried", &[Kind::CleanStop]),
    on_disk("stop-without-mark", &[Kind::CleanStop]),
    on_disk("start-after-crash", &[Kind::Crash]),
    on_disk("start-after-reboot", &[Kind::PowerLoss]),
    on_disk("start-on-empty-disk", &[Kind::DiskLost]),
    on_disk("start-from-log", DOWNS),
    with("lost-request", &[Kind::Partition, Kind::OneWay, Kind::Drop]),
    with("lost-reply", &[Kind::Partition, Kind::OneWay, Kind::Drop]),
    with("duplicated-request", &[Kind::Duplicate]),
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
