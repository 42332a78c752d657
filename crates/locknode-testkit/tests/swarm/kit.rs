//! The kit itself: worlds are determined by their scenarios, and its generator never changes.

use std::time::Duration;

use locknode_testkit::{
    Fault, Links, Random, Scenario, Swarm, Way, World, check_determinism, first_difference,
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
