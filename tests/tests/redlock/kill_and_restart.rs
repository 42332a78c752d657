//! Lock cycles while any two of five nodes are killed and started again: the caller sees errors of the documented kinds
//! and no others, and no key outlives its TTL. `LOCKNODE_TEST_CYCLES` sets the number of cycles.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use locknode_tests::cluster::{Cluster, Make, SIZE};
use locknode_tests::patience::{eventually_async, in_time};
use redlock_client::{ErrorKind, Redlock};
use tokio::sync::Mutex;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_five_locknodes_at_a_time() {
    cycles_over(Make::Locknodes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_of_five_redis_servers_at_a_time() {
    cycles_over(Make::RedisServers).await;
}

#[derive(Default)]
struct Tally {
    begun: AtomicUsize,
    acquired: AtomicUsize,
    failed: AtomicUsize,
    extended: AtomicUsize,
}

async fn cycles_over(make: Make) {
    let Some(cluster) = Cluster::start(make).await else {
        return;
    };
    let redlock = Redlock::builder()
        .nodes(cluster.urls())
        .build()
        .expect("a good configuration");
    let (cluster, tally) = (Arc::new(Mutex::new(cluster)), Arc::<Tally>::default());
    let is_over = Arc::new(AtomicBool::new(false));
    let chaos = tokio::spawn(kill_and_restart(
        redlock.clone(),
        Arc::clone(&cluster),
        Arc::clone(&is_over),
        Arc::clone(&tally),
    ));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| tokio::spawn(work(redlock.clone(), Arc::clone(&tally))))
        .collect();
    for worker in workers {
        worker.await.expect("no panic");
    }
    is_over.store(true, Ordering::SeqCst);
    let kills = chaos.await.expect("no panic");
    in_time("close", redlock.close()).await;
    let cluster = cluster.lock().await;
    let left = cluster.keys().await;
    for (key, remaining) in &left {
        let remaining = remaining.unwrap_or_else(|| panic!("{key} has no end"));
        assert!(remaining <= TTL, "{key} lives for another {remaining:?}");
    }
    eventually_async("the keys end with their TTL", async || {
        cluster.keys().await.is_empty()
    })
    .await;
    let number = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
    println!(
        "{make:?}: {} cycles, {} acquired, {} extended, {} failed, {kills} kills, {} keys left to their TTL",
        cycles(),
        number(&tally.acquired),
        number(&tally.extended),
        number(&tally.failed),
        left.len(),
    );
    assert!(kills > 0, "nothing was killed");
    assert!(
        number(&tally.acquired) >= cycles() - cycles() / 100,
        "a quorum was up all the time"
    );
}

async fn work(redlock: Redlock, tally: Arc<Tally>) {
    loop {
        let cycle = tally.begun.fetch_add(1, Ordering::SeqCst);
        if cycle >= cycles() {
            return;
        }
        let request = redlock.lock(format!("job:{cycle}")).ttl(TTL).wait_for(TTL);
        match in_time("acquire", request.acquire()).await {
            Ok(guard) => {
                tally.acquired.fetch_add(1, Ordering::SeqCst);
                if cycle.is_multiple_of(4) {
                    match in_time("extend", guard.extend(TTL)).await {
                        Ok(()) => drop(tally.extended.fetch_add(1, Ordering::SeqCst)),
                        // A crashed node has forgotten the lock.
                        Err(error) => assert!(
                            matches!(
                                error.kind(),
                                ErrorKind::NoQuorum | ErrorKind::Lost | ErrorKind::Expired
                            ),
                            "extend: {error}"
                        ),
                    }
                }
                match cycle % 3 {
                    0 => drop(guard),
                    _ => drop(in_time("release", guard.release()).await),
                }
            }
            Err(error) => {
                tally.failed.fetch_add(1, Ordering::SeqCst);
                // Nobody else wants these keys, so busy can only be the client in its own way.
                assert!(
                    matches!(
                        error.kind(),
                        ErrorKind::NoQuorum | ErrorKind::Timeout | ErrorKind::Expired
                    ),
                    "acquire: {error}"
                );
            }
        }
    }
}

/// Kills two nodes, waits for some cycles, starts them again, waits for the client and for some cycles, and so on.
async fn kill_and_restart(
    redlock: Redlock,
    cluster: Arc<Mutex<Cluster>>,
    is_over: Arc<AtomicBool>,
    tally: Arc<Tally>,
) -> usize {
    let pairs: Vec<(usize, usize)> = (0..SIZE)
        .flat_map(|a| (a + 1..SIZE).map(move |b| (a, b)))
        .collect();
    let mut kills = 0;
    for (a, b) in pairs.iter().cycle() {
        let mut cluster = cluster.lock().await;
        for node in [*a, *b] {
            in_time("kill", cluster.kill(node)).await;
            kills += 1;
        }
        let went_on = some_cycles(&tally, &is_over).await;
        for node in [*a, *b] {
            in_time("restart", cluster.restart(node)).await;
        }
        drop(cluster);
        // Two at a time: the client has to be with all five again before the next two go.
        in_time("reconnected", is_with_all(&redlock)).await;
        if !went_on || !some_cycles(&tally, &is_over).await {
            break;
        }
    }
    kills
}

async fn is_with_all(redlock: &Redlock) {
    while let Ok(nodes) = redlock.nodes().await
        && nodes.iter().any(|node| node.state.is_err())
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Lets cycles pass; false when the run is over.
async fn some_cycles(tally: &Tally, is_over: &AtomicBool) -> bool {
    let enough = tally.begun.load(Ordering::SeqCst) + CYCLES_BETWEEN;
    while tally.begun.load(Ordering::SeqCst) < enough {
        if is_over.load(Ordering::SeqCst) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    true
}

/// How many locks are taken and given back.
fn cycles() -> usize {
    let cycles = std::env::var("LOCKNODE_TEST_CYCLES");
    cycles.map_or(CYCLES, |cycles| cycles.parse().expect("a number"))
}

/// The number that the project promises this for.
const CYCLES: usize = 10_000;

/// Cycles between a kill and the restart, and between a restart and the next kill: enough for all workers to be in the middle
/// of something.
const CYCLES_BETWEEN: usize = 150;

/// Short enough to be waited for at the end.
const TTL: Duration = Duration::from_secs(3);

/// Locks in flight.
const WORKERS: usize = 16;
