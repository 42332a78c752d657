//! Nobody waits for longer than has to be.

use locknode_testkit::history::Event;
use locknode_testkit::{
    Ending, Fault, Hook, Links, Members, Refusal, Scenario, Setup, SimTime, ViolationKind, Way,
};

use crate::outcome::*;
use crate::script::*;

/// Errors of a minority stop nobody, and those of a majority are no votes.
#[test]
fn refusals_of_a_majority_cost_a_lock_and_no_safety() {
    for (nodes, is_acquired) in [(Members::from([0, 1]), true), ([0, 1, 2].into(), false)] {
        let refuse = |refusal| Fault::Refuse(Links::between(0, nodes), refusal, 1);
        let script = Scenario::new(setup())
            .act(ms(100), 0, warm())
            .at(ms(900), refuse(Refusal::Oom))
            .act(s(1), 0, lock(s(4)).tries(1).hold(ms(200)).into());
        let it = safe(&script);
        assert_eq!(
            it.counters.of("refused-by-fault"),
            nodes.iter().count() as u64
        );
        let acquired = it.count(|event| matches!(event, Event::Acquired { key: 1, .. }));
        it.check_eq(acquired == 1, is_acquired);
    }
}

/// Three clients that call at the same moment, each next to other nodes: two, two, and one.
#[test]
fn s48_split_vote_livelock() {
    for seed in 1..=20 {
        let mut script = Scenario::new(setup()).seeded(seed);
        for (client, near) in [(0, [0, 1]), (1, [2, 3]), (2, [4, 4])] {
            let far = (0..5)
                .filter(|node| !near.contains(node))
                .collect::<Vec<u8>>();
            for node in far {
                script = script.at(ms(900), Fault::Delay(link(client, node), ms(5)));
            }
            script = script
                .act(ms(100 + 200 * u64::from(client)), client, warm())
                .act(s(1), client, lock(s(4)).tries(20).hold(ms(20)).into());
        }
        let it = safe(&script);
        let first = it.first(|event| matches!(event, Event::Granted { key: 1, .. }));
        let votes: Vec<usize> = (0..3)
            .map(|client| {
                let is_early = |node| {
                    it.times(granted(node, client))
                        .iter()
                        .any(|at| *at >= first && at.since(first) < ms(2))
                };
                (0..5).filter(|node| is_early(*node)).count()
            })
            .collect();
        assert_eq!(votes, [2, 2, 1], "seed {seed}: {}", it.story());
        let last = it.last(|event| matches!(event, Event::Acquired { key: 1, .. }));
        it.happens(|event| matches!(event, Event::Acquired { key: 1, .. }), 3);
        assert!(last.since(s(1).into()) < s(5), "seed {seed}: {last}");
    }
}

/// A holder dies. The lock is free within its TTL and what another try takes.
#[test]
fn s56_client_crash_while_holding() {
    let dying = lock(s(4)).hold(ms(500)).ending(Ending::Crash);
    let script = Scenario::new(setup()).act(s(1), 0, dying.into()).acts_on(
        Hook::Acquired(0),
        1,
        ms(600),
        1,
        lock(s(4)).tries(60),
    );
    let it = safe(&script);
    assert_eq!(
        it.count(|event| matches!(event, Event::ClientDown { client: 0 })),
        1
    );
    assert!(
        it.first(freed(0)) > it.first(acquired(1)),
        "nobody lets it go: {}",
        it.story()
    );
    let wait = it.window(1).from.since(it.first(granted(0, 0)));
    assert!(
        wait >= s(4) && wait < ms(4_040) + ms(600),
        "{wait:?}: {}",
        it.story()
    );
}

/// Everything breaks, then a majority and one client are healed: they go on although the rest stays broken.
#[test]
fn a_majority_and_one_client_are_enough() {
    let script = Scenario::new(Setup {
        liveness_from: Some(SimTime::from(s(6))),
        ..setup()
    })
    .at(s(2), Fault::Cut(Links::ALL, Way::Both))
    .act(s(3), 0, lock(s(4)).tries(3).into())
    .at(s(6), Fault::Calm)
    .act(s(13), 1, lock(s(4)).into());
    let it = safe(&script);
    it.happens(failed(0), 1);
    it.check(it.window(1).from.since(s(13).into()) < ms(50));
    assert!(!it.has(ViolationKind::Liveness));
}

fn warm() -> locknode_testkit::ClientAction {
    locknode_testkit::LockAction::new("before", s(1))
        .hold(ms(5))
        .into()
}
