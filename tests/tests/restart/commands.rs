//! Late, repeated and foreign extensions and releases: by the plain commands, the scripts of lock libraries, and LOCK.

use std::time::Duration;

use locknode_tests::StoredNode;

use crate::{EXTEND_BY_SCRIPT, FALLS, MINUTE, NANO, RELEASE_BY_SCRIPT, SECOND};
use crate::{holding, node, node_with};

const RELEASES: [&str; 4] = [
    "LOCK.RELEASE k a",
    "DELEX k IFEQ a",
    "DELIFEQ k a",
    RELEASE_BY_SCRIPT,
];

const EXTENSIONS: [&str; 3] = [
    "LOCK.EXTEND k a 60000",
    "SET k a IFEQ a PX 60000",
    EXTEND_BY_SCRIPT,
];

fn is_refused(reply: &str) -> bool {
    reply == ":0" || reply == "$-1"
}

#[track_caller]
fn expect_refused(node: &mut StoredNode, request: &str) {
    let reply = node.reply(request);
    assert!(is_refused(&reply), "{request}: {reply}");
}

/// A new node, and one that has seen the request before: it runs a script that it knows as one operation on the table, a
/// new one in the evaluator.
fn new_and_knowing(request: &str) -> [StoredNode; 2] {
    let mut knowing = node();
    knowing.reply(request);
    knowing.reply("DEL k");
    [node(), knowing]
}

/// S31
#[test]
fn an_extension_that_comes_after_the_release_creates_nothing() {
    for extension in EXTENSIONS {
        for passed in [Duration::ZERO, 30 * SECOND + NANO] {
            let mut node = holding(&["SET k a NX PX 30000"]);
            node.advance(passed);
            node.reply("LOCK.RELEASE k a");
            expect_refused(&mut node, extension);
            assert_eq!(node.reply("EXISTS k"), ":0", "{extension}");
        }
    }
}

/// S31: nor the plain commands that extend, on a node that restarted.
#[test]
fn no_extension_brings_a_lost_lock_back() {
    for request in [
        "PEXPIRE k 30000",
        "EXPIRE k 30",
        "SET k a XX PX 30000",
        "GETEX k PX 30000",
        "PERSIST k",
    ] {
        let mut node = holding(&["SET k a NX PX 30000"]);
        node.restart(StoredNode::kill);
        assert!(node.is_loading(request));
        node.wait();
        expect_refused(&mut node, request);
        assert_eq!(node.reply("EXISTS k"), ":0", "{request}");
    }
}

/// S32 S34
#[test]
fn a_request_by_one_whose_lock_has_ended_leaves_the_next_holder_alone() {
    for request in RELEASES.into_iter().chain(EXTENSIONS) {
        for mut node in new_and_knowing(request) {
            node.expect("SET k a NX PX 1000", "+OK");
            node.advance(SECOND + NANO);
            node.expect("SET k b NX PX 2000", "+OK");
            expect_refused(&mut node, request);
            let held = node.reply("LOCK.GET k");
            assert!(held.starts_with("*4 $1 b :2000 "), "{request}: {held}");
        }
    }
}

/// S34 [G5] [G6] [L1]: every way to extend is a grant, which is waited for or on the log.
#[test]
fn a_lock_that_was_extended_is_waited_for_to_its_new_end() {
    let plain = [
        "PEXPIRE k 60000",
        "EXPIRE k 60",
        "PEXPIREAT k 1800000060000",
        "SET k a XX PX 60000",
        "SET k a PXAT 1800000060000",
        "GETEX k PX 60000",
        "PSETEX k 60000 a",
        "SETEX k 60 a",
    ];
    for extension in EXTENSIONS.into_iter().chain(plain) {
        for how in FALLS {
            for mut node in new_and_knowing(extension) {
                node.expect("SET k a NX PX 1000", "+OK");
                let reply = node.reply(extension);
                assert!(!is_refused(&reply), "{extension}: {reply}");
                node.restart(how);
                let left = node.quarantine_left().unwrap();
                assert!(left > MINUTE, "{extension}: {left:?}");
            }
        }
    }
}

/// S34 [L1] [L3]: across the threshold, in both directions.
#[test]
fn a_lock_that_was_extended_beyond_max_ttl_survives_a_crash() {
    let by_script = EXTEND_BY_SCRIPT.replace("60000", "3600000");
    for extension in [
        "PEXPIRE k 3600000",
        "PERSIST k",
        "SET k a XX PX 3600000",
        "SET k a",
        "GETEX k PERSIST",
        "LOCK.EXTEND k a 3600000",
        &by_script,
        "MSET k a",
        "GETSET k a",
    ] {
        let mut node = holding(&["SET k a NX PX 1000"]);
        let reply = node.reply(extension);
        let is_done = !is_refused(&reply) && !reply.starts_with('-');
        assert!(is_done, "{extension}: {reply}");
        node.restart(StoredNode::reboot);
        node.wait();
        assert_eq!(node.reply("GET k"), "$1 a", "{extension}");
        // And down again: the shorter end counts.
        node.expect("LOCK.EXTEND k a 5000", ":1");
        node.restart(StoredNode::kill);
        node.advance(5 * SECOND + NANO);
        node.wait();
        assert_eq!(node.reply("EXISTS k"), ":0", "{extension}");
    }
}

/// S47
#[test]
fn a_node_without_memory_refuses_and_forgets_nothing() {
    // Some locks more than a node without any needs.
    let mut node = node_with(|it| it.options.maxmemory = 140_000);
    let mut held = 0;
    while node.reply(&format!("SET k{held} a NX PX 30000")) == "+OK" {
        held += 1;
        assert!(held < 3000, "it never ends");
    }
    let reply = node.reply("LOCK.ACQUIRE another a 1000");
    assert!(reply.starts_with("-OOM "), "{reply}");
    for index in 0..held {
        node.expect(&format!("GET k{index}"), "$1 a");
        node.expect(&format!("LOCK.EXTEND k{index} a 30000"), ":1");
    }
    node.expect("LOCK.RELEASE k0 a", ":1");
}

/// S47 [L3]
#[test]
fn what_was_flushed_stays_away_after_a_crash() {
    for flush in ["FLUSHALL", "FLUSHDB"] {
        for how in FALLS {
            let mut node = holding(&["SET ever a NX", "SELECT 1", "SET other a NX", "SELECT 0"]);
            node.hold_disk();
            node.expect_withheld(flush);
            node.release_disk();
            assert_eq!(node.take_late().len(), 1);
            node.expect("SET later a NX", "+OK");
            node.restart(how);
            node.expect("EXISTS ever", ":0");
            node.expect("EXISTS later", ":1");
            node.expect("SELECT 1", "+OK");
            let others = if flush == "FLUSHALL" { ":0" } else { ":1" };
            assert_eq!(node.reply("EXISTS other"), others, "{flush}");
        }
    }
}
