//! The plain client against real engines: first without a mistake, then each mistake, in a scenario that is safe
//! without it.

mod cluster;
mod mistakes;

use redlock_proto::Time;

use crate::sim::plain::PlainTerms;
use crate::sim::plain::tests::cluster::{Cluster, Way, ms, terms};

#[test]
fn all_nodes_are_asked_at_once_and_validity_counts_from_before() {
    let mut cluster = Cluster::new(5, 1, None);
    let lock = cluster.acquire(0, terms(1));
    assert_eq!(cluster.said(0), ["0 acquired until 10988"]);
    let (fence, token) = cluster.side(0).fence.clone();
    assert_eq!(fence, 1);
    let asked = format!("4: LOCK.ACQUIRE key {token} 1000");
    assert_eq!(cluster.asked(0)[4], asked);
    assert_eq!(cluster.keys(), 5);

    cluster.release(0, lock);
    assert_eq!(cluster.said(0), ["0 released by 5"]);
    assert_eq!(cluster.keys(), 0);
    assert_eq!(cluster.side(0).client.next_deadline(), Time::NEVER);
}

#[test]
fn a_lock_that_another_holds_is_not_had_and_nothing_of_the_attempt_is_left() {
    let mut cluster = Cluster::new(3, 2, None);
    cluster.set_ways(0, [Way::Open, Way::Open, Way::Refused]);
    cluster.acquire_now(0);
    cluster.acquire(1, terms(3));
    cluster.advance(ms(300));
    assert_eq!(cluster.said(1), ["0 failed: busy"]);
    let asked = cluster.asked(1);
    let acquires = asked.iter().filter(|words| words.contains("ACQUIRE"));
    assert_eq!(acquires.count(), 9, "{asked:?}");
    assert_eq!(cluster.keys(), 2, "those of the holder");
}

#[test]
fn a_later_attempt_has_a_token_of_its_own() {
    let mut cluster = Cluster::new(3, 2, None);
    let held = cluster.acquire_now(0);
    cluster.acquire(1, terms(2));
    let first = cluster.asked(1);
    cluster.release(0, held);
    cluster.advance(ms(100));
    assert!(cluster.holds(1));
    let second = cluster.asked(1);
    for asked in [&first, &second] {
        assert!(asked[0].starts_with("0: LOCK.ACQUIRE key "), "{asked:?}");
    }
    assert_ne!(first[0], second[0]);
}

#[test]
fn a_minority_of_the_configured_nodes_is_no_quorum() {
    use Way::{Open, Refused};
    let mut cluster = Cluster::new(5, 1, None);
    cluster.set_ways(0, [Open, Open, Refused, Refused, Refused]);
    cluster.acquire(0, terms(1));
    cluster.advance(ms(200));
    assert_eq!(cluster.said(0), ["0 failed: no quorum"]);
    assert_eq!(cluster.keys(), 0);
}

#[test]
fn a_request_waits_for_a_connection_for_the_time_of_the_node() {
    use Way::{Open, Refused};
    let mut cluster = Cluster::new(3, 1, None);
    cluster.set_ways(0, [Open, Refused, Refused]);
    cluster.acquire(0, terms(1));
    assert!(!cluster.holds(0));
    cluster.set_ways(0, [Open, Open, Refused]);
    cluster.advance(ms(25));
    assert!(cluster.holds(0));
    assert_eq!(cluster.said(0), ["0 acquired until 10988"]);
}

#[test]
fn nodes_that_are_behind_accept_the_fencing_token_before_it_is_told() {
    let mut cluster = Cluster::new(3, 1, None);
    for _ in 0..3 {
        cluster.raise_counter(0);
    }
    let lock = cluster.acquire_now(0);
    let (fence, token) = cluster.side(0).fence.clone();
    assert_eq!(fence, 4);
    let asked = cluster.asked(0);
    let write_back = format!("1: LOCK.FENCE key {token} 1 4");
    assert!(asked.contains(&write_back), "{asked:?}");
    cluster.release(0, lock);
    cluster.acquire_now(0);
    assert_eq!(cluster.side(0).fence.0, 5);
    let asked = cluster.asked(0);
    let is_fence = |words: &String| words.contains("FENCE");
    assert!(!asked.iter().any(is_fence), "{asked:?}");
}

#[test]
fn a_token_that_no_majority_accepts_is_not_told() {
    let mut cluster = Cluster::new(3, 1, None);
    cluster.raise_counter(0);
    cluster.set_ways(0, [Way::Open, Way::RepliesHeld, Way::RepliesHeld]);
    cluster.acquire(0, terms(1));
    for node in [1, 2] {
        // Its grant is another's before it hears of the token.
        cluster.tell(node, "DEL key");
        cluster.tell(node, "LOCK.ACQUIRE key other 1000");
    }
    cluster.set_ways(0, [Way::Open; 3]);
    assert_eq!(cluster.said(0), ["0 failed: busy"]);
    assert_eq!(cluster.keys(), 2, "those of the other");
}

#[test]
fn a_connection_whose_reply_is_late_is_closed_and_opened_again() {
    let mut cluster = Cluster::new(3, 1, None);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, terms(1));
    cluster.advance(ms(49));
    assert_eq!((cluster.said(0).len(), cluster.keys()), (0, 3));
    cluster.advance(ms(1));
    cluster.set_ways(0, [Way::Open; 3]);
    // The releases wait for the new connections.
    cluster.advance(ms(20));
    assert_eq!(cluster.said(0), ["0 failed: no quorum"]);
    assert_eq!(cluster.keys(), 0);
    cluster.acquire_now(0);
}

#[test]
fn a_node_that_is_away_for_long_is_tried_less_and_less_often() {
    let mut cluster = Cluster::new(1, 1, None);
    cluster.set_ways(0, [Way::Refused]);
    cluster.acquire(0, terms(1));
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let now = cluster.clock(0);
        let pause = cluster.side(0).client.next_deadline().since(now);
        cluster.advance(pause);
        pauses.push(pause.as_millis());
    }
    // The first is the pause, then the time of the node for the acquire; then there are pauses only.
    assert_eq!(pauses, [20, 30, 10, 40, 40, 160, 320, 640, 640]);
    cluster.set_ways(0, [Way::Open]);
    cluster.advance(ms(640));
    cluster.acquire_now(0);
}

#[test]
fn a_lock_that_is_extended_outlives_its_first_validity() {
    let mut cluster = Cluster::new(3, 2, None);
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(900));
    cluster.extend(0, lock, ms(1_000));
    assert_eq!(cluster.said(0), ["0 extended until 11888"]);
    cluster.advance(ms(987));
    assert!(cluster.holds(0));
    cluster.acquire(1, terms(1));
    assert!(!cluster.holds(1));
    cluster.advance(ms(1));
    assert_eq!(cluster.said(0), ["0 lost: expired"]);
    cluster.extend(0, lock, ms(1_000));
    assert_eq!(cluster.said(0), ["0 not extended: lost"]);
    cluster.release(0, lock);
    assert_eq!(cluster.said(0), ["0 released by 3"]);
}

#[test]
fn a_lock_that_is_not_extended_ends_with_its_validity() {
    let mut cluster = Cluster::new(3, 2, None);
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(950));
    cluster.set_ways(0, [Way::Open, Way::RepliesHeld, Way::RepliesHeld]);
    cluster.extend(0, lock, ms(1_000));
    cluster.extend(0, lock, ms(1_000));
    cluster.advance(ms(40));
    let said = [
        "0 not extended: busy",
        "0 not extended: expired",
        "0 lost: expired",
    ];
    assert_eq!(cluster.said(0), said);
}

#[test]
fn a_lock_that_a_majority_does_not_hold_is_lost_at_once() {
    let mut cluster = Cluster::new(3, 1, None);
    let lock = cluster.acquire_now(0);
    cluster.restart(1);
    cluster.restart(2);
    cluster.advance(ms(30));
    cluster.extend(0, lock, ms(1_000));
    let said = ["0 not extended: not held", "0 lost: not held"];
    assert_eq!(cluster.said(0), said);
}

#[test]
fn a_shorter_ttl_shortens_the_validity_before_a_node_hears_of_it() {
    let mut cluster = Cluster::new(3, 1, None);
    let lock = cluster.acquire_now(0);
    cluster.set_ways(0, [Way::Silent; 3]);
    cluster.extend(0, lock, ms(100));
    assert_eq!(cluster.said(0), ["0 valid until 10097"]);
    cluster.advance(ms(60));
    assert_eq!(cluster.said(0), ["0 not extended: no quorum"]);
    cluster.advance(ms(37));
    assert_eq!(cluster.said(0), ["0 lost: expired"]);
}

#[test]
fn a_lock_can_be_released_or_left_while_it_is_acquired() {
    let mut cluster = Cluster::new(3, 1, None);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    let lock = cluster.acquire(0, terms(3));
    cluster.release(0, lock);
    let other = PlainTerms {
        key: (*b"other").into(),
        ..terms(3)
    };
    let left = cluster.acquire(0, other);
    cluster.side(0).client.leave(left);
    cluster.set_ways(0, [Way::Open; 3]);
    assert_eq!(cluster.said(0), ["0 released by 3"]);
    assert_eq!(cluster.side(0).client.next_deadline(), Time::NEVER);
    // Of what is not there, too, the answer is one.
    cluster.release(0, left);
    cluster.extend(0, left, ms(1_000));
    let said = ["1 released by 0", "1 not extended: not held"];
    assert_eq!(cluster.said(0), said);
}

#[test]
fn replies_may_come_in_pieces() {
    let mut cluster = Cluster::new(3, 1, None);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, terms(1));
    for node in 0..2 {
        for byte in b"*3\r\n:1\r\n:17\r\n:1000\r\n" {
            assert!(!cluster.holds(0));
            cluster.deliver(0, node, &[*byte]);
        }
    }
    // What nobody asked for is nobody's; nor is what comes from nowhere.
    cluster.deliver(0, 1, b":1\r\n*3\r\n:1\r\n");
    cluster.deliver(0, 7, b":1\r\n");
    cluster.advance(ms(0));
    assert_eq!(cluster.side(0).fence.0, 17);
}

#[test]
fn a_node_that_says_something_else_takes_no_part() {
    let rows: [&[u8]; 8] = [
        b"-LOADING locknode is in its restart quarantine, 7 ms left\r\n",
        b"-MISCONF no\r\n",
        b"-OOM command not allowed\r\n",
        b":1\r\n",
        b"*0\r\n",
        b"*3\r\n:1\r\n:-1\r\n:1000\r\n",
        b"HTTP/1.1 400 Bad Request\r\n",
        b"*3000000000\r\n",
    ];
    for reply in rows {
        let mut cluster = Cluster::new(3, 1, None);
        cluster.set_ways(0, [Way::Open, Way::RepliesHeld, Way::RepliesHeld]);
        cluster.acquire(0, terms(1));
        cluster.deliver(0, 1, reply);
        cluster.deliver(0, 2, reply);
        cluster.advance(ms(200));
        assert_eq!(cluster.said(0), ["0 failed: no quorum"], "{reply:?}");
    }
}

#[test]
fn two_clones_that_are_given_the_same_do_the_same() {
    let mut client = Cluster::new(3, 1, None).side(0).client.clone();
    let mut clone = client.clone();
    for client in [&mut client, &mut clone] {
        client.acquire(Time::ZERO, 0, terms(2));
        for node in 0..3 {
            client.connected(Time::ZERO, node);
        }
    }
    assert_eq!(format!("{client:?}"), format!("{clone:?}"));
}
