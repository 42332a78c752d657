//! Thousands of worlds: `clean` keeps every promise, `bugs` finds every planted bug, `kit` tests the kit itself, `failover`
//! tells the old story of the promoted replica.
//!
//! A failure prints its seed, what was broken and the shortest scenario that breaks it. `SEEDS=0..100000` makes `clean`
//! run other seeds.

#![cfg(test)]

mod bugs;
mod chaos;
mod clean;
mod failover;
mod kit;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use locknode_testkit::{Counters, Report, Swarm};

/// Runs seeds in as many threads as there are cores, up to the first that breaks a promise: the lowest one, and what was
/// counted in all that ran.
fn first_broken(swarm: &Swarm, seeds: std::ops::Range<u64>) -> (Option<Report>, Counters) {
    let (next, stop) = (AtomicU64::new(seeds.start), AtomicU64::new(seeds.end));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let (mut worst, mut counters) = (None::<Report>, Counters::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= stop.load(Ordering::Relaxed) {
                return (worst, counters);
            }
            let report = swarm.run(seed);
            counters.add(report.counters());
            if !report.is_safe() {
                // Lower seeds that others have begun still count.
                stop.fetch_min(seed, Ordering::Relaxed);
                worst = Some(report);
            }
        }
    };
    let results: Vec<(Option<Report>, Counters)> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("no world panics"))
            .collect()
    });
    let mut counters = Counters::default();
    for (_, counted) in &results {
        counters.add(counted);
    }
    let reports = results.into_iter().filter_map(|(report, _)| report);
    (
        reports.min_by_key(|report| report.scenario().setup.seed),
        counters,
    )
}
