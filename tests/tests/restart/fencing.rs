//! Fence counters: never back, over any crash; and the write-back, which is conditional on the very grant.

use std::time::Duration;

use locknode_engine::durable::Durability;
use locknode_tests::{Answer, StoredNode};

use crate::{NANO, SECOND, fence, holding, node, node_with, stop};

const STEP: u64 = 1 << 20;
const FIRST_STEP: u64 = 1 << 12;
const FENCE_END: u64 = 1 << 53;

/// The key's counter after a grant by this node.
fn grant(node: &mut StoredNode, key: &str) -> u64 {
    let reply = node.reply(&format!("LOCK.ACQUIRE {key} t 1000"));
    assert!(reply.starts_with("*3 :1 "), "{reply}");
    node.expect(&format!("LOCK.RELEASE {key} t"), ":1");
    fence(&reply)
}

/// S51 S52 [F5] [C1]
#[test]
fn a_write_back_needs_the_token_and_the_very_grant() {
    let mut node = node();
    let mine = fence(&node.reply("LOCK.ACQUIRE k a 1000"));
    let high = mine + 100;
    for (request, name) in [
        (format!("LOCK.FENCE k b {mine} {high}"), "a foreign token"),
        (
            format!("LOCK.FENCE k a {} {high}", mine + 1),
            "a later grant",
        ),
        (
            format!("LOCK.FENCE k a {} {high}", mine - 1),
            "an earlier grant",
        ),
        (format!("LOCK.FENCE k a -1 {high}"), "no grant"),
        (
            format!("LOCK.FENCE other a {mine} {high}"),
            "a key that is free",
        ),
    ] {
        assert_eq!(node.reply(&request), ":0", "{name}");
        let reply = node.reply("LOCK.GET k");
        assert_eq!(reply, format!("*4 $1 a :1000 :{mine} :{mine}"), "{name}");
    }
    let raised = format!("*4 $1 a :1000 :{mine} :{high}");
    node.expect(&format!("LOCK.FENCE k a {mine} {high}"), ":1");
    node.expect("LOCK.GET k", &raised);
    // Accepted again, and a lower one too: the counter is at least that.
    node.expect(&format!("LOCK.FENCE k a {mine} {}", high - 1), ":1");
    node.expect("LOCK.GET k", &raised);
}

/// S51 S52 [F5]: a client whose attempts share a token.
#[test]
fn a_write_back_for_an_earlier_grant_of_the_same_token_is_refused() {
    type Between = fn(&mut StoredNode);
    let rows: [(&str, Between); 3] = [
        ("released", |node| node.expect("LOCK.RELEASE k a", ":1")),
        ("ended", |node| node.advance(SECOND + NANO)),
        ("crashed", |node| {
            node.restart(StoredNode::kill);
            node.wait();
        }),
    ];
    for (name, between) in rows {
        let mut node = node();
        let first = fence(&node.reply("LOCK.ACQUIRE k a 1000"));
        between(&mut node);
        let second = fence(&node.reply("LOCK.ACQUIRE k a 1000"));
        assert!(second > first, "{name}");
        let request = format!("LOCK.FENCE k a {first} {}", second + 100);
        assert_eq!(node.reply(&request), ":0", "{name}");
        let held = format!("*4 $1 a :1000 :{second} :{second}");
        assert_eq!(node.reply("LOCK.GET k"), held, "{name}");
    }
}

/// [F5]: a lock that survives is still of the same grant, so its holder may write back.
#[test]
fn a_lock_that_survives_keeps_its_grant() {
    type Fall = fn(&mut StoredNode);
    let falls: [(Fall, &str); 3] = [
        (StoredNode::kill, "3600000"),
        (StoredNode::reboot, "3600000"),
        (stop, "30000"),
    ];
    for (fall, ttl_ms) in falls {
        let mut node = node();
        let mine = fence(&node.reply(&format!("LOCK.ACQUIRE k a {ttl_ms}")));
        node.restart(fall);
        let reply = node.reply("LOCK.GET k");
        let grant_of = reply.split(' ').nth(4);
        assert_eq!(grant_of, Some(&*format!(":{mine}")), "{reply}");
        let high = mine + 7 * STEP;
        node.expect(&format!("LOCK.FENCE k a {} {high}", mine + 1), ":0");
        node.expect(&format!("LOCK.FENCE k a {mine} {high}"), ":1");
        node.expect("LOCK.RELEASE k a", ":1");
        assert_eq!(grant(&mut node, "k"), high + 1);
    }
}

/// S51: three nodes of which each has seen other grants; the token of the later holder is above that of the earlier.
#[test]
fn tokens_of_nodes_whose_counters_lie_apart_are_an_order() {
    let mut nodes: Vec<StoredNode> = (0..3).map(|_| node()).collect();
    for _ in 0..3 {
        grant(&mut nodes[0], "k");
    }
    let mut last = 0;
    for round in 0..12 {
        let (a, b) = [(0, 1), (1, 2), (2, 0)][round % 3];
        let token = format!("t{round}");
        let mut told_by = Vec::new();
        for node in [a, b] {
            let reply = nodes[node].reply(&format!("LOCK.ACQUIRE k {token} 1000"));
            assert!(reply.starts_with("*3 :1 "), "{reply}");
            told_by.push((node, fence(&reply)));
        }
        let highest = told_by.iter().map(|(_, fence)| *fence).max().unwrap();
        for (node, own) in told_by {
            let request = format!("LOCK.FENCE k {token} {own} {highest}");
            nodes[node].expect(&request, ":1");
            nodes[node].expect(&format!("LOCK.RELEASE k {token}"), ":1");
        }
        assert!(highest > last, "round {round}: {highest} after {last}");
        last = highest;
        // A node that falls forgets no write-back.
        let fallen = round % 3;
        nodes[fallen].power_loss(round as u64);
        nodes[fallen].start();
        let waits = nodes[fallen].quarantine_left().unwrap_or_default();
        nodes.iter_mut().for_each(|node| node.advance(waits));
    }
}

/// S53 [F1] [F2] [F3]
#[test]
fn a_counter_never_goes_back_over_any_crash() {
    type Fall = fn(&mut StoredNode);
    let falls: [(&str, Fall); 8] = [
        ("killed", StoredNode::kill),
        ("rebooted", StoredNode::reboot),
        ("power lost", |node| node.power_loss(7)),
        ("clean stop", stop),
        ("moved", StoredNode::move_to_other_machine),
        ("the wall set back", |node| {
            node.kill();
            node.clock.set_wall_unix_millis(1);
        }),
        ("the wall far ahead", |node| {
            node.kill();
            node.clock.set_wall_unix_millis(10_000_000_000_000);
        }),
        ("killed again", StoredNode::kill),
    ];
    let mut node = node();
    let mut last = grant(&mut node, "k");
    for (name, fall) in falls {
        for (count, floor) in [(3, 0), (1, last + STEP * 5), (2, 0), (1, last + STEP / 2)] {
            for _ in 0..count {
                let reply = node.reply(&format!("LOCK.ACQUIRE k t 1000 FLOOR {floor}"));
                let counter = fence(&reply);
                assert!(counter > last && counter > floor, "{name}");
                assert!(counter <= node.durable().ceiling, "{name}");
                last = counter;
                node.expect("LOCK.RELEASE k t", ":1");
            }
        }
        // A counter that is raised by a write-back as well.
        let mine = fence(&node.reply("LOCK.ACQUIRE k t 1000"));
        last = mine + 3 * STEP;
        node.expect(&format!("LOCK.FENCE k t {mine} {last}"), ":1");
        assert!(last <= node.durable().ceiling, "{name}");
        node.restart(fall);
        node.wait();
        node.advance(2 * SECOND);
        let counter = grant(&mut node, "k");
        assert!(counter > last, "{name}: {counter} after {last}");
        last = counter;
        assert!(grant(&mut node, "another") > 0);
    }
}

/// S53 [F2]: a counter beyond the ceiling is not told before the ceiling is durable, by whatever command.
#[test]
fn a_counter_is_told_only_below_the_durable_ceiling() {
    for (name, request) in [
        ("a grant", "LOCK.ACQUIRE free b 1000"),
        (
            "a grant with a floor",
            "LOCK.ACQUIRE free2 b 1000 FLOOR HIGH",
        ),
        ("a write-back", "LOCK.FENCE k a GRANT HIGH"),
        ("a refusal", "LOCK.ACQUIRE raised b 1000"),
        ("a look", "LOCK.GET raised"),
    ] {
        let mut node = node();
        let mine = fence(&node.reply("LOCK.ACQUIRE k a 50000"));
        let high = mine + 3 * STEP;
        let request = request.replace("GRANT", &mine.to_string());
        let request = request.replace("HIGH", &high.to_string());
        let is_of_raised = request.contains("raised");
        node.hold_disk();
        if is_of_raised {
            let raise = format!("LOCK.ACQUIRE raised a 1000 FLOOR {high}");
            node.expect_withheld(&raise);
        }
        let answer = node.send(&request);
        if name == "a grant" {
            // Within the step that is durable.
            assert!(matches!(answer, Answer::Reply(_)), "{name}");
            continue;
        }
        assert!(matches!(answer, Answer::Withheld(_)), "{name}: {answer:?}");
        node.release_disk();
        assert!(node.durable().ceiling >= high, "{name}");
        let late = node.take_late();
        assert_eq!(late.len(), 1 + usize::from(is_of_raised), "{name}");
        let is_reply = |(_, answer): &_| matches!(answer, Answer::Reply(_));
        assert!(late.iter().all(is_reply), "{name}");
    }
}

/// S53 [F3]: and in steady state nobody waits for it.
#[test]
fn the_ceiling_is_raised_ahead_of_need() {
    let mut node = node();
    let syncs = node.disk.syncs_total();
    let mut last = 0;
    for _ in 0..100 {
        last = grant(&mut node, "k");
    }
    assert!(node.disk.syncs_total() - syncs <= 4, "the horizon's");
    let mut step = FIRST_STEP;
    let base = last - 100;
    for _ in 0..20 {
        let ceiling = node.durable().ceiling;
        assert!(ceiling - last >= step / 2, "{step}");
        let half = ceiling - step / 2;
        node.hold_disk();
        last = fence(&node.reply(&format!("LOCK.ACQUIRE k t 1000 FLOOR {half}")));
        node.release_disk();
        node.expect("LOCK.RELEASE k t", ":1");
        // As much again as this run has used, from the first step to the usual one.
        step = (last - base).clamp(FIRST_STEP, STEP);
        assert_eq!(node.durable().ceiling, last + step, "but it asks");
    }
    assert_eq!(step, STEP);
}

/// S53 [F3] [F4]: a node that starts again and again does not outrun the calendar, which is all that is left when its disk is lost.
#[test]
fn a_crash_loop_does_not_outrun_the_calendar() {
    for (durability, grants) in [
        // In its quarantine a node tells no counter.
        (Durability::Long, false),
        (Durability::Always, false),
        (Durability::Always, true),
    ] {
        let mut node = node_with(|it| (it.durability, it.max_ttl) = (durability, SECOND));
        let mut last = grant(&mut node, "k");
        for _ in 0..40 {
            node.advance(Duration::from_millis(75));
            node.restart(StoredNode::kill);
            if grants {
                last = grant(&mut node, "k");
            }
        }
        node.wait();
        last = last.max(grant(&mut node, "k"));
        node.advance(SECOND);
        node.kill();
        node.disk.erase();
        node.start();
        node.wait();
        let counter = grant(&mut node, "k");
        assert!(
            counter > last,
            "{durability:?}, {grants}: {counter} after {last}"
        );
    }
}

/// S53 S13 [F4] [S3]
#[test]
fn after_damage_to_the_state_the_counters_begin_far_above() {
    for slot in [0, 4096] {
        let mut node = node();
        let last = grant(&mut node, "k");
        let ceiling = node.durable().ceiling;
        node.kill();
        node.disk.flip("state", slot + 200);
        node.start();
        node.wait();
        let counter = grant(&mut node, "k");
        assert!(counter > last);
        assert!(counter >= ceiling + 8 * STEP, "{counter} of {ceiling}");
    }
}

/// S54 [F6]
#[test]
fn a_token_is_below_two_to_the_53rd() {
    let highest = FENCE_END - (1 << 40);
    let mut node = node();
    let mine = fence(&node.reply("LOCK.ACQUIRE k a 1000"));
    for high in [highest + 1, FENCE_END, 1 << 62] {
        for request in [
            format!("LOCK.FENCE k a {mine} {high}"),
            format!("LOCK.ACQUIRE other a 1000 FLOOR {high}"),
        ] {
            node.expect(&request, "-ERR fence is out of range");
        }
    }
    node.expect("EXISTS other", ":0");
    node.expect(&format!("LOCK.FENCE k a {mine} {highest}"), ":1");
    node.expect("LOCK.RELEASE k a", ":1");
    let next = fence(&node.reply("LOCK.ACQUIRE k b 1000"));
    assert_eq!(next, highest + 1);
    assert!(next < FENCE_END);
}

/// S11 [F4]: an old copy of the disk, put back while the machine goes on. Locks granted since are forgotten, which no
/// process can know; but time has outrun the counters, so tokens stay an order.
#[test]
fn an_old_copy_of_the_disk_forgets_locks_and_keeps_the_order_of_tokens() {
    let mut node = node();
    let copy = node.disk.snapshot();
    node.advance(10 * SECOND);
    node.expect("SET ever a NX", "+OK");
    let before = fence(&node.reply("LOCK.ACQUIRE k a 30000"));
    node.kill();
    node.disk.restore(&copy);
    node.start();
    // What does not hold: the copy says that nothing was granted.
    assert_eq!(node.quarantine_left(), None);
    node.expect("SET ever b NX", "+OK");
    let after = fence(&node.reply("LOCK.ACQUIRE k b 30000"));
    // What does.
    assert!(after > before, "{after} after {before}");
}

/// S11 S09 [G10]: a copy with a clean marker, used again. The marker is the copy's, not the node's.
#[test]
fn a_copy_of_a_clean_stop_serves_again_and_tokens_stay_an_order() {
    let mut node = holding(&["SET old a NX PX 60000"]);
    node.clean_stop().unwrap();
    let copy = node.disk.snapshot();
    node.start();
    node.advance(10 * SECOND);
    let before = fence(&node.reply("LOCK.ACQUIRE k a 30000"));
    node.kill();
    node.disk.restore(&copy);
    node.start();
    assert_eq!(node.quarantine_left(), None);
    // What the copy knows.
    node.expect("SET old b NX PX 1", "$-1");
    node.expect("PTTL old", ":50000");
    let after = fence(&node.reply("LOCK.ACQUIRE k b 30000"));
    assert!(after > before, "{after} after {before}");
}

/// [F1]: whatever makes a token hold a key that did not hold it.
#[test]
fn every_grant_raises_the_counter() {
    let mut node = node();
    let mut last = grant(&mut node, "k");
    for (request, raises) in [
        ("SET k a NX PX 1000", true),
        ("SET k a XX PX 2000", false),
        ("SET k b XX PX 2000", true),
        ("PSETEX k 1000 c", true),
        ("GETSET k d", true),
        ("PEXPIRE k 1000", false),
        ("LOCK.EXTEND k d 1000", false),
        ("SET k e", true),
        ("MSET k f", true),
        ("SETEX k 10 f", false),
        ("SET k g IFEQ f PX 1000", true),
    ] {
        node.reply(request);
        let reply = node.reply("LOCK.GET k");
        let counter: u64 = reply.rsplit(':').next().unwrap().parse().unwrap();
        assert_eq!(counter, last + u64::from(raises), "{request}: {reply}");
        last = counter;
    }
}
