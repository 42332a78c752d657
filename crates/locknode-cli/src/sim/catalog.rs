//! The lists of `--list-bugs` and `--list-faults`, with a sentence for each entry.

use std::fmt::Write as _;

use locknode_testkit::{Bug, FaultKind, FaultKinds};

/// All bugs, by whose they are.
pub(super) fn bugs() -> String {
    let mut text = String::from(
        "Bugs for --bug NAME, each with the number of seeds, from 0, that are sure to find it when no\n\
        other flag is given:\n",
    );
    for (heading, is_clients) in [("\nof a node:\n", false), ("\nof a client:\n", true)] {
        text.push_str(heading);
        for bug in Bug::ALL
            .into_iter()
            .filter(|bug| bug.is_clients() == is_clients)
        {
            let (name, seeds) = (bug.name(), bug.seeds());
            let _ = writeln!(text, "  {name:<24} {seeds:>5}  {}", bug.what());
        }
    }
    text
}

/// All faults and the sets of them.
pub(super) fn faults() -> String {
    let mut text = String::from("Faults for --faults, separated by commas:\n\n");
    for kind in FaultKind::ALL {
        let _ = writeln!(text, "  {:<14} {}", kind.name(), kind.what());
    }
    text.push_str("\nand sets of them:\n\n  none           no fault\n");
    for (name, set, what) in [
        (
            "promised",
            FaultKinds::PROMISED,
            "a lock must have at most one holder",
        ),
        ("fenced", FaultKinds::FENCED, "fencing tokens must rise"),
    ] {
        let without: Vec<&str> = FaultKind::ALL
            .iter()
            .filter(|kind| !set.has(**kind))
            .map(|kind| kind.name())
            .collect();
        let _ = writeln!(text, "  {name:<14} all but {}: {what}", without.join(", "));
    }
    text.push_str("  all            every fault\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_and_every_fault_has_a_line_that_is_not_too_long() {
        let (bugs, faults) = (bugs(), faults());
        assert!(
            bugs.lines()
                .chain(faults.lines())
                .all(|line| line.len() <= 106),
            "{bugs}{faults}"
        );
        assert!(
            FaultKind::ALL
                .iter()
                .all(|kind| faults.contains(kind.name()))
        );
    }
}
