use std::time::Duration;

use locknode_engine::Time;
use locknode_engine::durable::{Reading, Start};

use super::*;
use crate::node::TICK;
use crate::search::{expect_no_state_lost, refute, verify};

#[test]
fn no_two_clients_believe_at_once_in_one_try_each() {
    verify_all(&[
        ("TTL 2", RULES),
        ("TTL 3", LONG),
        ("TTL 2, refusals are heard", RULES.refusals()),
    ]);
    verify("TTL 2, 3 clients", Exclusion::<3>::new(THREE));
}

#[test]
fn no_two_clients_believe_at_once_when_nodes_crash() {
    let crash = RULES.crashes(1);
    verify_all(&[
        ("TTL 2, 1 crash", crash),
        ("TTL 2, 2 crashes", RULES.crashes(2)),
        ("TTL 3, 1 crash", LONG.crashes(1)),
        ("TTL 2, 1 crash, refusals are heard", crash.refusals()),
        ("TTL 2, 2 tries of one, 1 crash", crash.tries(&[2, 1])),
    ]);
}

#[test]
fn no_two_clients_believe_at_once_when_one_extends() {
    let crash = RULES.extends(&[1, 0]).crashes(1);
    verify_all(&[
        ("TTL 2, 1 extension, 1 crash", crash),
        (
            "TTL 2, 1 extension, 1 crash, refusals are heard",
            crash.refusals(),
        ),
        ("TTL 2, 1 extension each", RULES.extends(&[1, 1])),
    ]);
}

#[test]
fn no_two_clients_believe_at_once_when_a_clock_is_fast_within_the_allowance() {
    let fast = LONG.fast_ticks(1);
    verify_all(&[
        ("TTL 3, 1 fast tick", fast),
        ("TTL 3, 1 fast tick, 1 crash", fast.crashes(1)),
    ]);
}

#[test]
fn no_two_clients_believe_at_once_in_several_tries() {
    let two = RULES.tries(&[2, 1]);
    verify_all(&[
        ("TTL 2, 2 tries of one", two),
        ("TTL 2, 2 tries of one, late replies", two.late_replies()),
        ("TTL 2, 2 tries each", RULES.tries(&[2, 2])),
    ]);
}

/// Too much for a build without optimisation.
#[cfg(not(debug_assertions))]
#[test]
fn no_two_clients_believe_at_once_in_a_wider_scope() {
    let late = RULES.tries(&[2, 1]).late_replies().refusals();
    verify_all(&[
        (
            "TTL 2, 2 tries of one, late replies, refusals are heard",
            late,
        ),
        (
            "TTL 2, 2 tries each, 1 crash",
            RULES.tries(&[2, 2]).crashes(1),
        ),
        (
            "TTL 3, 2 tries of one, 1 crash",
            LONG.tries(&[2, 1]).crashes(1),
        ),
        (
            "TTL 3, 1 extension, 1 crash",
            LONG.extends(&[1, 0]).crashes(1),
        ),
    ]);
    verify(
        "TTL 2, 3 clients, 1 crash",
        Exclusion::<3>::new(THREE.crashes(1)),
    );
}

#[test]
fn every_planted_bug_is_found() {
    let (crash, two) = (RULES.crashes(1), RULES.tries(&[2, 1]));
    let (fast, extends) = (LONG.fast_ticks(1), RULES.extends(&[1, 0]));
    for (name, bug, rules, steps_max) in [
        ("quarantine of 0", Bug::NoQuarantine, crash, 11),
        (
            "quarantine of the TTL less 1",
            Bug::ShortQuarantine,
            crash,
            12,
        ),
        ("validity from the reply", Bug::ValidityFromReply, RULES, 12),
        ("fast tick, no allowance", Bug::NoAllowance, fast, 13),
        ("votes kept", Bug::VotesKept, two.late_replies(), 13),
        (
            "release without compare",
            Bug::ReleaseWithoutCompare,
            two,
            13,
        ),
        (
            "extend without compare",
            Bug::ExtendWithoutCompare,
            extends,
            17,
        ),
    ] {
        let bug = Some(bug);
        refute(name, model(Rules { bug, ..rules }), "exclusion", steps_max);
    }
}

/// In whole ticks, a client that takes one off tolerates one fast tick; it does not tolerate two.
#[test]
fn two_fast_ticks_are_more_than_an_allowance_of_one() {
    let rules = Rules {
        drift: 1,
        ..LONG.fast_ticks(2)
    };
    refute(
        "2 fast ticks, allowance of 1",
        model(rules),
        "exclusion",
        13,
    );
}

#[test]
fn names_that_change_places_lose_no_state() {
    expect_no_state_lost(model(RULES));
    expect_no_state_lost(model(RULES.crashes(1).refusals()));
}

/// What is dropped is dropped for a reason that is argued; this does without.
#[test]
fn exclusion_holds_without_dropping_anything() {
    let whole = Rules {
        reduced: false,
        ..RULES
    };
    verify_all(&[
        ("TTL 2, nothing dropped", whole),
        ("TTL 2, 1 crash, nothing dropped", whole.crashes(1)),
    ]);
}

#[test]
fn the_real_wait_after_a_restart_is_no_shorter_than_that_of_the_model() {
    for ttl in [RULES.ttl, LONG.ttl] {
        let now = Time::from_millis(5_000);
        let mut reading = Reading::default();
        reading.moment.time = now;
        let ttl: Duration = TICK * u32::from(ttl);
        let start = Start::without_directory(ttl, false, reading);
        assert!(start.quarantine_end.since(now) >= ttl, "{start:?}");
    }
}

/// The model, with and without names that change places.
fn model(rules: Rules) -> impl Fn(bool) -> Exclusion<2> {
    move |symmetric| Exclusion::new(Rules { symmetric, ..rules })
}

fn verify_all(rows: &[(&str, Rules)]) {
    for (name, rules) in rows {
        verify(name, Exclusion::<2>::new(*rules));
    }
}

const RULES: Rules = Rules {
    ttl: 2,
    drift: 0,
    quarantine: 2,
    tries: &[1, 1],
    extends: &[0, 0],
    crashes: 0,
    fast_ticks: 0,
    refusals: false,
    late_replies: false,
    reduced: true,
    symmetric: true,
    bug: None,
};

const LONG: Rules = Rules {
    ttl: 3,
    quarantine: 3,
    ..RULES
};

const THREE: Rules = Rules {
    tries: &[1, 1, 1],
    extends: &[0, 0, 0],
    ..RULES
};
