//! Clocks that jump, stop, run differently, or belong to another machine: none lets a lock end early.

use std::time::Duration;

use locknode::StartReason;
use locknode_tests::StoredNode;

use crate::majority::Five;
use crate::{FALLS, HOUR, MINUTE, NANO, SECOND, holding, node, settings};

const T: Duration = Duration::from_secs(30);

/// Calendar times that a wall clock may jump to, in Unix milliseconds.
const WALLS_MS: [u64; 5] = [
    0,
    1_000_000_000_000,
    1_800_000_030_001,
    1_800_003_600_000,
    9_000_000_000_000,
];

/// S17 [G12] [G16]
#[test]
fn a_wall_clock_that_jumps_ends_no_lock() {
    for wall_ms in WALLS_MS {
        let mut five = Five::first_start(&settings());
        assert!(five.acquire("k", "a", T, [0, 1, 2]));
        five.nodes[2].clock.set_wall_unix_millis(wall_ms);
        assert!(!five.acquire("k", "b", T, [2, 3, 4]), "{wall_ms}");
        five.advance(T / 2);
        assert!(!five.acquire("k", "c", T, [2, 3, 4]), "{wall_ms}");
        assert!(five.is_exclusive());
    }
}

/// S18 [G12]
#[test]
fn a_wall_clock_that_is_set_while_the_node_is_down_changes_no_wait() {
    for wall_ms in WALLS_MS {
        for how in FALLS {
            let mut lefts = [None; 2];
            for (left, sets) in lefts.iter_mut().zip([false, true]) {
                let mut node = holding(&["SET k a NX PX 30000"]);
                how(&mut node);
                if sets {
                    node.clock.set_wall_unix_millis(wall_ms);
                }
                node.advance(3 * SECOND);
                node.start();
                *left = node.quarantine_left();
            }
            assert!(lefts[0].is_some());
            assert_eq!(lefts[0], lefts[1], "{wall_ms}");
        }
    }
}

/// S18 [G10] [G12] [L2]
#[test]
fn a_wall_clock_that_is_set_while_the_node_is_down_changes_no_time_left() {
    for wall_ms in WALLS_MS {
        let mut node = holding(&["SET k a NX PX 30000", "SET long a NX PX 3600000"]);
        node.clean_stop().unwrap();
        node.clock.set_wall_unix_millis(wall_ms);
        node.advance(SECOND);
        node.start();
        node.expect("PTTL k", ":29000");
        node.expect("PTTL long", ":3599000");
        node.kill();
        node.clock.set_wall_unix_millis(0);
        node.start();
        node.wait();
        node.expect("SET long b NX PX 1", "$-1");
    }
}

/// S22 [G16]: a clock that is hastened or slowed by time synchronisation, up to what the kernel allows, beside one that
/// runs true.
#[test]
fn a_slewed_clock_ends_no_lock_early() {
    let rows = [
        ("boottime fast", 100_000, 0),
        ("boottime slow", -100_000, 0),
        ("raw fast", 0, 100_000),
        ("raw slow", 0, -100_000),
        ("apart", 100_000, -100_000),
        ("apart the other way", -100_000, 100_000),
    ];
    for (name, boottime, raw) in rows {
        // While it runs.
        let mut node = node();
        node.clock.skew(boottime, raw);
        node.expect("SET k a NX PX 30000", "+OK");
        node.advance(T);
        assert_eq!(node.reply("SET k b NX PX 30000"), "$-1", "{name}");
        // And over a crash: what was granted, and then waited for, under the slew.
        node.kill();
        let mut node = self::node();
        for before in [0, 10, 20] {
            node.expect("SET k c PX 30000", "+OK");
            node.advance(before * SECOND);
            node.clock.skew(boottime, raw);
            node.advance(3 * SECOND);
            let mut passed = (before + 3) * SECOND;
            node.restart(StoredNode::kill);
            while node.is_loading("SET k d NX PX 30000") {
                node.advance(SECOND / 10);
                passed += SECOND / 10;
            }
            let is_right = (T..=T + T / 4).contains(&passed);
            assert!(is_right, "{name} after {before} s: free after {passed:?}");
            node.clock.skew(0, 0);
            node.expect("DEL k", ":1");
        }
        // And over a clean stop.
        let mut node = holding(&["SET k a NX PX 30000"]);
        node.clean_stop().unwrap();
        node.clock.skew(boottime, raw);
        node.advance(T);
        node.start();
        assert_eq!(node.reply("SET k b NX PX 30000"), "$-1", "{name}");
        node.advance(6 * SECOND);
        assert_eq!(node.reply("SET k b NX PX 30000"), "+OK", "{name}");
    }
}

/// S22 [G16]: what one clock lost in one hour it does not win back in the next.
#[test]
fn a_clock_that_is_slow_and_then_fast_ends_no_lock_early() {
    let mut node = node();
    node.clock.skew(-80_000, 0);
    node.advance(HOUR);
    node.expect("SET k a NX PX 30000", "+OK");
    node.clock.skew(80_000, 0);
    node.advance(T);
    node.expect("SET k b NX PX 30000", "$-1");
    node.advance(NANO);
    node.expect("SET k b NX PX 30000", "+OK");
}

/// S22 S23 [G6] [G16]: the node's time fell behind both clocks since the horizon was written in terms of them, behind one while
/// the other was slow, behind that one while the machine slept.
#[test]
fn a_horizon_is_good_for_a_node_that_fell_behind_both_clocks() {
    for (slow_ms, sleep_ms, ttl_ms) in [(55_000, 20_000, 13_000), (50_000, 5_000, 17_000)] {
        let ttl = Duration::from_millis(ttl_ms);
        let mut node = holding(&["SET long a NX PX 60000"]);
        node.clock.skew(-80_000, 0);
        node.advance(Duration::from_millis(slow_ms));
        node.clock.skew(0, 0);
        node.clock.suspend(Duration::from_millis(sleep_ms));
        node.expect(&format!("SET k a NX PX {ttl_ms}"), "+OK");
        node.restart(StoredNode::kill);
        let left = node.quarantine_left().unwrap_or_default();
        assert!(left >= ttl, "{left:?} of {ttl:?}");
    }
}

/// S23 [G16]: a machine that sleeps keeps its locks for longer, never for less.
#[test]
fn a_suspended_machine_ends_no_lock_early() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    node.clock.suspend(24 * HOUR);
    node.expect("PTTL k", ":30000");
    node.advance(T);
    node.expect("SET k b NX PX 30000", "$-1");
    node.advance(NANO);
    node.expect("SET k b NX PX 30000", "+OK");
    // Slept while it was down: what ran is what counts.
    node.advance(10 * SECOND);
    node.kill();
    node.clock.suspend(24 * HOUR);
    node.start();
    assert_eq!(node.reason(), Some(StartReason::Crash));
    assert!(node.quarantine_left().unwrap() >= 20 * SECOND);
    // And in the quarantine.
    node.clock.suspend(24 * HOUR);
    assert!(node.is_loading("PING"));
    assert!(node.quarantine_left().unwrap() >= 20 * SECOND);
}

/// S23 [G10]
#[test]
fn time_slept_between_a_clean_stop_and_the_start_does_not_count() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    node.clean_stop().unwrap();
    node.clock.suspend(HOUR);
    node.advance(SECOND);
    node.start();
    node.expect("PTTL k", ":29000");
}

/// S59 [L2]: a lock on the log in another boot begins anew, in the same boot it goes on, by the slower clock.
#[test]
fn a_lock_on_the_log_never_ends_early() {
    type Move = fn(&mut StoredNode);
    type Clocks = Option<(Duration, Duration)>;
    let (second, minute) = (HOUR + SECOND, HOUR + MINUTE);
    let same_boot: Move = |_| ();
    let rows: [(&str, Move, Clocks, i64); 6] = [
        ("same boot", same_boot, Some((minute, minute)), 3_540_000),
        (
            "slow boottime",
            same_boot,
            Some((second, minute)),
            3_599_000,
        ),
        ("slow raw", same_boot, Some((minute, second)), 3_599_000),
        (
            "set back",
            same_boot,
            Some((HOUR - SECOND, HOUR)),
            3_600_000,
        ),
        ("rebooted", StoredNode::reboot, None, 3_600_000),
        ("moved", StoredNode::move_to_other_machine, None, 3_600_000),
    ];
    for (name, change, clocks, left_ms) in rows {
        let mut node = holding(&["SET k a NX PX 3600000"]);
        node.kill();
        change(&mut node);
        if let Some((boottime, raw)) = clocks {
            node.clock.set(boottime, raw);
        }
        node.start();
        // The mismatch of clocks is waited for, by max-ttl.
        let waited = node.quarantine_left().unwrap_or_default();
        node.clock.advance(waited);
        let waited_ms = i64::try_from(waited.as_nanos().div_ceil(1_000_000)).unwrap();
        let want = left_ms - waited_ms;
        let got = node.reply("PTTL k")[1..].parse::<i64>().unwrap();
        assert!((got - want).abs() <= 1, "{name}: {got}, {want}");
    }
}

/// S60 [G12]: a leap second, or the summer's hour, on the wall.
#[test]
fn a_wall_clock_that_is_smeared_decides_nothing() {
    let hour_ms = 3_600_000;
    for (ppm, jump_ms) in [(-11, 0), (11, 0), (0, -1_000), (0, hour_ms), (0, -hour_ms)] {
        let mut node = node();
        node.clock.skew_wall(ppm);
        node.expect("SET k a NX PX 30000", "+OK");
        node.advance(10 * SECOND);
        let wall_ms = 1_800_000_010_000_u64.checked_add_signed(jump_ms).unwrap();
        node.clock.set_wall_unix_millis(wall_ms);
        node.advance(20 * SECOND);
        node.expect("SET k b NX PX 30000", "$-1");
        node.expect("PTTL k", ":0");
        node.advance(NANO);
        node.expect("SET k b NX PX 30000", "+OK");
    }
}
