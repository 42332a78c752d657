//! Nodes that are down: no acquire waits for them for longer than their time, after that not at all, until they are back.

use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Purpose, errors};
use locknode_tests::patience::{eventually, in_time};
use redlock_client::{Cause, Redlock};

use crate::stage::{
    AMPLE, LONG, Stage, acquire, acquire_within, finds_no_quorum, is_let_go, try_acquire,
};

/// The ways of being down.
#[derive(Clone, Copy, Debug)]
enum Down {
    Refusing,
    Silent,
    NotReading,
    Hanging,
}

const WAYS: [Down; 4] = [
    Down::Refusing,
    Down::Silent,
    Down::NotReading,
    Down::Hanging,
];

impl Stage {
    async fn take_down(&self, nodes: &[usize], way: Down) {
        for &node in nodes {
            let fake = &self[node];
            match way {
                Down::Refusing => fake.go_down().await,
                Down::Silent => fake.fall_silent(),
                Down::NotReading => fake.stop_reading(),
                Down::Hanging => fake.leave_connects_hanging().await,
            }
        }
    }
}

#[tokio::test]
async fn a_minority_that_is_down_is_not_waited_for() {
    for way in WAYS {
        for was_up in [false, true] {
            let (stage, redlock) = Stage::with_client(5).await;
            if was_up {
                let guard = acquire(&redlock, "before").await.expect("all up");
                drop(guard.release().await);
            }
            stage.take_down(&[0, 3], way).await;
            let started = Instant::now();
            for round in 0..20 {
                let guard = acquire(&redlock, "k").await;
                let guard = guard.unwrap_or_else(|error| panic!("{way:?} {round}: {error}"));
                guard.extend(LONG).await.expect("three of five");
                let released = guard.release().await;
                assert!(is_let_go(&released), "{way:?} {round}: {released:?}");
            }
            assert!(started.elapsed() < AMPLE, "{way:?}, was up: {was_up}");
        }
    }
}

/// The first acquire after a majority fell silent costs the node timeout; those after it cost nothing and send nothing.
#[tokio::test]
async fn a_silent_majority_costs_its_timeout_once() {
    let stage = Stage::of(5).await;
    let timeout = Duration::from_millis(400);
    let redlock = stage.builder().node_timeout(timeout).build().unwrap();
    let guard = acquire(&redlock, "before").await.expect("all up");
    stage.release(guard).await;
    stage.take_down(&[0, 1, 2], Down::Silent).await;
    let started = Instant::now();
    finds_no_quorum(&redlock, "k").await;
    assert!(
        started.elapsed() >= timeout,
        "given up after {:?}",
        started.elapsed()
    );
    let mut asked = usize::MAX;
    // Some requests may still go out until the client has made up its mind about the node.
    eventually_quiet(&redlock, &stage, &mut asked).await;
    let started = Instant::now();
    for _ in 0..10 {
        finds_no_quorum(&redlock, "k").await;
    }
    let spent = started.elapsed();
    assert!(
        spent < timeout * 5,
        "ten attempts on dead nodes took {spent:?}"
    );
}

async fn eventually_quiet(redlock: &Redlock, stage: &Stage, asked: &mut usize) {
    for _ in 0..50 {
        let before = stage
            .iter()
            .take(3)
            .map(|fake| fake.count(Purpose::Acquire))
            .sum::<usize>();
        if before == *asked {
            return;
        }
        *asked = before;
        drop(try_acquire(redlock, "k").await);
    }
    panic!("silent nodes are asked for ever:\n{}", stage.story());
}

/// A node that refuses connections is not tried again for every attempt: a pause grows between two tries.
#[tokio::test]
async fn a_majority_that_refuses_fails_at_once() {
    let (stage, redlock) = Stage::with_client(5).await;
    stage.take_down(&[1, 2, 4], Down::Refusing).await;
    let started = Instant::now();
    for _ in 0..50 {
        let error = finds_no_quorum(&redlock, "k").await;
        let unreachable = error.nodes().iter();
        let unreachable = unreachable.filter(|node| matches!(node.cause, Cause::Unreachable(_)));
        assert_eq!(unreachable.count(), 3, "{error}");
    }
    assert!(started.elapsed() < AMPLE, "{:?}", started.elapsed());
    stage[0].wait_until_empty().await;
    stage[3].wait_until_empty().await;
}

/// Every node is down: each try fails at once, and the wait still has its end, and its pauses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_dead_nodes_ends_with_the_wait() {
    let stage = Stage::of(3).await;
    stage.take_down(&[0, 1, 2], Down::Refusing).await;
    let redlock = stage.redlock();
    for wait in [1, 15, 60, 250].map(Duration::from_millis) {
        let started = Instant::now();
        let acquire = acquire_within(&redlock, "k", wait);
        let error = in_time("acquire", acquire).await.expect_err("all down");
        assert!(
            error.is_no_quorum() || error.is_timeout(),
            "{wait:?}: {error}"
        );
        assert!(
            started.elapsed() < wait + AMPLE,
            "{wait:?}: {:?}",
            started.elapsed()
        );
    }
}

/// A connect that hangs is bounded by the connect timeout, apart from that of the node.
#[tokio::test]
async fn a_hanging_majority_fails_within_its_time() {
    let stage = Stage::of(3).await;
    let builder = stage.builder().node_timeout(Duration::from_millis(300));
    let redlock = builder
        .connect_timeout(Duration::from_millis(300))
        .build()
        .unwrap();
    stage.take_down(&[0, 1], Down::Hanging).await;
    let started = Instant::now();
    finds_no_quorum(&redlock, "k").await;
    assert!(started.elapsed() < AMPLE, "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_node_that_comes_back_is_used_again() {
    for way in WAYS {
        let (stage, redlock) = Stage::with_impatient_client(3).await;
        stage.take_down(&[0, 1], way).await;
        try_acquire(&redlock, "k").await.expect_err("one of three");
        stage[0].come_back().await;
        stage[1].come_back().await;
        let guard = acquire_within(&redlock, "k", AMPLE * 3).await;
        let guard = guard.unwrap_or_else(|error| panic!("{way:?}: {error}"));
        stage.release(guard).await;
    }
}

/// A node in its quarantine answers at once; it is asked again and has a vote when its quarantine is over.
#[tokio::test]
async fn a_quarantined_node_has_a_vote_when_its_quarantine_is_over() {
    let (stage, redlock) = Stage::with_client(3).await;
    let quarantine = locknode_tests::fake_node::Behaviour::error(errors::QUARANTINE);
    stage.always([0, 1], Purpose::Acquire, &quarantine);
    let error = try_acquire(&redlock, "k").await.expect_err("one of three");
    assert!(error.is_no_quorum() && error.is_retryable(), "{error}");
    stage.behave();
    let guard = acquire_within(&redlock, "k", AMPLE * 3).await;
    drop(guard.expect("three of three").release().await);
    stage.wait_until_empty().await;
}

/// Locks go on while two of five come and go, and every node ends up empty.
#[tokio::test]
async fn nodes_that_come_and_go_leave_nothing_behind() {
    let (stage, redlock) = Stage::with_client(5).await;
    for round in 0..12_usize {
        let down = [round % 5, (round + 2) % 5];
        let way = WAYS[round % 3];
        stage.take_down(&down, way).await;
        let guard = acquire_within(&redlock, "k", AMPLE * 3).await;
        let guard = guard.unwrap_or_else(|error| panic!("{round} {way:?}: {error}"));
        assert!(guard.is_valid());
        in_time("release", guard.release()).await;
        for node in down {
            stage[node].come_back().await;
        }
        // Whatever the nodes were not told in time they lose by a crash, as here, or by the TTL.
        let what = format!("free again in round {round}");
        let left = || stage.iter().filter(|fake| !fake.keys().is_empty()).count();
        eventually(&what, || left() <= 2).await;
        stage.remove("k");
    }
    redlock.close().await;
}

/// `nodes()` says of each node what it is, or why it does not answer.
#[tokio::test]
async fn the_state_of_each_node_can_be_asked_for() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    stage[1].go_down().await;
    let nodes = in_time("nodes", redlock.nodes()).await.expect("a list");
    assert_eq!(nodes.len(), 3);
    for (index, node) in nodes.iter().enumerate() {
        assert!(
            node.address.contains(&stage[index].address().to_string()),
            "{node:?}"
        );
        match (&node.state, index) {
            (Err(Cause::Unreachable(_)), 1) => {}
            (Ok(server), 0 | 2) => {
                assert_eq!(server.name, "redis");
                assert_eq!(server.version, "7.0.15");
                assert!(server.run_id.is_some());
            }
            other => panic!("{other:?}"),
        }
    }
}
