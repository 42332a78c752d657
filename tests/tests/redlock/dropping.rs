//! Futures dropped at every await point, guards dropped anywhere: no key is left behind after the bounded release.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use locknode_tests::fake_node::{FakeNode, Purpose};
use locknode_tests::patience::{eventually, in_time};
use redlock_client::{Guard, Redlock};

use crate::stage::{
    AMPLE, Holds, LONG, Stage, acquire, acquire_within, is_let_go, joined, try_acquire,
};

/// Polls the future that many times at most and drops it; what came out if it was ready by then.
async fn polled<F: Future>(times: usize, future: F) -> Option<F::Output> {
    let mut future: Pin<Box<F>> = Box::pin(future);
    let mut polls = 0;
    poll_fn(move |cx| {
        if polls == times {
            return Poll::Ready(None);
        }
        polls += 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polls == times => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Drops the future after no poll, after one, and so on, until it is ready once; `check` looks at each outcome.
async fn at_every_await_point<F, T, C>(
    mut start: impl FnMut() -> F,
    mut check: impl FnMut(Option<T>) -> C,
) where
    F: Future<Output = T>,
    C: Future<Output = ()>,
{
    for times in 0..POLLS_MAX {
        let output = in_time("a future that is polled", polled(times, start())).await;
        let is_done = output.is_some();
        check(output).await;
        if is_done {
            return;
        }
    }
    panic!("not ready after {POLLS_MAX} polls");
}

#[tokio::test]
async fn a_dropped_acquire_leaves_no_key() {
    let (stage, redlock) = Stage::with_client(5).await;
    at_every_await_point(
        || acquire(&redlock, "k"),
        async |guard| {
            drop(guard.map(|guard| guard.expect("nobody else wants it")));
            left_empty(&redlock, &stage).await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_dropped_try_leaves_no_key() {
    let (stage, redlock) = Stage::with_client(3).await;
    at_every_await_point(
        || try_acquire(&redlock, "k"),
        async |guard| {
            drop(guard);
            left_empty(&redlock, &stage).await;
        },
    )
    .await;
}

/// The drop comes when none, one, two of five nodes have answered: every one of them may have granted the lock.
#[tokio::test]
async fn an_acquire_dropped_after_any_number_of_replies_leaves_no_key() {
    for answered in 0..=5 {
        let (stage, redlock) = Stage::with_client(5).await;
        let holds = Holds::on(&stage, |fake| fake.hold(Purpose::Acquire));
        let attempt = tokio::spawn(acquire(&redlock, "k"));
        holds.caught().await;
        for hold in holds.iter().take(answered) {
            hold.release();
        }
        eventually("let go", || {
            holds.iter().take(answered).all(|hold| hold.held() == 0)
        })
        .await;
        attempt.abort();
        drop(attempt.await);
        holds.release();
        stage.wait_until_empty().await;
    }
}

/// Between two tries nothing is held, and after the drop nothing is tried.
#[tokio::test]
async fn an_acquire_dropped_while_it_waits_tries_no_more() {
    let (stage, redlock) = Stage::with_client(3).await;
    stage.held_by_other("k", 0..2);
    let attempt = tokio::spawn(acquire_within(&redlock, "k", LONG));
    stage[2].wait_for_count(Purpose::Acquire, 3).await;
    attempt.abort();
    drop(attempt.await);
    stage[2].wait_until_empty().await;
    for node in 0..2 {
        stage[node].remove("k");
    }
    let other = acquire_within(&redlock, "k", AMPLE).await.expect("free");
    stage.wait_until_held("k", other.token(), 3).await;
    stage.release(other).await;
}

#[tokio::test]
async fn a_dropped_extend_leaves_the_lock_with_its_holder() {
    let (stage, redlock) = Stage::with_client(5).await;
    let guard = stage.lock(&redlock, "k").await;
    at_every_await_point(
        || guard.extend(LONG),
        async |extended| {
            if let Some(extended) = extended {
                extended.expect("all five are well");
            }
            assert!(guard.is_valid());
            assert_eq!(stage.held("k", guard.token()), 5);
        },
    )
    .await;
    assert!(is_let_go(&guard.release().await));
    stage.wait_until_empty().await;
}

/// Releasing is a promise once it was begun, and even before: a guard that goes away is a lock that goes away.
#[tokio::test]
async fn a_dropped_release_releases() {
    let (stage, redlock) = Stage::with_client(5).await;
    let mut guard = Some(locked(&redlock, "k").await);
    for times in 0..POLLS_MAX {
        let guard_now = guard.take().expect("a lock");
        let released = in_time("release", polled(times, guard_now.release())).await;
        left_empty(&redlock, &stage).await;
        if released.is_some() {
            return;
        }
        guard = Some(locked(&redlock, "k").await);
    }
    panic!("not released after {POLLS_MAX} polls");
}

#[tokio::test]
async fn a_dropped_lock_of_several_keys_leaves_none_of_them() {
    let (stage, redlock) = Stage::with_client(3).await;
    at_every_await_point(
        || redlock.lock_all(["c", "a", "b"]).ttl(LONG).acquire(),
        async |guard| {
            drop(guard.map(|guard| guard.expect("nobody else wants them")));
            left_empty(&redlock, &stage).await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_dropped_with_lock_leaves_no_key() {
    let (stage, redlock) = Stage::with_client(3).await;
    at_every_await_point(
        || {
            redlock.with_lock(redlock.lock("k").ttl(LONG), |_scope| async {
                tokio::task::yield_now().await;
                7
            })
        },
        async |result| {
            if let Some(result) = result {
                assert_eq!(result.expect("nobody else wants it"), 7);
            }
            left_empty(&redlock, &stage).await;
        },
    )
    .await;
}

#[tokio::test]
async fn a_with_lock_dropped_inside_its_closure_leaves_no_key() {
    let (stage, redlock) = Stage::with_client(3).await;
    let (entered, inside) = tokio::sync::oneshot::channel();
    let work = {
        let redlock = redlock.clone();
        tokio::spawn(async move {
            let request = redlock.lock("k").ttl(LONG);
            redlock
                .with_lock(request, |_scope| async move {
                    let _ = entered.send(());
                    std::future::pending::<()>().await;
                })
                .await
        })
    };
    in_time("inside", inside).await.expect("entered");
    work.abort();
    drop(work.await);
    stage.wait_until_empty().await;
}

#[tokio::test]
async fn a_dropped_guard_releases_in_the_background() {
    let (stage, redlock) = Stage::with_client(5).await;
    drop(locked(&redlock, "k").await);
    stage.wait_until_empty().await;
}

/// The thread that drops has no runtime.
#[tokio::test]
async fn a_guard_dropped_outside_of_the_runtime_releases() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = locked(&redlock, "k").await;
    std::thread::spawn(move || drop(guard))
        .join()
        .expect("no panic");
    stage.wait_until_empty().await;
}

/// The runtime is gone: nobody can release, and dropping must still not panic.
#[test]
fn a_guard_that_outlives_its_runtime_is_dropped_in_peace() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
    };
    let (nodes, client) = (runtime(), runtime());
    let stage = nodes.block_on(Stage::of(1));
    let redlock = stage.redlock();
    let serving = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let server = {
        let serving = std::sync::Arc::clone(&serving);
        std::thread::spawn(move || {
            nodes.block_on(async {
                while serving.load(std::sync::atomic::Ordering::SeqCst) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        })
    };
    let guard = client.block_on(async { locked(&redlock, "k").await });
    drop(client);
    drop(guard);
    drop(redlock);
    serving.store(false, std::sync::atomic::Ordering::SeqCst);
    server.join().expect("no panic");
}

#[tokio::test]
async fn a_leaked_lock_stays_until_its_ttl_ends() {
    let (stage, redlock) = Stage::with_client(3).await;
    let guard = locked(&redlock, "k").await;
    stage.wait_until_held("k", guard.token(), 3).await;
    let token = guard.leak();
    redlock.close().await;
    assert_eq!(stage.held("k", token), 3);
    assert_eq!(stage.count(Purpose::Release), 0);
    stage.pass_time(LONG + Duration::from_millis(1));
    assert_eq!(stage.held("k", token), 0);
}

/// The client goes away with the guard still there: `close` waits for what was begun.
#[tokio::test]
async fn closing_finishes_the_releases_that_were_begun() {
    let (stage, redlock) = Stage::with_client(3).await;
    for key in 0..20 {
        drop(locked(&redlock, &format!("k{key}")).await);
    }
    in_time("close", redlock.close()).await;
    assert!(stage.is_empty(), "{}", stage.story());
    eventually("closed", || {
        stage.iter().all(|fake| fake.open_connections() == 0)
    })
    .await;
}

/// A node that does not answer cannot keep `close` from returning.
#[tokio::test]
async fn closing_is_bounded() {
    let (stage, redlock) = Stage::with_impatient_client(3).await;
    let guard = locked(&redlock, "k").await;
    stage.iter().for_each(FakeNode::fall_silent);
    drop(guard);
    in_time("close", redlock.close()).await;
}

/// Hundreds of acquires are dropped at random moments; what is left at the end is nothing.
#[tokio::test]
async fn a_storm_of_dropped_acquires_leaves_no_key() {
    let (stage, redlock) = Stage::with_client(5).await;
    let mut tasks = Vec::new();
    for number in 0..300_usize {
        let request = redlock.lock(format!("k{}", number % 7)).ttl(LONG);
        let request = request.wait_for(AMPLE);
        tasks.push(tokio::spawn(async move {
            drop(polled(number % 5, request.acquire()).await);
        }));
    }
    for task in tasks {
        joined("a task", task).await;
    }
    left_empty(&redlock, &stage).await;
    redlock.close().await;
}

async fn locked(redlock: &Redlock, key: &str) -> Guard {
    let acquire = acquire_within(redlock, key, AMPLE);
    in_time("acquire", acquire)
        .await
        .expect("nobody else wants it for long")
}

/// Waits until everything that was sent before has been executed, and then until no key is left: requests that are on
/// their way must not be taken for requests that were never made.
async fn left_empty(redlock: &Redlock, stage: &Stage) {
    let last = locked(redlock, "last").await;
    stage
        .wait_until_held("last", last.token(), stage.len())
        .await;
    stage.release(last).await;
}

/// More await points than any of these futures has.
const POLLS_MAX: usize = 200;

#[tokio::test]
async fn a_dropped_adoption_leaves_the_lock_to_whom_it_belongs() {
    let stage = Stage::of(5).await;
    let (holder, other) = (stage.redlock(), stage.redlock());
    let guard = acquire(&holder, "k").await.expect("free");
    let token = *guard.token();
    for is_polled in [false, true] {
        let mut adopting = Box::pin(other.adopt("k", token).ttl(LONG).acquire());
        if is_polled {
            let is_ready = poll_fn(|cx| Poll::Ready(adopting.as_mut().poll(cx).is_ready())).await;
            assert!(!is_ready, "the nodes have not answered yet");
            // Answers come in the order of the questions: after this the grant is on its way, and nobody takes it.
            drop(other.inspect("k").await);
        }
        drop(adopting);
        drop(other.inspect("k").await);
        guard.extend(LONG).await.expect("still held");
    }
    drop(guard.release().await);
    left_empty(&holder, &stage).await;
}
