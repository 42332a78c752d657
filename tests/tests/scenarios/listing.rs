//! The list of scenarios and the tests are the same, and no planted mistake is without a script that it breaks.

use std::collections::BTreeSet;

use locknode_testkit::Bug;

const LIST: &str = include_str!("../../../crates/locknode-testkit/SCENARIOS.md");

const TESTS: [&str; 10] = [
    include_str!("client.rs"),
    include_str!("clocks.rs"),
    include_str!("cluster.rs"),
    include_str!("crash.rs"),
    include_str!("disk.rs"),
    include_str!("extend_release.rs"),
    include_str!("fencing.rs"),
    include_str!("hashes.rs"),
    include_str!("liveness.rs"),
    include_str!("stop.rs"),
];

/// Whether a word is the name of a scenario: `s01_...`, `r1_...`.
fn is_scenario(name: &str) -> bool {
    let number = name
        .strip_prefix(['s', 'r'])
        .and_then(|rest| rest.split('_').next());
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[test]
fn every_test_is_on_the_list_and_nothing_else() {
    let mut tests = BTreeSet::new();
    for text in TESTS {
        for line in text.lines() {
            let line = line.trim_start().trim_start_matches("async ");
            let name = line
                .strip_prefix("fn ")
                .and_then(|rest| rest.split('(').next());
            tests.extend(name.filter(|name| is_scenario(name)));
        }
    }
    let listed: BTreeSet<&str> = LIST.split('`').filter(|name| is_scenario(name)).collect();
    let begins = |name: &&str| listed.iter().any(|listed| name.starts_with(*listed));
    let unlisted: Vec<_> = tests.iter().filter(|name| !begins(name)).collect();
    assert!(unlisted.is_empty(), "not on the list: {unlisted:?}");
    let untested: Vec<_> = listed.difference(&tests).collect();
    assert!(untested.is_empty(), "not a test: {untested:?}");
    assert!(listed.len() > 55);
}

#[test]
fn every_planted_mistake_breaks_a_script() {
    for bug in Bug::ALL {
        let variant = format!("Bug::{bug:?}");
        assert!(
            TESTS.iter().any(|text| text.contains(&variant)),
            "{bug} is in no test"
        );
        assert!(LIST.contains(bug.name()), "{bug} is not on the list");
    }
}
