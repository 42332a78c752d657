//! Several keys, several owners, several waiters.

use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Behaviour, Purpose, errors};
use locknode_tests::patience::eventually;

use crate::stage::{AMPLE, LONG, Stage, acquire, acquire_within, is_let_go, joined};

/// redis/redisson#4456: an interrupted MultiLock leaves members locked, and renews them for ever.
#[tokio::test]
async fn an_aborted_lock_of_several_keys_is_rolled_back() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage.held_by_other("c", 0..3);
    let request = redlock.lock_all(["a", "b", "c"]).ttl(LONG).wait_for(LONG);
    let attempt = tokio::spawn(request.acquire());
    stage[0].wait_for_count(Purpose::Acquire, 3).await;
    attempt.abort();
    drop(attempt.await);
    let only_c = || stage.iter().all(|fake| fake.keys().keys().eq(["c"]));
    eventually("only the foreign key is left", only_c).await;
}

/// The same when one of the members cannot be had.
#[tokio::test]
async fn several_keys_are_all_had_or_none() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage.held_by_other("b", 0..2);
    let request = redlock.lock_all(["c", "b", "a"]).ttl(LONG);
    let error = request.acquire().await.expect_err("b is taken");
    assert!(error.is_busy(), "{error}");
    let none = || {
        stage
            .holders("a")
            .iter()
            .chain(&stage.holders("c"))
            .all(Option::is_none)
    };
    eventually("a and c are free", none).await;
    stage.remove("b");
    let request = redlock.lock_all(["c", "b", "a"]).ttl(LONG);
    let all = request.acquire().await.expect("all free");
    for key in ["a", "b", "c"] {
        assert!(stage.holders(key).iter().flatten().count() >= 2, "{key}");
    }
    drop(all.release().await);
    stage.wait_until_empty().await;
}

/// mike-marcacci/node-redlock#64, redis/redisson#1098: several keys in one request are refused by a cluster. One key each.
#[tokio::test]
async fn no_request_names_two_keys() {
    let (stage, redlock) = Stage::with_client(1).await;
    let request = redlock.lock_all(["a", "b"]).ttl(LONG);
    let all = request.acquire().await.expect("free");
    drop(all.release().await);
    stage.wait_until_empty().await;
    for request in stage[0].received() {
        assert!(
            !(request.mentions("a") && request.mentions("b")),
            "{request}"
        );
    }
}

/// mike-marcacci/node-redlock#82: the holder dies, and the waiters use up their retries before its TTL ends. spring-projects/
/// spring-integration#3690: waiting without asking all the time.
#[tokio::test]
async fn a_waiter_gets_the_lock_soon_after_the_holders_ttl() {
    let (stage, redlock) = Stage::with_client(3).await;
    let ttl = Duration::from_millis(600);
    let started = Instant::now();
    redlock
        .lock("k")
        .ttl(ttl)
        .acquire()
        .await
        .expect("a lock")
        .leak();
    let guard = acquire_within(&redlock, "k", LONG)
        .await
        .expect("free then");
    let waited = started.elapsed();
    assert!(waited >= ttl - Duration::from_millis(20), "{waited:?}");
    assert!(waited < ttl + Duration::from_secs(2), "{waited:?}");
    assert!(
        stage[0].count(Purpose::Acquire) < 40,
        "asked all the time: {}",
        stage.story()
    );
    drop(guard.release().await);
}

/// redis/redisson#1104, #2099, #2883, #3730, #5019: whoever gave up waiting is still in the queue and blocks the others.
#[tokio::test]
async fn a_waiter_that_gave_up_leaves_nothing() {
    let (stage, redlock) = Stage::with_client(3).await;
    let holder = acquire(&redlock, "k").await.expect("a lock");
    let waiters: Vec<_> = (0..10)
        .map(|_| tokio::spawn(acquire_within(&redlock, "k", LONG)))
        .collect();
    stage[0].wait_for_count(Purpose::Acquire, 15).await;
    for waiter in waiters {
        waiter.abort();
        drop(waiter.await);
    }
    drop(holder.release().await);
    let next = acquire_within(&redlock, "k", AMPLE).await.expect("free");
    stage.release(next).await;
}

/// A reentrant owner keeps the lock until it has left as often as it entered, in whatever order.
#[tokio::test]
async fn an_owner_that_entered_twice_leaves_twice() {
    let (stage, redlock) = Stage::with_client(3).await;
    let owner = redlock.reentrant();
    let request = || redlock.lock("k").ttl(LONG);
    let first = owner.enter(request()).await.expect("free");
    let second = owner
        .clone()
        .enter(request())
        .await
        .expect("the same owner");
    assert_eq!(first.token(), second.token());
    assert_eq!(second.entries(), 2);
    drop(first);
    let refused = request().try_acquire().await.expect("an answer");
    assert!(refused.is_none(), "still inside");
    assert!(second.is_valid());
    drop(second);
    stage.wait_until_empty().await;
}

/// redis/redisson#7367: a hold count that never falls to zero. An entry that failed does not count.
#[tokio::test]
async fn a_failed_entry_does_not_count() {
    let (stage, redlock) = Stage::with_client(3).await;
    let owner = redlock.reentrant();
    let request = || redlock.lock("k").ttl(LONG);
    stage.always(0..2, Purpose::Acquire, &Behaviour::error(errors::OOM));
    let error = owner.enter(request()).await.expect_err("one of three");
    assert!(error.is_no_quorum(), "{error}");
    stage.behave();
    let guard = owner.enter(request()).await.expect("free");
    assert_eq!(guard.entries(), 1);
    assert!(
        guard
            .leave()
            .await
            .is_some_and(|released| is_let_go(&released))
    );
    stage.wait_until_empty().await;
}

/// Two entries at the same moment are one lock on the nodes.
#[tokio::test]
async fn entries_at_the_same_time_share_one_lock() {
    let (stage, redlock) = Stage::with_client(3).await;
    let owner = redlock.reentrant();
    let entries: Vec<_> = (0..8)
        .map(|_| {
            let (owner, request) = (owner.clone(), redlock.lock("k").ttl(LONG));
            tokio::spawn(async move { owner.enter(request.wait_for(AMPLE)).await })
        })
        .collect();
    let mut guards = Vec::new();
    for entry in entries {
        let guard = joined("an entry", entry).await;
        guards.push(guard.unwrap_or_else(|error| panic!("{error}")));
    }
    let token = guards[0].token().to_string();
    assert!(
        guards
            .iter()
            .all(|guard| guard.token().to_string() == token)
    );
    drop(guards);
    stage.wait_until_empty().await;
}

/// An owner whose lock was lost is not inside any more: the next entry asks the nodes.
#[tokio::test]
async fn an_owner_that_lost_the_lock_does_not_enter_for_nothing() {
    let (stage, redlock) = Stage::with_client(3).await;
    let owner = redlock.reentrant();
    let request = || redlock.lock("k").ttl(LONG);
    let first = owner.enter(request()).await.expect("free");
    stage.wait_until_held("k", first.token(), 3).await;
    stage.held_by_other("k", 0..3);
    first.extend(LONG).await.expect_err("another has it");
    let error = owner.enter(request()).await.expect_err("another has it");
    assert!(error.is_busy() || error.is_lost(), "{error}");
    drop(first);
    let error = owner.enter(request()).await.expect_err("another has it");
    assert!(error.is_busy(), "{error}");
}
