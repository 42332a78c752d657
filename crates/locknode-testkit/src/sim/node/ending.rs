//! How a node's process ends: at once, in the middle of something, or in order; and what that does to its disk and its
//! machine.

use locknode_engine::durable::Which;

use super::{BACK_NS, CONTAINER_NAMESPACE, SimNode, UPTIME_NS, fresh_id};
use crate::bug::Bug;
use crate::fault::{Crash, Phase};
use crate::faulty_disk::{dice, keep_none};
use crate::sim::oracle::{Pardon, Since};
use crate::sim::recorder::Recorder;
use crate::span::SimTime;

impl SimNode {
    /// Whether the process has ended in the middle of what it did with its disk.
    pub(crate) const fn is_struck(&self) -> bool {
        self.struck.is_some()
    }

    /// How and in what, if it has.
    pub(crate) fn take_struck(&mut self) -> Option<(Phase, Crash)> {
        self.struck.take()
    }

    /// The process is to end in the middle of something.
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

    /// How the process has ended in this phase, if it was to.
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
                self.doom = None;
                Some((phase, how))
            }
        }
    }

    /// The process ends. Who stops in order may end otherwise in the middle of it: how it did end.
    pub(crate) fn crash(
        &mut self,
        now: SimTime,
        how: Crash,
        recorder: &Recorder,
    ) -> (Crash, Option<Phase>) {
        self.settle(now, recorder);
        self.note_ceiling();
        let struck = match (self.take_struck(), how) {
            (None, Crash::CleanStop) => self.stop(now),
            (struck, _) => struck,
        };
        let (phase, how) = struck.map_or((None, how), |(phase, how)| (Some(phase), how));
        if how != Crash::CleanStop {
            self.die(now, how);
        }
        (how, phase)
    }

    pub(super) fn die(&mut self, now: SimTime, how: Crash) {
        let seed = self.random.next();
        if let Some(run) = &mut self.run
            && let (Some((work, reading)), Some(store)) = (run.in_flight.take(), &mut run.store)
        {
            // The process or the machine ends in the middle of what the disk was doing.
            let steps = match how {
                Crash::TornWrite => 1 + seed % 3,
                _ => seed % 6,
            };
            self.disk.stop(steps);
            let _ = store.perform(&work, reading);
        }
        self.run = None;
        self.lose(now, how);
    }

    /// What an end does to the disk and the machine.
    pub(crate) fn lose(&mut self, now: SimTime, how: Crash) {
        let seed = self.random.next();
        match how {
            Crash::Kill | Crash::CleanStop | Crash::Contained | Crash::ClocksBack => {
                self.disk.kill_as_it_is();
            }
            Crash::PowerLoss | Crash::TornWrite => self.disk.crash_as_it_is(&mut dice(seed)),
            Crash::PowerLossAll => self.disk.crash_as_it_is(&mut keep_none),
            Crash::DiskLost => {
                self.disk.kill_as_it_is();
                self.disk.erase();
                self.image = None;
                self.pardon = self.pardon.or(Pardon::LostDisk);
            }
            Crash::Rollback => {
                self.disk.kill_as_it_is();
                if let Some(image) = &self.image {
                    self.disk.restore(image);
                }
                self.pardon = Pardon::All;
            }
            Crash::Moved => self.disk.kill_as_it_is(),
        }
        match how {
            Crash::PowerLoss | Crash::PowerLossAll | Crash::TornWrite => {
                self.since = Since::Other;
                self.clocks.reboot(now);
                self.machine.boot_id = fresh_id(&mut self.random);
            }
            Crash::Moved => {
                self.since = Since::Other;
                let uptime = self.random.between(UPTIME_NS.0, UPTIME_NS.1);
                self.clocks.replace(now, uptime);
                self.machine.boot_id = fresh_id(&mut self.random);
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
            _ => {}
        }
        self.decay();
        if self.bug == Some(Bug::MarkerKept)
            && let Some(image) = &self.image
        {
            self.disk.restore(image);
        }
    }

    /// A clean stop: all that is wanted is done, then the snapshot and the marker. How the process ended instead, if it did.
    pub(super) fn stop(&mut self, now: SimTime) -> Option<(Phase, Crash)> {
        self.finish_work(now);
        if let Some(struck) = self.take_struck() {
            return Some(struck);
        }
        let run = self.run.take()?;
        run.engine.close();
        let reading = self.clocks.reading(now, &mut self.random);
        let time = reading.moment.time;
        let table = run.table(Which::All, time);
        let mut store = run.store?;
        let guard = run.engine.guard();
        let mut is_well = true;
        while is_well && let Some(work) = guard.take_work(time) {
            is_well = store.perform(&work, reading).is_ok();
            if is_well {
                guard.done(&work);
            }
        }
        self.oracle.log(&table, time.as_nanos());
        if is_well {
            let mut table = run.engine.table(time);
            self.arm(Phase::Close);
            is_well = store.close(&mut table, reading).is_ok();
            if let Some(struck) = self.disarm(Phase::Close) {
                return Some(struck);
            }
        }
        self.disk.kill_as_it_is();
        if is_well {
            self.image = Some(self.disk.snapshot());
        }
        None
    }
}
