//! Clocks that jump, stop, run differently, or belong to another machine: none lets a lock end early.

use std::time::Duration;

use locknode::{Machine, StartReason};
use locknode_tests::StoredNode;

use crate::majority::Five;
use crate::{HOUR, MINUTE, NANO, SECOND, loading, node, settings, told};

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
        five.nodes[2].clock().set_wall_unix_millis(wall_ms);
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
        for how in [StoredNode::kill, StoredNode::reboot] {
            let mut lefts = [None; 2];
            for (left, sets) in lefts.iter_mut().zip([false, true]) {
                let mut node = node();
                assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
                how(&mut node);
                if sets {
                    node.clock().set_wall_unix_millis(wall_ms);
                }
                node.advance(3 * SECOND);
                node.start().unwrap();
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
        let mut node = node();
        assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
        assert_eq!(told(&mut node, "SET long a NX PX 3600000"), "+OK");
        node.clean_stop().unwrap();
        node.clock().set_wall_unix_millis(wall_ms);
        node.advance(SECOND);
        node.start().unwrap();
        assert_eq!(told(&mut node, "PTTL k"), ":29000");
        assert_eq!(told(&mut node, "PTTL long"), ":3599000");
        node.kill();
        node.clock().set_wall_unix_millis(0);
        node.start().unwrap();
        node.advance(node.quarantine_left().unwrap());
        assert_eq!(told(&mut node, "SET long b NX PX 1"), "$-1");
    }
}

/// S22 [G16]: a clock that is hastened or slowed by time synchronisation, up to what the kernel allows, beside one that
/// runs true.
#[test]
fn a_slewed_clock_ends_no_lock_early() {
    type Skew = fn(&StoredNode);
    let rows: [(&str, Skew); 6] = [
        ("boottime fast", |node| node.clock().skew_boottime(100_000)),
        ("boottime slow", |node| node.clock().skew_boottime(-100_000)),
        ("raw fast", |node| node.clock().skew_raw(100_000)),
        ("raw slow", |node| node.clock().skew_raw(-100_000)),
        ("apart", |node| {
            node.clock().skew_raw(-100_000);
            node.clock().skew_boottime(100_000);
        }),
        ("apart the other way", |node| {
            node.clock().skew_raw(100_000);
            node.clock().skew_boottime(-100_000);
        }),
    ];
    for (name, skew) in rows {
        // While it runs.
        let mut node = node();
        skew(&node);
        assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
        node.advance(T);
        assert_eq!(told(&mut node, "SET k b NX PX 30000"), "$-1", "{name}");
        // And over a crash: what was granted, and then waited for, under the slew.
        node.kill();
        let mut node = self::node();
        for before in [0, 10, 20] {
            let mut passed = Duration::ZERO;
            assert_eq!(told(&mut node, "SET k c PX 30000"), "+OK");
            node.advance(before * SECOND);
            passed += before * SECOND;
            skew(&node);
            node.advance(3 * SECOND);
            passed += 3 * SECOND;
            node.kill();
            node.start().unwrap();
            while loading(&mut node, "SET k d NX PX 30000") {
                node.advance(SECOND / 10);
                passed += SECOND / 10;
            }
            assert!(
                passed >= T,
                "{name} after {before} s: free after {passed:?}"
            );
            assert!(passed <= T + T / 4, "{name} after {before} s: {passed:?}");
            node.clock().skew_raw(0);
            node.clock().skew_boottime(0);
            assert_eq!(told(&mut node, "DEL k"), ":1");
        }
        // And over a clean stop.
        let mut node = self::node();
        assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
        node.clean_stop().unwrap();
        skew(&node);
        node.advance(T);
        node.start().unwrap();
        assert_eq!(told(&mut node, "SET k b NX PX 30000"), "$-1", "{name}");
        node.advance(6 * SECOND);
        assert_eq!(told(&mut node, "SET k b NX PX 30000"), "+OK", "{name}");
    }
}

/// S22 [G16]: what one clock lost in one hour it does not win back in the next.
#[test]
fn a_clock_that_is_slow_and_then_fast_ends_no_lock_early() {
    let mut node = node();
    node.clock().skew_boottime(-80_000);
    node.advance(HOUR);
    assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
    node.clock().skew_boottime(80_000);
    node.advance(T);
    assert_eq!(told(&mut node, "SET k b NX PX 30000"), "$-1");
    node.advance(NANO);
    assert_eq!(told(&mut node, "SET k b NX PX 30000"), "+OK");
}

/// S22 S23 [G6] [G16]: the node's time fell behind both clocks since the horizon was written in terms of them, behind one while
/// the other was slow, behind that one while the machine slept.
#[test]
fn a_horizon_is_good_for_a_node_that_fell_behind_both_clocks() {
    for (slow_ms, sleep_ms, ttl_ms) in [(55_000, 20_000, 13_000), (50_000, 5_000, 17_000)] {
        let ttl = Duration::from_millis(ttl_ms);
        let mut node = node();
        assert_eq!(told(&mut node, "SET long a NX PX 60000"), "+OK");
        node.clock().skew_boottime(-80_000);
        node.advance(Duration::from_millis(slow_ms));
        node.clock().skew_boottime(0);
        node.clock().suspend(Duration::from_millis(sleep_ms));
        assert_eq!(told(&mut node, &format!("SET k a NX PX {ttl_ms}")), "+OK");
        node.kill();
        node.start().unwrap();
        let left = node.quarantine_left().unwrap_or_default();
        assert!(left >= ttl, "{left:?} of {ttl:?}");
    }
}

/// S23 [G16]: a machine that sleeps keeps its locks for longer, never for less.
#[test]
fn a_suspended_machine_ends_no_lock_early() {
    let mut node = node();
    assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
    node.clock().suspend(24 * HOUR);
    assert_eq!(told(&mut node, "PTTL k"), ":30000");
    node.advance(T);
    assert_eq!(told(&mut node, "SET k b NX PX 30000"), "$-1");
    node.advance(NANO);
    assert_eq!(told(&mut node, "SET k b NX PX 30000"), "+OK");
    // Slept while it was down: what ran is what counts.
    node.advance(10 * SECOND);
    node.kill();
    node.clock().suspend(24 * HOUR);
    node.start().unwrap();
    assert_eq!(node.reason(), Some(StartReason::Crash));
    assert!(node.quarantine_left().unwrap() >= 20 * SECOND);
    // And in the quarantine.
    node.clock().suspend(24 * HOUR);
    assert!(loading(&mut node, "PING"));
    assert!(node.quarantine_left().unwrap() >= 20 * SECOND);
}

/// S23 [G10]
#[test]
fn time_slept_between_a_clean_stop_and_the_start_does_not_count() {
    let mut node = node();
    assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
    node.clean_stop().unwrap();
    node.clock().suspend(HOUR);
    node.advance(SECOND);
    node.start().unwrap();
    assert_eq!(told(&mut node, "PTTL k"), ":29000");
}

/// S59 [G7]: the horizon is told in readings of clocks, and those of another machine, boot or namespace tell nothing.
#[test]
fn clocks_that_are_not_the_same_are_not_compared() {
    type Move = fn(&mut StoredNode);
    let rows: [(&str, Move, StartReason, u64); 9] = [
        ("as before", |_| (), StartReason::Crash, 0),
        ("rebooted", StoredNode::reboot, StartReason::Reboot, 60_602),
        (
            "rebooted long ago",
            |node| {
                node.reboot();
                node.advance(24 * HOUR);
            },
            StartReason::Reboot,
            60_602,
        ),
        (
            "moved",
            StoredNode::move_to_other_machine,
            StartReason::Reboot,
            60_602,
        ),
        (
            "the same boot id, another machine",
            |node| node.machine_mut().machine_id = [9; 16],
            StartReason::Reboot,
            60_602,
        ),
        (
            "another time namespace",
            |node| node.machine_mut().time_namespace = 9,
            StartReason::Reboot,
            60_602,
        ),
        (
            "boottime is behind",
            |node| node.clock().set_boottime(HOUR + MINUTE - NANO),
            StartReason::ClockMismatch,
            60_602,
        ),
        (
            "raw is behind",
            |node| node.clock().set_raw(HOUR + MINUTE - NANO),
            StartReason::ClockMismatch,
            60_602,
        ),
        (
            "both are behind",
            |node| {
                node.clock().set_boottime(SECOND);
                node.clock().set_raw(SECOND);
            },
            StartReason::ClockMismatch,
            60_602,
        ),
    ];
    for (name, change, reason, wait_ms) in rows {
        let mut node = node();
        node.advance(MINUTE);
        assert_eq!(told(&mut node, "SET k a NX PX 60000"), "+OK");
        node.advance(2 * MINUTE);
        if wait_ms != 0 {
            // What the state says was written when the clocks showed an hour and a minute.
            node.kill();
            change(&mut node);
        }
        node.start().unwrap();
        assert_eq!(node.reason(), Some(reason), "{name}");
        let left = node.quarantine_left().map_or(0, |left| left.as_millis());
        assert_eq!(left, u128::from(wait_ms), "{name}");
    }
}

/// S59 [G7]
#[test]
fn a_system_without_a_boot_id_compares_no_clocks() {
    let mut node = StoredNode::new(settings());
    *node.machine_mut() = Machine::default();
    node.start().unwrap();
    node.advance(node.quarantine_left().unwrap());
    assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
    node.advance(HOUR);
    node.kill();
    node.start().unwrap();
    assert_eq!(node.reason(), Some(StartReason::Reboot));
    assert!(node.quarantine_left().unwrap() > T);
}

/// S59 [G6]: each clock alone is not enough.
#[test]
fn after_a_crash_both_clocks_have_to_pass_the_horizon() {
    for (boottime, raw) in [(HOUR, SECOND), (SECOND, HOUR)] {
        let mut node = node();
        assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
        node.kill();
        let hour = Duration::from_secs(3600);
        node.clock().set_boottime(hour + boottime);
        node.clock().set_raw(hour + raw);
        node.start().unwrap();
        assert!(node.quarantine_left().unwrap() > 29 * SECOND);
    }
}

/// S59 [L2]: a lock on the log in another boot begins anew, in the same boot it goes on, by the slower clock.
#[test]
fn a_lock_on_the_log_never_ends_early() {
    type Move = fn(&mut StoredNode);
    let rows: [(&str, Move, &str); 6] = [
        ("same boot", |node| node.advance(MINUTE), ":3540000"),
        (
            "slow boottime",
            |node| {
                node.clock().set_boottime(HOUR + SECOND);
                node.clock().set_raw(HOUR + MINUTE);
            },
            ":3599000",
        ),
        (
            "slow raw",
            |node| {
                node.clock().set_boottime(HOUR + MINUTE);
                node.clock().set_raw(HOUR + SECOND);
            },
            ":3599000",
        ),
        ("rebooted", StoredNode::reboot, ":3600000"),
        ("moved", StoredNode::move_to_other_machine, ":3600000"),
        (
            "set back",
            |node| node.clock().set_boottime(HOUR - SECOND),
            ":3600000",
        ),
    ];
    for (name, change, left) in rows {
        let mut node = node();
        assert_eq!(told(&mut node, "SET k a NX PX 3600000"), "+OK");
        node.kill();
        change(&mut node);
        node.start().unwrap();
        // The mismatch of clocks is waited for, by max-ttl.
        let waited = node.quarantine_left().unwrap_or_default();
        node.clock().advance(waited);
        let waited_ms = i64::try_from(waited.as_nanos().div_ceil(1_000_000)).unwrap();
        let want = left[1..].parse::<i64>().unwrap() - waited_ms;
        let got = told(&mut node, "PTTL k")[1..].parse::<i64>().unwrap();
        assert!((got - want).abs() <= 1, "{name}: {got}, {want}");
    }
}

/// S60 [G12]: a leap second, or the summer's hour, on the wall.
#[test]
fn a_wall_clock_that_is_smeared_decides_nothing() {
    for (ppm, jump_ms) in [
        (-11, 0),
        (11, 0),
        (0, -1_000_i64),
        (0, 3_600_000),
        (0, -3_600_000),
    ] {
        let mut node = node();
        node.clock().skew_wall(ppm);
        assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
        node.advance(10 * SECOND);
        let wall_ms = 1_800_000_010_000_u64.checked_add_signed(jump_ms).unwrap();
        node.clock().set_wall_unix_millis(wall_ms);
        node.advance(20 * SECOND);
        assert_eq!(told(&mut node, "SET k b NX PX 30000"), "$-1");
        assert_eq!(told(&mut node, "PTTL k"), ":0");
        node.advance(NANO);
        assert_eq!(told(&mut node, "SET k b NX PX 30000"), "+OK");
    }
}
