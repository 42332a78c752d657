//! What holders say of themselves, over crashes and stops.

use std::time::Duration;

use locknode_tests::StoredNode;

use crate::{FALLS, node, node_with, stop};

/// [C2] [L3]
#[test]
fn a_label_on_the_log_survives_with_its_lock_and_does_not_know_since_when() {
    for fall in FALLS {
        let mut node = node();
        node.expect_start("LOCK.ACQUIRE k a 3600000 LABEL host:7:job", "*3 :1 ");
        // A record states the whole lock.
        node.expect("LOCK.EXTEND k a 7200000", ":1");
        node.expect_start("LOCK.ACQUIRE plain a 3600000", "*3 :1 ");
        node.restart(fall);
        node.wait();
        let held = node.reply("LOCK.GET k");
        assert!(held.ends_with(" $10 host:7:job :-1"), "{held}");
        assert!(held.starts_with("*6 $1 a "), "{held}");
        node.expect_start("LOCK.GET plain", "*4 $1 a ");
        let forced = node.reply("LOCK.FORCE k");
        assert!(forced.ends_with(" $10 host:7:job :-1"), "{forced}");
        node.restart(fall);
        node.wait();
        node.expect("EXISTS k", ":0");
    }
}

/// [C2] [G10]
#[test]
fn a_label_of_a_short_lock_survives_a_clean_stop_and_nothing_else() {
    let mut node = node();
    node.expect_start("LOCK.ACQUIRE k a 30000 LABEL me", "*3 :1 ");
    node.restart(stop);
    let held = node.reply("LOCK.GET k");
    assert!(held.ends_with(" $2 me :-1"), "{held}");
    node.advance(Duration::from_secs(31));
    node.expect("LOCK.GET k", "$-1");
}

/// [S4]
#[test]
fn the_first_label_changes_the_format_and_a_crash_of_short_locks_does_not() {
    let format = |node: &StoredNode| node.disk.snapshot()["state"][8];
    for (request, end, want) in [
        (
            "LOCK.ACQUIRE k a 30000 LABEL me",
            StoredNode::kill as fn(&mut StoredNode),
            1,
        ),
        ("LOCK.ACQUIRE k a 30000 LABEL me", stop, 3),
        ("LOCK.ACQUIRE k a 3600000", stop, 1),
        ("LOCK.ACQUIRE k a 3600000 LABEL me", StoredNode::kill, 3),
    ] {
        let mut node = node();
        node.expect_start(request, "*3 :1 ");
        end(&mut node);
        assert_eq!(format(&node), want, "{request}");
        node.start();
        node.wait();
        node.reply("DEL k");
        node.reply("HSET value f 1");
        assert_eq!(format(&node), [2, 4][want as usize / 2], "{request}");
        node.restart(StoredNode::kill);
        node.wait();
        node.expect("HGET value f", "$1 1");
    }
}

/// [F2] [C3]
#[test]
fn the_counter_of_a_release_by_force_is_told_only_below_the_durable_ceiling() {
    let mut node = node_with(|_| {});
    let mut highest = 0;
    for _ in 0..3 {
        node.expect_start("LOCK.ACQUIRE k a 1000", "*3 :1 ");
        let forced = node.reply("LOCK.FORCE k");
        let counter = crate::fence(&forced);
        assert!(counter > highest, "{forced}");
        assert!(counter <= node.guard().ceiling, "{forced}");
        highest = counter;
        node.restart(StoredNode::kill);
        node.wait();
    }
}
