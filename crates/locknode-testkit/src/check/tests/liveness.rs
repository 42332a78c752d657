use std::collections::BTreeMap;
use std::time::Duration;

use super::found;
use crate::check::liveness::{Bounds, liveness};
use crate::check::story::{Story, ms};
use crate::check::violation::Violation;
use crate::fault::{Crash, Fault, Who};
use crate::history::Event;
use crate::scenario::{Deed, LockAct, Scenario, Setup, Trigger};
use crate::swarm::Swarm;

/// Calm after a second, settled after eleven.
fn bounds() -> Bounds {
    Bounds {
        from: ms(1000),
        settle: Duration::from_secs(10),
        quarantine: Duration::from_secs(8),
        call: Duration::from_secs(2),
        quiet: Duration::from_millis(500),
        contended: 4,
        tries: BTreeMap::new(),
        is_quick: true,
    }
}

/// A client that is not connected yet needs three round trips for its first try.
#[test]
fn where_messages_are_slow_nobody_is_promised_a_lock_at_the_first_try() {
    let failed = || Story::new().calls(20_000, 0, 0).fails(20_500, 0, 0);
    let demanded = found(failed(), |facts| liveness(facts, &bounds()));
    assert_eq!(demanded.len(), 1);
    let is_quick = false;
    let slow = Bounds {
        is_quick,
        ..bounds()
    };
    assert_eq!(found(failed(), |facts| liveness(facts, &slow)), []);
    for (delay, is_quick) in [(1, true), (50, false)] {
        let delay = Duration::from_millis(delay);
        let setup = Setup {
            delay: (delay, delay),
            liveness_from: Some(ms(1000)),
            ..Setup::default()
        };
        let lock = LockAct::new("k", Duration::from_secs(1));
        let scenario = Scenario::new(setup).act(Duration::ZERO, 0, lock.into());
        assert_eq!(
            Bounds::of(&scenario).map(|it| it.is_quick),
            Some(is_quick),
            "{delay:?}"
        );
    }
}

fn check(name: &str, story: Story, want: Option<(u64, u64)>) -> Vec<Violation> {
    let violations = found(story, |facts| liveness(facts, &bounds()));
    let spans: Vec<_> = violations.iter().map(|it| (it.from, it.until)).collect();
    let want: Vec<_> = want
        .into_iter()
        .map(|(from, until)| (ms(from), ms(until)))
        .collect();
    assert_eq!(spans, want, "{name}");
    violations
}

#[test]
fn a_call_ends_in_time() {
    let call = |at| Story::new().calls(at, 0, 0);
    let died = Event::ClientDown { client: 0 };
    let others = Event::ClientDown { client: 1 };
    let rows = [
        (
            "acquired in time",
            call(20_000).acquired(22_000, 0, 0, 23_000, None),
            None,
        ),
        (
            "too late",
            call(20_000).acquired(22_001, 0, 0, 23_000, None),
            Some((20_000, 22_001)),
        ),
        ("never", call(20_000), Some((20_000, 60_000))),
        ("the world ends before", call(58_000), None),
        ("just not", call(57_999), Some((57_999, 60_000))),
        (
            "called for in the trouble",
            call(500).acquired(13_000, 0, 0, 14_000, None),
            None,
        ),
        (
            "and it lasts",
            call(500).acquired(13_001, 0, 0, 14_000, None),
            Some((500, 13_001)),
        ),
        ("the client dies", call(20_000).at(21_000, died), None),
        (
            "another client dies",
            call(20_000).at(21_000, others),
            Some((20_000, 60_000)),
        ),
        (
            "the trouble begins again",
            call(20_000).fault(21_999, "crash node 0 kill"),
            None,
        ),
        (
            "later",
            call(20_000).fault(22_001, "crash node 0 kill"),
            Some((20_000, 60_000)),
        ),
        (
            "calmed once more",
            call(20_000).fault(21_000, "calm"),
            Some((20_000, 60_000)),
        ),
        (
            "what is right is put right",
            call(20_000)
                .fault(20_001, "restart node 0")
                .fault(20_002, "heal client all node 1")
                .fault(20_003, "release client 0 node 1 both")
                .fault(20_004, "disk node 4 room")
                .fault(20_005, "disk node 4 go"),
            Some((20_000, 60_000)),
        ),
        (
            "a disk fails",
            call(20_000).fault(21_000, "disk node 4 full"),
            None,
        ),
        (
            "the trouble was before",
            call(20_000).fault(999, "crash node 0 kill"),
            Some((20_000, 60_000)),
        ),
        (
            "somebody stood still for long",
            call(20_000)
                .stopped(900, Who::Client(0), 15_000)
                .acquired(27_000, 0, 0, 28_000, None),
            None,
        ),
    ];
    for (name, story, want) in rows {
        check(name, story, want);
    }
}

#[test]
fn who_is_alone_succeeds() {
    let fails = || Story::new().calls(30_000, 0, 0).fails(30_100, 0, 0);
    let bad = Some((30_000, 30_100));
    let refuses = |at, node| {
        move |story: Story| {
            let why = "MISCONF";
            story.at(
                at,
                Event::Refused {
                    node,
                    client: 0,
                    why,
                },
            )
        }
    };
    let refused = |story| (0..3).fold(story, |story, node| refuses(29_400, node)(story));
    let rows = [
        ("nobody else", fails(), bad),
        (
            "before all is settled",
            Story::new().calls(10_999, 0, 0).fails(11_500, 0, 0),
            None,
        ),
        (
            "another call meanwhile",
            fails().calls(30_050, 1, 1).fails(30_060, 1, 1),
            None,
        ),
        (
            "another call under way",
            fails().calls(29_000, 1, 1).fails(30_060, 1, 1),
            None,
        ),
        (
            "another call after",
            fails()
                .calls(30_101, 1, 1)
                .acquired(30_200, 1, 1, 30_300, None),
            bad,
        ),
        (
            "a failed one just before",
            refused(fails().calls(29_000, 1, 1).fails(29_501, 1, 1)),
            None,
        ),
        (
            "a failed one that is quiet",
            refused(fails().calls(29_000, 1, 1).fails(29_500, 1, 1)),
            bad,
        ),
        (
            "released by a majority",
            fails()
                .held(1, 1, 28_000, 29_400)
                .releases(29_100, 1, 1)
                .released(29_200, 1, 1, 3),
            bad,
        ),
        (
            "released by fewer",
            fails()
                .held(1, 1, 28_000, 29_400)
                .releases(29_100, 1, 1)
                .released(29_200, 1, 1, 2),
            None,
        ),
        ("held", fails().held(1, 1, 29_000, 35_000), None),
        (
            "held not long ago",
            fails().held(1, 1, 19_000, 20_001),
            None,
        ),
        ("held long ago", fails().held(1, 1, 19_000, 20_000), bad),
        (
            "two nodes are away",
            fails().down(100, 0, Crash::Kill).down(100, 1, Crash::Kill),
            bad,
        ),
        (
            "three are",
            fails()
                .down(100, 0, Crash::Kill)
                .down(100, 1, Crash::Kill)
                .starts(25_000, 2, true)
                .serves(30_001, 2),
            None,
        ),
        (
            "two refuse",
            refuses(30_050, 1)(refuses(30_050, 0)(fails())),
            bad,
        ),
        (
            "three refuse",
            refuses(30_100, 2)(refuses(30_050, 1)(refuses(30_000, 0)(fails()))),
            None,
        ),
        (
            "three refused",
            refuses(29_999, 2)(refuses(30_101, 1)(refuses(30_050, 0)(fails()))),
            bad,
        ),
    ];
    for (name, story, want) in rows {
        check(name, story, want);
    }
}

#[test]
fn votes_are_not_split_for_ever() {
    let pairs = |calls: u64| {
        (0..calls).fold(Story::new(), |story, n| {
            let lock = u32::try_from(n).unwrap();
            story
                .calls(20_000 + n * 10, 0, lock)
                .fails(20_015 + n * 10, 0, lock)
        })
    };
    check("four", pairs(4), None);
    check("five", pairs(5), Some((20_000, 20_055)));
    check("one is held", pairs(5).held(1, 9, 20_020, 20_030), None);
    check(
        "one was held long ago",
        pairs(5).held(1, 9, 1000, 10_999),
        Some((20_000, 20_055)),
    );
}

/// What comes before does not excuse what comes after.
#[test]
fn a_row_of_failures_begins_when_the_key_is_free() {
    let row = |from: u64| {
        move |story| {
            (0..5).fold(story, |story: Story, n| {
                let (at, lock) = (from + n * 100, u32::try_from(from + n).unwrap());
                story.calls(at, 0, lock).fails(at + 150, 0, lock)
            })
        }
    };
    let late = row(30_000);
    let bad = Some((30_000, 30_550));
    let held = || Story::new().held(1, 9, 20_000, 25_000);
    let votes = |until| held().votes(19_999, &[0, 1, 2], 9, until);
    let dies = || {
        let died = Event::ClientDown { client: 0 };
        Story::new().granted(19_999, 3, 9, 30_001).at(20_001, died)
    };
    let down = |story: Story, node| story.down(30_200, node, Crash::Kill);
    let away = |story| (0..3).fold(story, down);
    let rows = [
        ("held before", late(held()), bad),
        (
            "held as it begins",
            late(held().held(1, 8, 29_000, 30_001)),
            None,
        ),
        (
            "held meanwhile",
            late(held().held(1, 8, 30_050, 30_060)),
            None,
        ),
        (
            "held and left to its TTL until then",
            late(votes(30_000)),
            bad,
        ),
        ("and longer", late(votes(30_001)), None),
        (
            "it was freed",
            late(
                votes(30_001)
                    .freed(26_000, 0, 9)
                    .freed(26_000, 1, 9)
                    .freed(26_000, 2, 9),
            ),
            bad,
        ),
        (
            "one holds on",
            late(votes(30_001).freed(26_000, 0, 9).freed(26_000, 1, 9)),
            None,
        ),
        (
            "extended",
            late(votes(25_005).prolonged(24_000, 2, 9, 30_001)),
            None,
        ),
        ("somebody died", late(dies()), None),
        ("and all is free", late(dies().freed(26_000, 3, 9)), bad),
        (
            "split votes are no excuse",
            late(Story::new().granted(30_001, 3, 9, 40_000)),
            bad,
        ),
        ("a majority goes down", away(late(Story::new())), None),
        (
            "a row before it was held",
            row(30_000)(held().held(1, 8, 40_000, 41_000)),
            bad,
        ),
    ];
    for (name, story, want) in rows {
        check(name, story, want);
    }
}

#[test]
fn each_try_of_a_call_counts() {
    let story = || {
        Story::new()
            .calls(20_000, 0, 0)
            .calls(20_005, 1, 1)
            .fails(20_500, 0, 0)
            .fails(20_600, 1, 1)
    };
    let spans = |tries: u32| {
        let bounds = Bounds {
            tries: BTreeMap::from([((ms(20_000), 0), tries)]),
            ..bounds()
        };
        let found = found(story(), |facts| liveness(facts, &bounds));
        found
            .iter()
            .map(|it| (it.from, it.until))
            .collect::<Vec<_>>()
    };
    assert_eq!(spans(3), []);
    assert_eq!(spans(4), [(ms(20_000), ms(20_600))]);
}

/// What comes later than that ends the time in which progress is demanded.
#[test]
fn a_swarm_plans_no_fault_after_the_calm() {
    for seed in 0..500 {
        let scenario = Swarm::default().scenario(seed);
        let calm = scenario.setup.liveness_from.unwrap();
        for step in &scenario.steps {
            if let (Trigger::At(at), Deed::Fault(fault)) = (&step.when, &step.what) {
                assert!(*at <= calm, "seed {seed}: {fault:?} at {at}");
            }
        }
    }
}

#[test]
fn a_quarantine_ends() {
    let starts = |at| Story::new().starts(at, 3, true);
    check("in time", starts(5000).serves(13_000, 3), None);
    check(
        "too late",
        starts(5000).serves(13_001, 3),
        Some((5000, 13_001)),
    );
    check("never", starts(5000), Some((5000, 60_000)));
    check("by a crash", starts(5000).down(6000, 3, Crash::Kill), None);
    check("it began in the trouble", starts(500).serves(9000, 3), None);
    check("and lasts", starts(500).serves(9001, 3), Some((500, 9001)));
    check("none", Story::new().starts(5000, 3, false), None);
}

#[test]
fn bounds_follow_from_the_scenario() {
    let quiet = Scenario::new(Setup::default());
    assert_eq!(Bounds::of(&quiet), None);
    let setup = Setup {
        liveness_from: Some(ms(5000)),
        delay: (Duration::ZERO, Duration::from_millis(8)),
        sync: (Duration::ZERO, Duration::from_millis(2)),
        ..Setup::default()
    };
    let scenario = Scenario::new(setup)
        .act(
            Duration::ZERO,
            0,
            LockAct::new("a", Duration::from_secs(80)).tries(3).into(),
        )
        .at(Duration::ZERO, Fault::MaxTtl(1, Duration::from_secs(16)));
    let bounds = Bounds::of(&scenario).unwrap();
    assert_eq!(
        bounds.settle,
        Duration::from_millis(80_000 + 800 + 10_000 + 2000)
    );
    assert_eq!(
        bounds.quarantine,
        Duration::from_millis(16_000 + 160 + 2000 + 2000)
    );
    assert_eq!(bounds.call, Duration::from_millis(3 * 2100 + 1000));
    assert_eq!(bounds.quiet, Duration::from_millis(1100));
    assert_eq!(bounds.from, ms(5000));
    assert_eq!(bounds.contended, 3 * 8);
    assert_eq!(bounds.tries, BTreeMap::from([((ms(0), 0), 3)]));
}

#[test]
fn who_waited_is_told_with_what_happened_since_the_calm() {
    let story = Story::new()
        .fault(1000, "calm")
        .fault(999, "reset all")
        .calls(20_000, 0, 0);
    let text = "20s..60s liveness: client 0 does not know within 2s whether it has lock 0, called for at 20s
  1s: calm";
    assert_eq!(
        check("stuck", story, Some((20_000, 60_000)))[0].to_string(),
        text
    );
}
