//! Replies that tell of a lock, or of its absence, while the change that made it so is not durable: they wait, whoever
//! asks and however, and are told only what a crash cannot take back.

use std::io::ErrorKind;

use locknode_tests::{Answer, StoredNode};

use crate::{RELEASE_BY_SCRIPT, SECOND, always, holding, settings};

/// Requests that tell whether, by whom or for how long `k` is held by `a` without changing it.
const LOOKS: [&str; 30] = [
    "GET k",
    "MGET other k",
    "STRLEN k",
    "GETRANGE k 0 -1",
    "DIGEST k",
    "EXISTS k",
    "TOUCH k",
    "TYPE k",
    "TTL k",
    "PTTL k",
    "EXPIRETIME k",
    "PEXPIRETIME k",
    "LOCK.GET k",
    "KEYS *",
    "SCAN 0",
    "DBSIZE",
    "RANDOMKEY",
    "INFO",
    "SET k b NX PX 1000",
    "SET k b NX GET PX 1000",
    "SETNX k b",
    "MSETNX k b",
    "SET k b IFEQ c",
    "LOCK.ACQUIRE k b 1000",
    "LOCK.EXTEND k b 1000",
    "LOCK.RELEASE k b",
    "LOCK.FENCE k b 1 1",
    "DELIFEQ k b",
    "EVAL return{redis.call('get',KEYS[1])} 1 k",
    "EVAL_RO return{redis.call('exists',KEYS[1])} 1 k",
];

/// Locks of every kind.
const HELD: [&str; 3] = [
    "SET ever a NX",
    "SET hour a NX PX 3600000",
    "SET short a NX PX 30000",
];

/// Requests that touch no key.
const ELSEWHERE: [&str; 6] = [
    "PING",
    "ECHO hello",
    "TIME",
    "CLIENT ID",
    "CONFIG GET maxmemory",
    "COMMAND COUNT",
];

/// [G17] [L1] [G5] [G6]
#[test]
fn what_is_not_durable_is_told_to_nobody() {
    let release = RELEASE_BY_SCRIPT.replace(" k a", " k b");
    for (settings, grant) in [
        (always(), "SET k a NX PX 30000"),
        (settings(), "SET k a NX PX 3600000"),
        (settings(), "SET k a NX"),
        // Beyond the durable horizon: it rides on the guard.
        (settings(), "SET k a NX PX 30000"),
    ] {
        for look in LOOKS.into_iter().chain([&*release]) {
            let mut node = StoredNode::first_start(settings.clone());
            node.hold_disk();
            node.expect_withheld(grant);
            for request in ELSEWHERE {
                let _ = node.reply(request);
            }
            node.expect_withheld(look);
            node.release_disk();
            assert_eq!(node.take_late().len(), 2, "{grant}, {look}");
            node.hold_disk();
            let answer = node.send(look);
            let is_sent = matches!(answer, Answer::Reply(_)) || look.starts_with("SET k b IFEQ");
            assert!(is_sent, "{grant}, {look}: {answer:?} though all is durable");
        }
    }
}

/// [G17] [L1]: what nobody was told may be lost in a crash.
#[test]
fn a_lock_that_was_seen_is_there_after_a_crash() {
    let mut node = StoredNode::first_start(always());
    node.hold_disk();
    node.expect_withheld("SET k a NX PX 30000");
    node.expect_withheld("GET k");
    node.restart(StoredNode::reboot);
    node.expect("SET k b NX PX 30000", "+OK");
    node.expect("GET k", "$1 b");
    node.restart(StoredNode::reboot);
    node.expect("GET k", "$1 b");
}

/// [G17] [L3]: the absence of a lock without a TTL rests on its release.
#[test]
fn a_release_that_has_to_be_durable_is_told_to_nobody_before() {
    for (settings, next) in [
        (settings(), "SET k b NX PX 100"),
        (settings(), "EXISTS k"),
        (settings(), "LOCK.RELEASE k a"),
        (always(), "GET k"),
    ] {
        let mut node = StoredNode::first_start(settings);
        node.expect_ok(&["SET warm a NX PX 30000", "SET k a NX"]);
        node.hold_disk();
        node.expect_withheld("LOCK.RELEASE k a");
        node.expect_withheld(next);
    }
}

/// [G17] [L3]: the release of a lock with a TTL waits for nothing, not even for what others wait for.
#[test]
fn a_release_that_may_come_back_waits_for_nobody() {
    for release in [
        "DEL k",
        "UNLINK k",
        "LOCK.RELEASE k a",
        "DELIFEQ k a",
        "DELEX k IFEQ a",
        RELEASE_BY_SCRIPT,
    ] {
        let mut node = StoredNode::first_start(always());
        // A script is known from its first call on.
        node.expect(RELEASE_BY_SCRIPT, ":0");
        node.expect("SET k a NX PX 30000", "+OK");
        node.hold_disk();
        node.expect_withheld("SET other a NX PX 30000");
        node.expect(release, ":1");
    }
}

/// [G8]: a lock that rides on the guard is told of at once while the horizon is raised ahead of need.
#[test]
fn in_steady_state_no_look_waits() {
    let mut node = holding(&["SET k a PX 10000"]);
    for _ in 0..100 {
        node.hold_disk();
        node.expect("SET k a PX 10000", "+OK");
        node.expect("GET k", "$1 a");
        node.advance(SECOND / 10);
        node.release_disk();
    }
}

/// [G13]: what a failed sync left behind is told to nobody; everything else is.
#[test]
fn after_a_failed_sync_only_what_it_left_behind_is_not_told() {
    let mut node = StoredNode::first_start(always());
    node.expect("SET sure a NX PX 30000", "+OK");
    node.disk.fail_sync(0);
    assert_eq!(node.send("SET k a NX PX 30000"), Answer::Lost);
    for look in ["GET k", "SET k b NX PX 1", "LOCK.RELEASE k b", "KEYS *"] {
        assert_eq!(node.send(look), Answer::Lost, "{look}");
    }
    for (look, want) in [
        ("GET sure", "$1 a"),
        ("LOCK.RELEASE sure b", ":0"),
        ("SET sure b NX PX 1", "$-1"),
        ("LOCK.RELEASE k a", ":1"),
        ("LOCK.RELEASE sure a", ":1"),
        ("LOCK.RELEASE nothing a", ":0"),
    ] {
        node.expect(look, want);
    }
    node.expect_start("INFO persistence", "$");
}

/// [G14]: what found the disk full is told to nobody; what needs no log goes on.
#[test]
fn on_a_full_disk_only_what_it_refused_is_not_told() {
    let mut node = holding(&HELD);
    let refuse = |node: &StoredNode| node.disk.fail_write(0, ErrorKind::StorageFull, 0);
    refuse(&node);
    assert_eq!(node.send("SET k a NX"), Answer::Lost);
    for (request, want) in [
        ("SET free a NX PX 1000", "+OK"),
        ("SET short b NX PX 1000", "$-1"),
        ("GET ever", "$1 a"),
        ("LOCK.RELEASE short a", ":1"),
        ("LOCK.RELEASE hour b", ":0"),
    ] {
        refuse(&node);
        node.expect(request, want);
    }
    for look in ["GET k", "SET k b NX PX 1000", "DBSIZE"] {
        refuse(&node);
        assert_eq!(node.send(look), Answer::Lost, "{look}");
    }
}

/// [G14] [L3]: a change that would have to be on the log is refused before anything is changed.
#[test]
fn what_a_full_or_failed_disk_cannot_keep_is_refused_and_changes_nothing() {
    let release = RELEASE_BY_SCRIPT.replace(" k a", " ever a");
    let refused = [
        "DEL ever",
        "DEL short ever",
        "UNLINK ever",
        "DELEX ever",
        "DELIFEQ ever a",
        "GETDEL ever",
        "LOCK.RELEASE ever a",
        "PEXPIREAT ever 1",
        "GETEX ever PXAT 1",
        "SET ever b PXAT 1",
        "MSETEX 1 ever b PXAT 1",
        "EVAL return{redis.call('del',KEYS[1])} 1 ever",
        &release,
        "FLUSHALL",
        "FLUSHDB",
        // Overwriting or shortening it would have to be on the log as well.
        "SET ever b PX 1000",
        "PEXPIRE ever 1000",
        "LOCK.EXTEND hour a 1000",
        "GETEX hour PX 1000",
    ];
    for is_full in [true, false] {
        for request in refused {
            let mut node = holding(&HELD);
            let refuse = |node: &StoredNode| {
                if is_full {
                    node.disk.fail_write(0, ErrorKind::StorageFull, 0)
                } else {
                    node.disk.fail_sync(0)
                }
            };
            refuse(&node);
            assert_eq!(node.send("SET k a NX"), Answer::Lost);
            refuse(&node);
            let reply = node.reply(request);
            assert!(reply.contains("MISCONF"), "{request}: {reply}");
            for key in ["ever", "hour", "short"] {
                refuse(&node);
                let found = node.reply(&format!("GET {key}"));
                assert_eq!(found, "$1 a", "{request}: {key}");
            }
        }
    }
}
