use std::time::Duration;

use locknode::{Node, Options};
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
    wire.check(b"SET k a NX PX 1000\r\n", b"+OK\r\n").await;
    clock.advance(Duration::from_millis(1000));
    wire.check(b"SET k b NX PX 1000\r\n", b"$-1\r\n").await;
    clock.advance(Duration::from_nanos(1));
    wire.check(b"SET k b NX PX 1000\r\n", b"+OK\r\n").await;
    // The first holder's release comes too late and must not touch the second holder's lock.
    wire.check(b"DELEX k IFEQ a\r\n", b":0\r\n").await;
    wire.check(b"GET k\r\n", b"$1\r\nb\r\n").await;
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_expires_nothing_and_prolongs_nothing() {
    let (clock, node) = node_at_noon(Options::default());
    let mut wire = Wire::connect(&node);
    wire.check(b"SET k a NX PX 1000\r\n", b"+OK\r\n").await;
    let timestamp = format!("SET at b NX PXAT {}\r\n", NOON + 2000);
    wire.check(timestamp.as_bytes(), b"+OK\r\n").await;
    for jump in [NOON + 86_400_000, NOON - 86_400_000] {
        clock.set_wall_unix_millis(jump);
        wire.check(b"PTTL k\r\n", b":1000\r\n").await;
        wire.check(b"PTTL at\r\n", b":2000\r\n").await;
    }
    clock.advance(Duration::from_millis(1001));
    wire.check(b"EXISTS k at\r\n", b":1\r\n").await;
    clock.advance(Duration::from_millis(1000));
    wire.check(b"EXISTS k at\r\n", b":0\r\n").await;
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
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while node.stats().keys > 0 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "{} locks never went",
            node.stats().keys
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(node.stats().expired, 5_000);
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_commands_back_until_it_ends() {
    let (clock, node) = node_at_noon(Options::default());
    let mut admin = Wire::connect(&node);
    let mut wire = Wire::connect(&node);
    admin
        .check(b"CLIENT PAUSE 5000 WRITE\r\n", b"+OK\r\n")
        .await;
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
    admin.check(b"CLIENT PAUSE 3600000\r\n", b"+OK\r\n").await;
    wire.send(b"PING\r\n").await;
    admin.check(b"CLIENT UNPAUSE\r\n", b"+OK\r\n").await;
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
    idle.check(b"PING\r\n", b"+PONG\r\n").await;
    for _ in 0..3 {
        clock.advance(Duration::from_secs(4));
        busy.check(b"PING\r\n", b"+PONG\r\n").await;
        // Lets the once-a-second look happen.
        let _ = tokio::time::timeout(Duration::from_secs(3), std::future::pending::<()>()).await;
    }
    assert_eq!(idle.drain().await, b"");
    busy.check(b"PING\r\n", b"+PONG\r\n").await;
}
