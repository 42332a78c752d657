//! Validity from before the first byte, drift, clocks that jump and machines that sleep.

use std::time::Duration;

use locknode_tests::fake_node::Purpose;
use redlock_client::Drift;

use crate::stage::{Holds, LONG, MovableClock, Stage, acquire, acquire_within, joined};

/// redlock-universal (`acquiredAt` taken after the acquisition), scenario S26: time that passes while the nodes answer is
/// time that the lock has lived.
#[tokio::test]
async fn validity_is_counted_from_before_the_first_byte() {
    let (stage, clock, redlock) = Stage::with_clock(3).await;
    drop(acquire(&redlock, "warm").await);
    let holds = Holds::on(&stage, |fake| fake.hold_next(Purpose::Acquire));
    let request = redlock.lock("k").ttl(LONG).node_timeout(LONG);
    let attempt = tokio::spawn(request.try_acquire());
    holds.caught().await;
    // Less than the most that a node is given, half of the TTL.
    let passed = LONG / 4;
    clock.advance(passed);
    holds.release();
    let guard = joined("acquire", attempt).await;
    let guard = guard.expect("in time").expect("free");
    assert!(guard.validity() < LONG - passed, "{:?}", guard.validity());
    drop(guard.release().await);
}

/// rust-lang/rust#87906, scenario S23: a machine sleeps, and `Instant` has not noticed. The client's clock counts sleep; here it
/// jumps as that clock does.
#[tokio::test]
async fn a_lock_does_not_outlive_the_sleep_of_its_machine() {
    let (_stage, clock, redlock) = Stage::with_clock(3).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
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
    let (stage, clock, redlock) = Stage::with_clock(3).await;
    stage.held_by_other("k", 0..3);
    let attempt = tokio::spawn(acquire_within(&redlock, "k", LONG * 10));
    stage[0].wait_for_count(Purpose::Acquire, 1).await;
    clock.advance(LONG * 2);
    stage.pass_time(LONG * 2);
    let guard = joined("acquire", attempt).await.expect("free");
    assert!(guard.validity() > LONG / 2, "{:?}", guard.validity());
    drop(guard.release().await);
}

/// go-redsync/redsync#72: `Valid()` is true though the lock has ended. One and the same clock decides.
#[tokio::test]
async fn is_valid_and_validity_agree_to_the_end() {
    let (_stage, clock, redlock) = Stage::with_clock(1).await;
    let guard = acquire(&redlock, "k").await.expect("a lock");
    while guard.is_valid() {
        let left = guard.validity();
        assert!(left > Duration::ZERO || !guard.is_valid());
        clock.advance(left / 2 + Duration::from_micros(100));
    }
    assert_eq!(guard.validity(), Duration::ZERO);
}
