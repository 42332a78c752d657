//! What happens between clients and nodes.

use std::io::ErrorKind;
use std::time::Duration;

use locknode_resp::Reply;
use locknode_testkit::cluster::Cluster;
use locknode_testkit::{Fault, GuardMode, Links, Members, Refusal, Way};
use tokio::time::Instant;

use crate::wire::{Conversation, Wire, bulk, eventually, inject, ok, taking};

on_both!(
    cut_requests_arrive_when_the_link_is_healed,
    cut_replies_arrive_when_the_link_is_healed,
    a_partition_parts_these_clients_from_these_nodes,
    what_is_held_back_arrives_when_it_is_let_go,
    a_lost_request_takes_its_connection_with_it,
    a_lost_reply_takes_its_connection_with_it,
    a_skipped_reply_is_missing_and_the_next_is_not,
    messages_take_as_long_as_they_are_delayed,
    late_messages_hold_up_what_follows,
    a_doubled_request_arrives_twice,
    a_refused_request_is_not_executed,
    a_reset_breaks_connections_and_nothing_else,
    a_node_that_stands_still_answers_afterwards,
    a_crash_behind_a_cut_is_noticed_when_it_is_healed,
    a_client_that_says_no_more_still_hears_the_replies,
    what_a_client_sent_before_it_left_arrives,
    losses_count_whole_messages_in_whatever_pieces,
);

/// A link between client 0 and node 0, and client 1, whose link to that node works.
async fn pair(wire: Wire) -> (Cluster, Conversation, Conversation) {
    let cluster = wire.build(Cluster::builder().nodes(2)).await;
    let client = wire.dial(&cluster, 0, 0).await.unwrap();
    let witness = wire.dial(&cluster, 1, 0).await.unwrap();
    (cluster, client, witness)
}

fn link() -> Links {
    Links::between(0, 0)
}

async fn cut_requests_arrive_when_the_link_is_healed(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    inject(&cluster, Fault::Cut(link(), Way::Requests)).await;
    assert!(wire.is_silent(client.take("k")).await);
    assert_eq!(witness.get("k").await, None);
    inject(&cluster, Fault::Heal(link())).await;
    assert_eq!(client.hear().await.unwrap(), ok());
    assert_eq!(witness.get("k").await.as_deref(), Some("t"));
}

async fn cut_replies_arrive_when_the_link_is_healed(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    inject(&cluster, Fault::Cut(link(), Way::Replies)).await;
    client.say("SET k t NX").await;
    client.say("SET j t NX PX 50000").await;
    assert!(wire.is_silent(client.hear()).await);
    // The second was executed, so the first was.
    while witness.ttl("j").await == -2 {}
    inject(&cluster, Fault::Heal(Links::ALL)).await;
    let first = client.hear().await.unwrap();
    assert!(matches!(first, Reply::Error(_)), "no TTL, no disk");
    assert_eq!(client.hear().await.unwrap(), ok());
}

async fn a_partition_parts_these_clients_from_these_nodes(wire: Wire) {
    let cluster = wire.build(Cluster::builder().nodes(3)).await;
    let mut conversations = Vec::new();
    for (client, node) in (0..3).flat_map(|client| (0..3).map(move |node| (client, node))) {
        let conversation = wire.dial(&cluster, client, node).await.unwrap();
        conversations.push((client, node, conversation));
    }
    cluster.partition([0, 1], [1, 2]).unwrap();
    for (client, node, conversation) in &mut conversations {
        conversation.say("ECHO x").await;
        if *client < 2 && *node > 0 {
            assert!(wire.is_silent(conversation.hear()).await, "{client} {node}");
        } else {
            conversation.hear().await.unwrap();
        }
    }
    inject(&cluster, Fault::Heal(Links::ALL)).await;
    conversations.retain(|(client, node, _)| *client < 2 && *node > 0);
    for (_, _, mut conversation) in conversations {
        conversation.hear().await.unwrap();
    }
}

async fn what_is_held_back_arrives_when_it_is_let_go(wire: Wire) {
    for way in [Way::Requests, Way::Replies, Way::Both] {
        let (cluster, mut client, mut witness) = pair(wire).await;
        inject(&cluster, Fault::Hold(link(), way)).await;
        assert!(wire.is_silent(client.take("k")).await);
        // Healing is for what was cut.
        inject(&cluster, Fault::Heal(Links::ALL)).await;
        assert!(wire.is_silent(client.hear()).await);
        let is_executed = witness.get("k").await.is_some();
        assert_eq!(is_executed, way == Way::Replies);
        inject(&cluster, Fault::Release(link(), way)).await;
        assert_eq!(client.hear().await.unwrap(), ok());
    }
}

async fn a_lost_request_takes_its_connection_with_it(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    let links = Links::between(Members::ALL, 0);
    inject(&cluster, Fault::Drop(links, Way::Requests, 1)).await;
    assert!(wire.is_silent(client.take("k")).await);
    assert!(wire.is_silent(client.take("k")).await, "what follows");
    // The witness' link loses one too.
    assert!(wire.is_silent(witness.take("k")).await);
    for client in 0..2 {
        let mut again = wire.dial(&cluster, client, 0).await.unwrap();
        assert_eq!(again.get("k").await, None);
    }
}

async fn a_lost_reply_takes_its_connection_with_it(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    inject(&cluster, Fault::Drop(link(), Way::Replies, 1)).await;
    assert!(wire.is_silent(client.take("k")).await);
    assert!(wire.is_silent(client.take("j")).await, "what follows");
    assert_eq!(witness.get("k").await.as_deref(), Some("t"));
    // Requests still arrive.
    assert_eq!(witness.get("j").await.as_deref(), Some("t"));
    let mut again = wire.dial(&cluster, 0, 0).await.unwrap();
    assert_eq!(again.get("k").await.as_deref(), Some("t"));
    // The end of the node's process is noticed.
    cluster.crash(0).await.unwrap();
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);

    let (cluster, mut client, _) = pair(wire).await;
    cluster.drop_replies(0, 1).unwrap();
    assert!(wire.is_silent(client.take("k")).await);
}

async fn a_skipped_reply_is_missing_and_the_next_is_not(wire: Wire) {
    let (cluster, mut client, _) = pair(wire).await;
    cluster.skip_replies(link(), 2).unwrap();
    for word in ["one", "two", "three"] {
        client.say(&format!("ECHO {word}")).await;
    }
    assert_eq!(client.hear().await.unwrap(), bulk("three"));
}

async fn messages_take_as_long_as_they_are_delayed(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    let delay = wire.span(1);
    cluster.delay(link(), delay).unwrap();
    let start = Instant::now();
    client.take("k").await;
    let took = start.elapsed();
    assert!(took >= 2 * delay, "{took:?}");
    if wire == Wire::Memory {
        assert!(took <= 2 * delay + Duration::from_millis(2), "{took:?}");
        let start = Instant::now();
        cluster.connect(0, 0).await.unwrap();
        assert!(start.elapsed() >= 2 * delay);
        let start = Instant::now();
        witness.take("j").await;
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
    // Many at once take no longer than one.
    let start = Instant::now();
    for _ in 0..50 {
        client.say("ECHO x").await;
    }
    for _ in 0..50 {
        client.hear().await.unwrap();
    }
    assert!(start.elapsed() < 10 * delay);
}

async fn late_messages_hold_up_what_follows(wire: Wire) {
    for way in [Way::Requests, Way::Replies] {
        let (cluster, mut client, _) = pair(wire).await;
        let span = wire.span(1);
        inject(&cluster, Fault::Late(link(), way, 1, span)).await;
        let start = Instant::now();
        client.say("ECHO late").await;
        client.say("ECHO behind").await;
        assert_eq!(client.hear().await.unwrap(), bulk("late"));
        assert!(start.elapsed() >= span);
        assert_eq!(client.hear().await.unwrap(), bulk("behind"));
        let start = Instant::now();
        client.ask("ECHO in-time").await;
        assert!(wire == Wire::Loopback || start.elapsed() < span);
    }
}

async fn a_doubled_request_arrives_twice(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    inject(&cluster, Fault::Duplicate(link(), 1)).await;
    let node = cluster.node(0).unwrap();
    let before = node.stats().commands;
    client.ask("EXISTS k").await;
    eventually("it came twice", || node.stats().commands == before + 2).await;
    client.ask("EXISTS k").await;
    witness.ask("EXISTS k").await;
    assert_eq!(node.stats().commands, before + 4, "only the next one");
    // The client hears one reply to each.
    assert_eq!(client.ask("ECHO x").await, bulk("x"));
}

async fn a_refused_request_is_not_executed(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    inject(&cluster, Fault::Refuse(link(), Refusal::ReadOnly, 2)).await;
    client.say("PING").await;
    for _ in 0..3 {
        client.say("SET k t NX PX 9000").await;
    }
    let mut replies = Vec::new();
    for _ in 0..4 {
        replies.push(client.hear().await.unwrap());
    }
    let refused =
        |reply: &Reply| matches!(reply, Reply::Error(text) if text.starts_with(b"READONLY"));
    assert_eq!(replies[0], Reply::Simple(b"PONG".to_vec()));
    assert!(refused(&replies[1]) && refused(&replies[2]), "{replies:?}");
    assert_eq!(replies[3], Reply::Simple(b"OK".to_vec()));
    assert_eq!(witness.get("k").await.as_deref(), Some("t"));
}

async fn a_reset_breaks_connections_and_nothing_else(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    client.take("k").await;
    eventually("both are there", || cluster.connections(0) == 2).await;
    inject(&cluster, Fault::Reset(link())).await;
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
    assert_eq!(witness.get("k").await.as_deref(), Some("t"));
    eventually("one is gone", || cluster.connections(0) == 1).await;
    let mut again = wire.dial(&cluster, 0, 0).await.unwrap();
    assert_eq!(again.get("k").await.as_deref(), Some("t"));
}

async fn a_node_that_stands_still_answers_afterwards(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    let mut elsewhere = wire.dial(&cluster, 0, 1).await.unwrap();
    let (span, ttl_ms) = (wire.span(3), wire.span(2).as_millis());
    client.ask(&format!("SET k t NX PX {ttl_ms}")).await;
    let start = Instant::now();
    cluster.pause(0, span).unwrap();
    elsewhere.ask("ECHO x").await;
    let is_late = wire == Wire::Memory && start.elapsed() >= span;
    assert!(!is_late, "others go on");
    // Its clocks went on: the lock has expired when it reads this.
    assert_eq!(client.get("k").await, None);
    assert!(start.elapsed() >= span);
    witness.ask("ECHO x").await;
}

async fn a_crash_behind_a_cut_is_noticed_when_it_is_healed(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    client.take("k").await;
    inject(&cluster, Fault::Cut(link(), Way::Both)).await;
    cluster.crash(0).await.unwrap();
    assert!(witness.hear().await.is_err());
    assert!(wire.is_silent(client.hear()).await);
    cluster.restart(0).await.unwrap();
    assert!(wire.is_silent(client.hear()).await);
    inject(&cluster, Fault::Heal(Links::ALL)).await;
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
}

async fn a_client_that_says_no_more_still_hears_the_replies(wire: Wire) {
    let (cluster, mut client, _witness) = pair(wire).await;
    cluster.delay(link(), wire.span(1)).unwrap();
    client.say(&taking("k")).await;
    client.finish().await.unwrap();
    assert_eq!(client.hear().await.unwrap(), ok());
    assert_eq!(client.end().await, ErrorKind::UnexpectedEof);
    eventually("the connection is gone", || cluster.connections(0) == 1).await;
}

async fn what_a_client_sent_before_it_left_arrives(wire: Wire) {
    let (cluster, mut client, mut witness) = pair(wire).await;
    inject(&cluster, Fault::Cut(link(), Way::Both)).await;
    client.say(&taking("k")).await;
    drop(client);
    assert_eq!(witness.get("k").await, None);
    inject(&cluster, Fault::Heal(Links::ALL)).await;
    witness.sees("k").await;
    eventually("the connection is gone", || cluster.connections(0) == 1).await;
}

async fn losses_count_whole_messages_in_whatever_pieces(wire: Wire) {
    let builder = Cluster::builder().nodes(1).guard(GuardMode::Off);
    let cluster = wire.build(builder).await;
    let mut client = wire.dial(&cluster, 0, 0).await.unwrap();
    let mut witness = wire.dial(&cluster, 1, 0).await.unwrap();
    client.say_in_pieces("SET a t").await;
    assert_eq!(client.hear().await.unwrap(), ok());
    inject(&cluster, Fault::Drop(link(), Way::Requests, 1)).await;
    client.say_in_pieces("SET b t").await;
    client.say_in_pieces("SET c t").await;
    assert!(wire.is_silent(client.hear()).await);
    assert_eq!(witness.get("a").await.as_deref(), Some("t"));
    assert_eq!(witness.get("b").await, None);
    assert_eq!(witness.get("c").await, None);
}

/// Who gives up behind a cut and connects again takes nothing from others.
#[tokio::test(start_paused = true)]
async fn connections_whose_clients_have_left_take_nobodys_place() {
    for way in [Way::Both, Way::Replies] {
        let (cluster, client, mut witness) = pair(Wire::Memory).await;
        drop(client);
        eventually("it is gone", || cluster.connections(0) == 1).await;
        let mut clients = Vec::new();
        for _ in 1..Cluster::CONNECTIONS_MAX {
            let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
            client.ask("ECHO x").await;
            clients.push(client);
        }
        inject(&cluster, Fault::Cut(link(), way)).await;
        for (number, client) in clients.iter_mut().enumerate() {
            client.say(&taking(&format!("k{number}"))).await;
        }
        let start = Instant::now();
        drop(clients);
        eventually("others have room", || cluster.connections(0) == 1).await;
        let mut other = Wire::Memory.dial(&cluster, 1, 0).await.unwrap();
        assert_eq!(other.take("other").await, ok());
        // Long before what they have sent is of no concern any more.
        assert!(start.elapsed() < Duration::from_secs(1));
        inject(&cluster, Fault::Heal(Links::ALL)).await;
        let want = match way {
            Way::Both => Cluster::ORPHANS_MAX,
            _ => Cluster::CONNECTIONS_MAX - 1,
        };
        let mut arrived = 0;
        while arrived < want {
            arrived = 0;
            for number in 0..Cluster::CONNECTIONS_MAX {
                let is_there = witness.get(&format!("k{number}")).await.is_some();
                arrived += usize::from(is_there);
            }
        }
        assert_eq!(arrived, want);
        // And there is room for as many again.
        let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
        inject(&cluster, Fault::Cut(link(), Way::Both)).await;
        client.say(&taking("last")).await;
        drop(client);
        eventually("it is an orphan", || cluster.connections(0) == 2).await;
        inject(&cluster, Fault::Heal(Links::ALL)).await;
        witness.sees("last").await;
    }
}
