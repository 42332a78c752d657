//! The threads of the load generator and the phases of a run.
//!
//! ```text
//!  conduct (calling thread):  Connect -> WarmUp -> Measure -> Over     (by its clock, or when all is sent)
//!  each load thread:          one runtime, its share of the connections, one Recorder
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use super::batch::Batch;
use super::client::{Client, Turn};
use super::flags::BenchFlags;
use super::key_walk::KeyWalk;
use super::process::{self, CpuTime, Process};
use super::recorder::Recorder;
use super::target::Target;
use super::workload::{Material, Workload};
use crate::failure::{Exit, Failure};
use crate::server_address::ServerAddress;
use crate::serving;

/// What is to be measured.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) address: ServerAddress,
    /// Whose CPU time is counted, if that is possible.
    pub(super) process: Option<Process>,
    pub(super) workload: Workload,
    pub(super) material: Material,
    pub(super) connections: u64,
    pub(super) pipeline: usize,
    pub(super) keys: u64,
    pub(super) threads: u64,
    pub(super) warm_up: Duration,
    pub(super) extent: Extent,
}

/// The outcome.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) recorder: Recorder,
    /// CPU time of the server, of the load generator, and of everything on this machine while it was measured.
    pub(super) server_cpu: Option<CpuTime>,
    pub(super) load_cpu_seconds: Option<f64>,
    pub(super) machine_cpu_seconds: Option<f64>,
}

/// The CPU times at one moment.
struct Clocks {
    server: Option<CpuTime>,
    load: Option<CpuTime>,
    machine_seconds: Option<f64>,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// After so many operations.
    Operations(u64),
    /// After that time.
    Time(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connect,
    WarmUp,
    Measure,
    Over,
}

/// What a load thread tells.
enum Event {
    Connected,
    Ended(Result<Recorder, Failure>),
}

impl Load {
    /// The load of these flags on a server; those times are for flags that give none.
    pub(super) fn new(
        flags: &BenchFlags,
        target: &Target,
        warm_up: Duration,
        duration: Duration,
    ) -> Self {
        let material = target.material(flags);
        let steps = flags.workload.steps(&material);
        let per_ten: usize = steps.iter().map(|step| step.per_ten).sum();
        let per_ten = u64::try_from(per_ten).unwrap_or(u64::MAX);
        let (warm_up, extent) = match flags.requests {
            Some(requests) => (
                Duration::ZERO,
                Extent::Operations(requests.saturating_mul(10).div_ceil(per_ten)),
            ),
            None => (warm_up, Extent::Time(flags.duration.unwrap_or(duration))),
        };
        Self {
            address: target.address.clone(),
            process: target.process.as_ref().ok().cloned(),
            workload: flags.workload,
            material,
            connections: flags.connections,
            pipeline: usize::try_from(flags.pipeline).unwrap_or(usize::MAX),
            keys: flags.keys,
            threads: flags.threads.min(flags.connections),
            warm_up: flags.warmup.unwrap_or(warm_up),
            extent,
        }
    }

    /// How the steps are called in the results, in order.
    pub(super) fn step_names(&self) -> Vec<&'static str> {
        let steps = self.workload.steps(&self.material);
        steps.iter().map(|step| step.name).collect()
    }

    /// Runs the load.
    ///
    /// # Errors
    ///
    /// When the server cannot be reached, and when the run does not count because an error or a wrong reply came.
    pub(super) fn conduct(&self) -> Result<Measured, Failure> {
        let phase = watch::Sender::new(Phase::Connect);
        let (sender, events) = mpsc::channel();
        for thread in 0..self.threads {
            self.start(thread, phase.subscribe(), sender.clone())?;
        }
        drop(sender);
        let mut ended = Vec::new();
        for _ in 0..self.threads {
            match events.recv() {
                Ok(Event::Connected) => {}
                Ok(Event::Ended(result)) => ended.push(result?),
                Err(_) => return Err(thread_lost()),
            }
        }
        // Without a warm-up no operation is sent that does not count.
        if !self.warm_up.is_zero() {
            phase.send_replace(Phase::WarmUp);
            watch_for(self.warm_up, &events, &mut ended)?;
        }
        let before = self.clocks();
        phase.send_replace(Phase::Measure);
        let mut after = None;
        if let Extent::Time(duration) = self.extent {
            watch_for(duration, &events, &mut ended)?;
            phase.send_replace(Phase::Over);
            after = Some(self.clocks());
        }
        while u64::try_from(ended.len()).is_ok_and(|ended| ended < self.threads) {
            match events.recv() {
                Ok(Event::Connected) => {}
                Ok(Event::Ended(result)) => ended.push(result?),
                Err(_) => return Err(thread_lost()),
            }
        }
        let after = after.unwrap_or_else(|| self.clocks());
        let mut ended = ended.into_iter();
        let mut recorder = ended.next().ok_or_else(thread_lost)?;
        ended.for_each(|other| recorder.merge(&other));
        let since = |after: Option<CpuTime>, before| Some(after?.since(before?));
        Ok(Measured {
            recorder,
            server_cpu: since(after.server, before.server),
            load_cpu_seconds: since(after.load, before.load).map(|cpu| cpu.all),
            machine_cpu_seconds: (after.machine_seconds)
                .zip(before.machine_seconds)
                .map(|(after, before)| after - before),
        })
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            server: self.process.as_ref().and_then(Process::cpu),
            load: Process::own().and_then(|own| own.cpu()),
            machine_seconds: process::machine_cpu_seconds(),
        }
    }

    fn start(
        &self,
        thread: u64,
        phase: watch::Receiver<Phase>,
        events: mpsc::Sender<Event>,
    ) -> Result<(), Failure> {
        let load = self.clone();
        let body = move || {
            let result = serving::runtime().and_then(|runtime| {
                LocalSet::new().block_on(&runtime, load.run(thread, phase, &events))
            });
            // Nobody listens any more once another thread has failed.
            let _ = events.send(Event::Ended(result));
        };
        let started = thread::Builder::new()
            .name(format!("load-{thread}"))
            .spawn(body);
        started
            .map(drop)
            .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))
    }

    /// A load thread.
    async fn run(
        &self,
        thread: u64,
        mut phase: watch::Receiver<Phase>,
        events: &mpsc::Sender<Event>,
    ) -> Result<Recorder, Failure> {
        let own = (0..self.connections).filter(|index| index % self.threads == thread);
        let mut clients = Vec::new();
        for index in own {
            clients.push(self.connect(index).await?);
        }
        let turn = Rc::new(Turn {
            is_over: Cell::new(false),
            operations_left: Cell::new(None),
            recorder: RefCell::new(Recorder::new(self.workload.steps(&self.material).len())?),
        });
        let _ = events.send(Event::Connected);
        // The channel closes when the run was given up elsewhere.
        let given_up = || Failure::internal("the run was given up");
        phase
            .wait_for(|phase| *phase != Phase::Connect)
            .await
            .map_err(|_| given_up())?;

        let mut running = JoinSet::new();
        for client in clients {
            running.spawn_local(client.run(Rc::clone(&turn)));
        }
        let follow = self.follow(&mut phase, &turn, thread);
        let all_ended = async {
            while let Some(ended) = running.join_next().await {
                match ended {
                    Ok(Ok(())) => {}
                    Ok(Err(reason)) => return Err(self.void(&reason)),
                    Err(error) => {
                        return Err(Failure::internal(format!(
                            "a task ended unexpectedly: {error}"
                        )));
                    }
                }
            }
            Ok(())
        };
        tokio::select! {
            result = all_ended => result?,
            () = follow => return Err(given_up()),
            silent = stalled(&turn) => {
                let reason = format!("no reply came for {} s", silent.as_secs());
                return Err(self.void(&reason));
            }
        }
        let mut recorder = turn.recorder.borrow().clone();
        recorder.stop();
        Ok(recorder)
    }

    async fn connect(&self, index: u64) -> Result<Client, Failure> {
        let mut material = self.material.clone();
        number_token(&mut material.token, index);
        let steps = self.workload.steps(&material);
        let batches = steps
            .iter()
            .map(|step| Batch::new(step, self.pipeline))
            .collect();
        let keys = if self.workload.needs_fresh_keys() {
            KeyWalk::fresh(index)
        } else {
            KeyWalk::over(index, self.keys / self.connections)
        };
        let client = Client::open(&self.address, batches, keys, self.pipeline).await;
        client.map_err(|reason| {
            Failure::unavailable(format!(
                "connection {} to {}: {reason}",
                index + 1,
                self.address
            ))
        })
    }

    fn void(&self, reason: &str) -> Failure {
        let address = &self.address;
        Failure::new(
            Exit::Void,
            format!("the run on {address} is void: {reason}"),
        )
    }

    /// Follows the phases; returns when the run was given up.
    async fn follow(&self, phase: &mut watch::Receiver<Phase>, turn: &Turn, thread: u64) {
        loop {
            let now = *phase.borrow_and_update();
            match now {
                Phase::Connect | Phase::WarmUp => {}
                Phase::Measure => {
                    turn.recorder.borrow_mut().start();
                    if let Extent::Operations(all) = self.extent {
                        let extra = u64::from(thread < all % self.threads);
                        turn.operations_left.set(Some(all / self.threads + extra));
                    }
                }
                Phase::Over => {
                    turn.recorder.borrow_mut().stop();
                    turn.is_over.set(true);
                }
            }
            if phase.changed().await.is_err() {
                match now {
                    // Nothing more comes, and the connections end by themselves.
                    Phase::Over => return std::future::pending().await,
                    _ => return,
                }
            }
        }
    }
}

/// Lets time pass unless a thread ends.
fn watch_for(
    duration: Duration,
    events: &mpsc::Receiver<Event>,
    ended: &mut Vec<Recorder>,
) -> Result<(), Failure> {
    let until = Instant::now() + duration;
    loop {
        match events.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Event::Connected) => {}
            Ok(Event::Ended(result)) => ended.push(result?),
            Err(RecvTimeoutError::Timeout) => return Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Err(thread_lost()),
        }
    }
}

/// Returns when no reply came for a long time.
async fn stalled(turn: &Turn) -> Duration {
    let mut seen = None;
    loop {
        let now = Some(turn.recorder.borrow().replies_total);
        if now == seen {
            return STALL;
        }
        seen = now;
        tokio::time::sleep(STALL).await;
    }
}

/// Makes a connection's token its own, as far as it has room for that.
fn number_token(token: &mut [u8], index: u64) {
    let digits = format!("{index:x}");
    for (place, digit) in token.iter_mut().rev().zip(digits.bytes().rev()) {
        *place = digit;
    }
}

fn thread_lost() -> Failure {
    Failure::internal("a load thread ended unexpectedly")
}

/// Redis answers others with BUSY after a script has run for 5 s: whoever is silent for twice as long on every
/// connection hangs.
const STALL: Duration = Duration::from_secs(10);
