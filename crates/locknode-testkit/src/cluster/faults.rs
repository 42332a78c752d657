//! What can go wrong in a cluster: faults as data, and the most common ones as methods.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::clock::MachineClock;
use super::error::{ClusterError, NotHere};
use super::{Cluster, Ordering};
use crate::fault::{Crash, Fault, Links, Members, Way, Who};
use crate::history::Event;
use crate::sim::Clocks;
use crate::span::{SimTime, nanos};

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
        self.inject(Fault::Crash(node, Crash::Kill)).await
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
        self.inject(Fault::Restart(node)).await
    }

    /// A node's process stands still for this time: it reads and sends nothing, and its clocks go on.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchNode`].
    pub fn pause(&self, node: u8, span: Duration) -> Result<(), ClusterError> {
        let who = Who::Node(node);
        self.begin(&Fault::Pause(who, span))?;
        self.stop(who, "pause", span);
        Ok(())
    }

    /// Cuts the links between these clients and these nodes, both ways: what is sent arrives when they are healed.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn partition(
        &self,
        clients: impl Into<Members>,
        nodes: impl Into<Members>,
    ) -> Result<(), ClusterError> {
        self.strike(Fault::Cut(Links::between(clients, nodes), Way::Both))
    }

    /// The next `count` replies of a node to each client are lost, and with each its connection.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn drop_replies(&self, node: u8, count: u8) -> Result<(), ClusterError> {
        let links = Links::between(Members::ALL, node);
        self.strike(Fault::Drop(links, Way::Replies, count))
    }

    /// Messages take longer by this span from now on, each way.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn delay(&self, links: Links, span: Duration) -> Result<(), ClusterError> {
        self.strike(Fault::Delay(links, span))
    }

    /// The next `count` replies on each of these links are missing, and the connection goes on: the client takes the next
    /// reply for the one it waits for. No network does so, but a proxy with a bug might.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NoSuchLink`].
    pub fn skip_replies(&self, links: Links, count: u8) -> Result<(), ClusterError> {
        self.check_links(links)?;
        self.inner.net.skip_replies(links, count);
        Ok(())
    }

    /// Whether the cluster can have the fault right now.
    ///
    /// # Errors
    ///
    /// [`ClusterError::NotHere`] with the reason, or which node, client or link there is not.
    pub fn check(&self, fault: &Fault) -> Result<(), ClusterError> {
        self.check_among(fault, self.playing())
    }

    /// The same while these clients play.
    pub(super) fn check_among(&self, fault: &Fault, playing: Members) -> Result<(), ClusterError> {
        match fault.who() {
            Some(Who::Node(node)) => drop(self.member(node)?),
            Some(Who::Client(client)) => drop(self.machine(client)?),
            None => fault
                .links()
                .map_or(Ok(()), |links| self.check_links(links))?,
        }
        match fault.form().why_simulated.or(self.why_not(fault, playing)) {
            Some(why) => Err(NotHere::new(fault, why).into()),
            None => Ok(()),
        }
    }

    /// Why nodes or clients that exist cannot have a fault.
    fn why_not(&self, fault: &Fault, playing: Members) -> Option<&'static str> {
        let client = match (fault.who(), *fault) {
            (_, Fault::Crash(node, how)) => return self.member(node).ok()?.why_not(how),
            (Some(Who::Client(client)), _) => client,
            _ => return None,
        };
        match fault {
            Fault::CrashClient(_) | Fault::Pause(..) if playing.has(client) => None,
            _ if playing.has(client) => Some(OWN_CLOCK),
            Fault::WallJump(..) => Some("clients do not read a wall clock of the cluster's"),
            Fault::Rate(..) | Fault::Slew(..) | Fault::Noise(..) => {
                let is_used = &self.machine(client).ok()?.is_used;
                (!is_used.load(Ordering::Acquire))
                    .then_some("this client does not read the clock that the cluster has for it")
            }
            _ => Some("the client does not play in a run; cut, hold or reset its links instead"),
        }
    }

    /// Checks a fault, and records it just before it strikes.
    fn begin(&self, fault: &Fault) -> Result<(), ClusterError> {
        self.check(fault)?;
        if let Some(recorder) = &self.inner.net.recorder {
            recorder.note(Event::Fault(fault.to_string().into()));
        }
        Ok(())
    }

    /// Does one fault of the kit's vocabulary, now.
    ///
    /// Without a data directory there is nothing that one way to [crash](Fault::Crash) would keep and another lose, and only
    /// [`Crash::CleanStop`] differs: the node answers what it has received. What befalls a disk befalls that of a node that
    /// is down too.
    ///
    /// # Errors
    ///
    /// As [`check`](Self::check), before anything is done: with a data directory there is no power failure, which needs a disk
    /// that forgets what was not synced, and no rollback before the first stop in order. [`ClusterError::Io`] when the
    /// directory of a node that crashes cannot be changed; the node has ended then. And what [`restart`](Self::restart) brings.
    ///
    /// # Cancel safety
    ///
    /// A node ends all the same, and its disk may have been spared; one that starts is down, or up; [`Fault::Calm`] may have
    /// started only some of the nodes. The others do not wait.
    pub async fn inject(&self, fault: Fault) -> Result<(), ClusterError> {
        self.begin(&fault)?;
        match fault {
            Fault::CrashClient(client) => {
                if let Some(player) = self.player(client) {
                    player.crash();
                }
            }
            Fault::Crash(node, how) => self.member(node)?.crash(how).await?,
            Fault::Restart(node) => self.start(node).await?,
            // No node has a replica: it is lost.
            Fault::Promote(node) => self.member(node)?.crash(Crash::Kill).await?,
            Fault::MaxTtl(node, max_ttl) => self.member(node)?.set_max_ttl(max_ttl),
            Fault::Calm => self.calm().await?,
            Fault::Pause(who, span) => self.stop(who, "pause", span),
            Fault::Suspend(who, span) => {
                self.stop(who, "suspend", span);
                self.stop_clocks(who, span, Clocks::suspend, Clocks::wake)?;
            }
            Fault::Freeze(who, span) => {
                self.stop(who, "freeze", span);
                self.stop_clocks(who, span, Clocks::freeze, Clocks::thaw)?;
            }
            Fault::Rate(who, ppm) => self.bend(who, |clocks, now| clocks.set_rate(now, ppm))?,
            Fault::Slew(who, ppm) => self.bend(who, |clocks, now| clocks.set_slew(now, ppm))?,
            Fault::Noise(who, span) => self.bend(who, |clocks, _| clocks.set_noise(nanos(span)))?,
            Fault::WallJump(who, ms) => self.bend(who, |clocks, now| clocks.jump_wall(now, ms))?,
            fault => self.befall(fault),
        }
        Ok(())
    }

    /// Something befalls links. Nothing here waits.
    fn strike(&self, fault: Fault) -> Result<(), ClusterError> {
        self.begin(&fault)?;
        self.befall(fault);
        Ok(())
    }

    fn befall(&self, fault: Fault) {
        if let Some(links) = fault.links() {
            self.inner.net.strike(links, fault);
        }
    }

    async fn start(&self, node: u8) -> Result<(), ClusterError> {
        let started = self.member(node)?.start().await;
        if let (Err(error), Some(recorder)) = (&started, &self.inner.net.recorder) {
            let why = error.to_string().into();
            recorder.note(Event::StaysDown { node, why });
        }
        started
    }

    async fn calm(&self) -> Result<(), ClusterError> {
        self.inner.net.calm();
        let clients = (0..self.clients()).map(Who::Client);
        for who in clients.chain((0..self.nodes()).map(Who::Node)) {
            self.bend(who, |clocks, now| {
                clocks.set_rate(now, 0);
                clocks.set_noise(0);
            })?;
        }
        for node in 0..self.nodes() {
            self.start(node).await?;
        }
        Ok(())
    }

    /// Changes clocks, and records what the process that goes by them sees of it.
    fn bend(
        &self,
        who: Who,
        change: impl FnOnce(&mut Clocks, SimTime),
    ) -> Result<(), ClusterError> {
        if self.clock(who)?.change(change) {
            self.record_clock(who);
        }
        Ok(())
    }

    /// A process stands still for a time.
    fn stop(&self, who: Who, how: &'static str, span: Duration) {
        if let Some(recorder) = &self.inner.net.recorder {
            recorder.note_with(|now| Event::Stopped {
                who,
                how,
                until: now + span,
            });
        }
        match who {
            Who::Node(node) => self.inner.net.still(node, span),
            Who::Client(client) => {
                if let Some(player) = self.player(client) {
                    player.pause(span);
                }
            }
        }
    }

    /// Stops clocks for a time, and records what the process that goes by them sees of it.
    fn stop_clocks(
        &self,
        who: Who,
        span: Duration,
        stop: fn(&mut Clocks, SimTime),
        go_on: fn(&mut Clocks, SimTime),
    ) -> Result<(), ClusterError> {
        if self.clock(who)?.stop(span, stop, go_on) {
            self.record_clock(who);
        }
        // A cluster without handles ends before that.
        let inner = Arc::downgrade(&self.inner);
        self.inner.runtime.spawn(async move {
            sleep(span).await;
            if let Some(inner) = inner.upgrade() {
                Self { inner }.record_clock(who);
            }
        });
        Ok(())
    }

    fn record_clock(&self, who: Who) {
        let (Some(recorder), Ok(clock)) = (&self.inner.net.recorder, self.clock(who)) else {
            return;
        };
        recorder.note_with(|now| {
            let (ahead, per_million) = clock.view();
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

    fn check_links(&self, links: Links) -> Result<(), ClusterError> {
        let has_any = self.inner.net.has_any(links);
        has_any.then_some(()).ok_or(ClusterError::NoSuchLink)
    }
}

/// With another clock a belief would seem to end when it does not.
const OWN_CLOCK: &str =
    "a client that plays in a run uses the clock of the recorder, which runs right";
