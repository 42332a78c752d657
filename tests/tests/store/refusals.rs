//! Directories that a node does not start with. Nothing in them is overwritten.

use locknode_engine::durable::{Durability, OpenErrorKind};
use locknode_tests::FaultyDisk;
use locknode_tests::faulty_disk::{Image, keep_all};

use crate::rig::Rig;

/// A directory with a snapshot and two log segments.
fn full_directory() -> Image {
    let mut rig = Rig::started();
    rig.hold(b"kept");
    rig.stop().unwrap();
    rig.start();
    rig.hold(b"a");
    rig.restart();
    rig.hold(b"b");
    rig.disk.snapshot()
}

fn check(image: &Image, kind: OpenErrorKind, file: &str) {
    let mut rig = Rig::new();
    rig.disk.restore(image);
    refuses(&mut rig, kind, file);
}

fn refuses(rig: &mut Rig, kind: OpenErrorKind, file: &str) {
    let before = rig.disk.snapshot();
    let operations = rig.disk.operations();
    let error = rig.try_start().unwrap_err();
    assert_eq!((error.kind(), error.file()), (kind, file), "{error}");
    assert!(error.to_string().contains(file), "{error}");
    assert_eq!(rig.disk.snapshot(), before);
    assert_eq!(rig.disk.operations(), operations);
}

fn names(image: &Image, prefix: &str) -> Vec<String> {
    let names = image.keys().filter(|name| name.starts_with(prefix));
    names.cloned().collect()
}

/// [S4]
#[test]
fn a_directory_of_something_else_is_not_touched() {
    let foreign = Image::from([("notes.txt".to_owned(), b"mine".to_vec())]);
    check(&foreign, OpenErrorKind::NotOurs, "notes.txt");
    let mut rig = Rig::new();
    rig.settings.is_first_start = true;
    rig.disk.restore(&foreign);
    refuses(&mut rig, OpenErrorKind::NotOurs, "notes.txt");
    // What is in every directory is no reason.
    let mut rig = Rig::new();
    for name in ["lock", "lost+found"] {
        rig.disk.put(name, b"");
    }
    rig.first_start();
}

/// [S4] Somebody else may have a file of that name, of any size.
#[test]
fn a_state_that_no_node_made_is_not_touched() {
    let text = b"my terraform state\n".repeat(600);
    let zeros = |len: usize| vec![0; len];
    let rows: [(&str, Vec<u8>); 9] = [
        ("a byte", b"x".to_vec()),
        ("a line", b"my terraform state".to_vec()),
        ("a slot", text[..4096].to_vec()),
        ("more than a slot", text[..5000].to_vec()),
        ("two slots", text[..8192].to_vec()),
        ("more than a state", text.clone()),
        (
            "text behind zeros",
            [zeros(4096), text[..600].to_vec()].concat(),
        ),
        (
            "text far behind zeros",
            [zeros(8000), b"x".to_vec()].concat(),
        ),
        (
            "text behind all that is read",
            [zeros(8192), b"x".to_vec()].concat(),
        ),
    ];
    for (name, content) in rows {
        for is_first_start in [false, true] {
            let mut rig = Rig::new();
            rig.settings.is_first_start = is_first_start;
            let image = Image::from([("state".to_owned(), content.clone())]);
            rig.disk.restore(&image);
            refuses(&mut rig, OpenErrorKind::NotOurs, "state");
            assert_eq!(rig.disk.snapshot(), image, "{name}");
        }
    }
    // A state without content is no excuse for a directory of somebody else.
    let mut image = Image::from([("state".to_owned(), Vec::new())]);
    image.insert("notes.txt".to_owned(), b"mine".to_vec());
    check(&image, OpenErrorKind::NotOurs, "notes.txt");
}

/// [G4] [G14]
#[test]
fn a_first_start_that_found_the_disk_full_or_was_cut_short_can_be_repeated() {
    for durability in [Durability::Long, Durability::Always] {
        let started = |disk: &dyn Fn(&FaultyDisk)| {
            let mut rig = Rig::new();
            rig.settings.durability = durability;
            rig.settings.is_first_start = true;
            disk(&rig.disk);
            let result = rig.try_start().map(|_| ());
            (rig, result)
        };
        let mut failures = 0;
        for capacity in (0..16_384).step_by(64) {
            let (mut rig, result) = started(&|disk| disk.limit(Some(capacity)));
            let Err(error) = result else {
                continue;
            };
            failures += 1;
            assert_eq!(error.kind(), OpenErrorKind::Io, "{capacity}");
            rig.disk.limit(None);
            rig.first_start();
        }
        assert!(failures > 100, "{failures}");
        for operations in 0.. {
            let (_, result) = started(&|disk| disk.stop(operations));
            if result.is_ok() {
                assert!(operations >= 6, "{operations}");
                break;
            }
            for loss in 0..40 {
                let (mut rig, _) = started(&|disk| disk.stop(operations));
                match loss {
                    2 => rig.kill(),
                    loss => rig.crash_by(loss),
                }
                // A state that was finished cannot be told from that of a node that served.
                if let Err(error) = rig.try_start() {
                    assert_eq!(error.kind(), OpenErrorKind::StateExists, "{operations}");
                    assert!(operations >= 4, "{operations}: {error}");
                }
            }
        }
    }
}

/// [G3] Where the operator is to decide, an empty directory is no start, whatever is left of a making that was not finished.
#[test]
fn an_empty_directory_is_refused_where_a_state_is_needed() {
    for left in [None, Some(0), Some(8192)] {
        let mut rig = Rig::new();
        rig.settings.needs_state = true;
        if let Some(len) = left {
            rig.disk.put("state", &vec![0; len]);
        }
        refuses(&mut rig, OpenErrorKind::NoState, "state");
        rig.first_start();
        rig.kill();
        // With a state it is like any other start.
        rig.start();
        rig.kill();
        rig.lose_disk();
        refuses(&mut rig, OpenErrorKind::NoState, "state");
        rig.settings.needs_state = false;
        rig.start();
    }
}

/// [S3]
#[test]
fn random_bytes_are_no_state() {
    for len in [1, 100, 512, 4096, 8192, 10_000] {
        let mut state = 1_u32;
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        })
        .take(len)
        .collect();
        let mut image = Image::from([("state".to_owned(), bytes.clone())]);
        check(&image, OpenErrorKind::NotOurs, "state");
        image.insert("log-0000000000000001".to_owned(), Vec::new());
        check(&image, OpenErrorKind::Damaged, "state");
    }
}

/// [S3]
#[test]
fn two_damaged_slots_are_no_state() {
    let image = full_directory();
    for (first, second) in [(0, 0), (8, 511), (300, 20)] {
        let mut rig = Rig::new();
        rig.disk.restore(&image);
        rig.disk.flip("state", first);
        rig.disk.flip("state", 4096 + second);
        refuses(&mut rig, OpenErrorKind::Damaged, "state");
    }
}

/// [S3]
#[test]
fn files_without_a_state_are_no_empty_directory() {
    for kept in ["log-", "snapshot-"] {
        let mut image = full_directory();
        image.retain(|name, _| name.starts_with(kept));
        check(&image, OpenErrorKind::Missing, "state");
    }
    // A state of zeros beside other files is no state that was never finished.
    let mut image = full_directory();
    image.insert("state".to_owned(), vec![0; 8192]);
    check(&image, OpenErrorKind::Damaged, "state");
}

/// [G4]
#[test]
fn a_first_start_with_state_is_refused() {
    let image = full_directory();
    let mut rig = Rig::new();
    rig.settings.is_first_start = true;
    rig.disk.restore(&image);
    refuses(&mut rig, OpenErrorKind::StateExists, "state");
}

/// [L6]
#[test]
fn a_file_that_the_state_names_and_that_is_missing_is_told() {
    let image = full_directory();
    let logs = names(&image, "log-");
    let snapshots = names(&image, "snapshot-");
    assert_eq!((logs.len(), snapshots.len()), (2, 1));
    for name in logs.iter().chain(&snapshots) {
        let mut image = image.clone();
        image.remove(name);
        check(&image, OpenErrorKind::Missing, name);
    }
}

/// [L6]
#[test]
fn a_damaged_snapshot_is_told_at_every_byte() {
    let image = full_directory();
    let name = &names(&image, "snapshot-")[0];
    let len = image[name].len();
    // 128 of header; the batches' last four bytes of header, and what fills up to eight, are not checked.
    for at in 0..len {
        let mut rig = Rig::new();
        rig.disk.restore(&image);
        rig.disk.flip(name, at);
        if rig.try_start().is_ok() {
            assert!(rig.holds(b"kept"), "{at}");
            continue;
        }
        refuses(&mut rig, OpenErrorKind::Damaged, name);
    }
    for cut in 0..len {
        let mut image = image.clone();
        image.get_mut(name).unwrap().truncate(cut);
        check(&image, OpenErrorKind::Damaged, name);
    }
    let mut longer = image.clone();
    longer.get_mut(name).unwrap().push(0);
    check(&longer, OpenErrorKind::Damaged, name);
}

/// [S4]
#[test]
fn a_newer_format_is_not_touched() {
    let image = full_directory();
    for name in image.keys() {
        let mut image = image.clone();
        let bytes = image.get_mut(name).unwrap();
        let len = if name == "state" { 512 } else { 128 };
        bytes[8] = 5;
        let checksum = crc32(&bytes[..len - 4]);
        bytes[len - 4..len].copy_from_slice(&checksum.to_le_bytes());
        check(&image, OpenErrorKind::Newer, name);
    }
}

/// [L6] [S4]
#[test]
fn files_of_another_node_are_told() {
    let mut other = Rig::new();
    // Another node has another id.
    other.settings.is_first_start = true;
    other.disk.restore(&Image::new());
    let _ = other.try_start().unwrap();
    other.kill();
    let image = full_directory();
    let mut second = Rig::new();
    second.try_start().unwrap();
    second.kill();
    second.start();
    second.hold(b"x");
    let theirs = second.disk.snapshot();
    let logs = names(&image, "log-");
    let their_logs = names(&theirs, "log-");
    let mut mixed = image.clone();
    mixed.insert(logs[1].clone(), theirs[&their_logs[0]].clone());
    check(&mixed, OpenErrorKind::Damaged, &logs[1]);
}

/// [G13] A directory that cannot be read is no empty directory.
#[test]
fn an_error_of_the_system_is_told() {
    let mut rig = Rig::started();
    rig.crash(&mut keep_all);
    rig.disk.stop(0);
    let error = rig.try_start().unwrap_err();
    assert_eq!(error.kind(), OpenErrorKind::Io);
    assert!(std::error::Error::source(&error).is_some());
}

/// Bit by bit, and so independent of what the store uses.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & 0_u32.wrapping_sub(crc & 1))
        })
    })
}
