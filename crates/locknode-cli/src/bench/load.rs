//! The threads of the load generator and the phases of a run.
//!
//! ```text
//!  conduct (calling thread):  Connect -> WarmUp -> Measure -> Over     (by its clock, or when all is sent)
//!  each load thread:          one runtime, its share of the connections, one Recorder
//! ```

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};

use super::batch::Batch;
use super::client::{Client, Sender, Turn};
use super::flags::BenchFlags;
use super::key_walk::KeyWalk;
use super::process::{self, CpuTime, Process};
use super::recorder::Recorder;
use super::target::Target;
use super::workload::Material;
use crate::failure::{Exit, Failure};
use crate::serving;

/// What is to be measured.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) flags: BenchFlags,
    pub(super) target: Target,
    pub(super) material: Material,
    pub(super) warm_up: Duration,
    pub(super) extent: Extent,
}

/// The outcome.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) recorder: Recorder,
    /// The CPU time used while it was measured.
    pub(super) used: Clocks,
}

/// The CPU times at one moment, or used between two, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clocks {
    pub(super) server: Option<CpuTime>,
    /// Of the load generator.
    pub(super) load: Option<CpuTime>,
    /// Of everything on this machine.
    pub(super) machine_seconds: Option<f64>,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// After this number of operations.
    Operations(u64),
    /// After this time.
    Time(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connect,
    WarmUp,
    Measure,
    Over,
}

/// What a load thread reports: nothing when it is connected, and at its end what it measured.
type Event = Result<Option<Recorder>, Failure>;

impl Clocks {
    fn since(self, earlier: Self) -> Self {
        let between = |after: Option<CpuTime>, before| Some(after?.since(before?));
        let machine_seconds = self.machine_seconds.zip(earlier.machine_seconds);
        Self {
            server: between(self.server, earlier.server),
            load: between(self.load, earlier.load),
            machine_seconds: machine_seconds.map(|(after, before)| after - before),
        }
    }
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
            flags: flags.clone(),
            target: target.clone(),
            material,
            warm_up: flags.warmup.unwrap_or(warm_up),
            extent,
        }
    }

    /// The names of the steps in the results, in order.
    pub(super) fn step_names(&self) -> Vec<&'static str> {
        let steps = self.flags.workload.steps(&self.material);
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
        let threads = self.flags.load_threads();
        for thread in 0..threads {
            self.start(thread, phase.subscribe(), sender.clone())?;
        }
        drop(sender);
        let mut ended = Vec::new();
        for _ in 0..threads {
            ended.extend(events.recv().map_err(|_| thread_lost())??);
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
        while u64::try_from(ended.len()).is_ok_and(|ended| ended < threads) {
            ended.extend(events.recv().map_err(|_| thread_lost())??);
        }
        let after = after.unwrap_or_else(|| self.clocks());
        let mut ended = ended.into_iter();
        let mut recorder = ended.next().ok_or_else(thread_lost)?;
        ended.for_each(|other| recorder.merge(&other));
        Ok(Measured {
            recorder,
            used: after.since(before),
        })
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            server: self.target.process.as_ref().ok().and_then(Process::cpu),
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
            let _ = events.send(result.map(Some));
        };
        serving::spawn(format!("load-{thread}"), body).map(drop)
    }

    /// A load thread.
    async fn run(
        &self,
        thread: u64,
        mut phase: watch::Receiver<Phase>,
        events: &mpsc::Sender<Event>,
    ) -> Result<Recorder, Failure> {
        let threads = self.flags.load_threads();
        let own = (0..self.flags.connections).filter(|index| index % threads == thread);
        let mut clients = Vec::new();
        for index in own {
            clients.push(self.connect(index).await?);
        }
        let turn = Rc::new(Turn {
            is_over: Cell::new(false),
            operations_left: Cell::new(None),
            recorder: RefCell::new(Recorder::new(self.step_names().len())?),
        });
        let _ = events.send(Ok(None));
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
        let BenchFlags {
            workload,
            connections,
            keys,
            ..
        } = self.flags;
        let pipeline = usize::try_from(self.flags.pipeline).unwrap_or(usize::MAX);
        let mut material = self.material.clone();
        number_token(&mut material.token, index);
        let steps = workload.steps(&material);
        let sender = Sender {
            batches: (steps.into_iter().map(|step| Batch::new(step, pipeline))).collect(),
            keys: if workload.needs_fresh_keys() {
                KeyWalk::fresh(index)
            } else {
                KeyWalk::over(index, keys / connections)
            },
            pipeline,
        };
        let address = &self.target.address;
        let opened = Client::open(address, sender).await;
        opened.map_err(|reason| {
            Failure::unavailable(format!("connection {} to {address}: {reason}", index + 1))
        })
    }

    fn void(&self, reason: &str) -> Failure {
        let address = &self.target.address;
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
                        let threads = self.flags.load_threads();
                        let extra = u64::from(thread < all % threads);
                        turn.operations_left.set(Some(all / threads + extra));
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
            Ok(event) => ended.extend(event?),
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

/// Redis answers others with BUSY after a script has run for 5 s: a server that is silent for twice as long on
/// every connection hangs.
const STALL: Duration = Duration::from_secs(10);
