//! Chaos: faults in turn, which real nodes can have, too.

use std::time::Duration;

use locknode_testkit::{Action, Fault, GuardMode, Scenario, Swarm, Trigger, ViolationKind};

use crate::first_broken;

const TTL: Duration = Duration::from_secs(1);

fn faults(scenario: &Scenario) -> Vec<(Duration, Fault)> {
    let mut faults = Vec::new();
    for step in &scenario.steps {
        let Trigger::At(at) = step.when else {
            panic!("not at a time of its own: {step}");
        };
        if let Action::Fault(fault) = step.what {
            faults.push((Duration::from_nanos(at.as_nanos()), fault));
        }
    }
    faults.sort_by_key(|(at, _)| *at);
    faults
}

#[test]
fn every_promise_is_kept_in_chaos() {
    let sizes = [(5, 8), (3, 3), (1, 2), (2, 16)];
    for (nodes, clients) in sizes {
        let swarm = Swarm::chaos(TTL).nodes(nodes).clients(clients);
        if let (Some(report), _) = first_broken(&swarm, 0..40) {
            report.assert_safe();
        }
    }
}

/// That is what it is shown for.
#[test]
fn nodes_that_forget_give_the_lock_to_two_clients_in_most_seeds() {
    let swarm = Swarm::chaos(TTL).guard(GuardMode::Off);
    let is_broken = |seed: &u64| {
        let scenario = swarm.scenario(*seed);
        let mut world = locknode_testkit::World::new(&scenario);
        world.run();
        let violations = locknode_testkit::check_all(world.history(), &scenario);
        violations
            .iter()
            .any(|it| it.kind == ViolationKind::Exclusion)
    };
    let broken = (0..20).filter(is_broken).count();
    assert!(broken > 10, "{broken}");
}

#[test]
fn the_faults_of_chaos_come_in_turn_and_nodes_that_are_killed_start_again() {
    for seed in 0..50 {
        let faults = faults(&Swarm::chaos(TTL).scenario(seed));
        assert!(faults.len() > 20, "{seed}: {}", faults.len());
        let mut down = [false; 5];
        for (at, fault) in &faults {
            let (at, calm_at) = (at.as_millis(), 17_500);
            assert!((1_000..=calm_at).contains(&at), "{seed}: {fault}");
            assert_eq!(
                at == calm_at && *fault == Fault::Calm,
                *fault == Fault::Calm
            );
            match fault {
                Fault::Crash(node, _) => {
                    let down = &mut down[usize::from(*node)];
                    assert!(!*down, "seed {seed}: killed twice");
                    *down = true;
                }
                Fault::Restart(node) => down[usize::from(*node)] = false,
                _ => {}
            }
        }
        assert_eq!(down, [false; 5]);
    }
}

#[test]
fn seeds_of_chaos_bring_every_kind_of_fault() {
    let scenarios = (0..30).map(|seed| Swarm::chaos(TTL).scenario(seed));
    let kinds: std::collections::BTreeSet<&str> = scenarios
        .flat_map(|scenario| faults(&scenario))
        .map(|(_, fault)| fault.kind())
        .collect();
    let all = [
        "calm",
        "client-crash",
        "client-pause",
        "clock-rate",
        "delay",
        "drop-replies",
        "drop-requests",
        "duplicate",
        "heal",
        "hold",
        "kill",
        "late",
        "node-pause",
        "one-way-partition",
        "partition",
        "refuse",
        "release-held",
        "reset",
        "restart",
    ];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn the_shortest_chaos_and_the_smallest_have_a_schedule_too() {
    for (nodes, clients, run_ms, ttl_ms) in
        [(1, 1, 1000, 100), (2, 1, 2000, 5000), (16, 16, 3000, 300)]
    {
        let (run_for, ttl) = (Duration::from_millis(run_ms), Duration::from_millis(ttl_ms));
        let swarm = Swarm::chaos(ttl)
            .nodes(nodes)
            .clients(clients)
            .run_for(run_for);
        let scenario = swarm.scenario(3);
        assert_eq!(scenario.setup.run_for, run_for);
        assert!(faults(&scenario).iter().all(|(at, _)| *at < run_for));
        swarm.run(3).assert_safe();
    }
}
