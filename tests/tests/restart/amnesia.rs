//! A node that forgot its locks takes part in none that it may have granted: the restart guard, scenario by scenario.

use std::time::Duration;

use locknode::StartReason;
use locknode_tests::{Answer, NodeSettings, StoredNode};

use crate::majority::Five;
use crate::{FALLS, HOUR, MINUTE, NANO, SECOND, always, holding, node, node_with, settings, stop};

const T: Duration = Duration::from_secs(30);

/// S01 [G1] [G2]
#[test]
fn a_node_that_crashed_does_not_give_its_vote_away_twice() {
    let mut five = Five::first_start(&settings());
    assert!(five.acquire("k", "a", T, [0, 1, 2]));
    five.nodes[2].restart(StoredNode::kill);
    // With a node that forgot.
    assert!(!five.acquire("k", "b", T, [2, 3, 4]));
    assert!(five.nodes[2].is_loading("PING"));
    // The last client's votes end too, and the node comes back.
    five.advance(2 * T);
    assert!(five.acquire("k", "c", T, [2, 3, 4]));
    assert!(five.is_exclusive());
}

/// S02 [G2] [G3] [G5]
#[test]
fn the_quarantine_is_not_short_by_a_nanosecond() {
    // The full wait, of a lock that was granted at the last moment, and the instant after it.
    for (ttl_ms, wait) in [
        (30_000, Duration::from_millis(30_302)),
        // What is written down is the next power of two.
        (1_000, Duration::from_micros(1_024_000 + 10_240 + 2_000)),
    ] {
        let mut node = node_with(|it| it.max_ttl = T);
        node.expect(&format!("SET k a NX PX {ttl_ms}"), "+OK");
        node.restart(StoredNode::reboot);
        assert_eq!(node.reason(), Some(StartReason::Reboot));
        node.advance(wait);
        assert_eq!(
            node.reply("SET k b NX PX 1000"),
            "-LOADING locknode is in its restart quarantine, 1 ms left",
            "{ttl_ms}: at the wait's last nanosecond"
        );
        assert!(node.is_loading("PING"));
        node.advance(NANO);
        assert_eq!(node.reply("SET k b NX PX 1000"), "+OK", "{ttl_ms}");
        node.expect("PING", "+PONG");
    }
}

/// S02 [G6]: the horizon is no earlier than the lock's end, which is that of its last nanosecond.
#[test]
fn after_a_crash_in_the_same_boot_nothing_is_granted_up_to_the_deadline() {
    let rows = [
        (0, 1),
        (1, 1),
        (7, 10),
        (10, 30),
        (29, 30),
        (30, 30),
        (40, 60),
    ];
    for (idle, ttl) in rows {
        let (idle, ttl) = (idle * SECOND, ttl * SECOND);
        let mut node = holding(&[&format!("SET k a NX PX {}", ttl.as_millis())]);
        node.advance(idle);
        node.restart(StoredNode::kill);
        assert_eq!(node.reason(), Some(StartReason::Crash));
        let mut waited = Duration::ZERO;
        if let Some(left) = node.quarantine_left() {
            node.advance(left - NANO);
            assert!(node.is_loading("SET k b NX PX 1000"));
            node.advance(NANO);
            waited = left;
        }
        node.expect("SET k b NX PX 1000", "+OK");
        assert!(idle + waited > ttl, "{idle:?} {ttl:?}: {waited:?}");
        // And not much later: a sixteenth, a second at least, and the lead.
        let most = ttl.saturating_sub(idle) + (ttl / 16).max(SECOND) * 5 / 4 + NANO;
        assert!(waited <= most, "{waited:?}");
    }
}

/// S02 [G6] [G8]: many grants within one written horizon.
#[test]
fn a_grant_that_needed_no_write_is_waited_for_too() {
    let mut node = node();
    let mut end = Duration::ZERO;
    let mut now = Duration::ZERO;
    for index in 0_u32..200 {
        let ttl = Duration::from_millis(u64::from(100 + index * 7919 % 5000));
        let request = format!("SET k{index} a NX PX {}", ttl.as_millis());
        node.expect(&request, "+OK");
        end = end.max(now + ttl);
        node.advance(37 * Duration::from_millis(1));
        now += 37 * Duration::from_millis(1);
    }
    node.restart(StoredNode::kill);
    let left = node.quarantine_left().unwrap();
    assert!(now + left > end, "{left:?} after {now:?}, {end:?}");
}

/// S03 S04 [G1] [G6]
#[test]
fn a_vote_from_before_the_crash_counts_to_its_end() {
    for reply_is_lost in [true, false] {
        let mut five = Five::first_start(&settings());
        let mut attempt = five.attempt("k", "a", T);
        five.ask(0, &mut attempt);
        five.ask(1, &mut attempt);
        if reply_is_lost {
            five.nodes[2].hold_disk();
            assert!(!five.ask(2, &mut attempt), "it is not durable");
        } else {
            assert!(five.ask(2, &mut attempt));
        }
        five.nodes[2].restart(StoredNode::kill);
        // With two votes the client gives up, and what it holds is released or ends.
        assert_eq!(five.conclude(&attempt), !reply_is_lost);
        five.advance(T / 2);
        // Where nothing was granted, nothing is waited for.
        assert_eq!(five.acquire("k", "b", T, [2, 3, 4]), reply_is_lost);
        assert!(five.is_exclusive());
    }
}

/// S03 [G6]: a lock whose reply was held back dies with the crash.
#[test]
fn a_grant_that_was_never_told_leaves_no_wait() {
    let mut node = node();
    node.hold_disk();
    let ticket = node.expect_withheld("SET k a NX PX 30000");
    assert_eq!(node.take_late(), []);
    node.kill();
    assert_eq!(node.take_late(), [(ticket, Answer::Lost)]);
    node.start();
    assert_eq!(node.quarantine_left(), None);
    node.expect("SET k b NX PX 30000", "+OK");
}

/// S06 [G1] [G3]
#[test]
fn when_a_majority_crashes_the_lock_is_free_again_after_the_wait_and_not_before() {
    for max_ttl in [MINUTE, 10 * SECOND] {
        for how in FALLS {
            let ttl = max_ttl;
            let mut five = Five::first_start(&NodeSettings {
                max_ttl,
                ..settings()
            });
            assert!(five.acquire("k", "a", ttl, 0..5));
            for node in &mut five.nodes[..3] {
                node.restart(how);
            }
            let wait = five.nodes[0].quarantine_left().unwrap();
            assert!(wait > ttl && wait <= ttl + ttl / 100 + Duration::from_millis(2) + NANO);
            // A client that tries again and again.
            let step = ttl / 20;
            for attempt in 0..20 {
                let token = format!("b{attempt}");
                assert!(!five.acquire("k", &token, SECOND / 10, 0..5), "{attempt}");
                five.advance(step);
            }
            five.advance(wait - ttl);
            assert!(five.acquire("k", "c", ttl, 0..5), "nobody is locked out");
            assert!(five.is_exclusive());
        }
    }
}

/// S06 [G9]: a node that crashes again and again waits for no less, and for no more than once.
#[test]
fn a_crash_loop_ends() {
    for how in FALLS {
        let mut node = holding(&["SET k a NX PX 30000"]);
        how(&mut node);
        let mut waited = Duration::ZERO;
        node.start();
        let full = node.quarantine_left().unwrap();
        for _ in 0..5 {
            node.advance(5 * SECOND);
            waited += 5 * SECOND;
            assert!(node.is_loading("SET k b NX PX 30000"));
            // In the same boot the time that was waited counts.
            node.restart(StoredNode::kill);
        }
        let left = node.quarantine_left().unwrap();
        assert_eq!(waited + left, full);
        node.advance(left);
        node.expect("SET k b NX PX 30000", "+OK");
    }
}

/// S06 [G9]: in another boot nothing that was waited counts.
#[test]
fn a_reboot_in_the_quarantine_begins_it_anew() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    for _ in 0..3 {
        node.restart(StoredNode::reboot);
        assert!(node.quarantine_left().unwrap() > T);
        node.advance(T);
    }
    node.advance(5 * SECOND);
    node.expect("SET k b NX PX 30000", "+OK");
}

/// S07 [G5] [G9]
#[test]
fn a_lowered_max_ttl_shortens_no_wait() {
    for how in [
        StoredNode::kill,
        StoredNode::reboot,
        StoredNode::move_to_other_machine,
    ] {
        let mut node = holding(&["SET k a NX PX 60000"]);
        node.settings.max_ttl = 10 * SECOND;
        how(&mut node);
        // Twice: the second time nothing in the configuration tells of the minute.
        for _ in 0..2 {
            node.start();
            assert!(node.quarantine_left().unwrap() > MINUTE);
            how(&mut node);
        }
        node.start();
        node.advance(MINUTE);
        assert!(node.is_loading("SET k b NX PX 1000"));
        node.advance(SECOND);
        node.expect("SET k b NX PX 1000", "+OK");
    }
}

/// S07 [G5]: the TTL in use falls when the longer locks have ended, and not before.
#[test]
fn the_wait_follows_the_ttls_that_are_used() {
    let mut node = node();
    let mut now = Duration::ZERO;
    node.expect("SET long a NX PX 60000", "+OK");
    while now < 200 * SECOND {
        node.advance(SECOND);
        now += SECOND;
        node.expect("SET k a PX 2000", "+OK");
        let ttl_in_use = node.guard().ttl_in_use;
        assert!(
            now > MINUTE || ttl_in_use == MINUTE,
            "{now:?}: {ttl_in_use:?}"
        );
    }
    assert_eq!(node.guard().ttl_in_use, Duration::from_millis(2048));
    node.restart(StoredNode::reboot);
    assert!(node.quarantine_left().unwrap() < 3 * SECOND);
}

/// S07 [G5]: a lock that was granted at the end of one epoch is alive in the next.
#[test]
fn the_ttl_in_use_is_no_less_than_that_of_any_lock_alive() {
    for phase in 20..75 {
        let mut node = holding(&["SET first a NX PX 60000"]);
        for second in 1..160 {
            node.advance(SECOND);
            node.expect("SET k a PX 30000", "+OK");
            if second == phase {
                node.expect("SET second a NX PX 60000", "+OK");
            }
            if second <= 60 || (phase..=phase + 60).contains(&second) {
                assert_eq!(node.guard().ttl_in_use, MINUTE, "{phase}: at {second}");
            }
        }
    }
}

/// S07 [G5]: and so is one that needed no write of its own, since it ends within the horizon.
#[test]
fn a_ttl_within_the_horizon_is_in_use_too() {
    let mut node = node();
    let horizon = |node: &StoredNode| node.durable().horizon;
    // Locks of a minute until the horizon is raised after the first of them has ended: that is when an epoch begins.
    let mut now = Duration::ZERO;
    loop {
        let before = horizon(&node);
        node.expect("SET k a PX 60000", "+OK");
        if now > MINUTE && horizon(&node) > before {
            break;
        }
        node.advance(SECOND);
        now += SECOND;
    }
    let before = horizon(&node);
    for _ in 0..37 {
        node.advance(SECOND / 10);
        node.expect("SET late a PX 59000", "+OK");
    }
    assert_eq!(horizon(&node), before, "none of them needed a write");
    for tenth in 1..=590 {
        node.advance(SECOND / 10);
        node.expect("SET short a PX 3500", "+OK");
        let ttl_in_use = node.guard().ttl_in_use;
        assert!(ttl_in_use >= 59 * SECOND, "{ttl_in_use:?} after {tenth}");
    }
    assert!(horizon(&node) > before);
}

/// S07 [G5]: a longer TTL waits for its write, also where the horizon is far enough.
#[test]
fn a_ttl_is_told_only_when_it_is_durable() {
    let mut node = holding(&["SET k a NX PX 1000"]);
    node.hold_disk();
    let ticket = node.expect_withheld("SET j a NX PX 1500");
    node.release_disk();
    let ok = Answer::Reply("+OK".to_owned());
    assert_eq!(node.take_late(), [(ticket, ok)]);
    node.restart(StoredNode::reboot);
    assert!(node.quarantine_left().unwrap() > Duration::from_millis(1500));
}

/// S08 [L1] [L2]
#[test]
fn a_lock_beyond_max_ttl_is_on_the_log_or_refused() {
    let mut node = holding(&["SET hour a NX PX 3600000", "SET ever a NX"]);
    node.advance(SECOND);
    for how in FALLS {
        node.restart(how);
        assert_eq!(node.quarantine_left(), None, "nothing rides on the guard");
        node.expect("SET hour b NX PX 1", "$-1");
        node.expect("SET ever b NX", "$-1");
    }
    node.advance(HOUR + SECOND);
    node.expect("SET ever b NX", "$-1");
    node.expect("SET hour b NX PX 3600000", "+OK");
}

/// S09 [G11]
#[test]
fn a_clean_marker_serves_once() {
    for how in FALLS {
        let mut node = holding(&["SET old a NX PX 30000"]);
        node.restart(stop);
        assert_eq!(node.reason(), Some(StartReason::CleanStop));
        node.expect("SET k a NX PX 30000", "+OK");
        node.restart(how);
        assert_ne!(node.reason(), Some(StartReason::CleanStop));
        assert!(node.is_loading("SET k b NX PX 30000"));
        assert!(node.quarantine_left().unwrap() > T);
    }
}

/// S10 [G10]
#[test]
fn after_a_clean_stop_locks_have_the_time_that_they_had_left() {
    type Row = (&'static str, fn(&mut StoredNode), Duration, i64);
    let rows: [Row; 5] = [
        ("same boot", |_| (), 10 * SECOND, 20_000),
        ("same boot, a day later", |_| (), 24 * HOUR, -2),
        ("rebooted", StoredNode::reboot, 10 * SECOND, 30_000),
        (
            "rebooted, a day later",
            StoredNode::reboot,
            24 * HOUR,
            30_000,
        ),
        (
            "moved",
            StoredNode::move_to_other_machine,
            10 * SECOND,
            30_000,
        ),
    ];
    for (name, how, down, left_ms) in rows {
        let mut node = holding(&["SET k a NX PX 30000", "SET ever a NX"]);
        node.clean_stop().unwrap();
        node.advance(down);
        node.restart(how);
        assert_eq!(node.reason(), Some(StartReason::CleanStop), "{name}");
        assert_eq!(node.quarantine_left(), None, "{name}");
        assert_eq!(node.reply("PTTL k"), format!(":{left_ms}"), "{name}");
        assert_eq!(node.reply("PTTL ever"), ":-1", "{name}");
        // They are an obligation of the new run from its first moment on.
        how(&mut node);
        node.restart(StoredNode::kill);
        let waits = node.quarantine_left().unwrap_or_default();
        let least = Duration::from_millis(left_ms.max(0).unsigned_abs());
        assert!(waits >= least, "{name}: {waits:?}");
    }
}

/// S10 [G9] [G10]
#[test]
fn a_clean_stop_within_the_quarantine_is_none() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    node.restart(StoredNode::reboot);
    node.advance(SECOND);
    let left = node.quarantine_left().unwrap();
    node.restart(stop);
    assert_eq!(node.quarantine_left(), Some(left));
    node.advance(left - NANO);
    node.restart(stop);
    assert!(node.is_loading("SET k b NX PX 30000"));
}

/// [G10]: what is granted while the node ends would be missing in the snapshot.
#[test]
fn a_node_that_ends_grants_nothing_more() {
    let mut node = holding(&["SET k a NX PX 30000", "SET ever a NX"]);
    node.close();
    for request in [
        "SET j a NX PX 1",
        "SET j a NX",
        "LOCK.ACQUIRE j a 1",
        "LOCK.EXTEND k a 60000",
        "PERSIST k",
    ] {
        let reply = "-LOADING locknode is shutting down: use the other nodes until it is back";
        node.expect(request, reply);
    }
    node.restart(stop);
    node.expect("PTTL k", ":30000");
    node.expect("EXISTS ever j", ":1");
}

/// [G10]: without the snapshot there is no marker.
#[test]
fn a_clean_stop_that_fails_is_a_crash() {
    for fails in 0..6 {
        let mut node = holding(&["SET k a NX PX 30000"]);
        node.disk.fail_sync(fails);
        let has_stopped = node.clean_stop().is_ok();
        node.restart(|it| it.power_loss(fails));
        if has_stopped {
            node.expect("SET k b NX PX 1", "$-1");
            assert!(fails > 2, "{fails}: it syncs more often");
        } else if !node.is_loading("SET k b NX PX 30000") {
            node.expect("SET k b NX PX 1", "$-1");
        }
    }
}

/// S13 [G3] [G4] [F4]
#[test]
fn a_lost_disk_looks_like_a_first_start_and_waits_in_full() {
    let mut five = Five::first_start(&settings());
    assert!(five.acquire("k", "a", T, [0, 1, 2]));
    let told_before = crate::fence(&five.nodes[2].reply("LOCK.ACQUIRE f a 1000"));
    // Time outruns the counters from the first second on.
    five.advance(SECOND);
    five.nodes[2].kill();
    five.nodes[2].disk.erase();
    five.nodes[2].start();
    assert_eq!(five.nodes[2].reason(), Some(StartReason::Empty));
    let wait_of_max_ttl = Duration::from_millis(60_602) + NANO;
    assert_eq!(five.nodes[2].quarantine_left(), Some(wait_of_max_ttl));
    assert!(!five.acquire("k", "b", T, [2, 3, 4]));
    five.advance(wait_of_max_ttl);
    assert!(five.acquire("k", "c", T, [2, 3, 4]));
    assert!(five.is_exclusive());
    let told_after = crate::fence(&five.nodes[2].reply("LOCK.ACQUIRE f b 1000"));
    assert!(told_after > told_before, "{told_after} after {told_before}");
}

/// [L1] S08: with every lock on the log no crash needs a wait.
#[test]
fn with_every_lock_on_the_log_no_crash_needs_a_wait() {
    let mut node = StoredNode::first_start(always());
    node.expect("SET k a NX PX 30000", "+OK");
    node.advance(10 * SECOND);
    for (how, left) in FALLS.into_iter().zip([":20000", ":30000"]) {
        node.restart(how);
        assert_eq!(node.reason(), Some(StartReason::Logged));
        assert_eq!(node.quarantine_left(), None);
        node.expect("SET k b NX PX 30000", "$-1");
        node.expect("PTTL k", left);
    }
}
