//! Locks held as hashes, as Redisson keeps them. The seed decides which client uses scripts and which transactions.

use locknode_testkit::{Bug, ClientKind, Crash, Scenario, ViolationKind};

use crate::crash::amnesia;
use crate::outcome::*;
use crate::script::*;

/// Among so many seeds there is each pair of clients.
const SEEDS: u64 = 8;

/// The same with locks held as hashes, for each of some seeds.
fn with_hashes(scenario: &Scenario) -> impl Iterator<Item = Scenario> {
    let mut scenario = scenario.clone();
    scenario.setup.client = ClientKind::Hash;
    (1..=SEEDS).map(move |seed| scenario.seeded(seed))
}

#[test]
fn s73_hash_lock_and_a_restart() {
    for script in with_hashes(&amnesia(Crash::Kill)) {
        let it = safe(&script);
        assert!(it.window(0).until <= it.window(1).from);
        breaks(&script.with(Bug::HashTtlOffGuard), ViolationKind::Exclusion);
    }
}

#[test]
fn s74_hash_lock_and_an_orderly_restart() {
    for script in with_hashes(&amnesia(Crash::CleanStop)) {
        safe(&script);
        breaks(&script.with(Bug::HashForgotten), ViolationKind::Exclusion);
    }
}

#[test]
fn s75_two_transactions_at_once() {
    let script = Scenario::new(setup());
    let both = |script: Scenario, client| script.act(s(1), client, lock(s(4)).into());
    let script = both(both(script, 0), 1);
    let (mut tripped, mut broken) = (0, 0);
    for script in with_hashes(&script) {
        tripped += safe(&script).counters.of("exec-tripped");
        let found = verdict(&script.with(Bug::Unwatched));
        broken += usize::from(found.contains(&ViolationKind::Exclusion));
    }
    assert!(tripped > 0 && broken > 0, "{tripped}, {broken}");
}

#[test]
fn s76_release_of_an_inner_lock() {
    let script = Scenario::new(setup())
        .act(s(1), 0, lock(s(3)).extend_every(s(1)).into())
        // Right after the third extension, which releases what the first one acquired again.
        .act(ms(4_100), 1, lock(s(3)).into());
    for script in with_hashes(&script) {
        let it = safe(&script);
        it.check(it.counters.of("hash-left") > 0 && it.windows(1).is_empty());
        let bug = Bug::InnerReleaseFrees;
        breaks(&script.with(bug), ViolationKind::Exclusion);
    }
}
