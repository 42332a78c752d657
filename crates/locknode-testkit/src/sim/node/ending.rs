//! How a node's process ends: at once, in the middle of something, or in order; and what that does to its disk and its
//! machine.

use locknode_engine::durable::Machine;

use super::disk::{Job, close};
use super::{BACK_NS, CONTAINER_NAMESPACE, Run, SimNode, UPTIME_NS, fresh_id};
use crate::bug::Bug;
use crate::fault::{Crash, Phase};
use crate::faulty_disk::{dice, keep_none};
use crate::sim::oracle::{Pardon, Since};
use crate::sim::recorder::Recorder;
use crate::span::SimTime;

/// How far an orderly stop has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// What was received is answered.
    Draining,
    /// What is left is written.
    Closing {
        /// The work is done that the disk was doing when the connections had closed.
        is_joined: bool,
    },
}

impl SimNode {
    /// Whether the process has ended in the middle of what it did with its disk.
    pub(crate) const fn is_struck(&self) -> bool {
        self.struck.is_some()
    }

    /// In which phase and how, if it has.
    pub(crate) fn take_struck(&mut self) -> Option<(Phase, Crash)> {
        self.struck.take()
    }

    /// The process is to end in the middle of this phase.
    pub(crate) fn doom(&mut self, phase: Phase, after: u16, how: Crash) {
        self.doom = Some((phase, after, how));
    }

    pub(super) fn arm(&self, phase: Phase) {
        if let Some((doomed, after, _)) = self.doom
            && doomed == phase
        {
            self.disk.stop(after.into());
        }
    }

    /// In which phase and how the process has ended, if it was to end in this one.
    pub(super) fn disarm(&mut self, phase: Phase) -> Option<(Phase, Crash)> {
        let (doomed, after, how) = self.doom?;
        if doomed != phase {
            return None;
        }
        match self.disk.go_on() {
            Some(left) => {
                let left = u16::try_from(left).unwrap_or(after);
                self.doom = Some((phase, left, how));
                None
            }
            None => {
                (self.doom, self.is_torn) = (None, true);
                Some((phase, how))
            }
        }
    }

    /// Asks the process to end in order: it accepts no more connections. Returns how far it had come with that before.
    pub(crate) fn ask_to_stop(&mut self) -> Option<Stage> {
        let run = self.run.as_mut()?;
        run.stop.replace(run.stop.unwrap_or(Stage::Draining))
    }

    /// How far its orderly stop has come.
    pub(crate) fn stage(&self) -> Option<Stage> {
        self.run.as_ref()?.stop
    }

    /// All connections have closed: the node grants nothing any more, and writes what is left. Returns whether there is a disk.
    pub(crate) fn close(&mut self) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        run.engine.close();
        let is_joined = run.in_flight.is_none();
        run.stop = Some(Stage::Closing { is_joined });
        // The server does not wait until a full disk is tried again.
        self.disk_rests_until = SimTime::ZERO;
        run.store.is_some()
    }

    /// The disk has finished its work: whether the process that stops has nothing more to do. It gives up what it cannot
    /// write, but tries once more what was under way when its connections had closed.
    pub(crate) fn has_stopped(&mut self, done: Option<bool>) -> bool {
        let Some(run) = &mut self.run else {
            return false;
        };
        let is_joined = run.stop.replace(Stage::Closing { is_joined: true })
            == Some(Stage::Closing { is_joined: true });
        run.store.is_none() || (done == Some(false) && is_joined)
    }

    /// Whether its process has no connections any more, and writes what is left.
    pub(crate) fn is_closing(&self) -> bool {
        self.run.as_ref().is_some_and(Run::is_closing)
    }

    /// The process ends. Returns how it did, and in which phase, if it ended before in the middle of one.
    pub(crate) fn crash(
        &mut self,
        now: SimTime,
        how: Crash,
        recorder: &Recorder,
    ) -> (Crash, Option<Phase>) {
        self.settle(now, recorder);
        self.note_ceiling();
        let struck = self.take_struck();
        let (phase, how) = struck.map_or((None, how), |(phase, how)| (Some(phase), how));
        self.die(now, how);
        (how, phase)
    }

    fn die(&mut self, now: SimTime, how: Crash) {
        let seed = self.random.next();
        if let Some(run) = &mut self.run
            && let (Some((job, reading)), Some(mut store)) =
                (run.in_flight.take(), run.store.take())
        {
            // The process or the machine ends in the middle of what the disk was doing.
            self.is_torn = true;
            let least = u64::from(how == Crash::TornWrite);
            match job {
                Job::Work(work) => {
                    let most = if how == Crash::TornWrite { 3 } else { 6 };
                    self.disk.stop(least + seed % most);
                    let _ = store.perform(&work, reading);
                }
                Job::Close => {
                    self.disk.stop(least + seed % CLOSE_OPERATIONS);
                    self.may_be_clean = true;
                    let _ = close(store, &run.engine, reading);
                }
            }
        }
        self.run = None;
        self.lose(now, how);
    }

    /// Whether its system has names for boots.
    pub(in crate::sim) fn knows_boot(&self) -> bool {
        self.machine.boot_id != Machine::default().boot_id
    }

    /// The name of this boot, if its system has names for boots.
    pub(in crate::sim) fn boot_named(&self, boot_id: [u8; 16]) -> [u8; 16] {
        if self.knows_boot() {
            boot_id
        } else {
            Machine::default().boot_id
        }
    }

    fn boots(&mut self) {
        let boot_id = fresh_id(&mut self.random);
        self.machine.boot_id = self.boot_named(boot_id);
    }

    /// What an end does to the disk and the machine.
    pub(crate) fn lose(&mut self, now: SimTime, how: Crash) {
        let seed = self.random.next();
        match how {
            Crash::PowerLoss | Crash::TornWrite => self.disk.crash_as_it_is(&mut dice(seed)),
            Crash::PowerLossAll => self.disk.crash_as_it_is(&mut keep_none),
            _ => self.disk.kill_as_it_is(),
        }
        match how {
            Crash::Kill | Crash::CleanStop => {}
            Crash::PowerLoss | Crash::PowerLossAll | Crash::TornWrite => {
                self.since = Since::Other;
                self.clocks.reboot(now);
                self.boots();
            }
            Crash::DiskLost => {
                self.disk.erase();
                self.image = None;
                self.pardon = self.pardon.max(Pardon::LostDisk);
            }
            Crash::Rollback => {
                if let Some(image) = &self.image {
                    self.disk.restore(image);
                }
                self.pardon = Pardon::All;
            }
            Crash::Moved => {
                self.since = Since::Other;
                let uptime = self.random.between(UPTIME_NS.0, UPTIME_NS.1);
                self.clocks.replace(now, uptime);
                // A copy of a machine that ran has its boot.
                if self.trials.chance(60) {
                    self.boots();
                }
                self.machine.machine_id = fresh_id(&mut self.random);
            }
            Crash::Contained => {
                self.since = Since::Other;
                let uptime = self.random.below(UPTIME_NS.1);
                self.clocks.replace(now, uptime);
                self.machine.time_namespace = CONTAINER_NAMESPACE;
            }
            Crash::ClocksBack => {
                self.since = self.since.max(Since::Back);
                let shows = self.clocks.machine(now);
                let least = shows.boottime_ns.min(shows.raw_ns);
                let back = self.random.below(BACK_NS).min(least);
                self.clocks.put_back(now, back);
            }
        }
        self.decay();
        if self.bug == Some(Bug::MarkerKept)
            && let Some(image) = &self.image
        {
            self.disk.restore(image);
        }
    }
}

impl Run {
    /// Whether it has no connections any more, and writes what is left.
    pub(super) const fn is_closing(&self) -> bool {
        matches!(self.stop, Some(Stage::Closing { .. }))
    }
}

/// More operations than the last snapshot has, and the mark of a clean stop.
const CLOSE_OPERATIONS: u64 = 16;
