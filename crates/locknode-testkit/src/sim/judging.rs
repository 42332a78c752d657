//! Whether a node keeps its promises: its oracle is asked at every reply and at every start.

use locknode_engine::Time;
use locknode_engine::durable::{MachineTime, StartReason, Which};

use crate::fault::Crash;
use crate::history::{AttemptNo, KeyNo};
use crate::scenario::GuardMode;
use crate::sim::link::Claim;
use crate::sim::node::SimNode;
use crate::sim::oracle::{Breach, Outcome, Pardon, Since, left_of};
use crate::sim::recorder::Recorder;
use crate::span::{SimTime, nanos};

impl SimNode {
    /// A reply leaves that reports this: what a crash at this moment would take back.
    pub(crate) fn told(&mut self, now: SimTime, cover: &Claim, recorder: &Recorder) -> Vec<Breach> {
        self.oracle.tell(cover);
        let left = left_of(cover.until, self.clocks.machine(now));
        if !self.keeps() {
            return Vec::new();
        }
        if self.oracle.looks(left, cover) {
            return self.look(now, recorder);
        }
        if self.clocks.slip > 0 && !cover.is_logged && !self.oracle.is_within(cover.until) {
            self.look_at_horizon(now, recorder)
        } else {
            Vec::new()
        }
    }

    /// `[G6]` Where the node's time has fallen behind, what the disk says of its machine's clocks covers less and less.
    fn look_at_horizon(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        self.settle(now, recorder);
        let mut horizon = self.clocks.machine(now);
        let boottime: Clock = |time| (&mut time.boottime_ns, &mut time.raw_ns);
        let raw: Clock = |time| (&mut time.raw_ns, &mut time.boottime_ns);
        for clock in [boottime, raw] {
            let mut trial = self.trial(now, self.disk.survivor(true), "later");
            // The other one is long past it.
            *clock(&mut trial.reading.machine).1 = u64::MAX;
            let tried = self.try_start(&trial, recorder);
            *clock(&mut horizon).0 += tried.map_or(0, |outcome| outcome.wait_ns);
        }
        self.oracle.horizon = horizon;
        self.try_crash(now, recorder)
    }

    /// Looks at what is on the disk: what the next start would be after a power loss that keeps nothing but what was synced,
    /// and after something else.
    fn look(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        self.settle(now, recorder);
        let (generation, tolerance) = (self.disk.generation(), self.clocks.noise_max);
        let when = "after a power loss";
        if self.oracle.seen(generation).is_none() {
            match self.try_start(&self.after_power_loss(now, when), recorder) {
                Ok(outcome) => self.oracle.see(generation, outcome),
                Err(breach) => return vec![breach],
            }
        }
        let seen = self.oracle.seen(generation);
        let judge = |outcome| self.oracle.judge(outcome, true, tolerance, when);
        let mut breaches = seen.map_or_else(Vec::new, judge);
        breaches.extend(self.try_something(now, recorder));
        breaches
    }

    /// Looks at a disk on which something has become less.
    pub(crate) fn look_if_lowered(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        if std::mem::take(&mut self.has_lowered) && self.keeps() {
            self.look(now, recorder)
        } else {
            Vec::new()
        }
    }

    /// The process has ended: what is wrong with starts on its disk that are cut short.
    pub(crate) fn look_at_remains(
        &mut self,
        now: SimTime,
        how: Crash,
        recorder: &Recorder,
    ) -> Vec<Breach> {
        let is_plain = matches!(
            how,
            Crash::Kill
                | Crash::CleanStop
                | Crash::PowerLoss
                | Crash::PowerLossAll
                | Crash::TornWrite
        );
        let is_kept = matches!(self.guard, GuardMode::Long | GuardMode::Always);
        if self.is_looked_at
            && is_plain
            && is_kept
            && !self.is_rotten
            && self.pardon == Pardon::Nothing
        {
            self.try_cut_starts(now, recorder)
        } else {
            Vec::new()
        }
    }

    /// What is not in the node's table any more binds it no more.
    pub(super) fn settle(&mut self, now: SimTime, recorder: &Recorder) {
        let Some(run) = &self.run else { return };
        let time = Time::from_nanos(self.clocks.read(now, &mut self.random));
        let is_quarantined = run.engine.guard().quarantine_left(time).is_some();
        let table = run.table(Which::All, time);
        let clocks = self.clocks.machine(now);
        self.oracle
            .settle(&table, is_quarantined, time.as_nanos(), clocks, recorder);
    }

    /// The node has started: what is wrong with what it begins with, and which locks it need not bring back.
    pub(crate) fn judge_start(
        &mut self,
        now: SimTime,
        outcome: &Outcome,
    ) -> (Vec<Breach>, Vec<(KeyNo, AttemptNo)>) {
        self.pardon = self.pardon.max(match self.guard {
            GuardMode::Off => Pardon::All,
            GuardMode::Memory => Pardon::LostDisk,
            GuardMode::Long | GuardMode::Always => Pardon::Nothing,
        });
        let since = self.count_time(now);
        let pardon = std::mem::take(&mut self.pardon);
        let forgotten = self.oracle.pardon(pardon, outcome);
        let mut breaches = Vec::new();
        let reason = self.run.as_ref().map(|run| run.reason);
        let has_mark = reason == Some(StartReason::CleanStop);
        let was_stopped = std::mem::take(&mut self.may_be_clean);
        if pardon != Pardon::All {
            let tolerance = self.clocks.noise_max;
            if std::mem::take(&mut self.is_rotten) {
                self.oracle.rots();
            }
            let when = "after its start";
            breaches = self.oracle.judge(outcome, false, tolerance, when);
            if has_mark && !was_stopped {
                let why = "says that its last run ended in order, which it did not";
                breaches.push(Breach::of_node(why));
            }
        }
        self.oracle.adopt(outcome, self.clocks.machine(now), since);
        (breaches, forgotten)
    }

    /// A start begins to wait. For earlier replies the time since then counts if the machine's clocks are still the same.
    pub(super) fn count_time(&mut self, now: SimTime) -> Since {
        let since = std::mem::take(&mut self.since);
        self.oracle.begin(self.clocks.machine(now), since);
        if self.pardon != Pardon::Nothing {
            self.oracle.excuse(nanos(self.max_ttl), self.pardon);
        }
        since
    }

    /// Whether it runs and is watched, and its files are to keep what it grants.
    fn keeps(&self) -> bool {
        let has_store = self.run.as_ref().is_some_and(|run| run.store.is_some());
        has_store && self.is_looked_at && !self.is_rotten && self.guard != GuardMode::Memory
    }
}

/// One of a machine's clocks that go on while the node is down, and the other one.
type Clock = fn(&mut MachineTime) -> (&mut u64, &mut u64);
