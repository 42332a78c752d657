//! Releasing: on every node, once, in bounded time, whatever became of the caller.

use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Behaviour, FakeNode, Purpose, errors};
use locknode_tests::patience::in_time;
use redlock_client::{ReleaseAnswer, Scope, Token};

use crate::stage::{AMPLE, Holds, LONG, SHORT, Stage, acquire, held_key, is_let_go, try_acquire};

/// antirez/redlock-rb#3, leandromoreira/redlock-rb PR#5, redlock-universal: a release goes to every node, those included that
/// said no or nothing.
#[tokio::test]
async fn a_release_goes_to_nodes_believed_not_to_hold_the_lock() {
    let (stage, redlock) = Stage::with_connected_client(5).await;
    stage[0].next(
        Purpose::Acquire,
        Behaviour::ApplyThenAnswer(b"$-1\r\n".to_vec()),
    );
    stage[1].next(
        Purpose::Acquire,
        Behaviour::ApplyThenAnswer(b"-ERR out of luck\r\n".to_vec()),
    );
    let guard = acquire(&redlock, "k").await.expect("three of five");
    stage.release(guard).await;
    for fake in stage.iter() {
        fake.wait_for_count(Purpose::Release, 1).await;
    }
}

/// The same when the attempt fails.
#[tokio::test]
async fn a_failed_attempt_is_released_on_every_node() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage.always(
        [1, 2],
        Purpose::Acquire,
        &Behaviour::ApplyThenAnswer(b"-ERR no\r\n".to_vec()),
    );
    try_acquire(&redlock, "k").await.expect_err("one of three");
    stage.wait_until_empty().await;
}

/// mike-marcacci/node-redlock#65, #131, #168, #313, PR#180, PR#362, sesamecare/redlock#6, scenario S5: the release of an expired lock
/// throws, and is tried again for the whole window.
#[tokio::test]
async fn the_release_of_an_ended_lock_is_answered_at_once_and_not_repeated() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    stage.pass_time(LONG + Duration::from_millis(1));
    let started = Instant::now();
    let released = guard.release().await;
    assert!(!released.is_confirmed(), "{released:?}");
    assert!(
        released.not_held() >= 2 && released.unknown() == 0,
        "{released:?}"
    );
    assert!(started.elapsed() < AMPLE);
    redlock.close().await;
    for fake in stage.iter() {
        let releases = fake.received();
        let releases = releases
            .iter()
            .filter(|request| request.purpose == Purpose::Release);
        // By its SHA, and once more in full where the script was new.
        assert!(releases.count() <= 2, "{}", fake.story());
    }
}

/// mike-marcacci/node-redlock#11: a release that is refused with MISCONF is ignored in silence.
#[tokio::test]
async fn a_release_that_is_refused_is_told_with_the_reason() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    stage.always(0..3, Purpose::Release, &Behaviour::error(errors::MISCONF));
    let released = guard.release().await;
    assert_eq!(released.confirmed(), 0, "{released:?}");
    let is_told = |answer: &ReleaseAnswer| matches!(answer, ReleaseAnswer::Unknown(cause) if cause.to_string().contains("MISCONF"));
    assert!(
        released
            .nodes()
            .iter()
            .filter(|answer| is_told(answer))
            .count()
            >= 2,
        "{released:?}"
    );
}

/// mike-marcacci/node-redlock#309: an aborted `using` still spends seconds on the release. Krukov/cashews#387, redis/redisson (unlock
/// joins on every member), samcook/RedLock.net (Dispose waits for all nodes), go-redsync/redsync (no timeout of its own).
#[tokio::test]
async fn a_release_to_silent_nodes_is_bounded() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    stage.iter().for_each(FakeNode::fall_silent);
    let started = Instant::now();
    let released = guard.release().await;
    assert!(
        !released.is_confirmed() && released.confirmed() == 0,
        "{released:?}"
    );
    assert!(started.elapsed() < AMPLE, "{:?}", started.elapsed());
}

/// go-redsync/redsync#140, PR#133: lock and unlock wait for every node, so a dead one delays both.
#[tokio::test]
async fn a_silent_node_does_not_delay_acquire_nor_release() {
    let stage = Stage::of(3).await;
    let redlock = stage
        .builder()
        .node_timeout(LONG)
        .connect_timeout(LONG)
        .build()
        .unwrap();
    let request = redlock.lock("warm").ttl(LONG * 2);
    let warm = request.acquire().await.expect("a lock");
    drop(warm.release().await);
    stage[0].fall_silent();
    for _ in 0..3 {
        let guard = redlock.lock("k").ttl(LONG * 2).acquire();
        let guard = in_time("acquire", guard).await.expect("two of three");
        assert!(is_let_go(&in_time("release", guard.release()).await));
    }
}

/// kalbasit/ncps PR#913, redis/rueidis#1010: an unlock under a cancelled context does nothing, and the lock leaks.
#[tokio::test]
async fn a_release_does_not_depend_on_its_caller() {
    let (stage, redlock) = Stage::with_client(3).await;
    let holds = Holds::on(&stage, |fake| fake.hold_next(Purpose::Release));
    let guard = stage.lock(&redlock, "k").await;
    let release = tokio::spawn(guard.release());
    holds[0].caught().await;
    release.abort();
    drop(release.await);
    holds.release();
    stage.wait_until_empty().await;
}

/// lukas-krecan/ShedLock PR#2584, #2593, microsoftarchive/redis#405, redis/redis-py#489, scenario S32: somebody else's lock is
/// released or extended.
#[tokio::test]
async fn only_the_holder_releases_and_extends() {
    let (stage, redlock) = Stage::with_client(3).await;
    let old = stage.lock(&redlock, "k").await;
    stage.held_by_other("k", 0..3);
    let released = old.release().await;
    assert_eq!(released.confirmed(), 0, "{released:?}");
    let foreign = Token::new("foreign").expect("a token");
    let released = redlock.release("k", &foreign).await.expect("an answer");
    assert_eq!(released.confirmed(), 0, "{released:?}");
    let adopted = redlock.adopt("k", foreign).ttl(LONG).acquire().await;
    assert!(adopted.expect_err("not its token").is_lost());
    redlock.close().await;
    assert_eq!(stage.held("k", "other"), 3);
    for fake in stage.iter() {
        let plain = fake
            .received()
            .iter()
            .any(|request| request.name() == "DEL");
        assert!(!plain, "a delete that does not compare: {}", fake.story());
    }
}

/// laravel/framework#36337, php-lock/lock#8: an owner that was serialised or compressed never matches. Tokens are bytes of
/// any kind.
#[tokio::test]
async fn a_token_of_any_bytes_releases_its_lock() {
    let (stage, redlock) = Stage::with_client(3).await;
    for bytes in [
        &b"\0"[..],
        b"a\r\nb",
        b"\xff\xfe",
        b"$5",
        b"OK",
        &[b'x'; 64],
    ] {
        let token = Token::new(bytes).expect("a token");
        for fake in stage.iter() {
            let mut node = locknode_tests::Conversation::with(fake.address())
                .await
                .unwrap();
            node.say_bytes(&[b"SET", b"k", bytes, b"PX", b"60000"])
                .await;
            node.hear().await.expect("OK");
        }
        let views = redlock.inspect("k").await.expect("views");
        for view in &views {
            let held = held_key(view);
            assert_eq!(held.token.as_ref(), bytes);
        }
        let request = redlock.adopt("k", token).ttl(LONG);
        let guard = request.acquire().await.expect("held");
        assert!(is_let_go(&guard.release().await));
        stage.wait_until_empty().await;
    }
}

/// mike-marcacci/node-redlock PR#369: the error of the business is masked by that of the release.
#[tokio::test]
async fn what_the_closure_gave_is_not_hidden_by_a_failed_release() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let fakes = &stage;
    let result = redlock
        .with_lock(redlock.lock("k").ttl(LONG), async |_scope| {
            for fake in fakes.iter() {
                fake.go_down().await;
            }
            Err::<(), _>("the business failed")
        })
        .await;
    assert_eq!(
        result.expect("the lock was had"),
        Err("the business failed")
    );
}

/// The same when the lock is lost inside: the scope is told, and the closure's own result comes out.
#[tokio::test]
async fn what_the_closure_gave_is_not_hidden_by_a_loss() {
    let (stage, redlock) = Stage::with_client(3).await;
    let fakes = &stage;
    let policy = redlock_client::RenewPolicy::until(LONG * 10).every(Duration::from_millis(50));
    let request = redlock.lock("k").ttl(LONG).renew(policy);
    let result = redlock
        .with_lock(request, async |scope: Scope| {
            for fake in fakes.iter() {
                fake.remove("k");
            }
            in_time("the scope ends", scope.cancellation().cancelled()).await;
            "stopped in time"
        })
        .await;
    assert_eq!(result.expect("the lock was had"), "stopped in time");
}

/// rslock: `using` computes `validity - 500` unsigned, which panics or wraps for a short TTL.
#[tokio::test]
async fn a_closure_under_a_short_lock_ends_without_a_panic() {
    let (stage, redlock) = Stage::with_client(1).await;
    for ms in [20, 50, 120] {
        let request = redlock
            .lock("k")
            .ttl(Duration::from_millis(ms))
            .wait_for(AMPLE);
        let result = redlock.with_lock(request, async |scope: Scope| {
            in_time("the scope ends", scope.cancellation().cancelled()).await;
        });
        // A lock this short may be over before it is had.
        if let Err(error) = result.await {
            assert!(!error.is_config(), "{error}");
        }
    }
    stage.wait_until_empty().await;
}

/// redis/redisson: the holder is a thread, so that a lock cannot be handed to another. A guard goes where it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guard_can_be_released_by_another_thread() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    let released = tokio::spawn(async move {
        guard.extend(LONG).await.expect("extended");
        guard.release().await
    });
    assert!(is_let_go(&released.await.expect("no panic")));
    stage.wait_until_empty().await;
}

/// leandromoreira/redlock-rb, rslock: errors of a release are swallowed, and a connection error is read as "not present".
#[tokio::test]
async fn nodes_that_cannot_be_asked_are_unknown_and_not_free() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let guard = stage.lock(&redlock, "k").await;
    stage[0].go_down().await;
    let views = redlock.inspect("k").await.expect("views");
    assert!(views[0].answer.is_err(), "{:?}", views[0]);
    assert!(
        views[1].answer.as_ref().is_ok_and(Option::is_some),
        "{:?}",
        views[1]
    );
    stage[1].go_down().await;
    let released = guard.release().await;
    assert!(
        !released.is_confirmed() && released.not_held() == 0,
        "{released:?}"
    );
    assert!(SHORT < AMPLE);
}
