//! Extending: never what is gone, never by somebody else, and a failure changes nothing.

use std::time::Duration;

use locknode_tests::fake_node::{Behaviour, FakeNode, Purpose, errors};
use locknode_tests::patience::{eventually, in_time};
use redlock_client::Cause;

use crate::stage::{Holds, LONG, Stage, acquire, is_let_go, joined};

/// leandromoreira/redlock-rb#36, joanvila/aioredlock, samcook/RedLock.net: extending an expired lock succeeds, because the
/// key is set again. go-redsync/redsync#107: and the error is the same as for a lock that another has.
#[tokio::test]
async fn a_lock_that_is_gone_is_not_extended() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    stage.remove("k");
    let error = guard.extend(LONG).await.expect_err("gone");
    assert!(error.is_lost() && !error.is_busy(), "{error}");
    assert!(
        error
            .nodes()
            .iter()
            .all(|node| node.cause == Cause::NotHeld),
        "{error}"
    );
    assert!(stage.is_empty(), "{}", stage.story());
    assert!(!guard.is_valid());
}

/// swarthy/redis-semaphore#175, scenario S34: the holder pauses past the TTL, another takes the lock, and the holder's
/// refresh takes it back.
#[tokio::test]
async fn a_lock_that_another_has_is_not_extended() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    stage.held_by_other("k", 0..3);
    let error = guard.extend(LONG).await.expect_err("another has it");
    assert!(error.is_lost(), "{error}");
    in_time("the loss", guard.lost()).await;
    drop(guard);
    redlock.close().await;
    assert_eq!(stage.held("k", "other"), 3);
}

/// go-redsync/redsync#147, #149, #151: a first fix for restarted nodes released a valid lock because one extend failed.
/// rslock, sewenew/redis-plus-plus: a failed extend unlocks a lock that is still valid.
#[tokio::test]
async fn a_failed_extend_does_not_release() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    stage.always([0, 1], Purpose::Extend, &Behaviour::error(errors::READONLY));
    let error = guard.extend(LONG).await.expect_err("one of three");
    assert!(error.is_no_quorum(), "{error}");
    assert!(guard.is_valid());
    assert_eq!(stage.held("k", guard.token()), 3);
    assert_eq!(stage.count(Purpose::Release), 0);
    stage.behave();
    guard.extend(LONG).await.expect("three of three");
    drop(guard.release().await);
}

/// go-redsync/redsync#147, #149, #186: a node that restarted without its keys stays without this one, and the next
/// restart of another loses the lock. A node that lost the key gets it again while a majority had it all the time.
#[tokio::test]
async fn a_node_that_lost_the_key_gets_it_again_and_does_not_count_in_that_round() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    for node in 0..3 {
        stage.wait_until_held("k", guard.token(), 3).await;
        stage[node].remove("k");
        guard
            .extend(LONG)
            .await
            .unwrap_or_else(|error| panic!("{node}: {error}"));
    }
    stage.wait_until_held("k", guard.token(), 3).await;
    for node in 0..2 {
        stage[node].remove("k");
    }
    let error = guard.extend(LONG).await.expect_err("one of three");
    assert!(error.is_lost(), "healed nodes are no majority: {error}");
}

/// go-redsync/redsync#186: acquired on 3 of 5, the others are never filled up. They are all asked at once here, and those
/// that answer late count as holders from then on.
#[tokio::test]
async fn nodes_that_grant_late_hold_the_lock_too() {
    let (stage, redlock) = Stage::with_client(5).await;
    let holds = Holds::on(&stage[..2], |fake| fake.delay_next(Purpose::Acquire));
    let guard = acquire(&redlock, "k").await.expect("three of five");
    holds.caught().await;
    holds.release();
    stage.wait_until_held("k", guard.token(), 5).await;
    for node in 2..4 {
        stage[node].remove("k");
    }
    guard.extend(LONG).await.expect("three of five hold it");
    stage.release(guard).await;
}

/// The same for nodes that are still being connected when a majority has granted the lock.
#[tokio::test]
async fn nodes_that_are_connected_late_hold_the_lock_too() {
    let (stage, redlock) = Stage::with_client(5).await;
    let holds = Holds::on(&stage[..2], |fake| fake.hold_next("INFO"));
    let guard = acquire(&redlock, "k").await.expect("three of five");
    holds.caught().await;
    holds.release();
    stage.wait_until_held("k", guard.token(), 5).await;
    stage.release(guard).await;
}

/// leandromoreira/redlock-rb#44: milliseconds taken for seconds, so that a lock of 3 s lived for 3000.
#[tokio::test]
async fn an_extension_is_in_milliseconds() {
    let stage = Stage::of(1).await;
    let request = stage.redlock().lock("k").ttl(LONG);
    let guard = request.acquire().await.expect("a lock");
    let ttl = Duration::from_millis(30_500);
    guard.extend(ttl).await.expect("extended");
    let remaining = stage[0].remaining("k").expect("a TTL");
    assert!(remaining <= ttl && remaining > ttl / 2, "{remaining:?}");
    assert!(guard.validity() < ttl, "{:?}", guard.validity());
    drop(guard.release().await);
}

/// lyokato/redlock: PEXPIRE with GT ignores a shorter TTL and says that all is well.
#[tokio::test]
async fn an_extension_to_a_shorter_ttl_takes_effect_on_both_sides() {
    let stage = Stage::of(3).await;
    let request = stage.redlock().lock("k").ttl(LONG);
    let guard = request.acquire().await.expect("a lock");
    stage.wait_until_held("k", guard.token(), 3).await;
    let ttl = LONG / 4;
    guard.extend(ttl).await.expect("extended");
    assert!(guard.validity() <= ttl);
    let shortened = || {
        stage
            .iter()
            .all(|fake| fake.remaining("k").is_some_and(|left| left <= ttl))
    };
    eventually("shortened", shortened).await;
    drop(guard.release().await);
}

/// mike-marcacci/node-redlock#283: extending after the end crashes the process. Scenario S36: and where the keys live on for
/// the drift margin, it must not succeed either.
#[tokio::test]
async fn an_extend_after_the_end_is_an_error_value_and_sends_nothing() {
    let (stage, clock, redlock) = Stage::with_clock(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    clock.advance(guard.validity());
    assert!(!guard.is_valid());
    let error = guard.extend(LONG).await.expect_err("over");
    assert!(error.is_expired(), "{error}");
    assert_eq!(stage.count(Purpose::Extend), 0);
    drop(guard);
    stage.wait_until_empty().await;
}

/// mike-marcacci/node-redlock PR#369 (3 of 4), go-redsync/redsync#71: an extension is returned although its time is over.
#[tokio::test]
async fn an_extension_whose_answers_come_too_late_is_none() {
    let (stage, clock, redlock) = Stage::with_clock(1).await;
    let request = redlock.lock("k").ttl(LONG).node_timeout(LONG);
    let guard = std::sync::Arc::new(request.acquire().await.expect("a lock"));
    let hold = stage[0].hold_next(Purpose::Extend);
    let extend = tokio::spawn({
        let guard = std::sync::Arc::clone(&guard);
        async move { guard.extend(LONG).await }
    });
    hold.caught().await;
    clock.advance(LONG * 2);
    hold.release();
    let error = joined("extend", extend).await.expect_err("too late");
    assert!(error.is_expired() || error.is_no_quorum(), "{error}");
    assert!(!guard.is_valid());
}

/// redis/rueidis#602, #653, #924: an extension with a stale deadline; sewenew/redis-plus-plus#24: a failed one returns what
/// remained before.
#[tokio::test]
async fn validity_after_an_extend_is_counted_from_that_extend() {
    let (stage, clock, redlock) = Stage::with_clock(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    clock.advance(LONG / 2);
    guard.extend(LONG).await.expect("extended");
    assert!(guard.validity() > LONG / 2, "{:?}", guard.validity());
    assert!(guard.validity() < LONG);
    clock.advance(LONG / 4);
    stage.always([0, 1], Purpose::Extend, &Behaviour::error(errors::OOM));
    guard.extend(LONG).await.expect_err("one of three");
    assert!(guard.validity() < LONG * 3 / 4, "{:?}", guard.validity());
    drop(guard.release().await);
}

/// redlock-universal: an extend is a round of GET and then a round of scripts. One round here.
#[tokio::test]
async fn an_extend_is_one_request_to_each_node() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    guard.extend(LONG).await.expect("scripts are known now");
    eventually("all asked", || stage.count(Purpose::Extend) >= 6).await;
    let before: Vec<usize> = stage.iter().map(|fake| fake.received().len()).collect();
    guard.extend(LONG).await.expect("extended");
    let after = || stage.iter().map(|fake| fake.received().len());
    eventually("all asked", || {
        after().zip(&before).all(|(now, before)| now > *before)
    })
    .await;
    for (now, before) in after().zip(before) {
        assert_eq!(now, before + 1, "{}", stage.story());
    }
    drop(guard.release().await);
}

/// leandromoreira/redlock-rb#148, #124, #27, joanvila/aioredlock PR#43, #73, lyokato/redlock: NOSCRIPT after a restart, a
/// flush or a failover never recovers.
#[tokio::test]
async fn scripts_that_a_node_forgot_are_sent_again() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    for _ in 0..3 {
        stage.iter().for_each(FakeNode::forget_scripts);
        guard.extend(LONG).await.expect("extended");
    }
    stage.iter().for_each(FakeNode::forget_scripts);
    assert!(is_let_go(&guard.release().await));
    stage.wait_until_empty().await;
}

/// Two extensions at the same time: both end, and the lock is held.
#[tokio::test]
async fn extensions_at_the_same_time_all_have_an_answer() {
    let (_stage, redlock) = Stage::with_client(3).await;
    let guard = std::sync::Arc::new(acquire(&redlock, "k").await.expect("a lock"));
    let extensions: Vec<_> = (0..8)
        .map(|_| {
            let guard = std::sync::Arc::clone(&guard);
            tokio::spawn(async move { guard.extend(LONG).await })
        })
        .collect();
    for extension in extensions {
        let result = joined("an extend", extension).await;
        result.unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(guard.is_valid());
}
