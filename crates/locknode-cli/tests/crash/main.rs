//! A real node, killed at random moments under load and started again, over and over.
//!
//! What clients were told, by their own clock, must be true over every kill: see `ledger`. All that is random comes
//! from the seeds; `LOCKNODE_CRASH_SEEDS` (`7`, `0..100`) and `LOCKNODE_CRASH_KILLS` (per seed) set others than the
//! usual, which make 200 kills.
//!
//! * `plan`: what a seed decides.
//! * `node`: the process.
//! * `lazy_disk.c`: what half of the nodes with a directory are preloaded with: slow syncs, and a kill loses what was
//!   not synced.
//! * `conversation`: a connection to it.
//! * `client`: the load.
//! * `request`: what it asks for.
//! * `ledger`: what clients were told, and whether it may be true.
//! * `tally`: how often the interesting things happened.

#![expect(clippy::expect_used, reason = "a test that cannot go on fails")]

mod client;
mod conversation;
mod ledger;
mod node;
mod plan;
mod request;
mod tally;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use client::{Client, Run};
use ledger::{Ledger, Quarantine};
use node::{GLANCE, NodeProcess, PATIENCE};
use plan::{End, Kind, Random, Settings, is_usual, kills_per_seed, seeds};
use tally::Tally;

/// [G1] [G2] [G3] [G4] [G5] [G6] [G9] [G10] [G11] [L1] [L2] [L3] [F1] [F2] [F4] [F5]
#[test]
fn what_clients_were_told_survives_every_kill() {
    let (mut seeds, kills) = (seeds(), kills_per_seed());
    // What takes longest comes first.
    seeds.sort_by_key(|seed| Kind::of(*seed) != Kind::Wide);
    let tally = Tally::default();
    let failures = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(seeds.len()) {
            scope.spawn(|| {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Err(failure) = Life::new(*seed, &tally).live(kills) {
                        failures.lock().expect("no panic").push((*seed, failure));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no panic");
    for (seed, failure) in &failures {
        println!(
            "seed {seed}: {failure}\nagain: LOCKNODE_CRASH_SEEDS={seed} cargo test -p locknode-cli --test crash\n"
        );
    }
    let failed: Vec<u64> = failures.iter().map(|(seed, _)| *seed).collect();
    let rows = tally.rows();
    println!(
        "{} seeds in {:.1} s: {rows:?}",
        seeds.len(),
        started.elapsed().as_secs_f64()
    );
    assert!(failed.is_empty(), "seeds {failed:?} of {}", seeds.len());
    if is_usual() {
        let never = rows.iter().filter(|row| row.1 == 0);
        let never: Vec<&str> = never.map(|row| row.0).collect();
        assert!(never.is_empty(), "never happened: {never:?}");
    }
}

/// All runs of the node of a seed.
struct Life<'t> {
    kind: Kind,
    random: Random,
    tally: &'t Tally,
    ledger: Mutex<Ledger<'t>>,
    clients: Vec<Client>,
    directory: PathBuf,
    run: u64,
    kills: u64,
    /// The last run ended in order, and was not in quarantine.
    was_stopped: bool,
    /// Some run has served.
    has_served: bool,
    /// The disk of the run keeps only what was synced.
    has_lazy_disk: bool,
}

impl<'t> Life<'t> {
    fn new(seed: u64, tally: &'t Tally) -> Self {
        let name = format!("crash-{}-{seed}", std::process::id());
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        Self {
            kind: Kind::of(seed),
            random: Random::new(seed, 0),
            tally,
            ledger: Mutex::new(Ledger::new(tally)),
            clients: (0..CLIENTS)
                .map(|number| Client::new(seed, number))
                .collect(),
            directory,
            run: 0,
            kills: 0,
            was_stopped: false,
            has_served: false,
            has_lazy_disk: false,
        }
    }

    /// Starts and ends the node until it was killed so often, and once more to see what is left.
    fn live(mut self, kills: u64) -> Result<(), String> {
        while self.kills < kills {
            let end = self.kind.end(&mut self.random);
            self.run_once(end)?;
        }
        self.run_once(End::Stop(Duration::from_millis(50)))
    }

    fn run_once(&mut self, end: End) -> Result<(), String> {
        let settings = self.kind.settings(&mut self.random, self.run);
        self.run += 1;
        let quarantine = self.quarantine(settings);
        {
            let mut ledger = self.ledger.lock().expect("no panic");
            // Read before the node reads it.
            let wall = SystemTime::now().duration_since(UNIX_EPOCH);
            let fence_base = wall.expect("no time before 1970").as_secs() << 20;
            ledger.begin_run(quarantine, fence_base, settings.has_directory);
            ledger.note(&format!("begins with {settings:?}, ends with {end:?}"));
        }
        let flags = settings.flags(&self.directory.to_string_lossy());
        let mut node = NodeProcess::start(&flags, settings.lazy_disk);
        self.has_lazy_disk = settings.lazy_disk.is_some();
        let result = match end {
            End::KillAtBirth(age) => {
                std::thread::sleep(age);
                let is_born = node.is_listening();
                node.kill();
                if !is_born {
                    self.tally.add("births cut");
                }
                self.killed();
                Ok(())
            }
            _ => self.serve(&mut node, settings, end),
        };
        let ledger = self.ledger.lock().expect("no panic");
        let violation = ledger.violation().map(str::to_owned);
        let result = violation.map_or(result, Err).and_then(|()| {
            // [L5] A kill in the middle of a write may leave half a batch, though most leave all of it or nothing.
            let is_undue = ledger.has_undue_wait() && !node.log().contains(HALF_A_BATCH);
            if is_undue {
                return Err("LOADING where no wait is due".to_owned());
            }
            Ok(())
        });
        match result {
            Ok(()) => Ok(()),
            Err(problem) => {
                node.kill();
                Err(format!(
                    "{:?}, run {}: {problem}\nthe node said:\n{}\nits directory: {}",
                    self.kind,
                    self.run,
                    node.log(),
                    self.directory.display()
                ))
            }
        }
    }

    /// What this run may let its clients wait for.
    fn quarantine(&self, settings: Settings) -> Quarantine {
        let is_logged = self.kind == Kind::Always && self.has_served;
        let ms = |ttl: Duration| {
            u64::try_from((ttl + ttl / 100).as_micros().div_ceil(1000)).expect("short") + 2
        };
        let is_forbidden =
            settings.is_first_start || is_logged || (settings.has_directory && self.was_stopped);
        // An answer comes a bit after the start.
        let full_ms = ms(settings.max_ttl) * 3 / 4;
        Quarantine::new(is_forbidden, ms(self.kind.max_ttl_max()), full_ms)
    }

    /// Lets clients work until the end.
    fn serve(
        &mut self,
        node: &mut NodeProcess,
        settings: Settings,
        end: End,
    ) -> Result<(), String> {
        let address = node.address()?;
        let is_ending = AtomicBool::new(false);
        let run = Run {
            address,
            settings,
            is_ending: &is_ending,
            tally: self.tally,
        };
        let (ledger, run) = (&self.ledger, &run);
        let clients = &mut self.clients;
        let end = std::thread::scope(|scope| {
            for client in clients {
                scope.spawn(move || client.work(run, ledger));
            }
            let result = end_run(node, end, ledger, &is_ending);
            is_ending.store(true, Ordering::SeqCst);
            if result.is_err() {
                // The clients wait for a node that is to end.
                node.kill();
            }
            result
        })?;
        self.ended(settings, end, node)
    }

    /// Takes note of how a run ended.
    fn ended(&mut self, settings: Settings, end: Ended, node: &NodeProcess) -> Result<(), String> {
        let (is_served, is_quarantined) = {
            let ledger = self.ledger.lock().expect("no panic");
            (ledger.is_served(), ledger.is_quarantined())
        };
        if is_served && !is_quarantined && settings.has_directory && !settings.is_first_start {
            if self.was_stopped {
                self.tally.add("clean starts");
            } else if self.kind == Kind::Always {
                self.tally.add("logged starts");
            }
        }
        // A wait that was cut short goes on in the next run, log or not.
        self.has_served = is_served || (self.has_served && !is_quarantined);
        match end {
            Ended::Killed { was_stopping } => {
                if is_quarantined && !is_served {
                    self.tally.add("quarantines cut");
                }
                if was_stopping {
                    self.tally.add("stops cut");
                }
                self.killed();
            }
            Ended::Stopped => {
                self.was_stopped = is_served;
                if !settings.has_directory {
                    // The locks are gone, as after a kill.
                    self.ledger.lock().expect("no panic").crashed();
                } else if is_served && !node.log().contains("locks written to ") {
                    return Err("the node ended without its locks".to_owned());
                }
            }
        }
        Ok(())
    }

    fn killed(&mut self) {
        self.tally.add("kills");
        if self.has_lazy_disk {
            self.tally.add("kills with a lazy disk");
        }
        self.kills += 1;
        self.was_stopped = false;
        let entries = std::fs::read_dir(&self.directory).into_iter();
        let names: Vec<String> = (entries.flatten().flatten())
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let segments = names.iter().filter(|name| name.starts_with("log-"));
        // One may be prepared ahead.
        if segments.clone().count() > 2 {
            self.tally.add("long logs");
        }
        if segments.count() > 0 && names.iter().any(|name| name.starts_with("snapshot-")) {
            self.tally.add("logs after a snapshot");
        }
        let mut ledger = self.ledger.lock().expect("no panic");
        ledger.note("was killed");
        ledger.crashed();
    }
}

impl Drop for Life<'_> {
    fn drop(&mut self) {
        // What a failure left is there to be looked at.
        let ledger = self.ledger.lock();
        if ledger.is_ok_and(|ledger| ledger.violation().is_none()) {
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

/// What a node says of a batch that was not written to its end.
const HALF_A_BATCH: &str = "the last batch of the log was dropped: it was cut short";

/// How a run did end.
enum Ended {
    Killed { was_stopping: bool },
    Stopped,
}

/// Waits for the moment and ends the node.
fn end_run(
    node: &mut NodeProcess,
    end: End,
    ledger: &Mutex<Ledger<'_>>,
    is_ending: &AtomicBool,
) -> Result<Ended, String> {
    let signal = |node: &mut NodeProcess, after: Duration| {
        std::thread::sleep(after);
        is_ending.store(true, Ordering::SeqCst);
        node.terminate();
    };
    match end {
        End::KillAtBirth(after) | End::KillEarly(after) => std::thread::sleep(after),
        End::Kill(after) => {
            wait_for_service(ledger)?;
            std::thread::sleep(after);
        }
        End::Stop(after) => {
            wait_for_service(ledger)?;
            signal(node, after);
            let status = node.wait()?;
            return if status.success() {
                Ok(Ended::Stopped)
            } else {
                Err(format!("the node ended with {status}"))
            };
        }
        End::CutStop(after, then) => {
            wait_for_service(ledger)?;
            signal(node, after);
            std::thread::sleep(then);
            return if node.kill().success() {
                Ok(Ended::Stopped)
            } else {
                Ok(Ended::Killed { was_stopping: true })
            };
        }
    }
    is_ending.store(true, Ordering::SeqCst);
    node.kill();
    Ok(Ended::Killed {
        was_stopping: false,
    })
}

/// Waits until a client was served.
fn wait_for_service(ledger: &Mutex<Ledger<'_>>) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        {
            let ledger = ledger.lock().expect("no panic");
            if ledger.is_served() || ledger.violation().is_some() {
                return Ok(());
            }
        }
        if Instant::now() > deadline {
            return Err("the node does not come back to serve".to_owned());
        }
        std::thread::sleep(GLANCE);
    }
}

/// Lives at the same time: the nodes wait most of the time.
const AT_ONCE: usize = 5;

/// Clients of each node.
const CLIENTS: u64 = 3;
