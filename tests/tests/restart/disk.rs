//! Writes that are torn, syncs that fail, disks that are full: at every point of a script that grants, extends and releases.

use std::io::ErrorKind;
use std::time::Duration;

use locknode_engine::GuardState;
use locknode_tests::faulty_disk::{keep_all, keep_first, keep_none};
use locknode_tests::{Answer, NodeSettings, StoredNode};

use crate::promises::Promises;
use crate::{MINUTE, SECOND, always, holding, node, settings};

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
                node.disk.crash(keep);
                (node, promises)
            };
            let least = crashed(&mut keep_none).0.disk.snapshot();
            let most = crashed(&mut keep_all).0.disk.snapshot();
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
                let name = format!("{bytes} bytes of operation {cut}");
                check_start(&mut node, &promises, &name);
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
    let mut node = StoredNode::first_start(settings.clone());
    let before = node.disk.operations();
    run(&mut node, &mut Promises::default());
    node.disk.operations() - before
}

/// A node whose process ended after `cut` operations of the script.
fn cut_run(settings: &NodeSettings, cut: u64) -> (StoredNode, Promises) {
    let mut node = StoredNode::first_start(settings.clone());
    let mut promises = Promises::default();
    node.disk.stop(cut);
    run(&mut node, &mut promises);
    (node, promises)
}

/// Starts the node and compares with what was told.
fn check_start(node: &mut StoredNode, promises: &Promises, name: &str) {
    let started = node.open(false);
    started.unwrap_or_else(|error| panic!("{name}: {error}"));
    let name = format!("{name}: {:?} {:?}", node.guard(), node.durable());
    promises.check_start(node, &name);
    node.kill();
}

/// S15 [G13]
#[test]
fn after_a_sync_that_failed_nothing_is_granted_and_nothing_untold_was_promised() {
    for settings in [settings(), always()] {
        let mut failed = 0;
        for count in 0.. {
            let mut node = StoredNode::first_start(settings.clone());
            let mut promises = Promises::default();
            promises.expect_ok(&mut node, "SET first a NX PX 30000");
            node.disk.fail_sync(count);
            run(&mut node, &mut promises);
            if node.guard().state != GuardState::Failed {
                break;
            }
            failed += 1;
            let name = format!("sync {count}");
            // Grants of every kind are refused; a release of a lock with a TTL is served.
            let syncs = node.disk.syncs_total();
            for request in [
                "SET new a NX PX 1",
                "SET new a NX PX 3600000",
                "SET new a NX",
                "LOCK.ACQUIRE new a 10",
                "LOCK.EXTEND first a 10",
                "PEXPIRE first 10",
                "SET first a XX PX 10",
            ] {
                node.expect_start(request, "-MISCONF ");
            }
            assert_eq!(node.reply("EXISTS new"), ":0", "{name}");
            assert_eq!(node.reply("LOCK.RELEASE first a"), ":1", "{name}");
            promises.advance(&mut node, MINUTE);
            assert_eq!(node.disk.syncs_total(), syncs, "{name}: tried again");
            promises.forget("first");
            // What the sync should have written is not on the disk, though it can be read.
            let image = node.disk.snapshot();
            node.kill();
            check_start(&mut node, &promises, &name);
            node.disk.restore(&image);
            node.power_loss(count);
            check_start(&mut node, &promises, &name);
        }
        assert!(failed > 10, "{failed}: the script syncs more often");
    }
}

/// S15 [G13]: the reply that waited is not sent, and neither is one that waits for what comes after.
#[test]
fn a_reply_that_waited_for_the_sync_that_failed_is_lost() {
    let mut node = node();
    node.hold_disk();
    let requests = ["SET ever a NX", "SET k a NX PX 30000"];
    let lost = requests.map(|request| (node.expect_withheld(request), Answer::Lost));
    node.disk.fail_sync(0);
    node.release_disk();
    assert_eq!(node.take_late(), lost);
    let failed = "-MISCONF writing to the data directory failed";
    node.expect_start("SET another a NX PX 1", failed);
}

/// S16 [G14]: from every point of the script on, and with every size.
#[test]
fn on_a_full_disk_what_is_durable_goes_on_and_room_heals_it() {
    for settings in [settings(), always()] {
        let end = operations(&settings);
        let mut full = 0;
        for cut in 0..end {
            let mut node = StoredNode::first_start(settings.clone());
            let mut promises = Promises::default();
            // Every sort of write that fails before anything was synced.
            let written = (cut % 7) as usize * 11;
            node.disk.fail_write(cut, ErrorKind::StorageFull, written);
            // One failed write, and then there is room: a waiting reply comes with the next look.
            run(&mut node, &mut promises);
            assert_eq!(node.guard().state, GuardState::Serving, "{cut}");
            promises.advance(&mut node, SECOND);
            if promises.send(&mut node, "SET fresh a NX").is_none() {
                // The script writes no more often than that.
                break;
            }
            full += 1;
            node.power_loss(cut);
            check_start(&mut node, &promises, &format!("operation {cut}"));
        }
        assert!(full > 10);
    }
}

/// S16 [G14]
#[test]
fn while_the_disk_is_full_shorter_locks_and_releases_are_served() {
    let mut node = holding(&[
        "SET long a NX PX 30000",
        "SET hour a NX PX 3600000",
        "SET ever a NX",
    ]);
    let bytes = node.disk.bytes();
    // No segment can be made, and the one that is there is full soon.
    node.disk.limit(Some(bytes));
    let mut index = 0;
    while node.guard().state == GuardState::Serving {
        let token = "a".repeat(52);
        let _ = node.send(&format!("SET fill{index} {token} NX PX 3600000"));
        index += 1;
        assert!(index < 200, "it is never full");
    }
    for request in [
        "SET x a NX",
        "SET x a NX PX 3600000",
        "PERSIST long",
        "PEXPIRE long 3600000",
    ] {
        node.expect_start(request, "-MISCONF this lock cannot be made durable");
    }
    node.expect("EXISTS x", ":0");
    for (request, want) in [
        ("SET short a NX PX 1000", "+OK"),
        ("LOCK.EXTEND short a 20000", ":1"),
        ("LOCK.RELEASE short a", ":1"),
        ("LOCK.RELEASE long a", ":1"),
        ("LOCK.RELEASE hour a", ":1"),
    ] {
        node.expect(request, want);
    }
    // The release of a lock without a TTL is only worth something when it is durable.
    let refused = "-MISCONF this release cannot be made durable";
    node.expect_start("LOCK.RELEASE ever a", refused);
    node.disk.limit(None);
    node.advance(SECOND);
    node.expect("LOCK.RELEASE ever a", ":1");
    node.expect("SET x a NX", "+OK");
    node.restart(StoredNode::reboot);
    node.wait();
    node.expect("EXISTS ever", ":0");
    node.expect("EXISTS x", ":1");
}

/// S16 [G14]: a horizon that cannot be raised.
#[test]
fn while_the_horizon_cannot_be_raised_only_grants_within_it_are_made() {
    let mut node = node();
    let mut promises = Promises::default();
    promises.expect_ok(&mut node, "SET first a NX PX 30000");
    // As long as it lasts.
    let fill = |node: &StoredNode| node.disk.fail_write(0, ErrorKind::StorageFull, 0);
    for _ in 0..10 {
        fill(&node);
        let _ = promises.send(&mut node, "SET second a NX PX 50000");
        fill(&node);
        node.expect_start("SET third a NX PX 50000", "-MISCONF ");
        fill(&node);
        promises.expect_ok(&mut node, "SET short a PX 1000");
        fill(&node);
        promises.advance(&mut node, SECOND);
    }
    node.restart(StoredNode::kill);
    promises.check_start(&mut node, "full");
}

/// S16 [L3]: what is tried again comes before what was asked for since.
#[test]
fn what_a_full_disk_refused_is_written_in_its_order() {
    let mut node = holding(&["SET first a NX"]);
    node.hold_disk();
    node.expect_withheld("SET k a NX");
    node.expect_withheld("LOCK.RELEASE k a");
    node.disk.fail_write(0, ErrorKind::StorageFull, 9);
    node.release_disk();
    let late = node.take_late();
    assert!(late.iter().all(|(_, answer)| *answer == Answer::Lost));
    node.advance(SECOND);
    node.expect("SET last a NX", "+OK");
    node.restart(StoredNode::reboot);
    node.expect("EXISTS first", ":1");
    node.expect("EXISTS k", ":0");
    node.expect("EXISTS last", ":1");
}

/// S15 [L5]: what a failed sync left can be read by the next run, which goes on behind it; so it has to make it durable.
#[test]
fn what_is_found_and_gone_on_from_is_durable() {
    for settings in [settings(), always()] {
        for fails in 0..3 {
            let mut node = StoredNode::first_start(settings.clone());
            node.expect("SET ever a NX", "+OK");
            node.disk.fail_sync(fails);
            for index in 0..4 {
                let _ = node.send(&format!("SET found{index} a NX"));
            }
            node.restart(StoredNode::kill);
            let found = node.reply("EXISTS found0 found1 found2 found3");
            node.expect("SET later a NX", "+OK");
            node.restart(StoredNode::reboot);
            node.expect("EXISTS ever later", ":2");
            node.expect("EXISTS found0 found1 found2 found3", &found);
        }
    }
}

/// S14 [L4] [F2]: replies of one sync leave together, and none before it.
#[test]
fn replies_wait_for_one_sync_together() {
    let mut node = StoredNode::first_start(always());
    node.expect("SET warm a NX PX 1000", "+OK");
    node.hold_disk();
    node.expect_withheld("SET first a NX PX 1000");
    for index in 0..20 {
        node.expect_withheld(&format!("SET k{index} a NX PX 1000"));
    }
    let batches = node.figures().batches;
    node.release_disk();
    // The one under way, and one.
    assert_eq!(node.figures().batches - batches, 2);
    assert_eq!(node.take_late().len(), 21);
}

/// [G8]: no reply waits in steady state, though the disk takes a tenth of a second for each sync.
#[test]
fn a_slow_disk_holds_no_short_lock_up() {
    let mut node = holding(&["SET k a PX 10000"]);
    let syncs = node.disk.syncs_total();
    for _ in 0..600 {
        node.hold_disk();
        node.expect("SET k a PX 10000", "+OK");
        node.advance(SECOND / 10);
        node.release_disk();
    }
    let syncs = node.disk.syncs_total() - syncs;
    assert!(syncs <= 62, "{syncs} in a minute");
}

/// Bytes between two tears of one write.
const STRIDE: usize = 13;
