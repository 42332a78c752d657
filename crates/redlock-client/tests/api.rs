//! What the types of the interface can do, which no signature says.

#![cfg(test)]

use std::error::Error as _;
use std::future::Future;

use redlock_client::{
    AddressError, Builder, Cancellation, Cause, Error, FenceCheck, Guard, LockRequest,
    MemoryFences, MultiGuard, MultiLockRequest, Redlock, Reentrant, ReentrantGuard, Released,
    Scope,
};

/// Moved between threads and kept as long as one likes.
fn is_free<T: Send + Sync + 'static>() {}

#[test]
fn every_type_can_be_shared_between_threads() {
    is_free::<Builder>();
    is_free::<Cancellation>();
    is_free::<Cause>();
    is_free::<Error>();
    is_free::<FenceCheck<MemoryFences>>();
    is_free::<Guard>();
    is_free::<LockRequest>();
    is_free::<MultiGuard>();
    is_free::<MultiLockRequest>();
    is_free::<Redlock>();
    is_free::<Reentrant>();
    is_free::<ReentrantGuard>();
    is_free::<Released>();
    is_free::<Scope>();
}

/// A library that runs any work under a lock, on a task of its own.
fn spawn<F, Fut>(redlock: Redlock, work: F) -> tokio::task::JoinHandle<Result<u32, Error>>
where
    F: FnOnce(Scope) -> Fut + Send + 'static,
    Fut: Future<Output = u32> + Send,
{
    tokio::spawn(async move { redlock.with_lock(redlock.lock("k"), work).await })
}

fn nobody() -> Redlock {
    let nodes = [
        "unix:///nowhere/1",
        "unix:///nowhere/2",
        "unix:///nowhere/3",
    ];
    Redlock::builder().nodes(nodes).build().unwrap()
}

#[tokio::test]
async fn work_under_a_lock_can_be_spawned_by_generic_code() {
    let error = spawn(nobody(), async |_| 7).await.unwrap().unwrap_err();
    assert!(error.is_no_quorum(), "{error}");
}

#[tokio::test]
async fn errors_keep_what_is_behind_them() {
    let error = Redlock::builder().node("redis://").build().unwrap_err();
    assert!(error.source().unwrap().is::<AddressError>(), "{error}");
    let error = nobody().lock("k").try_acquire().await.unwrap_err();
    let cause = &error.nodes()[0].cause;
    assert!(cause.source().unwrap().is::<std::io::Error>(), "{cause}");
}
