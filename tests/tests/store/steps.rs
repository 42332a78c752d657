//! A crash after every single operation of a node's life, with all of what was not synced, none, or some.

use locknode_engine::durable::{Durability, StoreError};
use locknode_tests::faulty_disk::{dice, keep_all, keep_none};

use crate::rig::{Rig, seconds};

/// A life with everything in it: short and long locks, new segments, a compaction, a stop, another start.
fn live(rig: &mut Rig) -> Result<(), StoreError> {
    for number in 0..60 {
        let key = format!("key-{:02}-{}", number % 20, "k".repeat(60));
        match number % 5 {
            3 => rig.remove(key.as_bytes()),
            4 => rig.extend(key.as_bytes(), 2_000_000),
            _ => rig.put(key.as_bytes(), (number % 2 == 0).then_some(1_000_000)),
        }
        if number % 8 == 0 && !rig.is_quarantined() {
            rig.grant(b"short", seconds(5));
        }
        if number == 30 {
            rig.clear(Some(0));
            rig.goal.ceiling += 1 << 20;
        }
        rig.advance(seconds(1));
        rig.perform()?;
        if rig.store.as_ref().is_some_and(|store| store.is_due()) {
            rig.compact()?;
        }
    }
    Ok(())
}

/// Two lives with a stop between, cut after `operations`. Tells whether they came to their end.
fn lives(rig: &mut Rig, operations: u64) -> bool {
    if rig.try_start_checked().is_err() {
        return false;
    }
    rig.disk.stop(operations);
    if live(rig).is_err() || rig.stop().is_err() {
        return false;
    }
    rig.try_start_checked().is_ok() && live(rig).is_ok()
}

/// A crash after every `stride`th operation.
fn check(durability: Durability, loss: u64, stride: usize) {
    for operations in (0..).step_by(stride) {
        let mut rig = Rig::new();
        rig.sizes.segment = 1024;
        rig.sizes.log = 4096;
        rig.settings.durability = durability;
        rig.first_start();
        rig.kill();
        let is_done = lives(&mut rig, operations);
        match loss {
            0 => rig.kill(),
            1 => rig.crash(&mut keep_all),
            2 => rig.crash(&mut keep_none),
            seed => rig.crash(&mut dice(seed * 1_000 + operations)),
        }
        rig.start();
        // It goes on from there.
        rig.hold(b"after");
        rig.restart();
        assert!(rig.holds(b"after"));
        if is_done {
            assert!(operations > 200, "{operations}");
            break;
        }
    }
}

/// [L1] [L3] [L5] [L6] [L7] [S2] [G10] [G11]
#[test]
fn no_step_is_one_after_which_a_crash_loses_something() {
    for (loss, stride) in [(0, 1), (1, 2), (2, 1), (3, 3), (4, 3)] {
        check(Durability::Long, loss, stride);
    }
}

/// [L1] [L3] [L5] [L7] [S2] [G10] [G11]
#[test]
fn no_step_is_one_after_which_a_crash_loses_something_of_a_node_that_logs_all() {
    for (loss, stride) in [(0, 2), (2, 1), (5, 3)] {
        check(Durability::Always, loss, stride);
    }
}
