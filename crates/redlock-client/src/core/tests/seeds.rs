//! Many worlds. `LOCKNODE_SEEDS=a..b` says which; a failure says how to see it again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::tests::world::{Tally, World};

#[test]
fn in_no_world_two_clients_hold_a_lock_and_nothing_is_left_behind() {
    let (first, end) = seeds();
    let next = AtomicU64::new(first);
    let (tallies, failures) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || failures.lock().unwrap().len() > 3 {
                        return;
                    }
                    let outcome = std::panic::catch_unwind(|| World::new(seed, false).run());
                    match outcome.unwrap_or_else(|_| Err("a panic".into())) {
                        Ok(tally) => tallies.lock().unwrap().push(tally),
                        Err(what) => failures.lock().unwrap().push((seed, what)),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    for (seed, what) in &failures {
        eprintln!("seed {seed}: {what}");
        eprintln!(
            "LOCKNODE_SEEDS={seed}..{} cargo test -p redlock-client --lib core::tests::seeds -- --nocapture",
            seed + 1
        );
    }
    if end - first == 1 && !failures.is_empty() {
        let mut world = World::new(first, true);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.run()));
        for line in world.log() {
            eprintln!("{line}");
        }
        eprintln!("{outcome:?}");
    }
    assert!(failures.is_empty(), "{} worlds went wrong", failures.len());
    let sum = sum(&tallies.into_inner().unwrap());
    eprintln!("{sum:#?}");
    if end - first >= 500 {
        assert_everything_happened(&sum);
    }
}

#[test]
fn a_seed_decides_all_that_happens_in_its_world() {
    for seed in 0..10 {
        let hash = |is_logged| World::new(seed, is_logged).run().map(|tally| tally.hash);
        assert_eq!(hash(false), hash(true), "seed {seed}");
    }
}

fn seeds() -> (u64, u64) {
    let Ok(text) = std::env::var("LOCKNODE_SEEDS") else {
        return (0, SEEDS);
    };
    let parse = |text: &str| {
        text.parse()
            .expect("LOCKNODE_SEEDS is two numbers: 0..2000")
    };
    match text.split_once("..") {
        Some((first, end)) => (parse(first), parse(end)),
        None => (parse(&text), parse(&text) + 1),
    }
}

fn sum(tallies: &[Tally]) -> Tally {
    tallies
        .iter()
        .fold(Tally::default(), |sum, one| sum.plus(one))
}

/// Faults that never strike prove nothing.
fn assert_everything_happened(tally: &Tally) {
    for what in ALL {
        let count = tally.counts.get(what).copied().unwrap_or(0);
        assert!(count > 0, "{what} never happened: {tally:?}");
    }
}

const ALL: [&str; 24] = [
    "acquired",
    "acquired_later",
    "busy",
    "no_quorum",
    "timeout",
    "expired",
    "renewed",
    "renewals_failed",
    "extended",
    "not_extended",
    "shortened",
    "released",
    "adopted",
    "looked",
    "cut",
    "crashed",
    "silent",
    "suspected",
    "duplicates",
    "late",
    "paused",
    "noscript",
    "loading",
    "errors",
];

/// Ten seconds of an unoptimised build.
const SEEDS: u64 = 2_000;
