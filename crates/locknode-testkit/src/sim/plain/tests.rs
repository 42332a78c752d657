//! The plain client against real engines: first without a mistake, then each mistake, in a scenario that is safe
//! without it.

mod cluster;
mod mistakes;

use redlock_proto::Time;

use super::*;
use crate::sim::plain::PlainTerms;
use crate::sim::plain::tests::cluster::{Cluster, Way, ms, terms};

#[test]
fn all_nodes_are_asked_at_once_and_validity_counts_from_before() {
    let mut cluster = Cluster::new(5, 1, None);
    let start = cluster.clock(0);
    let lock = cluster.acquire(0, terms(1));
    let said = cluster.said(0);
    let [
        ClientNotice::Acquired {
            token,
            fencing,
            valid_until,
            ..
        },
    ] = &said[..]
    else {
        panic!("{said:?}");
    };
    assert_eq!(*valid_until, start + ms(988));
    assert_eq!(*fencing, Some(1));
    let token = std::str::from_utf8(token).unwrap();
    assert_eq!(
        cluster.asked(0)[4],
        format!("4: LOCK.ACQUIRE key {token} 1000")
    );
    assert_eq!(cluster.keys(), 5);

    cluster.release(0, lock);
    assert_eq!(
        cluster.said(0),
        [ClientNotice::Released { lock, confirmed: 5 }]
    );
    assert_eq!(cluster.keys(), 0);
    assert_eq!(cluster.client(0).next_deadline(), Time::NEVER);
}

#[test]
fn a_lock_that_another_holds_is_not_had_and_nothing_of_the_attempt_is_left() {
    let mut cluster = Cluster::new(3, 2, None);
    cluster.set_ways(0, [Way::Open, Way::Open, Way::Refused]);
    cluster.acquire_now(0);
    let lock = cluster.acquire(1, terms(3));
    cluster.advance(ms(300));
    let why = "busy";
    assert_eq!(cluster.said(1), [ClientNotice::Failed { lock, why }]);
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
    assert!(first[0].starts_with("0: LOCK.ACQUIRE key "), "{first:?}");
    assert!(second[0].starts_with("0: LOCK.ACQUIRE key "), "{second:?}");
    assert_ne!(first[0], second[0]);
}

#[test]
fn a_minority_of_the_configured_nodes_is_no_quorum() {
    use Way::{Open, Refused};
    let mut cluster = Cluster::new(5, 1, None);
    cluster.set_ways(0, [Open, Open, Refused, Refused, Refused]);
    let lock = cluster.acquire(0, terms(1));
    cluster.advance(ms(200));
    let why = "no quorum";
    assert_eq!(cluster.said(0), [ClientNotice::Failed { lock, why }]);
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
    let valid_until = cluster.clock(0) + ms(988 - 25);
    let said = cluster.said(0);
    assert!(
        matches!(said[..], [ClientNotice::Acquired { valid_until: told, .. }] if told == valid_until),
        "{said:?}"
    );
}

#[test]
fn nodes_that_are_behind_accept_the_fencing_token_before_it_is_told() {
    let mut cluster = Cluster::new(3, 1, None);
    for _ in 0..3 {
        cluster.tell(0, "LOCK.ACQUIRE key other 1000");
        cluster.tell(0, "DEL key");
    }
    let lock = cluster.acquire_now(0);
    let (fence, token) = cluster.fence(0);
    assert_eq!(fence, 4);
    let token = String::from_utf8(token).unwrap();
    let asked = cluster.asked(0);
    assert!(
        asked.contains(&format!("1: LOCK.FENCE key {token} 1 4")),
        "{asked:?}"
    );
    cluster.release(0, lock);
    cluster.acquire_now(0);
    assert_eq!(cluster.fence(0).0, 5);
    let asked = cluster.asked(0);
    assert!(
        asked.iter().all(|words| !words.contains("FENCE")),
        "{asked:?}"
    );
}

#[test]
fn a_token_that_no_majority_accepts_is_not_told() {
    let mut cluster = Cluster::new(3, 1, None);
    cluster.tell(0, "LOCK.ACQUIRE key other 1000");
    cluster.tell(0, "DEL key");
    cluster.set_ways(0, [Way::Open, Way::RepliesHeld, Way::RepliesHeld]);
    let lock = cluster.acquire(0, terms(1));
    for node in [1, 2] {
        // Its grant is another's before it hears of the token.
        cluster.tell(node, "DEL key");
        cluster.tell(node, "LOCK.ACQUIRE key other 1000");
    }
    cluster.set_ways(0, [Way::Open; 3]);
    let why = "busy";
    assert_eq!(cluster.said(0), [ClientNotice::Failed { lock, why }]);
    assert_eq!(cluster.keys(), 2, "those of the other");
}

#[test]
fn a_connection_whose_reply_is_late_is_closed_and_opened_again() {
    let mut cluster = Cluster::new(3, 1, None);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    let lock = cluster.acquire(0, terms(1));
    cluster.advance(ms(49));
    assert_eq!((cluster.said(0).len(), cluster.keys()), (0, 3));
    cluster.advance(ms(1));
    cluster.set_ways(0, [Way::Open; 3]);
    // The releases wait for the new connections.
    cluster.advance(ms(20));
    let why = "no quorum";
    assert_eq!(cluster.said(0), [ClientNotice::Failed { lock, why }]);
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
        let pause = cluster.client(0).next_deadline().since(cluster.clock(0));
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
    cluster.said(0);
    cluster.advance(ms(900));
    let start = cluster.clock(0);
    cluster.extend(0, lock, ms(1_000));
    let result = Ok(start + ms(988));
    assert_eq!(cluster.said(0), [ClientNotice::Extended { lock, result }]);
    cluster.advance(ms(987));
    assert!(cluster.holds(0));
    cluster.acquire(1, terms(1));
    assert!(!cluster.holds(1));
    cluster.advance(ms(1));
    let why = "expired";
    assert_eq!(cluster.said(0), [ClientNotice::Lost { lock, why }]);
    cluster.extend(0, lock, ms(1_000));
    let result = Err("lost");
    assert_eq!(cluster.said(0), [ClientNotice::Extended { lock, result }]);
    cluster.release(0, lock);
    assert_eq!(
        cluster.said(0),
        [ClientNotice::Released { lock, confirmed: 3 }]
    );
}

#[test]
fn a_lock_that_is_not_extended_ends_with_its_validity() {
    let mut cluster = Cluster::new(3, 2, None);
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(950));
    cluster.said(0);
    cluster.set_ways(0, [Way::Open, Way::RepliesHeld, Way::RepliesHeld]);
    cluster.extend(0, lock, ms(1_000));
    cluster.extend(0, lock, ms(1_000));
    cluster.advance(ms(40));
    assert_eq!(
        cluster.said(0),
        [
            ClientNotice::Extended {
                lock,
                result: Err("busy")
            },
            ClientNotice::Extended {
                lock,
                result: Err("expired")
            },
            ClientNotice::Lost {
                lock,
                why: "expired"
            },
        ]
    );
}

#[test]
fn a_lock_that_a_majority_does_not_hold_is_lost_at_once() {
    let mut cluster = Cluster::new(3, 1, None);
    let lock = cluster.acquire_now(0);
    cluster.said(0);
    cluster.restart(1);
    cluster.restart(2);
    cluster.advance(ms(30));
    cluster.extend(0, lock, ms(1_000));
    assert_eq!(
        cluster.said(0),
        [
            ClientNotice::Extended {
                lock,
                result: Err("not held")
            },
            ClientNotice::Lost {
                lock,
                why: "not held"
            },
        ]
    );
}

#[test]
fn a_shorter_ttl_shortens_the_validity_before_a_node_hears_of_it() {
    let mut cluster = Cluster::new(3, 1, None);
    let lock = cluster.acquire_now(0);
    cluster.said(0);
    cluster.set_ways(0, [Way::Silent; 3]);
    let valid_until = cluster.clock(0) + ms(97);
    cluster.extend(0, lock, ms(100));
    assert_eq!(
        cluster.said(0),
        [ClientNotice::Validity { lock, valid_until }]
    );
    cluster.advance(ms(60));
    let result = Err("no quorum");
    assert_eq!(cluster.said(0), [ClientNotice::Extended { lock, result }]);
    cluster.advance(ms(37));
    let why = "expired";
    assert_eq!(cluster.said(0), [ClientNotice::Lost { lock, why }]);
}

#[test]
fn a_lock_can_be_released_or_left_while_it_is_acquired() {
    let mut cluster = Cluster::new(3, 1, None);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    let lock = cluster.acquire(0, terms(3));
    cluster.release(0, lock);
    let left = cluster.acquire(
        0,
        PlainTerms {
            key: (*b"other").into(),
            ..terms(3)
        },
    );
    cluster.leave(0, left);
    cluster.set_ways(0, [Way::Open; 3]);
    assert_eq!(
        cluster.said(0),
        [ClientNotice::Released { lock, confirmed: 3 }]
    );
    assert_eq!(cluster.client(0).next_deadline(), Time::NEVER);
    // Of what is not there, too, the answer is one.
    cluster.release(0, left);
    cluster.extend(0, left, ms(1_000));
    let result = Err("not held");
    assert_eq!(
        cluster.said(0),
        [
            ClientNotice::Released {
                lock: left,
                confirmed: 0
            },
            ClientNotice::Extended { lock: left, result },
        ]
    );
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
    assert_eq!(cluster.fence(0).0, 17);
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
        let lock = cluster.acquire(0, terms(1));
        cluster.deliver(0, 1, reply);
        cluster.deliver(0, 2, reply);
        cluster.advance(ms(200));
        let why = "no quorum";
        assert_eq!(
            cluster.said(0),
            [ClientNotice::Failed { lock, why }],
            "{reply:?}"
        );
    }
}

#[test]
fn two_clones_that_are_given_the_same_do_the_same() {
    let mut client = Cluster::new(3, 1, None).client(0).clone();
    let mut clone = client.clone();
    for client in [&mut client, &mut clone] {
        client.acquire(Time::ZERO, 0, terms(2));
        for node in 0..3 {
            client.connected(Time::ZERO, node);
        }
    }
    assert_eq!(format!("{client:?}"), format!("{clone:?}"));
}
