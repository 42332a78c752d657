//! Invalidations, as they reach a client that waits.

use std::time::Duration;

use locknode::Node;
use locknode_tests::patience::in_time;
use locknode_tests::{ManualClock, Wire};

const INVALIDATED: &[u8] = b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";

/// A client that has sent HELLO 3 and CLIENT TRACKING ON with these options.
async fn caching(node: &Node, options: &str) -> Wire {
    let mut wire = Wire::connect(node);
    wire.send(format!("HELLO 3\r\nCLIENT TRACKING ON {options}\r\nECHO tracking\r\n").as_bytes())
        .await;
    while !wire.read_some(4096).await.ends_with(b"tracking\r\n") {}
    wire
}

#[tokio::test]
async fn a_client_that_waits_is_sent_what_others_change() {
    let node = crate::node();
    let (mut caching, mut other) = (caching(&node, "NOLOOP").await, Wire::connect(&node));
    caching.ask("GET k", "_").await;
    other.ask("SET k 1 NX PX 60000", "+OK").await;
    in_time("the invalidation", caching.expect(INVALIDATED)).await;
    // Those of a client's own pipeline follow its replies.
    caching.ask("CLIENT TRACKING ON", "+OK").await;
    caching.send(b"GET k\r\nDEL k\r\nGET k\r\n").await;
    caching.expect(b"$1\r\n1\r\n:1\r\n_\r\n").await;
    in_time("the invalidation", caching.expect(INVALIDATED)).await;
    drop(caching);
    other.ask("SET k 1", "+OK").await;
}

#[tokio::test]
async fn a_client_that_waits_is_sent_an_expiry_that_nobody_sees() {
    let clock = ManualClock::starting_at_unix_millis(1_800_000_000_000);
    let node = Node::builder()
        .restart_guard(false)
        .clock(clock.clone())
        .build();
    let (_address, _task) = locknode_tests::serve_tcp(&node, std::future::pending()).await;
    let mut caching = caching(&node, "").await;
    Wire::connect(&node).ask("SET k 1 PX 1000", "+OK").await;
    caching.ask("GET k", "$1\r\n1").await;
    clock.advance(Duration::from_millis(1_001));
    in_time("the invalidation", caching.expect(INVALIDATED)).await;
}
