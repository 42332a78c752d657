//! The kit itself: worlds are determined by their scenarios, and its generator never changes.

use std::time::Duration;

use locknode_testkit::history::Event;
use locknode_testkit::{
    Crash, Fault, FaultKind, FaultKinds, Links, LockAction, Random, Report, Scenario, SimTime,
    Swarm, Way, Who, World, check_determinism, first_difference,
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
        assert_eq!(hash_of(&scenario), hash_of(&read), "seed {seed}");
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

/// A test may name a node or a client that its world does not have.
#[test]
fn who_is_not_there_suffers_nothing_and_does_nothing() {
    let scenario = Swarm::default().scenario(5);
    let mut world = World::new(&scenario);
    let (node, client) = (Who::Node(9), Who::Client(9));
    let second = Duration::from_secs(1);
    world.inject(Fault::Crash(9, Crash::Kill));
    world.inject(Fault::Restart(9));
    world.inject(Fault::Promote(9));
    world.inject(Fault::CrashClient(9));
    world.inject(Fault::MaxTtl(9, second));
    for who in [node, client] {
        world.inject(Fault::Pause(who, second));
        world.inject(Fault::Rate(who, 100));
    }
    world.act(9, &LockAction::new("a", second).into());
    assert!(!world.is_up(9));
    assert_eq!(world.quarantine_left(9), None);
    world.run();
    assert_eq!(world.hash(), hash_of(&scenario));
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

/// What the swarm once found, shortened: mistakes of the kit that were mended, and one of the client.
#[test]
fn what_was_found_once_is_found_no_more() {
    let rows = [
        // A node whose state was damaged begins nine steps above the calendar. One that loses its disk nine seconds later is not
        // above that yet, and nothing is promised of its counters.
        ("554998", include_str!("seed_554998.txt")),
        // A start restores a lock in another database than the first: it is not the lock of that name in the first.
        ("25747", include_str!("seed_25747.txt")),
        // Two grants in one turn, and between them a fault that stops the machine's clocks: the second comes all the same, and
        // has an end.
        ("300351", include_str!("seed_300351.txt")),
        // A start that is cut short begins the wait for an empty disk. The lock was longer than that wait, though what was left
        // of it at the next start was not.
        ("49805", include_str!("seed_49805.txt")),
        // The same of a start that cannot write everything: the wait is on the disk.
        ("start", include_str!("start_on_full_disk.txt")),
        // A node whose disk is full refuses a lock to a client that wants no replies: it is neither granted nor reported.
        ("42583", include_str!("seed_42583.txt")),
        // A node that was started with a lower `max-ttl` refuses a longer lock: it does not serve it.
        ("82128", include_str!("seed_82128.txt")),
        // A copy of an extension to a shorter TTL comes a little later, and a kill takes back the copy only.
        ("91461", include_str!("seed_91461.txt")),
        // A crash takes back a release after a sleep of the machine: the lock ends by the clocks that it was granted by.
        ("180256", include_str!("seed_180256.txt")),
        // A start while the clocks stand still: a lock that has expired is still on the log at that very moment.
        ("170721", include_str!("seed_170721.txt")),
        // A node that keeps nothing waits for its new, lower `max-ttl` only and forgets a lock; of the three others that have
        // it one holds it no longer than at first, as it does not reply to extensions.
        ("273027", include_str!("seed_273027.txt")),
        // The client's: a node refuses an acquire, because it executed a copy of it first. Its yes to an extension says that
        // it holds the lock, which has to be released there.
        ("157223", include_str!("seed_157223.txt")),
        // One of a client's two calls for a key ends, and the newest attempt is not the other's.
        ("37236", include_str!("seed_37236.txt")),
        // A node's clock is set right during its quarantine, which then ends sooner than its end was looked for.
        ("193285", include_str!("seed_193285.txt")),
    ];
    for (seed, text) in rows {
        let scenario = Scenario::parse(text).unwrap_or_else(|error| panic!("{seed}: {error}"));
        Report::of(&scenario).assert_safe();
    }
    // Shortened, these show another mistake than the whole worlds do. In 82128 the client's process stops between the success of
    // an extension and its next request: both have the same time, and the request belongs to the next round.
    for seed in [82_128, 300_351] {
        Swarm::default().run(seed).assert_safe();
    }
}

fn hash_of(scenario: &Scenario) -> u64 {
    let mut world = World::new(scenario);
    world.run();
    world.hash()
}
