use std::time::Duration;

use locknode_engine::durable::{MachineTime, Reading, Start};
use locknode_engine::{Moment, Time};

use super::*;
use crate::node::TICK;
use crate::search::{reachable, refute, verify};

#[test]
fn no_two_clients_believe_at_once_in_one_try_each() {
    let rows = [
        ("TTL 2", RULES),
        ("TTL 3", LONG),
        (
            "TTL 2, refusals are heard",
            Rules {
                refusals: true,
                ..RULES
            },
        ),
    ];
    verify_all(&rows);
    verify("TTL 2, 3 clients", Exclusion::<3>::new(THREE));
}

#[test]
fn no_two_clients_believe_at_once_when_nodes_crash() {
    let crash = Rules {
        crashes: 1,
        ..RULES
    };
    verify_all(&[
        ("TTL 2, 1 crash", crash),
        (
            "TTL 2, 2 crashes",
            Rules {
                crashes: 2,
                ..RULES
            },
        ),
        ("TTL 3, 1 crash", Rules { crashes: 1, ..LONG }),
        (
            "TTL 2, 1 crash, refusals are heard",
            Rules {
                refusals: true,
                ..crash
            },
        ),
        (
            "TTL 2, 2 tries of one, 1 crash",
            Rules {
                tries: &[2, 1],
                ..crash
            },
        ),
    ]);
}

#[test]
fn no_two_clients_believe_at_once_when_one_extends() {
    let extends = Rules {
        extends: &[1, 0],
        ..RULES
    };
    let crash = Rules {
        crashes: 1,
        ..extends
    };
    verify_all(&[
        ("TTL 2, 1 extension, 1 crash", crash),
        (
            "TTL 2, 1 extension, 1 crash, refusals are heard",
            Rules {
                refusals: true,
                ..crash
            },
        ),
        (
            "TTL 2, 1 extension each",
            Rules {
                extends: &[1, 1],
                ..RULES
            },
        ),
    ]);
}

#[test]
fn no_two_clients_believe_at_once_when_a_clock_is_fast_within_the_allowance() {
    let fast = Rules {
        fast_ticks: 1,
        drift: 1,
        ..LONG
    };
    verify_all(&[
        ("TTL 3, 1 fast tick", fast),
        ("TTL 3, 1 fast tick, 1 crash", Rules { crashes: 1, ..fast }),
    ]);
}

#[test]
fn no_two_clients_believe_at_once_in_several_tries() {
    let two = Rules {
        tries: &[2, 1],
        ..RULES
    };
    verify_all(&[
        ("TTL 2, 2 tries of one", two),
        (
            "TTL 2, 2 tries of one, late replies",
            Rules {
                late_replies: true,
                ..two
            },
        ),
        (
            "TTL 2, 2 tries each",
            Rules {
                tries: &[2, 2],
                ..RULES
            },
        ),
    ]);
}

/// Too much for a build without optimisation.
#[cfg(not(debug_assertions))]
#[test]
fn no_two_clients_believe_at_once_in_a_wider_scope() {
    let two = Rules {
        tries: &[2, 1],
        ..RULES
    };
    verify_all(&[
        (
            "TTL 2, 2 tries of one, late replies, refusals are heard",
            Rules {
                late_replies: true,
                refusals: true,
                ..two
            },
        ),
        (
            "TTL 2, 2 tries each, 1 crash",
            Rules {
                tries: &[2, 2],
                crashes: 1,
                ..RULES
            },
        ),
        (
            "TTL 3, 2 tries of one, 1 crash",
            Rules {
                tries: &[2, 1],
                crashes: 1,
                ..LONG
            },
        ),
        (
            "TTL 3, 1 extension, 1 crash",
            Rules {
                extends: &[1, 0],
                crashes: 1,
                ..LONG
            },
        ),
    ]);
    verify(
        "TTL 2, 3 clients, 1 crash",
        Exclusion::<3>::new(Rules {
            crashes: 1,
            ..THREE
        }),
    );
}

#[test]
fn every_planted_bug_is_found() {
    let crash = Rules {
        crashes: 1,
        ..RULES
    };
    let two = Rules {
        tries: &[2, 1],
        ..RULES
    };
    let rows = [
        ("quarantine of 0", Bug::NoQuarantine, crash, 11),
        (
            "quarantine of the TTL less 1",
            Bug::ShortQuarantine,
            crash,
            12,
        ),
        ("validity from the reply", Bug::ValidityFromReply, RULES, 12),
        (
            "fast tick, no allowance",
            Bug::NoAllowance,
            Rules {
                fast_ticks: 1,
                drift: 1,
                ..LONG
            },
            13,
        ),
        (
            "votes kept",
            Bug::VotesKept,
            Rules {
                late_replies: true,
                ..two
            },
            13,
        ),
        (
            "release without compare",
            Bug::ReleaseWithoutCompare,
            two,
            13,
        ),
        (
            "extend without compare",
            Bug::ExtendWithoutCompare,
            Rules {
                extends: &[1, 0],
                ..RULES
            },
            17,
        ),
    ];
    for (name, bug, rules, steps_max) in rows {
        let model = |symmetric| {
            Exclusion::<2>::new(Rules {
                symmetric,
                bug: Some(bug),
                ..rules
            })
        };
        refute(name, model, "exclusion", steps_max);
    }
}

/// In whole ticks, a client that takes one off tolerates one fast tick; it does not tolerate two.
#[test]
fn two_fast_ticks_are_more_than_an_allowance_of_one() {
    let rules = Rules {
        fast_ticks: 2,
        drift: 1,
        ..LONG
    };
    let model = |symmetric| Exclusion::<2>::new(Rules { symmetric, ..rules });
    refute("2 fast ticks, allowance of 1", model, "exclusion", 13);
}

#[test]
fn names_that_change_places_lose_no_state() {
    for rules in [
        RULES,
        Rules {
            crashes: 1,
            refusals: true,
            ..RULES
        },
    ] {
        let named = reachable(&Exclusion::<2>::new(Rules {
            symmetric: false,
            ..rules
        }));
        assert_eq!(reachable(&Exclusion::<2>::new(rules)), named);
    }
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
        (
            "TTL 2, 1 crash, nothing dropped",
            Rules {
                crashes: 1,
                ..whole
            },
        ),
    ]);
}

#[test]
fn the_real_wait_after_a_restart_is_no_shorter_than_that_of_the_model() {
    for ttl in [RULES.ttl, LONG.ttl] {
        let now = Time::from_millis(5_000);
        let reading = Reading {
            moment: Moment {
                time: now,
                ..Moment::default()
            },
            machine: MachineTime {
                boottime_ns: 0,
                raw_ns: 0,
            },
        };
        let ttl: Duration = TICK * u32::from(ttl);
        let start = Start::without_directory(ttl, false, reading);
        assert!(start.quarantine_end.since(now) >= ttl, "{start:?}");
    }
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
