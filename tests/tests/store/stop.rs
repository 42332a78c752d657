//! The clean stop and its marker.

use std::time::Duration;

use locknode_engine::Deadline;
use locknode_engine::durable::StartReason;
use locknode_tests::faulty_disk::dice;

use crate::rig::{Rig, seconds, wait_of};

/// A node that was stopped with a short lock, a long one and one without TTL.
fn stopped() -> Rig {
    let mut rig = Rig::started();
    rig.grant(b"short", seconds(10));
    rig.put(b"long", Some(3_600_000));
    rig.hold(b"ever");
    rig.advance(seconds(1));
    rig.stop().unwrap();
    rig
}

/// [G10]
#[test]
fn after_a_clean_stop_every_lock_is_there_and_nothing_is_waited_for() {
    let mut rig = stopped();
    rig.advance(seconds(2));
    let start = rig.start();
    assert_eq!(start.reason, StartReason::CleanStop);
    assert_eq!(rig.wait(), Duration::ZERO);
    assert_eq!(rig.remaining_ms(1, b"short"), Some(7_000));
    assert_eq!(rig.remaining_ms(0, b"long"), Some(3_597_000));
    assert_eq!(
        rig.model.locks[&(0, b"ever".to_vec())].deadline,
        Deadline::NEVER
    );
    assert_eq!(rig.figures().segments, 0);
}

/// [G10] [G14]
#[test]
fn a_stop_on_a_full_disk_leaves_no_part_of_a_snapshot() {
    let mut rig = Rig::started();
    rig.hold(b"ever");
    let bytes = rig.disk.bytes();
    for room in (0..2048).step_by(32) {
        let mut full = Rig::started();
        full.hold(b"ever");
        full.disk.limit(Some(bytes + room));
        if full.stop().is_ok() {
            assert!(room > 0, "nothing was written");
            return;
        }
        assert_eq!(full.disk.bytes(), bytes, "with room for {room} bytes");
        full.disk.limit(None);
        let start = full.start();
        assert_ne!(start.reason, StartReason::CleanStop);
        assert!(full.holds(b"ever"));
    }
    panic!("a lock needs less room than that");
}

/// [G10] The time that passed counts by the slower clock.
#[test]
fn in_the_same_boot_the_slower_clock_counts() {
    for (boottime, raw) in [(8, 3), (3, 8)] {
        let mut rig = stopped();
        rig.advance_unevenly(seconds(boottime), seconds(raw));
        rig.start();
        assert_eq!(rig.remaining_ms(1, b"short"), Some(6_000));
    }
}

/// [G10]
#[test]
fn in_another_boot_the_time_left_begins_anew() {
    let mut rig = stopped();
    rig.reboot();
    let start = rig.start();
    assert_eq!(start.reason, StartReason::CleanStop);
    assert_eq!(rig.remaining_ms(1, b"short"), Some(9_000));
    assert_eq!(rig.remaining_ms(0, b"long"), Some(3_599_000));
}

/// [G10]
#[test]
fn a_lock_that_ended_while_the_node_was_down_is_gone() {
    let mut rig = stopped();
    rig.advance(seconds(10));
    rig.start();
    assert_eq!(rig.remaining_ms(1, b"short"), None);
    assert!(rig.goal.ttl_in_use.is_zero());
}

/// [G11] [G5] [G6]
#[test]
fn the_marker_is_good_for_one_start_and_restored_locks_ride_on_the_guard() {
    for is_reboot in [false, true] {
        for seed in 0..20 {
            let mut rig = stopped();
            rig.start();
            assert_eq!(rig.goal.ttl_in_use, seconds(9));
            let now = rig.reading().moment.time;
            assert_eq!(rig.goal.horizon.since(now), seconds(9));
            rig.crash(&mut dice(seed));
            if is_reboot {
                rig.reboot();
            }
            if is_reboot {
                rig.expect_start(StartReason::Reboot, wait_of(seconds(9)));
            } else {
                rig.expect_start(StartReason::Crash, seconds(9));
            }
            assert_eq!(rig.remaining_ms(1, b"short"), None);
            assert!(rig.holds(b"long") && rig.holds(b"ever"));
        }
    }
}

/// [G10] [G11] A stop that was cut short is a crash, and a start that was cut short leaves the marker or takes it.
#[test]
fn a_stop_or_start_cut_at_any_step_loses_nothing() {
    for operations in 0..30 {
        for seed in 0..12 {
            let mut rig = Rig::started();
            rig.grant(b"short", seconds(10));
            rig.hold(b"ever");
            rig.disk.stop(operations);
            let is_stopped = rig.stop().is_ok();
            rig.crash_by(seed);
            let start = rig.start();
            assert!(rig.holds(b"ever"));
            let is_clean = start.reason == StartReason::CleanStop;
            assert!(is_clean || !is_stopped);
            assert_eq!(is_clean, rig.remaining_ms(1, b"short").is_some());

            let mut rig = stopped();
            rig.disk.stop(operations);
            let is_started = rig.try_start().is_ok();
            rig.crash_by(seed);
            let start = rig.try_start().unwrap();
            assert!(rig.holds(b"ever"));
            let is_clean = start.reason == StartReason::CleanStop;
            assert!(!is_clean || !is_started);
            assert!(is_clean || rig.wait() >= seconds(9));
        }
    }
}
