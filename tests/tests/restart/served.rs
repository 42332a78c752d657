//! A served node with a real data directory and a stepped clock: what its clients see over a restart.

use std::time::Duration;

use locknode::{Durability, Machine, Node, NodeBuilder, StartReason};
use locknode_tests::patience::{eventually, in_time};
use locknode_tests::{ManualClock, Wire, serve_tcp};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{MINUTE, NANO, SECOND};

const NOON: u64 = 1_800_000_000_000;

const MACHINE: Machine = Machine {
    boot_id: [7; 16],
    machine_id: [9; 16],
    time_namespace: Machine::INITIAL_TIME_NAMESPACE,
};

/// A node with a data directory and its clock, over its runs.
struct Served {
    directory: TempDir,
    clock: ManualClock,
    node: Node,
}

impl Served {
    /// The first run of a node.
    fn first_start(durability: Durability) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let clock = ManualClock::starting_at_unix_millis(NOON);
        let builder = builder(&clock).durability(durability).first_start(true);
        let node = builder.open(directory.path()).unwrap();
        Self {
            directory,
            clock,
            node,
        }
    }

    /// A client that has sent requests and got these replies.
    async fn client(&self, requests: &[(&str, &str)]) -> Wire {
        let mut wire = Wire::connect(&self.node);
        for (request, reply) in requests {
            wire.ask(request, reply).await;
        }
        wire
    }

    /// The next run, when the tasks of the last one, whose clients have gone, have released the directory.
    async fn restart(mut self, down: Duration) -> Self {
        self.clock.advance(down);
        self.clock = self.clock.restarted();
        // The last run's node ends here.
        self.node = Node::builder().build();
        let next = async {
            loop {
                match builder(&self.clock).open(self.directory.path()) {
                    Err(error) if error.is_in_use() => tokio::task::yield_now().await,
                    opened => return opened.unwrap(),
                }
            }
        };
        self.node = in_time("the end of the last run", next).await;
        self
    }
}

fn builder(clock: &ManualClock) -> NodeBuilder {
    Node::builder().clock(clock.clone()).machine(MACHINE)
}

/// [G1] [G2] [G6]
#[tokio::test]
async fn after_a_crash_a_key_is_refused_until_the_lock_on_it_has_ended() {
    let served = Served::first_start(Durability::Long);
    drop(served.client(&[("SET k a NX PX 30000", "+OK")]).await);
    let served = served.restart(10 * SECOND).await;
    assert_eq!(served.node.guard().reason, StartReason::Crash);
    let left = served.node.quarantine_left().unwrap();
    assert!((20 * SECOND..=23 * SECOND).contains(&left), "{left:?}");
    let refusal = |left: Duration| {
        let left_ms = left.as_nanos().div_ceil(1_000_000);
        format!("-LOADING locknode is in its restart quarantine, {left_ms} ms left")
    };
    let mut wire = served.client(&[]).await;
    let acquire = "SET k b NX PX 30000";
    for request in [acquire, "PING", "GET k", "LOCK.ACQUIRE k b 1000"] {
        wire.ask(request, &refusal(left)).await;
    }
    wire.ask("ECHO x", "$1\r\nx").await;
    served.clock.advance(left - NANO);
    wire.ask(acquire, &refusal(NANO)).await;
    served.clock.advance(NANO);
    wire.ask(acquire, "+OK").await;
}

/// [G10]
#[tokio::test]
async fn after_a_clean_stop_the_lock_is_there_with_the_time_it_had_left() {
    let served = Served::first_start(Durability::Long);
    let mut wire = served.client(&[("SET k a NX PX 30000", "+OK")]).await;
    assert_eq!(served.node.close().unwrap(), Some(1));
    let refusal = "-LOADING locknode is shutting down: use the other nodes until it is back";
    wire.ask("SET j a NX PX 30000", refusal).await;
    drop(wire);
    let served = served.restart(10 * SECOND).await;
    assert_eq!(served.node.guard().reason, StartReason::CleanStop);
    let kept = [
        ("SET k b NX PX 30000", "$-1"),
        ("PTTL k", ":20000"),
        ("GET k", "$1\r\na"),
    ];
    let mut wire = served.client(&kept).await;
    served.clock.advance(Duration::from_millis(20_001));
    wire.ask("SET k b NX PX 30000", "+OK").await;
}

/// [L1] [L2] [L3]
#[tokio::test]
async fn a_lock_without_a_ttl_survives_a_crash_and_its_release_too() {
    let served = Served::first_start(Durability::Long);
    let granted = [
        ("SET kept a NX", "+OK"),
        ("SET long a NX PX 3600000", "+OK"),
        ("SET released a NX", "+OK"),
        ("LOCK.RELEASE released a", ":1"),
    ];
    drop(served.client(&granted).await);
    let served = served.restart(MINUTE).await;
    // No lock that rides on the guard was ever granted.
    assert_eq!(served.node.quarantine_left(), None);
    let kept = [
        ("SET kept b NX", "$-1"),
        ("PTTL kept", ":-1"),
        ("PTTL long", ":3540000"),
        ("SET released b NX", "+OK"),
    ];
    served.client(&kept).await;
}

/// [F2] [F4]
#[tokio::test]
async fn fence_counters_never_go_back() {
    let mut served = Served::first_start(Durability::Long);
    let mut last = 0;
    for incarnation in 1..=4 {
        assert_eq!(served.node.guard().incarnation, incarnation);
        let left = served.node.quarantine_left();
        served.clock.advance(left.unwrap_or_default());
        let mut wire = served.client(&[]).await;
        wire.send(b"LOCK.ACQUIRE k a 10\r\n").await;
        let reply = String::from_utf8(wire.read_some(64).await).unwrap();
        let fence: u64 = reply.split("\r\n:").nth(2).unwrap().parse().unwrap();
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        if incarnation % 2 == 0 {
            served.node.close().unwrap();
        }
        // A wall clock that is set back does not matter.
        served.clock.set_wall_unix_millis(1_000_000);
        drop(wire);
        served = served.restart(Duration::ZERO).await;
    }
}

/// [L1] A reply that waits for the disk comes, whoever serves: a `serve` call, one that was dropped, none at all.
#[tokio::test]
async fn replies_that_wait_for_the_disk_come_also_when_serve_was_dropped() {
    let served = Served::first_start(Durability::Long);
    let (address, task) = serve_tcp(&served.node, std::future::pending()).await;
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
            let served = Served::first_start(Durability::Long);
            let (address, task) = serve_tcp(&served.node, std::future::pending()).await;
            let mut client = TcpStream::connect(address).await.unwrap();
            let requests = format!("{before}{grant}\r\n{after}");
            client.write_all(requests.as_bytes()).await.unwrap();
            if !after.is_empty() {
                drop(client);
            }
            eventually(&requests, || {
                let guard = served.node.guard();
                guard.records == 1 || guard.horizon_ahead > 30 * SECOND
            })
            .await;
            task.abort();
        }
    }
}

/// Memory of ended locks is given back though every batch waits for the disk.
#[tokio::test]
async fn ended_locks_are_reclaimed_where_every_grant_waits_for_the_disk() {
    let served = Served::first_start(Durability::Always);
    let (_, task) = serve_tcp(&served.node, std::future::pending()).await;
    // The sweeper has looked once, and sleeps until a command comes.
    tokio::task::yield_now().await;
    let mut wire = served.client(&[]).await;
    for round in 0..3 {
        wire.ask("SET k a NX PX 200", "+OK").await;
        served.clock.advance(Duration::from_millis(201));
        let expired = || served.node.stats().expired == round + 1;
        eventually("an ended lock is reclaimed", expired).await;
    }
    task.abort();
}
