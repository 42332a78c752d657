//! Writes that are torn, syncs that fail, disks that are full: at every point of a script that grants, extends and releases.

use std::io::ErrorKind;
use std::time::Duration;

use locknode::StartReason;
use locknode_engine::durable::OpenErrorKind;
use locknode_tests::faulty_disk::{keep_all, keep_first, keep_none};
use locknode_tests::{Answer, NodeSettings, StoredNode};

use crate::promises::Promises;
use crate::{MINUTE, NANO, SECOND, always, node, settings, told};

/// Grants of every kind, extensions across the threshold, releases, raised counters.
const SCRIPT: [&str; 22] = [
    "SET short a NX PX 1000",
    "SET longer a NX PX 30000",
    "LOCK.ACQUIRE fenced a 2000",
    "SET hour a NX PX 3600000",
    "SET ever a NX",
    "LOCK.EXTEND short a 50000",
    "PEXPIRE longer 3600000",
    "PERSIST hour",
    "LOCK.ACQUIRE high a 3000 FLOOR 1887436803145728",
    "LOCK.RELEASE ever a",
    "SET ever b NX PX 5000",
    "SET many a",
    "DEL many",
    "SET many b NX",
    "SET short b XX PX 55000",
    "LOCK.EXTEND hour a 4000",
    "SET fenced b PX 7200000",
    "SELECT 1",
    "SET other a NX",
    "FLUSHDB",
    "SET other b NX PX 900",
    "SELECT 0",
];

/// Runs the script and notes what was told.
fn run(node: &mut StoredNode, promises: &mut Promises) {
    for request in SCRIPT {
        promises.send(node, request);
        promises.advance(node, Duration::from_millis(200));
    }
}

/// S14 [S2] [F2] [G5] [G6]: power is lost in the middle of every write, torn at every byte of it.
#[test]
fn a_write_torn_at_any_byte_loses_nothing_that_was_told() {
    for (settings, stride) in [(settings(), STRIDE), (always(), 4 * STRIDE)] {
        let writes = operations(&settings);
        for cut in 0..writes {
            // What is on the disk at the least, and what may be there on top of that.
            let crashed = |keep: &mut dyn FnMut(usize) -> usize| {
                let (node, promises) = cut_run(&settings, cut);
                node.disk().crash(keep);
                (node, promises)
            };
            let least = crashed(&mut keep_none).0.disk().snapshot();
            let most = crashed(&mut keep_all).0.disk().snapshot();
            if least == most {
                continue;
            }
            // Each byte is torn in one of the writes, all of which are alike.
            let mut bytes = usize::try_from(cut).unwrap() % stride;
            loop {
                let mut left = 0;
                let mut keep = keep_first(bytes);
                let (mut node, promises) = crashed(&mut |len| {
                    let kept = keep(len);
                    left += len - kept;
                    kept
                });
                check_start(
                    &mut node,
                    &promises,
                    &format!("{bytes} bytes of operation {cut}"),
                );
                if left == 0 {
                    break;
                }
                // Zeros that fill a segment are long; what is in a frame is short.
                bytes += if left > 2048 { 509 } else { stride };
            }
        }
    }
}

/// How many operations the script makes on the disk.
fn operations(settings: &NodeSettings) -> u64 {
    let mut node = StoredNode::first_start(settings.clone()).unwrap();
    let before = node.disk().operations();
    run(&mut node, &mut Promises::default());
    node.disk().operations() - before
}

/// A node whose process ended after `cut` operations of the script.
fn cut_run(settings: &NodeSettings, cut: u64) -> (StoredNode, Promises) {
    let mut node = StoredNode::first_start(settings.clone()).unwrap();
    let mut promises = Promises::default();
    node.disk().stop(cut);
    run(&mut node, &mut promises);
    (node, promises)
}

/// Starts the node and compares with what was told.
fn check_start(node: &mut StoredNode, promises: &Promises, name: &str) {
    node.start()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let name = format!("{name}: {:?} {:?}", node.guard(), node.durable());
    promises.check_start(node, &name);
    node.kill();
}

/// S14 [S3] [F4]: a slot that is damaged for good.
#[test]
fn a_damaged_slot_is_waited_for_in_full() {
    for slot in [0, 4096] {
        for offset in (0..500).step_by(3) {
            let mut node = node();
            let mut promises = Promises::default();
            promises.send(&mut node, "LOCK.ACQUIRE k a 30000");
            node.kill();
            node.disk().flip("state", slot + offset);
            node.start().unwrap();
            let left = node.quarantine_left();
            if offset < 12 && node.reason() != Some(StartReason::DamagedState) {
                panic!("{slot} {offset}: {:?}", node.reason());
            }
            promises.check_start(&mut node, &format!("{slot} {offset}"));
            assert_eq!(
                left.map(|left| left.as_millis()),
                Some(60_602),
                "{slot} {offset}"
            );
        }
    }
}

/// S14 [S3] [S4]: two damaged slots, or no state beside a log.
#[test]
fn a_state_that_is_gone_is_no_first_start() {
    type Damage = fn(&StoredNode);
    let rows: [(&str, Damage, OpenErrorKind); 3] = [
        (
            "both slots",
            |node| {
                node.disk().flip("state", 100);
                node.disk().flip("state", 4196);
            },
            OpenErrorKind::Damaged,
        ),
        (
            "no state",
            |node| {
                let mut image = node.disk().snapshot();
                image.remove("state");
                node.disk().restore(&image);
            },
            OpenErrorKind::Missing,
        ),
        (
            "not ours",
            |node| {
                node.disk().erase();
                node.disk().put("dump.rdb", b"REDIS0011");
            },
            OpenErrorKind::NotOurs,
        ),
    ];
    for (name, damage, kind) in rows {
        let mut node = node();
        assert_eq!(told(&mut node, "SET ever a NX"), "+OK");
        node.kill();
        damage(&node);
        let before = node.disk().snapshot();
        assert_eq!(node.start().unwrap_err().kind(), kind, "{name}");
        assert!(!node.is_up());
        assert_eq!(node.disk().snapshot(), before, "{name}: overwritten");
    }
}

/// S15 [G13]
#[test]
fn after_a_sync_that_failed_nothing_is_granted_and_nothing_untold_was_promised() {
    for settings in [settings(), always()] {
        let mut failed = 0;
        for count in 0.. {
            let mut node = StoredNode::first_start(settings.clone()).unwrap();
            let mut promises = Promises::default();
            assert_eq!(
                promises.send(&mut node, "SET first a NX PX 30000"),
                Some("+OK".to_owned())
            );
            node.disk().fail_sync(count);
            run(&mut node, &mut promises);
            let has_failed = node.guard().unwrap().state == locknode_engine::GuardState::Failed;
            if !has_failed {
                break;
            }
            failed += 1;
            let name = format!("sync {count}");
            // Grants of every kind are refused; a release of a lock with a TTL is served.
            let syncs = node.disk().syncs_total();
            for request in [
                "SET new a NX PX 1",
                "SET new a NX PX 3600000",
                "SET new a NX",
                "LOCK.ACQUIRE new a 10",
                "LOCK.EXTEND first a 10",
                "PEXPIRE first 10",
                "SET first a XX PX 10",
            ] {
                let reply = told(&mut node, request);
                assert!(reply.starts_with("-MISCONF "), "{name}: {request}: {reply}");
            }
            assert_eq!(told(&mut node, "EXISTS new"), ":0", "{name}");
            assert_eq!(told(&mut node, "LOCK.RELEASE first a"), ":1", "{name}");
            promises.advance(&mut node, MINUTE);
            assert_eq!(node.disk().syncs_total(), syncs, "{name}: tried again");
            promises.forget("first");
            // What the sync should have written is not on the disk, though it can be read.
            for crashes in [false, true] {
                let image = node.disk().snapshot();
                if crashes {
                    node.power_loss(count);
                } else {
                    node.kill();
                }
                check_start(&mut node, &promises, &name);
                if !crashes {
                    node.disk().restore(&image);
                }
            }
        }
        assert!(failed > 10, "{failed}: the script syncs more often");
    }
}

/// S15 [G13]: the reply that waited is not sent, and neither is one that waits for what comes after.
#[test]
fn a_reply_that_waited_for_the_sync_that_failed_is_lost() {
    let mut node = node();
    node.hold_disk();
    let first = node.send("SET ever a NX");
    let second = node.send("SET k a NX PX 30000");
    let (Answer::Withheld(first), Answer::Withheld(second)) = (first, second) else {
        panic!("told before it was durable");
    };
    node.disk().fail_sync(0);
    node.release_disk();
    assert_eq!(
        node.take_late(),
        [(first, Answer::Lost), (second, Answer::Lost)]
    );
    assert!(
        told(&mut node, "SET another a NX PX 1")
            .starts_with("-MISCONF writing to the data directory failed")
    );
}

/// S16 [G14]: from every point of the script on, and with every size.
#[test]
fn on_a_full_disk_what_is_durable_goes_on_and_room_heals_it() {
    for settings in [settings(), always()] {
        let end = operations(&settings);
        let mut full = 0;
        for cut in 0..end {
            let mut node = StoredNode::first_start(settings.clone()).unwrap();
            let mut promises = Promises::default();
            // Every sort of write that fails before anything was synced.
            node.disk()
                .fail_write(cut, ErrorKind::StorageFull, (cut % 7) as usize * 11);
            for request in SCRIPT {
                promises.send(&mut node, request);
                // One failed write, and then there is room: a waiting reply comes with the next look.
                promises.advance(&mut node, Duration::from_millis(200));
            }
            let state = node.guard().unwrap().state;
            assert_eq!(state, locknode_engine::GuardState::Serving, "{cut}");
            promises.advance(&mut node, SECOND);
            if promises.send(&mut node, "SET fresh a NX").is_none() {
                // The script writes no more often than that.
                break;
            }
            full += 1;
            check_start_after(&mut node, &promises, cut);
        }
        assert!(full > 10);
    }
}

fn check_start_after(node: &mut StoredNode, promises: &Promises, cut: u64) {
    node.power_loss(cut);
    check_start(node, promises, &format!("operation {cut}"));
}

/// S16 [G14]
#[test]
fn while_the_disk_is_full_shorter_locks_and_releases_are_served() {
    let mut node = node();
    assert_eq!(told(&mut node, "SET long a NX PX 30000"), "+OK");
    assert_eq!(told(&mut node, "SET hour a NX PX 3600000"), "+OK");
    assert_eq!(told(&mut node, "SET ever a NX"), "+OK");
    let bytes = node.disk().bytes();
    // No segment can be made, and the one that is there is full soon.
    node.disk().limit(Some(bytes));
    let mut index = 0;
    while node.guard().unwrap().state == locknode_engine::GuardState::Serving {
        let request = format!(
            "SET fill{index} aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa NX PX 3600000"
        );
        let _ = node.send(&request);
        index += 1;
        assert!(index < 200, "it is never full");
    }
    for request in [
        "SET x a NX",
        "SET x a NX PX 3600000",
        "PERSIST long",
        "PEXPIRE long 3600000",
    ] {
        let reply = told(&mut node, request);
        assert!(
            reply.starts_with("-MISCONF this lock cannot be made durable"),
            "{reply}"
        );
    }
    assert_eq!(told(&mut node, "EXISTS x"), ":0");
    for (request, want) in [
        ("SET short a NX PX 1000", "+OK"),
        ("LOCK.EXTEND short a 20000", ":1"),
        ("LOCK.RELEASE short a", ":1"),
        ("LOCK.RELEASE long a", ":1"),
        ("LOCK.RELEASE hour a", ":1"),
    ] {
        assert_eq!(told(&mut node, request), want, "{request}");
    }
    // The release of a lock without a TTL is only worth something when it is durable.
    let reply = told(&mut node, "LOCK.RELEASE ever a");
    assert!(
        reply.starts_with("-MISCONF this release cannot be made durable"),
        "{reply}"
    );
    node.disk().limit(None);
    node.advance(SECOND);
    assert_eq!(told(&mut node, "LOCK.RELEASE ever a"), ":1");
    assert_eq!(told(&mut node, "SET x a NX"), "+OK");
    node.reboot();
    node.start().unwrap();
    node.advance(node.quarantine_left().unwrap_or_default());
    assert_eq!(told(&mut node, "EXISTS ever"), ":0");
    assert_eq!(told(&mut node, "EXISTS x"), ":1");
}

/// S16 [G14]: a horizon that cannot be raised.
#[test]
fn while_the_horizon_cannot_be_raised_only_grants_within_it_are_made() {
    let mut node = node();
    let mut promises = Promises::default();
    assert_eq!(
        promises.send(&mut node, "SET first a NX PX 30000"),
        Some("+OK".to_owned())
    );
    for _ in 0..10 {
        // As long as it lasts.
        node.disk().fail_write(0, ErrorKind::StorageFull, 0);
        let _ = promises.send(&mut node, "SET second a NX PX 50000");
        node.disk().fail_write(0, ErrorKind::StorageFull, 0);
        let reply = told(&mut node, "SET third a NX PX 50000");
        assert!(reply.starts_with("-MISCONF "), "{reply}");
        node.disk().fail_write(0, ErrorKind::StorageFull, 0);
        assert_eq!(
            promises.send(&mut node, "SET short a PX 1000"),
            Some("+OK".to_owned())
        );
        node.disk().fail_write(0, ErrorKind::StorageFull, 0);
        promises.advance(&mut node, SECOND);
    }
    node.kill();
    node.start().unwrap();
    promises.check_start(&mut node, "full");
}

/// S13 S14 [L6]
#[test]
fn a_log_or_snapshot_that_is_gone_or_damaged_is_no_empty_one() {
    for stops in [false, true] {
        let mut node = node();
        assert_eq!(told(&mut node, "SET ever a NX"), "+OK");
        assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
        if stops {
            node.clean_stop().unwrap();
        }
        node.kill();
        let image = node.disk().snapshot();
        let prefix = if stops { "snapshot-" } else { "log-" };
        let name = image.keys().find(|name| name.starts_with(prefix)).unwrap();
        let mut without = image.clone();
        without.remove(name);
        node.disk().restore(&without);
        let error = node.start().unwrap_err();
        assert_eq!(
            (error.kind(), error.file()),
            (OpenErrorKind::Missing, &name[..])
        );
        if stops {
            // Its end is what tells a whole snapshot from one that was cut.
            for len in 0..image[name].len() {
                let mut cut = image.clone();
                cut.insert(name.clone(), image[name][..len].to_vec());
                node.disk().restore(&cut);
                let error = node.start().unwrap_err();
                assert_eq!(
                    (error.kind(), error.file()),
                    (OpenErrorKind::Damaged, &name[..])
                );
            }
        }
        node.disk().restore(&image);
        node.disk().flip(name, 40);
        let error = node.start().unwrap_err();
        assert_eq!(
            (error.kind(), error.file()),
            (OpenErrorKind::Damaged, &name[..])
        );
        node.disk().restore(&image);
        node.start().unwrap();
        assert_eq!(node.quarantine_left().is_none(), stops);
        node.advance(node.quarantine_left().unwrap_or_default());
        assert_eq!(told(&mut node, "GET ever"), "$1 a");
    }
}

/// S14 [L5]
#[test]
fn a_torn_end_of_the_log_is_dropped_and_damage_before_it_is_told() {
    let mut node = node();
    for key in ["one", "two", "three"] {
        assert_eq!(told(&mut node, &format!("SET {key} a NX")), "+OK");
    }
    node.kill();
    let image = node.disk().snapshot();
    let (name, bytes) = image
        .iter()
        .find(|(name, _)| name.starts_with("log-"))
        .unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let places: Vec<usize> = [&b"one"[..], b"two", b"three"]
        .iter()
        .map(|key| bytes.windows(key.len()).position(|it| it == *key).unwrap())
        .collect();
    for offset in 128..=end {
        node.disk().restore(&image);
        node.disk().flip(name, offset);
        // Every byte of the last batch, which begins somewhere before its key, may be torn; those before may not.
        match node.start() {
            Ok(()) => {
                let is_torn = node.reason() == Some(StartReason::DroppedBatch);
                if is_torn {
                    let answer = told(&mut node, "EXISTS one two three");
                    assert!(answer.starts_with("-LOADING"), "{offset}: {answer}");
                    let wait = node.quarantine_left().unwrap();
                    node.advance(wait + NANO);
                }
                let held = told(&mut node, "EXISTS one two three");
                // Bytes that only fill up mean nothing.
                assert_eq!(held, if is_torn { ":2" } else { ":3" }, "{offset}");
                assert!(offset > places[1] || !is_torn, "{offset}");
            }
            Err(error) => {
                assert!(offset < places[2], "{offset}: {error}");
                assert_eq!(error.kind(), OpenErrorKind::Damaged);
                assert_eq!(error.file(), name);
            }
        }
    }
    // From where on one falls to the other is the end of the second batch.
    node.disk().restore(&image);
    node.disk().flip(name, places[1]);
    assert!(node.start().is_err());
    node.disk().restore(&image);
    node.disk().flip(name, places[2]);
    node.start().unwrap();
    let wait = node.quarantine_left().unwrap();
    node.advance(wait + NANO);
    assert_eq!(told(&mut node, "EXISTS three"), ":0");
}

/// S14 [L5]: the end of one segment, with whole batches in the next.
#[test]
fn a_batch_that_is_missing_between_segments_is_damage() {
    let mut node = node();
    for index in 10..90 {
        assert_eq!(told(&mut node, &format!("SET key{index} a NX")), "+OK");
    }
    node.kill();
    let mut image = node.disk().snapshot();
    let mut logs = image
        .iter_mut()
        .filter(|(name, _)| name.starts_with("log-"));
    let (name, bytes) = logs.next().unwrap();
    let name = name.clone();
    assert!(logs.next().is_some(), "one segment");
    let last = (10..90)
        .filter_map(|index| {
            let key = format!("key{index}");
            bytes.windows(5).rposition(|it| it == key.as_bytes())
        })
        .max()
        .unwrap();
    // The headers of a batch and of a record are before the key.
    bytes[last - 81..].fill(0);
    node.disk().restore(&image);
    let error = node.start().unwrap_err();
    assert_eq!(error.kind(), OpenErrorKind::Damaged);
    assert_eq!(error.file(), name);
}

/// S16 [L3]: what is tried again comes before what was asked for since.
#[test]
fn what_a_full_disk_refused_is_written_in_its_order() {
    let mut node = node();
    assert_eq!(told(&mut node, "SET first a NX"), "+OK");
    node.hold_disk();
    assert!(matches!(node.send("SET k a NX"), Answer::Withheld(_)));
    assert!(matches!(node.send("LOCK.RELEASE k a"), Answer::Withheld(_)));
    node.disk().fail_write(0, ErrorKind::StorageFull, 9);
    node.release_disk();
    assert!(
        node.take_late()
            .iter()
            .all(|(_, answer)| *answer == Answer::Lost)
    );
    node.advance(SECOND);
    assert_eq!(told(&mut node, "SET last a NX"), "+OK");
    node.reboot();
    node.start().unwrap();
    assert_eq!(told(&mut node, "EXISTS first"), ":1");
    assert_eq!(told(&mut node, "EXISTS k"), ":0");
    assert_eq!(told(&mut node, "EXISTS last"), ":1");
}

/// S15 [L5]: what a failed sync left can be read by the next run, which goes on behind it; so it has to make it durable.
#[test]
fn what_is_found_and_gone_on_from_is_durable() {
    for settings in [settings(), always()] {
        for fails in 0..3 {
            let mut node = StoredNode::first_start(settings.clone()).unwrap();
            assert_eq!(told(&mut node, "SET ever a NX"), "+OK");
            node.disk().fail_sync(fails);
            for index in 0..4 {
                let _ = node.send(&format!("SET found{index} a NX"));
            }
            node.kill();
            node.start().unwrap();
            let found = told(&mut node, "EXISTS found0 found1 found2 found3");
            assert_eq!(told(&mut node, "SET later a NX"), "+OK");
            node.reboot();
            node.start().unwrap();
            assert_eq!(told(&mut node, "EXISTS ever later"), ":2");
            assert_eq!(told(&mut node, "EXISTS found0 found1 found2 found3"), found);
        }
    }
}

/// S14 [L4] [F2]: replies of one sync leave together, and none before it.
#[test]
fn replies_wait_for_one_sync_together() {
    let mut node = StoredNode::first_start(always()).unwrap();
    assert_eq!(told(&mut node, "SET warm a NX PX 1000"), "+OK");
    node.hold_disk();
    assert!(matches!(
        node.send("SET first a NX PX 1000"),
        Answer::Withheld(_)
    ));
    for index in 0..20 {
        let request = format!("SET k{index} a NX PX 1000");
        assert!(matches!(node.send(&request), Answer::Withheld(_)));
    }
    let batches = node.figures().unwrap().batches;
    node.release_disk();
    assert_eq!(
        node.figures().unwrap().batches - batches,
        2,
        "the one under way, and one"
    );
    assert_eq!(node.take_late().len(), 21);
}

/// [G8]: no reply waits in steady state, though the disk takes a tenth of a second for each sync.
#[test]
fn a_slow_disk_holds_no_short_lock_up() {
    let mut node = node();
    assert_eq!(told(&mut node, "SET k a PX 10000"), "+OK");
    let syncs = node.disk().syncs_total();
    for _ in 0..600 {
        node.hold_disk();
        assert_eq!(told(&mut node, "SET k a PX 10000"), "+OK");
        node.advance(SECOND / 10);
        node.release_disk();
    }
    let syncs = node.disk().syncs_total() - syncs;
    assert!(syncs <= 62, "{syncs} in a minute");
}

/// Bytes between two tears of one write.
const STRIDE: usize = 13;
