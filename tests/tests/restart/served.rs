//! A served node with a real data directory and a stepped clock: what its clients see over a restart.

use std::path::Path;
use std::time::Duration;

use locknode::{Durability, Machine, Node, NodeBuilder, StartReason};
use locknode_tests::patience::eventually;
use locknode_tests::{ManualClock, Wire, serve_tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const NOON: u64 = 1_800_000_000_000;

const MACHINE: Machine = Machine {
    boot_id: [7; 16],
    machine_id: [9; 16],
    time_namespace: Machine::INITIAL_TIME_NAMESPACE,
};

fn builder(clock: &ManualClock) -> NodeBuilder {
    Node::builder().clock(clock.clone()).machine(MACHINE)
}

/// The first run of a node.
fn first_start(directory: &Path, clock: &ManualClock) -> Node {
    builder(clock).first_start(true).open(directory).unwrap()
}

/// The next run of the node, when the tasks of the last one, whose client has gone, have let go of its directory.
async fn start(directory: &Path, clock: &ManualClock) -> Node {
    for _ in 0..1000 {
        match builder(clock).open(directory) {
            Ok(node) => return node,
            Err(error) if error.is_in_use() => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    }
    panic!("the last run does not end");
}

/// [G1] [G2] [G6]
#[tokio::test]
async fn after_a_crash_a_key_is_refused_until_the_lock_on_it_has_ended() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at_unix_millis(NOON);
    let node = first_start(directory.path(), &clock);
    let mut wire = Wire::connect(&node);
    wire.check(b"SET k a NX PX 30000\r\n", b"+OK\r\n").await;
    drop((wire, node));

    clock.advance(Duration::from_secs(10));
    let clock = clock.restarted();
    let node = start(directory.path(), &clock).await;
    assert_eq!(node.guard().reason, StartReason::Crash);
    let left = node.quarantine_left().unwrap();
    assert!(left >= Duration::from_secs(20), "{left:?}");
    assert!(left <= Duration::from_secs(23), "{left:?}");
    let mut wire = Wire::connect(&node);
    let refusal = format!(
        "-LOADING locknode is in its restart quarantine, {} ms left\r\n",
        left.as_nanos().div_ceil(1_000_000)
    );
    for command in [
        "SET k b NX PX 30000",
        "PING",
        "GET k",
        "LOCK.ACQUIRE k b 1000",
    ] {
        let command = format!("{command}\r\n");
        wire.check(command.as_bytes(), refusal.as_bytes()).await;
    }
    wire.check(b"ECHO x\r\n", b"$1\r\nx\r\n").await;
    clock.advance(left - Duration::from_nanos(1));
    let refusal = "-LOADING locknode is in its restart quarantine, 1 ms left\r\n";
    wire.check(b"SET k b NX PX 30000\r\n", refusal.as_bytes())
        .await;
    clock.advance(Duration::from_nanos(1));
    wire.check(b"SET k b NX PX 30000\r\n", b"+OK\r\n").await;
}

/// [G10]
#[tokio::test]
async fn after_a_clean_stop_the_lock_is_there_with_the_time_it_had_left() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at_unix_millis(NOON);
    let node = first_start(directory.path(), &clock);
    let mut wire = Wire::connect(&node);
    wire.check(b"SET k a NX PX 30000\r\n", b"+OK\r\n").await;
    assert_eq!(node.close().unwrap(), Some(1));
    wire.check(
        b"SET j a NX PX 30000\r\n",
        b"-LOADING locknode is shutting down: use the other nodes until it is back\r\n",
    )
    .await;
    drop((wire, node));

    clock.advance(Duration::from_secs(10));
    let clock = clock.restarted();
    let node = start(directory.path(), &clock).await;
    assert_eq!(node.guard().reason, StartReason::CleanStop);
    let mut wire = Wire::connect(&node);
    wire.check(b"SET k b NX PX 30000\r\n", b"$-1\r\n").await;
    wire.check(b"PTTL k\r\n", b":20000\r\n").await;
    wire.check(b"GET k\r\n", b"$1\r\na\r\n").await;
    clock.advance(Duration::from_millis(20_001));
    wire.check(b"SET k b NX PX 30000\r\n", b"+OK\r\n").await;
}

/// [L1] [L2] [L3]
#[tokio::test]
async fn a_lock_without_a_ttl_survives_a_crash_and_its_release_too() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at_unix_millis(NOON);
    let node = first_start(directory.path(), &clock);
    let mut wire = Wire::connect(&node);
    wire.check(b"SET kept a NX\r\n", b"+OK\r\n").await;
    wire.check(b"SET long a NX PX 3600000\r\n", b"+OK\r\n")
        .await;
    wire.check(b"SET released a NX\r\n", b"+OK\r\n").await;
    wire.check(b"LOCK.RELEASE released a\r\n", b":1\r\n").await;
    drop((wire, node));

    clock.advance(Duration::from_secs(60));
    let clock = clock.restarted();
    let node = start(directory.path(), &clock).await;
    // No lock that rides on the guard was ever granted.
    assert_eq!(node.quarantine_left(), None);
    let mut wire = Wire::connect(&node);
    wire.check(b"SET kept b NX\r\n", b"$-1\r\n").await;
    wire.check(b"PTTL kept\r\n", b":-1\r\n").await;
    wire.check(b"PTTL long\r\n", b":3540000\r\n").await;
    wire.check(b"SET released b NX\r\n", b"+OK\r\n").await;
}

/// [F2] [F4]
#[tokio::test]
async fn fence_counters_never_go_back() {
    let directory = tempfile::tempdir().unwrap();
    let mut clock = ManualClock::starting_at_unix_millis(NOON);
    let mut last = 0;
    for incarnation in 1..=4 {
        let node = if incarnation == 1 {
            builder(&clock)
                .first_start(true)
                .open(directory.path())
                .unwrap()
        } else {
            start(directory.path(), &clock).await
        };
        assert_eq!(node.guard().incarnation, incarnation);
        clock.advance(node.quarantine_left().unwrap_or_default());
        let mut wire = Wire::connect(&node);
        wire.send(b"LOCK.ACQUIRE k a 10\r\n").await;
        let reply = String::from_utf8(wire.read_some(64).await).unwrap();
        let fence: u64 = reply.split("\r\n:").nth(2).unwrap().parse().unwrap();
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        if incarnation % 2 == 0 {
            node.close().unwrap();
        }
        // A wall clock that is set back does not matter.
        clock.set_wall_unix_millis(1_000_000);
        clock = clock.restarted();
    }
}

/// [L1] A reply that waits for the disk comes, whoever serves: a `serve` call, one that was dropped, none at all.
#[tokio::test]
async fn replies_that_wait_for_the_disk_come_also_when_serve_was_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at_unix_millis(NOON);
    let node = first_start(directory.path(), &clock);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let served = node.clone();
    let task = tokio::spawn(async move { served.serve(listener, std::future::pending()).await });
    let mut client = TcpStream::connect(address).await.unwrap();
    for (key, is_dropped) in [("early", false), ("late", true), ("later", true)] {
        if is_dropped && !task.is_finished() {
            task.abort();
            while !task.is_finished() {
                tokio::task::yield_now().await;
            }
        }
        let request = format!("SET {key} a NX\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut reply = [0; 5];
        let read = client.read_exact(&mut reply);
        let read = tokio::time::timeout(Duration::from_secs(30), read).await;
        assert!(read.is_ok(), "{key}: no reply");
        assert_eq!(&reply, b"+OK\r\n", "{key}");
    }
}

/// [G17] [L1] [G6]: a grant becomes durable also when nobody is told of it.
#[tokio::test]
async fn what_is_granted_without_a_reply_becomes_durable() {
    for grant in [
        "SET k a NX",
        "SET k a NX PX 30000",
        "LOCK.ACQUIRE k a 30000",
    ] {
        for (before, after) in [
            ("CLIENT REPLY OFF\r\n", ""),
            ("CLIENT REPLY SKIP\r\n", ""),
            ("", "QUIT\r\n"),
            ("", "CLIENT KILL TYPE normal SKIPME no\r\n"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let clock = ManualClock::starting_at_unix_millis(NOON);
            let node = first_start(directory.path(), &clock);
            let (address, task) = serve_tcp(&node, std::future::pending()).await;
            let mut client = TcpStream::connect(address).await.unwrap();
            let requests = format!("{before}{grant}\r\n{after}");
            client.write_all(requests.as_bytes()).await.unwrap();
            if !after.is_empty() {
                drop(client);
            }
            eventually(&requests, || {
                let guard = node.guard();
                guard.records == 1 || guard.horizon_ahead > Duration::from_secs(30)
            })
            .await;
            task.abort();
        }
    }
}

/// Memory of ended locks is given back though every batch waits for the disk.
#[tokio::test]
async fn ended_locks_are_reclaimed_where_every_grant_waits_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let clock = ManualClock::starting_at_unix_millis(NOON);
    let node = builder(&clock)
        .first_start(true)
        .durability(Durability::Always)
        .open(directory.path())
        .unwrap();
    let (_, task) = serve_tcp(&node, std::future::pending()).await;
    // The sweeper has looked once, and sleeps until a command comes.
    tokio::task::yield_now().await;
    let mut wire = Wire::connect(&node);
    for round in 0..3 {
        wire.check(b"SET k a NX PX 200\r\n", b"+OK\r\n").await;
        clock.advance(Duration::from_millis(201));
        let expired = || node.stats().expired == round + 1;
        eventually("an ended lock is reclaimed", expired).await;
    }
    task.abort();
}
