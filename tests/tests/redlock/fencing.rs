//! Fencing tokens over the wire: round trips counted, counters that differ, clusters in which not every node counts, and
//! the order of the tokens of clients that compete.

use std::collections::BTreeSet;
use std::time::Instant;

use locknode_tests::cluster::{Cluster, Make};
use locknode_tests::fake_node::{FakeNode, Flavour};
use locknode_tests::patience::{eventually_async, in_time};
use redlock_client::{FenceCheck, FencingToken, Guard, NodeStatus, Redlock, Rejected, ServerInfo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::stage::{AMPLE, LONG, Stage, joined, try_acquire, wait_until_connected};

async fn lock(redlock: &Redlock, key: &str) -> Guard {
    let request = redlock.lock(key).ttl(LONG);
    in_time("acquire", request.acquire()).await.expect("a lock")
}

async fn fenced(redlock: &Redlock, key: &str) -> u64 {
    let guard = lock(redlock, key).await;
    let fencing = guard.fencing().expect("all nodes count");
    let released = in_time("release", guard.release()).await;
    assert!(released.is_free());
    fencing.get()
}

/// Makes a node count from far above, as a restart does.
async fn raise(fake: &FakeNode, key: &str) {
    let mut stream = TcpStream::connect(fake.address())
        .await
        .expect("it listens");
    for request in [
        format!("LOCK.ACQUIRE {key} restarted 60000 FLOOR {BASE}\r\n"),
        format!("LOCK.RELEASE {key} restarted\r\n"),
    ] {
        stream.write_all(request.as_bytes()).await.expect("open");
        let mut reply = [0; 64];
        let len = stream.read(&mut reply).await.expect("a reply");
        assert!(matches!(reply[..len], [b'*' | b':', ..]));
    }
}

/// What the client sent, without the node's other callers.
fn sent(stage: &Stage, name: &str) -> usize {
    let requests = stage.iter().flat_map(|fake| fake.received());
    requests
        .filter(|request| request.name() == name && !request.mentions("restarted"))
        .count()
}

/// [F8]
#[tokio::test]
async fn a_lock_takes_one_round_trip() {
    let stage = Stage::of_flavour(3, Flavour::Locknode).await;
    let redlock = stage.connected().await;
    let mut tokens = Vec::new();
    for _ in 0..20 {
        tokens.push(fenced(&redlock, "k").await);
    }
    let first = tokens[0];
    let expected: Vec<u64> = (first..first + 20).collect();
    assert_eq!(tokens, expected, "each one is one higher");
    for fake in stage.iter() {
        fake.wait_for_count("LOCK.RELEASE", 20).await;
        let story = fake.story();
        assert_eq!(fake.count("LOCK.ACQUIRE"), 20, "{story}");
        assert_eq!(fake.count("LOCK.FENCE"), 0, "{story}");
        assert!(
            !fake
                .received()
                .iter()
                .any(|request| request.mentions("FLOOR")),
            "{story}"
        );
        assert_eq!(fake.count("SET"), 0, "{story}");
    }
}

/// [F7] [F8]
#[tokio::test]
async fn a_lock_takes_two_round_trips_after_a_node_restarted_and_then_one() {
    let stage = Stage::of_flavour(3, Flavour::Locknode).await;
    // Any two that grant differ then: the third is away.
    stage[2].go_down().await;
    let redlock = stage.redlock();
    let before = fenced(&redlock, "k").await;
    raise(&stage[0], "k").await;
    let after = fenced(&redlock, "k").await;
    assert!(before < BASE && after > BASE, "{before}, {after}");
    assert_eq!(sent(&stage, "LOCK.FENCE"), 1, "{}", stage.story());
    assert_eq!(stage[1].count("LOCK.FENCE"), 1, "the one that is behind");
    for n in 1..=5 {
        assert_eq!(fenced(&redlock, "k").await, after + n);
    }
    assert_eq!(sent(&stage, "LOCK.FENCE"), 1, "{}", stage.story());
    // One that comes back with counters that are behind has no say in an order that a majority keeps.
    stage[2].come_back().await;
    let counts = |node: &NodeStatus| node.state.as_ref().is_ok_and(ServerInfo::has_fences);
    eventually_async("all three are there, and count", async || {
        let status = redlock.nodes().await.expect("open");
        status.iter().all(counts)
    })
    .await;
    let mut highest = after + 5;
    for _ in 0..5 {
        let next = fenced(&redlock, "k").await;
        assert!(next > highest, "{next} after {highest}");
        highest = next;
    }
}

/// [F7]
#[tokio::test]
async fn a_token_that_cannot_be_written_back_is_handed_to_nobody() {
    let stage = Stage::of_flavour(3, Flavour::Locknode).await;
    stage[2].go_down().await;
    let redlock = stage.redlock();
    fenced(&redlock, "k").await;
    raise(&stage[0], "k").await;
    let write_back = stage[1].hold_next("LOCK.FENCE");
    let acquiring = tokio::spawn({
        let redlock = redlock.clone();
        async move { try_acquire(&redlock, "k").await }
    });
    stage[1].wait_for_count("LOCK.FENCE", 1).await;
    assert!(!acquiring.is_finished(), "nothing is decided");
    stage[1].hang_up().await;
    drop(write_back);
    let outcome = joined("try_acquire", acquiring).await;
    assert!(outcome.is_err(), "{outcome:?}");
    stage.wait_until_empty().await;
}

/// [F7]
#[tokio::test]
async fn a_cluster_has_tokens_if_a_majority_of_its_nodes_counts() {
    use Flavour::{Locknode, Redis7, Redis8, Valkey9};
    for (flavours, has_tokens) in [
        ([Locknode, Redis7, Valkey9], false),
        ([Redis7, Redis8, Valkey9], false),
        ([Locknode, Redis8, Locknode], true),
    ] {
        let mut fakes = Vec::new();
        for flavour in flavours {
            fakes.push(FakeNode::start_as(flavour).await);
        }
        let redlock = Redlock::builder()
            .nodes(fakes.iter().map(FakeNode::url))
            .node_timeout(AMPLE)
            .build()
            .expect("a good configuration");
        wait_until_connected(&redlock).await;
        let mut seen = BTreeSet::new();
        for _ in 0..5 {
            let guard = lock(&redlock, "k").await;
            let fencing = guard.fencing();
            assert_eq!(fencing.is_some(), has_tokens, "{flavours:?}");
            in_time("extend", guard.extend(LONG)).await.expect("held");
            assert_eq!(guard.fencing(), fencing, "an extension keeps it");
            if let Some(fencing) = fencing {
                assert!(seen.last() < Some(&fencing), "{seen:?} {fencing}");
                seen.insert(fencing);
                assert!(format!("{guard:?}").contains(&format!("fencing: Some({fencing})")));
            }
            in_time("release", guard.release()).await;
        }
    }
}

/// [F7] [F9]
#[tokio::test]
async fn a_holder_that_comes_too_late_is_turned_away_by_the_resource() {
    let stage = Stage::of_flavour(3, Flavour::Locknode).await;
    let (first, second) = (stage.redlock(), stage.redlock());
    let resource = FenceCheck::in_memory();
    let early = lock(&first, "k").await;
    let token = early.fencing().expect("all nodes count");
    assert_eq!(resource.check("k", token), Ok(()));
    // The nodes' clocks run away while the first holder is paused, and it believes in its lock.
    stage.pass_time(LONG * 2);
    let late = lock(&second, "k").await;
    let higher = late.fencing().expect("all nodes count");
    assert!(early.is_valid() && late.is_valid(), "two holders");
    assert!(token < higher);
    assert_eq!(resource.check("k", higher), Ok(()));
    let expected = Rejected::Stale {
        token,
        highest: higher,
    };
    assert_eq!(resource.check("k", token), Err(expected));
}

/// What a client had: when its attempt can have begun at the earliest, when it was told, and its token.
type Had = (Instant, Instant, FencingToken);

/// [F7]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_of_two_clients_that_compete_are_in_the_order_of_their_locks() {
    let Some(cluster) = Cluster::start(Make::Locknodes).await else {
        return;
    };
    let client = |n: usize| {
        let builder = Redlock::builder().nodes(cluster.urls()).node_timeout(AMPLE);
        let redlock = builder.build().expect("a good configuration");
        tokio::spawn(compete(redlock, n))
    };
    let clients: Vec<_> = (0..2).map(client).collect();
    let mut all: Vec<Had> = Vec::new();
    for client in clients {
        all.extend(client.await.expect("no panic"));
    }
    assert_eq!(all.len(), 2 * EACH);
    all.sort_unstable_by_key(|(_, told, _)| *told);
    let different: BTreeSet<FencingToken> = all.iter().map(|(_, _, token)| *token).collect();
    assert_eq!(different.len(), all.len(), "no two are the same");
    // One after the other, whoever they are: what was told before another began is lower.
    let mut highest_before = None;
    let mut told = all.iter().peekable();
    let mut by_start = all.clone();
    by_start.sort_unstable_by_key(|(started, ..)| *started);
    for (started, _, token) in by_start {
        while let Some((_, _, earlier)) = told.next_if(|(_, told, _)| *told < started) {
            highest_before = highest_before.max(Some(*earlier));
        }
        assert!(
            highest_before < Some(token),
            "{highest_before:?}, then {token}"
        );
    }
}

async fn compete(redlock: Redlock, client: usize) -> Vec<Had> {
    let mut had = Vec::new();
    while had.len() < EACH {
        let started = Instant::now();
        let request = try_acquire(&redlock, "k");
        let Some(guard) = in_time("try_acquire", request)
            .await
            .expect("nodes that are up")
        else {
            tokio::task::yield_now().await;
            continue;
        };
        had.push((
            started,
            Instant::now(),
            guard.fencing().expect("they count"),
        ));
        // Both ways of letting go.
        match (had.len() + client) % 3 {
            0 => drop(guard),
            _ => drop(in_time("release", guard.release()).await),
        }
    }
    redlock.close().await;
    had
}

/// How often each of the two clients gets the lock.
const EACH: usize = 500;

/// Above whatever a fake has counted to.
const BASE: u64 = 1 << 40;
