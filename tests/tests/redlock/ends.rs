//! Ends that are told: to those who watch a lock, and to those who wait for a task that does not run.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Behaviour, Flavour, Purpose};
use locknode_tests::patience::in_time;
use redlock_client::{Event, Observer, Redlock};

use crate::stage::{AMPLE, LONG, SHORT, Stage, acquire, acquire_within, joined, try_acquire};

/// Whatever ends the lock, work that watches only the token stops.
#[tokio::test]
async fn the_cancellation_of_a_guard_fires_however_its_lock_ends() {
    let (_stage, redlock) = Stage::with_connected_client(3).await;
    let lock = async || {
        let guard = acquire_within(&redlock, "k", AMPLE).await;
        guard.expect("a lock")
    };
    let guard = lock().await;
    let token = guard.cancellation();
    assert!(!token.is_cancelled(), "while it is held");
    drop(guard);
    assert!(token.is_cancelled(), "dropped");

    let guard = lock().await;
    let token = guard.cancellation();
    let _ = guard.release().await;
    assert!(token.is_cancelled(), "released");

    let mut inner = None;
    let request = redlock.lock("k").ttl(LONG).wait_for(AMPLE);
    let work = async |scope: redlock_client::Scope| scope.cancellation();
    inner.replace(redlock.with_lock(request, work).await.expect("a lock"));
    assert!(inner.expect("set").is_cancelled(), "the work is done");

    let guard = lock().await;
    let token = guard.cancellation();
    let left = guard.leak();
    assert!(token.is_cancelled(), "left to its TTL");
    let _ = redlock.release("k", &left).await;

    let guard = lock().await;
    let token = guard.cancellation();
    redlock.close().await;
    assert!(token.is_cancelled(), "the client is closed");
    drop(guard);
}

/// The client's task lives on the runtime of its first use. When that does not run it, callers on other runtimes hear so
/// by their own clock.
#[test]
fn a_call_ends_although_the_runtime_of_the_first_use_is_idle() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    };
    let (nodes, first, second) = (runtime(), runtime(), runtime());
    let stage = nodes.block_on(Stage::of(3));
    let redlock = stage.redlock();
    // Nothing answers while only this runtime runs; the client's task is there from now on.
    let looked = first.block_on(async { tokio::time::timeout(SHORT, redlock.nodes()).await });
    assert!(looked.is_err(), "{looked:?}");
    // The first runtime is there, and nobody drives it.
    let started = Instant::now();
    let request = redlock.lock("k").ttl(LONG).wait_for(Duration::from_secs(1));
    let error = second
        .block_on(async { tokio::time::timeout(LONG, request.acquire()).await })
        .expect("long before that")
        .expect_err("nobody asks the nodes");
    assert!(error.is_timeout(), "{error}");
    assert!(error.to_string().contains("runtime"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10), "{error}");
    let looked = second.block_on(async { tokio::time::timeout(LONG, redlock.nodes()).await });
    assert!(looked.expect("long before that").is_err());
    second
        .block_on(async { tokio::time::timeout(LONG, redlock.close()).await })
        .expect("long before that");
}

#[derive(Debug)]
struct Clumsy;

impl Observer for Clumsy {
    fn on_event(&self, event: &Event<'_>) {
        assert!(!matches!(event, Event::NodeUp { .. }), "it stumbles");
    }
}

/// A panic within the client's task is not called the closing of the client.
#[tokio::test]
async fn a_panic_of_an_observer_is_told_in_its_words() {
    let stage = Stage::of(3).await;
    let builder = stage.builder().observer(Arc::new(Clumsy));
    let redlock = builder.build().expect("a good configuration");
    let error = acquire(&redlock, "k").await;
    let error = error.expect_err("the task panics").to_string();
    assert!(
        error.contains("observer") && error.contains("it stumbles"),
        "{error}"
    );
}

#[test]
fn a_runtime_that_lacks_something_is_told_in_its_words() {
    for (has_time, word) in [(false, "enable_time"), (true, "enable_all")] {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        if has_time {
            builder.enable_time();
        }
        let runtime = builder.build().expect("a runtime");
        let redlock = Redlock::builder()
            .node("127.0.0.1:1")
            .build()
            .expect("good");
        let request = redlock.lock("k").try_acquire();
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(request)));
        let error = outcome
            .expect("an error, no panic")
            .expect_err("it lacks something");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[tokio::test]
async fn an_owner_enters_no_lock_of_another_client() {
    let stage = Stage::of(3).await;
    let (redlock, other) = (stage.redlock(), stage.redlock());
    let owner = redlock.reentrant();
    let inner = owner.enter(redlock.clone().lock("k").ttl(LONG)).await;
    let inner = inner.expect("a clone is the same client");
    let error = owner
        .enter(other.lock("k"))
        .await
        .expect_err("another client");
    assert!(error.is_config(), "{error}");
    assert_eq!(inner.entries(), 1);
    let _ = inner.leave().await;
}

/// A job that renews its lock hears what kept it from that.
#[tokio::test]
async fn the_loss_of_a_lock_that_could_not_be_renewed_tells_which_nodes_do_not_answer() {
    let (stage, redlock) = Stage::with_connected_client(5).await;
    let ttl = Duration::from_secs(2);
    let policy = redlock_client::RenewPolicy::until(LONG);
    let request = redlock.lock("k").ttl(ttl).renew(policy);
    let guard = request.acquire().await.expect("a lock");
    for node in 0..3 {
        stage[node].crash().await;
    }
    let error = in_time("lost", async { guard.lost().await }).await;
    let text = error.to_string();
    assert!(
        text.contains("could not be renewed") && text.contains("3 of 5"),
        "{text}"
    );
    assert_eq!(error.nodes().len(), 3, "{text}");
}

/// Errors of the nodes are not silence.
#[tokio::test]
async fn nodes_that_answer_with_errors_are_said_to_refuse() {
    let (stage, redlock) = Stage::with_connected_client(3).await;
    let error = Behaviour::error("NOPERM this user has no permissions to run the 'set' command");
    stage.always(0..2, Purpose::Acquire, &error);
    let failed = try_acquire(&redlock, "k").await;
    let text = failed.expect_err("refused").to_string();
    assert!(
        text.contains("refused by error") && text.contains("NOPERM"),
        "{text}"
    );
    // The third granted it, which is shown as well when it had answered.
    assert!(!text.contains("no quorum"), "{text}");
}

/// Three clients, each of which is the first on other nodes: none of them is told that somebody holds the lock.
#[tokio::test]
async fn clients_that_split_the_votes_are_not_told_that_it_is_held() {
    for round in 0..10 {
        let stage = Stage::of(5).await;
        let near: [&[usize]; 3] = [&[0, 1], &[2, 3], &[4]];
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(stage.connected().await);
        }
        // Each node's first grant goes to its neighbour: the others' requests wait until that is done.
        let mut holds = Vec::new();
        let mut attempts = Vec::new();
        for (client, nodes) in clients.iter().zip(near) {
            let others = (0..5).filter(|node| !nodes.contains(node));
            let held: Vec<_> = others
                .map(|node| stage[node].delay_next(Purpose::Acquire))
                .collect();
            let request = try_acquire(client, "k");
            attempts.push(tokio::spawn(request));
            for hold in &held {
                hold.caught().await;
            }
            for node in nodes {
                let any = |stage: &Stage| stage[*node].holder("k").is_some();
                let what = format!("round {round}: a holder on node {node}");
                locknode_tests::patience::eventually(&what, || any(&stage)).await;
            }
            holds.extend(held);
        }
        holds
            .iter()
            .for_each(locknode_tests::fake_node::Hold::release);
        let mut held = 0;
        for attempt in attempts {
            let outcome = joined("an attempt", attempt).await;
            if let Some(guard) = outcome.expect("held by a client, or had") {
                held += 1;
                // It stays held until all have been told.
                let _ = guard.leak();
            }
        }
        assert_eq!(held, 1, "round {round}");
    }
}

/// A node that says nothing delays the end of a client by no more than its time, whatever a connection may take.
#[tokio::test]
async fn a_silent_node_delays_a_release_and_a_close_by_its_time_at_most() {
    let stage = Stage::of(5).await;
    stage[4].fall_silent();
    let builder = stage.builder().node_timeout(SHORT).connect_timeout(LONG);
    let redlock = builder.build().expect("a good configuration");
    let request = redlock.lock("k").ttl(LONG).wait_for(AMPLE);
    let guard = request.acquire().await.expect("four of five");
    let token = guard.leak();
    let started = Instant::now();
    let released = redlock.release("k", &token).await.expect("an answer");
    assert!(released.is_free(), "{released:?}");
    redlock.close().await;
    let took = started.elapsed();
    assert!(took < SHORT + Duration::from_secs(1), "{took:?}");
}

/// In the words of every server: a key that somebody else has by now is neither extended nor released.
#[tokio::test]
async fn no_flavour_extends_or_releases_the_key_of_another() {
    for flavour in Flavour::USEFUL {
        let stage = Stage::of_flavour(3, flavour).await;
        let redlock = stage.connected().await;
        for _ in 0..2 {
            let request = redlock.lock("k").ttl(LONG * 2).wait_for(AMPLE);
            let guard = request.acquire().await.expect("a lock");
            stage.wait_until_held("k", guard.token(), 3).await;
            stage.held_by_other("k", 0..3);
            let error = guard.extend(LONG * 2).await.expect_err("another has it");
            assert!(error.is_lost(), "{flavour:?}: {error}");
            let released = guard.release().await;
            assert_eq!(released.confirmed(), 0, "{flavour:?}");
            assert_eq!(stage.held("k", "other"), 3, "{flavour:?}");
            for fake in stage.iter() {
                let left = fake.remaining("k").expect("it has an end");
                assert!(left <= LONG, "{flavour:?}: {left:?}");
                fake.remove("k");
            }
        }
    }
}
