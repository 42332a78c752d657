use proptest::collection::vec;
use proptest::prelude::*;

use super::{found, judge, kind, kinds};
use crate::check::fencing::fencing;
use crate::check::violation::ViolationKind::{FencingDuplicate, FencingOrder};
use crate::history::Window;
use crate::history::tests::story;

#[test]
fn tokens_are_apart_and_rise_from_the_acquired_to_the_called() {
    let first = "0 c0 calls l0; 10 c0 acquires l0 until 11 fence 5";
    let table = "
        in order                  | 20 c0 calls l1; 30 c0 acquires l1 until 31 fence 6 |
        falling                   | 20 c0 calls l1; 30 c0 acquires l1 until 31 fence 4 | fencing-order
        called in its moment      | 10 c0 calls l1; 30 c0 acquires l1 until 31 fence 4 |
        called just after         | 11 c0 calls l1; 30 c0 acquires l1 until 31 fence 4 | fencing-order
        equal                     | 20 c0 calls l1; 30 c0 acquires l1 until 31 fence 5 | fencing-duplicate
        equal and at once         | 5 c0 calls l1; 11 c0 acquires l1 until 12 fence 5 | fencing-duplicate
        one without a token       | 20 c0 calls l1; 30 c0 acquires l1 until 31; 40 c0 calls l2; 50 c0 acquires l2 until 51 fence 6 |
        below one before the last | 8 c0 calls l1; 12 c0 acquires l1 until 13 fence 3; \
                                    20 c0 calls l2; 30 c0 acquires l2 until 31 fence 4 | fencing-order";
    judge(first, table, kind, fencing);
}

#[test]
fn a_disorder_is_told_with_both_tokens() {
    let events = "0 c0 calls l0; 10 c0 acquires l0 until 11 fence 9; 20 c0 calls l1; 30 c0 acquires l1 until 31 fence 4";
    let violations = found(events, fencing);
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
        let mut events = String::new();
        for (lock, (called, takes, token)) in locks.iter().enumerate() {
            let (from, until) = (called + takes, called + takes + 1);
            let fence = token.map_or_else(String::new, |token| format!("fence {token}"));
            events += &format!("{called} c0 calls l{lock}; {from} c0 acquires l{lock} until {until} {fence};");
        }
        let windows = story(&events).windows();
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
        let kinds = kinds(&found(&events, fencing));
        let count = |kind| kinds.iter().filter(|it| **it == kind).count();
        prop_assert_eq!((count(FencingDuplicate), count(FencingOrder)), want);
    }
}
