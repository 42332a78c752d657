//! Ends of locks that are reported to their holders too late, and what nodes reply.

use std::time::Duration;

use super::{judge, kind, kinds};
use crate::check::answers::answers;
use crate::check::facts::Facts;
use crate::check::late::late;
use crate::check::violation::ViolationKind::{ClientConduct, NodeAnswer, Robbery};
use crate::fault::{Fault, Who};
use crate::history::tests::{ms, story};
use crate::history::{Entry, Event};
use crate::scenario::{Scenario, Setup};

#[test]
fn the_end_of_a_lock_is_told_before_it() {
    let scenario = Scenario::new(Setup::default());
    let held = "10 c0 holds l0 until 900";
    let table = "
        in time           | 900 c0 loses l0 |
        late              | 901 c0 loses l0 | late-loss
        released late     | 901 c0 releases l0 | late-loss
        never             | | late-loss
        extended          | 800 c0 extends l0 until 1700; 1690 c0 loses l0 |
        it stood still    | 890 c0 pauses until 1200; 1200 c0 loses l0 |
        and longer        | 890 c0 pauses until 1200; 1201 c0 loses l0 | late-loss
        too late for that | 901 c0 pauses until 1200; 1200 c0 loses l0 | late-loss
        it died           | 899 c0 dies |";
    judge(held, table, kind, |facts| late(facts, &scenario));
    let noise = Fault::Noise(Who::Client(0), Duration::from_millis(1));
    let noisy = scenario.at(Duration::ZERO, noise);
    let row = "a noisy clock | 901 c0 loses l0 |";
    judge(held, row, kind, |facts| late(facts, &noisy));
}

#[test]
fn wrong_answers_hands_on_the_locks_of_others_and_misconduct_are_violations() {
    let deviated = Event::Deviated {
        node: 2,
        client: 1,
        text: "answered".into(),
    };
    let robbed = Event::Robbed {
        node: 2,
        client: 1,
        key: 0,
        attempt: 0,
    };
    let misbehaved = Event::Misbehaved {
        client: 1,
        key: 0,
        text: "holds what it does not".into(),
    };
    let mut history = story("");
    let at = ms(5);
    let entries = [deviated, robbed, misbehaved].map(|event| Entry { at, event });
    history.entries.extend(entries);
    let want = [NodeAnswer, Robbery, ClientConduct];
    assert_eq!(kinds(&answers(&Facts::of(&history))), want);
}
