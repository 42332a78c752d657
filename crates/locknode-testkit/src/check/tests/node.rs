use std::time::Duration;

use super::{found, kinds};
use crate::check::node::nodes;
use crate::check::story::Story;
use crate::check::tolerance::Tolerance;
use crate::check::violation::ViolationKind::{
    self, NodeCounter, NodeDurability, NodeGrant, NodeQuarantine,
};
use crate::fault::{Crash, Fault, Who};
use crate::history::Event;
use crate::scenario::{Scenario, Setup};

const EXACT: Tolerance = Tolerance {
    ppm: 0,
    constant: Duration::from_millis(1),
};

fn check(name: &str, story: Story, want: &[ViolationKind]) {
    let violations = found(story, |facts| nodes(facts, |_| EXACT));
    assert_eq!(kinds(&violations), want, "{name}");
    assert!(
        violations
            .iter()
            .all(|it| it.nodes == [2] && it.from == it.until),
        "{name}"
    );
}

/// Node 2 grants the attempt 0 until a second.
fn untold() -> Story {
    Story::new().granted(5, 2, 0, 1000)
}

fn told() -> Story {
    untold().told(6, 2, 0)
}

#[test]
fn a_node_grants_a_key_again_when_what_it_told_has_ended() {
    let kill = Crash::Kill;
    let crash = |story: Story| story.down(300, 2, kill).starts(301, 2, false);
    let rows: [(&str, Story, &[ViolationKind]); 18] = [
        ("at its end", told().granted(1000, 2, 1, 2000), &[]),
        ("within the tolerance", told().granted(999, 2, 1, 2000), &[]),
        (
            "before its end",
            told().granted(998, 2, 1, 2000),
            &[NodeGrant],
        ),
        ("untold", untold().granted(500, 2, 1, 2000), &[]),
        (
            "told of another",
            untold().told(6, 2, 7).granted(500, 2, 1, 2000),
            &[],
        ),
        (
            "told by another",
            untold().told(6, 3, 0).granted(500, 2, 1, 2000),
            &[],
        ),
        (
            "freed",
            told().freed(400, 2, 0).granted(500, 2, 1, 2000),
            &[],
        ),
        (
            "another's freed",
            told().freed(400, 2, 9).granted(500, 2, 1, 2000),
            &[NodeGrant],
        ),
        ("the same attempt", told().granted(500, 2, 0, 2000), &[]),
        (
            "over a crash",
            crash(told()).granted(500, 2, 1, 2000),
            &[NodeGrant],
        ),
        (
            "over a crash, at its end",
            crash(told()).granted(1000, 2, 1, 2000),
            &[],
        ),
        (
            "over a crash, untold",
            crash(untold()).granted(500, 2, 1, 2000),
            &[],
        ),
        (
            "told too late to count",
            crash(untold()).told(302, 2, 0).granted(500, 2, 1, 2000),
            &[],
        ),
        (
            "extended and told",
            told()
                .prolonged(100, 2, 0, 3000)
                .told(101, 2, 0)
                .granted(2000, 2, 1, 4000),
            &[NodeGrant],
        ),
        (
            "extended and not told",
            crash(told().prolonged(100, 2, 0, 3000)).granted(2000, 2, 1, 4000),
            &[],
        ),
        (
            "extended and not told, before the first end",
            crash(told().prolonged(100, 2, 0, 3000)).granted(900, 2, 1, 4000),
            &[NodeGrant],
        ),
        (
            "shortened",
            told().prolonged(100, 2, 0, 300).granted(300, 2, 1, 4000),
            &[],
        ),
        (
            "shortened, and the first is told after that",
            untold()
                .prolonged(100, 2, 0, 300)
                .told(101, 2, 0)
                .granted(400, 2, 1, 4000),
            &[],
        ),
    ];
    for (name, story, want) in rows {
        check(name, story, want);
    }
}

/// A connection ends with what waited in it for the disk.
#[test]
fn a_reply_that_never_left_is_not_waited_for() {
    let kill = Crash::Kill;
    let crash = |story: Story| story.down(800, 2, kill).starts(801, 2, false);
    let again = |story: Story| story.prolonged(200, 2, 0, 3000).told(201, 2, 0);
    let lost = || told().prolonged(100, 2, 0, 900).untold(101, 2, 0);
    let counted = |story: Story| story.counted(900, 2, 1, 2000, 7);
    let rows: [(&str, Story, &[ViolationKind]); 9] = [
        (
            "the grant, and an extension is told",
            again(untold().untold(6, 2, 0)).granted(2000, 2, 1, 4000),
            &[NodeGrant],
        ),
        (
            "an extension, and the next is told",
            again(lost()).granted(2000, 2, 1, 4000),
            &[NodeGrant],
        ),
        (
            "an extension, and the grant was told",
            lost().granted(500, 2, 1, 4000),
            &[NodeGrant],
        ),
        (
            "another node's",
            untold()
                .untold(6, 3, 0)
                .told(7, 2, 0)
                .granted(500, 2, 1, 4000),
            &[NodeGrant],
        ),
        (
            "the only one",
            crash(untold().untold(6, 2, 0).told(7, 2, 0)).granted(900, 2, 1, 4000),
            &[],
        ),
        (
            "a later one that waits has not been told",
            crash(
                told()
                    .prolonged(100, 2, 0, 3000)
                    .prolonged(150, 2, 0, 5000)
                    .told(160, 2, 0),
            )
            .granted(2000, 2, 1, 6000)
            .untold(2001, 2, 0),
            &[NodeGrant],
        ),
        (
            "either of two, and the sooner one counts",
            again(told().prolonged(100, 2, 0, 900).untold(250, 2, 0)).granted(1000, 2, 1, 4000),
            &[],
        ),
        (
            "a counter",
            counted(crash(
                Story::new()
                    .counted(5, 2, 0, 300, 7)
                    .untold(6, 2, 0)
                    .prolonged(10, 2, 0, 310)
                    .told(11, 2, 0),
            )),
            &[],
        ),
        (
            "a counter of which there is an answer",
            counted(crash(
                Story::new()
                    .counted(5, 2, 0, 300, 7)
                    .told(6, 2, 0)
                    .untold(7, 2, 0),
            )),
            &[NodeCounter],
        ),
    ];
    for (name, story, want) in rows {
        check(name, story, want);
    }
}

#[test]
fn a_counter_rises_from_grant_to_grant_and_over_a_crash_from_what_was_told() {
    let first = || Story::new().counted(5, 2, 0, 10, 7);
    let crash = |story: Story| story.down(300, 2, Crash::PowerLoss).starts(301, 2, false);
    let rows: [(&str, Story, &[ViolationKind]); 9] = [
        ("it rises", first().counted(500, 2, 1, 600, 8), &[]),
        (
            "it stays",
            first().counted(500, 2, 1, 600, 7),
            &[NodeCounter],
        ),
        (
            "it falls",
            first().counted(500, 2, 1, 600, 6),
            &[NodeCounter],
        ),
        ("another node's", first().counted(500, 3, 1, 600, 6), &[]),
        (
            "not told of",
            first()
                .counted(500, 2, 1, 600, 0)
                .counted(700, 2, 2, 800, 8),
            &[],
        ),
        (
            "over a crash, untold",
            crash(first()).counted(500, 2, 1, 600, 7),
            &[],
        ),
        (
            "over a crash, told",
            crash(first().told(6, 2, 0)).counted(500, 2, 1, 600, 7),
            &[NodeCounter],
        ),
        (
            "over a crash, told, and it rises",
            crash(first().told(6, 2, 0)).counted(500, 2, 1, 600, 8),
            &[],
        ),
        (
            "what was told is not what was granted last",
            crash(first().counted(20, 2, 1, 30, 8).told(21, 2, 0)).counted(500, 2, 2, 600, 8),
            &[],
        ),
    ];
    for (name, story, want) in rows {
        check(name, story, want);
    }
}

#[test]
fn a_node_keeps_out_in_its_quarantine_and_tells_what_is_durable() {
    let starts = || Story::new().starts(100, 2, true);
    let unkept = Event::Unkept {
        node: 2,
        key: 0,
        attempt: 0,
        why: "has told what it forgets".into(),
    };
    let rows: [(&str, Story, &[ViolationKind]); 8] = [
        (
            "afterwards",
            starts().serves(900, 2).granted(900, 2, 0, 2000),
            &[],
        ),
        (
            "in it",
            starts().granted(800, 2, 0, 2000).serves(900, 2),
            &[NodeQuarantine],
        ),
        (
            "an extension in it",
            starts().prolonged(800, 2, 0, 2000).serves(900, 2),
            &[NodeQuarantine],
        ),
        (
            "at its very end",
            starts().granted(899, 2, 0, 2000).serves(900, 2),
            &[],
        ),
        (
            "it never ends",
            starts().granted(800, 2, 0, 2000),
            &[NodeQuarantine],
        ),
        (
            "it ends in a crash",
            starts().granted(800, 2, 0, 2000).down(900, 2, Crash::Kill),
            &[NodeQuarantine],
        ),
        (
            "there is none",
            Story::new().starts(100, 2, false).granted(800, 2, 0, 2000),
            &[],
        ),
        (
            "not durable",
            Story::new().granted(800, 2, 0, 2000).at(801, unkept),
            &[NodeDurability],
        ),
    ];
    for (name, story, want) in rows {
        check(name, story, want);
    }
}

#[test]
fn the_tolerance_is_what_clocks_may_change_by() {
    let rows = [
        (vec![], 0, 1000),
        (vec![Fault::Rate(Who::Node(1), 5000)], 5000, 1000),
        (
            vec![
                Fault::Rate(Who::Node(1), 5000),
                Fault::Rate(Who::Node(0), -7000),
            ],
            5000,
            1000,
        ),
        (
            vec![
                Fault::Rate(Who::Node(1), 5000),
                Fault::Rate(Who::Node(1), -7000),
            ],
            12_000,
            1000,
        ),
        (vec![Fault::Slew(Who::Node(0), -80_000)], 0, 1000),
        (
            vec![Fault::Noise(Who::Node(0), Duration::from_micros(500))],
            0,
            1000,
        ),
        (vec![Fault::Rate(Who::Client(1), 5000)], 0, 1000),
        (vec![Fault::Slew(Who::Node(1), 80_000)], 0, 1000),
        (vec![Fault::Slew(Who::Node(1), -80_000)], 80_000, 1000),
        (
            vec![Fault::Noise(Who::Node(1), Duration::from_micros(500))],
            0,
            1500,
        ),
        (
            vec![Fault::Noise(Who::Client(1), Duration::from_micros(500))],
            0,
            1000,
        ),
    ];
    for (faults, ppm, constant_us) in rows {
        let scenario = faults
            .iter()
            .fold(Scenario::new(Setup::default()), |scenario, fault| {
                scenario.at(Duration::ZERO, *fault)
            });
        let constant = Duration::from_micros(constant_us);
        assert_eq!(
            Tolerance::of(&scenario, 1),
            Tolerance { ppm, constant },
            "{faults:?}"
        );
    }
    let fast = Tolerance {
        ppm: 100_000,
        ..EXACT
    };
    // A tenth of 995 ms and the constant before the end.
    for (at, want) in [(899, &[][..]), (898, &[NodeGrant][..])] {
        let violations = found(told().granted(at + 1, 2, 1, 2000), |facts| {
            nodes(facts, |node| if node == 2 { fast } else { EXACT })
        });
        assert_eq!(kinds(&violations), want, "{at}");
    }
}

#[test]
fn a_node_is_told_of_with_what_happened_to_it() {
    let story = told()
        .down(300, 2, Crash::Kill)
        .starts(301, 2, false)
        .granted(500, 2, 1, 2000);
    let violations = found(story, |facts| nodes(facts, |_| EXACT));
    let text = "500ms node-grant: node 2 granted a lock to client 0 (attempt 1), although it had told client 0 (attempt 0) that it holds it: granted at 5ms, until 1s (`a`)
  300ms: node 2 is down: kill
  301ms: node 2 starts: start-after-crash";
    assert_eq!(violations[0].to_string(), text);
}
