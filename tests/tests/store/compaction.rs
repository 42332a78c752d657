//! Snapshots of a table that changes, bytes on disk.

use locknode_engine::Deadline;
use locknode_engine::durable::{Durability, LockRecord, Record, StoreSizes, Work};
use locknode_tests::faulty_disk::keep_all;

use crate::rig::{Rig, seconds};

/// [L7]
#[test]
fn a_snapshot_taken_while_locks_change_and_the_log_after_it_are_the_table() {
    for offset in 0..12 {
        let mut rig = Rig::started();
        for number in 0..100 {
            rig.hold(format!("key-{number:03}").as_bytes());
        }
        let mut number = offset;
        while rig.figures().compactions < 3 {
            // Behind the walk, before it, and where it is.
            for key in [number % 100, (number * 7) % 100] {
                let key = format!("key-{key:03}");
                match number % 4 {
                    0 => rig.remove(key.as_bytes()),
                    1 => rig.extend(key.as_bytes(), 1_000_000),
                    _ => rig.put(key.as_bytes(), None),
                }
            }
            if number % 97 == 0 {
                rig.clear(Some(1));
            }
            // Some changes are in the table and not yet on the log.
            if number % 3 != 0 {
                rig.perform().unwrap();
            }
            rig.compact().unwrap();
            number += 1;
        }
        rig.perform().unwrap();
        let before = rig.holders();
        rig.restart();
        assert_eq!(rig.holders(), before);
    }
}

/// [L7]
#[test]
fn bytes_on_disk_are_bounded_whatever_comes_and_goes() {
    let mut rig = Rig::started();
    rig.sizes = StoreSizes::default();
    rig.restart();
    let mut store = rig.store.take().unwrap();
    let reading = rig.reading();
    let mut most = 0;
    let mut work = Work {
        goal: rig.goal,
        ..Work::default()
    };
    for number in 0..200_000 {
        let key = format!("key-{}", number / 2 % 1000);
        work.log.clear();
        let key = key.as_bytes();
        if number % 2 == 0 {
            let lock = LockRecord {
                db: 0,
                key,
                token: b"twenty bytes of hex.",
                grant: number,
                deadline: Deadline::NEVER,
                is_logged: true,
                is_collection: false,
                label: None,
            };
            Record::Put(lock).encode(&mut work.log);
        } else {
            Record::Remove { db: 0, key }.encode(&mut work.log);
        }
        store.perform(&work, reading).unwrap();
        if store.is_due() {
            store.compact(&mut rig.model, reading).unwrap();
            most = most.max(rig.disk.bytes());
            assert_eq!(store.figures().bytes, rig.disk.bytes());
        }
    }
    // Four segments make a compaction due; the one begun for it, and the next one.
    assert!(most <= 25 << 20, "{most}");
    assert!(store.figures().compactions >= 1);
    drop(store);
    rig.restart();
    assert!(rig.model.locks.is_empty());
}

/// [L7]
#[test]
fn crash_after_crash_leaves_no_more_files() {
    for durability in [Durability::Long, Durability::Always] {
        for puts in [0, 1] {
            let mut rig = Rig::started();
            rig.settings.durability = durability;
            for _ in 0..40 {
                for _ in 0..puts {
                    rig.hold(b"same");
                }
                rig.crash(&mut keep_all);
                rig.start();
                assert!(rig.disk.bytes() < 40_000, "{}", rig.disk.bytes());
                let files = rig.disk.snapshot().len();
                assert!(files <= 8, "{files}");
            }
            assert_eq!(rig.model.locks.len(), puts);
        }
    }
}

/// [L7] [L4]
#[test]
fn the_next_segment_is_made_ahead_of_need() {
    let mut rig = Rig::started();
    let mut most = 0;
    for number in 0..300 {
        rig.put(format!("key-{number}").as_bytes(), None);
        let before = rig.disk.syncs_total();
        rig.perform().unwrap();
        // By then there was a first label, which begins another format.
        if number > 20 {
            most = most.max(rig.disk.syncs_total() - before);
        }
        rig.settle();
    }
    assert_eq!(most, 1);
}

/// [L7] A snapshot of the stop replaces the log.
#[test]
fn a_stop_leaves_a_state_and_a_snapshot() {
    let mut rig = Rig::started();
    for number in 0..300 {
        rig.put(format!("key-{number}").as_bytes(), Some(1_000_000));
        rig.perform().unwrap();
        rig.advance(seconds(1));
        // One that is under way is given up.
        if rig.store.as_ref().unwrap().is_due() {
            rig.compact().unwrap();
        }
    }
    rig.stop().unwrap();
    let files: Vec<_> = rig.disk.snapshot().into_keys().collect();
    assert_eq!(files.len(), 2, "{files:?}");
    rig.start();
    assert_eq!(rig.model.locks.len(), 300);
    assert_eq!(rig.remaining_ms(0, b"key-0"), Some(700_000));
}
