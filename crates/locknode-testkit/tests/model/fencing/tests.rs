use std::collections::HashSet;

use super::*;
use crate::fencing::rounds::replayed;
use crate::fencing::state::Ask;
use crate::search::{expect_no_state_lost, refute, verify};

#[test]
fn tokens_are_in_order_when_nodes_counted_the_same() {
    verify_all(&[
        ("even counters", EVEN),
        ("even counters, 1 connection breaks", EVEN.cuts(1)),
    ]);
}

#[test]
fn tokens_are_in_order_when_nodes_counted_differently() {
    verify_all(&[
        ("counters 2 0 0", RULES),
        ("counters 1 3 0", RULES.counters([1, 3, 0])),
        ("counters 2 0 0, refusals are heard", RULES.refusals()),
        ("counters 2 0 0, 1 connection breaks", RULES.cuts(1)),
    ]);
}

#[test]
fn tokens_are_in_order_when_nodes_crash() {
    verify_all(&[
        ("counters 2 0 0, 1 crash", RULES.crashes(1)),
        ("counters 2 0 0, 2 crashes", RULES.crashes(2)),
    ]);
}

#[test]
fn a_grant_that_is_quoted_keeps_attempts_apart_that_share_a_value() {
    let shared = RULES.shared_value();
    verify_all(&[
        ("one value for all", shared),
        ("one value for all, 1 crash", shared.crashes(1)),
    ]);
}

/// Too much for a build without optimisation.
#[cfg(not(debug_assertions))]
#[test]
fn tokens_are_in_order_in_a_wider_scope() {
    verify_all(&[
        (
            "counters 2 0 0, 1 crash, 1 connection breaks, refusals are heard",
            RULES.crashes(1).cuts(1).refusals(),
        ),
        ("counters 2 0 0, 2 connections break", RULES.cuts(2)),
    ]);
    verify("even counters, 3 attempts", Fencing::<3>::new(EVEN));
}

#[test]
fn every_refuted_design_is_refuted() {
    let crash = RULES.crashes(1);
    let apart = crash.counters([5, 0, 0]);
    for (name, bug, rules, steps_max) in [
        ("R1 no write-back", Bug::NoWriteBack, RULES, 10),
        (
            "R2 unconditional write-back",
            Bug::UnconditionalWriteBack,
            RULES,
            16,
        ),
        ("R3 volatile counters", Bug::VolatileCounters, crash, 13),
        ("R4 epoch only", Bug::EpochOnly, apart, 15),
        (
            "R5 owner by value",
            Bug::OwnerByValue,
            RULES.shared_value(),
            16,
        ),
    ] {
        let bug = Some(bug);
        refute(name, model(Rules { bug, ..rules }), "fence", steps_max);
    }
}

#[test]
fn names_that_change_places_lose_no_state() {
    expect_no_state_lost(model(EVEN));
    expect_no_state_lost(model(EVEN.cuts(1)));
}

/// What is dropped is dropped for a reason that is argued; this does without.
#[test]
fn order_holds_without_dropping_anything() {
    let whole = Rules {
        reduced: false,
        ..RULES
    };
    verify_all(&[("counters 2 0 0, nothing dropped", whole)]);
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
    for (node, &ask) in asks.iter().enumerate() {
        if ask.cut != Cut::Never {
            continue;
        }
        let next: &[(Stage, u8)] = match ask.stage {
            Stage::Sent => &[
                (Stage::Granted, 1),
                (Stage::Refused, 1),
                (Stage::Granted, 2),
                (Stage::Refused, 2),
            ],
            Stage::Asked => &[
                (Stage::Accepted, ask.counter),
                (Stage::Rejected, ask.counter),
            ],
            _ => &[],
        };
        for &(stage, counter) in next {
            let reply = Ask {
                stage,
                counter,
                ..ask
            };
            replies.push((node, reply));
        }
        let cut = Cut::at(phase);
        replies.push((node, Ask { cut, ..ask }));
    }
    replies
}

/// The model, with and without names that change places.
fn model(rules: Rules) -> impl Fn(bool) -> Fencing<2> {
    move |symmetric| Fencing::new(Rules { symmetric, ..rules })
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
