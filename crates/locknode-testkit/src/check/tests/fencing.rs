use proptest::collection::vec;
use proptest::prelude::*;

use super::{found, kinds};
use crate::check::fencing::fencing;
use crate::check::story::Story;
use crate::check::violation::ViolationKind::{FencingDuplicate, FencingOrder};
use crate::history::Window;

type Locks<'a> = &'a [(u64, u64, Option<u64>)];

fn story(locks: Locks<'_>) -> Story {
    let mut story = Story::new();
    for (lock, (called, from, token)) in locks.iter().enumerate() {
        let lock = u32::try_from(lock).unwrap();
        story = story
            .calls(*called, 0, lock)
            .acquired(*from, 0, lock, from + 1, *token);
    }
    story
}

#[test]
fn tokens_are_apart_and_rise_from_the_acquired_to_the_called() {
    let rows: [(&str, Locks<'_>, &[_]); 8] = [
        ("in order", &[(0, 10, Some(1)), (20, 30, Some(2))], &[]),
        (
            "falling",
            &[(0, 10, Some(2)), (20, 30, Some(1))],
            &[FencingOrder],
        ),
        (
            "called in the moment of the other",
            &[(0, 10, Some(2)), (10, 30, Some(1))],
            &[],
        ),
        (
            "called just after",
            &[(0, 10, Some(2)), (11, 30, Some(1))],
            &[FencingOrder],
        ),
        (
            "equal",
            &[(0, 10, Some(2)), (20, 30, Some(2))],
            &[FencingDuplicate],
        ),
        (
            "equal and at once",
            &[(0, 10, Some(2)), (5, 11, Some(2))],
            &[FencingDuplicate],
        ),
        (
            "without a token",
            &[(0, 10, Some(2)), (20, 30, None), (40, 50, Some(3))],
            &[],
        ),
        (
            "below one before the last",
            &[(0, 10, Some(5)), (8, 12, Some(3)), (20, 30, Some(4))],
            &[FencingOrder],
        ),
    ];
    for (name, locks, want) in rows {
        let violations = found(story(locks), fencing);
        assert_eq!(kinds(&violations), want, "{name}");
    }
}

#[test]
fn a_disorder_is_told_with_both_tokens() {
    let violations = found(story(&[(0, 10, Some(9)), (20, 30, Some(4))]), fencing);
    let text = "30ms fencing-order: a lock of `a` has the fencing token 4, one that was held before it was called for has 9
  lock 0 of client 0: called for at 0s, held 10ms..11ms, fencing token 9
    attempt 0: no node granted it
  lock 1 of client 0: called for at 20ms, held 30ms..31ms, fencing token 4
    attempt 1: no node granted it";
    assert_eq!(violations[0].to_string(), text);
}

proptest! {
    #[test]
    fn the_sweep_finds_what_all_pairs_find(
        locks in vec((0_u64..60, 0_u64..12, proptest::option::of(0_u64..12)), 0..30)
    ) {
        let locks: Vec<_> =
            locks.into_iter().map(|(called, takes, token)| (called, called + takes, token)).collect();
        let story = story(&locks).sorted();
        let windows = story.0.windows();
        let others = |later: &Window, is_it: &dyn Fn(&Window) -> bool| {
            windows.iter().any(|other| other.lock != later.lock && other.fencing.is_some() && is_it(other))
        };
        let disorders = windows.iter().filter(|later| later.fencing.is_some()).filter(|later| {
            others(later, &|other| other.from < later.called && other.fencing > later.fencing)
        });
        let mut tokens: Vec<_> = windows.iter().filter_map(|window| window.fencing).collect();
        let all = tokens.len();
        tokens.sort_unstable();
        tokens.dedup();
        let want = (all - tokens.len(), disorders.count());
        let kinds = kinds(&found(story, fencing));
        let count = |kind| kinds.iter().filter(|it| **it == kind).count();
        prop_assert_eq!((count(FencingDuplicate), count(FencingOrder)), want);
    }
}
