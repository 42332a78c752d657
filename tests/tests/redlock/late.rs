//! Replies and requests that come when nobody waits for them any more.

use std::future::{Future, poll_fn};
use std::task::Poll;
use std::time::Duration;

use locknode_tests::fake_node::{Behaviour, On, Purpose};
use locknode_tests::patience::eventually;

use crate::stage::{
    Holds, LONG, SHORT, Stage, acquire, finds_no_quorum, is_let_go, joined, try_acquire,
};

/// The one late `OK` on node 2 belongs to the first key. Were it taken for the second, that lock would have two holders.
#[tokio::test]
async fn a_late_reply_is_not_taken_for_the_answer_to_another_question() {
    let (stage, redlock) = Stage::with_client(3).await;
    let hold = stage[2].hold_next(Purpose::Acquire);
    let first = acquire(&redlock, "a").await.expect("two of three");
    hold.caught().await;
    stage.held_by_other("b", [1, 2]);
    let second = tokio::spawn(try_acquire(&redlock, "b"));
    stage[0].wait_for_count(Purpose::Acquire, 2).await;
    stage[1].wait_for_count(Purpose::Acquire, 2).await;
    hold.release();
    let second = joined("the second", second).await;
    assert!(!matches!(second, Ok(Some(_))), "two holders: {second:?}");
    drop(first.release().await);
    stage[0].wait_until_empty().await;
}

/// The same after the node's time is over and the client has given the question up.
#[tokio::test]
async fn a_reply_after_the_timeout_is_not_taken_for_the_answer_to_another_question() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    stage.held_by_other("a", [0]);
    let hold = stage[2].hold(Purpose::Acquire);
    let first = try_acquire(&redlock, "a").await;
    assert!(!matches!(first, Ok(Some(_))), "one of three: {first:?}");
    stage[2].behave();
    stage.held_by_other("b", [1, 2]);
    let second = tokio::spawn(try_acquire(&redlock, "b"));
    stage[1].wait_for_count(Purpose::Acquire, 2).await;
    hold.release();
    let second = joined("the second", second).await;
    assert!(!matches!(second, Ok(Some(_))), "two holders: {second:?}");
}

#[tokio::test]
async fn a_grant_that_arrives_after_the_attempt_has_failed_is_released() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let holds = Holds::on(&stage[..2], |fake| fake.hold_next(Purpose::Acquire));
    finds_no_quorum(&redlock, "k").await;
    holds.release();
    stage.wait_until_empty().await;
}

/// The request itself is late: it is executed when the attempt is long over.
#[tokio::test]
async fn a_grant_that_is_made_after_the_attempt_has_failed_is_released() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let holds = Holds::on(&stage[..2], |fake| fake.delay_next(Purpose::Acquire));
    finds_no_quorum(&redlock, "k").await;
    holds.release();
    stage[2].wait_until_empty().await;
    // The release follows by the same connection; where that was given up it came too early, and the TTL ends the key.
    let gone = || stage[0].keys().is_empty() && stage[1].keys().is_empty();
    let deadline = std::time::Instant::now() + Duration::from_secs(3);
    while !gone() && std::time::Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    if !gone() {
        println!("left to the TTL:\n{}", stage.story());
        stage.pass_time(LONG + Duration::from_millis(1));
        assert!(gone(), "a key without an end");
    }
}

/// An extension that is executed after the release finds nothing to extend and makes nothing.
#[tokio::test]
async fn a_late_extend_does_not_create_a_key() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    guard.extend(LONG).await.expect("scripts are known now");
    let hold = stage[0].delay_next(Purpose::Extend);
    guard.extend(LONG).await.expect("two of three");
    drop(guard.release().await);
    stage[1].wait_until_empty().await;
    stage[2].wait_until_empty().await;
    hold.release();
    stage[0].wait_until_empty().await;
}

/// The release of one lock is executed late, when the same client holds the key again.
#[tokio::test]
async fn a_late_release_does_not_release_the_next_lock() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let first = stage.lock(&redlock, "k").await;
    let hold = stage[0].delay_next(Purpose::Release);
    drop(first.release().await);
    let second = try_acquire(&redlock, "k").await;
    let second = second.expect("two of three").expect("free on two of three");
    hold.release();
    eventually("executed", || hold.held() == 0).await;
    stage.wait_until_held_by_quorum("k", second.token()).await;
    assert!(second.is_valid());
    drop(second.release().await);
}

/// Votes of one extension are not counted in the next.
#[tokio::test]
async fn votes_of_an_earlier_round_do_not_count() {
    let (stage, redlock) = Stage::with_client(5).await;
    let guard = stage.lock(&redlock, "k").await;
    let oom = Behaviour::error("OOM command not allowed when used memory > 'maxmemory'.");
    stage.always([2, 3, 4], Purpose::Extend, &oom);
    guard.extend(LONG).await.expect_err("two of five");
    stage.behave();
    stage.always([0, 1, 4], Purpose::Extend, &oom);
    let error = guard
        .extend(LONG)
        .await
        .expect_err("two of five again, others");
    assert!(error.is_no_quorum(), "{error}");
    assert!(guard.is_valid());
}

/// A node that is always the last to answer and has forgotten the script: it is told the script all the same, and its key
/// lives as long as those of the others.
#[tokio::test]
async fn a_slow_node_learns_the_scripts_too() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    stage[2].forget_scripts();
    stage[2].pass_time(LONG / 2);
    for _ in 0..3 {
        let before = stage[2].received().len();
        let hold = stage[2].hold_next(On::Anything);
        guard.extend(LONG).await.expect("two of three");
        hold.caught().await;
        hold.release();
        eventually("executed", || hold.held() == 0).await;
        let asked = stage[2].received().len();
        assert!(asked > before, "{}", stage[2].story());
    }
    let is_extended = || {
        stage[2]
            .remaining("k")
            .is_some_and(|left| left > LONG * 3 / 4)
    };
    eventually("extended on the slow node", is_extended).await;
    stage.release(guard).await;
}

/// The same for a release: the node's answer to it comes when everybody else has let the lock go.
#[tokio::test]
async fn a_slow_node_that_forgot_the_script_still_releases() {
    let (stage, redlock) = Stage::with_client(3).await;
    for _ in 0..2 {
        let guard = stage.lock(&redlock, "k").await;
        stage[2].forget_scripts();
        let hold = stage[2].hold_next(Purpose::Release);
        assert!(guard.release().await.is_free());
        hold.caught().await;
        hold.release();
        stage.wait_until_empty().await;
    }
}

/// What is held back on one node delays nobody.
#[tokio::test]
async fn nobody_waits_for_the_last_reply() {
    let (stage, redlock) = Stage::with_client(5).await;
    let holds = Holds::on(&stage[..2], |fake| fake.hold(Purpose::Acquire));
    let started = std::time::Instant::now();
    let guard = acquire(&redlock, "k").await.expect("three of five");
    guard.extend(LONG).await.expect("three of five");
    assert!(is_let_go(&guard.release().await));
    assert!(
        started.elapsed() < crate::stage::AMPLE,
        "waited for a timeout"
    );
    holds.release();
    stage.wait_until_empty().await;
    assert!(SHORT < crate::stage::AMPLE);
}

/// The grant was in time, but the task that waited for it did not run until the validity was over.
#[tokio::test]
async fn a_caller_that_is_woken_too_late_is_not_handed_the_lock() {
    let (_stage, clock, redlock) = Stage::with_clock(5).await;
    drop(redlock.nodes().await);
    let mut acquiring = Box::pin(acquire(&redlock, "k"));
    let is_ready = poll_fn(|cx| Poll::Ready(acquiring.as_mut().poll(cx).is_ready())).await;
    assert!(!is_ready, "the nodes have not answered yet");
    // Answers come in the order of the questions: after this the grant waits for its caller.
    drop(redlock.inspect("k").await);
    clock.advance(LONG);
    let error = acquiring.await.expect_err("its time is over");
    assert!(error.is_expired(), "{error}");
}
