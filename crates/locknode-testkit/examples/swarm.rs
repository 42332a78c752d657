//! Runs seeds of the default swarm and stops at the first that breaks a promise: what `locknode sim --seeds` does, for those who
//! change the kit, the engine or the client and build no more than that.
//!
//! ```text
//! cargo run -p locknode-testkit --no-default-features --example swarm -- 0..4000
//! cargo run -p locknode-testkit --no-default-features --example swarm -- 0..4000 --all
//! ```
//!
//! Exits with 1 when a promise was broken. With `--all` it goes on, and tells of each kind of violation how many seeds show it
//! and which is the first.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it is there to tell people"
)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use locknode_testkit::{Counters, Swarm};

/// What the threads have found.
#[derive(Default)]
struct Found {
    counters: Counters,
    events: u64,
    seeds: u64,
    /// By kind: how many seeds, the lowest, and what it broke.
    kinds: BTreeMap<&'static str, (u64, u64, String)>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_all = words.iter().any(|word| word == "--all");
    let Some(seeds) = words.iter().find_map(|word| range(word)) else {
        eprintln!("which seeds? such as 0..4000");
        return ExitCode::from(64);
    };
    let (next, end) = (AtomicU64::new(seeds.start), AtomicU64::new(seeds.end));
    let found = Mutex::new(Found::default());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end.load(Ordering::Relaxed) {
                return;
            }
            let report = Swarm::default().run(seed);
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.counters.add(report.counters());
            (found.events, found.seeds) = (found.events + report.events(), found.seeds + 1);
            if report.is_safe() {
                continue;
            }
            if !is_all {
                end.store(0, Ordering::Relaxed);
            }
            let mut kinds = BTreeMap::new();
            for violation in report.violations() {
                kinds.entry(violation.kind.name()).or_insert(violation);
            }
            for (kind, violation) in kinds {
                let entry = found
                    .kinds
                    .entry(kind)
                    .or_insert((0, u64::MAX, String::new()));
                entry.0 += 1;
                if seed < entry.1 {
                    (entry.1, entry.2) = (seed, violation.to_string());
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    if is_all {
        for (name, count) in found.counters.iter() {
            println!("{count:>9} {name}");
        }
    }
    for (kind, (count, seed, text)) in &found.kinds {
        println!("{kind}: {count} seeds, the first is {seed}: {text}");
    }
    println!("{} seeds, {} events", found.seeds, found.events);
    ExitCode::from(u8::from(!found.kinds.is_empty()))
}

fn range(word: &str) -> Option<Range<u64>> {
    let (from, to) = word.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}
