//! Plays a scenario on real nodes: its faults and its clients, each step at its time.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use redlock_client::FenceCheck;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::error::{ClusterError, NotHere};
use super::player::Player;
use super::recorder::Recorder;
use super::{ClientMachine, Cluster};
use crate::fault::{Crash, Fault, Members};
use crate::scenario::{Action, ClientAction, ClientKind, Scenario, Trigger};

/// The clients that play in a run, for as long as it lasts.
struct Playing<'c> {
    cluster: &'c Cluster,
    clients: Members,
}

impl Cluster {
    /// Plays a scenario: its faults, and its clients, each of which is the shipped client behind links of its own. Returns when the
    /// scenario's time is over, and then releases the locks that its clients still hold. A restart or crash that takes longer
    /// than the next step's time delays that step.
    ///
    /// The clients note in the cluster's [`Recorder`](super::ClusterBuilder::record) what they believe, for the checkers. During
    /// the run a [crash](Fault::CrashClient) and a [pause](Fault::Pause) can strike them, also by [`inject`](Self::inject); a
    /// client that has crashed starts again after half a second. A lock that is left to another client, to
    /// [take over](crate::Ending::HandOver) or to [release](crate::Ending::ReleaseByNext), is left to its TTL.
    ///
    /// The nodes are those that were built: give the scenario's set-up to
    /// [`ClusterBuilder::setup`](super::ClusterBuilder::setup). The run itself uses its time, its drift, and its longest TTL: a
    /// client gives up a silent connection after a fifth of it. Disks, shards and dialects of a set-up are for simulated nodes.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use locknode_testkit::cluster::{Cluster, Recorder};
    /// use locknode_testkit::{Scenario, Swarm, ViolationKind, check_all};
    ///
    /// #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// async fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     // Or `Scenario::parse` of a file.
    ///     let scenario = Swarm::chaos(Duration::from_secs(1)).scenario(7);
    ///     let recorder = Arc::new(Recorder::new(5, 8));
    ///     let builder = Cluster::builder().setup(&scenario.setup).in_memory();
    ///     let cluster = builder.record(Arc::clone(&recorder)).build().await?;
    ///     cluster.run(&scenario).await?;
    ///
    ///     let history = recorder.history();
    ///     assert!(history.windows().len() > 10, "the lock was acquired again and again");
    ///     let violations = check_all(&history, &scenario);
    ///     assert!(violations.iter().all(|it| it.kind != ViolationKind::Exclusion));
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`check_run`](Self::check_run) before the first step, and [`ClusterError::Config`] if one of its clients plays in
    /// another run; later, those of crashes and restarts. Whether a rollback is possible is checked when its time comes.
    ///
    /// # Cancel safety
    ///
    /// The steps so far have taken place. The locks of its clients are released.
    pub async fn run(&self, scenario: &Scenario) -> Result<(), ClusterError> {
        let steps = self.steps(scenario)?;
        let _playing = Playing::of(self, scenario)?;
        // Ends its tasks when it is dropped.
        let mut acts = JoinSet::new();
        let start = Instant::now();
        let run_for = scenario.setup.run_for;
        for (at, action) in steps.into_iter().take_while(|(at, _)| *at <= run_for) {
            sleep_until(start + at).await;
            match action {
                Action::Fault(fault) => self.inject(*fault).await?,
                Action::Client(client, act) => {
                    if let Some(player) = self.player(*client) {
                        acts.spawn(player.act(act.clone()));
                    }
                }
            }
        }
        sleep_until(start + run_for).await;
        acts.shutdown().await;
        Ok(())
    }

    /// Whether [`run`](Self::run) can play a scenario.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotHere`] with the reason, for a planted bug, the plain client, replicas, a client that renews, a step
    /// without a time, and faults that [`check`](Self::check) refuses. Otherwise which node, client or link does not exist.
    pub fn check_run(&self, scenario: &Scenario) -> Result<(), ClusterError> {
        self.steps(scenario).map(drop)
    }

    /// The steps with their times, in order.
    fn steps<'s>(
        &self,
        scenario: &'s Scenario,
    ) -> Result<Vec<(Duration, &'s Action)>, ClusterError> {
        let setup = &scenario.setup;
        if setup.client != ClientKind::Shipped {
            const WHY: &str = "only the shipped client plays on real nodes";
            return Err(NotHere::new(&format!("client {}", setup.client.name()), WHY).into());
        }
        if let Some(bug) = setup.bug {
            const WHY: &str = "real nodes and clients have no planted bugs";
            return Err(NotHere::new(&format!("bug {bug}"), WHY).into());
        }
        if setup.replica_lag.is_some() {
            return Err(NotHere::new(&"replica", "real nodes have no replicas").into());
        }
        let clients = clients(scenario);
        let mut steps = Vec::new();
        for step in &scenario.steps {
            let refuse = |why| Err(NotHere::new(step, why).into());
            let Trigger::At(at) = step.when else {
                return refuse(
                    "on real nodes each step needs a time (at 1.5s do ...): they do not stop for a fault",
                );
            };
            match &step.what {
                // Whether there is a state to go back to depends on the steps before.
                Action::Fault(Fault::Crash(node, Crash::Rollback)) => drop(self.member(*node)?),
                Action::Fault(fault) => self.check_among(fault, clients)?,
                Action::Client(client, act) => {
                    self.machine(*client)?;
                    match act {
                        ClientAction::Lock(lock) if lock.renew_every.is_some() => {
                            return refuse(
                                "the history would not show when a real client renews by itself; let it `extend` instead",
                            );
                        }
                        ClientAction::Ask { node, .. } => drop(self.member(*node)?),
                        _ => {}
                    }
                }
            }
            steps.push((Duration::from_nanos(at.as_nanos()), &step.what));
        }
        // Steps of the same moment keep the order of the scenario.
        steps.sort_by_key(|(at, _)| *at);
        Ok(steps)
    }

    /// The client if it plays in a run.
    pub(super) fn player(&self, client: u8) -> Option<Arc<Player>> {
        self.machine(client).ok()?.player().clone()
    }

    /// The clients that play in runs.
    pub(super) fn playing(&self) -> Members {
        let clients = 0..self.clients();
        clients
            .filter(|client| self.player(*client).is_some())
            .collect()
    }
}

impl ClientMachine {
    fn player(&self) -> MutexGuard<'_, Option<Arc<Player>>> {
        self.player.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'c> Playing<'c> {
    fn of(cluster: &'c Cluster, scenario: &Scenario) -> Result<Self, ClusterError> {
        let unseen = || Arc::new(Recorder::new(cluster.nodes(), cluster.clients()));
        let recorder = cluster.inner.net.recorder.clone().unwrap_or_else(unseen);
        let resource = Arc::new(FenceCheck::in_memory());
        let mut playing = Self {
            cluster,
            clients: Members::NONE,
        };
        for client in clients(scenario).iter() {
            let player = Player::new(cluster, client, &scenario.setup, &recorder, &resource)?;
            let mut place = cluster.machine(client)?.player();
            if place.is_some() {
                let problem = format!("client {client} plays in another run: wait until that ends");
                return Err(ClusterError::Config(problem));
            }
            *place = Some(Arc::new(player));
            playing.clients = playing.clients.with(client);
        }
        Ok(playing)
    }
}

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        let clients = self.clients.iter();
        for machine in clients.flat_map(|client| self.cluster.machine(client)) {
            *machine.player() = None;
        }
    }
}

/// The clients that have steps in a scenario.
fn clients(scenario: &Scenario) -> Members {
    let steps = scenario.steps.iter();
    steps
        .filter_map(|step| match step.what {
            Action::Client(client, _) => Some(client),
            Action::Fault(_) => None,
        })
        .collect()
}
