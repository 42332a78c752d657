use std::time::Duration;

use crate::check::Promise;
use crate::check::story::Story;
use crate::check::violation::ViolationKind as Kind;
use crate::fault::{Crash, DiskFault, Fault, Links, Way, Who};
use crate::scenario::{Guarding, LockAct, Scenario, Setup};
use crate::span::SimTime;

fn scenario(guard: Guarding, faults: &[Fault]) -> Scenario {
    let start = Scenario::new(Setup {
        guard,
        ..Setup::default()
    });
    faults.iter().fold(start, |scenario, fault| {
        scenario.at(Duration::from_secs(1), *fault)
    })
}

/// Whether exclusion, a node's grants and fencing are promised; the kinds of a group go together.
fn promised(scenario: &Scenario) -> [bool; 3] {
    let promise = Promise::of(scenario);
    let all = |kinds: &[Kind]| {
        let has: Vec<bool> = kinds.iter().map(|kind| promise.has(*kind)).collect();
        assert!(has.iter().all(|it| *it == has[0]), "{promise:?}");
        has[0]
    };
    assert!(promise.has(Kind::NodeQuarantine) && promise.has(Kind::Expired));
    assert!(!promise.has(Kind::Resource));
    let is_continuous = promise.has(Kind::Continuity) == promise.has(Kind::Exclusion);
    assert!(
        is_continuous || scenario.setup.guard == Guarding::Off,
        "{promise:?}"
    );
    [
        all(&[Kind::Exclusion, Kind::Majority]),
        promise.has(Kind::NodeGrant),
        all(&[
            Kind::FencedResource,
            Kind::FencingDuplicate,
            Kind::FencingOrder,
            Kind::NodeCounter,
        ]),
    ]
}

#[test]
fn clocks_beyond_the_allowance_break_exclusion_and_nothing_else() {
    let (node, client) = (Who::Node(0), Who::Client(1));
    let us = Duration::from_micros;
    let second = Duration::from_secs(1);
    let rows: [(&str, Vec<Fault>, bool); 23] = [
        ("nothing", vec![], true),
        (
            "a node as fast as allowed",
            vec![Fault::Rate(node, 10_000)],
            true,
        ),
        ("a node too fast", vec![Fault::Rate(node, 10_001)], false),
        ("a slow node", vec![Fault::Rate(node, -90_000)], true),
        (
            "a client as slow as allowed",
            vec![Fault::Rate(client, -10_000)],
            true,
        ),
        (
            "a client too slow",
            vec![Fault::Rate(client, -10_001)],
            false,
        ),
        ("a fast client", vec![Fault::Rate(client, 90_000)], true),
        (
            "both, allowed",
            vec![Fault::Rate(node, 4000), Fault::Rate(client, -6000)],
            true,
        ),
        (
            "both, too much",
            vec![Fault::Rate(node, 4000), Fault::Rate(client, -6001)],
            false,
        ),
        ("a slewed node", vec![Fault::Slew(node, 83_333)], true),
        ("a slewed client", vec![Fault::Slew(client, -83_333)], true),
        (
            "a slewed client asleep",
            vec![Fault::Slew(client, -83_333), Fault::Suspend(client, second)],
            false,
        ),
        (
            "a slightly slewed client asleep",
            vec![Fault::Slew(client, -10_000), Fault::Suspend(client, second)],
            true,
        ),
        (
            "another client asleep",
            vec![
                Fault::Slew(client, -83_333),
                Fault::Suspend(Who::Client(0), second),
            ],
            true,
        ),
        (
            "a slewed node asleep",
            vec![Fault::Slew(node, 83_333), Fault::Suspend(node, second)],
            true,
        ),
        (
            "noise",
            vec![Fault::Noise(node, us(1000)), Fault::Noise(client, us(1000))],
            true,
        ),
        (
            "more noise",
            vec![Fault::Noise(node, us(1000)), Fault::Noise(client, us(1001))],
            false,
        ),
        (
            "a frozen client",
            vec![Fault::Freeze(client, second)],
            false,
        ),
        ("a frozen node", vec![Fault::Freeze(node, second)], true),
        (
            "sleep",
            vec![Fault::Suspend(client, second), Fault::Suspend(node, second)],
            true,
        ),
        (
            "pauses",
            vec![Fault::Pause(client, second), Fault::Pause(node, second)],
            true,
        ),
        (
            "wall clocks",
            vec![Fault::WallJump(node, 9999), Fault::WallJump(client, -9999)],
            true,
        ),
        (
            "links and disks",
            vec![
                Fault::Cut(Links::ALL, Way::Both),
                Fault::Duplicate(Links::ALL, 3),
                Fault::Disk(0, DiskFault::SyncError),
                Fault::CrashClient(1),
                Fault::Calm,
            ],
            true,
        ),
    ];
    for (name, faults, want) in rows {
        let scenario = scenario(Guarding::Long, &faults);
        assert_eq!(promised(&scenario), [want, true, true], "{name}");
    }
}

#[test]
fn what_nodes_forget_is_not_promised() {
    use Guarding::{Always, Long, Memory, Off};
    let crash = |how| Fault::Crash(2, how);
    let (yes, calendar) = ([true; 3], [true, true, false]);
    let lower = Fault::MaxTtl(2, Duration::from_secs(3));
    let ahead = |node| Fault::WallJump(Who::Node(node), 5);
    let back = |node| Fault::WallJump(Who::Node(node), -5);
    let rows: [(Guarding, Vec<Fault>, u64, [bool; 3]); 24] = [
        (Off, vec![], 99, yes),
        (Off, vec![crash(Crash::CleanStop)], 5, [false, false, true]),
        (
            Off,
            vec![crash(Crash::Kill), ahead(0)],
            5,
            [false, false, false],
        ),
        (Memory, vec![crash(Crash::Kill)], 99, yes),
        (Memory, vec![lower, crash(Crash::Kill)], 3, yes),
        (Memory, vec![lower, crash(Crash::Kill)], 4, yes),
        (Memory, vec![lower], 4, yes),
        (Memory, vec![crash(Crash::Kill), back(2)], 5, calendar),
        (Memory, vec![crash(Crash::Kill), back(0)], 5, yes),
        (
            Long,
            vec![crash(Crash::Kill), crash(Crash::PowerLossAll), lower],
            99,
            yes,
        ),
        (
            Long,
            vec![crash(Crash::TornWrite), crash(Crash::Moved), ahead(2)],
            99,
            yes,
        ),
        (Long, vec![crash(Crash::CleanStop)], 99, yes),
        (Long, vec![crash(Crash::Rollback)], 5, [false, false, true]),
        (
            Always,
            vec![crash(Crash::Rollback)],
            5,
            [false, false, true],
        ),
        (
            Always,
            vec![crash(Crash::Rollback), ahead(1)],
            5,
            [false, false, false],
        ),
        (Memory, vec![crash(Crash::Rollback)], 5, yes),
        (Long, vec![crash(Crash::DiskLost)], 10, yes),
        (Long, vec![crash(Crash::DiskLost)], 11, yes),
        (Always, vec![crash(Crash::DiskLost)], 11, yes),
        (Always, vec![crash(Crash::DiskLost), lower], 4, yes),
        (Long, vec![crash(Crash::DiskLost), ahead(0)], 5, calendar),
        (Long, vec![crash(Crash::DiskLost), back(2)], 5, calendar),
        (Long, vec![crash(Crash::DiskLost), back(0)], 5, yes),
        (
            Long,
            vec![crash(Crash::DiskLost), Fault::WallJump(Who::Client(0), 5)],
            5,
            yes,
        ),
    ];
    for (guard, faults, ttl, want) in rows {
        let ttl = Duration::from_secs(ttl);
        let scenario = scenario(guard, &faults).act(ttl, 0, LockAct::new("a", ttl).into());
        assert_eq!(promised(&scenario), want, "{guard:?} {faults:?} {ttl:?}");
    }
}

#[test]
fn a_client_notices_that_nodes_forgot_its_lock_when_nothing_comes_late() {
    let (links, second) = (Links::ALL, Duration::from_secs(1));
    let client = Who::Client(0);
    let rows = [
        (
            vec![
                Fault::Pause(Who::Node(0), second),
                Fault::Reset(links),
                Fault::Crash(1, Crash::PowerLoss),
            ],
            true,
        ),
        (vec![Fault::Cut(links, Way::Both)], false),
        (vec![Fault::Delay(links, second)], false),
        (vec![Fault::Hold(links, Way::Requests)], false),
        (vec![Fault::Drop(links, Way::Requests, 1)], false),
        (vec![Fault::Late(links, Way::Requests, 1, second)], false),
        (vec![Fault::Duplicate(links, 1)], false),
        (vec![Fault::Pause(client, second)], false),
        (vec![Fault::Suspend(client, second)], false),
        (vec![Fault::Freeze(client, second)], false),
        (vec![Fault::Rate(client, -10_001)], false),
    ];
    for (mut faults, want) in rows {
        faults.push(Fault::Crash(2, Crash::Kill));
        let promise = Promise::of(&scenario(Guarding::Off, &faults));
        assert_eq!(promise.has(Kind::Continuity), want, "{faults:?}");
        assert!(
            !promise.has(Kind::Exclusion) && !promise.has(Kind::Majority),
            "{faults:?}"
        );
    }
    let rollback = scenario(Guarding::Long, &[Fault::Crash(2, Crash::Rollback)]);
    assert!(!Promise::of(&rollback).has(Kind::Continuity));
}

#[test]
fn progress_and_durability_are_promised_by_the_set_up() {
    for (liveness_from, want) in [(None, false), (Some(SimTime::ZERO), true)] {
        let mut scenario = scenario(Long, &[]);
        scenario.setup.liveness_from = liveness_from;
        assert_eq!(Promise::of(&scenario).has(Kind::Liveness), want);
    }
    use Guarding::{Always, Long, Memory, Off};
    for (guard, want) in [(Off, false), (Memory, true), (Long, true), (Always, true)] {
        let promise = Promise::of(&scenario(guard, &[]));
        assert_eq!(promise.has(Kind::NodeDurability), want, "{guard:?}");
    }
    assert_eq!(Promise::of(&scenario(Long, &[])).iter().count(), 17);
}

#[test]
fn the_calendar_holds_when_it_has_overtaken_all_counters() {
    use Guarding::{Long, Memory};
    let begin = || {
        (0..5).fold(Story::new(), |story, node| {
            story.starts(0, node, false).serves(0, node)
        })
    };
    let lost = |story: Story, at| story.down(at, 2, Crash::DiskLost).starts(at, 2, true);
    let crash = |story: Story, at, node| {
        story
            .down(at, node, Crash::Kill)
            .starts(at, node, false)
            .serves(at, node)
    };
    let damaged = |story: Story, at| {
        let story = story.down(at, 1, Crash::TornWrite);
        story
            .starts_as(at, 1, true, "start-with-damaged-state")
            .serves(at + 10, 1)
    };
    let frozen = Fault::Freeze(Who::Node(4), Duration::from_secs(3));
    let rows = [
        (
            "no start without memory",
            Long,
            vec![],
            crash(begin(), 100, 2),
            true,
        ),
        ("after two seconds", Long, vec![], lost(begin(), 2000), true),
        ("too soon", Long, vec![], lost(begin(), 1999), false),
        (
            "a clock stood still",
            Long,
            vec![frozen],
            lost(begin(), 4999),
            false,
        ),
        (
            "and was overtaken",
            Long,
            vec![frozen],
            lost(begin(), 5000),
            true,
        ),
        (
            "after a start",
            Long,
            vec![],
            lost(crash(begin(), 8000, 1), 11_000),
            true,
        ),
        (
            "too soon after a start",
            Long,
            vec![],
            lost(crash(begin(), 8000, 1), 9999),
            false,
        ),
        (
            "after many starts",
            Long,
            vec![],
            lost(crash(crash(crash(begin(), 100, 1), 200, 1), 300, 1), 2290),
            false,
        ),
        (
            "long after many starts",
            Long,
            vec![],
            lost(crash(crash(crash(begin(), 100, 1), 200, 1), 300, 1), 2400),
            true,
        ),
        (
            "after damage",
            Long,
            vec![],
            lost(damaged(begin(), 100), 11_099),
            false,
        ),
        (
            "after late damage, as seed 554998 had it",
            Long,
            vec![],
            lost(damaged(begin(), 15_300), 24_192),
            false,
        ),
        (
            "after a start that was cut short, and may have found damage",
            Long,
            vec![],
            lost(crash(begin().down(50, 1, Crash::Kill), 100, 1), 11_099),
            false,
        ),
        (
            "long after damage",
            Long,
            vec![],
            lost(damaged(begin(), 100), 11_100),
            true,
        ),
        (
            "in memory, too soon",
            Memory,
            vec![],
            crash(begin(), 1999, 2),
            false,
        ),
        ("in memory", Memory, vec![], crash(begin(), 2000, 2), true),
        (
            "in memory many starts put nothing ahead",
            Memory,
            vec![],
            crash(crash(crash(begin(), 2000, 1), 4000, 1), 6000, 2),
            true,
        ),
        (
            "a start that never served",
            Long,
            vec![],
            lost(
                begin().down(7000, 1, Crash::Kill).starts(7500, 1, true),
                8000,
            ),
            true,
        ),
    ];
    for (name, guard, faults, story, want) in rows {
        let scenario = scenario(guard, &faults);
        let promise = Promise::of(&scenario).in_world(&scenario, &story.0);
        for kind in [
            Kind::FencingOrder,
            Kind::FencingDuplicate,
            Kind::NodeCounter,
            Kind::FencedResource,
        ] {
            assert_eq!(promise.has(kind), want, "{name}");
        }
        assert!(promise.has(Kind::Exclusion), "{name}");
    }
}
