//! Nodes that are down, slow, loading, restarted.

use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Behaviour, Purpose, errors};
use locknode_tests::patience::in_time;
use redlock_client::Cause;

use crate::stage::{AMPLE, LONG, SHORT, Stage, acquire, acquire_within, is_let_go, try_acquire};

/// mike-marcacci/node-redlock#262, #88, #182, redis/redisson#1636, #5220: one instance down gives errors or makes every acquire slow;
/// whether it refuses or swallows.
#[tokio::test]
async fn one_black_hole_of_five_costs_nothing() {
    for swallows in [false, true] {
        let stage = Stage::of(5).await;
        let redlock = stage.builder().node_timeout(AMPLE).build().unwrap();
        if swallows {
            stage[2].fall_silent()
        } else {
            stage[2].go_down().await
        }
        let mut slowest = Duration::ZERO;
        for _ in 0..100 {
            let started = Instant::now();
            let guard = acquire(&redlock, "k").await.expect("four of five");
            slowest = slowest.max(started.elapsed());
            drop(guard.release().await);
        }
        assert!(
            slowest < AMPLE / 2,
            "swallows: {swallows}, slowest: {slowest:?}"
        );
    }
}

/// StackExchange/StackExchange.Redis#1913, redis/redis-rb#350, aio-libs/aioredis#268, redis/go-redis#1131: LOADING comes out as an
/// exception of the command. Here the node is quarantined, with the time that it has left, and the others are enough.
#[tokio::test]
async fn a_node_in_quarantine_is_no_exception() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage.always([0], Purpose::Acquire, &Behaviour::error(errors::QUARANTINE));
    let guard = acquire(&redlock, "k").await.expect("two of three");
    drop(guard.release().await);
    stage.always([1], Purpose::Acquire, &Behaviour::error(errors::LOADING));
    let error = try_acquire(&redlock, "k").await.expect_err("one of three");
    let left = Duration::from_millis(4200);
    assert_eq!(error.nodes()[0].cause, Cause::Quarantined(Some(left)));
    assert_eq!(error.nodes()[1].cause, Cause::Quarantined(None));
    assert!(error.is_retryable(), "{error}");
}

/// redis/redisson#4822, #4706, #5205: after a failover only the old holder can lock.
#[tokio::test]
async fn after_a_restart_another_client_can_have_the_lock() {
    let stage = Stage::of(3).await;
    let (old, new) = (stage.redlock(), stage.redlock());
    let guard = acquire(&old, "k").await.expect("a lock");
    drop(acquire(&new, "warm").await);
    stage.restart(0..3).await;
    let taken = acquire_within(&new, "k", LONG)
        .await
        .expect("forgotten by all");
    let error = wait_for_extend_to_fail(&guard).await;
    assert!(error.is_lost() || error.is_no_quorum(), "{error}");
    drop(guard);
    old.close().await;
    stage.wait_until_held_by_quorum("k", taken.token()).await;
    stage.release(taken).await;
}

async fn wait_for_extend_to_fail(guard: &redlock_client::Guard) -> redlock_client::Error {
    guard
        .extend(LONG)
        .await
        .expect_err("nobody has it any more")
}

/// Krukov/cashews#387: after a restart of the server the unlock looped for ever.
#[tokio::test]
async fn a_release_after_a_restart_ends() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    stage.restart(0..3).await;
    let released = in_time("release", guard.release()).await;
    assert_eq!(released.confirmed(), 0, "{released:?}");
}

/// go-redsync/redsync#147 (rolling restarts of nodes without a disk): the lock is kept by extension, or its loss is told;
/// never is it kept in silence by fewer than a majority.
#[tokio::test]
async fn a_rolling_restart_keeps_the_lock_or_says_that_it_is_lost() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    for node in 0..3 {
        stage[node].crash().await;
        stage[node].come_back().await;
        let deadline = Instant::now() + AMPLE * 2;
        // The node is reconnected to in the background and healed by an extension.
        while stage.held("k", guard.token()) < 3 {
            guard
                .extend(LONG)
                .await
                .unwrap_or_else(|error| panic!("{node}: {error}"));
            assert!(
                Instant::now() < deadline,
                "{node} was not healed:\n{}",
                stage.story()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    stage.restart(0..2).await;
    let deadline = Instant::now() + AMPLE * 2;
    let error = loop {
        let error = guard.extend(LONG).await.expect_err("one of three");
        if error.is_lost() || Instant::now() > deadline {
            break error;
        }
    };
    assert!(error.is_lost(), "{error}");
}

/// redsync PR#133, redis-semaphore RedlockMutex (waits for all nodes without a timeout): a slow node, not a dead one.
#[tokio::test]
async fn a_slow_node_is_not_waited_for_and_still_freed() {
    let (stage, redlock) = Stage::with_client(3).await;
    let hold = stage[1].hold(Purpose::Acquire);
    for key in ["a", "b", "c"] {
        let guard = in_time("acquire", acquire(&redlock, key));
        let guard = guard.await.expect("two of three");
        assert!(is_let_go(&in_time("release", guard.release()).await));
    }
    hold.release();
    stage.wait_until_empty().await;
    assert!(SHORT < AMPLE);
}

/// mike-marcacci/node-redlock#32, #304, redis/redisson#2734, microsoft/garnet#509: a server without EVAL. Where it has the newer commands
/// no script is sent.
#[tokio::test]
async fn no_script_is_sent_where_the_server_compares_by_itself() {
    use locknode_tests::fake_node::Flavour;
    for flavour in [Flavour::Redis8, Flavour::Valkey9, Flavour::Locknode] {
        let stage = Stage::of_flavour(3, flavour).await;
        stage.always(
            0..3,
            "EVAL",
            &Behaviour::error("ERR unknown command 'EVAL'"),
        );
        stage.always(
            0..3,
            "EVALSHA",
            &Behaviour::error("ERR unknown command 'EVALSHA'"),
        );
        let redlock = stage.redlock();
        let guard = acquire(&redlock, "k").await.expect("a lock");
        guard
            .extend(LONG)
            .await
            .unwrap_or_else(|error| panic!("{flavour:?}: {error}"));
        let released = guard.release().await;
        assert!(is_let_go(&released), "{flavour:?}: {released:?}");
        stage.wait_until_empty().await;
    }
}

/// redis/redis-py#3085, redis/ioredis PR#2033: CLIENT SETINFO is refused, and the client reconnects for ever. Also a server that shows
/// no INFO (redis/ioredis#780).
#[tokio::test]
async fn a_server_that_refuses_pleasantries_is_used_all_the_same() {
    let stage = Stage::of(3).await;
    stage.always(
        0..3,
        "CLIENT",
        &Behaviour::error("ERR unknown subcommand 'SETINFO'"),
    );
    stage.always(0..3, "COMMAND", &Behaviour::error(errors::NOPERM));
    stage.always(0..3, "INFO", &Behaviour::error(errors::NOPERM));
    let redlock = stage.connected().await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    guard.extend(LONG).await.expect("extended");
    assert!(is_let_go(&guard.release().await));
    assert!(
        stage.iter().all(|fake| fake.connections() == 1),
        "{}",
        stage.story()
    );
    stage.wait_until_empty().await;
}
