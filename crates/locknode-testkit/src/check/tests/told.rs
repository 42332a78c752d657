//! What is told to holders too late, what nodes answer, and what reads bind a node to.

use std::time::Duration;

use super::{found, kinds};
use crate::check::answers::answers;
use crate::check::late::late;
use crate::check::node::nodes;
use crate::check::story::{Story, ms};
use crate::check::tolerance::Tolerance;
use crate::check::violation::ViolationKind::{
    self, ClientConduct, LateLoss, NodeAnswer, NodeGrant, Robbery,
};
use crate::fault::{Crash, Fault, Who};
use crate::history::Event;
use crate::scenario::{Scenario, Setup};

fn told(name: &str, story: Story, scenario: &Scenario, want: &[ViolationKind]) {
    let violations = found(story, |facts| late(facts, scenario));
    assert_eq!(kinds(&violations), want, "{name}");
}

#[test]
fn the_end_of_a_lock_is_told_before_it() {
    let scenario = Scenario::new(Setup::default());
    let noisy = Scenario::new(Setup::default()).at(
        Duration::ZERO,
        Fault::Noise(Who::Client(0), Duration::from_millis(1)),
    );
    let held = || Story::new().held(0, 0, 10, 900);
    told("in time", held().lost(900, 0, 0), &scenario, &[]);
    told("late", held().lost(901, 0, 0), &scenario, &[LateLoss]);
    told("a noisy clock", held().lost(901, 0, 0), &noisy, &[]);
    told(
        "released late",
        held().releases(901, 0, 0),
        &scenario,
        &[LateLoss],
    );
    told("never", held(), &scenario, &[LateLoss]);
    told(
        "extended",
        held().extended(800, 0, 0, 1_700).lost(1_690, 0, 0),
        &scenario,
        &[],
    );
    let stopped = |from, until| held().stopped(from, Who::Client(0), until);
    told(
        "it stood still",
        stopped(890, 1_200).lost(1_200, 0, 0),
        &scenario,
        &[],
    );
    told(
        "and longer",
        stopped(890, 1_200).lost(1_201, 0, 0),
        &scenario,
        &[LateLoss],
    );
    told(
        "too late for that",
        stopped(901, 1_200).lost(1_200, 0, 0),
        &scenario,
        &[LateLoss],
    );
    told(
        "it died",
        held().at(899, Event::ClientDown { client: 0 }),
        &scenario,
        &[],
    );
}

#[test]
fn what_a_read_tells_binds_the_node_as_a_grant_does() {
    let exact = Tolerance {
        ppm: 0,
        constant: Duration::from_millis(1),
    };
    let shown = |ends| Event::Shown {
        node: 2,
        client: 1,
        key: 0,
        attempt: 0,
        ends: ms(ends),
    };
    let story = |event: Option<Event>| {
        let mut story = Story::new().granted(5, 2, 0, 1_000);
        if let Some(event) = event {
            story = story.at(6, event);
        }
        story
            .down(7, 2, Crash::Kill)
            .starts(8, 2, false)
            .granted(600, 2, 1, 1_600)
    };
    let judge = |event| kinds(&found(story(event), |facts| nodes(facts, |_| exact)));
    assert_eq!(judge(None), [], "nobody knew of it");
    assert_eq!(judge(Some(shown(1_000))), [NodeGrant]);
    assert_eq!(judge(Some(shown(500))), [], "no longer than it was shown");
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
    let story = Story::new().at(5, deviated).at(6, robbed);
    let story = story.at(7, misbehaved);
    let want = [NodeAnswer, Robbery, ClientConduct];
    assert_eq!(kinds(&found(story, answers)), want);
}
