//! The blocking client: the same promises as the async one, on any thread.

use std::future::Future;
use std::sync::{LazyLock, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use redlock_client::blocking::Redlock;
use redlock_client::{ErrorKind, RenewPolicy, RetryPolicy, Token};
use tokio::runtime::Runtime;

use crate::stage::Stage;

/// What the fakes run on; the tests themselves have no runtime.
static NODES: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

/// Does something where the fakes run, and waits for it.
fn on_nodes<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    NODES.spawn(async move { sender.send(work.await) });
    receiver.recv().expect("no panic")
}

/// Three fakes and a client that is connected to each, so that all of them take part in every lock.
fn cluster() -> (Stage, Redlock) {
    let stage = on_nodes(Stage::of(3));
    let redlock = stage.builder().build_blocking().unwrap();
    wait_until("connected", || {
        let nodes = redlock.nodes().unwrap();
        nodes.iter().all(|node| node.state.is_ok())
    });
    (stage, redlock)
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "never happened: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

fn wait_until_empty(stage: &Stage) {
    wait_until("no key is left", || stage.is_empty());
}

fn wait_until_closed(stage: &Stage) {
    let is_closed = || stage.iter().all(|fake| fake.open_connections() == 0);
    wait_until("no connection is left", is_closed);
}

#[test]
fn a_lock_excludes_others_until_it_is_released() {
    let (stage, redlock) = cluster();
    assert_eq!((redlock.node_count(), redlock.quorum()), (3, 2));
    let guard = redlock.lock("a").ttl(TTL).try_acquire().unwrap().unwrap();
    assert_eq!(guard.key(), b"a");
    assert!(guard.is_valid() && guard.validity() <= TTL);
    assert!(guard.valid_until() > Instant::now());
    assert!(redlock.lock("a").ttl(TTL).try_acquire().unwrap().is_none());
    let request = redlock.lock("a").ttl(TTL).retry(RetryPolicy::tries(1));
    let error = request.acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    assert!(guard.release().is_free());
    wait_until_empty(&stage);
    let again = redlock.lock("a").ttl(TTL).acquire().unwrap();
    assert!(again.release().is_free());
}

#[test]
fn a_dropped_guard_is_released_without_waiting_and_the_thread_ends_after_it() {
    let (stage, redlock) = cluster();
    let guard = redlock.lock("a").ttl(TTL).acquire().unwrap();
    drop(redlock);
    // The guard alone keeps the thread and the connections.
    guard.extend(TTL).unwrap();
    drop(guard);
    wait_until_empty(&stage);
    wait_until_closed(&stage);
}

#[test]
fn close_waits_for_the_releases_under_way() {
    let (stage, redlock) = cluster();
    drop(redlock.lock("a").ttl(TTL).acquire().unwrap());
    redlock.close();
    assert!(stage.is_empty(), "{}", stage.story());
    wait_until_closed(&stage);
}

#[tokio::test]
async fn it_works_on_a_thread_that_belongs_to_a_runtime() {
    let (stage, redlock) = cluster();
    let guard = redlock.lock("a").ttl(TTL).acquire().unwrap();
    guard.extend(TTL).unwrap();
    assert!(guard.lost(Duration::ZERO).is_none());
    drop(guard);
    let result = redlock.with_lock(redlock.lock("b").ttl(TTL), |guard| guard.is_valid());
    assert!(result.unwrap());
    redlock.close();
    drop(redlock);
    wait_until_empty(&stage);
    wait_until_closed(&stage);
}

#[test]
fn many_threads_exclude_each_other() {
    let (_stage, redlock) = cluster();
    let inside = Mutex::new(());
    thread::scope(|scope| {
        for _ in 0..4 {
            let (redlock, inside) = (redlock.clone(), &inside);
            scope.spawn(move || {
                for _ in 0..5 {
                    let request = redlock.lock("a").ttl(TTL).wait_for(LONG);
                    let guard = request.acquire().unwrap();
                    let alone = inside.try_lock().expect("only the holder is inside");
                    thread::yield_now();
                    drop(alone);
                    guard.release();
                }
            });
        }
    });
}

#[test]
fn the_end_of_the_validity_is_told_in_time() {
    let (_stage, redlock) = cluster();
    let request = redlock.lock("a").ttl(Duration::from_secs(1));
    let guard = request.acquire().unwrap();
    assert!(guard.lost(Duration::ZERO).is_none());
    let error = guard.lost(LONG).expect("the validity ends");
    assert_eq!(error.kind(), ErrorKind::Expired);
    assert!(guard.cancellation().is_cancelled());
}

#[test]
fn a_lock_that_the_nodes_lost_is_told_by_its_renewal() {
    let (stage, redlock) = cluster();
    let renew = RenewPolicy::until(TTL * 10).every(Duration::from_millis(20));
    let guard = redlock.lock("a").ttl(TTL).renew(renew).acquire().unwrap();
    stage.remove("a");
    let error = guard.lost(LONG).expect("the renewal finds out");
    assert_eq!(error.kind(), ErrorKind::Lost);
}

#[test]
fn a_leaked_lock_stays_and_its_token_takes_it_over_or_releases_it() {
    let (stage, redlock) = cluster();
    let token = redlock.lock("a").ttl(TTL).acquire().unwrap().leak();
    let adopted = redlock.adopt("a", token).ttl(TTL).acquire().unwrap();
    assert_eq!(adopted.token().as_ref(), token.as_ref());
    let _ = adopted.leak();
    // A release would have gone before this lock's own.
    redlock.lock("b").ttl(TTL).acquire().unwrap().release();
    let is_held = || stage.held("a", token) == 3;
    wait_until("all nodes hold it", is_held);
    let other = Token::new("other").unwrap();
    assert!(!redlock.release("a", &other).unwrap().is_confirmed());
    assert!(redlock.release("a", &token).unwrap().is_confirmed());
}

#[test]
fn several_locks_are_had_all_or_none() {
    let (stage, redlock) = cluster();
    let both = redlock.lock_all(["b", "a"]).ttl(TTL).acquire().unwrap();
    assert_eq!(both.keys().collect::<Vec<_>>(), [b"a", b"b"]);
    both.extend(TTL).unwrap();
    assert!(both.is_valid() && both.lost(Duration::ZERO).is_none());
    let refused = redlock.lock_all(["0", "b"]).ttl(TTL).try_acquire();
    assert!(refused.unwrap().is_none());
    assert!(both.release().iter().all(|released| released.is_free()));
    wait_until_empty(&stage);
}

#[test]
fn an_owner_enters_again_and_the_last_to_leave_releases() {
    let (stage, redlock) = cluster();
    let owner = redlock.reentrant();
    let outer = owner.enter(redlock.lock("a").ttl(TTL)).unwrap();
    let inner = owner.clone().enter(redlock.lock("a").ttl(TTL)).unwrap();
    assert_eq!((inner.entries(), inner.key()), (2, outer.key()));
    assert!(redlock.lock("a").ttl(TTL).try_acquire().unwrap().is_none());
    inner.extend(TTL).unwrap();
    assert!(inner.lost(Duration::ZERO).is_none());
    assert!(inner.leave().is_none());
    assert!(outer.is_valid());
    assert!(outer.leave().is_some_and(|released| released.is_free()));
    wait_until_empty(&stage);
}

#[test]
fn the_result_of_the_work_comes_back_and_the_lock_is_released_even_after_a_panic() {
    let (stage, redlock) = cluster();
    let request = redlock.lock("a").ttl(TTL);
    let result = redlock
        .with_lock(request.clone(), |_| Err::<(), _>("own error"))
        .unwrap();
    assert_eq!(result, Err("own error"));
    let panicked = thread::spawn(move || redlock.with_lock(request, |_| panic!("wanted"))).join();
    assert!(panicked.is_err());
    wait_until_empty(&stage);
}

#[test]
fn no_quorum_is_an_error_and_not_a_panic() {
    let stage = on_nodes(Stage::of(1));
    // Nobody listens at the other two.
    let refused = ["/nowhere/one.sock", "/nowhere/other.sock"];
    let redlock = stage.builder().nodes(refused).build_blocking().unwrap();
    let error = redlock.lock("a").ttl(TTL).try_acquire().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoQuorum);
    wait_until("connected", || stage[0].connections() > 0);
    wait_until_empty(&stage);
}

#[test]
fn a_bad_configuration_starts_no_thread() {
    let error = Redlock::builder().build_blocking().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let builder = Redlock::builder().node("redis://host:0");
    let error = builder.build_blocking().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
}

/// Of locks that are not meant to expire.
const TTL: Duration = Duration::from_secs(30);

/// Never reached by a test that passes.
const LONG: Duration = Duration::from_secs(20);
