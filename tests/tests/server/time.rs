use std::time::Duration;

use locknode::{Node, Options};
use locknode_tests::patience::eventually;
use locknode_tests::{ManualClock, Wire};

const NOON: u64 = 1_800_000_000_000;

fn node_at_noon(options: Options) -> (ManualClock, Node) {
    let clock = ManualClock::starting_at_unix_millis(NOON);
    let node = Node::builder().restart_guard(false).options(options);
    (clock.clone(), node.clock(clock).build())
}

#[tokio::test]
async fn a_lock_ends_one_tick_after_its_ttl_and_not_before() {
    let (clock, node) = node_at_noon(Options::default());
    let mut wire = Wire::connect(&node);
    wire.ask("SET k a NX PX 1000", "+OK").await;
    clock.advance(Duration::from_millis(1000));
    wire.ask("SET k b NX PX 1000", "$-1").await;
    clock.advance(Duration::from_nanos(1));
    wire.ask("SET k b NX PX 1000", "+OK").await;
    // The first holder's release comes too late and must not touch the second holder's lock.
    wire.ask("DELEX k IFEQ a", ":0").await;
    wire.ask("GET k", "$1\r\nb").await;
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_expires_nothing_and_prolongs_nothing() {
    let (clock, node) = node_at_noon(Options::default());
    let mut wire = Wire::connect(&node);
    wire.ask("SET k a NX PX 1000", "+OK").await;
    let timestamp = format!("SET at b NX PXAT {}\r\n", NOON + 2000);
    wire.check(timestamp.as_bytes(), b"+OK\r\n").await;
    for jump in [NOON + 86_400_000, NOON - 86_400_000] {
        clock.set_wall_unix_millis(jump);
        wire.ask("PTTL k", ":1000").await;
        wire.ask("PTTL at", ":2000").await;
    }
    clock.advance(Duration::from_millis(1001));
    wire.ask("EXISTS k at", ":1").await;
    clock.advance(Duration::from_millis(1000));
    wire.ask("EXISTS k at", ":0").await;
}

#[tokio::test]
async fn ended_locks_are_reclaimed_without_anyone_asking() {
    let (clock, node) = node_at_noon(Options::default());
    let (_address, _task) = locknode_tests::serve_tcp(&node, std::future::pending()).await;
    let mut wire = Wire::connect(&node);
    for i in 0..5_000 {
        wire.send(format!("SET k{i} t NX PX 10\r\n").as_bytes())
            .await;
    }
    wire.expect(&b"+OK\r\n".repeat(5_000)).await;
    assert_eq!(node.stats().keys, 5_000);
    clock.advance(Duration::from_millis(11));
    eventually("all locks are reclaimed", || node.stats().keys == 0).await;
    assert_eq!(node.stats().expired, 5_000);
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_commands_back_until_it_ends() {
    let (clock, node) = node_at_noon(Options::default());
    let mut admin = Wire::connect(&node);
    let mut wire = Wire::connect(&node);
    admin.ask("CLIENT PAUSE 5000 WRITE", "+OK").await;
    wire.send(b"GET k\r\nSET k t NX\r\nGET k\r\n").await;
    wire.expect(b"$-1\r\n").await;
    // The write waits, and what its client sent after it.
    let silence = tokio::time::timeout(Duration::from_secs(3), wire.read_some(1)).await;
    assert!(silence.is_err(), "answered during the pause");
    clock.advance(Duration::from_millis(5000));
    wire.expect(b"+OK\r\n$1\r\nt\r\n").await;
}

#[tokio::test(start_paused = true)]
async fn unpause_lets_waiting_clients_go_on_at_once() {
    let (_, node) = node_at_noon(Options::default());
    let mut admin = Wire::connect(&node);
    let mut wire = Wire::connect(&node);
    admin.ask("CLIENT PAUSE 3600000", "+OK").await;
    wire.send(b"PING\r\n").await;
    admin.ask("CLIENT UNPAUSE", "+OK").await;
    tokio::time::timeout(Duration::from_secs(60), wire.expect(b"+PONG\r\n"))
        .await
        .expect("unpaused");
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_is_closed_after_timeout_and_a_busy_one_is_not() {
    let mut options = Options::default();
    options.timeout = 10;
    let (clock, node) = node_at_noon(options);
    let (_address, _task) = locknode_tests::serve_tcp(&node, std::future::pending()).await;
    let mut idle = Wire::connect(&node);
    let mut busy = Wire::connect(&node);
    idle.ask("PING", "+PONG").await;
    for _ in 0..3 {
        clock.advance(Duration::from_secs(4));
        busy.ask("PING", "+PONG").await;
        // Lets the once-a-second look happen.
        let _ = tokio::time::timeout(Duration::from_secs(3), std::future::pending::<()>()).await;
    }
    assert_eq!(idle.drain().await, b"");
    busy.ask("PING", "+PONG").await;
}
