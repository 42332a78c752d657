//! The kit itself: worlds are determined by their scenarios, and its generator never changes.

use std::time::Duration;

use locknode_testkit::history::Event;
use locknode_testkit::{
    Fault, FaultKind, FaultKinds, Links, Random, Report, Scenario, SimTime, Swarm, Way, Who, World,
    check_determinism, first_difference,
};

/// Known answers of xoshiro256\*\* seeded by `SplitMix64`: a seed that failed fails for ever.
#[test]
fn the_generator_never_changes() {
    let mut random = Random::new(0);
    let first = [(); 4].map(|()| random.next());
    assert_eq!(
        first,
        [
            0x99ec_5f36_cb75_f2b4,
            0xbf6e_1f78_4956_452a,
            0x1a5f_849d_4933_e6e0,
            0x6aa5_94f1_262d_2d2c
        ]
    );
}

#[test]
fn two_runs_of_a_world_are_the_same_event_by_event() {
    for seed in 0..20 {
        let scenario = Swarm::default().scenario(seed);
        assert_eq!(check_determinism(&scenario), None, "seed {seed}");
    }
}

#[test]
fn the_first_event_that_differs_is_shown() {
    let one = Swarm::default().scenario(3);
    let cut = Fault::Cut(Links::ALL, Way::Both);
    let other = one.clone().at(Duration::from_secs(7), cut);
    let difference = first_difference(&one, &other).expect("a cut of all links changes a world");
    assert!(
        difference
            .at
            .1
            .is_some_and(|at| at <= Duration::from_secs(7).into()),
        "{difference}"
    );
    assert!(
        difference.to_string().contains("the runs part at event"),
        "{difference}"
    );
}

#[test]
fn a_world_and_its_text_are_the_same_world() {
    for seed in 0..10 {
        let scenario = Swarm::default().scenario(seed);
        let read = Scenario::parse(&scenario.to_string()).expect("it was written to be read");
        let hash = |scenario: &Scenario| {
            let mut world = World::new(scenario);
            world.run();
            world.hash()
        };
        assert_eq!(hash(&scenario), hash(&read), "seed {seed}");
    }
}

/// A fault that is taken out of a script leaves what came before it as it was.
#[test]
fn what_comes_later_changes_nothing_before() {
    let until = Duration::from_secs(20);
    let one = Swarm::default().scenario(5);
    let other = one.clone().at(until, Fault::Reset(Links::ALL));
    let hash = |scenario: &Scenario| {
        let mut world = World::new(scenario);
        world.run_until((until - Duration::from_nanos(1)).into());
        world.hash()
    };
    assert_eq!(hash(&one), hash(&other));
}

/// From the moment on at which it stands still a node does nothing, whatever it was in the middle of.
#[test]
fn a_node_that_stands_still_serves_nobody() {
    let swarm = Swarm::default().focus(
        FaultKinds::NONE
            .with(FaultKind::Pause)
            .with(FaultKind::Hold),
    );
    for seed in 0..200 {
        let report = swarm.run(seed);
        let mut until = [SimTime::ZERO; 5];
        for entry in &report.history().entries {
            match entry.event {
                Event::Stopped {
                    who: Who::Node(node),
                    until: end,
                    ..
                } => {
                    let known = &mut until[usize::from(node)];
                    *known = end.max(*known);
                }
                Event::Granted { node, .. }
                | Event::Extended { node, .. }
                | Event::Freed { node, .. }
                | Event::Answered { node, .. } => {
                    let end = until[usize::from(node)];
                    assert!(
                        entry.at >= end,
                        "seed {seed}: {entry:?}, but it stands still until {end}"
                    );
                }
                _ => {}
            }
        }
    }
}

/// A node whose state was damaged begins nine steps above the calendar; one that lost its disk nine seconds later is not above
/// that yet, and nothing is promised of its counters.
#[test]
fn seed_554998_keeps_its_promises() {
    let scenario = Scenario::parse(include_str!("seed_554998.txt")).expect("a scenario");
    Report::of(&scenario).assert_safe();
}

/// A lock that a start restores in another database is not one of the same name in the first.
#[test]
fn seed_25747_keeps_its_promises() {
    let scenario = Scenario::parse(include_str!("seed_25747.txt")).expect("a scenario");
    Report::of(&scenario).assert_safe();
}

/// Two grants in one turn, with a fault between them that stops the machine's clocks: the second came all the same, and
/// was taken for one without an end.
#[test]
fn seed_300351_keeps_its_promises() {
    let scenario = Scenario::parse(include_str!("seed_300351.txt")).expect("a scenario");
    Report::of(&scenario).assert_safe();
    Swarm::default().run(300_351).assert_safe();
}

/// A node's empty disk is waited for from a start that was cut short: the lock was longer than that wait, though what was left of
/// it at the next start was not.
#[test]
fn seed_49805_keeps_its_promises() {
    let scenario = Scenario::parse(include_str!("seed_49805.txt")).expect("a scenario");
    Report::of(&scenario).assert_safe();
}

/// The same of a start that could not write all: the wait was on the disk already.
#[test]
fn a_wait_begins_at_a_start_on_a_full_disk() {
    let scenario = Scenario::parse(include_str!("start_on_full_disk.txt")).expect("a scenario");
    Report::of(&scenario).assert_safe();
}

/// A node whose disk is full refuses a lock to a client that wants no replies: it was taken for one that was granted and told.
#[test]
fn seed_42583_keeps_its_promises() {
    let scenario = Scenario::parse(include_str!("seed_42583.txt")).expect("a scenario");
    Report::of(&scenario).assert_safe();
}

/// A lock was longer than what a node grants since it was started with a lower `max-ttl`: that node was taken for one that served.
/// And an extension that was asked for at the moment at which the last one had succeeded was taken for a part of that.
#[test]
fn seed_82128_keeps_its_promises() {
    let scenario = Scenario::parse(include_str!("seed_82128.txt")).expect("a scenario");
    Report::of(&scenario).assert_safe();
    Swarm::default().run(82_128).assert_safe();
}
