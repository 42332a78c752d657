//! The clocks of nodes and clients.

use std::sync::Arc;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, Recorder};
use locknode_testkit::history::{Entry, Event};
use locknode_testkit::{Fault, SimTime, Who};
use tokio::time::{Instant, advance, sleep};

use crate::wire::{Wire, inject};

const NODE: Who = Who::Node(0);

on_both!(the_wall_clock_is_set_and_locks_do_not_care);

async fn the_wall_clock_is_set_and_locks_do_not_care(wire: Wire) {
    let cluster = wire.build(Cluster::builder().nodes(2)).await;
    let mut client = wire.dial(&cluster, 0, 0).await.unwrap();
    let mut other = wire.dial(&cluster, 0, 1).await.unwrap();
    client.take("k").await;
    let hour_ms = 3_600_000;
    for (jump_ms, ahead_ms) in [(hour_ms, hour_ms), (-3 * hour_ms, -2 * hour_ms)] {
        inject(&cluster, Fault::WallJump(NODE, jump_ms)).await;
        let ahead = client.wall().await - other.wall().await;
        assert!((ahead - ahead_ms).abs() < 10_000, "{ahead} and {ahead_ms}");
        assert!(client.ttl("k").await > 20_000);
    }
}

/// A row: a fault, and what is left of thirty seconds after ten, in milliseconds.
#[tokio::test(start_paused = true)]
async fn ttls_pass_as_the_nodes_clocks_go() {
    let second = Duration::from_secs(1);
    let rows = [
        (Fault::Rate(NODE, 100_000), 19_000),
        (Fault::Rate(NODE, -100_000), 21_000),
        // The slower of the two clocks counts.
        (Fault::Slew(NODE, 100_000), 20_000),
        (Fault::Slew(NODE, -100_000), 21_000),
        (Fault::Suspend(NODE, 3 * second), 23_000),
        (Fault::Freeze(NODE, 3 * second), 23_000),
        (Fault::Pause(NODE, 3 * second), 20_000),
        (Fault::WallJump(NODE, 50_000), 20_000),
    ];
    for (fault, left_ms) in rows {
        let cluster = Wire::Memory.build(Cluster::builder().nodes(1)).await;
        let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
        client.take("k").await;
        inject(&cluster, fault).await;
        sleep(10 * second).await;
        assert_eq!(client.ttl("k").await, left_ms, "{fault}");
        // Calm puts no clock back, and lets none go wrong.
        inject(&cluster, Fault::Calm).await;
        sleep(10 * second).await;
        assert_eq!(client.ttl("k").await, left_ms - 10_000, "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_sleeps_or_is_frozen_says_nothing() {
    let cluster = Wire::Memory.build(Cluster::builder().nodes(1)).await;
    let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
    let span = Duration::from_secs(5);
    for (fault, wall_ms) in [
        (Fault::Suspend(NODE, span), 5000),
        (Fault::Freeze(NODE, span), 0),
    ] {
        let (start, wall) = (Instant::now(), client.wall().await);
        inject(&cluster, fault).await;
        assert_eq!(client.wall().await - wall, wall_ms, "{fault}");
        assert_eq!(start.elapsed(), span);
    }
}

#[tokio::test(start_paused = true)]
async fn noise_makes_readings_late_and_never_turns_time_back() {
    let cluster = Wire::Memory.build(Cluster::builder().nodes(1)).await;
    let mut client = Wire::Memory.dial(&cluster, 0, 0).await.unwrap();
    let noise = Duration::from_millis(50);
    inject(&cluster, Fault::Noise(NODE, noise)).await;
    client.take("k").await;
    let (mut last, mut is_late) = (i64::MAX, false);
    for passed in 1..100 {
        advance(Duration::from_millis(1)).await;
        let left = client.ttl("k").await;
        is_late |= left < 30_000 - passed;
        assert!(left <= last && left >= 30_000 - passed - 50);
        last = left;
    }
    assert!(is_late);
}

#[tokio::test(start_paused = true)]
async fn a_clients_clock_bends_for_those_who_read_it() {
    let cluster = Wire::Memory.build(Cluster::builder()).await;
    let rate = Fault::Rate(Who::Client(1), 500_000);
    let error = cluster.inject(rate).await.unwrap_err();
    let names_it = error.to_string().contains("rate client 1");
    assert!(error.is_not_here() && names_it, "{error}");
    let redlock = cluster.redlock(1).unwrap().build().unwrap();
    let ttl = Duration::from_secs(30);
    let guard = redlock.lock("k").ttl(ttl).acquire().await.unwrap();
    let clock = cluster.client_clock(1).unwrap();
    let before = clock.now();
    inject(&cluster, rate).await;
    sleep(Duration::from_secs(10)).await;
    assert_eq!(clock.now().since(before), Duration::from_secs(15));
    sleep(Duration::from_secs(11)).await;
    assert!(!guard.is_valid(), "31.5 seconds have passed for it");
    // The faster of the two clocks counts for a client.
    let before = cluster.client_clock(0).unwrap().now();
    inject(&cluster, Fault::Slew(Who::Client(0), 100_000)).await;
    sleep(Duration::from_secs(10)).await;
    let after = cluster.client_clock(0).unwrap().now();
    assert_eq!(after.since(before), Duration::from_secs(11));
}

/// What faults do to clocks is in the history: what they show then, and how they go on.
#[tokio::test(start_paused = true)]
async fn clocks_that_go_wrong_are_recorded() {
    let recorder = Arc::new(Recorder::new(2, 1));
    let builder = Cluster::builder().nodes(2).record(Arc::clone(&recorder));
    let cluster = Wire::Memory.build(builder).await;
    let second = Duration::from_secs(1);
    sleep(second).await;
    let faults = [
        Fault::Rate(NODE, -500_000),
        // The slower one counts, and that is as slow as it was.
        Fault::Slew(NODE, 0),
        Fault::Suspend(Who::Node(1), second),
        // No process sees it.
        Fault::WallJump(NODE, 50_000),
        Fault::Noise(NODE, Duration::from_millis(1)),
    ];
    for fault in faults {
        inject(&cluster, fault).await;
    }
    sleep(4 * second).await;
    inject(&cluster, Fault::Calm).await;
    let ms = |at: SimTime| at.as_nanos() / 1_000_000;
    let clock = |entry: &Entry| match entry.event {
        Event::Clock {
            who,
            shows,
            per_million,
        } => Some((ms(entry.at), who, ms(shows), per_million)),
        _ => None,
    };
    let clocks: Vec<_> = recorder
        .history()
        .entries
        .iter()
        .filter_map(clock)
        .collect();
    let other = Who::Node(1);
    let want = [
        (1000, NODE, 1000, 500_000),
        (1000, other, 1000, 0),
        (2000, other, 1000, 1_000_000),
        (5000, NODE, 3000, 1_000_000),
    ];
    assert_eq!(clocks, want);
}
