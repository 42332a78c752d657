//! What is refused, and what is bounded.

use std::io::ErrorKind;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, ClusterError};
use locknode_testkit::{Crash, DiskFault, Fault, GuardMode, Links, Scenario, Way, Who};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::wire::{Wire, bulk, inject, ok};

on_both!(
    what_makes_no_sense_is_refused_with_the_reason,
    more_than_fits_waits
);

async fn what_makes_no_sense_is_refused_with_the_reason(wire: Wire) {
    let cluster = wire.build(Cluster::builder().guard(GuardMode::Long)).await;
    let span = Duration::from_secs(1);
    for (fault, reason) in [
        (Fault::Crash(0, Crash::PowerLoss), "real files"),
        (Fault::Crash(0, Crash::PowerLossAll), "real files"),
        (Fault::Crash(0, Crash::TornWrite), "real files"),
        (Fault::Crash(0, Crash::Rollback), "not stopped in order"),
        (Fault::Disk(0, DiskFault::Full), "directories"),
        (Fault::CrashClient(0), "does not play in a run"),
        (Fault::Pause(Who::Client(0), span), "does not play in a run"),
        (Fault::Suspend(Who::Client(0), span), "does not play"),
        (Fault::Freeze(Who::Client(0), span), "does not play"),
        (Fault::WallJump(Who::Client(0), 1), "wall clock"),
        (Fault::Rate(Who::Client(0), 1), "does not read the clock"),
    ] {
        let error = cluster.inject(fault).await.unwrap_err();
        let ClusterError::NotHere(not_here) = &error else {
            panic!("{fault}: {error}")
        };
        assert!(not_here.why().contains(reason), "{fault}: {error}");
        assert!(error.to_string().contains(&fault.to_string()), "{error}");
        assert!((0..5).all(|node| cluster.is_up(node)), "{fault}");
    }
    let nowhere = [
        Fault::Crash(5, Crash::Kill),
        Fault::Restart(16),
        Fault::MaxTtl(5, span),
        Fault::Disk(5, DiskFault::Go),
        Fault::Pause(Who::Node(5), span),
        Fault::WallJump(Who::Node(5), 1),
        Fault::CrashClient(3),
        Fault::Rate(Who::Client(3), 1),
        Fault::Cut(Links::between(3, 0), Way::Both),
        Fault::Heal(Links::between(0, 5)),
        Fault::Delay(Links::between([], 0), span),
    ];
    for fault in nowhere {
        let error = cluster.inject(fault).await.unwrap_err();
        let is_nowhere = matches!(
            error,
            ClusterError::NoSuchNode(_) | ClusterError::NoSuchClient(_) | ClusterError::NoSuchLink
        );
        assert!(is_nowhere, "{fault}: {error}");
    }
    assert!(cluster.addresses_for(3).is_err() && cluster.redlock(3).is_err());
    let invalid = cluster.connect(3, 0).await.unwrap_err();
    assert_eq!(invalid.kind(), ErrorKind::InvalidInput);
    assert!(!cluster.is_up(7) && cluster.quarantine_left(7).is_none());
}

/// Without a disk there is nothing that one crash keeps and another does not.
#[tokio::test(start_paused = true)]
async fn without_a_disk_every_crash_can_be_had() {
    let cluster = Wire::Memory.build(Cluster::builder()).await;
    for how in Crash::ALL {
        inject(&cluster, Fault::Crash(1, how)).await;
        assert!(!cluster.is_up(1), "{how:?}");
        inject(&cluster, Fault::Crash(1, how)).await;
        cluster.restart(1).await.unwrap();
        cluster.restart(1).await.unwrap();
        assert!(cluster.is_up(1), "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_builder_finds_out_what_cannot_be() {
    let builder = || Cluster::builder().in_memory();
    for (builder, word) in [
        (builder().nodes(0), "nodes"),
        (builder().nodes(17), "nodes"),
        (builder().clients(0), "clients"),
        (builder().clients(17), "clients"),
        (builder().max_ttl(Duration::ZERO), "TTL"),
        (builder().max_ttl(Duration::from_secs(86_401)), "TTL"),
        (builder().data_dir("/nowhere"), "data directory"),
        (
            builder().guard(GuardMode::Long).data_dir("/dev/null/x"),
            "data directory",
        ),
    ] {
        let error = builder.build().await.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let most = builder().nodes(16).clients(16).build().await.unwrap();
    assert_eq!((most.nodes(), most.clients()), (16, 16));
    assert!(most.addresses().is_empty() && most.urls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_scenario_is_refused_before_anything_is_done() {
    let cluster = Wire::Memory.build(Cluster::builder()).await;
    for (line, word) in [
        (
            "on granted node 2 nth 1 after 0s do crash node 0 kill",
            "needs a time",
        ),
        ("at 2s do crash client 0", "does not play in a run"),
        ("at 2s do restart node 9", "no node 9"),
        ("at 2s client 7 lock k ttl 2s", "no client 7"),
        ("at 2s client 0 ask node 9 line 0 PING", "no node 9"),
        (
            "at 2s client 0 lock k ttl 2s\nat 2s do rate client 0 +5ppm",
            "clock of the recorder",
        ),
        (
            "at 2s client 0 lock k ttl 2s\nat 2s do suspend client 0 1s",
            "clock of the recorder",
        ),
        (
            "at 2s client 0 lock k ttl 2s renew every 500ms",
            "renews by itself",
        ),
        ("client plain", "`client plain`"),
        ("bug quarantine-off", "`bug quarantine-off`"),
        ("replica 10ms", "`replica`"),
    ] {
        let text = format!(
            "locknode-scenario 1\nnodes 16\nclients 16\n{line}\nat 0s do crash node 0 kill\n"
        );
        let scenario = Scenario::parse(&text).unwrap();
        assert!(cluster.check_run(&scenario).is_err(), "{line}");
        let error = cluster.run(&scenario).await.unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        assert!(cluster.is_up(0));
    }
}

const FULL_AFTER: Duration = Duration::from_secs(1);

async fn more_than_fits_waits(wire: Wire) {
    let cluster = wire.build(Cluster::builder().nodes(1)).await;
    let link = Links::between(0, 0);
    inject(&cluster, Fault::Hold(link, Way::Requests)).await;
    let mut client = wire.dial(&cluster, 0, 0).await.unwrap();
    let text = "x".repeat(100_000);
    let mut said = 0;
    // What is only slow, and not yet full, goes on within this time.
    let line = format!("ECHO {text}");
    while timeout(FULL_AFTER, client.say(&line)).await.is_ok() {
        said += 1;
        assert!(said < 1000, "100 MB were taken");
    }
    assert!(said >= 20, "{said}");
    inject(&cluster, Fault::Release(link, Way::Requests)).await;
    for _ in 0..said {
        assert_eq!(client.hear().await.unwrap(), bulk(&text));
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_takes_so_many_connections_and_breaks_the_others() {
    let cluster = Wire::Memory.build(Cluster::builder().nodes(1)).await;
    let mut clients = Vec::new();
    for _ in 0..512 {
        let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
        client.ask("ECHO x").await;
        clients.push(client);
    }
    let mut one_more = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
    assert_eq!(one_more.end().await, ErrorKind::ConnectionReset);
    clients.pop();
    tokio::time::sleep(Duration::from_millis(1)).await;
    let mut instead = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
    assert_eq!(instead.take("k").await, ok());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_the_protocol_gets_the_nodes_answer() {
    let cluster = Wire::Memory.build(Cluster::builder().nodes(1)).await;
    for (said, start) in [
        (&b"*1\r\n!\r\n"[..], &b"-ERR Protocol error"[..]),
        (b"*2\r\n$4\r\nECHO\r\n$9999999\r\n", b"-ERR Protocol error"),
    ] {
        let mut stream = cluster.connect(0, 0).await.unwrap();
        stream.write_all(said).await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        assert!(heard.starts_with(start), "{}", heard.escape_ascii());
    }
    // Larger than the messages that are cut out whole, and small enough for the node.
    let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
    let text = "x".repeat(1_048_576);
    let echo = client.ask(&format!("ECHO {text}")).await;
    assert_eq!(echo, bulk(&text));
    assert_eq!(client.take("k").await, ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_used_from_many_threads() {
    fn is_shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    fn is_sent<T: Send>(future: T) -> T {
        future
    }
    let cluster = is_sent(Cluster::builder().guard(GuardMode::Always).build())
        .await
        .unwrap();
    is_shared(&cluster);
    let mut tasks = Vec::new();
    for node in 0..5 {
        let cluster = cluster.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..3 {
                inject(&cluster, Fault::Crash(node, Crash::Kill)).await;
                inject(&cluster, Fault::Restart(node)).await;
                let mut client = Wire::Loopback.dial(&cluster, 1, node).await.unwrap();
                client.ask("ECHO x").await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    cluster.shutdown().await;
}
