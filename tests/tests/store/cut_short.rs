//! An opening, a compaction and a stop that end at each of their operations, and all that a crash can leave of it: every piece
//! that was not synced kept, lost, or torn; and a process that ends there while the machine goes on, and loses its power
//! after the next start. None of it is a reason to refuse, and nothing that was told is lost.

use std::cell::Cell;

use locknode_engine::durable::{Durability, Store};
use locknode_tests::faulty_disk::keep_none;

use crate::rig::{Rig, seconds};

/// Makes a node ready for what is cut short.
type Prepare = fn(&mut Rig);

/// Does it; tells whether it came to its end.
type Act = fn(&mut Rig) -> bool;

fn check(durability: Durability, operations_min: u64, prepare: Prepare, act: Act) {
    for operations in 0.. {
        let mut variants = 1;
        let mut is_done = false;
        let mut variant = 0;
        while variant <= variants {
            let mut rig = Rig::new();
            rig.sizes.segment = 1024;
            rig.sizes.log = 4096;
            rig.settings.durability = durability;
            prepare(&mut rig);
            rig.disk.stop(operations);
            is_done = act(&mut rig);
            let pieces = Cell::new(0);
            if variant < variants {
                rig.crash(&mut kept(variant, &pieces))
            } else {
                rig.kill();
                rig.start();
                rig.crash(&mut keep_none);
            }
            if variant == 0 {
                variants = CHOICES.pow(pieces.get().min(PIECES_MAX));
            }
            variant += 1;
            rig.start();
            rig.hold(b"after");
            rig.restart();
            assert!(rig.holds(b"after"), "{operations} {variant}/{variants}");
        }
        if is_done {
            assert!(operations >= operations_min, "{operations}");
            return;
        }
    }
}

/// What is kept of each piece: of the first ones by the digits of `variant`, so that every combination comes, then in turn.
/// Counts the pieces.
fn kept(variant: usize, pieces: &Cell<u32>) -> impl FnMut(usize) -> usize {
    move |len| {
        let piece = pieces.get();
        pieces.set(piece + 1);
        let turn = if piece < PIECES_MAX {
            variant / CHOICES.pow(piece)
        } else {
            variant + usize::try_from(piece).unwrap()
        };
        match turn % CHOICES {
            0 => 0,
            1 => len,
            2 => 1,
            3 => len / 2,
            _ => len.saturating_sub(1),
        }
    }
}

/// Long locks, short ones, releases, more than a segment of them.
fn live(rig: &mut Rig) {
    for number in 0..24 {
        let key = format!("key-{}-{}", number % 9, "k".repeat(100));
        match number % 4 {
            3 => rig.remove(key.as_bytes()),
            _ => rig.put(key.as_bytes(), (number % 2 == 0).then_some(1_000_000)),
        }
        if number % 8 == 0 && rig.settings.durability == Durability::Long {
            rig.grant(b"short", seconds(50));
        }
        rig.advance(seconds(1));
        rig.perform().unwrap();
    }
}

fn compact(rig: &mut Rig) -> bool {
    while rig.store.as_ref().is_some_and(Store::is_due) {
        // A lock that changes while the snapshot is taken.
        rig.put(b"meanwhile", None);
        if rig.perform().is_err() || rig.compact().is_err() {
            return false;
        }
    }
    true
}

fn started(rig: &mut Rig) -> bool {
    rig.try_start_checked().is_ok()
}

/// [G3] [G4] [S2] [S3]
#[test]
fn a_first_opening() {
    for durability in [Durability::Long, Durability::Always] {
        check(durability, 5, |_| {}, started);
        let prepare: Prepare = |rig| rig.settings.is_first_start = true;
        let act: Act = |rig| {
            let is_done = started(rig);
            rig.settings.is_first_start = false;
            is_done
        };
        check(durability, 5, prepare, act);
    }
}

/// [G9] [G11] [L5] [L7] [S2] [S5]
#[test]
fn an_opening_after_a_crash() {
    let long_log: Prepare = |rig| {
        rig.first_start();
        live(rig);
        rig.put(b"unsynced", None);
        rig.disk.stop(1);
        assert!(rig.perform().is_err());
        rig.kill();
    };
    for durability in [Durability::Long, Durability::Always] {
        check(durability, 12, long_log, started);
    }
}

/// [G10] [G11] [L7] [S2] [S5]
#[test]
fn an_opening_after_a_stop() {
    let stopped: Prepare = |rig| {
        rig.first_start();
        live(rig);
        rig.stop().unwrap();
    };
    for durability in [Durability::Long, Durability::Always] {
        check(durability, 6, stopped, started);
    }
}

/// [L7]
#[test]
fn a_compaction() {
    let due: Prepare = |rig| {
        rig.first_start();
        live(rig);
        assert!(rig.store.as_ref().is_some_and(Store::is_due));
    };
    for durability in [Durability::Long, Durability::Always] {
        check(durability, 20, due, compact);
    }
}

/// [G10] [L7]
#[test]
fn a_stop() {
    let lived: Prepare = |rig| {
        rig.first_start();
        live(rig);
    };
    for durability in [Durability::Long, Durability::Always] {
        check(durability, 10, lived, |rig| rig.stop().is_ok());
    }
}

/// Kept, lost, and three ways to be torn.
const CHOICES: usize = 5;

/// Pieces of which every combination is tried: 25 crashes for each operation.
const PIECES_MAX: u32 = 2;
