use std::collections::BTreeMap;
use std::time::Duration;

use super::{found, judge, span};
use crate::check::liveness::{Bounds, liveness};
use crate::fault::Fault;
use crate::history::tests::ms;
use crate::scenario::{Action, LockAction, Scenario, Setup, Trigger};
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
    let failed = "20000 c0 calls l0; 20500 c0 fails l0";
    let demanded = found(failed, |facts| liveness(facts, &bounds()));
    assert_eq!(demanded.len(), 1);
    let is_quick = false;
    let slow = Bounds {
        is_quick,
        ..bounds()
    };
    assert_eq!(found(failed, |facts| liveness(facts, &slow)), []);
    for (delay, is_quick) in [(1, true), (50, false)] {
        let delay = Duration::from_millis(delay);
        let setup = Setup {
            delay: (delay, delay),
            liveness_from: Some(ms(1000)),
            ..Setup::default()
        };
        let lock = LockAction::new("k", Duration::from_secs(1));
        let scenario = Scenario::new(setup).act(Duration::ZERO, 0, lock.into());
        assert_eq!(
            Bounds::of(&scenario).map(|it| it.is_quick),
            Some(is_quick),
            "{delay:?}"
        );
    }
}

/// A table of what took too long, judged with the usual bounds.
fn check(before: &str, table: &str) {
    judge(before, table, span, |facts| liveness(facts, &bounds()));
}

#[test]
fn a_call_ends_in_time() {
    let table = "
        acquired in time            | 20000 c0 calls l0; 22000 c0 acquires l0 until 23000 |
        too late                    | 20000 c0 calls l0; 22001 c0 acquires l0 until 23000 | 20000..22001
        never                       | 20000 c0 calls l0 | 20000..60000
        the world ends before       | 58000 c0 calls l0 |
        just not                    | 57999 c0 calls l0 | 57999..60000
        called for in the trouble   | 500 c0 calls l0; 13000 c0 acquires l0 until 14000 |
        and it lasts                | 500 c0 calls l0; 13001 c0 acquires l0 until 14000 | 500..13001
        the client dies             | 20000 c0 calls l0; 21000 c0 dies |
        another client dies         | 20000 c0 calls l0; 21000 c1 dies | 20000..60000
        the trouble begins again    | 20000 c0 calls l0; 21999 fault crash node 0 kill |
        later                       | 20000 c0 calls l0; 22001 fault crash node 0 kill | 20000..60000
        calmed once more            | 20000 c0 calls l0; 21000 fault calm | 20000..60000
        what is right is put right  | 20000 c0 calls l0; 20001 fault restart node 0; 20002 fault heal client all node 1; \
                                      20003 fault release client 0 node 1 both; 20004 fault disk node 4 room; \
                                      20005 fault disk node 4 go | 20000..60000
        a disk fails                | 20000 c0 calls l0; 21000 fault disk node 4 full |
        the trouble was before      | 20000 c0 calls l0; 999 fault crash node 0 kill | 20000..60000
        one stood still for long    | 900 c0 pauses until 15000; 20000 c0 calls l0; 27000 c0 acquires l0 until 28000 |";
    check("", table);
}

#[test]
fn who_is_alone_succeeds() {
    let table = "
        nobody else                 | | 30000..30100
        another call meanwhile      | 30050 c1 calls l1; 30060 c1 fails l1 |
        another call under way      | 29000 c1 calls l1; 30060 c1 fails l1 |
        another call after          | 30101 c1 calls l1; 30200 c1 acquires l1 until 30300 | 30000..30100
        a failed one just before    | 29000 c1 calls l1; 29501 c1 fails l1; 29400 n0,1,2 refuses c0 MISCONF |
        a failed one that is quiet  | 29000 c1 calls l1; 29500 c1 fails l1; 29400 n0,1,2 refuses c0 MISCONF | 30000..30100
        released by a majority      | 28000 c1 holds l1 until 29400; 29100 c1 releases l1; 29200 c1 released l1 on 3 | 30000..30100
        released by fewer           | 28000 c1 holds l1 until 29400; 29100 c1 releases l1; 29200 c1 released l1 on 2 |
        held                        | 29000 c1 holds l1 until 35000 |
        held not long ago           | 19000 c1 holds l1 until 20001 |
        held long ago               | 19000 c1 holds l1 until 20000 | 30000..30100
        two nodes are away          | 100 n0,1 dies | 30000..30100
        three are                   | 100 n0,1 dies; 25000 n2 starts quarantined; 30001 n2 serves |
        two refuse                  | 30050 n0,1 refuses c0 MISCONF | 30000..30100
        three refuse                | 30000 n0 refuses c0 OOM; 30050 n1 refuses c0 OOM; 30100 n2 refuses c0 OOM |
        three refused               | 30050 n0 refuses c0 OOM; 30101 n1 refuses c0 OOM; 29999 n2 refuses c0 OOM | 30000..30100";
    check("30000 c0 calls l0; 30100 c0 fails l0", table);
    check(
        "10999 c0 calls l0; 11500 c0 fails l0",
        "before all is settled | |",
    );
}

/// This many calls in a row that fail, with so much time from one to the next, and from each to its end.
fn failures(count: u64, from: u64, every: u64, takes: u64) -> String {
    let call = |n| {
        let (at, lock) = (from + n * every, from + n);
        format!("{at} c0 calls l{lock}; {} c0 fails l{lock};", at + takes)
    };
    (0..count).map(call).collect()
}

#[test]
fn votes_are_not_split_for_ever() {
    check(&failures(4, 20_000, 10, 15), "four | |");
    let table = "
        five                  | | 20000..20055
        one is held           | 20020 c1 holds l9 until 20030 |
        one was held long ago | 1000 c1 holds l9 until 10999 | 20000..20055";
    check(&failures(5, 20_000, 10, 15), table);
}

/// What comes before does not excuse what comes after.
#[test]
fn a_row_of_failures_begins_when_the_key_is_free() {
    let row = failures(5, 30_000, 100, 150);
    let table = "
        split votes are no excuse   | 30001 n3 grants a9 until 40000 | 30000..30550
        a majority goes down        | 30200 n0,1,2 dies |
        somebody died               | 19999 n3 grants a9 until 30001; 20001 c0 dies |
        and all is free             | 19999 n3 grants a9 until 30001; 20001 c0 dies; 26000 n3 frees a9 | 30000..30550";
    check(&row, table);
    let table = "
        held before                 | | 30000..30550
        held as it begins           | 29000 c1 holds l8 until 30001 |
        held meanwhile              | 30050 c1 holds l8 until 30060 |
        left to its TTL until then  | 19999 n0,1,2 grants a9 until 30000 | 30000..30550
        and longer                  | 19999 n0,1,2 grants a9 until 30001 |
        it was freed                | 19999 n0,1,2 grants a9 until 30001; 26000 n0,1,2 frees a9 | 30000..30550
        one holds on                | 19999 n0,1,2 grants a9 until 30001; 26000 n0,1 frees a9 |
        extended                    | 19999 n0,1,2 grants a9 until 25005; 24000 n2 extends a9 until 30001 |
        a row before it was held    | 40000 c1 holds l8 until 41000 | 30000..30550";
    check(&format!("20000 c1 holds l9 until 25000; {row}"), table);
}

#[test]
fn each_try_of_a_call_counts() {
    let events = "20000 c0 calls l0; 20005 c1 calls l1; 20500 c0 fails l0; 20600 c1 fails l1";
    for (tries, row) in [(3, "three | |"), (4, "four | | 20000..20600")] {
        let bounds = Bounds {
            tries: BTreeMap::from([((ms(20_000), 0), tries)]),
            ..bounds()
        };
        judge(events, row, span, |facts| liveness(facts, &bounds));
    }
}

/// What comes later than that ends the time in which progress is demanded.
#[test]
fn a_swarm_plans_no_fault_after_the_calm() {
    for seed in 0..500 {
        let scenario = Swarm::default().scenario(seed);
        let calm = scenario.setup.liveness_from.unwrap();
        for step in &scenario.steps {
            if let (Trigger::At(at), Action::Fault(fault)) = (&step.when, &step.what) {
                assert!(*at <= calm, "seed {seed}: {fault:?} at {at}");
            }
        }
    }
}

#[test]
fn a_quarantine_ends() {
    let table = "
        in time                 | 5000 n3 starts quarantined; 13000 n3 serves |
        too late                | 5000 n3 starts quarantined; 13001 n3 serves | 5000..13001
        never                   | 5000 n3 starts quarantined | 5000..60000
        by a crash              | 5000 n3 starts quarantined; 6000 n3 dies |
        it began in the trouble | 500 n3 starts quarantined; 9000 n3 serves |
        and lasts               | 500 n3 starts quarantined; 9001 n3 serves | 500..9001
        none                    | 5000 n3 starts |";
    check("", table);
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
            LockAction::new("a", Duration::from_secs(80))
                .tries(3)
                .into(),
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
    let events = "1000 fault calm; 999 fault reset all; 20000 c0 calls l0";
    let found = found(events, |facts| liveness(facts, &bounds()));
    let text = "20s..60s liveness: client 0 does not know within 2s whether it has lock 0, called for at 20s
  1s: calm";
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), text);
}
