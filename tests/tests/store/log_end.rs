//! The end of the log: a last batch that is dropped, a log that is cut short.

use std::time::Duration;

use locknode_engine::durable::{Durability, OpenErrorKind, StartReason};
use locknode_tests::faulty_disk::{Image, keep_first, keep_none};

use crate::rig::{MAX_TTL, Rig, seconds, wait_of};

const LOG: &str = "log-0000000000000001";

/// Where batches begin, and how long one is: 56 bytes and a record of 25 + 1 + 7, filled up to eight.
const HEADER: usize = 128;
const BATCH: usize = 96;

/// A node with a log of three batches, and its settings.
fn logged(durability: Durability) -> (Rig, Image) {
    let mut rig = Rig::new();
    rig.settings.durability = durability;
    rig.first_start();
    for key in [&b"a"[..], b"b", b"c"] {
        rig.hold(key);
    }
    let image = rig.disk.snapshot();
    rig.kill();
    (rig, image)
}

/// [L5] Any length but its own, so that no batch is missed with the bytes that held it.
#[test]
fn a_segment_of_another_length_is_damage() {
    for durability in [Durability::Long, Durability::Always] {
        let (mut rig, image) = logged(durability);
        let len = image[LOG].len();
        for cut in (0..len).chain([len + 1]) {
            let mut image = image.clone();
            image.get_mut(LOG).unwrap().resize(cut, 0);
            rig.disk.restore(&image);
            let error = rig.try_start().unwrap_err();
            let want = (OpenErrorKind::Damaged, LOG);
            assert_eq!((error.kind(), error.file()), want, "{cut}");
            assert_eq!(rig.disk.snapshot(), image);
        }
    }
}

/// [L5] Zeros look like the end of the log; a state that was written after the batch knows better.
#[test]
fn a_log_that_ends_before_a_batch_that_is_known_to_be_durable_is_damage() {
    type Write = fn(&mut Rig);
    let writes: [(&str, Write); 4] = [
        ("the horizon", |rig| rig.grant(b"short", seconds(5))),
        ("the ceiling", |rig| rig.goal.ceiling += 1),
        ("a start", |rig| {
            rig.kill();
            rig.start();
        }),
        ("a segment", |rig| {
            rig.put(&[b'x'; 3000], None);
            rig.perform().unwrap();
            rig.put(&[b'y'; 3000], None);
        }),
    ];
    for (name, write) in writes {
        let mut rig = Rig::started();
        for key in [&b"a"[..], b"b"] {
            rig.hold(key);
        }
        write(&mut rig);
        rig.perform().unwrap();
        rig.kill();
        let whole = rig.disk.snapshot();
        rig.start();
        for lost in 0..2 {
            rig.kill();
            let mut image = whole.clone();
            image.get_mut(LOG).unwrap()[HEADER + lost * BATCH..].fill(0);
            rig.disk.restore(&image);
            let error = rig.try_start().unwrap_err();
            let want = (OpenErrorKind::Damaged, LOG);
            assert_eq!((error.kind(), error.file()), want, "{name}: {error}");
        }
    }
}

/// [L5] [G3] [G9] A torn batch was never answered, a damaged one was; nothing tells them apart.
#[test]
fn a_batch_that_is_dropped_is_waited_for_once() {
    for durability in [Durability::Long, Durability::Always] {
        for is_torn in [false, true] {
            for is_reboot in [false, true] {
                let (mut rig, image) = logged(durability);
                rig.disk.restore(&image);
                if is_torn {
                    rig.start();
                    rig.hold(b"whole");
                    rig.put(b"torn", None);
                    rig.disk.stop(1);
                    assert!(rig.perform().is_err());
                    rig.crash(&mut keep_first(60));
                } else {
                    rig.disk.flip(LOG, HEADER + 2 * BATCH + 9);
                    rig.forget(b"c");
                }
                if is_reboot {
                    rig.reboot();
                }
                rig.expect_start(StartReason::DroppedBatch, wait_of(MAX_TTL));
                assert_eq!(rig.model.locks.len(), if is_torn { 4 } else { 2 });
                // The wait is carried on, and the batch is not told again.
                rig.advance(seconds(10));
                rig.crash(&mut keep_none);
                rig.expect_start(StartReason::Crash, wait_of(MAX_TTL) - seconds(10));
                rig.wait_out();
                rig.advance(Duration::from_nanos(1));
                rig.relax();
                rig.hold(b"after");
                rig.restart();
                assert_eq!(rig.wait(), Duration::ZERO);
                assert!(rig.holds(b"after"));
            }
        }
    }
}

/// [L5] [G5] What was in use before counts, when it is longer than what is configured now.
#[test]
fn the_wait_for_a_dropped_batch_is_the_longer_one() {
    let mut rig = Rig::started();
    rig.grant(b"short", seconds(50));
    rig.hold(b"a");
    rig.kill();
    rig.disk.flip(LOG, HEADER + 9);
    rig.forget(b"a");
    rig.settings.max_ttl = seconds(5);
    rig.expect_start(StartReason::DroppedBatch, wait_of(seconds(50)));
}

/// [L5] Wherever a bit behind the log is not zero, a batch may have been there.
#[test]
fn any_byte_behind_the_log_tells_of_a_dropped_batch() {
    let (mut rig, image) = logged(Durability::Always);
    for at in HEADER + 3 * BATCH..image[LOG].len() {
        rig.disk.restore(&image);
        rig.disk.flip(LOG, at);
        let start = rig.try_start().unwrap();
        assert_eq!(start.reason, StartReason::DroppedBatch, "{at}");
        assert_eq!(rig.model.locks.len(), 3);
        rig.kill();
    }
}

/// [L5] [S3] Both are waited for, and the counters jump for the state's sake.
#[test]
fn a_dropped_batch_beside_a_damaged_slot_is_told() {
    let (mut rig, image) = logged(Durability::Always);
    rig.disk.restore(&image);
    rig.disk.flip("state", 100);
    rig.disk.flip(LOG, HEADER + 2 * BATCH);
    rig.forget(b"c");
    let acked = rig.ceiling_acked;
    let start = rig.expect_start(StartReason::DroppedBatch, wait_of(MAX_TTL));
    assert!(start.fence_base >= acked + 8 * (1 << 20));
}
