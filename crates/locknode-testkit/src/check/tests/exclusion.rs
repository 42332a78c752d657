use proptest::collection::vec;
use proptest::prelude::*;

use super::{found, judge, span};
use crate::check::continuity::continuity;
use crate::check::exclusion::exclusion;
use crate::check::expired::expired;
use crate::check::violation::{FINDINGS_MAX, ViolationKind};
use crate::history::tests::story;

#[test]
fn windows_that_share_a_moment_overlap_and_those_that_touch_do_not() {
    let table = "
        one after the other          | 10 c0 holds l0 until 20; 30 c1 holds l1 until 40 |
        one begins as the other ends | 10 c0 holds l0 until 20; 20 c1 holds l1 until 40 |
        a moment together            | 10 c0 holds l0 until 21; 20 c1 holds l1 until 40 | 20..21
        one within the other         | 10 c0 holds l0 until 50; 20 c1 holds l1 until 40 | 20..40
        the same                     | 10 c0 holds l0 until 50; 10 c1 holds l1 until 50 | 10..50
        one of no length             | 10 c0 holds l0 until 50; 20 c1 holds l1 until 20 |
        other keys are other locks   | 10 c0 holds l0 until 100; 20 c1 holds l1 k1 until 90 |
        it is lost in between        | 10 c0 holds l0 until 100; 50 c1 holds l1 until 90; 50 c0 loses l0 |
        it is let go in between      | 10 c0 holds l0 until 100; 50 c1 holds l1 until 90; 50 c0 releases l0 |
        its client dies in between   | 10 c0 holds l0 until 100; 50 c1 holds l1 until 90; 50 c0 dies |
        and another client does      | 10 c0 holds l0 until 100; 50 c1 holds l1 until 90; 50 c2 dies | 50..90";
    for (name, it) in judge("", table, span, exclusion) {
        assert!(it.clients == [0, 1] && it.key == Some(0), "{name}");
    }
}

#[test]
fn an_overlap_is_told_with_votes_and_what_went_wrong_meanwhile() {
    let events = "1 fault delay client 3 node 3 1ms
        8 c0 calls l0; 9 n0,1,2 grants a0 until 5009; 10 c0 acquires l0 until 4900 fence 7
        100 fault crash node 2 kill; 100 n2 dies; 200 n2 starts
        300 c1 calls l1; 310 n2,3,4 grants a1 until 5310; 320 c1 acquires l1 until 5200
        2000 n0 extends a0 until 7000; 2001 c0 extends l0 until 6800; 9000 fault calm";
    let found = found(events, exclusion);
    let want = "320ms..5.2s exclusion: clients 0 and 1 both held `a` for 4.88s
  lock 0 of client 0: called for at 8ms, held 10ms..6.8s, fencing token 7, extended once
    attempt 0: node 0 granted 9ms, extended 2s; node 1 granted 9ms; node 2 granted 9ms
  lock 1 of client 1: called for at 300ms, held 320ms..5.2s
    attempt 1: node 2 granted 310ms; node 3 granted 310ms; node 4 granted 310ms
  100ms: crash node 2 kill
  100ms: node 2 is down: kill
  200ms: node 2 starts: start-after-crash";
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), want);
    assert_eq!(found[0].nodes, [0, 1, 2, 3, 4]);
}

#[test]
fn of_many_overlaps_each_is_told_once_and_not_without_end() {
    for (count, want) in [(10, 9), (1000, FINDINGS_MAX)] {
        let fan = (0..count).map(|n| format!("{} c0 holds l{n} until 5000;", 10 + n));
        assert_eq!(found(&fan.collect::<String>(), exclusion).len(), want);
    }
}

#[test]
fn an_extension_over_a_later_holder_breaks_continuity() {
    let robbed = "10 c0 holds l0 until 5000; 1000 c1 holds l1 until 3000; 1500 c1 releases l1; 4000 c0 releases l0";
    let table = "
        not extended             | |
        extended before          | 900 c0 extends l0 until 5900 |
        once for both extensions | 2000 c0 extends l0 until 7000; 3000 c0 extends l0 until 8000 | 2000..2000
        it had been let go       | 4500 c0 extends l0 until 9000 |";
    for (name, it) in judge(robbed, table, span, continuity) {
        assert_eq!(it.kind, ViolationKind::Continuity, "{name}");
    }
    let own =
        "10 c0 holds l0 until 5000; 2000 c0 extends l0 until 7000; 7000 c1 holds l1 until 9000";
    assert_eq!(found(own, continuity), []);
}

#[test]
fn an_extension_after_the_end_breaks_continuity() {
    let table = "
        in the last moment     | 5000 c0 extends l0 until 9000 |
        after it               | 5001 c0 extends l0 until 9000 | 5000..5001
        prolonged by the clock | 4000 c0 revalidates l0 until 5001; 5001 c0 extends l0 until 9000 |
        prolonged too late     | 5000 c0 revalidates l0 until 5001; 5001 c0 extends l0 until 9000 | 5000..5001
        cut                    | 2000 c0 revalidates l0 until 3000; 5001 c0 extends l0 until 9000 | 3000..5001
        cut, and in time       | 2000 c0 revalidates l0 until 3000; 3000 c0 extends l0 until 9000 |
        let go                 | 4000 c0 releases l0; 5001 c0 extends l0 until 9000 |
        dead                   | 4000 c0 dies; 5001 c0 extends l0 until 9000 |
        another dead           | 4000 c1 dies; 5001 c0 extends l0 until 9000 | 5000..5001";
    for (name, it) in judge("10 c0 holds l0 until 5000", table, span, continuity) {
        assert_eq!(it.clients, [0], "{name}");
        assert_eq!(it.text.matches("lock 0").count(), 1, "{name}");
    }
}

#[test]
fn a_lock_that_is_over_is_not_handed_out() {
    let table = "
        a moment before its end | 10 c0 holds l0 until 11 |
        at its end              | 10 c0 holds l0 until 10 | 10..10
        after it                | 10 c0 holds l0 until 5 | 10..10";
    for (name, it) in judge("9 n1 grants a0 until 20", table, span, expired) {
        assert!(
            it.kind == ViolationKind::Expired && it.nodes == [1],
            "{name}"
        );
        let text = "was over, 1ms after it was called for";
        assert!(it.text.contains(text), "{name}");
    }
}

proptest! {
    #[test]
    fn the_sweep_finds_what_all_pairs_find(
        windows in vec((0_u64..60, 0_u64..12, 0_u8..3, 0_u16..2), 0..40)
    ) {
        let sentence = |(lock, (from, lasts, client, key)): (usize, &(u64, u64, u8, u16))| {
            format!("{} c{client} holds l{lock} k{key} until {};", 1 + from, 1 + from + lasts)
        };
        let events: String = windows.iter().enumerate().map(sentence).collect();
        let mut windows = story(&events).windows();
        windows.sort_by_key(|window| (window.key, window.from));
        let mut naive = Vec::new();
        for (place, later) in windows.iter().enumerate() {
            let overlaps = windows[..place].iter().filter(|earlier| {
                earlier.key == later.key
                    && earlier.from.max(later.from) < earlier.until.min(later.until)
            });
            // Its overlap with the one of them that lasts longest.
            let until = overlaps.map(|earlier| earlier.until.min(later.until)).max();
            naive.extend(until.map(|until| (later.key, later.from, until)));
        }
        let swept: Vec<_> = found(&events, exclusion)
            .iter()
            .map(|it| (it.key.unwrap(), it.from, it.until))
            .collect();
        prop_assert_eq!(swept, naive);
    }
}
