//! The same scenes over locknodes in this process, over real servers, and over both together. A row is a scene; each has
//! keys of its own, so that all of them share one cluster.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use locknode_tests::cluster::{Cluster, Make, SIZE};
use locknode_tests::patience::{PATIENCE, eventually_async, in_time};
use redlock_client::{Guard, Redlock, RenewPolicy, Token};

use crate::stage::{
    AMPLE, LONG, acquire, acquire_within, held_key, is_let_go, try_acquire, wait_until_connected,
};

/// A cluster and two clients of it.
#[derive(Clone)]
struct Scene {
    cluster: Arc<Cluster>,
    a: Redlock,
    b: Redlock,
}

type Play = fn(Scene) -> Pin<Box<dyn Future<Output = ()> + Send>>;

const PLAYS: [(&str, Play); 21] = [
    ("one holds, the other is told so", |s| {
        Box::pin(exclusion(s))
    }),
    ("one of many gets it", |s| Box::pin(one_of_many(s))),
    ("an extension reaches every node", |s| Box::pin(extend(s))),
    ("an extension may be shorter", |s| {
        Box::pin(extend_shorter(s))
    }),
    ("a release frees every node", |s| Box::pin(release(s))),
    ("a waiter gets it after the release", |s| {
        Box::pin(wait_for_release(s))
    }),
    ("a waiter gets it after the TTL", |s| {
        Box::pin(wait_for_ttl(s))
    }),
    ("waiting ends as busy", |s| Box::pin(wait_in_vain(s))),
    ("all keys or none", |s| Box::pin(lock_all(s))),
    ("keys in opposite orders do not block each other", |s| {
        Box::pin(opposite_orders(s))
    }),
    ("an owner enters again", |s| Box::pin(reentrant(s))),
    ("a closure under a lock", |s| Box::pin(with_lock(s))),
    ("a lock is handed over by its token", |s| Box::pin(adopt(s))),
    ("a token of another opens nothing", |s| {
        Box::pin(foreign_token(s))
    }),
    ("every node is looked into", |s| Box::pin(inspect(s))),
    ("a renewal goes on and has an end", |s| Box::pin(renew(s))),
    ("a loss is told", |s| Box::pin(lost(s))),
    ("a loss of a minority is none", |s| {
        Box::pin(minority_lost(s))
    }),
    ("held for at least so long", |s| Box::pin(hold_at_least(s))),
    ("a leaked lock ends with its TTL", |s| Box::pin(leak(s))),
    ("a dropped guard is a released lock", |s| {
        Box::pin(dropped(s))
    }),
];

async fn play_all_over(make: Make) {
    let Some(cluster) = Cluster::start(make).await else {
        return;
    };
    let client = || {
        let builder = Redlock::builder().nodes(cluster.urls()).node_timeout(AMPLE);
        builder.build().expect("a good configuration")
    };
    let (a, b) = (client(), client());
    for redlock in [&a, &b] {
        // The scenes look at each node.
        wait_until_connected(redlock).await;
    }
    let cluster = Arc::new(cluster);
    for (name, play) in PLAYS {
        println!("{make:?}: {name}");
        let scene = Scene {
            cluster: Arc::clone(&cluster),
            a: a.clone(),
            b: b.clone(),
        };
        // A scene waits for its own conditions; what is longer hangs.
        let played = tokio::time::timeout(PATIENCE * 2, play(scene)).await;
        assert!(played.is_ok(), "hangs: {name}");
    }
    a.close().await;
    b.close().await;
    let what = format!("{make:?} is empty in the end");
    eventually_async(&what, async || cluster.keys().await.is_empty()).await;
}

#[tokio::test]
async fn five_locknodes() {
    play_all_over(Make::Locknodes).await;
}

#[tokio::test]
async fn five_redis_servers() {
    play_all_over(Make::RedisServers).await;
}

#[tokio::test]
async fn three_locknodes_and_two_redis_servers() {
    play_all_over(Make::Mixed).await;
}

/// The same without the patience of one thread: the client's driver and its callers on different ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_locknodes_on_several_threads() {
    play_all_over(Make::Locknodes).await;
}

async fn hold(redlock: &Redlock, key: &str) -> Guard {
    let acquire = acquire_within(redlock, key, AMPLE);
    acquire
        .await
        .unwrap_or_else(|error| panic!("{key}: {error}"))
}

/// A lock of the first client that every node has.
async fn hold_everywhere(scene: &Scene, key: &str) -> Guard {
    let guard = hold(&scene.a, key).await;
    held_everywhere(scene, key, guard.token()).await;
    guard
}

async fn held_everywhere(scene: &Scene, key: &str, token: &Token) {
    let token = token.to_string();
    let what = format!("{key} is held on all nodes");
    eventually_async(&what, async || {
        let holders = scene.cluster.holders(key).await;
        holders
            .iter()
            .all(|holder| holder.as_deref() == Some(&token))
    })
    .await;
}

async fn free_everywhere(scene: &Scene, key: &str) {
    let what = format!("{key} is free on all nodes");
    eventually_async(&what, async || scene.cluster.count(key).await == 0).await;
}

async fn exclusion(scene: Scene) {
    let guard = hold(&scene.a, "exclusion").await;
    assert!(guard.is_valid() && guard.validity() > LONG / 2 && guard.validity() < LONG);
    assert_eq!(guard.key(), b"exclusion");
    held_everywhere(&scene, "exclusion", guard.token()).await;
    for redlock in [&scene.a, &scene.b] {
        let other = try_acquire(redlock, "exclusion").await;
        assert!(other.expect("all nodes answer").is_none());
        let error = acquire(redlock, "exclusion").await.expect_err("held");
        assert!(error.is_busy() && error.is_retryable(), "{error}");
    }
    held_everywhere(&scene, "exclusion", guard.token()).await;
    drop(guard.release().await);
    drop(hold(&scene.b, "exclusion").await.release().await);
}

async fn one_of_many(scene: Scene) {
    let (inside, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut tasks = Vec::new();
    for number in 0..8 {
        let redlock = [&scene.a, &scene.b][number % 2].clone();
        let (inside, turns) = (Arc::clone(&inside), Arc::clone(&turns));
        tasks.push(tokio::spawn(async move {
            for _ in 0..4 {
                let request = redlock.lock("one of many").ttl(LONG).wait_for(LONG);
                let guard = request.acquire().await.expect("in time");
                assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                tokio::task::yield_now().await;
                assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "two holders");
                turns.fetch_add(1, Ordering::SeqCst);
                let released = guard.release().await;
                assert!(released.is_free(), "{released:?}");
            }
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    assert_eq!(turns.load(Ordering::SeqCst), 32);
}

async fn extend(scene: Scene) {
    let request = scene.a.lock("extend").ttl(LONG / 3);
    let guard = request.acquire().await.expect("free");
    held_everywhere(&scene, "extend", guard.token()).await;
    let before = guard.valid_until();
    guard.extend(LONG).await.expect("held");
    assert!(guard.valid_until() > before && guard.validity() > LONG / 2);
    eventually_async("extended", async || {
        let left = scene.cluster.keys().await;
        let left = left.get("extend").copied().flatten();
        left.is_some_and(|left| left > LONG / 2 && left <= LONG)
    })
    .await;
    drop(guard.release().await);
}

async fn extend_shorter(scene: Scene) {
    let guard = hold_everywhere(&scene, "shorter").await;
    let ttl = Duration::from_secs(15);
    guard.extend(ttl).await.expect("held");
    assert!(guard.validity() < ttl, "{:?}", guard.validity());
    eventually_async("shortened", async || {
        let left = scene.cluster.keys().await;
        left.get("shorter")
            .copied()
            .flatten()
            .is_some_and(|left| left <= ttl)
    })
    .await;
    drop(guard.release().await);
}

async fn release(scene: Scene) {
    let guard = hold_everywhere(&scene, "release").await;
    let token = *guard.token();
    let released = guard.release().await;
    assert!(
        released.is_confirmed() && released.confirmed() >= 3,
        "{released:?}"
    );
    free_everywhere(&scene, "release").await;
    let again = scene
        .b
        .release("release", &token)
        .await
        .expect("all nodes answer");
    assert!(!again.is_confirmed() && again.not_held() >= 3, "{again:?}");
}

async fn wait_for_release(scene: Scene) {
    let guard = hold(&scene.a, "wait").await;
    let waiter = tokio::spawn(acquire_within(&scene.b, "wait", LONG));
    tokio::task::yield_now().await;
    drop(guard.release().await);
    let guard = waiter.await.expect("no panic").expect("free in time");
    drop(guard.release().await);
}

async fn wait_for_ttl(scene: Scene) {
    let ttl = Duration::from_millis(400);
    let token = scene
        .a
        .lock("ttl")
        .ttl(ttl)
        .acquire()
        .await
        .expect("free")
        .leak();
    let guard = acquire_within(&scene.b, "ttl", AMPLE).await;
    let guard = guard.expect("free after the TTL");
    assert_ne!(*guard.token(), token);
    drop(guard.release().await);
}

async fn wait_in_vain(scene: Scene) {
    let guard = hold(&scene.a, "vain").await;
    let wait = Duration::from_millis(150);
    let started = std::time::Instant::now();
    let error = acquire_within(&scene.b, "vain", wait).await;
    let error = error.expect_err("held all the time");
    assert!(error.is_busy() || error.is_timeout(), "{error}");
    assert!(
        started.elapsed() >= wait / 2,
        "gave up after {:?}",
        started.elapsed()
    );
    assert!(is_let_go(&guard.release().await));
}

async fn lock_all(scene: Scene) {
    let keys = ["all-c", "all-a", "all-b"];
    let request = scene.a.lock_all(keys).ttl(LONG);
    let all = request.acquire().await.expect("all free");
    for key in keys {
        let other = try_acquire(&scene.b, key).await;
        assert!(other.expect("all nodes answer").is_none(), "{key}");
    }
    drop(all.release().await);
    for key in keys {
        free_everywhere(&scene, key).await;
    }
    let one = hold(&scene.b, "all-b").await;
    // Before that, the other could be the first on a minority.
    held_everywhere(&scene, "all-b", one.token()).await;
    let request = scene.a.lock_all(keys).ttl(LONG);
    let error = request.acquire().await.expect_err("one is held");
    assert!(error.is_busy(), "{error}");
    for key in ["all-a", "all-c"] {
        free_everywhere(&scene, key).await;
    }
    held_everywhere(&scene, "all-b", one.token()).await;
    drop(one.release().await);
}

async fn opposite_orders(scene: Scene) {
    let mut tasks = Vec::new();
    for (redlock, keys) in [(&scene.a, ["x1", "x2"]), (&scene.b, ["x2", "x1"])] {
        let redlock = redlock.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..5 {
                let request = redlock.lock_all(keys).ttl(LONG).wait_for(LONG);
                drop(request.acquire().await.expect("in turn").release().await);
            }
        }));
    }
    for task in tasks {
        task.await.expect("no panic");
    }
}

async fn reentrant(scene: Scene) {
    let owner = scene.a.reentrant();
    let request = || scene.a.lock("again").ttl(LONG);
    let outer = owner.enter(request()).await.expect("free");
    let inner = owner.enter(request()).await.expect("the same owner");
    let stranger = scene.a.reentrant();
    let refused = stranger.enter(request()).await.expect_err("another owner");
    assert!(refused.is_busy(), "{refused}");
    assert!(inner.leave().await.is_none(), "still inside");
    assert_ne!(scene.cluster.count("again").await, 0, "still inside");
    let released = outer.leave().await.expect("the last one");
    assert!(is_let_go(&released), "{released:?}");
    free_everywhere(&scene, "again").await;
}

async fn with_lock(scene: Scene) {
    let request = scene.a.lock("with").ttl(LONG);
    let cluster = Arc::clone(&scene.cluster);
    let result = scene.a.with_lock(request.clone(), |_scope| async move {
        cluster.count("with").await
    });
    assert!(result.await.expect("free") >= 3);
    free_everywhere(&scene, "with").await;
    let failed = scene
        .a
        .with_lock(request.clone(), |_scope| async { Err::<(), _>("mine") });
    assert_eq!(
        failed.await.expect("free"),
        Err("mine"),
        "the closure's own result"
    );
    free_everywhere(&scene, "with").await;
    let guard = hold(&scene.b, "with").await;
    let refused = scene
        .a
        .with_lock(request, |_scope| async { panic!("must not run") });
    assert!(refused.await.expect_err("held").is_busy());
    drop(guard.release().await);
}

async fn adopt(scene: Scene) {
    let guard = hold_everywhere(&scene, "adopt").await;
    let token = guard.leak();
    let request = scene.b.adopt("adopt", token).ttl(LONG);
    let taken = request.acquire().await.expect("the token is right");
    assert_eq!(*taken.token(), token);
    assert!(taken.is_valid() && taken.validity() > LONG / 2);
    assert!(is_let_go(&taken.release().await));
    free_everywhere(&scene, "adopt").await;
    let request = scene.b.adopt("adopt", token).ttl(LONG);
    let error = request.acquire().await.expect_err("not held");
    assert!(error.is_lost(), "{error}");
    free_everywhere(&scene, "adopt").await;
}

async fn foreign_token(scene: Scene) {
    let guard = hold_everywhere(&scene, "foreign").await;
    let foreign = Token::new("somebody else").expect("a token");
    let released = scene
        .b
        .release("foreign", &foreign)
        .await
        .expect("all nodes answer");
    assert_eq!(released.confirmed(), 0, "{released:?}");
    let request = scene.b.adopt("foreign", foreign).ttl(LONG);
    let error = request.acquire().await.expect_err("not the holder");
    assert!(error.is_lost(), "{error}");
    held_everywhere(&scene, "foreign", guard.token()).await;
    assert!(is_let_go(&guard.release().await));
}

async fn inspect(scene: Scene) {
    let guard = hold_everywhere(&scene, "inspect").await;
    let views = scene.b.inspect("inspect").await.expect("five views");
    assert_eq!(views.len(), SIZE);
    for (index, view) in views.iter().enumerate() {
        assert!(
            view.address
                .contains(&scene.cluster.address(index).to_string())
        );
        let held = held_key(view);
        assert_eq!(held.token, *guard.token());
        let remaining = held.remaining.expect("a TTL");
        assert!(remaining <= LONG && remaining > LONG / 2, "{remaining:?}");
    }
    drop(guard.release().await);
    free_everywhere(&scene, "inspect").await;
    for view in scene.b.inspect("inspect").await.expect("five views") {
        assert_eq!(view.answer.expect("an answer"), None);
    }
}

/// Renewed far beyond its TTL, then no more: the bound is kept on the nodes, too.
async fn renew(scene: Scene) {
    let ttl = Duration::from_secs(2);
    let policy = RenewPolicy::times(4).every(Duration::from_millis(400));
    let request = scene.a.lock("renew").ttl(ttl).renew(policy);
    let guard = request.acquire().await.expect("free");
    let started = std::time::Instant::now();
    let end = guard.lost().await;
    let held_for = started.elapsed();
    assert!(end.is_expired(), "{end}");
    assert!(held_for > ttl, "renewed, but ended after {held_for:?}");
    assert!(held_for < ttl * 6, "four renewals took {held_for:?}");
    drop(guard);
    free_everywhere(&scene, "renew").await;
}

async fn lost(scene: Scene) {
    let policy = RenewPolicy::until(LONG).every(Duration::from_millis(100));
    let request = scene.a.lock("lost").ttl(LONG / 30).renew(policy);
    let guard = request.acquire().await.expect("free");
    let cancelled = guard.cancellation();
    held_everywhere(&scene, "lost", guard.token()).await;
    // A renewal that comes in between brings back what a minority lost.
    eventually_async("the loss", async || {
        for node in 0..3 {
            scene.cluster.remove(node, "lost").await;
        }
        !guard.is_valid()
    })
    .await;
    let error = in_time("the loss", guard.lost()).await;
    assert!(error.is_lost(), "{error}");
    assert!(cancelled.is_cancelled() && !guard.is_valid());
    let error = guard.extend(LONG).await.expect_err("lost is lost");
    assert!(error.is_lost() || error.is_expired(), "{error}");
    drop(guard);
    free_everywhere(&scene, "lost").await;
}

async fn minority_lost(scene: Scene) {
    let guard = hold_everywhere(&scene, "minority").await;
    for node in [1, 4] {
        scene.cluster.remove(node, "minority").await;
    }
    guard.extend(LONG).await.expect("three of five hold it");
    assert!(guard.is_valid());
    let released = guard.release().await;
    assert!(
        released.confirmed() + released.pending() >= 3,
        "{released:?}"
    );
    free_everywhere(&scene, "minority").await;
}

async fn hold_at_least(scene: Scene) {
    let least = Duration::from_millis(1500);
    let request = scene.a.lock("least").ttl(LONG).hold_at_least(least);
    let started = std::time::Instant::now();
    let guard = request.acquire().await.expect("free");
    let released = guard.release().await;
    assert!(released.is_kept() && !released.is_free(), "{released:?}");
    let guard = acquire_within(&scene.b, "least", AMPLE)
        .await
        .expect("free then");
    let taken_after = started.elapsed();
    assert!(taken_after >= least, "taken after {taken_after:?}");
    drop(guard.release().await);
    free_everywhere(&scene, "least").await;
}

async fn leak(scene: Scene) {
    let ttl = Duration::from_secs(2);
    let guard = scene.a.lock("leak").ttl(ttl).acquire().await.expect("free");
    guard.leak();
    let refused = try_acquire(&scene.b, "leak")
        .await
        .expect("all nodes answer");
    assert!(refused.is_none());
    free_everywhere(&scene, "leak").await;
}

async fn dropped(scene: Scene) {
    let guard = hold_everywhere(&scene, "dropped").await;
    drop(guard);
    free_everywhere(&scene, "dropped").await;
}
