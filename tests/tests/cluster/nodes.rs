//! Starting and ending nodes.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::task::Poll;
use std::time::Duration;

use locknode::StartReason;
use locknode_resp::Reply;
use locknode_testkit::cluster::{Cluster, ClusterBuilder, ClusterError};
use locknode_testkit::{Crash, Fault, GuardMode};

use tokio::time::Instant;

use crate::wire::{Conversation, Wire, eventually, inject, is_loading, ok};

on_both!(
    a_crash_breaks_connections_and_forgets,
    without_a_guard_a_restart_forgets_at_once,
    a_stop_in_order_ends_connections_and_keeps_locks,
    a_kill_keeps_what_was_written,
    a_lost_disk_is_empty,
    a_rollback_brings_old_locks_back,
    a_disk_in_another_machine_proves_nothing,
    the_longest_ttl_changes_with_the_next_start,
    a_node_that_a_client_shuts_down_is_down,
    calm_starts_what_is_down,
    a_shutdown_ends_everything,
    a_restart_that_was_dropped_can_be_repeated,
);

const NODE: u8 = 2;

async fn a_crash_breaks_connections_and_forgets(wire: Wire) {
    let cluster = wire.build(Cluster::builder()).await;
    let addresses = cluster.addresses();
    let mut client = wire.dial(&cluster, 0, NODE).await.unwrap();
    let mut other = wire.dial(&cluster, 0, 3).await.unwrap();
    assert_eq!(client.take("k").await, ok());
    assert!(cluster.is_up(NODE) && cluster.quarantine_left(NODE).is_none());

    cluster.crash(NODE).await.unwrap();
    assert!(!cluster.is_up(NODE) && cluster.node(NODE).is_none());
    assert_eq!(client.end().await, ErrorKind::ConnectionReset);
    let refused = wire.dial(&cluster, 0, NODE).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(other.take("k").await, ok(), "the others go on");

    cluster.restart(NODE).await.unwrap();
    assert!(cluster.is_up(NODE));
    assert_eq!(cluster.addresses(), addresses);
    let left = cluster.quarantine_left(NODE).unwrap();
    assert!(left > Duration::from_secs(59), "{left:?}");
    let mut client = wire.dial(&cluster, 0, NODE).await.unwrap();
    assert!(is_loading(&client.take("k").await));
    if wire == Wire::Memory {
        cluster.wait_until_serving(NODE).await.unwrap();
        assert_eq!(client.take("k").await, ok());
    }
}

/// A cluster, and a connection to the node.
async fn start(wire: Wire, builder: ClusterBuilder) -> (Cluster, Conversation) {
    let cluster = wire.build(builder).await;
    let client = wire.dial(&cluster, 0, NODE).await.unwrap();
    (cluster, client)
}

/// The node starts again. Returns a connection to it once it serves.
async fn restarted(wire: Wire, cluster: &Cluster) -> Conversation {
    cluster.restart(NODE).await.unwrap();
    cluster.wait_until_serving(NODE).await.unwrap();
    wire.dial(cluster, 0, NODE).await.unwrap()
}

async fn without_a_guard_a_restart_forgets_at_once(wire: Wire) {
    let (cluster, mut client) = start(wire, Cluster::builder().guard(GuardMode::Off)).await;
    assert_eq!(client.take("k").await, ok());
    cluster.crash(NODE).await.unwrap();
    cluster.restart(NODE).await.unwrap();
    assert_eq!(cluster.quarantine_left(NODE), None);
    let mut client = wire.dial(&cluster, 0, NODE).await.unwrap();
    assert_eq!(client.get("k").await, None);
}

async fn a_stop_in_order_ends_connections_and_keeps_locks(wire: Wire) {
    let (cluster, mut client) = start(wire, Cluster::builder().guard(GuardMode::Long)).await;
    assert_eq!(client.take("k").await, ok());
    inject(&cluster, Fault::Crash(NODE, Crash::CleanStop)).await;
    assert_eq!(client.end().await, ErrorKind::UnexpectedEof);
    assert!(!cluster.is_up(NODE));
    cluster.restart(NODE).await.unwrap();
    assert_eq!(cluster.quarantine_left(NODE), None);
    let mut client = wire.dial(&cluster, 0, NODE).await.unwrap();
    assert_eq!(client.get("k").await.as_deref(), Some("t"));
}

async fn a_kill_keeps_what_was_written(wire: Wire) {
    let builder = Cluster::builder()
        .guard(GuardMode::Long)
        .max_ttl(wire.span(2));
    let (cluster, mut client) = start(wire, builder).await;
    // Longer than the longest TTL that rides on the guard: on the log.
    assert_eq!(client.take("k").await, ok());
    cluster.crash(NODE).await.unwrap();
    let mut client = restarted(wire, &cluster).await;
    assert_eq!(client.get("k").await.as_deref(), Some("t"));
}

async fn a_lost_disk_is_empty(wire: Wire) {
    let builder = Cluster::builder()
        .guard(GuardMode::Always)
        .max_ttl(wire.span(2));
    let (cluster, mut client) = start(wire, builder).await;
    for is_down_before in [false, true] {
        assert_eq!(client.take("k").await, ok());
        // A disk can be lost while its node is down.
        if is_down_before {
            cluster.crash(NODE).await.unwrap();
        }
        inject(&cluster, Fault::Crash(NODE, Crash::DiskLost)).await;
        client = restarted(wire, &cluster).await;
        let report = cluster.node(NODE).unwrap().guard();
        assert_eq!(report.reason, StartReason::Empty, "{report:?}");
        assert_eq!(client.get("k").await, None);
    }
}

async fn a_rollback_brings_old_locks_back(wire: Wire) {
    let builder = Cluster::builder()
        .guard(GuardMode::Always)
        .max_ttl(wire.span(2));
    let (cluster, mut client) = start(wire, builder).await;
    let rollback = Fault::Crash(NODE, Crash::Rollback);
    let early = cluster.inject(rollback).await.unwrap_err();
    assert!(early.is_not_here() && cluster.is_up(NODE), "{early}");
    for (key, end) in [
        ("old", Fault::Crash(NODE, Crash::CleanStop)),
        ("new", rollback),
    ] {
        assert_eq!(client.take(key).await, ok());
        inject(&cluster, end).await;
        client = restarted(wire, &cluster).await;
    }
    assert_eq!(client.get("old").await.as_deref(), Some("t"));
    assert_eq!(client.get("new").await, None);
}

async fn a_disk_in_another_machine_proves_nothing(wire: Wire) {
    let cluster = wire.build(Cluster::builder().guard(GuardMode::Long)).await;
    for (how, reason) in [
        // On the same machine its clocks tell how long ago the last grant was; elsewhere they mean nothing.
        (Crash::Kill, StartReason::Crash),
        (Crash::Moved, StartReason::Reboot),
    ] {
        inject(&cluster, Fault::Crash(NODE, how)).await;
        cluster.restart(NODE).await.unwrap();
        let report = cluster.node(NODE).unwrap().guard();
        assert_eq!(report.reason, reason, "{how:?} {report:?}");
    }
}

async fn the_longest_ttl_changes_with_the_next_start(wire: Wire) {
    let cluster = wire.build(Cluster::builder()).await;
    let longer = Duration::from_secs(100);
    inject(&cluster, Fault::MaxTtl(NODE, longer)).await;
    let max_ttl = || cluster.node(NODE).unwrap().guard().max_ttl;
    assert_eq!(max_ttl(), Duration::from_secs(60));
    cluster.crash(NODE).await.unwrap();
    cluster.restart(NODE).await.unwrap();
    assert_eq!(max_ttl(), longer);
}

async fn a_node_that_a_client_shuts_down_is_down(wire: Wire) {
    let (cluster, mut client) = start(wire, Cluster::builder().guard(GuardMode::Long)).await;
    assert_eq!(client.take("k").await, ok());
    client.say("SHUTDOWN").await;
    assert!(client.hear().await.is_err());
    eventually("the node is down", || !cluster.is_up(NODE)).await;
    cluster.restart(NODE).await.unwrap();
    let mut client = wire.dial(&cluster, 0, NODE).await.unwrap();
    assert_eq!(client.get("k").await.as_deref(), Some("t"));
}

async fn calm_starts_what_is_down(wire: Wire) {
    let cluster = wire.build(Cluster::builder()).await;
    cluster.crash(0).await.unwrap();
    inject(&cluster, Fault::Crash(1, Crash::CleanStop)).await;
    cluster.partition(0, 2).unwrap();
    inject(&cluster, Fault::Calm).await;
    for node in 0..5 {
        assert!(cluster.is_up(node));
        let mut client = wire.dial(&cluster, 0, node).await.unwrap();
        client.ask("ECHO here").await;
    }
}

async fn a_shutdown_ends_everything(wire: Wire) {
    let (cluster, mut client) = start(wire, Cluster::builder().guard(GuardMode::Long)).await;
    let other = cluster.clone();
    let Reply::Array(found) = client.ask("CONFIG GET dir").await else {
        panic!("no directory")
    };
    let Reply::Bulk(path) = &found[1] else {
        panic!("{found:?}")
    };
    let path = PathBuf::from(String::from_utf8(path.clone()).unwrap());
    assert!(path.is_dir(), "{path:?}");
    cluster.shutdown().await;
    assert!(client.hear().await.is_err());
    assert!(wire.dial(&other, 0, NODE).await.is_err());
    assert!((0..5).all(|node| !other.is_up(node)));
    assert!(other.restart(NODE).await.is_err());
    drop(other);
    eventually("the directory is gone", || !path.parent().unwrap().exists()).await;
}

async fn a_restart_that_was_dropped_can_be_repeated(wire: Wire) {
    let cluster = wire.build(Cluster::builder().guard(GuardMode::Long)).await;
    for polls in 0..6 {
        begin(cluster.crash(NODE), polls).await;
        begin(cluster.restart(NODE), polls).await;
        cluster.crash(NODE).await.unwrap();
        assert!(!cluster.is_up(NODE));
        cluster.restart(NODE).await.unwrap();
        let mut client = wire.dial(&cluster, 0, NODE).await.unwrap();
        client.ask("ECHO here").await;
    }
}

/// Looks so often at a future, while others have their turns, and drops it.
async fn begin(future: impl Future, polls: usize) {
    let mut future = std::pin::pin!(future);
    for _ in 0..polls {
        tokio::task::yield_now().await;
        let look = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_ready()));
        if look.await {
            return;
        }
    }
}

#[tokio::test]
async fn a_cluster_that_is_dropped_lets_its_ports_and_directory_go() {
    let (cluster, mut client) =
        start(Wire::Loopback, Cluster::builder().guard(GuardMode::Long)).await;
    let address = cluster.addresses()[0];
    drop(cluster);
    assert!(client.hear().await.is_err());
    let refused = || std::net::TcpStream::connect(address).is_err();
    eventually("the port is closed", refused).await;
}

#[tokio::test(start_paused = true)]
async fn paused_time_waits_for_the_disk_and_for_nothing_else() {
    let (cluster, _) = start(Wire::Memory, Cluster::builder().guard(GuardMode::Always)).await;
    let start = Instant::now();
    for node in 0..5 {
        let mut client = Wire::Memory.dial(&cluster, 0, node).await.unwrap();
        for key in ["a", "b", "c"] {
            assert_eq!(client.take(key).await, ok());
        }
        inject(&cluster, Fault::Crash(node, Crash::CleanStop)).await;
        cluster.restart(node).await.unwrap();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    // A request that waits for time itself has it pass.
    let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
    client.ask("CLIENT PAUSE 5000").await;
    assert_eq!(client.get("a").await.as_deref(), Some("t"));
    assert!(start.elapsed() >= Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_directory_of_the_users_stays() {
    let path = std::env::temp_dir().join(format!("locknode-cluster-test-{}", std::process::id()));
    let builder = Cluster::builder()
        .nodes(1)
        .guard(GuardMode::Always)
        .data_dir(&path);
    for is_first in [true, false] {
        let cluster = Wire::Memory.build(builder.clone()).await;
        assert_eq!(cluster.quarantine_left(0), None, "it was stopped in order");
        let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
        assert_eq!(client.get("k").await.is_none(), is_first);
        client.take("k").await;
        inject(&cluster, Fault::Crash(0, Crash::CleanStop)).await;
    }
    std::fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn a_node_whose_port_somebody_took_meanwhile_says_which() {
    let cluster = Wire::Loopback.build(Cluster::builder().nodes(1)).await;
    cluster.crash(0).await.unwrap();
    let address = cluster.addresses()[0];
    let taken = std::net::TcpListener::bind(address).unwrap();
    let error = cluster.restart(0).await.unwrap_err();
    assert!(matches!(error, ClusterError::Port(port, _) if port == address.port()));
    drop(taken);
    cluster.restart(0).await.unwrap();
    Wire::Loopback.dial(&cluster, 0, 0).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_port_is_one() {
    let builder = || Cluster::builder().nodes(5).clients(1).in_memory();
    builder().first_port(65_531).build().await.unwrap();
    let error = builder().first_port(65_532).build().await.unwrap_err();
    assert!(error.to_string().contains("65532"), "{error}");
}
