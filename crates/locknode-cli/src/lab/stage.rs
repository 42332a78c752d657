//! Where faults and clients meet: real nodes, the lab's clients, and a history of it all.

use std::sync::Arc;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, ClusterError, NotHere, Recorder};
use locknode_testkit::history::Event;
use locknode_testkit::{Crash, Deed, Fault, Scenario, Trigger, Who};
use redlock_client::{Builder, FenceCheck};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::aside::Asides;
use super::noting::Noting;
use super::worker::Worker;
use crate::failure::Failure;

/// Nodes, clients, and what is written down of them.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) cluster: Cluster,
    pub(super) recorder: Arc<Recorder>,
    workers: Vec<Worker>,
}

impl Stage {
    /// A stage for as many clients as the cluster has links for, each set up by `tune`.
    ///
    /// # Errors
    ///
    /// When the client cannot be built.
    pub(super) fn new(
        cluster: Cluster,
        recorder: Arc<Recorder>,
        tune: impl Fn(Builder) -> Builder,
    ) -> Result<Self, Failure> {
        let resource = Arc::new(FenceCheck::in_memory());
        let mut workers = Vec::new();
        for client in 0..cluster.clients() {
            let builder = cluster.redlock(client).map_err(|error| failed(&error))?;
            let nodes = cluster
                .addresses_for(client)
                .map_err(|error| failed(&error))?;
            let asides = Asides::new(Arc::clone(&recorder), nodes.clone());
            let builder = builder.connector(Arc::new(Noting::new(Arc::clone(&recorder), nodes)));
            let redlock = tune(builder)
                .build()
                .map_err(|error| Failure::internal(error.to_string()))?;
            let (recorder, resource) = (Arc::clone(&recorder), Arc::clone(&resource));
            workers.push(Worker::new(client, redlock, asides, recorder, resource));
        }
        Ok(Self {
            cluster,
            recorder,
            workers,
        })
    }

    /// Does a fault, now.
    ///
    /// # Errors
    ///
    /// When there cannot be such a fault here, or a node does not start.
    pub(super) async fn perform(&self, fault: Fault) -> Result<(), ClusterError> {
        let told = |fault: Fault| Event::Fault(fault.to_string().into());
        match fault {
            Fault::CrashClient(client) => {
                let worker = self.worker(client)?;
                self.recorder.note(told(fault));
                worker.die();
            }
            Fault::Pause(who @ Who::Client(client), span) => {
                let worker = self.worker(client)?;
                self.recorder.note(told(fault));
                stopped(&self.recorder, who, "pause", span);
                worker.stand_still(span);
            }
            _ => {
                self.check(&fault)?;
                inject(&self.cluster, &self.recorder, fault).await?;
            }
        }
        Ok(())
    }

    /// Plays a scenario: its faults and what its clients do, each in its time.
    ///
    /// # Errors
    ///
    /// Before anything is done, when there is a step that cannot be done here; later, when a node does not start.
    pub(super) async fn play(&self, scenario: &Scenario) -> Result<(), Failure> {
        let mut steps = self.steps(scenario)?;
        steps.sort_by_key(|(at, _)| *at);
        let start = Instant::now();
        let end = start + scenario.setup.run_for;
        let mut acts = JoinSet::new();
        for (at, deed) in steps {
            if start + at > end {
                break;
            }
            sleep_until(start + at).await;
            match deed {
                Deed::Fault(fault) => self.perform(*fault).await.map_err(|error| failed(&error))?,
                Deed::Act(client, act) => {
                    if let Ok(worker) = self.worker(*client) {
                        acts.spawn(worker.clone().act(act.clone()));
                    }
                }
            }
        }
        sleep_until(end).await;
        Ok(())
    }

    /// What a scenario does and when, in its order.
    ///
    /// # Errors
    ///
    /// When there is a step that cannot be done here.
    pub(super) fn steps<'s>(
        &self,
        scenario: &'s Scenario,
    ) -> Result<Vec<(Duration, &'s Deed)>, Failure> {
        let mut steps = Vec::new();
        for step in &scenario.steps {
            let Trigger::At(at) = step.when else {
                return Err(Failure::usage(format!(
                    "`{step}` cannot be played by the lab: real nodes do not wait for a fault, so it knows times only (at \
                     1.5s do ...)"
                )));
            };
            match &step.what {
                Deed::Fault(fault) => self.check(fault).map_err(|error| failed(&error))?,
                Deed::Act(client, _) => drop(self.worker(*client).map_err(|error| failed(&error))?),
            }
            steps.push((Duration::from_nanos(at.as_nanos()), &step.what));
        }
        Ok(steps)
    }

    /// Whether a fault can be done here, as far as that is known before.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(super) fn check(&self, fault: &Fault) -> Result<(), ClusterError> {
        match *fault {
            Fault::CrashClient(client) | Fault::Pause(Who::Client(client), _) => {
                self.worker(client).map(drop)
            }
            // By such a clock a belief would seem to end when it does not: overlaps would be hidden, or made up.
            Fault::Rate(Who::Client(client), _)
            | Fault::Slew(Who::Client(client), _)
            | Fault::Noise(Who::Client(client), _) => {
                self.worker(client)?;
                Err(NotHere::fault(fault, OWN_CLOCK).into())
            }
            // What there is to go back to shows when its time comes.
            Fault::Crash(_, Crash::Rollback) => Ok(()),
            _ => self.cluster.check(fault),
        }
    }

    fn worker(&self, client: u8) -> Result<&Worker, ClusterError> {
        let worker = self.workers.get(usize::from(client));
        worker.ok_or(ClusterError::NoSuchClient(client))
    }
}

/// Does a fault of nodes and links, and writes it down.
///
/// # Errors
///
/// As [`Cluster::inject`].
pub(super) async fn inject(
    cluster: &Cluster,
    recorder: &Recorder,
    fault: Fault,
) -> Result<(), ClusterError> {
    cluster.check(&fault)?;
    recorder.note(Event::Fault(fault.to_string().into()));
    match fault {
        Fault::Pause(who, span) => stopped(recorder, who, "pause", span),
        Fault::Suspend(who, span) => stopped(recorder, who, "suspend", span),
        Fault::Freeze(who, span) => stopped(recorder, who, "freeze", span),
        _ => {}
    }
    cluster.inject(fault).await
}

fn stopped(recorder: &Recorder, who: Who, how: &'static str, span: Duration) {
    recorder.note_with(|now| Event::Stopped {
        who,
        how,
        until: now + span,
    });
}

/// What is wrong with a cluster as the end of the command.
pub(super) fn failed(error: &ClusterError) -> Failure {
    match error {
        ClusterError::Io(..) | ClusterError::Port(..) | ClusterError::Open(..) => {
            Failure::unavailable(error.to_string())
        }
        _ => Failure::usage(error.to_string()),
    }
}

/// Why no client has a clock that runs wrong.
const OWN_CLOCK: &str = "the lab measures what its clients believe by its own clock; `locknode sim --replay FILE` plays \
     clocks of clients";
