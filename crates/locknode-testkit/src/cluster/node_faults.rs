//! What can be done to the nodes of a cluster, and faults as data.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::clock::MachineClock;
use super::error::{ClusterError, NotHere};
use super::{Cluster, Ordering};
use crate::fault::{Crash, Fault, Links, Who};
use crate::history::Event;
use crate::scenario::{Deed, Scenario, Trigger};
use crate::span::SimTime;

impl Cluster {
    /// Kills a node: its connections break, and what is not on its disk is lost. Nothing happens to a node that is down.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchNode`].
    ///
    /// # Cancel safety
    ///
    /// The node dies all the same.
    pub async fn crash(&self, node: u8) -> Result<(), ClusterError> {
        self.crash_with(node, Crash::Kill).await
    }

    /// Ends a node in one of the ways in which nodes end. Without a data directory there is nothing that one way would keep
    /// and another lose, and only [`Crash::CleanStop`] differs. What befalls a disk befalls that of a node that is down
    /// too.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotHere`] with a data directory: power failures need a disk that forgets what was not synced, and a
    /// rollback needs an earlier stop in order. [`ClusterError::Io`] when the directory cannot be changed; the node has
    /// ended then.
    ///
    /// # Cancel safety
    ///
    /// The node ends all the same; its disk may have been spared.
    pub async fn crash_with(&self, node: u8, how: Crash) -> Result<(), ClusterError> {
        self.check(&Fault::Crash(node, how))?;
        self.member(node)?.crash(how).await
    }

    /// Asks a node to end, which answers what it has received and, with a data directory, keeps its locks.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchNode`].
    ///
    /// # Cancel safety
    ///
    /// The node ends all the same.
    pub async fn clean_stop(&self, node: u8) -> Result<(), ClusterError> {
        self.crash_with(node, Crash::CleanStop).await
    }

    /// Starts a node that is down, at its old addresses. When this returns it can be connected to; whether it takes part
    /// in locks is up to its restart guard. Nothing happens to a node that is up.
    ///
    /// # Errors
    ///
    /// [`ClusterError::Open`] when its data directory is damaged or in use, [`ClusterError::Ended`] after a shutdown.
    ///
    /// # Cancel safety
    ///
    /// The node is down, or up.
    pub async fn restart(&self, node: u8) -> Result<(), ClusterError> {
        self.member(node)?.start().await
    }

    /// A node's process stands still for so long: nothing is read or said, and its clocks go on.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchNode`].
    pub fn pause(&self, node: u8, span: Duration) -> Result<(), ClusterError> {
        self.member(node)?;
        self.inner.net.still(node, span);
        Ok(())
    }

    /// Whether the cluster can have the fault right now.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotHere`] with the reason, or which node, client or link there is not.
    pub fn check(&self, fault: &Fault) -> Result<(), ClusterError> {
        let not_here = |why| Err(NotHere::fault(fault, why).into());
        match *fault {
            Fault::Crash(node, how) => match self.member(node)?.why_not(how) {
                Some(why) => not_here(why),
                None => Ok(()),
            },
            Fault::Restart(node) | Fault::Promote(node) | Fault::MaxTtl(node, _) => {
                self.member(node).map(drop)
            }
            Fault::CrashIn(node, ..) => {
                self.member(node)?;
                not_here("a process of this machine ends wherever it happens to be")
            }
            Fault::Disk(node, _) => {
                self.member(node)?;
                not_here("the nodes' disks, where they have one, are directories of this machine")
            }
            Fault::CrashClient(client)
            | Fault::Pause(Who::Client(client), _)
            | Fault::Suspend(Who::Client(client), _)
            | Fault::Freeze(Who::Client(client), _) => {
                self.machine(client)?;
                not_here(
                    "the cluster does not run its clients; cut, hold or reset their links instead",
                )
            }
            Fault::WallJump(Who::Client(client), _) => {
                self.machine(client)?;
                not_here("clients do not read a wall clock of the cluster's")
            }
            Fault::Rate(Who::Client(client), _)
            | Fault::Slew(Who::Client(client), _)
            | Fault::Noise(Who::Client(client), _) => {
                match self.machine(client)?.is_used.load(Ordering::Acquire) {
                    true => Ok(()),
                    false => {
                        not_here("this client does not read the clock that the cluster has for it")
                    }
                }
            }
            Fault::Pause(Who::Node(node), _)
            | Fault::Suspend(Who::Node(node), _)
            | Fault::Freeze(Who::Node(node), _)
            | Fault::Rate(Who::Node(node), _)
            | Fault::Slew(Who::Node(node), _)
            | Fault::Noise(Who::Node(node), _)
            | Fault::WallJump(Who::Node(node), _) => self.member(node).map(drop),
            Fault::Cut(links, _)
            | Fault::Heal(links)
            | Fault::Delay(links, _)
            | Fault::Hold(links, _)
            | Fault::Release(links, _)
            | Fault::Drop(links, ..)
            | Fault::Late(links, ..)
            | Fault::Duplicate(links, _)
            | Fault::Reset(links) => self.check_links(links),
            Fault::Calm => Ok(()),
        }
    }

    /// Does one fault of the kit's vocabulary, now.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check), before anything is done; and what crashes and restarts bring.
    ///
    /// # Cancel safety
    ///
    /// Crashes and restarts as there; [`Fault::Calm`] may have started only some of the nodes. The others do not wait.
    pub async fn inject(&self, fault: Fault) -> Result<(), ClusterError> {
        self.check(&fault)?;
        match fault {
            Fault::Crash(node, how) => self.crash_with(node, how).await?,
            Fault::Restart(node) => self.restart(node).await?,
            // No node has a replica: it is lost.
            Fault::Promote(node) => self.crash(node).await?,
            Fault::MaxTtl(node, max_ttl) => self.member(node)?.set_max_ttl(max_ttl),
            Fault::Calm => self.calm().await?,
            Fault::Pause(Who::Node(node), span) => self.pause(node, span)?,
            Fault::Suspend(who @ Who::Node(node), span) => {
                self.bend(who, |clock| clock.suspend(span))?;
                self.record_waking(who, span);
                self.pause(node, span)?;
            }
            Fault::Freeze(who @ Who::Node(node), span) => {
                self.bend(who, |clock| clock.freeze(span))?;
                self.record_waking(who, span);
                self.pause(node, span)?;
            }
            Fault::Rate(who, ppm) => self.bend(who, |clock| clock.set_rate(ppm))?,
            Fault::Slew(who, ppm) => self.bend(who, |clock| clock.set_slew(ppm))?,
            Fault::Noise(who, noise) => self.clock(who)?.set_noise(noise),
            Fault::WallJump(who, by_ms) => self.clock(who)?.jump_wall(by_ms),
            Fault::Cut(links, way) => self.cut(links, way)?,
            Fault::Heal(links) => self.heal_links(links)?,
            Fault::Delay(links, span) => self.delay(links, span)?,
            Fault::Hold(links, way) => self.hold(links, way)?,
            Fault::Release(links, way) => self.release(links, way)?,
            Fault::Drop(links, way, count) => self.drop_messages(links, way, count)?,
            Fault::Late(links, way, count, span) => self.late(links, way, count, span)?,
            Fault::Duplicate(links, count) => self.duplicate(links, count)?,
            Fault::Reset(links) => self.reset(links)?,
            // Refused above.
            Fault::CrashClient(_)
            | Fault::CrashIn(..)
            | Fault::Disk(..)
            | Fault::Pause(Who::Client(_), _)
            | Fault::Suspend(Who::Client(_), _)
            | Fault::Freeze(Who::Client(_), _) => {}
        }
        Ok(())
    }

    /// Nothing goes wrong any more: links are healed and let go, clocks run right from here on, and nodes that are down start.
    /// A pause goes on until its end.
    ///
    /// # Errors
    ///
    /// As [`restart`](Self::restart).
    ///
    /// # Cancel safety
    ///
    /// Some of the nodes may not have been started.
    pub async fn calm(&self) -> Result<(), ClusterError> {
        self.inner.net.calm();
        for client in (0..).take(self.inner.machines.len()) {
            self.bend(Who::Client(client), MachineClock::calm)?;
        }
        for (node, member) in (0..).zip(&self.inner.members) {
            self.bend(Who::Node(node), MachineClock::calm)?;
            member.start().await?;
        }
        Ok(())
    }

    /// Plays the faults of a scenario, each at its time from now on; returns after the last one. What its clients do is left
    /// to yours. A restart or crash that takes longer than the next fault's time makes that one late.
    ///
    /// # Errors
    ///
    /// Before anything is done, [`ClusterError::NotHere`] for a fault that the cluster cannot have or that waits for something
    /// to happen, and whatever [`check`](Self::check) finds; later, what crashes and restarts bring. A rollback is found
    /// out when its time comes.
    ///
    /// # Cancel safety
    ///
    /// The faults so far were done.
    pub async fn run(&self, scenario: &Scenario) -> Result<(), ClusterError> {
        let mut faults = Vec::new();
        for step in &scenario.steps {
            let Deed::Fault(fault) = step.what else {
                continue;
            };
            let Trigger::At(at) = step.when else {
                const WHY: &str =
                    "only the simulated world sees what happens before anybody else does";
                return Err(NotHere::new(step, WHY).into());
            };
            if matches!(fault, Fault::Promote(_)) && scenario.setup.replica_lag.is_some() {
                return Err(NotHere::fault(&fault, "the nodes have no replicas").into());
            }
            if !matches!(fault, Fault::Crash(_, Crash::Rollback)) {
                self.check(&fault)?;
            }
            faults.push((at, fault));
        }
        // Of the same moment, those that come first in the scenario come first.
        faults.sort_by_key(|(at, _)| *at);
        let start = Instant::now();
        for (at, fault) in faults {
            sleep_until(start + Duration::from_nanos(at.as_nanos())).await;
            self.inject(fault).await?;
        }
        Ok(())
    }

    /// Changes clocks, and records what the process that goes by them sees of it.
    fn bend(&self, who: Who, change: impl FnOnce(&MachineClock)) -> Result<(), ClusterError> {
        let clock = self.clock(who)?;
        let (_, pace) = clock.face(who);
        change(clock);
        if clock.face(who).1 != pace {
            self.record_clock(who);
        }
        Ok(())
    }

    /// Records when the clocks go on.
    fn record_waking(&self, who: Who, span: Duration) {
        if self.inner.net.recorder.is_none() {
            return;
        }
        // A cluster that nobody has any more ends before that.
        let inner = Arc::downgrade(&self.inner);
        self.inner.runtime.spawn(async move {
            sleep(span).await;
            if let Some(inner) = inner.upgrade() {
                Self { inner }.record_clock(who);
            }
        });
    }

    fn record_clock(&self, who: Who) {
        let (Some(recorder), Ok(clock)) = (&self.inner.net.recorder, self.clock(who)) else {
            return;
        };
        recorder.note_with(|now| {
            let (ahead, per_million) = clock.face(who);
            let shows = i128::from(now.as_nanos()) + ahead;
            Event::Clock {
                who,
                shows: SimTime::from_nanos(u64::try_from(shows).unwrap_or(0)),
                per_million,
            }
        });
    }

    fn clock(&self, who: Who) -> Result<&MachineClock, ClusterError> {
        Ok(match who {
            Who::Node(node) => &self.member(node)?.clock,
            Who::Client(client) => &self.machine(client)?.clock,
        })
    }

    pub(super) fn check_links(&self, links: Links) -> Result<(), ClusterError> {
        match self.inner.net.has_any(links) {
            true => Ok(()),
            false => Err(ClusterError::NoSuchLink),
        }
    }
}
