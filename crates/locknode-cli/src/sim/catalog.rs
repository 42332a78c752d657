//! What `--bug` and `--faults` know, with a sentence for each.

use std::fmt::Write as _;

use locknode_testkit::{Bug, FaultKind, FaultKinds};

/// All bugs, by whose they are.
pub(super) fn bugs() -> String {
    let mut text = String::from(
        "Bugs that can be planted into every world with --bug NAME, to see that they are found.\n\
        Each is sure to be found within so many seeds from 0 on, when nothing else is chosen:\n",
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
    let mut text = String::from("Faults for --faults, with commas between:\n\n");
    for kind in FaultKind::ALL {
        let _ = writeln!(text, "  {:<14} {}", kind.name(), kind.what());
    }
    text.push_str("\nand sets of them:\n\n  none           no fault\n");
    for (name, set, what) in [
        (
            "promised",
            FaultKinds::PROMISED,
            "a lock has at most one holder",
        ),
        ("fenced", FaultKinds::FENCED, "fencing tokens rise"),
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
        Bug::QuarantineShort => "a restarted node waits a tenth less than it has to",
        Bug::WaitFromConfig => {
            "a restarted node waits for the longest TTL of its new configuration"
        }
        Bug::StateNotAwaited => {
            "a reply leaves before the horizon or ceiling it rests on is durable"
        }
        Bug::LogNotAwaited => "a reply leaves before the log record it rests on is durable",
        Bug::MarkerKept => "the mark of a clean stop is found again after a later crash",
        Bug::FenceForgotten => "the durable fence ceiling is forgotten at a restart",
        Bug::FenceFromStarts => {
            "fence counters begin at the number of starts, nothing else is durable"
        }
        Bug::WriteBackAnyway => "tokens are accepted by nodes that do not hold the lock any more",
        Bug::SlewedClock => "the node's time follows boottime alone, which NTP slews",
        Bug::WallClock => "the node ends locks by its wall clock",
        Bug::ValidityFromReply => "the validity counts from the last reply",
        Bug::DriftAdded => "the drift is added to the validity, not taken off",
        Bug::ValidityUnchecked => "the validity is not looked at before the lock is handed out",
        Bug::VotesKept => "votes of an earlier round count in a later one",
        Bug::ReleaseWithoutCompare => "a release deletes the key whoever holds it",
        Bug::ExtendWithoutCompare => "an extension renews the key whoever holds it",
        Bug::SharedToken => "all attempts of all clients use one token",
        Bug::TokenReused => "a token is used again, and a key that has it counts as granted",
        Bug::ExtendOrSet => "an extension sets keys that are gone, and counts them",
        Bug::ExtendAfterEnd => "a lock is extended after its validity has ended",
        Bug::QuorumOfReachable => "the majority is one of the nodes that can be reached",
        Bug::HalfIsQuorum => "half of the nodes, rounded down, are a majority",
        Bug::MaxOnly => "the highest counter is the fencing token; no node is told",
        Bug::RepliesMixedUp => "a reply that comes too late is taken for the next one",
        Bug::SleepyClock => "the client's clock stands still while its machine sleeps",
        Bug::ReadsNotAwaited => "a reply that merely tells of a lock leaves before that is durable",
        Bug::NamespaceTrusted => "a time namespace is taken for the same because its number is",
        Bug::CutLogServed => "a log that has lost its last batch is served as if it had not",
        Bug::Restless => "a client asks to be woken at once, again and again",
        Bug::SilentNotSynced => "nobody wakes the disk for what is granted without a reply",
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
