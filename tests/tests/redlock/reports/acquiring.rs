//! Acquiring: validity, quorum, retry, errors told apart.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use locknode_tests::fake_node::{Behaviour, Purpose, errors};
use locknode_tests::patience::in_time;
use redlock_client::{Cause, Drift, ErrorKind, Redlock, RetryPolicy};

use crate::stage::{
    AMPLE, Holds, LONG, Stage, acquire, acquire_within, finds_no_quorum, is_let_go, joined,
    try_acquire,
};

/// mike-marcacci/node-redlock#296, #299, #169, PR#274: the end was computed from the first attempt, so that after 1.2 s
/// of retries a lock of 1 s was returned already expired. Also sewenew/redis-plus-plus, script variant: one start for
/// all retries.
#[tokio::test]
async fn validity_is_counted_from_the_attempt_that_succeeded() {
    let (stage, clock, redlock) = Stage::with_clock(3).await;
    let ttl = Duration::from_secs(10);
    stage.held_by_other("k", 0..3);
    let attempt = tokio::spawn(
        redlock
            .lock("k")
            .ttl(ttl)
            .retry(RetryPolicy::tries(1000))
            .acquire(),
    );
    stage[0].wait_for_count(Purpose::Acquire, 2).await;
    clock.advance(ttl * 3);
    stage.remove("k");
    let guard = joined("acquire", attempt).await.expect("free");
    assert!(guard.is_valid(), "{:?}", guard.validity());
    assert!(guard.validity() > ttl / 2, "{:?}", guard.validity());
}

/// mike-marcacci/node-redlock PR#369 (1 of 4), sewenew/redis-plus-plus#24, leandromoreira/redlock-rb (validity of zero
/// accepted), redis-semaphore RedlockMutex (no check at all), the `redlock` crate 2.0.0 (`ttl - drift - elapsed` wraps).
#[tokio::test]
async fn a_lock_whose_validity_has_ended_is_not_returned() {
    let (stage, clock, redlock) = Stage::with_clock(3).await;
    let ttl = Duration::from_secs(10);
    let holds = Holds::on(&stage, |fake| fake.hold_next(Purpose::Acquire));
    let attempt = tokio::spawn(redlock.lock("k").ttl(ttl).node_timeout(LONG).try_acquire());
    holds.caught().await;
    clock.advance(ttl);
    holds.release();
    let result = joined("acquire", attempt).await;
    let error = result.expect_err("ten seconds are over");
    assert!(
        matches!(error.kind(), ErrorKind::Expired | ErrorKind::NoQuorum),
        "{error}"
    );
    stage.wait_until_empty().await;
}

/// mike-marcacci/node-redlock PR#369 (2 of 4), node-redlock v5: no release between two attempts, so that a client with
/// part of the nodes blocks itself.
#[tokio::test]
async fn a_retry_is_not_blocked_by_leftovers_of_its_own_attempt() {
    let (stage, redlock) = Stage::with_client(3).await;
    let oom = Behaviour::error(errors::OOM);
    stage[1].next(Purpose::Acquire, oom.clone());
    stage[2].next(Purpose::Acquire, oom);
    let guard = redlock
        .lock("k")
        .ttl(LONG)
        .retry(RetryPolicy::tries(2))
        .acquire()
        .await;
    let guard = guard.expect("the second try");
    stage.wait_until_held("k", guard.token(), 3).await;
    stage.release(guard).await;
}

/// SPSCommerce/redlock-py PR#6: a quorum of the reachable servers lets 2 of 3 and 3 of 5 both win.
#[tokio::test]
async fn the_quorum_is_of_the_configured_nodes() {
    for (nodes, down) in [(3, 2), (5, 3), (4, 2), (2, 1)] {
        let (stage, redlock) = Stage::with_client(nodes).await;
        for fake in stage.iter().take(down) {
            fake.go_down().await;
        }
        let error = try_acquire(&redlock, "k").await.expect_err("no majority");
        assert!(error.is_no_quorum(), "{nodes} nodes, {down} down: {error}");
    }
}

/// ronnylt/redlock-php PR#6, #16, #1: N/2+1 as a float made 3 nodes need 3 and 5 need 4.
#[tokio::test]
async fn the_quorum_is_half_of_the_nodes_rounded_down_and_one() {
    for (nodes, quorum) in [
        (1, 1),
        (2, 2),
        (3, 2),
        (4, 3),
        (5, 3),
        (6, 4),
        (7, 4),
        (16, 9),
    ] {
        let (stage, redlock) = Stage::with_client(nodes).await;
        assert_eq!((redlock.node_count(), redlock.quorum()), (nodes, quorum));
        stage.held_by_other("enough", quorum..nodes);
        let guard = try_acquire(&redlock, "enough").await.expect("an answer");
        drop(guard.expect("a majority is free").release().await);
        stage.held_by_other("too few", quorum - 1..nodes);
        let refused = try_acquire(&redlock, "too few").await;
        // Of two or four nodes half are no majority, so that nobody has it either.
        match nodes % 2 {
            1 => assert!(matches!(refused, Ok(None)), "{nodes} nodes"),
            _ => assert!(refused.expect_err("half").is_contended(), "{nodes} nodes"),
        }
    }
}

/// SPSCommerce/redlock-py PR#27, #5, #14, redlock-php: one crashed server raises out of lock(), or blocks it.
/// leandromoreira/redlock-rb#129, #60, PR#134: two of three acquired, and the third's connection error is raised.
#[tokio::test]
async fn one_dead_node_of_three_is_no_error() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage[1].go_down().await;
    let guard = try_acquire(&redlock, "k").await.expect("no error");
    assert!(is_let_go(&guard.expect("two of three").release().await));
}

/// SPSCommerce/redlock-py: held on a quorum while one node gave an error: raises, and keeps the keys until their TTL.
#[tokio::test]
async fn a_quorum_with_one_error_is_a_lock_that_can_be_released() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage[2].next(Purpose::Acquire, Behaviour::error(errors::MISCONF));
    let guard = acquire(&redlock, "k").await.expect("two of three");
    assert!(is_let_go(&guard.release().await));
    stage.wait_until_empty().await;
}

/// leandromoreira/redlock-rb#76, #78, #16, go-redsync/redsync: the reply is lost after the server applied the SET.
#[tokio::test]
async fn a_node_whose_grant_was_lost_is_freed_when_the_attempt_fails() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage[0].next(Purpose::Acquire, Behaviour::ApplyThenClose);
    stage[1].next(Purpose::Acquire, Behaviour::ApplyThenCutReply);
    finds_no_quorum(&redlock, "k").await;
    stage.wait_until_empty().await;
}

/// rslock: an attempt that ended too late was reported and unlocked nowhere.
#[tokio::test]
async fn an_attempt_that_came_too_late_is_undone_everywhere() {
    let (stage, clock, redlock) = Stage::with_clock(3).await;
    let hold = stage[0].hold_next(Purpose::Acquire);
    let other = stage[1].hold_next(Purpose::Acquire);
    let attempt = tokio::spawn(try_acquire(&redlock, "k"));
    hold.caught().await;
    other.caught().await;
    // The validity is over; the keys may be there for a little longer.
    clock.advance(LONG);
    hold.release();
    other.release();
    assert!(joined("acquire", attempt).await.is_err());
    stage.wait_until_empty().await;
}

/// go-redsync/redsync#83, #84, #94, #184, PR#80: a share of the TTL as the time of a node is 5 ms for a TTL of 100 ms and
/// half an hour for one of 10 h.
#[tokio::test]
async fn the_time_of_a_node_is_neither_too_short_nor_a_share_of_a_long_ttl() {
    let stage = Stage::of(1).await;
    let redlock = Redlock::builder().node(stage[0].url()).build().unwrap();
    drop(acquire(&redlock, "warm").await);
    let hold = stage[0].hold(Purpose::Acquire);
    let started = Instant::now();
    let ten_hours = Duration::from_secs(36_000);
    let request = redlock.lock("k").ttl(ten_hours);
    let error = request.try_acquire().await.expect_err("no answer");
    assert!(error.is_no_quorum(), "{error}");
    let spent = started.elapsed();
    assert!(
        spent >= Duration::from_millis(100) && spent < AMPLE,
        "{spent:?}"
    );
    hold.release();
    stage.wait_until_empty().await;
}

/// go-redsync/redsync#107, #168, PR#143, #144, leandromoreira/redlock-rb#108: "taken" and "all down" are one and the
/// same result.
#[tokio::test]
async fn taken_and_unreachable_are_told_apart() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage.held_by_other("taken", 0..3);
    let error = acquire(&redlock, "taken").await.expect_err("taken");
    assert!(error.is_busy() && !error.is_no_quorum(), "{error}");
    assert!(
        error
            .nodes()
            .iter()
            .all(|node| node.cause == Cause::HeldByOther),
        "{error}"
    );
    stage.go_down().await;
    let error = acquire(&redlock, "free").await.expect_err("all down");
    assert!(error.is_no_quorum() && !error.is_busy(), "{error}");
}

/// go-redsync/redsync#164, PR#98: cancelled by the caller, and reported as a failure to acquire.
#[tokio::test]
async fn a_client_that_is_closed_says_cancelled() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage.held_by_other("k", 0..3);
    let attempt = tokio::spawn(acquire_within(&redlock, "k", LONG));
    stage[0].wait_for_count(Purpose::Acquire, 2).await;
    in_time("close", redlock.close()).await;
    let error = joined("acquire", attempt).await.expect_err("closed");
    assert!(error.is_cancelled(), "{error}");
}

/// redis/redisson#7367, PR#7368: the acquire is sent again after a response timeout, and counts twice on the server. A
/// second try here has a token of its own and the first is released.
#[tokio::test]
async fn an_acquire_that_is_sent_again_does_not_count_twice() {
    let (stage, redlock) = Stage::with_impatient_client(1).await;
    drop(acquire(&redlock, "warm").await);
    let hold = stage[0].hold_next(Purpose::Acquire);
    let attempt = tokio::spawn(acquire_within(&redlock, "k", AMPLE));
    hold.caught().await;
    // What began later has had its time, so the first try has as well.
    let later = try_acquire(&redlock, "later").await;
    assert!(later.expect_err("silent").is_no_quorum());
    hold.release();
    let guard = joined("acquire", attempt).await.expect("a later try");
    assert_eq!(stage.held("k", guard.token()), 1);
    assert!(is_let_go(&guard.release().await));
    stage.wait_until_empty().await;
}

/// ronnylt/redlock-php `uniqid()`, SPSCommerce/redlock-py (not from a cryptographic source), scenario S19: a token used
/// for two attempts. Every attempt has a fresh one, the same on every node.
#[tokio::test]
async fn every_attempt_has_a_token_of_its_own() {
    let (stage, redlock) = Stage::with_connected_client(3).await;
    stage.held_by_other("k", 0..2);
    let policy = RetryPolicy::tries(20).backoff(Duration::from_millis(1), Duration::from_millis(1));
    redlock
        .lock("k")
        .ttl(LONG)
        .retry(policy)
        .acquire()
        .await
        .expect_err("taken");
    for fake in stage.iter() {
        fake.wait_for_count(Purpose::Acquire, 20).await;
    }
    let asked = stage.tokens_asked();
    for tokens in &asked {
        let distinct: HashSet<_> = tokens.iter().collect();
        assert_eq!(distinct.len(), 20, "{tokens:?}");
        for token in tokens {
            assert_eq!(token.len(), 40, "{token}");
            assert!(
                token.bytes().all(|byte| byte.is_ascii_hexdigit()),
                "{token}"
            );
        }
    }
    assert_eq!(asked[0], asked[1]);
}

/// bsm/redislock#28, #74, #22: the deadline of the retries tied to the TTL.
#[tokio::test]
async fn the_wait_is_apart_from_the_ttl() {
    let (stage, clock, redlock) = Stage::with_clock(1).await;
    stage.held_by_other("k", [0]);
    let ttl = Duration::from_millis(100);
    let attempt = tokio::spawn(redlock.lock("k").ttl(ttl).wait_for(LONG).acquire());
    stage[0].wait_for_count(Purpose::Acquire, 1).await;
    clock.advance(ttl * 4);
    let asked = stage.count(Purpose::Acquire);
    stage[0].wait_for_count(Purpose::Acquire, asked + 2).await;
    assert!(!attempt.is_finished(), "gave up after the TTL");
    stage[0].remove("k");
    let guard = joined("acquire", attempt).await;
    drop(guard.expect("free").release().await);
}

/// mike-marcacci/node-redlock#95, #120: a TTL with a fraction gives `ERR value is not an integer or out of range`.
#[tokio::test]
async fn a_ttl_is_sent_in_whole_milliseconds() {
    let (stage, redlock) = Stage::with_client(1).await;
    let ttl = Duration::from_micros(10_000_999);
    let guard = redlock.lock("k").ttl(ttl).acquire().await.expect("a lock");
    guard.extend(ttl).await.expect("extended");
    for request in stage[0].received() {
        if matches!(request.purpose, Purpose::Acquire | Purpose::Extend) {
            assert!(request.mentions("10000"), "{request}");
        }
    }
    drop(guard.release().await);
}

/// go-redsync/redsync#37: 2 ms added instead of subtracted.
#[tokio::test]
async fn validity_is_the_ttl_less_elapsed_time_and_drift() {
    let stage = Stage::of(3).await;
    let rows = [
        (Drift::default(), 10_000, 10_000 - 102),
        (Drift::default(), 300, 300 - 5),
        (Drift::new(0, Duration::ZERO), 10_000, 10_000),
        (
            Drift::new(50_000, Duration::from_millis(20)),
            10_000,
            10_000 - 520,
        ),
    ];
    for (drift, ttl, most) in rows {
        let redlock = stage.builder().drift(drift).build().unwrap();
        let ttl = Duration::from_millis(ttl);
        let before = Instant::now();
        let guard = redlock.lock("k").ttl(ttl).acquire().await.expect("a lock");
        let (validity, elapsed) = (guard.validity(), before.elapsed());
        let most = Duration::from_millis(most);
        assert!(validity < most, "{drift:?}: {validity:?}");
        assert!(
            validity + elapsed >= most,
            "{drift:?}: {validity:?} after {elapsed:?}"
        );
        stage.release(guard).await;
    }
}

/// samcook/RedLock.net#91: NoQuorum at random with 500 locks.
#[tokio::test]
async fn thousands_of_acquires_that_nobody_disputes_all_succeed() {
    let (_stage, redlock) = Stage::with_client(5).await;
    let rounds = if cfg!(debug_assertions) { 4 } else { 20 };
    for round in 0..rounds {
        let locks = (0..500).map(|number| {
            let request = redlock.lock(format!("{round}:{number}")).ttl(LONG);
            tokio::spawn(request.try_acquire())
        });
        let locks: Vec<_> = locks.collect();
        for lock in locks {
            let guard = lock
                .await
                .expect("no panic")
                .unwrap_or_else(|e| panic!("{e}"));
            drop(guard.expect("nobody else wants it"));
        }
    }
    redlock.close().await;
}

/// Scenario S48: several clients split the nodes between them, again and again.
#[tokio::test]
async fn clients_that_split_the_vote_do_not_do_so_for_ever() {
    let stage = Stage::of(3).await;
    let clients: Vec<_> = (0..5).map(|_| stage.redlock()).collect();
    let mut tasks = Vec::new();
    for redlock in clients {
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                let guard = acquire_within(&redlock, "k", LONG).await;
                drop(
                    guard
                        .unwrap_or_else(|error| panic!("{error}"))
                        .release()
                        .await,
                );
            }
        }));
    }
    for task in tasks {
        joined("a client", task).await;
    }
    stage.wait_until_empty().await;
}
