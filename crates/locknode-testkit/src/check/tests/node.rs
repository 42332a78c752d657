use std::time::Duration;

use super::{found, judge, kind, with_faults};
use crate::check::node::nodes;
use crate::check::tolerance::Tolerance;
use crate::scenario::GuardMode;

const EXACT: Tolerance = Tolerance {
    ppm: 0,
    constant: Duration::from_millis(1),
};

/// A table of what node 2 did wrong, judged without tolerance.
fn check(before: &str, table: &str) {
    for (name, it) in judge(before, table, kind, |facts| nodes(facts, |_| EXACT)) {
        assert!(it.nodes == [2] && it.from == it.until, "{name}");
    }
}

const UNTOLD: &str = "5 n2 grants a0 until 1000";

const TOLD: &str = "5 n2 grants a0 until 1000; 6 n2 answers a0";

#[test]
fn a_node_grants_a_key_again_when_what_it_told_has_ended() {
    let table = "
        at its end                | 1000 n2 grants a1 until 2000 |
        within the tolerance      | 999 n2 grants a1 until 2000 |
        before its end            | 998 n2 grants a1 until 2000 | node-grant
        freed                     | 400 n2 frees a0; 500 n2 grants a1 until 2000 |
        another's freed           | 400 n2 frees a9; 500 n2 grants a1 until 2000 | node-grant
        the same attempt          | 500 n2 grants a0 until 2000 |
        over a crash              | 300 n2 dies; 301 n2 starts; 500 n2 grants a1 until 2000 | node-grant
        over a crash, at its end  | 300 n2 dies; 301 n2 starts; 1000 n2 grants a1 until 2000 |
        extended and told         | 100 n2 extends a0 until 3000; 101 n2 answers a0; 2000 n2 grants a1 until 4000 | node-grant
        extended and not told     | 100 n2 extends a0 until 3000; 300 n2 dies; 301 n2 starts; 2000 n2 grants a1 until 4000 |
        and before the first end  | 100 n2 extends a0 until 3000; 300 n2 dies; 301 n2 starts; 900 n2 grants a1 until 4000 | node-grant
        shortened                 | 100 n2 extends a0 until 300; 300 n2 grants a1 until 4000 |";
    check(TOLD, table);
    let table = "
        untold                    | 500 n2 grants a1 until 2000 |
        told of another           | 6 n2 answers a7; 500 n2 grants a1 until 2000 |
        told by another           | 6 n3 answers a0; 500 n2 grants a1 until 2000 |
        over a crash, untold      | 300 n2 dies; 301 n2 starts; 500 n2 grants a1 until 2000 |
        told too late to count    | 300 n2 dies; 301 n2 starts; 302 n2 answers a0; 500 n2 grants a1 until 2000 |
        told when it is shorter   | 100 n2 extends a0 until 300; 101 n2 answers a0; 400 n2 grants a1 until 4000 |";
    check(UNTOLD, table);
}

/// A connection ends with what waited in it for the disk.
#[test]
fn a_reply_that_never_left_is_not_waited_for() {
    let table = "
        the grant, and an extension is told | 6 n2 never-answers a0; 200 n2 extends a0 until 3000; 201 n2 answers a0; \
                                              2000 n2 grants a1 until 4000 | node-grant
        another node's                      | 6 n3 never-answers a0; 7 n2 answers a0; 500 n2 grants a1 until 4000 | node-grant
        the only one                        | 6 n2 never-answers a0; 7 n2 answers a0; 800 n2 dies; 801 n2 starts; \
                                              900 n2 grants a1 until 4000 |";
    check(UNTOLD, table);
    let table = "
        an extension, and the next is told  | 100 n2 extends a0 until 900; 101 n2 never-answers a0; \
                                              200 n2 extends a0 until 3000; 201 n2 answers a0; 2000 n2 grants a1 until 4000 | node-grant
        an extension after a told grant     | 100 n2 extends a0 until 900; 101 n2 never-answers a0; 500 n2 grants a1 until 4000 | node-grant
        a later one that waits is not told  | 100 n2 extends a0 until 3000; 150 n2 extends a0 until 5000; 160 n2 answers a0; \
                                              800 n2 dies; 801 n2 starts; 2000 n2 grants a1 until 6000; 2001 n2 never-answers a0 | node-grant
        of two, and the sooner one counts   | 100 n2 extends a0 until 900; 250 n2 never-answers a0; \
                                              200 n2 extends a0 until 3000; 201 n2 answers a0; 1000 n2 grants a1 until 4000 |";
    check(TOLD, table);
    let table = "
        a counter                           | 6 n2 never-answers a0; 10 n2 extends a0 until 310; 11 n2 answers a0; \
                                              800 n2 dies; 801 n2 starts; 900 n2 grants a1 until 2000 count 7 |
        a counter of which there is an answer | 6 n2 answers a0; 7 n2 never-answers a0; \
                                              800 n2 dies; 801 n2 starts; 900 n2 grants a1 until 2000 count 7 | node-counter";
    check("5 n2 grants a0 until 300 count 7", table);
}

#[test]
fn a_counter_rises_from_grant_to_grant_and_over_a_crash_from_what_was_told() {
    let table = "
        it rises                 | 500 n2 grants a1 until 600 count 8 |
        it stays                 | 500 n2 grants a1 until 600 count 7 | node-counter
        it falls                 | 500 n2 grants a1 until 600 count 6 | node-counter
        another node's           | 500 n3 grants a1 until 600 count 6 |
        not told of              | 500 n2 grants a1 until 600 count 0; 700 n2 grants a2 until 800 count 8 |
        over a crash, untold     | 300 n2 dies power-loss; 301 n2 starts; 500 n2 grants a1 until 600 count 7 |
        over a crash, told       | 6 n2 answers a0; 300 n2 dies power-loss; 301 n2 starts; 500 n2 grants a1 until 600 count 7 | node-counter
        the same, and it rises   | 6 n2 answers a0; 300 n2 dies power-loss; 301 n2 starts; 500 n2 grants a1 until 600 count 8 |
        told is not granted last | 20 n2 grants a1 until 30 count 8; 21 n2 answers a0; 300 n2 dies power-loss; 301 n2 starts; \
                                   500 n2 grants a2 until 600 count 8 |";
    check("5 n2 grants a0 until 10 count 7", table);
}

#[test]
fn a_node_keeps_out_in_its_quarantine_and_tells_what_is_durable() {
    let table = "
        afterwards         | 900 n2 serves; 900 n2 grants a0 until 2000 |
        in it              | 800 n2 grants a0 until 2000; 900 n2 serves | node-quarantine
        an extension in it | 800 n2 extends a0 until 2000; 900 n2 serves | node-quarantine
        at its very end    | 899 n2 grants a0 until 2000; 900 n2 serves |
        it never ends      | 800 n2 grants a0 until 2000 | node-quarantine
        it ends in a crash | 800 n2 grants a0 until 2000; 900 n2 dies | node-quarantine";
    check("100 n2 starts quarantined", table);
    let table = "
        there is none      | 100 n2 starts; 800 n2 grants a0 until 2000 |
        not durable        | 800 n2 grants a0 until 2000; 801 n2 forgets-what-it-told a0 | node-durability";
    check("", table);
}

/// As a grant does; but no longer than it was shown, and only if somebody knows of it.
#[test]
fn what_a_read_tells_binds_the_node_as_a_grant_does() {
    let table = "
        nobody knew of it  | 7 n2 dies; 8 n2 starts; 600 n2 grants a1 until 1600 |
        shown              | 6 n2 shows a0 until 1000; 7 n2 dies; 8 n2 starts; 600 n2 grants a1 until 1600 | node-grant
        as it was shown    | 6 n2 shows a0 until 500; 7 n2 dies; 8 n2 starts; 600 n2 grants a1 until 1600 |";
    check(UNTOLD, table);
}

#[test]
fn the_tolerance_is_what_clocks_may_change_by() {
    let rows = [
        ("", 0, 1000),
        ("rate node 1 +5000ppm", 5000, 1000),
        ("rate node 1 +5000ppm, rate node 0 -7000ppm", 5000, 1000),
        ("rate node 1 +5000ppm, rate node 1 -7000ppm", 12_000, 1000),
        ("slew node 0 -80000ppm", 0, 1000),
        ("noise node 0 500us", 0, 1000),
        ("rate client 1 +5000ppm", 0, 1000),
        ("slew node 1 +80000ppm", 0, 1000),
        ("slew node 1 -80000ppm", 80_000, 1000),
        ("noise node 1 500us", 0, 1500),
        ("noise client 1 500us", 0, 1000),
    ];
    for (faults, ppm, constant_us) in rows {
        let scenario = with_faults(GuardMode::Long, faults);
        let constant = Duration::from_micros(constant_us);
        let want = Tolerance { ppm, constant };
        assert_eq!(Tolerance::of(&scenario, 1), want, "{faults}");
    }
    let fast = Tolerance {
        ppm: 100_000,
        ..EXACT
    };
    // A tenth of 995 ms and the constant before the end.
    let table = "
        at the end of it | 900 n2 grants a1 until 2000 |
        before it        | 899 n2 grants a1 until 2000 | node-grant";
    judge(TOLD, table, kind, |facts| {
        nodes(facts, |node| if node == 2 { fast } else { EXACT })
    });
}

#[test]
fn a_node_is_told_of_with_what_happened_to_it() {
    let events = format!("{TOLD}; 300 n2 dies; 301 n2 starts; 500 n2 grants a1 until 2000");
    let violations = found(&events, |facts| nodes(facts, |_| EXACT));
    let text = "500ms node-grant: node 2 granted a lock to client 0 (attempt 1), although it had told client 0 (attempt 0) that it holds it: granted at 5ms, until 1s (`a`)
  300ms: node 2 is down: kill
  301ms: node 2 starts: start-after-crash";
    assert_eq!(violations[0].to_string(), text);
}
