//! Locks on the log: what was told of them holds over every crash, and what was taken off the log stays off.

use std::time::Duration;

use locknode_engine::durable::Durability;
use locknode_tests::{Answer, StoredNode};

use crate::{FALLS, HOUR, MINUTE, NANO, SECOND, holding, node, node_with};

/// Requests that must not be answered before their record is durable, what makes them possible, and what is held after them.
const AWAITED: [(&[&str], &str, &str); 15] = [
    (&[], "SET k a NX", "$1 a"),
    (&[], "SET k a NX PX 3600000", "$1 a"),
    (&[], "SETNX k a", "$1 a"),
    (&[], "MSET k a j b", "$1 a"),
    (&[], "LOCK.ACQUIRE k a 3600000", "$1 a"),
    (&["SET k a NX PX 1000"], "PERSIST k", "$1 a"),
    (&["SET k a NX PX 1000"], "PEXPIRE k 3600000", "$1 a"),
    (&["SET k a NX PX 1000"], "LOCK.EXTEND k a 3600000", "$1 a"),
    (
        &["SET k a NX PX 3600000"],
        "LOCK.EXTEND k a 7200000",
        "$1 a",
    ),
    (&["SET k a NX"], "LOCK.EXTEND k a 50000", "$1 a"),
    (&["SET k a NX"], "SET k b PX 50000", "$1 b"),
    (&["SET k a NX PX 3600000"], "SET k b XX PX 50000", "$1 b"),
    (&["SET k a NX"], "LOCK.RELEASE k a", "$-1"),
    (&["SET k a NX"], "DEL k", "$-1"),
    (&["SET k a NX"], "GETDEL k", "$-1"),
];

/// [L1] [L3]
#[test]
fn what_is_told_of_a_lock_on_the_log_is_durable_first() {
    for (before, request, held) in AWAITED {
        for fall in FALLS {
            let mut node = node();
            for request in before {
                node.reply(request);
            }
            node.hold_disk();
            let ticket = node.expect_withheld(request);
            node.release_disk();
            let late = node.take_late();
            let is_sent = matches!(&late[..], [(it, Answer::Reply(_))] if *it == ticket);
            assert!(is_sent, "{request}: {late:?}");
            node.restart(fall);
            node.wait();
            // The short extension and the short overwriting may have ended in the wait; then nobody holds the key.
            let got = node.reply("GET k");
            let may_have_ended = request.ends_with("50000") && got == "$-1";
            assert!(got == held || may_have_ended, "{request}: {got}");
            if may_have_ended {
                assert!(node.guard().quarantine >= 50 * SECOND, "{request}");
            }
        }
    }
}

/// [L3]: a crash before the sync leaves all as it was.
#[test]
fn what_was_not_durable_was_not_told_and_did_not_happen() {
    for (before, request, held) in AWAITED {
        let mut node = node();
        for request in before {
            node.reply(request);
        }
        let held_before = node.reply("GET k");
        node.hold_disk();
        node.expect_withheld(request);
        node.restart(StoredNode::reboot);
        node.wait();
        let got = node.reply("GET k");
        let is_short = before.first().is_some_and(|it| it.ends_with(" 1000"));
        assert!(
            got == held_before || is_short,
            "{request}: {got}, not {held_before} ({held})"
        );
    }
}

/// [L3]: the release of a lock with a TTL need not wait; whoever holds the key then is not disturbed for longer than the
/// lock had left.
#[test]
fn a_released_lock_that_comes_back_ends_at_its_deadline() {
    let mut node = holding(&["SET k a NX PX 3600000"]);
    node.hold_disk();
    node.expect("LOCK.RELEASE k a", ":1");
    node.restart(StoredNode::reboot);
    node.expect("GET k", "$1 a");
    node.advance(HOUR + NANO);
    node.expect("GET k", "$-1");
}

/// [L3]: the order of the log is the order of the changes.
#[test]
fn a_lock_that_changed_hands_is_the_last_holders() {
    for fall in FALLS {
        let mut node = node();
        for round in 0..30 {
            node.expect(&format!("SET k t{round} NX"), "+OK");
            node.expect(&format!("LOCK.RELEASE k t{round}"), ":1");
            node.expect(&format!("SET k s{round} NX PX 3600000"), "+OK");
            node.expect(&format!("LOCK.RELEASE k s{round}"), ":1");
        }
        node.expect("SET k last NX", "+OK");
        node.restart(fall);
        node.expect("GET k", "$4 last");
    }
}

/// [L1] [L3]: a lock that was on the log and is free by its end is nobody's, whatever came after it.
#[test]
fn a_short_lock_after_a_long_one_is_waited_for() {
    for fall in FALLS {
        let mut node = holding(&["SET k a NX PX 3600000"]);
        node.advance(HOUR + NANO);
        node.expect("SET k b NX PX 60000", "+OK");
        node.restart(fall);
        assert!(node.quarantine_left().unwrap() > MINUTE);
        node.wait();
        let holder = node.reply("GET k");
        // In another boot the first one may be alive again, and keeps the key from everybody.
        assert!(holder == "$-1" || holder == "$1 a", "{holder}");
    }
}

/// [L7]: segments end, snapshots come; nothing is lost at the seams, and the disk does not fill up.
#[test]
fn a_compacted_log_says_the_same() {
    for durability in [Durability::Long, Durability::Always] {
        let mut node = node_with(|it| it.durability = durability);
        let (mut most, mut compactions) = (0, 0);
        for round in 0_u32..600 {
            let key = round % 17;
            let request = format!("SET k{key} t{round} PX {}", 3_600_000 + u64::from(round));
            node.expect(&request, "+OK");
            if round % 5 == 0 {
                let deleted = node.reply(&format!("DEL k{}", (key + 3) % 17));
                assert!(deleted.starts_with(':'), "{deleted}");
            }
            most = most.max(node.disk.bytes());
            compactions = node.figures().compactions.max(compactions);
            if round % 97 == 13 {
                let look = "MGET k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 k10 k11 k12 k13 k14 k15 k16";
                let all = node.reply(look);
                node.restart(|it| it.power_loss(u64::from(round)));
                node.wait();
                assert_eq!(all, node.reply(look), "{round}");
            }
        }
        assert!(compactions > 0);
        assert!(most < 120_000, "{most}");
    }
}

/// [L3] [L7]: what a slice of a snapshot has and the log takes back.
#[test]
fn a_lock_released_while_a_snapshot_is_taken_stays_released() {
    let mut node = node();
    for round in 0..200 {
        node.expect(&format!("SET k{round} a NX"), "+OK");
    }
    for round in (0..200).step_by(2) {
        node.expect(&format!("LOCK.RELEASE k{round} a"), ":1");
    }
    node.restart(StoredNode::reboot);
    for round in 0..200 {
        let held = if round % 2 == 0 { ":0" } else { ":1" };
        assert_eq!(node.reply(&format!("EXISTS k{round}")), held, "k{round}");
    }
}

/// [L1] [G9]: from one mode to the other and back.
#[test]
fn a_node_whose_durability_changes_keeps_both_kinds_of_promise() {
    for (from, to) in [
        (Durability::Long, Durability::Always),
        (Durability::Always, Durability::Long),
    ] {
        for fall in FALLS {
            let mut node = node_with(|it| it.durability = from);
            node.expect_ok(&["SET k a NX PX 50000", "SET ever a NX"]);
            node.settings.durability = to;
            node.restart(fall);
            let left = node.quarantine_left().unwrap_or_default();
            match from {
                Durability::Long => assert!(left > 50 * SECOND),
                Durability::Always => node.expect("GET k", "$1 a"),
            }
            node.advance(left);
            node.expect("GET ever", "$1 a");
            node.expect("SET j a NX PX 40000", "+OK");
            node.restart(fall);
            let left = node.quarantine_left().unwrap_or_default();
            if to == Durability::Always {
                node.advance(left.min(Duration::from_secs(1)));
                let reply = node.reply("SET j b NX PX 1000");
                assert!(reply == "$-1" || reply.starts_with("-LOADING"), "{reply}");
            } else {
                assert!(left > 40 * SECOND);
            }
        }
    }
}
