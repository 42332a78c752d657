//! Scenes that chance seldom plays.

use std::time::Duration;

use crate::core::tests::stage::{KEY, Stage, id, ms, terms};
use crate::core::{Dialect, Notice};
use crate::error_kind::ErrorKind;
use crate::policy::{RenewPolicy, RetryPolicy};
use crate::token::Token;

#[test]
fn the_last_tries_before_the_wait_ends_are_few_even_when_every_node_is_down() {
    for wait in [1, 10, 20, 21, 100, 1_000] {
        let mut stage = Stage::new(3, Dialect::DelEx);
        (0..3).for_each(|node| stage.take_down(node));
        let mut terms = terms(ms(10_000));
        terms.retry = RetryPolicy::wait_for(ms(wait)).backoff(ms(1), ms(50));
        stage.acquire(terms);
        stage.pass(ms(wait));
        assert!(stage.told("NotAcquired"), "a wait of {wait} ms");
        assert_eq!(stage.core.operations(), 0);
    }
}

#[test]
fn a_renewal_that_fails_at_once_is_not_tried_again_at_once() {
    for period in [1, 3, 1_000] {
        let mut stage = Stage::new(3, Dialect::DelEx);
        let mut terms = terms(ms(50));
        terms.renew = Some(RenewPolicy::times(1_000).every(Duration::from_nanos(period)));
        stage.acquire(terms);
        stage.exchange();
        (0..3).for_each(|node| stage.take_down(node));
        stage.pass(ms(60));
        let failed = |notice: &&Notice| matches!(notice, Notice::RenewalFailed { .. });
        let failed = stage.notices.iter().filter(failed).count();
        assert!(failed <= 51, "{failed} renewals within 50 ms");
        assert!(stage.told("Lost"));
    }
}

#[test]
fn an_extension_that_is_outdated_is_not_sent_again_as_text() {
    let mut stage = Stage::new(1, Dialect::Script);
    let op = stage.lock(terms(ms(10_000)));
    let (now, short, long) = (stage.now, ms(1_000), ms(10_000));
    stage.core.extend(now, op, short);
    let first = stage.sent(0);
    let replies = stage.serve(0, first);
    assert!(replies.starts_with(b"-NOSCRIPT"));
    // Meanwhile another client teaches the node the script.
    stage.core.extend(now, op, long);
    let second = stage.sent(0);
    let text =
        b"*6\r\n$4\r\nEVAL\r\n$9\r\n\"pexpire\"\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\nt\r\n$1\r\n9\r\n";
    stage.serve(0, text.to_vec());
    let more = stage.serve(0, second);
    stage.hear(0, &replies);
    stage.hear(0, &more);
    stage.answer(0);
    assert!(stage.told("Extended"));
    let held = stage.servers[0].held(now.as_nanos(), KEY).unwrap();
    assert_eq!(held.deadline, (now + long).as_nanos(), "not cut short");
}

#[test]
fn a_ticket_that_a_broken_connection_wants_in_full_waits_for_the_next() {
    let mut stage = Stage::new(1, Dialect::Script);
    // Two attempts without an answer leave two releases to be told.
    stage.acquire(terms(ms(60_000)));
    stage.acquire(terms(ms(60_000)));
    let requests = stage.sent(0);
    stage.pass(ms(100));
    assert!(stage.sent(0).is_empty(), "a silent node is not asked");
    stage.serve(0, requests);
    assert_eq!(stage.holders(), 1);
    stage.hear(0, b"+OK\r\n");
    assert!(stage.sent(0).starts_with(b"*5\r\n$7\r\nEVALSHA"));
    // The second attempt's answer makes no sense, and after it the node wants both in full.
    stage.hear(0, b":7\r\n-NOSCRIPT\r\n-NOSCRIPT\r\n");
    assert!(stage.told("NodeDown"));
    assert!(
        stage.sent(0).is_empty(),
        "nothing is for a connection that is over"
    );
    stage.pass(ms(100));
    stage.reconnect(0);
    let greeting = stage.sent(0);
    assert!(
        greeting.starts_with(b"*4\r\n$6\r\nCLIENT"),
        "first the greeting"
    );
    let replies = stage.serve(0, greeting);
    stage.hear(0, &replies);
    stage.exchange();
    assert_eq!(stage.holders(), 0, "then the releases");
}

#[test]
fn bytes_that_come_after_the_end_of_a_connection_belong_to_nobody() {
    for stale in ["$5\r\nab", "+OK\r\n", ":1", "*3\r\n", "garbage\r\n"] {
        let mut stage = Stage::new(1, Dialect::DelEx);
        // A reply that was cut off by the end of the connection.
        stage.acquire(terms(ms(10_000)));
        stage.sent(0);
        stage.hear(0, b"$40\r\n01234");
        stage.take_down(0);
        stage.notices.clear();
        stage.hear(0, stale.as_bytes());
        stage.pass(ms(200));
        stage.hear(0, stale.as_bytes());
        stage.reconnect(0);
        stage.lock_after_greeting();
    }
}

#[test]
fn what_was_not_written_to_a_connection_is_not_written_to_the_next() {
    let mut stage = Stage::new(1, Dialect::DelEx);
    stage.acquire(terms(ms(10_000)));
    stage.take_down(0);
    stage.pass(ms(200));
    stage.reconnect(0);
    let greeting = stage.sent(0);
    assert!(greeting.starts_with(b"*4\r\n$6\r\nCLIENT"));
}

impl Stage {
    fn lock_after_greeting(&mut self) {
        self.exchange();
        assert!(self.told("NodeUp"), "{:?}", self.notices);
        self.lock(terms(ms(10_000)));
    }
}

#[test]
fn a_node_that_was_down_when_a_lock_was_taken_over_is_told_of_the_release() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    stage.acquire(terms(ms(60_000)));
    stage.exchange();
    let (op, token) = stage.acquired().expect("a lock");
    stage.core.leak(op);
    stage.take_down(2);
    let op = stage.core.adopt(stage.now, terms(ms(60_000)), token);
    stage.exchange();
    stage.release(op);
    assert_eq!(stage.holders(), 1, "the one that is down");
    stage.pass(ms(200));
    stage.reconnect(2);
    stage.exchange();
    assert_eq!(stage.holders(), 0);
}

#[test]
fn a_renewal_asks_for_what_it_counts_on() {
    let mut stage = Stage::new(1, Dialect::DelEx);
    let mut terms = terms(ms(90));
    terms.renew = Some(RenewPolicy::until(Duration::from_micros(110_999)));
    stage.lock(terms);
    stage.pass(ms(30));
    stage.exchange();
    let until = stage.find(|notice| match notice {
        Notice::Validity { valid_until, .. } => Some(valid_until.as_nanos()),
        _ => None,
    });
    let held = stage.servers[0].held(stage.now.as_nanos(), KEY).unwrap();
    assert!(until.unwrap() <= held.deadline, "{until:?} {held:?}");
}

#[test]
fn a_lock_that_a_majority_does_not_hold_is_lost_at_the_next_look_and_not_made_anew() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let op = stage.lock(terms(ms(10_000)));
    let now = stage.now.as_nanos();
    for server in &mut stage.servers[..2] {
        server.restart(None);
    }
    stage.extend(op, ms(10_000));
    assert!(stage.told("Lost") && !stage.told("Acquired"));
    assert_eq!(
        stage.extended(),
        Some(Err(ErrorKind::Lost)),
        "{:?}",
        stage.notices
    );
    assert!(stage.servers[0].held(now, KEY).is_none());
}

#[test]
fn a_minority_that_lost_the_key_gets_it_again_and_an_extension_counts_without_it() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let op = stage.lock(terms(ms(10_000)));
    stage.servers[0].restart(None);
    stage.extend(op, ms(10_000));
    assert!(stage.told("Extended") && !stage.told("Lost"));
    assert_eq!(stage.holders(), 3);
}

#[test]
fn one_server_under_two_addresses_has_one_vote() {
    let mut stage = Stage::unconnected(3, Dialect::DelEx);
    for (server, run_id) in stage.servers.iter_mut().zip(["a", "a", "b"]) {
        server.run_id = Some(run_id.into());
    }
    stage.core.look(stage.now, None, ms(100));
    for node in 0..3 {
        stage.reconnect(node);
    }
    stage.exchange();
    assert!(format!("{:?}", stage.notices).contains("NodeDown(NodeId(1), Duplicate { of: 0 })"));
    // With the third away, the two addresses are no majority.
    stage.take_down(2);
    stage.acquire(terms(ms(10_000)));
    stage.exchange();
    stage.pass(ms(100));
    assert!(stage.told("NotAcquired") && !stage.told("Acquired"));
}

#[test]
fn a_look_says_at_once_what_each_node_holds_or_that_it_cannot_be_asked() {
    let mut stage = Stage::unconnected(3, Dialect::DelEx);
    stage.put(1, "other", 9_000);
    stage.core.look(stage.now, Some(KEY.into()), ms(100));
    for node in 0..2 {
        stage.reconnect(node);
        stage.answer(node);
    }
    assert!(!stage.told("Looked"));
    stage.break_off(2);
    let looks = stage.looked().expect("an answer");
    let looks: Vec<_> = looks
        .iter()
        .map(|it| {
            (
                it.token.is_some(),
                it.remaining.is_some(),
                it.cause.is_some(),
            )
        })
        .collect();
    let wants = [
        (false, false, false),
        (true, true, false),
        (false, false, true),
    ];
    assert_eq!(looks, wants);
}

#[test]
fn what_a_server_missed_by_one_address_it_is_told_by_the_other() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let op = stage.lock(terms(ms(60_000)));
    stage.take_down(1);
    stage.release(op);
    // Both addresses lead to one server from now on.
    for node in [0, 1] {
        stage.servers[node].run_id = Some("a".into());
        stage.break_off(node);
    }
    stage.pass(ms(200));
    for node in [0, 1] {
        stage.reconnect(node);
        stage.answer_once(node);
    }
    assert!(format!("{:?}", stage.notices).contains("NodeDown(NodeId(1), Duplicate { of: 0 })"));
    assert!(stage.sent(0).starts_with(b"*4\r\n$5\r\nDELEX"));
}

#[test]
fn a_silent_node_costs_no_memory() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    for _ in 0..300 {
        let op = stage.acquire(terms(ms(10_000)));
        for node in 0..2 {
            stage.answer(node);
        }
        stage.core.drop_interest(stage.now, op);
        stage.answer(0);
        stage.answer(1);
        stage.pass(ms(10));
    }
    let link = &stage.core.links[2];
    assert!(
        link.unanswered.len() <= 120,
        "{} unanswered",
        link.unanswered.len()
    );
    assert!(link.out.len() < 20_000, "{} bytes to write", link.out.len());
    stage.pass(ms(2_000));
    assert_eq!(stage.core.operations(), 0);
}

#[test]
fn a_node_that_timed_out_is_not_asked_until_it_is_heard_again() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    // Its connection is silent for the whole of an acquire that cannot do without it.
    stage.take_down(1);
    stage.acquire(terms(ms(10_000)));
    stage.answer(0);
    stage.pass(ms(100));
    stage.answer(0);
    let before = stage.sent(2);
    stage.notices.clear();
    stage.acquire(terms(ms(10_000)));
    assert!(stage.sent(2).is_empty(), "not asked");
    assert!(stage.told("NotAcquired"), "and not waited for");
    // It is heard again: it is told what it missed, and asked.
    let replies = stage.serve(2, before);
    stage.hear(2, &replies);
    stage.answer(0);
    stage.answer(2);
    assert_eq!(stage.holders(), 0);
    stage.notices.clear();
    stage.acquire(terms(ms(10_000)));
    stage.exchange();
    assert!(stage.told("Acquired"));
}

#[test]
fn a_release_ends_with_the_last_reply_and_its_memory_with_it() {
    let mut stage = Stage::new(3, Dialect::DelIfEq);
    let op = stage.lock(terms(ms(10_000)));
    stage.pass(ms(200));
    stage.core.release(stage.now, op);
    assert_eq!(stage.core.alarms.len(), 1, "one alarm for an operation");
    stage.answer(0);
    assert!(!stage.told("Released"), "one of three is no majority");
    stage.answer(1);
    assert!(stage.told("Released"));
    assert_eq!(stage.core.operations(), 1, "one reply is to come");
    stage.answer(2);
    assert_eq!(stage.core.operations(), 0);
    assert_eq!(stage.holders(), 0);
}

#[test]
fn a_shorter_extension_counts_from_the_moment_it_is_asked_for() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let op = stage.lock(terms(ms(10_000)));
    stage.pass(ms(10));
    stage.core.extend(stage.now, op, ms(500));
    stage.listen();
    let until = stage.now + ms(500);
    let told = stage.notices.iter().any(|notice| {
        matches!(notice, Notice::Validity { valid_until, is_renewal: false, .. } if *valid_until == until)
    });
    assert!(told, "before a byte is written: {:?}", stage.notices);
    // It fails, and stays as short.
    (0..3).for_each(|node| stage.take_down(node));
    stage.notices.clear();
    stage.pass(ms(500));
    assert!(stage.told("Lost"));
}

/// Two nodes hear of a shorter extension, or do not, and nobody knows: its time is over, or the others have decided it, when
/// their connections break. What was sent may still arrive, after a longer one, and cut that short.
#[test]
fn a_shorter_extension_that_was_never_answered_is_not_forgotten() {
    for (is_decided, next, is_extended) in [
        (false, ms(10_000), false),
        (true, ms(10_000), false),
        (false, ms(5_000), true),
        (true, ms(4_000), true),
    ] {
        let context = format!("decided: {is_decided}, then {next:?}");
        let mut stage = Stage::new(5, Dialect::DelEx);
        let op = stage.lock(terms(ms(10_000)));
        let extend = |stage: &mut Stage, ttl, answering: std::ops::Range<usize>| {
            stage.notices.clear();
            stage.core.extend(stage.now, op, ttl);
            for node in 0..5 {
                let requests = stage.sent(node);
                if answering.contains(&node) {
                    let replies = stage.serve(node, requests);
                    stage.hear(node, &replies);
                }
            }
            stage.pass(ms(100));
            let is_told =
                |notice: &Notice| matches!(notice, Notice::Extended { result: Ok(_), .. });
            assert!(stage.told("Extended"), "{:?}", stage.notices);
            stage.notices.iter().any(is_told)
        };
        let answering = if is_decided { 2..5 } else { 2..2 };
        assert_eq!(extend(&mut stage, ms(5_000), answering), is_decided);
        let broken = if is_decided { 0..2 } else { 0..5 };
        broken.clone().for_each(|node| stage.break_off(node));
        stage.pass(ms(100));
        for node in broken {
            stage.reconnect(node);
            stage.answer(node);
        }
        assert_eq!(extend(&mut stage, next, 0..3), is_extended, "{context}");
    }
}

#[test]
fn two_cores_that_are_told_the_same_do_the_same() {
    let mut one = Stage::new(3, Dialect::Script);
    one.acquire(terms(ms(1_000)));
    let mut two = Stage {
        core: one.core.clone(),
        now: one.now,
        servers: one.servers.clone(),
        notices: one.notices.clone(),
    };
    for stage in [&mut one, &mut two] {
        stage.exchange();
        stage.pass(ms(700));
        stage.exchange();
        stage.pass(ms(700));
    }
    assert_eq!(format!("{:?}", one.notices), format!("{:?}", two.notices));
    assert_eq!(format!("{:?}", one.core), format!("{:?}", two.core));
}

#[test]
fn a_reply_that_answers_nothing_ends_the_connection_and_no_question() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let op = stage.lock(terms(ms(10_000)));
    stage.hear(1, b"+OK\r\n");
    assert!(
        stage.told("NodeDown(NodeId(1), Protocol"),
        "{:?}",
        stage.notices
    );
    stage.core.release(stage.now, op);
    stage.listen();
    assert!(!stage.told("Released"));
}

#[test]
fn a_token_from_elsewhere_is_released_on_nodes_that_come_later() {
    let mut stage = Stage::new(3, Dialect::DelIfEq);
    let token = Token::new("elsewhere").unwrap();
    (0..3).for_each(|node| stage.put(node, "elsewhere", 60_000));
    stage.take_down(1);
    stage
        .core
        .release_token(stage.now, terms(ms(60_000)), token);
    stage.exchange();
    assert_eq!(stage.holders(), 1);
    stage.pass(ms(200));
    stage.core.connected(stage.now, id(1));
    stage.exchange();
    assert_eq!(stage.holders(), 0);
}

#[test]
fn a_grant_is_worth_nothing_when_its_connection_broke_before_the_round_was_decided() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let op = stage.acquire(terms(ms(10_000)));
    let requests = [0, 1].map(|node| (node, stage.sent(node)));
    let replies = requests.map(|(node, requests)| stage.serve(node, requests));
    stage.hear(0, &replies[0]);
    // It may restart with nothing in its memory now.
    stage.break_off(0);
    stage.hear(1, &replies[1]);
    assert!(!stage.told("Acquired"), "one of three: {:?}", stage.notices);
    stage.answer(2);
    assert!(stage.told("Acquired"));
    stage.notices.clear();
    // The same for an extension.
    stage.core.extend(stage.now, op, ms(20_000));
    stage.answer(1);
    stage.break_off(1);
    stage.answer(2);
    assert!(!stage.told("Extended { op: OpId { slot: 0, generation: 1 }, result: Ok"));
    assert!(stage.told("Extended"), "{:?}", stage.notices);
}

#[test]
fn a_release_goes_to_the_nodes_that_refused_as_well() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    stage.put(2, "other", 9_000);
    let op = stage.lock(terms(ms(10_000)));
    stage.core.release(stage.now, op);
    for node in 0..3 {
        let sent = stage.sent(node);
        assert!(sent.starts_with(b"*4\r\n$5\r\nDELEX"), "node {node}");
    }
}

#[test]
fn a_lock_that_has_ended_is_not_extended_although_nobody_looked_at_the_time() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let op = stage.lock(terms(ms(1_000)));
    stage.now = stage.now + ms(1_000);
    stage.core.extend(stage.now, op, ms(1_000));
    stage.listen();
    assert!(
        (0..3).all(|node| stage.sent(node).is_empty()),
        "no byte is written"
    );
    assert!(stage.told("Lost"));
    assert_eq!(
        stage.extended(),
        Some(Err(ErrorKind::Expired)),
        "{:?}",
        stage.notices
    );
}

#[test]
fn a_wait_ends_on_time_although_nodes_have_more_time_to_answer() {
    let mut stage = Stage::new(3, Dialect::DelEx);
    let mut terms = terms(ms(10_000));
    terms.retry = RetryPolicy::wait_for(ms(60));
    stage.acquire(terms);
    stage.pass(ms(59));
    assert!(!stage.told("NotAcquired"));
    stage.pass(ms(1));
    assert_eq!(
        stage.refused(),
        Some(ErrorKind::Timeout),
        "{:?}",
        stage.notices
    );
}

#[test]
fn no_attempt_begins_after_the_wait_however_late_the_timer_is() {
    let mut stage = Stage::new(1, Dialect::DelEx);
    stage.lock(terms(ms(60_000)));
    let mut terms = terms(ms(10_000));
    terms.retry = RetryPolicy::wait_for(ms(500));
    stage.acquire(terms);
    stage.exchange();
    stage.now = stage.now + ms(501);
    stage.core.on_time(stage.now);
    stage.listen();
    assert!(stage.told("NotAcquired"));
    assert!(stage.sent(0).is_empty(), "not asked any more");
}

#[test]
fn a_late_reply_is_not_credited_to_a_later_operation_in_the_same_place() {
    let mut stage = Stage::new(1, Dialect::DelEx);
    stage.lock(terms(ms(60_000)));
    let first = stage.core.look(stage.now, Some(KEY.into()), ms(100));
    let requests = stage.sent(0);
    let replies = stage.serve(0, requests);
    // Something of it comes, so that the node is not taken for dead, and the rest is late.
    let (token, rest) = replies.split_at(replies.len() - 8);
    stage.pass(ms(99));
    stage.hear(0, token);
    stage.pass(ms(1));
    assert!(stage.told("Looked"));
    stage.notices.clear();
    let second = stage
        .core
        .look(stage.now, Some(b"another".as_slice().into()), ms(100));
    assert_eq!(first.slot(), second.slot());
    stage.hear(0, rest);
    stage.answer(0);
    let look = &stage.looked().unwrap()[0];
    assert_eq!(
        (&look.token, look.remaining, &look.cause),
        (&None, None, &None)
    );
}

/// A lock that is left at once reaches the nodes that are slower to connect, too, and not for longer than their time.
#[test]
fn a_lock_that_is_left_at_once_still_reaches_the_slower_nodes() {
    for is_extension in [false, true] {
        let mut stage = Stage::unconnected(5, Dialect::Script);
        let token = Token::new("left").unwrap();
        if is_extension {
            (0..5).for_each(|node| stage.put(node, "left", 500));
            stage.core.adopt(stage.now, terms(ms(10_000)), token);
        } else {
            stage.acquire(terms(ms(10_000)));
        }
        for node in 0..3 {
            stage.core.connected(stage.now, id(node));
        }
        stage.exchange();
        let (op, _) = stage.acquired().expect("a lock");
        stage.core.leak(op);
        assert_eq!(stage.core.operations(), 1, "two nodes were not asked yet");
        stage.pass(ms(50));
        stage.core.connected(stage.now, id(3));
        stage.exchange();
        let until = (stage.now + ms(9_000)).as_nanos();
        let holds =
            |server: &&crate::core::tests::server::Server| server.held(until, KEY).is_some();
        assert_eq!(stage.servers.iter().filter(holds).count(), 4);
        stage.pass(ms(50));
        assert_eq!(stage.core.operations(), 0, "the fifth had its time");
    }
}

/// What a renewal failed for is what the loss is explained by.
#[test]
fn a_lock_that_could_not_be_renewed_is_lost_with_what_the_nodes_said() {
    let mut stage = Stage::new(5, Dialect::DelEx);
    let mut terms = terms(ms(900));
    terms.renew = Some(RenewPolicy::until(ms(60_000)));
    stage.lock(terms);
    (0..3).for_each(|node| stage.take_down(node));
    let until = stage.now + ms(900);
    for _ in 0..900 {
        stage.pass(ms(1));
        (3..5).for_each(|node| stage.answer(node));
        if stage.told("Lost") {
            break;
        }
    }
    assert!(stage.now < until, "before its end");
    let lost = stage.find(|notice| match notice {
        Notice::Lost { kind, causes, .. } => Some((*kind, causes.len())),
        _ => None,
    });
    assert_eq!(lost, Some((ErrorKind::Expired, 3)));
}

/// A node that is still being connected, and so never granted the lock, delays no end of a client.
#[test]
fn the_end_of_a_client_waits_for_no_node_that_never_had_the_lock() {
    let mut stage = Stage::unconnected(5, Dialect::Lock);
    stage.acquire(terms(ms(10_000)));
    (0..3).for_each(|node| stage.core.connected(stage.now, id(node)));
    stage.exchange();
    let (op, _) = stage.acquired().expect("a lock");
    stage.core.release(stage.now, op);
    stage.exchange();
    assert!(stage.told("Released"));
    assert!(stage.core.is_settled(), "a client may end");
}

/// However many locks are wanted at once, each is asked for when there is room, and the nodes' time counts from then.
#[test]
fn more_locks_than_the_nodes_can_answer_at_once_are_asked_for_one_after_the_other() {
    let mut stage = Stage::unconnected(3, Dialect::Lock);
    for n in 0..5_000 {
        let mut terms = terms(ms(60_000));
        terms.key = format!("key-{n}").into_bytes().into();
        stage.acquire(terms);
    }
    (0..3).for_each(|node| stage.core.connected(stage.now, id(node)));
    for _ in 0..1_000 {
        for node in 0..3 {
            let mut requests = stage.sent(node);
            let count = requests.iter().filter(|byte| **byte == b'*').count();
            assert!(count <= 2 * 1_100, "{count} requests at once");
            // A slow node: what it is sent in a turn takes it a fifth of a request's time.
            let replies = stage.serve(node, std::mem::take(&mut requests));
            stage.hear(node, &replies);
        }
        stage.pass(ms(20));
    }
    let acquired = |notice: &&Notice| matches!(notice, Notice::Acquired { .. });
    assert_eq!(stage.notices.iter().filter(acquired).count(), 5_000);
}

/// Whatever words a node is asked in, an extension or a release is nothing to a key that somebody else has by now.
#[test]
fn in_no_dialect_an_extension_or_a_release_touches_the_key_of_another() {
    let dialects = [
        Dialect::Script,
        Dialect::DelEx,
        Dialect::DelIfEq,
        Dialect::Lock,
    ];
    for dialect in dialects {
        // Once with scripts that the node is sent, and once with those that it knows by then.
        let mut stage = Stage::new(3, dialect);
        for _ in 0..2 {
            let op = stage.lock(terms(ms(60_000)));
            for node in 0..3 {
                stage.servers[node].end_all();
                stage.put(node, "another", 5_000);
            }
            let until = (stage.now + ms(5_000)).as_nanos();
            stage.extend(op, ms(60_000));
            assert!(stage.told("Lost"), "{dialect:?}");
            stage.release(op);
            for server in &mut stage.servers {
                let held = server.held(stage.now.as_nanos(), KEY).unwrap();
                assert_eq!(held.token, b"another", "{dialect:?}");
                assert_eq!(held.deadline, until, "{dialect:?}");
                server.end_all();
            }
            stage.notices.clear();
        }
    }
}
