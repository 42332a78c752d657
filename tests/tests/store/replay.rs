//! The table that a log amounts to.

use locknode_engine::durable::StartReason;
use locknode_engine::{Deadline, Time};
use locknode_tests::faulty_disk::keep_none;

use crate::rig::{Rig, seconds};

/// Restarts, and sees that the table is the same.
fn check(rig: &mut Rig) {
    rig.perform().unwrap();
    let before = rig.holders();
    rig.restart();
    assert_eq!(rig.holders(), before);
}

/// [L3]
#[test]
fn records_are_read_in_their_order() {
    let mut rig = Rig::started();
    rig.put(b"a", Some(100_000));
    rig.put(b"b", None);
    rig.extend(b"a", 500_000);
    rig.remove(b"b");
    check(&mut rig);
    assert_eq!(rig.remaining_ms(0, b"a"), Some(500_000));
    assert!(!rig.holds(b"b"));
    rig.put(b"b", None);
    rig.remove(b"a");
    check(&mut rig);
    rig.put_in(3, b"c", None);
    rig.clear(Some(0));
    check(&mut rig);
    assert_eq!(rig.model.locks.len(), 1);
    rig.put(b"a", None);
    rig.clear(None);
    check(&mut rig);
    rig.put(b"a", None);
    rig.put_in(15, b"a", None);
    check(&mut rig);
    rig.stop().unwrap();
    rig.start();
    // What a snapshot holds is overridden by the log as well.
    rig.remove(b"a");
    rig.put(b"d", None);
    check(&mut rig);
    rig.clear(Some(15));
    check(&mut rig);
    assert_eq!(rig.model.locks.len(), 1);
    rig.clear(None);
    check(&mut rig);
}

/// [L2]
#[test]
fn deadlines_are_told_in_the_new_nodes_time() {
    let far = Deadline::after_millis(Time::ZERO, i64::MAX - 1);
    let mut rig = Rig::started();
    rig.put(b"minute", Some(60_000));
    rig.put_until(0, b"far", far);
    rig.hold(b"ever");
    rig.advance(seconds(10));
    rig.crash(&mut keep_none);
    rig.advance(seconds(5));
    rig.start();
    assert_eq!(rig.remaining_ms(0, b"minute"), Some(45_000));
    let left = rig.remaining_ms(0, b"far").unwrap();
    assert!(
        (i64::MAX - 15_200..=i64::MAX - 14_000).contains(&left),
        "{left}"
    );
    assert_eq!(
        rig.model.locks[&(0, b"ever".to_vec())].deadline,
        Deadline::NEVER
    );
    // In another boot what was left when the batch was written begins anew, at every start.
    for _ in 0..2 {
        rig.crash(&mut keep_none);
        rig.reboot();
        let start = rig.start();
        assert_eq!(start.reason, StartReason::Reboot);
        assert_eq!(rig.remaining_ms(0, b"minute"), Some(60_000));
    }
    // The slower clock counts; and what has ended is gone.
    rig.stop().unwrap();
    rig.advance_unevenly(seconds(59), seconds(80));
    rig.start();
    assert_eq!(rig.remaining_ms(0, b"minute"), Some(1_000));
    rig.crash(&mut keep_none);
    rig.advance(seconds(2));
    rig.start();
    assert!(!rig.holds(b"minute"));
}

/// [L2] A lock that had ended when its batch was written does not come back in another boot.
#[test]
fn a_lock_that_had_ended_stays_gone() {
    let mut rig = Rig::started();
    rig.put(b"a", Some(1_000));
    rig.advance(seconds(2));
    rig.perform().unwrap();
    rig.crash(&mut keep_none);
    rig.reboot();
    rig.start();
    assert!(!rig.holds(b"a"));
}

/// [L1] Only what is on the log survives a crash.
#[test]
fn locks_that_ride_on_the_guard_are_not_restored_after_a_crash() {
    let mut rig = Rig::started();
    rig.grant(b"short", seconds(10));
    rig.hold(b"long");
    rig.stop().unwrap();
    rig.start();
    rig.restart();
    assert_eq!(rig.model.locks.len(), 1);
}

/// [L4] A batch larger than a segment gets one of its own.
#[test]
fn large_batches_and_large_records_have_room() {
    let mut rig = Rig::started();
    for round in 0..6 {
        for number in 0..70 {
            let key = format!("{round}-{number}-{}", "k".repeat(100));
            rig.put(key.as_bytes(), None);
        }
        rig.perform().unwrap();
        rig.hold(format!("small-{round}").as_bytes());
        rig.settle();
    }
    check(&mut rig);
    assert_eq!(rig.model.locks.len(), 6 * 71);
}
