//! Many worlds. `LOCKNODE_SEEDS=a..b` says which; a failure says how to see it again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::tests::world::{Tally, World};

/// `[F7]`
#[test]
fn in_no_world_two_clients_hold_a_lock_and_nothing_is_left_behind() {
    run_all(SEEDS, World::new, &[&ALL[..], &FENCED].concat());
}

/// `[F7]` Locks end at any moment, so that there may be several holders at a time.
#[test]
fn in_no_world_a_fencing_token_is_out_of_order_whatever_time_does() {
    run_all(
        SEEDS / 2,
        World::hostile,
        &[&["ended"][..], &FENCED].concat(),
    );
}

fn run_all(count: u64, world: fn(u64, bool) -> World, expected: &[&'static str]) {
    let (first, end) = seeds(count);
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
                    let outcome = std::panic::catch_unwind(|| world(seed, false).run());
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
            "LOCKNODE_SEEDS={seed}..{} cargo test -p redlock-proto --lib core::tests::seeds -- --nocapture",
            seed + 1
        );
    }
    if end - first == 1 && !failures.is_empty() {
        let mut world = world(first, true);
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
        assert_everything_happened(&sum, expected);
    }
}

#[test]
fn a_seed_decides_all_that_happens_in_its_world() {
    for seed in 0..10 {
        for world in [World::new, World::hostile] {
            let hash = |is_logged| world(seed, is_logged).run().map(|tally| tally.hash);
            assert_eq!(hash(false), hash(true), "seed {seed}");
        }
    }
}

fn seeds(count: u64) -> (u64, u64) {
    let Ok(text) = std::env::var("LOCKNODE_SEEDS") else {
        return (0, count);
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
fn assert_everything_happened(tally: &Tally, expected: &[&'static str]) {
    for what in expected {
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

const FENCED: [&str; 5] = [
    "fenced",
    "unfenced",
    "floors",
    "write_backs",
    "write_backs_refused",
];

/// Ten seconds of an unoptimised build.
const SEEDS: u64 = 2_000;
