use std::collections::HashSet;

use super::*;
use crate::fencing::rounds::replayed;
use crate::fencing::state::Ask;
use crate::search::{reachable, refute, verify};

#[test]
fn tokens_are_in_order_when_nodes_counted_the_same() {
    verify_all(&[
        ("even counters", EVEN),
        (
            "even counters, 1 connection breaks",
            Rules { cuts: 1, ..EVEN },
        ),
    ]);
}

#[test]
fn tokens_are_in_order_when_nodes_counted_differently() {
    verify_all(&[
        ("counters 2 0 0", RULES),
        (
            "counters 1 3 0",
            Rules {
                counters: [1, 3, 0],
                ..RULES
            },
        ),
        (
            "counters 2 0 0, refusals are heard",
            Rules {
                refusals: true,
                ..RULES
            },
        ),
        (
            "counters 2 0 0, 1 connection breaks",
            Rules { cuts: 1, ..RULES },
        ),
    ]);
}

#[test]
fn tokens_are_in_order_when_nodes_crash() {
    verify_all(&[
        (
            "counters 2 0 0, 1 crash",
            Rules {
                crashes: 1,
                ..RULES
            },
        ),
        (
            "counters 2 0 0, 2 crashes",
            Rules {
                crashes: 2,
                ..RULES
            },
        ),
    ]);
}

#[test]
fn a_grant_that_is_quoted_keeps_attempts_apart_that_share_a_value() {
    let shared = Rules {
        shared_value: true,
        ..RULES
    };
    verify_all(&[
        ("one value for all", shared),
        (
            "one value for all, 1 crash",
            Rules {
                crashes: 1,
                ..shared
            },
        ),
    ]);
}

/// Too much for a build without optimisation.
#[cfg(not(debug_assertions))]
#[test]
fn tokens_are_in_order_in_a_wider_scope() {
    verify_all(&[
        (
            "counters 2 0 0, 1 crash, 1 connection breaks, refusals are heard",
            Rules {
                crashes: 1,
                cuts: 1,
                refusals: true,
                ..RULES
            },
        ),
        (
            "counters 2 0 0, 2 connections break",
            Rules { cuts: 2, ..RULES },
        ),
    ]);
    verify("even counters, 3 attempts", Fencing::<3>::new(EVEN));
}

#[test]
fn every_refuted_design_is_refuted() {
    let crash = Rules {
        crashes: 1,
        ..RULES
    };
    let rows = [
        ("R1 no write-back", Bug::NoWriteBack, RULES, 10),
        (
            "R2 unconditional write-back",
            Bug::UnconditionalWriteBack,
            RULES,
            16,
        ),
        ("R3 volatile counters", Bug::VolatileCounters, crash, 13),
        (
            "R4 epoch only",
            Bug::EpochOnly,
            Rules {
                counters: [5, 0, 0],
                ..crash
            },
            15,
        ),
        (
            "R5 owner by value",
            Bug::OwnerByValue,
            Rules {
                shared_value: true,
                ..RULES
            },
            16,
        ),
    ];
    for (name, bug, rules, steps_max) in rows {
        let model = |symmetric| {
            Fencing::<2>::new(Rules {
                symmetric,
                bug: Some(bug),
                ..rules
            })
        };
        refute(name, model, "fence", steps_max);
    }
}

#[test]
fn names_that_change_places_lose_no_state() {
    for rules in [EVEN, Rules { cuts: 1, ..EVEN }] {
        let named = reachable(&Fencing::<2>::new(Rules {
            symmetric: false,
            ..rules
        }));
        assert_eq!(reachable(&Fencing::<2>::new(rules)), named);
    }
}

/// What is dropped is dropped for a reason that is argued; this does without.
#[test]
fn order_holds_without_dropping_anything() {
    verify_all(&[(
        "counters 2 0 0, nothing dropped",
        Rules {
            reduced: false,
            ..RULES
        },
    )]);
}

/// A round that is made anew from what the model remembers of it is the round that went on, in every course that it can
/// take with nodes that tell 1 or 2.
#[test]
fn a_round_made_anew_is_the_one_that_went_on() {
    let rounds = Rounds::new(None);
    let mut asks = [Ask::default(); 3];
    asks.iter_mut().for_each(|ask| ask.stage = Stage::Sent);
    let mut pending = vec![(Phase::Asking, asks, replayed(Phase::Asking, &asks))];
    let mut known: HashSet<_> = pending
        .iter()
        .map(|(phase, asks, _)| (*phase, *asks))
        .collect();
    let mut courses = 0;
    while let Some((phase, asks, round)) = pending.pop() {
        assert_eq!(round, replayed(phase, &asks), "{phase:?} {asks:?}");
        for (node, reply) in replies(phase, &asks) {
            let (mut asks, mut round) = (asks, round.clone());
            asks[node] = reply;
            if reply.cut == Cut::Never {
                rounds::take(&mut round, phase, &mut asks[node], node);
            } else {
                rounds::cut(&mut round, node);
            }
            let phase = rounds.judge(&mut round, &mut asks);
            courses += 1;
            if !phase.is_over() && known.insert((phase, asks)) {
                pending.push((phase, asks, round));
            }
        }
    }
    println!("{} histories of a round, {courses} courses", known.len());
    assert!(known.len() > 100, "{}", known.len());
}

/// What a client can hear next: each node's reply to what it was asked, or the end of its connection.
fn replies(phase: Phase, asks: &[Ask; 3]) -> Vec<(usize, Ask)> {
    let mut replies = Vec::new();
    for (node, ask) in asks
        .iter()
        .enumerate()
        .filter(|(_, ask)| ask.cut == Cut::Never)
    {
        let mut reply = |stage, counter| {
            replies.push((
                node,
                Ask {
                    stage,
                    counter,
                    ..*ask
                },
            ))
        };
        match ask.stage {
            Stage::Sent => {
                for counter in [1, 2] {
                    reply(Stage::Granted, counter);
                    reply(Stage::Refused, counter);
                }
            }
            Stage::Asked => {
                reply(Stage::Accepted, ask.counter);
                reply(Stage::Rejected, ask.counter);
            }
            _ => {}
        }
        let cut = if phase.token().is_some() {
            Cut::After
        } else {
            Cut::Before
        };
        replies.push((node, Ask { cut, ..*ask }));
    }
    replies
}

fn verify_all(rows: &[(&str, Rules)]) {
    for (name, rules) in rows {
        verify(name, Fencing::<2>::new(*rules));
    }
}

const RULES: Rules = Rules {
    counters: [2, 0, 0],
    crashes: 0,
    cuts: 0,
    refusals: false,
    shared_value: false,
    reduced: true,
    symmetric: true,
    bug: None,
};

const EVEN: Rules = Rules {
    counters: [0; 3],
    ..RULES
};
