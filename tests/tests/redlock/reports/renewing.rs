//! Automatic extension: when it stops, and when it must not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Behaviour, FakeNode, Purpose, errors};
use locknode_tests::patience::{eventually, in_time};
use redlock_client::{Guard, Redlock, RenewPolicy};

use crate::stage::{Holds, LONG, MovableClock, Recorder, Stage, acquire_within, is_let_go};

/// Between two renewals.
const PERIOD: Duration = Duration::from_millis(60);

/// A TTL that is renewed every [`PERIOD`] and that a test can wait for.
const TTL: Duration = Duration::from_millis(900);

async fn renewed(redlock: &Redlock, key: &str) -> Guard {
    let policy = RenewPolicy::until(LONG).every(PERIOD);
    let request = redlock.lock(key).ttl(TTL).renew(policy);
    request.acquire().await.expect("a lock")
}

/// samcook/RedLock.net#48, #93, #97: auto-extend goes on after a conflict and sets the key again; two instances both believe
/// that they have it. joanvila/aioredlock: the watchdog swallows failures.
#[tokio::test]
async fn renewal_stops_at_a_conflict_and_says_so() {
    let stage = Stage::of(3).await;
    let recorder = Recorder::default();
    let clock = MovableClock::start();
    let redlock = stage
        .builder()
        .observer(Arc::new(recorder.clone()))
        .clock(Arc::new(clock.clone()))
        .build()
        .unwrap();
    let guard = renewed(&redlock, "k").await;
    stage.wait_until_held("k", guard.token(), 3).await;
    stage.held_by_other("k", 0..3);
    let error = in_time("the loss", guard.lost()).await;
    assert!(error.is_lost(), "{error}");
    assert!(guard.cancellation().is_cancelled() && !guard.is_valid());
    // What was on its way is heard before this is answered.
    drop(redlock.inspect("k").await);
    let asked = stage.count(Purpose::Extend);
    for _ in 0..4 {
        clock.advance(PERIOD);
        // The client does what is due, and the nodes have heard it when they answer this.
        drop(redlock.inspect("k").await);
    }
    assert_eq!(stage.count(Purpose::Extend), asked, "still renewing");
    assert_eq!(stage.held("k", "other"), 3);
    assert_eq!(recorder.count("lost"), 1, "{}", recorder.story());
}

/// swarthy/redis-semaphore#175, samcook/RedLock.net: the key is missing, and the renewal makes it again.
#[tokio::test]
async fn renewal_does_not_bring_back_a_key_that_is_gone() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = renewed(&redlock, "k").await;
    stage.wait_until_held("k", guard.token(), 3).await;
    stage.remove("k");
    let error = in_time("the loss", guard.lost()).await;
    assert!(error.is_lost(), "{error}");
    assert!(stage.is_empty(), "{}", stage.story());
}

/// redis/redisson#775, #3194, #3712, #5698, #3919: the watchdog stops for good after one failed renewal or a reconnect.
#[tokio::test]
async fn a_failed_renewal_is_tried_again_while_the_lock_is_valid() {
    let (stage, recorder, redlock) = Stage::with_recorder(3).await;
    let guard = renewed(&redlock, "k").await;
    stage.wait_until_held("k", guard.token(), 3).await;
    for fake in stage.iter().take(2) {
        fake.next(Purpose::Extend, Behaviour::error(errors::LOADING));
        fake.next(Purpose::Extend, Behaviour::error(errors::LOADING));
    }
    eventually("a failed renewal", || recorder.count("renew failed") > 0).await;
    let failed_at = recorder.count("renewed");
    eventually("renewed again", || recorder.count("renewed") > failed_at).await;
    assert!(guard.is_valid());
    assert_eq!(recorder.count("lost"), 0, "{}", recorder.story());
    assert!(is_let_go(&guard.release().await));
    stage.wait_until_empty().await;
}

/// The same report, the reconnect: every connection breaks, and the renewal goes on over new ones.
#[tokio::test]
async fn renewal_survives_a_reconnect() {
    let (stage, recorder, redlock) = Stage::with_recorder(3).await;
    let guard = renewed(&redlock, "k").await;
    eventually("renewed", || recorder.count("renewed") > 1).await;
    for fake in stage.iter() {
        fake.hang_up().await;
    }
    let before = recorder.count("renewed");
    eventually("renewed again", || recorder.count("renewed") > before + 1).await;
    assert!(guard.is_valid());
    drop(guard.release().await);
}

/// redis/redisson#1966, #1626, #4109: after a pause of the servers the watchdog renews for ever. samcook/RedLock.net#68, #6,
/// #90, scenario S39: unlimited auto-extend.
#[tokio::test]
async fn renewal_has_an_end() {
    let (stage, redlock) = Stage::with_client(3).await;
    let policies = [
        RenewPolicy::times(3).every(PERIOD),
        RenewPolicy::until(TTL + PERIOD * 3).every(PERIOD),
    ];
    for policy in policies {
        let started = Instant::now();
        let request = redlock.lock("k").ttl(TTL).renew(policy);
        let guard = request.acquire().await.expect("a lock");
        let error = in_time("the end", guard.lost()).await;
        assert!(error.is_expired(), "{policy:?}: {error}");
        let held_for = started.elapsed();
        assert!(
            held_for > TTL && held_for < TTL * 4,
            "{policy:?}: {held_for:?}"
        );
        let extends = stage.count(Purpose::Extend);
        tokio::time::sleep(PERIOD * 3).await;
        assert_eq!(stage.count(Purpose::Extend), extends, "still renewing");
        drop(guard);
        stage.wait_until_empty().await;
    }
}

/// The pause of redis/redisson#1966 itself: the servers answer nothing for a while, then everything. The lock is renewed, released, and
/// nothing is sent for it afterwards.
#[tokio::test]
async fn a_pause_of_the_servers_does_not_make_renewal_endless() {
    let (stage, redlock) = Stage::with_client(3).await;
    let policy = RenewPolicy::until(LONG).every(PERIOD);
    let request = redlock.lock("k").ttl(LONG / 6).renew(policy);
    let guard = request.acquire().await.expect("a lock");
    let holds = Holds::on(&stage, |fake| fake.hold_next(Purpose::Extend));
    for hold in holds.iter() {
        hold.caught().await;
        tokio::time::sleep(PERIOD).await;
        hold.release();
    }
    let extends = stage.count(Purpose::Extend);
    eventually("renewed again", || {
        stage.count(Purpose::Extend) > extends + 3
    })
    .await;
    assert!(guard.is_valid());
    assert!(guard.release().await.is_free());
    stage.wait_until_empty().await;
    let extends = stage.count(Purpose::Extend);
    tokio::time::sleep(PERIOD * 4).await;
    assert_eq!(stage.count(Purpose::Extend), extends, "still renewing");
}

/// No policy, no renewal.
#[tokio::test]
async fn a_lock_is_not_renewed_unless_asked_for() {
    let (stage, redlock) = Stage::with_client(1).await;
    let request = redlock.lock("k").ttl(PERIOD * 5);
    let guard = request.acquire().await.expect("a lock");
    let error = in_time("the end", guard.lost()).await;
    assert!(error.is_expired(), "{error}");
    assert_eq!(stage.count(Purpose::Extend), 0);
}

/// mike-marcacci/node-redlock PR#369 (4 of 4), the leak of a timer; redis/redisson#4456: members renewed for ever. A released, a
/// dropped and a leaked lock are not renewed any more.
#[tokio::test]
async fn renewal_ends_with_the_guard() {
    let (stage, redlock) = Stage::with_client(3).await;
    let release = renewed(&redlock, "released").await;
    drop(release.release().await);
    drop(renewed(&redlock, "dropped").await);
    renewed(&redlock, "leaked").await.leak();
    eventually("gone", || stage.iter().all(|fake| fake.keys().len() <= 1)).await;
    let before = stage.count(Purpose::Extend);
    tokio::time::sleep(PERIOD * 4).await;
    assert_eq!(stage.count(Purpose::Extend), before, "still renewing");
    eventually("the leaked lock ends", || stage.is_empty()).await;
}

/// madelson/DistributedLock#191, samcook/RedLock.net#64, scenario S38: an extension in flight while the lock is released
/// leaves the key behind, in 0.6 % of all cases.
#[tokio::test]
async fn a_release_during_a_renewal_leaves_no_key() {
    for late in 0..3 {
        let (stage, redlock) = Stage::with_impatient_client(3).await;
        let guard = renewed(&redlock, "k").await;
        stage.wait_until_held("k", guard.token(), 3).await;
        let hold = stage[late].delay_next(Purpose::Extend);
        hold.caught().await;
        drop(guard.release().await);
        hold.release();
        stage.wait_until_empty().await;
    }
}

/// swarthy/redis-semaphore#205, PR#206, #9, #24: a refresh that races a release reports the lock as lost.
#[tokio::test]
async fn a_release_during_a_renewal_is_no_loss() {
    let (stage, recorder, redlock) = Stage::with_recorder(3).await;
    for round in 0..20_u32 {
        let guard = renewed(&redlock, &format!("k{round}")).await;
        let extends = stage.count(Purpose::Extend);
        eventually("a renewal", || stage.count(Purpose::Extend) > extends).await;
        assert!(is_let_go(&guard.release().await), "{round}");
    }
    redlock.close().await;
    assert_eq!(recorder.count("lost"), 0, "{}", recorder.story());
}

/// A network that hangs does not keep the holder from being told before the validity ends. The warning is 100 ms; a
/// machine that stands still for so long does not do so every time.
#[tokio::test]
async fn the_holder_is_told_in_time_though_every_node_is_silent() {
    for _ in 0..2 {
        if is_told_in_time().await {
            return;
        }
    }
    assert!(is_told_in_time().await, "told late three times");
}

async fn is_told_in_time() -> bool {
    let (stage, redlock) = Stage::with_client(3).await;
    // So long that the warning comes as early as it ever does.
    let policy = RenewPolicy::until(LONG).every(PERIOD);
    let request = redlock.lock("k").ttl(TTL * 3).renew(policy);
    let guard = request.acquire().await.expect("a lock");
    let cancelled = guard.cancellation();
    stage.iter().for_each(FakeNode::fall_silent);
    let mut end = Instant::now();
    eventually("cancelled", || {
        // After the loss this is the present: later than no end that is still to come.
        end = end.max(guard.valid_until());
        cancelled.is_cancelled()
    })
    .await;
    let told_at = Instant::now();
    assert!(guard.lost().await.is_expired());
    told_at < end
}

/// spring-projects/spring-integration#10446, #10513, #11059, #1888: a lock of this process that is held here though it has
/// ended on the servers. After the end any handle of the process may have it.
#[tokio::test]
async fn an_ended_lock_can_be_had_again_in_the_same_process() {
    let (stage, redlock) = Stage::with_connected_client(3).await;
    let request = redlock.lock("k").ttl(PERIOD * 3);
    let first = request.acquire().await.expect("a lock");
    in_time("the end", first.lost()).await;
    stage.pass_time(PERIOD * 3);
    let second = acquire_within(&redlock, "k", LONG).await.expect("free");
    assert!(!first.is_valid() && second.is_valid());
    stage.wait_until_held("k", second.token(), 3).await;
    drop(first);
    // Whatever the drop has sent is done before this is answered.
    drop(redlock.inspect("k").await);
    assert_eq!(
        stage.held("k", second.token()),
        3,
        "released by a guard of before"
    );
    drop(second.release().await);
}
