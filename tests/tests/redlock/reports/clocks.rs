//! Validity from before the first byte, drift, clocks that jump and machines that sleep.

use std::time::Duration;

use locknode_tests::fake_node::Purpose;
use locknode_tests::patience::in_time;
use redlock_client::Drift;

use crate::stage::{LONG, MovableClock, Stage};

/// redlock-universal (`acquiredAt` taken after the acquisition), scenario S26: time that passes while the nodes answer is
/// time that the lock has lived.
#[tokio::test]
async fn validity_is_counted_from_before_the_first_byte() {
    let stage = Stage::of(3).await;
    let clock = MovableClock::start();
    let redlock = stage.redlock_by(&clock);
    drop(redlock.lock("warm").ttl(LONG).acquire().await);
    let holds: Vec<_> = stage
        .iter()
        .map(|fake| fake.hold_next(Purpose::Acquire))
        .collect();
    let request = redlock.lock("k").ttl(LONG).node_timeout(LONG);
    let attempt = tokio::spawn(request.try_acquire());
    for hold in &holds {
        hold.caught().await;
    }
    // Less than the most that a node is given, half of the TTL.
    let passed = LONG / 4;
    clock.advance(passed);
    for hold in &holds {
        hold.release();
    }
    let guard = in_time("acquire", attempt).await.expect("no panic");
    let guard = guard.expect("in time").expect("free");
    assert!(guard.validity() < LONG - passed, "{:?}", guard.validity());
    drop(guard.release().await);
}

/// rust-lang/rust#87906, scenario S23: a machine sleeps, and `Instant` has not noticed. The client's clock counts sleep; here it
/// jumps as that clock does.
#[tokio::test]
async fn a_lock_does_not_outlive_the_sleep_of_its_machine() {
    let stage = Stage::of(3).await;
    let clock = MovableClock::start();
    let redlock = stage.redlock_by(&clock);
    let guard = redlock.lock("k").ttl(LONG).acquire().await.expect("a lock");
    assert!(guard.is_valid());
    clock.advance(LONG * 2);
    assert!(!guard.is_valid());
    assert_eq!(guard.validity(), Duration::ZERO);
    assert!(guard.extend(LONG).await.expect_err("over").is_expired());
}

/// Scenario S20, S21: a node's clock that is faster than the client's by less than the drift ends no lock that its holder still
/// believes in.
#[tokio::test]
async fn a_node_that_is_fast_by_less_than_the_drift_ends_no_valid_lock() {
    let stage = Stage::of(3).await;
    let clock = MovableClock::start();
    let builder = stage.builder().clock(std::sync::Arc::new(clock.clone()));
    let redlock = builder
        .drift(Drift::new(20_000, Duration::from_millis(2)))
        .build()
        .unwrap();
    let guard = stage.lock(&redlock, "k").await;
    let most = guard.validity().saturating_sub(Duration::from_millis(300));
    clock.advance(most);
    stage.pass_time(most + most / 100);
    assert!(guard.is_valid());
    assert_eq!(
        stage.held("k", guard.token()),
        3,
        "ended before its holder knew"
    );
}

/// etcd-io/etcd (Jepsen 3.4.3, validity not looked at after waiting): the time spent waiting for another's lock is not part of
/// the validity.
#[tokio::test]
async fn a_lock_that_was_waited_for_is_valid_in_full() {
    let stage = Stage::of(3).await;
    let clock = MovableClock::start();
    let redlock = stage.redlock_by(&clock);
    stage.held_by_other("k", 0..3);
    let attempt = tokio::spawn(redlock.lock("k").ttl(LONG).wait_for(LONG * 10).acquire());
    stage[0].wait_for_count(Purpose::Acquire, 1).await;
    clock.advance(LONG * 2);
    stage.pass_time(LONG * 2);
    let guard = in_time("acquire", attempt)
        .await
        .expect("no panic")
        .expect("free");
    assert!(guard.validity() > LONG / 2, "{:?}", guard.validity());
    drop(guard.release().await);
}

/// go-redsync/redsync#72: `Valid()` is true though the lock has ended. One and the same clock decides.
#[tokio::test]
async fn is_valid_and_validity_agree_to_the_end() {
    let stage = Stage::of(1).await;
    let clock = MovableClock::start();
    let redlock = stage.redlock_by(&clock);
    let guard = redlock.lock("k").ttl(LONG).acquire().await.expect("a lock");
    while guard.is_valid() {
        let left = guard.validity();
        assert!(left > Duration::ZERO || !guard.is_valid());
        clock.advance(left / 2 + Duration::from_micros(100));
    }
    assert_eq!(guard.validity(), Duration::ZERO);
}
