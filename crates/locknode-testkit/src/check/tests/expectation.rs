use super::{rows, with_faults};
use crate::check::Promise;
use crate::check::violation::ViolationKind as Kind;
use crate::history::tests::story;
use crate::scenario::{GuardMode, LockAction, Scenario};
use crate::span::{SimTime, parse_span};

/// Which of exclusion, a node's grants and fencing are promised; the kinds of a group go together.
fn promised(scenario: &Scenario) -> String {
    let promise = Promise::of(scenario);
    let all = |kinds: &[Kind]| {
        let has: Vec<bool> = kinds.iter().map(|kind| promise.has(*kind)).collect();
        assert!(has.iter().all(|it| *it == has[0]), "{promise:?}");
        has[0]
    };
    assert!(promise.has(Kind::NodeQuarantine) && promise.has(Kind::Expired));
    assert!(!promise.has(Kind::Resource));
    let is_continuous = promise.has(Kind::Continuity) == promise.has(Kind::Exclusion);
    let is_guarded = scenario.setup.guard != GuardMode::Off;
    assert!(is_continuous || !is_guarded, "{promise:?}");
    let groups = [
        ("exclusion", all(&[Kind::Exclusion, Kind::Majority])),
        ("grants", promise.has(Kind::NodeGrant)),
        ("fencing", all(&FENCING)),
    ];
    let promised = groups.iter().filter(|(_, is_promised)| *is_promised);
    let names: Vec<&str> = promised.map(|(name, _)| *name).collect();
    names.join(" ")
}

const FENCING: [Kind; 4] = [
    Kind::FencedResource,
    Kind::FencingDuplicate,
    Kind::FencingOrder,
    Kind::NodeCounter,
];

fn guard(name: &str) -> GuardMode {
    let mut all = GuardMode::ALL.into_iter();
    all.find(|guard| guard.name() == name).expect("a guard")
}

#[test]
fn clocks_beyond_the_allowance_break_exclusion_and_nothing_else() {
    let table = "
        nothing                         |                                                       | exclusion
        a node as fast as allowed       | rate node 0 +10000ppm                                 | exclusion
        a node too fast                 | rate node 0 +10001ppm                                 |
        a slow node                     | rate node 0 -90000ppm                                 | exclusion
        a client as slow as allowed     | rate client 1 -10000ppm                               | exclusion
        a client too slow               | rate client 1 -10001ppm                               |
        a fast client                   | rate client 1 +90000ppm                               | exclusion
        both, allowed                   | rate node 0 +4000ppm, rate client 1 -6000ppm          | exclusion
        both, too much                  | rate node 0 +4000ppm, rate client 1 -6001ppm          |
        a slewed node                   | slew node 0 +83333ppm                                 | exclusion
        a slewed client                 | slew client 1 -83333ppm                               | exclusion
        a slewed client asleep          | slew client 1 -83333ppm, suspend client 1 1s          |
        a slightly slewed client asleep | slew client 1 -10000ppm, suspend client 1 1s          | exclusion
        another client asleep           | slew client 1 -83333ppm, suspend client 0 1s          | exclusion
        a slewed node asleep            | slew node 0 +83333ppm, suspend node 0 1s              | exclusion
        noise                           | noise node 0 1ms, noise client 1 1ms                  | exclusion
        more noise                      | noise node 0 1ms, noise client 1 1001us               |
        a frozen client                 | freeze client 1 1s                                    |
        a frozen node                   | freeze node 0 1s                                      | exclusion
        sleep                           | suspend client 1 1s, suspend node 0 1s                | exclusion
        pauses                          | pause client 1 1s, pause node 0 1s                    | exclusion
        wall clocks                     | wall node 0 +9999ms, wall client 1 -9999ms            | exclusion
        links and disks                 | cut client all node all both, duplicate client all node all 3, \
                                          disk node 0 sync-error, crash client 1, calm          | exclusion";
    for [name, faults, exclusion] in rows(table) {
        let scenario = with_faults(GuardMode::Long, faults);
        let want = format!("{exclusion} grants fencing");
        assert_eq!(promised(&scenario), want.trim(), "{name}");
    }
}

#[test]
fn what_nodes_forget_is_not_promised() {
    let table = "
        off    | 99s |                                                  | exclusion grants fencing
        off    | 5s  | crash node 2 clean-stop                          | fencing
        off    | 5s  | crash node 2 kill, wall node 0 +5ms              |
        memory | 99s | crash node 2 kill                                | exclusion grants fencing
        memory | 3s  | max-ttl node 2 3s, crash node 2 kill             | exclusion grants fencing
        memory | 4s  | max-ttl node 2 3s, crash node 2 kill             | exclusion grants fencing
        memory | 4s  | max-ttl node 2 3s                                | exclusion grants fencing
        memory | 5s  | crash node 2 kill, wall node 2 -5ms              | exclusion grants
        memory | 5s  | crash node 2 kill, wall node 0 -5ms              | exclusion grants fencing
        long   | 99s | crash node 2 kill, crash node 2 power-loss-all, max-ttl node 2 3s | exclusion grants fencing
        long   | 99s | crash node 2 torn-write, crash node 2 moved, wall node 2 +5ms     | exclusion grants fencing
        long   | 99s | crash node 2 clean-stop                          | exclusion grants fencing
        long   | 5s  | crash node 2 rollback                            | fencing
        always | 5s  | crash node 2 rollback                            | fencing
        always | 5s  | crash node 2 rollback, wall node 1 +5ms          |
        memory | 5s  | crash node 2 rollback                            | exclusion grants fencing
        long   | 10s | crash node 2 disk-lost                           | exclusion grants fencing
        long   | 11s | crash node 2 disk-lost                           | exclusion grants fencing
        always | 11s | crash node 2 disk-lost                           | exclusion grants fencing
        always | 4s  | crash node 2 disk-lost, max-ttl node 2 3s        | exclusion grants fencing
        long   | 5s  | crash node 2 disk-lost, wall node 0 +5ms         | exclusion grants
        long   | 5s  | crash node 2 disk-lost, wall node 2 -5ms         | exclusion grants
        long   | 5s  | crash node 2 disk-lost, wall node 0 -5ms         | exclusion grants fencing
        long   | 5s  | crash node 2 disk-lost, wall client 0 +5ms       | exclusion grants fencing";
    for [mode, ttl, faults, want] in rows(table) {
        let time = parse_span(ttl).expect("a TTL");
        let scenario = with_faults(guard(mode), faults);
        let scenario = scenario.act(time, 0, LockAction::new("a", time).into());
        assert_eq!(promised(&scenario), want, "{mode} {faults} {ttl}");
    }
}

#[test]
fn a_client_notices_that_nodes_forgot_its_lock_when_nothing_comes_late() {
    for (faults, want) in [
        (
            "pause node 0 1s, reset client all node all, crash node 1 power-loss",
            true,
        ),
        ("cut client all node all both", false),
        ("delay client all node all 1s", false),
        ("hold client all node all requests", false),
        ("drop client all node all requests 1", false),
        ("late client all node all requests 1 1s", false),
        ("duplicate client all node all 1", false),
        ("pause client 0 1s", false),
        ("suspend client 0 1s", false),
        ("freeze client 0 1s", false),
        ("rate client 0 -10001ppm", false),
    ] {
        let faults = format!("{faults}, crash node 2 kill");
        let promise = Promise::of(&with_faults(GuardMode::Off, &faults));
        assert_eq!(promise.has(Kind::Continuity), want, "{faults}");
        let is_exclusive = promise.has(Kind::Exclusion) || promise.has(Kind::Majority);
        assert!(!is_exclusive, "{faults}");
    }
    let rollback = with_faults(GuardMode::Long, "crash node 2 rollback");
    assert!(!Promise::of(&rollback).has(Kind::Continuity));
}

#[test]
fn progress_and_durability_are_promised_by_the_set_up() {
    for (liveness_from, want) in [(None, false), (Some(SimTime::ZERO), true)] {
        let mut scenario = with_faults(GuardMode::Long, "");
        scenario.setup.liveness_from = liveness_from;
        assert_eq!(Promise::of(&scenario).has(Kind::Liveness), want);
    }
    for guard in GuardMode::ALL {
        let promise = Promise::of(&with_faults(guard, ""));
        let is_promised = promise.has(Kind::NodeDurability);
        assert_eq!(is_promised, guard != GuardMode::Off, "{guard:?}");
    }
    let promise = Promise::of(&with_faults(GuardMode::Long, ""));
    assert_eq!(promise.iter().count(), 17);
}

#[test]
fn the_calendar_holds_when_it_has_overtaken_all_counters() {
    let begin = "0 n0,1,2,3,4 starts; 0 n0,1,2,3,4 serves";
    let table = "
        no start without memory   | long   |                  | 100 n2 dies; 100 n2 starts; 100 n2 serves | yes
        after two seconds         | long   |                  | 2000 n2 dies disk-lost; 2000 n2 starts quarantined | yes
        too soon                  | long   |                  | 1999 n2 dies disk-lost; 1999 n2 starts quarantined | no
        a clock stood still       | long   | freeze node 4 3s | 4999 n2 dies disk-lost; 4999 n2 starts quarantined | no
        and was overtaken         | long   | freeze node 4 3s | 5000 n2 dies disk-lost; 5000 n2 starts quarantined | yes
        after a start             | long   |                  | 8000 n1 dies; 8000 n1 starts; 8000 n1 serves; \
                                                                11000 n2 dies disk-lost; 11000 n2 starts quarantined | yes
        too soon after a start    | long   |                  | 8000 n1 dies; 8000 n1 starts; 8000 n1 serves; \
                                                                9999 n2 dies disk-lost; 9999 n2 starts quarantined | no
        after many starts         | long   |                  | 100 n1 dies; 100 n1 starts; 100 n1 serves; \
                                                                200 n1 dies; 200 n1 starts; 200 n1 serves; \
                                                                300 n1 dies; 300 n1 starts; 300 n1 serves; \
                                                                2290 n2 dies disk-lost; 2290 n2 starts quarantined | no
        long after many starts    | long   |                  | 100 n1 dies; 100 n1 starts; 100 n1 serves; \
                                                                200 n1 dies; 200 n1 starts; 200 n1 serves; \
                                                                300 n1 dies; 300 n1 starts; 300 n1 serves; \
                                                                2400 n2 dies disk-lost; 2400 n2 starts quarantined | yes
        after damage              | long   |                  | 100 n1 dies torn-write; \
                                                                100 n1 starts quarantined because start-with-damaged-state; \
                                                                110 n1 serves; 11099 n2 dies disk-lost; 11099 n2 starts quarantined | no
        after late damage, as seed 554998 had it | long | | 15300 n1 dies torn-write; \
                                                                15300 n1 starts quarantined because start-with-damaged-state; \
                                                                15310 n1 serves; 24192 n2 dies disk-lost; 24192 n2 starts quarantined | no
        after a start that was cut short, and may have found damage | long | | 50 n1 dies; 100 n1 dies; 100 n1 starts; \
                                                                100 n1 serves; 11099 n2 dies disk-lost; 11099 n2 starts quarantined | no
        long after damage         | long   |                  | 100 n1 dies torn-write; \
                                                                100 n1 starts quarantined because start-with-damaged-state; \
                                                                110 n1 serves; 11100 n2 dies disk-lost; 11100 n2 starts quarantined | yes
        in memory, too soon       | memory |                  | 1999 n2 dies; 1999 n2 starts; 1999 n2 serves | no
        in memory                 | memory |                  | 2000 n2 dies; 2000 n2 starts; 2000 n2 serves | yes
        in memory many starts put nothing ahead | memory | | 2000 n1 dies; 2000 n1 starts; 2000 n1 serves; \
                                                                4000 n1 dies; 4000 n1 starts; 4000 n1 serves; \
                                                                6000 n2 dies; 6000 n2 starts; 6000 n2 serves | yes
        a start that never served | long   |                  | 7000 n1 dies; 7500 n1 starts quarantined; \
                                                                8000 n2 dies disk-lost; 8000 n2 starts quarantined | yes";
    for [name, mode, faults, events, want] in rows(table) {
        let scenario = with_faults(guard(mode), faults);
        let history = story(&format!("{begin};{events}"));
        let promise = Promise::of(&scenario).in_world(&scenario, &history);
        for kind in FENCING {
            assert_eq!(promise.has(kind), want == "yes", "{name}");
        }
        assert!(promise.has(Kind::Exclusion), "{name}");
    }
}
