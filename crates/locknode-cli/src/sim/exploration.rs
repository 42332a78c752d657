//! Worlds in parallel threads.
//!
//! ```text
//!   explore (calling thread):  starts threads, shows how far they are, takes the tally when they are done
//!   each thread:               takes the next seed, runs its world, adds it to the tally
//! ```
//!
//! Seeds are taken in order, and all below the lowest failing one are run to their end: which one that is does not depend
//! on the number of threads.

use std::collections::BTreeMap;
use std::mem;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use locknode_testkit::Swarm;

use super::figures::{grouped, per_second, simulated};
use super::inspection::inspect;
use super::progress::{Progress, REDRAW};
use super::seeds::Seeds;
use super::tally::Tally;
use crate::failure::Failure;

/// Which worlds are run, and how.
#[derive(Clone, Debug)]
pub(super) struct Exploration {
    pub(super) swarm: Swarm,
    pub(super) seeds: Seeds,
    pub(super) threads: u16,
    /// Simulated time of a world.
    pub(super) run_for: Duration,
    /// A world that fails does not end it.
    pub(super) keeps_going: bool,
    /// Each world is run twice.
    pub(super) is_twice: bool,
}

/// The outcome.
#[derive(Debug)]
pub(super) struct Explored {
    pub(super) tally: Tally,
    pub(super) elapsed: Duration,
    pub(super) is_interrupted: bool,
}

/// What the threads share.
#[derive(Debug)]
struct Shared {
    /// The place of the next seed.
    next: AtomicU64,
    lowest_failing: AtomicU64,
    is_over: Arc<AtomicBool>,
    state: Mutex<State>,
}

/// How far the threads are.
#[derive(Debug, Default)]
struct State {
    tally: Tally,
    /// The seeds of the worlds that run now, and since when.
    running: BTreeMap<u64, Instant>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is half done when the simulator panics in a world: the lock is not held meanwhile.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nodes that start and end all the time take and free a few megabytes. The usual allocator gives those back to the system each time,
/// and takes pages of zeros again, which is a tenth of a world's time. One large block that is freed raises the bounds up to
/// which it keeps what is free.
fn keep_memory() {
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT)));
}

impl Exploration {
    /// Runs all worlds, or up to the first one that fails. `is_interrupted` ends it early.
    ///
    /// # Errors
    ///
    /// When a thread cannot be started, or the program itself failed in a world.
    pub(super) fn explore(&self, is_interrupted: &Arc<AtomicBool>) -> Result<Explored, Failure> {
        let started = Instant::now();
        let shared = Arc::new(Shared {
            next: AtomicU64::new(0),
            lowest_failing: AtomicU64::new(u64::MAX),
            is_over: Arc::clone(is_interrupted),
            state: Mutex::default(),
        });
        let (sender, ended) = mpsc::channel();
        let threads = u128::from(self.threads).min(self.seeds.count());
        keep_memory();
        for _ in 0..threads {
            let (exploration, shared, sender) = (self.clone(), Arc::clone(&shared), sender.clone());
            let body = move || {
                let _ = sender.send(exploration.work(&shared));
            };
            let started = thread::Builder::new().name("worlds".to_owned()).spawn(body);
            started
                .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
        }
        drop(sender);
        let mut progress = Progress::new();
        let mut interrupted_at = None;
        loop {
            match ended.recv_timeout(REDRAW) {
                // What the panic has to say is on standard error by then.
                Ok(Err(seed)) => {
                    return Err(Failure::internal(format!(
                        "the simulator itself failed in the world of seed {seed}, see above: please report it"
                    )));
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(Ok(())) | Err(RecvTimeoutError::Timeout) => {}
            }
            if is_interrupted.load(Ordering::Relaxed)
                && interrupted_at.get_or_insert_with(Instant::now).elapsed() > LAST_WORLDS
            {
                break;
            }
            progress.show(|| self.progress(&shared.state(), started.elapsed()));
        }
        let mut tally = mem::take(&mut shared.state().tally);
        if !self.keeps_going {
            tally.keep_first();
        }
        let is_complete = u128::from(tally.worlds) == self.seeds.count() || tally.failing > 0;
        Ok(Explored {
            tally,
            elapsed: started.elapsed(),
            is_interrupted: is_interrupted.load(Ordering::Relaxed) && !is_complete,
        })
    }

    /// Runs worlds until there are no more.
    ///
    /// # Errors
    ///
    /// The seed of a world in which the program itself failed.
    fn work(&self, shared: &Shared) -> Result<(), u64> {
        while !shared.is_over.load(Ordering::Relaxed) {
            let place = shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = self.seeds.at(place) else {
                break;
            };
            if !self.keeps_going && seed > shared.lowest_failing.load(Ordering::Relaxed) {
                break;
            }
            let world = AssertUnwindSafe(|| self.world(seed, shared));
            panic::catch_unwind(world).map_err(|_| seed)?;
        }
        Ok(())
    }

    fn world(&self, seed: u64, shared: &Shared) {
        shared.state().running.insert(seed, Instant::now());
        let seen = inspect(&self.swarm, seed, self.is_twice);
        if seen.trouble.is_some() {
            shared.lowest_failing.fetch_min(seed, Ordering::Relaxed);
        }
        let mut state = shared.state();
        state.running.remove(&seed);
        state.tally.see(seed, seen);
    }

    fn progress(&self, state: &State, elapsed: Duration) -> String {
        let slowest = state.running.iter().min_by_key(|(_, since)| **since);
        if let Some((seed, since)) = slowest
            && since.elapsed() > SLOW_WORLD
        {
            let seconds = since.elapsed().as_secs();
            return format!("the world of seed {seed} has been running for {seconds} s");
        }
        let (worlds, events) = (state.tally.worlds, state.tally.events);
        let total = self.seeds.count();
        let left = total.saturating_sub(u128::from(worlds));
        let seconds_left = left * elapsed.as_millis() / u128::from(worlds.max(1)) / 1000;
        format!(
            "{worlds} of {total} worlds, {} simulated, {}/s, {} events/s, {} left",
            simulated(self.run_for, worlds),
            per_second(worlds, elapsed),
            grouped(per_second(events, elapsed)),
            simulated(
                Duration::from_secs(1),
                u64::try_from(seconds_left).unwrap_or(u64::MAX)
            ),
        )
    }
}

/// After Ctrl-C the worlds that run may end, unless they take long.
const LAST_WORLDS: Duration = Duration::from_secs(2);

/// Bytes: many times what the nodes of a world take.
const KEPT: usize = 24 << 20;

/// A world of an hour takes less than that.
const SLOW_WORLD: Duration = Duration::from_secs(20);
