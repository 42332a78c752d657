//! Fence counters: never back, over any crash; and the write-back, which is conditional on the very grant.

use std::time::Duration;

use locknode_engine::durable::Durability;
use locknode_tests::{Answer, NodeSettings, StoredNode};

use crate::{HOUR, NANO, SECOND, fence, node, settings, told};

const STEP: u64 = 1 << 20;
const FIRST_STEP: u64 = 1 << 12;
const FENCE_END: u64 = 1 << 53;

/// The key's counter after a grant by this node.
fn grant(node: &mut StoredNode, key: &str) -> u64 {
    let reply = told(node, &format!("LOCK.ACQUIRE {key} t 1000"));
    assert!(reply.starts_with("*3 :1 "), "{reply}");
    assert_eq!(told(node, &format!("LOCK.RELEASE {key} t")), ":1");
    fence(&reply)
}

/// S51 S52 [F5] [C1]
#[test]
fn a_write_back_needs_the_token_and_the_very_grant() {
    let mut node = node();
    let mine = fence(&told(&mut node, "LOCK.ACQUIRE k a 1000"));
    let high = mine + 100;
    let rows = [
        (
            format!("LOCK.FENCE k b {mine} {high}"),
            ":0",
            "a foreign token",
        ),
        (
            format!("LOCK.FENCE k a {} {high}", mine + 1),
            ":0",
            "a later grant",
        ),
        (
            format!("LOCK.FENCE k a {} {high}", mine - 1),
            ":0",
            "an earlier grant",
        ),
        (format!("LOCK.FENCE k a -1 {high}"), ":0", "no grant"),
        (
            format!("LOCK.FENCE other a {mine} {high}"),
            ":0",
            "a key that is free",
        ),
    ];
    for (request, want, name) in rows {
        assert_eq!(told(&mut node, &request), want, "{name}");
        let reply = told(&mut node, "LOCK.GET k");
        assert_eq!(reply, format!("*4 $1 a :1000 :{mine} :{mine}"), "{name}");
    }
    assert_eq!(
        told(&mut node, &format!("LOCK.FENCE k a {mine} {high}")),
        ":1"
    );
    assert_eq!(
        told(&mut node, "LOCK.GET k"),
        format!("*4 $1 a :1000 :{mine} :{high}")
    );
    // Accepted again, and a lower one too: the counter is at least that.
    assert_eq!(
        told(&mut node, &format!("LOCK.FENCE k a {mine} {}", high - 1)),
        ":1"
    );
    assert_eq!(
        told(&mut node, "LOCK.GET k"),
        format!("*4 $1 a :1000 :{mine} :{high}")
    );
}

/// S51 S52 [F5]: a client whose attempts share a token.
#[test]
fn a_write_back_for_an_earlier_grant_of_the_same_token_is_refused() {
    type Between = fn(&mut StoredNode);
    let rows: [(&str, Between); 3] = [
        ("released", |node| {
            assert_eq!(told(node, "LOCK.RELEASE k a"), ":1");
        }),
        ("ended", |node| node.advance(SECOND + NANO)),
        ("crashed", |node| {
            node.kill();
            node.start().unwrap();
            node.advance(node.quarantine_left().unwrap());
        }),
    ];
    for (name, between) in rows {
        let mut node = node();
        let first = fence(&told(&mut node, "LOCK.ACQUIRE k a 1000"));
        between(&mut node);
        let second = fence(&told(&mut node, "LOCK.ACQUIRE k a 1000"));
        assert!(second > first, "{name}");
        let request = format!("LOCK.FENCE k a {first} {}", second + 100);
        assert_eq!(told(&mut node, &request), ":0", "{name}");
        assert_eq!(
            told(&mut node, "LOCK.GET k"),
            format!("*4 $1 a :1000 :{second} :{second}"),
            "{name}"
        );
    }
}

/// [F5]: a lock that survives is still of the same grant, so its holder may write back.
#[test]
fn a_lock_that_survives_keeps_its_grant() {
    type Fall = fn(&mut StoredNode);
    let falls: [(Fall, &str); 3] = [
        (StoredNode::kill, "3600000"),
        (StoredNode::reboot, "3600000"),
        (|node| node.clean_stop().unwrap(), "30000"),
    ];
    for (fall, ttl_ms) in falls {
        let mut node = node();
        let mine = fence(&told(&mut node, &format!("LOCK.ACQUIRE k a {ttl_ms}")));
        fall(&mut node);
        node.start().unwrap();
        let reply = told(&mut node, "LOCK.GET k");
        assert_eq!(
            reply.split(' ').nth(4),
            Some(&format!(":{mine}")[..]),
            "{reply}"
        );
        let high = mine + 7 * STEP;
        assert_eq!(
            told(&mut node, &format!("LOCK.FENCE k a {} {high}", mine + 1)),
            ":0"
        );
        assert_eq!(
            told(&mut node, &format!("LOCK.FENCE k a {mine} {high}")),
            ":1"
        );
        assert_eq!(told(&mut node, "LOCK.RELEASE k a"), ":1");
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
            let reply = told(&mut nodes[node], &format!("LOCK.ACQUIRE k {token} 1000"));
            assert!(reply.starts_with("*3 :1 "), "{reply}");
            told_by.push((node, fence(&reply)));
        }
        let highest = told_by.iter().map(|(_, fence)| *fence).max().unwrap();
        for (node, own) in told_by {
            let request = format!("LOCK.FENCE k {token} {own} {highest}");
            assert_eq!(told(&mut nodes[node], &request), ":1");
            assert_eq!(
                told(&mut nodes[node], &format!("LOCK.RELEASE k {token}")),
                ":1"
            );
        }
        assert!(highest > last, "round {round}: {highest} after {last}");
        last = highest;
        // A node that falls forgets no write-back.
        let fallen = round % 3;
        nodes[fallen].power_loss(round as u64);
        nodes[fallen].start().unwrap();
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
        ("clean stop", |node| node.clean_stop().unwrap()),
        ("moved", StoredNode::move_to_other_machine),
        ("the wall set back", |node| {
            node.kill();
            node.clock().set_wall_unix_millis(1);
        }),
        ("the wall far ahead", |node| {
            node.kill();
            node.clock().set_wall_unix_millis(10_000_000_000_000);
        }),
        ("killed again", StoredNode::kill),
    ];
    let mut node = node();
    let mut last = grant(&mut node, "k");
    for (name, fall) in falls {
        for (count, floor) in [(3, 0), (1, last + STEP * 5), (2, 0), (1, last + STEP / 2)] {
            for _ in 0..count {
                let reply = told(&mut node, &format!("LOCK.ACQUIRE k t 1000 FLOOR {floor}"));
                let counter = fence(&reply);
                assert!(counter > last && counter > floor, "{name}");
                assert!(counter <= node.durable().unwrap().ceiling, "{name}");
                last = counter;
                assert_eq!(told(&mut node, "LOCK.RELEASE k t"), ":1");
            }
        }
        // A counter that is raised by a write-back as well.
        let mine = fence(&told(&mut node, "LOCK.ACQUIRE k t 1000"));
        last = mine + 3 * STEP;
        assert_eq!(
            told(&mut node, &format!("LOCK.FENCE k t {mine} {last}")),
            ":1"
        );
        assert!(last <= node.durable().unwrap().ceiling, "{name}");
        fall(&mut node);
        node.start().unwrap();
        node.advance(node.quarantine_left().unwrap_or_default());
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
    type Tells = fn(u64) -> String;
    let rows: [(&str, Tells); 5] = [
        ("a grant", |_| "LOCK.ACQUIRE free b 1000".to_owned()),
        ("a grant with a floor", |high| {
            format!("LOCK.ACQUIRE free2 b 1000 FLOOR {high}")
        }),
        ("a write-back", |high| {
            format!("LOCK.FENCE k a GRANT {high}")
        }),
        ("a refusal", |_| "LOCK.ACQUIRE raised b 1000".to_owned()),
        ("a look", |_| "LOCK.GET raised".to_owned()),
    ];
    for (name, request) in rows {
        let mut node = node();
        let mine = fence(&told(&mut node, "LOCK.ACQUIRE k a 50000"));
        let high = mine + 3 * STEP;
        let request = request(high).replace("GRANT", &mine.to_string());
        let is_of_raised = request.contains("raised");
        node.hold_disk();
        if is_of_raised {
            let raise = format!("LOCK.ACQUIRE raised a 1000 FLOOR {high}");
            assert!(matches!(node.send(&raise), Answer::Withheld(_)), "{name}");
        }
        let answer = node.send(&request);
        if name == "a grant" {
            // Within the step that is durable.
            assert!(matches!(answer, Answer::Told(_)), "{name}");
            continue;
        }
        assert!(matches!(answer, Answer::Withheld(_)), "{name}: {answer:?}");
        node.release_disk();
        assert!(node.durable().unwrap().ceiling >= high, "{name}");
        let late = node.take_late();
        assert_eq!(late.len(), 1 + usize::from(is_of_raised), "{name}");
        assert!(
            late.iter()
                .all(|(_, answer)| matches!(answer, Answer::Told(_))),
            "{name}"
        );
    }
}

/// S53 [F3]: and in steady state nobody waits for it.
#[test]
fn the_ceiling_is_raised_ahead_of_need() {
    let mut node = node();
    let syncs = node.disk().syncs_total();
    let mut last = 0;
    for _ in 0..100 {
        last = grant(&mut node, "k");
    }
    assert!(node.disk().syncs_total() - syncs <= 4, "the horizon's");
    let mut step = FIRST_STEP;
    let base = last - 100;
    for _ in 0..20 {
        let ceiling = node.durable().unwrap().ceiling;
        assert!(ceiling - last >= step / 2, "{step}");
        let half = ceiling - step / 2;
        node.hold_disk();
        let request = format!("LOCK.ACQUIRE k t 1000 FLOOR {half}");
        let Answer::Told(reply) = node.send(&request) else {
            panic!("{step}: it waits");
        };
        last = fence(&reply);
        node.release_disk();
        assert_eq!(told(&mut node, "LOCK.RELEASE k t"), ":1");
        // As much again as this run has used, from the first step to the usual one.
        step = (last - base).clamp(FIRST_STEP, STEP);
        assert_eq!(node.durable().unwrap().ceiling, last + step, "but it asks");
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
        let mut node = StoredNode::first_start(NodeSettings {
            durability,
            max_ttl: SECOND,
            ..settings()
        })
        .unwrap();
        let mut last = grant(&mut node, "k");
        for _ in 0..40 {
            node.advance(Duration::from_millis(75));
            node.kill();
            node.start().unwrap();
            if grants {
                last = grant(&mut node, "k");
            }
        }
        node.advance(node.quarantine_left().unwrap_or_default());
        last = last.max(grant(&mut node, "k"));
        node.advance(SECOND);
        node.kill();
        node.disk().erase();
        node.start().unwrap();
        node.advance(node.quarantine_left().unwrap());
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
        let ceiling = node.durable().unwrap().ceiling;
        node.kill();
        node.disk().flip("state", slot + 200);
        node.start().unwrap();
        node.advance(node.quarantine_left().unwrap());
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
    let mine = fence(&told(&mut node, "LOCK.ACQUIRE k a 1000"));
    for high in [highest + 1, FENCE_END, 1 << 62] {
        for request in [
            format!("LOCK.FENCE k a {mine} {high}"),
            format!("LOCK.ACQUIRE other a 1000 FLOOR {high}"),
        ] {
            assert_eq!(told(&mut node, &request), "-ERR fence is out of range");
        }
    }
    assert_eq!(told(&mut node, "EXISTS other"), ":0");
    assert_eq!(
        told(&mut node, &format!("LOCK.FENCE k a {mine} {highest}")),
        ":1"
    );
    assert_eq!(told(&mut node, "LOCK.RELEASE k a"), ":1");
    let next = fence(&told(&mut node, "LOCK.ACQUIRE k b 1000"));
    assert_eq!(next, highest + 1);
    assert!(next < FENCE_END);
}

/// S11 [F4]: an old copy of the disk, put back while the machine goes on. Locks granted since are forgotten, which no
/// process can know; but time has outrun the counters, so tokens stay an order.
#[test]
fn an_old_copy_of_the_disk_forgets_locks_and_keeps_the_order_of_tokens() {
    let mut node = node();
    let copy = node.disk().snapshot();
    node.advance(10 * SECOND);
    assert_eq!(told(&mut node, "SET ever a NX"), "+OK");
    let before = fence(&told(&mut node, "LOCK.ACQUIRE k a 30000"));
    node.kill();
    node.disk().restore(&copy);
    node.start().unwrap();
    // What does not hold: the copy says that nothing was granted.
    assert_eq!(node.quarantine_left(), None);
    assert_eq!(told(&mut node, "SET ever b NX"), "+OK");
    let after = fence(&told(&mut node, "LOCK.ACQUIRE k b 30000"));
    // What does.
    assert!(after > before, "{after} after {before}");
}

/// S11 [G7]: a whole machine that is put back shows clocks that are behind what a disk of its own says.
#[test]
fn a_machine_that_is_put_back_before_its_disk_waits_in_full() {
    let mut node = node();
    node.advance(HOUR);
    assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
    node.kill();
    node.clock().set_boottime(HOUR);
    node.clock().set_raw(HOUR);
    node.start().unwrap();
    assert_eq!(
        node.quarantine_left().map(|left| left.as_millis()),
        Some(60_602)
    );
}

/// S11 S09 [G10]: a copy with a clean marker, used again. The marker is the copy's, not the node's.
#[test]
fn a_copy_of_a_clean_stop_serves_again_and_tokens_stay_an_order() {
    let mut node = node();
    assert_eq!(told(&mut node, "SET old a NX PX 60000"), "+OK");
    node.clean_stop().unwrap();
    let copy = node.disk().snapshot();
    node.start().unwrap();
    node.advance(10 * SECOND);
    let before = fence(&told(&mut node, "LOCK.ACQUIRE k a 30000"));
    node.kill();
    node.disk().restore(&copy);
    node.start().unwrap();
    assert_eq!(node.quarantine_left(), None);
    assert_eq!(
        told(&mut node, "SET old b NX PX 1"),
        "$-1",
        "what the copy knows"
    );
    assert_eq!(told(&mut node, "PTTL old"), ":50000");
    let after = fence(&told(&mut node, "LOCK.ACQUIRE k b 30000"));
    assert!(after > before, "{after} after {before}");
}

/// [F1]: whatever makes a token hold a key that did not hold it.
#[test]
fn every_grant_raises_the_counter() {
    let mut node = StoredNode::first_start(NodeSettings {
        max_ttl: Duration::from_secs(60),
        ..settings()
    })
    .unwrap();
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
        told(&mut node, request);
        let reply = told(&mut node, "LOCK.GET k");
        let counter: u64 = reply.rsplit(':').next().unwrap().parse().unwrap();
        assert_eq!(counter, last + u64::from(raises), "{request}: {reply}");
        last = counter;
    }
}
