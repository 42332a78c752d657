//! Chaos: all clients contend for one lock while one fault follows the other. Each step has a time, so real nodes can play it,
//! too, and all spans are in proportion to the TTL of the lock.

use std::time::Duration;

use crate::fault::Fault;
use crate::random::Random;
use crate::scenario::{Ending, LockAction, Scenario, Setup};
use crate::swarm::faults::FaultMaker;
use crate::swarm::kinds::{FaultKind, FaultKinds};

/// The scenario of a set-up whose longest TTL is that of the lock.
pub(super) fn scenario(setup: Setup, kinds: FaultKinds) -> Scenario {
    let (run_for, ttl) = (setup.run_for, setup.max_ttl);
    let calm_at = run_for - (ttl * 5 / 2).min(run_for / 3);
    let random = Random::stream(setup.seed, "chaos", 0);
    let mut maker = FaultMaker::new(random, &setup, calm_at.into());
    let clients = 0..setup.clients;
    let mut scenario = clients.fold(Scenario::new(setup), contend);
    // The first part has no faults, to show how it should be.
    maker.make_in_turn(&mut scenario, kinds, (run_for / 10).min(ttl)..calm_at);
    scenario.at(calm_at, Fault::Calm)
}

/// A client acquires the lock again and again.
fn contend(mut scenario: Scenario, client: u8) -> Scenario {
    let Setup {
        seed,
        max_ttl: ttl,
        run_for,
        ..
    } = scenario.setup;
    let mut random = Random::stream(seed, "contender", client.into());
    let mut at = span(&mut random, ttl / 100, ttl / 8);
    while at < run_for {
        let (hold, extend_every) = match random.below(20) {
            0..13 => (span(&mut random, ttl / 25, ttl / 5), None),
            13..19 => (span(&mut random, ttl / 5, ttl * 4 / 5), None),
            _ => (span(&mut random, ttl, ttl * 2), Some(ttl / 3)),
        };
        let mut act = LockAction::new("chaos", ttl)
            .within(ttl * 2)
            .hold(hold)
            .write_every(span(&mut random, ttl / 10, ttl / 4));
        act.extend_every = extend_every;
        if random.chance(5) {
            act.ending = Ending::Leave;
        }
        scenario = scenario.act(at, client, act.into());
        at += ttl * 2 + hold + span(&mut random, ttl / 100, ttl / 8);
    }
    scenario
}

/// Whole milliseconds, at least one.
fn span(random: &mut Random, low: Duration, high: Duration) -> Duration {
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(random.between(ms(low), ms(high)).max(1))
}

/// The faults of real nodes and clients.
pub(super) const KINDS: FaultKinds = FaultKinds::NONE
    .with(FaultKind::Crash)
    .with(FaultKind::Partition)
    .with(FaultKind::OneWay)
    .with(FaultKind::Delay)
    .with(FaultKind::Hold)
    .with(FaultKind::Drop)
    .with(FaultKind::Late)
    .with(FaultKind::Duplicate)
    .with(FaultKind::Reset)
    .with(FaultKind::Pause)
    .with(FaultKind::Drift)
    .with(FaultKind::ClientCrash)
    .with(FaultKind::Refuse);
