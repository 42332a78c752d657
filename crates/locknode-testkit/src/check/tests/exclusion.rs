use proptest::collection::vec;
use proptest::prelude::*;

use super::found;
use crate::check::continuity::continuity;
use crate::check::exclusion::exclusion;
use crate::check::expired::expired;
use crate::check::story::{Story, ms};
use crate::check::violation::{FINDINGS_MAX, ViolationKind};
use crate::fault::Crash;
use crate::history::Event;

#[test]
fn windows_that_share_a_moment_overlap_and_those_that_touch_do_not() {
    let rows = [
        ("one after the other", [(10, 20), (30, 40)], None),
        ("one begins as the other ends", [(10, 20), (20, 40)], None),
        ("a moment together", [(10, 21), (20, 40)], Some((20, 21))),
        ("one within the other", [(10, 50), (20, 40)], Some((20, 40))),
        ("the same", [(10, 50), (10, 50)], Some((10, 50))),
        ("one of no length", [(10, 50), (20, 20)], None),
    ];
    for (name, [first, second], want) in rows {
        let story = Story::new()
            .held(0, 0, first.0, first.1)
            .held(1, 1, second.0, second.1);
        let found = found(story, exclusion);
        let want: Vec<_> = want
            .into_iter()
            .map(|(from, until)| (ms(from), ms(until)))
            .collect();
        let spans: Vec<_> = found.iter().map(|it| (it.from, it.until)).collect();
        assert_eq!(spans, want, "{name}");
        assert!(
            found
                .iter()
                .all(|it| it.clients == [0, 1] && it.key == Some(0)),
            "{name}"
        );
    }
}

#[test]
fn an_overlap_is_told_with_votes_and_what_went_wrong_meanwhile() {
    let story = Story::new()
        .fault(1, "delay client 3 node 3 1ms")
        .calls(8, 0, 0)
        .votes(9, &[0, 1, 2], 0, 5009)
        .acquired(10, 0, 0, 4900, Some(7))
        .fault(100, "crash node 2 kill")
        .down(100, 2, Crash::Kill)
        .starts(200, 2, false)
        .calls(300, 1, 1)
        .votes(310, &[2, 3, 4], 1, 5310)
        .acquired(320, 1, 1, 5200, None)
        .prolonged(2000, 0, 0, 7000)
        .extended(2001, 0, 0, 6800)
        .fault(9000, "calm");
    let found = found(story, exclusion);
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
fn a_window_ends_when_the_client_lets_go_or_dies() {
    let dies = Event::ClientDown { client: 0 };
    let lost = Event::Lost {
        client: 0,
        lock: 0,
        why: "lost",
    };
    let story = || Story::new().held(0, 0, 10, 100).held(1, 1, 50, 90);
    assert_eq!(found(story(), exclusion).len(), 1);
    for story in [
        story().at(50, dies),
        story().at(50, lost),
        story().releases(50, 0, 0),
    ] {
        assert_eq!(found(story, exclusion), []);
    }
}

#[test]
fn of_many_overlaps_each_is_told_once_and_not_without_end() {
    let fan = (0..10).fold(Story::new(), |story, lock| {
        story.held(0, lock, 10 + u64::from(lock), 1000)
    });
    assert_eq!(found(fan, exclusion).len(), 9);
    let many = (0..1000).fold(Story::new(), |story, lock| {
        story.held(0, lock, 10 + u64::from(lock), 5000)
    });
    assert_eq!(found(many, exclusion).len(), FINDINGS_MAX);
}

#[test]
fn other_keys_are_other_locks() {
    let mut story = Story::new().held(0, 0, 10, 100).held(1, 1, 20, 90);
    for entry in &mut story.0.entries {
        match &mut entry.event {
            Event::Calls { lock: 1, key, .. } | Event::Acquired { lock: 1, key, .. } => *key = 1,
            _ => {}
        }
    }
    assert_eq!(found(story, exclusion), []);
}

#[test]
fn an_extension_over_a_later_holder_breaks_continuity() {
    let robbed = || {
        Story::new()
            .held(0, 0, 10, 5000)
            .held(1, 1, 1000, 3000)
            .releases(1500, 1, 1)
            .releases(4000, 0, 0)
    };
    assert_eq!(found(robbed(), continuity), [], "it was not extended");
    let before = robbed().extended(900, 0, 0, 5900);
    assert_eq!(found(before, continuity), [], "it was extended before");
    let after = robbed()
        .extended(2000, 0, 0, 7000)
        .extended(3000, 0, 0, 8000);
    let violations = found(after, continuity);
    assert_eq!(violations.len(), 1, "once for both extensions");
    assert_eq!(violations[0].from, ms(2000));
    assert_eq!(violations[0].kind, ViolationKind::Continuity);
    let too_late = robbed().extended(4500, 0, 0, 9000);
    assert_eq!(found(too_late, continuity), [], "it had been let go");
    let own = Story::new()
        .held(0, 0, 10, 5000)
        .extended(2000, 0, 0, 7000)
        .held(1, 1, 7000, 9000);
    assert_eq!(found(own, continuity), []);
}

#[test]
fn an_extension_after_the_end_breaks_continuity() {
    let held = || Story::new().held(0, 0, 10, 5000);
    let cut = |story: Story, at, until| {
        let event = Event::Validity {
            client: 0,
            lock: 0,
            valid_until: ms(until),
            is_extension: false,
        };
        story.at(at, event)
    };
    let late = |until| Some((ms(until), ms(5001)));
    let rows = [
        (
            "in the last moment",
            held().extended(5000, 0, 0, 9000),
            None,
        ),
        ("after it", held().extended(5001, 0, 0, 9000), late(5000)),
        (
            "prolonged by the clock",
            cut(held(), 4000, 5001).extended(5001, 0, 0, 9000),
            None,
        ),
        (
            "prolonged too late",
            cut(held(), 5000, 5001).extended(5001, 0, 0, 9000),
            late(5000),
        ),
        (
            "cut",
            cut(held(), 2000, 3000).extended(5001, 0, 0, 9000),
            late(3000),
        ),
        (
            "cut, and in time",
            cut(held(), 2000, 3000).extended(3000, 0, 0, 9000),
            None,
        ),
        (
            "let go",
            held().releases(4000, 0, 0).extended(5001, 0, 0, 9000),
            None,
        ),
        (
            "dead",
            held()
                .at(4000, Event::ClientDown { client: 0 })
                .extended(5001, 0, 0, 9000),
            None,
        ),
        (
            "another dead",
            held()
                .at(4000, Event::ClientDown { client: 1 })
                .extended(5001, 0, 0, 9000),
            late(5000),
        ),
    ];
    for (name, story, want) in rows {
        let found = found(story, continuity);
        let spans: Vec<_> = found.iter().map(|it| (it.from, it.until)).collect();
        assert_eq!(spans, want.into_iter().collect::<Vec<_>>(), "{name}");
        assert!(
            found
                .iter()
                .all(|it| it.clients == [0] && it.text.matches("lock 0").count() == 1)
        );
    }
}

#[test]
fn a_lock_that_is_over_is_not_handed_out() {
    for (until, want) in [(11, 0), (10, 1), (5, 1)] {
        let story = Story::new().votes(9, &[1], 0, 20).held(0, 0, 10, until);
        let found = found(story, expired);
        assert_eq!(found.len(), want, "{until}");
        assert!(
            found
                .iter()
                .all(|it| it.kind == ViolationKind::Expired && it.nodes == [1])
        );
        assert!(
            found
                .iter()
                .all(|it| it.text.contains("was over, 1ms after it was called for"))
        );
    }
}

proptest! {
    #[test]
    fn the_sweep_finds_what_all_pairs_find(
        windows in vec((0_u64..60, 0_u64..12, 0_u8..3, 0_u16..2), 0..40)
    ) {
        let mut story = Story::new();
        for (lock, (from, lasts, client, key)) in windows.iter().enumerate() {
            let lock = u32::try_from(lock).unwrap();
            story = story.held(*client, lock, 1 + from, 1 + from + lasts);
            for entry in story.0.entries.iter_mut().rev().take(2) {
                match &mut entry.event {
                    Event::Calls { key: it, .. } | Event::Acquired { key: it, .. } => *it = *key,
                    _ => {}
                }
            }
        }
        let story = story.sorted();
        let mut windows = story.0.windows();
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
        let swept: Vec<_> = found(story, exclusion)
            .iter()
            .map(|it| (it.key.unwrap(), it.from, it.until))
            .collect();
        prop_assert_eq!(swept, naive);
    }
}
