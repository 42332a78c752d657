//! Each rule by a history written by hand, with its boundaries; and the sweeps against all pairs.

mod exclusion;
mod expectation;
mod fencing;
mod liveness;
mod node;
mod told;
mod votes;
mod writes;

use std::time::Duration;

use crate::check::facts::Facts;
use crate::check::story::Story;
use crate::check::violation::{Violation, ViolationKind};
use crate::check::{check, check_all};
use crate::fault::{Crash, Fault};
use crate::history::{Event, Window};
use crate::scenario::{Guarding, Scenario, Setup};

/// What a checker says of a history.
fn found(story: Story, checker: impl Fn(&Facts<'_>) -> Vec<Violation>) -> Vec<Violation> {
    let story = story.sorted();
    checker(&Facts::of(&story.0))
}

fn kinds(violations: &[Violation]) -> Vec<ViolationKind> {
    violations.iter().map(|violation| violation.kind).collect()
}

#[test]
fn only_what_is_promised_is_a_violation_of_a_scenario() {
    let story = || {
        Story::new()
            .calls(0, 0, 0)
            .calls(0, 1, 1)
            .votes(5, &[0, 1, 2], 0, 1000)
            .votes(5, &[3, 4], 1, 1000)
            .granted(6, 2, 1, 1000)
            .acquired(10, 0, 0, 900, Some(2))
            .acquired(20, 1, 1, 900, Some(2))
            .sorted()
    };
    let guarded = Scenario::new(Setup::default());
    use ViolationKind::{Exclusion, FencingDuplicate, Majority};
    // Node 2 let one lock go for the other.
    let all = kinds(&check_all(&story().0, &guarded));
    assert_eq!(all, [Majority, Exclusion, FencingDuplicate]);
    assert_eq!(kinds(&check(&story().0, &guarded)), all);
    let unguarded = Scenario::new(Setup {
        guard: Guarding::Off,
        ..Setup::default()
    })
    .at(Duration::from_secs(1), Fault::Crash(2, Crash::Kill));
    assert_eq!(kinds(&check(&story().0, &unguarded)), [FencingDuplicate]);
    let lost = story().down(7, 0, Crash::Kill).starts(7, 0, false).sorted();
    let all = [Majority, Exclusion, FencingDuplicate];
    assert_eq!(kinds(&check_all(&lost.0, &guarded)), all);
    assert_eq!(kinds(&check(&lost.0, &unguarded)), [FencingDuplicate]);
}

#[test]
fn a_hundred_thousand_windows_are_looked_through_at_once() {
    let mut story = Story::new();
    for lock in 0..100_000 {
        let from = u64::from(lock) * 10;
        story = story
            .calls(from, 0, lock)
            .votes(from + 1, &[0, 1, 2], lock, from + 9)
            .acquired(from + 2, 0, lock, from + 9, Some(u64::from(lock) + 1))
            .wrote(from + 3, lock, Some(u64::from(lock) + 1), true);
    }
    story.0.end = crate::check::story::ms(1_000_000);
    let scenario = Scenario::new(Setup {
        liveness_from: Some(crate::SimTime::ZERO),
        ..Setup::default()
    });
    assert_eq!(check(&story.0, &scenario), []);
}

/// Neither is what clients leave behind when they die.
#[test]
fn a_hundred_thousand_deaths_are_looked_through_at_once() {
    let mut story = Story::new();
    for lock in 0..100_000 {
        let from = u64::from(lock) * 10;
        story = story
            .calls(from, 0, lock)
            .votes(from + 1, &[0, 1, 2], lock, from + 9)
            .acquired(from + 2, 0, lock, from + 9, None)
            .at(from + 3, Event::ClientDown { client: 0 });
    }
    story.0.end = crate::check::story::ms(1_000_000);
    let windows = story.0.windows();
    let is_cut = |it: &Window| it.until.since(it.from) == Duration::from_millis(1);
    assert!(windows.len() == 100_000 && windows.iter().all(is_cut));
    let scenario = Scenario::new(Setup {
        liveness_from: Some(crate::SimTime::ZERO),
        ..Setup::default()
    });
    assert_eq!(check(&story.0, &scenario), []);
}
