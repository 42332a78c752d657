//! Which nodes there are, and what a node and a client owe to who uses them: by real nodes and the real client, since a
//! simulated world has one list of nodes, which all its clients know.

use std::sync::Arc;
use std::time::Duration;

use locknode_engine::EngineConfig;
use locknode_testkit::cluster::Cluster;
use locknode_testkit::{Bug, Crash, Fault, Hook, Links, Scenario, Setup, ViolationKind, Way};
use redlock_client::{
    Cause, Connecting, Connector, Guard, NodeAddress, NodeId, Redlock, RenewPolicy, RetryPolicy,
};
use redlock_proto::Quorum;
use tokio::time::{Instant, sleep};

use crate::outcome::*;
use crate::script::{OneNode, Script, lock, ms, s, setup};

/// A client's way to some of the nodes, in an order of its own.
#[derive(Debug)]
struct List {
    cluster: Cluster,
    client: u8,
    nodes: Vec<u8>,
}

impl Connector for List {
    fn connect(&self, node: NodeId, _: &NodeAddress) -> Connecting {
        let (cluster, client) = (self.cluster.clone(), self.client);
        let node = self.nodes[node.index()];
        Box::pin(async move {
            let stream = cluster.connect(client, node).await?;
            Ok(Box::new(stream) as _)
        })
    }
}

/// The real client with this list of nodes.
fn client(cluster: &Cluster, client: u8, nodes: &[u8]) -> Redlock {
    let list = List {
        cluster: cluster.clone(),
        client,
        nodes: nodes.to_vec(),
    };
    let builder = Redlock::builder().clock(cluster.client_clock(client).expect("a client"));
    let names = nodes.iter().map(|node| format!("node-{node}"));
    builder
        .nodes(names)
        .connector(Arc::new(list))
        .build()
        .expect("a client")
}

/// Acquires the lock of all tests, which these nodes have to give.
async fn hold(client: &Redlock, ttl: Duration, by: &str) -> Guard {
    client.lock("k").ttl(ttl).acquire().await.expect(by)
}

async fn cluster(nodes: u8) -> Cluster {
    let builder = Cluster::builder().nodes(nodes).clients(2).in_memory();
    builder.build().await.expect("a cluster")
}

async fn cut<const N: usize>(cluster: &Cluster, client: u8, nodes: [u8; N]) {
    let fault = Fault::Cut(Links::between(client, nodes), Way::Both);
    cluster.inject(fault).await.expect("a fault");
}

/// Two addresses lead to one server: it has one vote.
#[tokio::test]
async fn s40_duplicate_node_in_the_list() {
    let cluster = Cluster::builder()
        .nodes(2)
        .clients(2)
        .build()
        .await
        .expect("a cluster");
    let doors = |client| cluster.urls_for(client).expect("a client");
    let list = [
        doors(0)[0].clone(),
        doors(1)[0].clone(),
        doors(0)[1].clone(),
    ];
    let redlock = Redlock::builder().nodes(&list).build().expect("a client");
    let guard = hold(&redlock, s(10), "two servers of three").await;
    drop(guard.release().await);
    cluster.crash(1).await.expect("a node");
    let error = redlock
        .lock("k")
        .ttl(s(10))
        .try_acquire()
        .await
        .expect_err("one server of three");
    assert!(error.is_no_quorum(), "{error}");
    let is_duplicate = |cause: &Cause| matches!(cause, Cause::Duplicate { .. });
    assert!(
        error.nodes().iter().any(|node| is_duplicate(&node.cause)),
        "{error}"
    );
    // The same address twice is found before anything is sent.
    let twice = [&list[0], &list[0], &list[2]];
    assert!(
        Redlock::builder()
            .nodes(twice)
            .build()
            .expect_err("twice")
            .is_config()
    );
}

/// Outside of what is promised, and said so: clients with different lists do not exclude each other.
#[tokio::test(start_paused = true)]
async fn s42_different_node_lists() {
    let cluster = cluster(7).await;
    cut(&cluster, 0, [2]).await;
    cut(&cluster, 1, [2]).await;
    let (one, other) = (
        client(&cluster, 0, &[0, 1, 2]),
        client(&cluster, 1, &[2, 3, 4, 5, 6]),
    );
    let first = hold(&one, s(10), "nodes 0 and 1").await;
    let second = hold(&other, s(10), "nodes 3 to 6").await;
    assert!(first.is_valid() && second.is_valid(), "both hold it");
    // With one list they do, whatever the order in it.
    let same = client(&cluster, 1, &[2, 1, 0]);
    let third = same.lock("k").ttl(s(10)).try_acquire().await;
    assert!(matches!(third, Ok(None)), "{third:?}");
}

/// From three nodes to five in one step two majorities need not meet; node by node they do.
#[tokio::test(start_paused = true)]
async fn s43_membership_change_in_one_step() {
    let cluster = cluster(5).await;
    cut(&cluster, 0, [2]).await;
    cut(&cluster, 1, [0, 1]).await;
    let old = client(&cluster, 0, &[0, 1, 2]);
    let held = hold(&old, s(30), "nodes 0 and 1").await;
    let next = client(&cluster, 1, &[0, 1, 2, 3]);
    let error = next
        .lock("k")
        .ttl(s(30))
        .try_acquire()
        .await
        .expect_err("nodes 2 and 3 of four");
    assert!(error.is_no_quorum(), "{error}");
    let hasty = client(&cluster, 1, &[0, 1, 2, 3, 4]);
    let both = hold(&hasty, s(30), "nodes 2, 3 and 4").await;
    assert!(held.is_valid() && both.is_valid(), "both hold it");

    let needed = |nodes| Quorum::of(nodes).expect("a number of nodes").needed();
    for nodes in 1..16 {
        assert!(
            needed(nodes) + needed(nodes + 1) > nodes + 1,
            "{nodes} and one more"
        );
        let (least, most) = (nodes.min(14), nodes.min(14) + 2);
        let meets = needed(least) + needed(most) > most;
        assert_eq!(meets, least % 2 == 0, "{least} and two more");
    }
}

/// A new and empty node in the place of an old one: {0, 1} and {0', 2} share nothing but a place.
#[test]
fn s44_node_replaced() {
    let script = Scenario::new(Setup {
        nodes: 3,
        ..setup()
    })
    .cut(0, [2])
    .cut(1, [1])
    .act(s(5), 0, lock(s(4)).into())
    .on(Hook::Acquired(0), Fault::Crash(0, Crash::DiskLost))
    .after(Hook::Down(0), ms(1), Fault::Restart(0))
    .acts_on(Hook::Started(0), 1, ms(30), 1, lock(s(4)))
    .acts_on(Hook::Serving(0), 1, ms(30), 1, lock(s(4)));
    let it = safe(&script);
    assert!(it.count(refused(0, 1, "LOADING")) > 0, "{}", it.story());
    assert!(
        it.serves_again(0).since(it.first(down(0))) >= ms(4_042),
        "the full wait"
    );
    assert!(it.window(0).until <= it.window(1).from);
    assert!(
        it.window(0).fencing < it.window(1).fencing,
        "counters begin above the old ones"
    );
    breaks(&script.with(Bug::QuarantineOff), ViolationKind::Exclusion);
}

/// A lock leaves a node when its TTL is over, when its holder lets it go, or when somebody deletes all; for no other reason.
#[test]
fn s47_eviction_and_flush() {
    let mut config = EngineConfig::new(7, "run");
    config.options.maxmemory = 200_000;
    let mut node = OneNode::new(config);
    let mut held = 0;
    let error = loop {
        let reply = node.ask(&format!("LOCK.ACQUIRE key-{held} token 60000"));
        if !reply.starts_with("*3\r\n:1\r\n") {
            break reply;
        }
        held += 1;
        assert!(held < 100_000, "it is never full");
    };
    assert!(error.starts_with("-OOM ") && held > 100, "{held}: {error}");
    for lock in 0..held {
        let extended = node.ask(&format!("LOCK.EXTEND key-{lock} token 60000"));
        assert_eq!(extended, ":1\r\n", "key-{lock} is gone");
    }
    assert_eq!(node.ask("LOCK.RELEASE key-0 token"), ":1\r\n");
    let policy = node.ask("CONFIG GET maxmemory-policy");
    assert!(policy.contains("noeviction"), "{policy}");
    let changed = node.ask("CONFIG SET maxmemory-policy allkeys-lru");
    assert!(changed.starts_with('-'), "there is no other");
    let replica = node.ask("REPLICAOF 127.0.0.1 6379");
    assert!(replica.starts_with('-'), "nobody's replica");
    // Who deletes everything ends all locks. The order of fencing tokens survives that.
    let before = counter(&node.ask("LOCK.GET key-1"), 3);
    assert_eq!(node.ask("FLUSHALL"), "+OK\r\n");
    let after = counter(&node.ask("LOCK.ACQUIRE key-1 token 60000"), 1);
    assert!(after > before, "{before} {after}");
}

/// A guard goes out of scope where nothing can be awaited: on another thread, in a panic, or not at all.
#[tokio::test(start_paused = true)]
async fn s57_guard_dropped_outside_of_async() {
    let cluster = cluster(5).await;
    let redlock = client(&cluster, 0, &[0, 1, 2, 3, 4]);
    let other = client(&cluster, 1, &[0, 1, 2, 3, 4]);
    let is_free = async || {
        sleep(ms(100)).await;
        let guard = other
            .lock("k")
            .ttl(s(5))
            .try_acquire()
            .await
            .expect("nodes")?;
        drop(guard.release().await);
        Some(())
    };
    let guard = hold(&redlock, s(10), "a lock").await;
    std::thread::spawn(move || drop(guard))
        .join()
        .expect("no panic");
    assert!(is_free().await.is_some(), "released in the background");

    let guard = hold(&redlock, s(10), "a lock").await;
    let work = tokio::spawn(async move {
        assert!(!guard.is_valid(), "the work fails");
    });
    assert!(work.await.expect_err("a panic").is_panic());
    assert!(is_free().await.is_some(), "released in the background");

    let guard = hold(&redlock, s(10), "a lock").await;
    let since = Instant::now();
    std::mem::forget(guard);
    assert!(is_free().await.is_none(), "nobody says so");
    let waiting = other.lock("k").ttl(s(5)).wait_for(s(30)).acquire().await;
    let waited = since.elapsed();
    assert!(
        waiting.is_ok() && waited >= s(9) && waited < s(11),
        "its TTL: {waited:?}"
    );
}

/// The future is dropped when no reply has come, with the nodes in reach and out of it.
#[tokio::test(start_paused = true)]
async fn s58_cancelled_acquire_future() {
    for is_cut in [false, true] {
        let cluster = cluster(5).await;
        let redlock = client(&cluster, 0, &[0, 1, 2, 3, 4]);
        drop(redlock.nodes().await.expect("connected"));
        let hold = Fault::Hold(Links::between(0, [0, 1, 2, 3, 4]), Way::Replies);
        cluster.inject(hold).await.expect("a fault");
        let since = Instant::now();
        let mut acquire = Box::pin(redlock.lock("k").ttl(s(10)).acquire());
        let waits = tokio::time::timeout(ms(50), &mut acquire).await;
        assert!(waits.is_err(), "no reply has come");
        if is_cut {
            // What is sent from now on does not arrive, the release included.
            cut(&cluster, 0, [0, 1, 2, 3, 4]).await;
        }
        drop(acquire);
        let other = client(&cluster, 1, &[0, 1, 2, 3, 4]);
        let policy = RetryPolicy::tries(500);
        let guard = other
            .lock("k")
            .ttl(s(5))
            .retry(policy)
            .acquire()
            .await
            .expect("it is free");
        let waited = since.elapsed();
        if is_cut {
            assert!(waited >= s(9) && waited < s(11), "its TTL: {waited:?}");
        } else {
            assert!(waited < s(1), "released in the background: {waited:?}");
        }
        drop(guard.release().await);
    }
}

/// A renewal ends, by count or by time; there is none without end.
#[tokio::test(start_paused = true)]
async fn s39_endless_extension() {
    let cluster = cluster(5).await;
    let redlock = client(&cluster, 0, &[0, 1, 2, 3, 4]);
    for (policy, least, most) in [
        (RenewPolicy::times(3).every(s(1)), s(5), s(6)),
        (RenewPolicy::until(s(8)), s(7), s(8)),
        (RenewPolicy::until(s(60)).every(ms(500)), s(59), s(60)),
    ] {
        let since = Instant::now();
        let guard = redlock
            .lock("k")
            .ttl(s(3))
            .renew(policy)
            .acquire()
            .await
            .expect("a lock");
        drop(guard.lost().await);
        let held = since.elapsed();
        assert!(held >= least && held <= most, "{policy:?}: {held:?}");
        drop(guard.release().await);
    }
    let lock = redlock.lock("k").ttl(s(3));
    let never = lock
        .renew(RenewPolicy::until(Duration::ZERO))
        .acquire()
        .await;
    assert!(never.expect_err("renews never").is_config());
}

/// The element of a reply, which is a number.
fn counter(reply: &str, place: usize) -> u64 {
    let is_element = |line: &&str| !line.starts_with(['*', '$']);
    let element = reply.split("\r\n").filter(is_element).nth(place);
    let number = element.and_then(|element| element.trim_start_matches(':').parse().ok());
    number.unwrap_or_else(|| panic!("{reply:?}"))
}
