//! Writes cut at every byte, sectors lost, damage.

use locknode_engine::durable::{OpenErrorKind, StartReason};
use locknode_tests::faulty_disk::{dice, keep_first};

use crate::rig::{MAX_TTL, Rig, seconds, wait_of};

/// [S2] [S3]
#[test]
fn a_write_of_the_state_cut_at_any_byte_leaves_the_old_or_the_new() {
    let mut reasons = [0, 0];
    for bytes in 0..=520 {
        let mut rig = Rig::started();
        rig.grant(b"a", seconds(10));
        rig.perform().unwrap();
        let old_end = rig.goal.horizon;
        rig.advance(seconds(1));
        rig.grant(b"b", seconds(10));
        // The write is done, its sync is not.
        rig.disk.stop(1);
        assert!(rig.perform().is_err());
        rig.crash(&mut keep_first(bytes));
        let now = rig.reading().moment.time;
        let left = old_end.since(now);
        let start = rig.start();
        match start.reason {
            StartReason::Crash => {
                reasons[0] += 1;
                let want = if bytes < 512 { left } else { seconds(10) };
                assert_eq!(rig.wait(), want, "{bytes}");
            }
            StartReason::DamagedState => {
                reasons[1] += 1;
                assert_eq!(rig.wait(), wait_of(MAX_TTL), "{bytes}");
            }
            other => panic!("{other:?} at {bytes}"),
        }
    }
    assert!(reasons[0] > 8 && reasons[1] > 100, "{reasons:?}");
}

/// [S2] A process died between write and sync, and its successor loses power: never are both slots torn.
#[test]
fn a_slot_that_was_not_synced_is_made_durable_before_the_other_is_written() {
    for operations in 0..6 {
        for kept in [100, 256, 511] {
            let mut rig = Rig::started();
            rig.grant(b"a", seconds(10));
            rig.perform().unwrap();
            rig.grant(b"b", seconds(20));
            rig.goal.ceiling += 1;
            rig.disk.stop(1);
            assert!(rig.perform().is_err());
            rig.kill();
            rig.disk.stop(operations);
            let _ = rig.try_start();
            rig.crash(&mut |len| len.min(kept));
            rig.start();
        }
    }
}

/// [L5]
#[test]
fn a_batch_cut_at_any_byte_is_dropped_and_the_log_goes_on() {
    for bytes in 0..200 {
        let mut rig = Rig::started();
        rig.hold(b"before");
        rig.put(b"torn", None);
        rig.disk.stop(1);
        assert!(rig.perform().is_err());
        rig.crash(&mut keep_first(bytes));
        rig.start();
        assert!(rig.holds(b"before"));
        rig.hold(b"after");
        rig.restart();
        assert!(rig.holds(b"before") && rig.holds(b"after"));
    }
}

/// [L5]
#[test]
fn lost_sectors_of_the_last_batch_drop_it() {
    let mut kept = 0;
    for seed in 0..200 {
        let mut rig = Rig::started();
        rig.hold(b"before");
        for number in 0..40 {
            rig.put(format!("torn-{number}-{}", "x".repeat(40)).as_bytes(), None);
        }
        rig.disk.stop(1);
        assert!(rig.perform().is_err());
        rig.crash(&mut dice(seed));
        rig.start();
        assert!(rig.holds(b"before"));
        let count = rig.model.locks.len();
        assert!(count == 1 || count == 41, "{count}");
        kept += usize::from(count == 41);
        rig.crash(&mut dice(seed + 1));
        rig.start();
        assert_eq!(rig.model.locks.len(), count);
    }
    assert!(kept < 200);
}

/// [L5] What a process left unsynced and the next one read is durable before anything comes after it.
#[test]
fn a_batch_that_was_read_but_not_synced_is_made_durable_at_the_start() {
    for fails_sync in [false, true] {
        let mut rig = Rig::started();
        rig.hold(b"before");
        rig.put(b"unsynced", None);
        if fails_sync {
            rig.disk.fail_sync(0);
        } else {
            rig.disk.stop(1);
        }
        assert!(rig.perform().is_err());
        rig.kill();
        rig.start();
        assert!(rig.holds(b"unsynced"));
        rig.hold(b"after");
        rig.restart();
        assert_eq!(rig.model.locks.len(), 3);
    }
}

/// [L5]
#[test]
fn damage_before_a_whole_batch_refuses_and_after_the_last_one_does_not() {
    let mut rig = Rig::started();
    for key in [&b"a"[..], b"b", b"c"] {
        rig.hold(key);
    }
    let name = "log-0000000000000001";
    let image = rig.disk.snapshot();
    // Header, then three batches of 56 bytes and a record of 25 + 1 + 7, filled up to eight.
    let ends = [128, 128 + 96, 128 + 192, 128 + 288];
    for at in 0..ends[3] {
        let mut rig = Rig::new();
        rig.disk.restore(&image);
        rig.disk.flip(name, at);
        match rig.try_start() {
            Err(error) => {
                assert_eq!(error.kind(), OpenErrorKind::Damaged, "{at}");
                assert_eq!(error.file(), name);
                assert!(at < ends[2], "{at}");
            }
            Ok(_) => {
                let is_filling = (at - 128) % 96 >= 89 || (52..56).contains(&((at - 128) % 96));
                let want = if at < ends[2] || is_filling { 3 } else { 2 };
                assert_eq!(rig.model.locks.len(), want, "{at}");
                assert!(at >= ends[2] || is_filling, "{at}");
            }
        }
    }
}

/// [L5]
#[test]
fn a_segment_that_lost_its_end_refuses_when_a_later_one_goes_on() {
    let mut rig = Rig::started();
    rig.hold(b"a");
    rig.hold(b"b");
    rig.restart();
    rig.hold(b"c");
    let mut image = rig.disk.snapshot();
    let first = image.get_mut("log-0000000000000001").unwrap();
    first[128 + 96..].fill(0);
    let mut rig = Rig::new();
    rig.disk.restore(&image);
    let error = rig.try_start().unwrap_err();
    assert_eq!(error.kind(), OpenErrorKind::Damaged);
    assert_eq!(error.file(), "log-0000000000000001");
}

/// [L5] A client that writes what looks like a batch changes nothing.
#[test]
fn a_key_that_looks_like_a_batch_is_no_batch() {
    for knows_salt in [false, true] {
        let mut rig = Rig::started();
        rig.hold(b"a");
        let batch = rig.disk.snapshot()["log-0000000000000001"][128..224].to_vec();
        // Seven bytes take it to where a batch could begin.
        let mut key = [&b"seven.."[..], &batch].concat();
        key[7] ^= u8::from(!knows_salt);
        rig.put(&key, None);
        rig.disk.stop(1);
        assert!(rig.perform().is_err());
        // All of it but the end of the token.
        rig.crash(&mut keep_first(186));
        assert_eq!(rig.try_start().is_err(), knows_salt);
        assert!(rig.model.locks.len() == 1 || knows_salt);
    }
}
