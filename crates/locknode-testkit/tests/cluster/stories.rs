//! Our client through it all.

use std::time::Duration;

use locknode_testkit::cluster::Cluster;
use locknode_testkit::{Guarding, Scenario};
use redlock_client::{Redlock, RetryPolicy};
use tokio::time::{Instant, sleep};

use crate::wire::Wire;

on_both!(
    the_restart_that_forgets_gives_a_lock_twice_without_a_guard_and_not_with_one,
    a_lock_outlives_a_crash_and_a_restart,
);

fn client(cluster: &Cluster, number: u8) -> Redlock {
    cluster
        .redlock(number)
        .unwrap()
        .retry(RetryPolicy::tries(1))
        .build()
        .unwrap()
}

/// The first client has a lock on three of five nodes; one of them crashes and comes back; the second client asks that
/// one and the two others.
async fn the_restart_that_forgets_gives_a_lock_twice_without_a_guard_and_not_with_one(wire: Wire) {
    for (guard, is_broken) in [
        (Guarding::Off, true),
        (Guarding::Memory, false),
        (Guarding::Long, false),
        (Guarding::Always, false),
    ] {
        let cluster = wire.build(Cluster::builder().guard(guard)).await;
        let (first, second) = (client(&cluster, 0), client(&cluster, 1));
        cluster.partition(0, [3, 4]).unwrap();
        cluster.partition(1, [0, 1]).unwrap();
        let ttl = Duration::from_secs(30);
        let held = first.lock("k").ttl(ttl).node_timeout(AMPLE).acquire();
        let held = held.await.unwrap();
        cluster.crash(2).await.unwrap();
        cluster.restart(2).await.unwrap();
        // Where there is a guard, this is waited out.
        let other = second.lock("k").ttl(ttl).node_timeout(AMPLE / 5);
        let other = other.try_acquire().await;
        assert!(held.is_valid(), "{guard:?}");
        let is_held_twice = other.is_ok_and(|other| other.is_some_and(|guard| guard.is_valid()));
        assert_eq!(is_held_twice, is_broken, "{guard:?}");
        cluster.shutdown().await;
    }
}

async fn a_lock_outlives_a_crash_and_a_restart(wire: Wire) {
    let cluster = wire.build(Cluster::builder().max_ttl(wire.span(30))).await;
    let redlock = client(&cluster, 0);
    let ttl = wire.span(30);
    let held = redlock.lock("k").ttl(ttl).node_timeout(AMPLE).acquire();
    let held = held.await.unwrap();
    cluster.crash(1).await.unwrap();
    held.extend(ttl).await.unwrap();
    cluster.restart(1).await.unwrap();
    held.extend(ttl).await.unwrap();
    assert!(held.release().await.is_free());
    cluster.wait_until_serving(1).await.unwrap();
    // The node takes part again: it makes a majority with two others.
    cluster.crash(3).await.unwrap();
    cluster.crash(4).await.unwrap();
    let patient = RetryPolicy::tries(20);
    let again = redlock
        .lock("k")
        .ttl(ttl)
        .retry(patient)
        .acquire()
        .await
        .unwrap();
    assert!(again.is_valid());
}

/// For what must be answered, on a slow machine with slow files.
const AMPLE: Duration = Duration::from_secs(5);

const SCRIPT: &str = "\
locknode-scenario 1
seed 3
nodes 5
clients 2
guard memory
max-ttl 10s
delay 1ms 4ms
# What the clients do is up to the test.
at 0s client 0 lock k ttl 10s
at 3s do crash node 0 kill
at 3s do cut client 0 node 1,2 both
at 5s do restart node 0
at 7s do heal client all node all
at 20s do calm
";

#[tokio::test(start_paused = true)]
async fn a_scenario_file_is_played_in_time() {
    let scenario = Scenario::parse(SCRIPT).unwrap();
    let builder = Cluster::builder().setup(&scenario.setup);
    let cluster = Wire::Memory.build(builder).await;
    assert_eq!((cluster.nodes(), cluster.clients()), (5, 2));
    let (first, second) = (client(&cluster, 0), client(&cluster, 1));
    let start = Instant::now();
    let playing = tokio::spawn({
        let (cluster, scenario) = (cluster.clone(), scenario.clone());
        async move { cluster.run(&scenario).await }
    });
    let until = async |seconds| {
        tokio::time::sleep_until(start + Duration::from_secs(seconds)).await;
    };
    let ttl = Duration::from_secs(2);
    let is_had = async |redlock: &Redlock| {
        let patient = RetryPolicy::tries(2);
        let lock = redlock.lock("k").ttl(ttl).retry(patient).acquire().await;
        match lock {
            Ok(guard) => guard.release().await.is_free(),
            Err(error) => {
                println!("{error}");
                false
            }
        }
    };
    until(1).await;
    assert!(is_had(&first).await && is_had(&second).await);
    until(4).await;
    assert!(!cluster.is_up(0));
    // Node 0 is down, 1 and 2 are behind a cut for the first client only.
    assert!(!is_had(&first).await);
    assert!(is_had(&second).await);
    until(6).await;
    let left = cluster.quarantine_left(0).unwrap();
    assert!(
        left > Duration::from_secs(8) && left < Duration::from_secs(10),
        "{left:?}"
    );
    until(8).await;
    sleep(Duration::from_secs(4)).await;
    assert!(is_had(&first).await);
    until(19).await;
    assert_eq!(cluster.quarantine_left(0), None);
    playing.await.unwrap().unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(20));
}
