//! Our client through it all.

use std::sync::Arc;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, Recorder};
use locknode_testkit::history::{Event, History};
use locknode_testkit::{Fault, GuardMode, Scenario, Swarm, ViolationKind, check_all};
use redlock_client::{Redlock, RetryPolicy};
use tokio::time::{Instant, sleep};

use crate::wire::{Wire, count};

on_both!(
    the_restart_that_forgets_gives_a_lock_twice_without_a_guard_and_not_with_one,
    a_lock_outlives_a_crash_and_a_restart,
    clients_of_a_scenario_play_and_note_what_they_believe,
);

fn client(cluster: &Cluster, number: u8) -> Redlock {
    let builder = cluster.redlock(number).unwrap();
    builder.retry(RetryPolicy::tries(1)).build().unwrap()
}

/// The first client has a lock on three of five nodes; one of them crashes and comes back; the second client asks that
/// one and the two others.
async fn the_restart_that_forgets_gives_a_lock_twice_without_a_guard_and_not_with_one(wire: Wire) {
    for (guard, is_broken) in [
        (GuardMode::Off, true),
        (GuardMode::Memory, false),
        (GuardMode::Long, false),
        (GuardMode::Always, false),
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
    let again = redlock.lock("k").ttl(ttl).retry(patient).acquire().await;
    assert!(again.unwrap().is_valid());
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
run 20s
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

const CLIENTS: &str = "\
locknode-scenario 1
nodes 3
clients 3
guard memory
max-ttl 5s
delay 0s 0s
run 2s
at 0s client 0 lock k ttl 5s hold 400ms extend 100ms then release
at 50ms client 2 ask node 1 line 0 SET aside token PX 4900 ; SET also token PX 4900
at 600ms client 1 lock k ttl 5s tries 9 hold 300ms write 50ms then leave
at 200ms client 1 lock dies ttl 4s
at 1s do crash client 1
at 1100ms client 1 lock nobody ttl 4s
at 1600ms client 1 lock dies ttl 4s
at 1700ms client 1 lock last ttl 4s
at 1700ms do pause client 1 100ms
";

async fn clients_of_a_scenario_play_and_note_what_they_believe(wire: Wire) {
    let scenario = Scenario::parse(CLIENTS).unwrap();
    let recorder = Arc::new(Recorder::new(3, 3));
    let builder = Cluster::builder().setup(&scenario.setup);
    let cluster = wire.build(builder.record(Arc::clone(&recorder))).await;
    cluster.run(&scenario).await.unwrap();
    let seen = recorder.wire_history();
    let history = &seen.history;
    // What clients note is not read off the wire again.
    assert_eq!((seen.holders.len(), seen.counts.requests), (0, 0));
    assert!(!is_broken(history, &scenario));
    let windows = history.windows();
    let window = |place: usize| (windows[place].client, history.key(windows[place].key));
    let mut order: Vec<_> = (0..windows.len()).map(window).collect();
    order.sort_by_key(|(client, _)| *client);
    assert_eq!(order, [(0, "k"), (1, "dies"), (1, "k"), (1, "last")]);
    let of = |key: &str| {
        let mut windows = windows.iter();
        *windows.find(|it| history.key(it.key) == key).unwrap()
    };
    assert!(windows[0].extensions >= 2 && windows[0].until < Duration::from_secs(2).into());
    let accepted = |it: &Event| {
        matches!(
            it,
            Event::Wrote {
                is_accepted: true,
                ..
            }
        )
    };
    assert!(count(history, accepted) >= 2);
    let counts = [
        count(history, |it| *it == Event::ClientDown { client: 1 }),
        count(history, |it| *it == Event::ClientStarted { client: 1 }),
    ];
    assert_eq!(counts, [1, 1]);
    // It died with one lock, and had one when the run ended; a dead client asks for none.
    assert!(of("dies").until.since(of("dies").from) < Duration::from_millis(900));
    assert!(of("last").until >= Duration::from_secs(2).into());
    assert!(!history.keys.iter().any(|key| &**key == "nobody"));
    // It belongs to the run no longer.
    let refused = cluster.check(&Fault::CrashClient(1)).unwrap_err();
    assert!(refused.is_not_here());
    let mut other = wire.dial(&cluster, 0, 1).await.unwrap();
    for key in ["aside", "also"] {
        assert_eq!(other.get(key).await.as_deref(), Some("token"));
    }
    // A dead client releases nothing.
    assert!(other.get("dies").await.is_some());
    while other.get("last").await.is_some() {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Whether two clients held a lock at once.
fn is_broken(history: &History, scenario: &Scenario) -> bool {
    let mut violations = check_all(history, scenario).into_iter();
    violations.any(|it| it.kind == ViolationKind::Exclusion)
}

/// Whether two clients held the lock at once in the chaos of a seed.
async fn is_broken_in_chaos(guard: GuardMode, seed: u64) -> bool {
    let swarm = Swarm::chaos(Duration::from_secs(1)).guard(guard);
    let scenario = swarm.scenario(seed);
    let recorder = Arc::new(Recorder::new(5, 8));
    let builder = Cluster::builder().setup(&scenario.setup).in_memory();
    let cluster = builder.record(Arc::clone(&recorder)).build().await.unwrap();
    cluster.run(&scenario).await.unwrap();
    let history = recorder.history();
    assert!(history.windows().len() > 10, "seed {seed}");
    is_broken(&history, &scenario)
}

#[tokio::test(start_paused = true)]
async fn chaos_gives_the_lock_twice_where_nodes_forget_and_nowhere_else() {
    let mut broken = 0;
    for seed in 0..4 {
        assert!(
            !is_broken_in_chaos(GuardMode::Memory, seed).await,
            "seed {seed}"
        );
        broken += u8::from(is_broken_in_chaos(GuardMode::Off, seed).await);
    }
    assert!(broken > 0);
}
