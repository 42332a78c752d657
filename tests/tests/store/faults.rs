//! Failed syncs, full disks.

use std::io::ErrorKind;

use locknode_engine::durable::StartReason;
use locknode_tests::faulty_disk::keep_all;

use crate::rig::{Rig, seconds};

/// [G13]
#[test]
fn a_failed_sync_ends_the_store_for_good() {
    for syncs in 0..6 {
        let mut rig = Rig::started();
        rig.hold(b"before");
        rig.put(b"lost", None);
        rig.grant(b"short", seconds(5));
        rig.disk.fail_sync(syncs);
        let failed = (0..3).find_map(|_| {
            rig.goal.ceiling += 1;
            rig.perform().err()
        });
        let Some(error) = failed else {
            panic!("{syncs} syncs are not reached");
        };
        assert!(!error.is_full());
        assert!(error.to_string().contains("cannot sync"), "{error}");
        let done = rig.disk.operations();
        for _ in 0..3 {
            let again = rig.perform().unwrap_err();
            assert_eq!(again.to_string(), error.to_string());
            assert!(rig.compact().is_err());
        }
        assert_eq!(rig.disk.operations(), done, "nothing is tried again");
        assert!(rig.stop().is_err());
        assert_eq!(rig.disk.operations(), done);
        let start = rig.restart();
        assert_ne!(start.reason, StartReason::CleanStop);
        assert!(rig.holds(b"before"));
    }
}

/// [G14]
#[test]
fn a_full_disk_starves_the_store_until_there_is_room() {
    let mut rig = Rig::started();
    rig.hold(b"first");
    let held = rig.disk.bytes();
    rig.disk.limit(Some(held));
    // What has room already goes on; a new segment does not.
    let mut granted = 0;
    let error = loop {
        rig.put(format!("key-{granted}").as_bytes(), None);
        match rig.perform() {
            Ok(()) => granted += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_full() && granted > 10, "{granted}: {error}");
    assert_eq!(error.io_kind(), ErrorKind::StorageFull);
    assert!(rig.disk.bytes() <= held);
    assert!(rig.perform().unwrap_err().is_full());
    // The horizon and the ceiling need no room.
    let log = std::mem::take(&mut rig.log);
    rig.grant(b"short", seconds(5));
    rig.goal.ceiling += 5;
    rig.goal.records -= 1;
    rig.perform().unwrap();
    rig.log = log;
    rig.goal.records += 1;
    rig.disk.limit(None);
    rig.perform().unwrap();
    rig.restart();
    assert_eq!(rig.model.locks.len(), granted + 2);
}

/// [G14]
#[test]
fn a_write_that_fails_or_is_short_is_written_again() {
    for after in 0..4 {
        for written in [0, 1, 50, 100] {
            for kind in [ErrorKind::StorageFull, ErrorKind::Other] {
                let mut rig = Rig::started();
                rig.hold(b"a");
                rig.put(b"b", None);
                rig.grant(b"short", seconds(5));
                rig.disk.fail_write(after, kind, written);
                if let Err(error) = rig.perform() {
                    assert!(error.is_full());
                    rig.perform().unwrap();
                }
                rig.put(b"c", None);
                if rig.perform().is_err() {
                    rig.perform().unwrap();
                }
                let start = rig.restart();
                assert_eq!(rig.wait(), seconds(5), "{:?}", start.reason);
                assert_eq!(rig.model.locks.len(), 3);
            }
        }
    }
}

/// [G14]
#[test]
fn a_crash_after_a_failed_write_loses_nothing_that_was_acknowledged() {
    for after in 0..4 {
        for written in [0, 1, 50, 100] {
            let mut rig = Rig::started();
            rig.put(b"a", None);
            rig.grant(b"short", seconds(50));
            rig.perform().unwrap();
            rig.put(b"b", None);
            rig.goal.ceiling += 1;
            rig.disk.fail_write(after, ErrorKind::StorageFull, written);
            let _ = rig.perform();
            rig.crash(&mut keep_all);
            rig.start();
            assert!(rig.holds(b"a"));
        }
    }
}

/// [G14] [L5]
#[test]
fn a_batch_that_a_failed_write_left_whole_may_come_again_in_the_next_segment() {
    for after in 0..3 {
        for is_power_lost in [false, true] {
            let mut rig = Rig::started();
            for number in 0..10 {
                rig.hold(format!("key-{number}-{}", "k".repeat(60)).as_bytes());
            }
            let segments = rig.figures().segments;
            rig.put(b"b", None);
            rig.put(b"gone", Some(1_000_000));
            rig.disk.fail_write(0, ErrorKind::StorageFull, usize::MAX);
            assert!(rig.perform().unwrap_err().is_full());
            // The next try has more to write, and no room beside what is there.
            rig.remove(b"gone");
            rig.hold(&b"c".repeat(3000));
            assert_eq!(rig.figures().segments, segments + 1);
            for number in 0..after {
                rig.hold(format!("after-{number}").as_bytes());
            }
            if is_power_lost {
                rig.crash(&mut keep_all)
            } else {
                rig.kill()
            }
            let start = rig.start();
            assert_ne!(start.reason, StartReason::DroppedBatch);
            assert_eq!(rig.model.locks.len(), 12 + after);
            rig.restart();
            assert_eq!(rig.model.locks.len(), 12 + after);
        }
    }
}

/// [L7] [G14]
#[test]
fn a_compaction_without_room_is_given_up_and_tried_again() {
    let mut rig = Rig::started();
    let mut number = 0;
    let mut put = |rig: &mut Rig| {
        number += 1;
        rig.hold(format!("key-{}", number % 50).as_bytes());
    };
    while rig.figures().segments < 5 {
        put(&mut rig);
    }
    // Begins, and has no room for the end of the snapshot.
    assert!(rig.compact().unwrap());
    let held = rig.disk.bytes();
    rig.disk.limit(Some(held + 300));
    let error = loop {
        if let Err(error) = rig.compact() {
            break error;
        }
    };
    assert!(error.is_full());
    assert!(
        !rig.disk
            .snapshot()
            .keys()
            .any(|name| name.starts_with("snapshot-"))
    );
    rig.disk.limit(None);
    let segments = rig.figures().segments;
    while rig.figures().compactions == 0 {
        put(&mut rig);
        rig.compact().unwrap();
        assert!(rig.figures().segments <= segments + 3);
    }
    rig.restart();
    assert_eq!(rig.model.locks.len(), 50);
}

/// [G8] [L4]
#[test]
fn a_raised_horizon_costs_one_sync_and_so_do_many_records() {
    let mut rig = Rig::started();
    rig.grant(b"a", seconds(5));
    rig.hold(b"x");
    // Among them is a first label, which begins another format.
    for _ in 0..20 {
        rig.put(b"y", None);
    }
    rig.perform().unwrap();
    let syncs = rig.disk.syncs_total();
    rig.advance(seconds(1));
    rig.grant(b"b", seconds(5));
    rig.perform().unwrap();
    assert_eq!(rig.disk.syncs_total(), syncs + 1);
    for _ in 0..20 {
        rig.put(b"y", None);
    }
    rig.perform().unwrap();
    assert_eq!(rig.disk.syncs_total(), syncs + 2);
    // Nothing to do, nothing done.
    rig.perform().unwrap();
    assert_eq!(rig.disk.syncs_total(), syncs + 2);
    // More than the horizon goes to both slots.
    rig.goal.ceiling += 1;
    rig.perform().unwrap();
    assert_eq!(
        rig.disk.syncs("state"),
        rig.figures().syncs - (rig.disk.syncs_total() - rig.disk.syncs("state"))
    );
    assert_eq!(rig.disk.syncs_total(), syncs + 4);
}
