//! Every planted bug is found, within as many seeds as it says, and faults are what finds it.

use locknode_testkit::{Bug, FaultKinds, Scenario, Swarm, ViolationKind, shrink};

use crate::first_broken;

#[test]
fn every_planted_bug_is_found_within_its_seeds() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let (report, _) = first_broken(&Swarm::for_bug(bug), 0..bug.seeds());
        match report {
            Some(report) => {
                let seed = report.scenario().setup.seed;
                println!(
                    "{bug}: seed {seed} of {}: {}",
                    bug.seeds(),
                    report.violations()[0].kind.name()
                );
            }
            None => missed.push(bug),
        }
    }
    assert!(
        missed.is_empty(),
        "not found within their seeds: {missed:?}"
    );
}

/// The injection of faults is what finds them: where nothing goes wrong and nobody is in anybody's way, no bug does harm.
/// Rules that are looked at with every reply and at every moment of a lock are broken all the same, harm or not.
#[test]
fn without_faults_no_planted_bug_does_harm() {
    for bug in Bug::ALL {
        let swarm = Swarm::for_bug(bug).faults(FaultKinds::NONE);
        for seed in 0..10 {
            let report = swarm.run(seed);
            let harm: Vec<_> = report
                .violations()
                .iter()
                .filter(|violation| !RULES.contains(&violation.kind))
                .collect();
            assert!(harm.is_empty(), "{bug} at seed {seed}: {harm:?}");
        }
    }
}

/// What is broken before it does harm.
const RULES: [ViolationKind; 5] = [
    ViolationKind::NodeDurability,
    ViolationKind::Majority,
    ViolationKind::LateLoss,
    ViolationKind::Robbery,
    ViolationKind::Stuck,
];

/// The script that is left still fails, in the same way, bit for bit.
#[test]
fn what_was_found_is_made_short_and_replays() {
    for bug in [Bug::QuarantineOff, Bug::SharedToken, Bug::MaxOnly] {
        let (report, _) = first_broken(&Swarm::for_bug(bug), 0..bug.seeds());
        let report = report.expect("found within its seeds");
        let shrunk = shrink(report.scenario(), 400);
        assert!(
            shrunk.scenario.steps.len() <= 12,
            "{bug}: {}",
            shrunk.scenario
        );
        let text = shrunk.scenario.to_string();
        let again = Scenario::parse(&text).expect("it was written to be read");
        let (first, second) = (
            locknode_testkit::Report::of(&shrunk.scenario),
            locknode_testkit::Report::of(&again),
        );
        assert!(!second.is_safe(), "{bug}: {text}");
        assert_eq!(
            (first.hash(), first.violations()),
            (second.hash(), second.violations())
        );
        // Without its bug the same script does no harm.
        let mut cured = again;
        cured.setup.bug = None;
        locknode_testkit::Report::of(&cured).assert_safe();
    }
}
