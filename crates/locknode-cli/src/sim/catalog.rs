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
            let _ = writeln!(text, "  {name:<24} {seeds:>5}  {}", of_bug(bug));
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

fn of_bug(bug: Bug) -> &'static str {
    match bug {
        Bug::QuarantineOff => "a restarted node serves at once",
        Bug::QuarantineShort => "a restarted node waits a tenth less than it must",
        Bug::WaitFromConfig => {
            "a restarted node waits for the longest TTL of its new configuration"
        }
        Bug::StateNotAwaited => "a node replies before the horizon or ceiling it needs is durable",
        Bug::LogNotAwaited => "a node replies before the log record it needs is durable",
        Bug::MarkerKept => "the mark of a clean stop survives until after a later crash",
        Bug::FenceForgotten => "a restart ignores the durable fence ceiling",
        Bug::FenceFromStarts => {
            "fence counters start at the number of starts; nothing else is durable"
        }
        Bug::WriteBackAnyway => "nodes that no longer hold the lock accept its fencing token",
        Bug::SlewedClock => "the node's time follows only boottime, which NTP slews",
        Bug::WallClock => "the node expires locks by its wall clock",
        Bug::ValidityFromReply => "the validity counts from the last reply",
        Bug::DriftAdded => "the drift is added to the validity, not subtracted",
        Bug::ValidityUnchecked => "the validity is not checked before the lock is handed out",
        Bug::VotesKept => "votes of an earlier round count in a later one",
        Bug::ReleaseWithoutCompare => "a release deletes the key even if another client holds it",
        Bug::ExtendWithoutCompare => "an extension renews the key even if another client holds it",
        Bug::SharedToken => "all attempts of all clients use one token",
        Bug::TokenReused => "a client reuses its token, and a key with it counts as granted",
        Bug::ExtendOrSet => "an extension sets keys that are missing, and counts them",
        Bug::ExtendAfterEnd => "a lock is extended after its validity has ended",
        Bug::QuorumOfReachable => "the quorum is a majority of the reachable nodes only",
        Bug::HalfIsQuorum => "half of the nodes, rounded down, are a quorum",
        Bug::MaxOnly => "the highest counter is the fencing token, without a write-back",
        Bug::RepliesMixedUp => "a late reply is taken for the next one",
        Bug::SleepyClock => "the client's clock stops while its machine sleeps",
        Bug::ReadsNotAwaited => "a node replies to a read of a lock before the lock is durable",
        Bug::NamespaceTrusted => "a time namespace counts as the same because its number is",
        Bug::CutLogServed => "a node serves a log that has lost its last batch",
        Bug::Restless => "a client asks to be woken at once, again and again",
        Bug::SilentNotSynced => "grants without a reply do not wake the disk",
        Bug::CeilingBurnt => "each start uses up a large step of the fence counters",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_and_every_fault_has_a_sentence() {
        for bug in Bug::ALL {
            assert_ne!(of_bug(bug), "", "{bug}");
        }
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
