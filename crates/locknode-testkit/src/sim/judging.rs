//! A node held to its word: its oracle is asked at every reply and at every start.

use locknode_engine::durable::{
    Durability, Machine, MachineTime, Reading, StartReason, Store, StoreSettings, Which,
};
use locknode_engine::{Moment, Time};

use crate::faulty_disk::{FaultyDisk, dice};
use crate::history::{AttemptNo, KeyNo};
use crate::scenario::Guarding;
use crate::sim::link::Cover;
use crate::sim::node::{SIZES, SimNode, backs};
use crate::sim::oracle::{Breach, Outcome, Pardon, Since, left_of};
use crate::sim::recorder::Recorder;
use crate::span::{SimTime, nanos};

impl SimNode {
    /// A reply leaves that tells of this: what a crash at this moment would take back.
    pub(crate) fn told(&mut self, now: SimTime, cover: &Cover, recorder: &Recorder) -> Vec<Breach> {
        self.oracle.tell(cover);
        let left = left_of(cover.until, self.clocks.machine(now));
        if self.keeps().is_none() || self.is_rotten || !self.oracle.looks(left, cover) {
            return Vec::new();
        }
        self.look(now, recorder)
    }

    /// Looks at what is on the disk: what the next start would be after a power loss that keeps nothing but what was synced,
    /// and now and then after a crash of the process, and after a start that was itself cut short by a power loss.
    fn look(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let Some(durability) = self.keeps() else {
            return Vec::new();
        };
        self.settle(now, recorder);
        let (generation, tolerance) = (self.disk.generation(), self.clocks.noise_max());
        let boot = Machine {
            boot_id: [1; 16],
            ..self.machine
        };
        if self.oracle.seen(generation).is_none() {
            let disk = self.disk.survivor(false);
            match self.open_copy(now, disk, Durability::Long, boot, recorder) {
                Ok(outcome) => self.oracle.see(generation, outcome),
                Err(why) => return vec![Breach::Refusal(format!("after a power loss: {why}"))],
            }
        }
        let mut breaches = Vec::new();
        if let Some(outcome) = self.oracle.seen(generation) {
            let when = "after a power loss";
            breaches = self.oracle.judge(outcome, tolerance, when);
            breaches.extend(self.oracle.judge_back(outcome, true, tolerance, when));
        }
        let looked = self.oracle.looked();
        if looked.is_multiple_of(KILL_EVERY) {
            let disk = self.disk.survivor(true);
            let machine = self.machine;
            match self.open_copy(now, disk, Durability::Long, machine, recorder) {
                Ok(outcome) => {
                    let when = "after a crash of the process";
                    breaches.extend(self.oracle.judge(&outcome, tolerance, when));
                    breaches.extend(self.oracle.judge_back(&outcome, false, tolerance, when));
                }
                Err(why) => breaches.push(Breach::Refusal(format!("after a crash: {why}"))),
            }
        }
        if looked.is_multiple_of(CUT_EVERY) {
            // What starts may also be the next process, which reads what is not durable.
            let cut = looked / CUT_EVERY;
            let is_kill = cut % 2 == 1;
            let disk = match is_kill {
                true => self.disk.fork(),
                false => self.disk.survivor(false),
            };
            disk.stop(u64::from(cut) % OPEN_STEPS);
            let machine = if is_kill { self.machine } else { boot };
            let first = self.open_copy(now, disk.clone(), durability, machine, recorder);
            if first.is_err() {
                disk.crash(&mut dice(looked.into()));
                let boot = Machine {
                    boot_id: [2; 16],
                    ..self.machine
                };
                match self.open_copy(now, disk, durability, boot, recorder) {
                    Ok(outcome) => {
                        let when = "after a power loss in the middle of its start";
                        breaches.extend(self.oracle.judge(&outcome, tolerance, when));
                        let back = self.oracle.judge_back(&outcome, !is_kill, tolerance, when);
                        breaches.extend(back);
                    }
                    Err(why) => breaches.push(Breach::Refusal(format!(
                        "after a power loss in the middle of its start: {why}"
                    ))),
                }
            }
        }
        breaches
    }

    /// What a start on such a disk would begin with. With `Long` it makes no segment for what comes after, which costs as much as
    /// all the rest.
    fn open_copy(
        &self,
        now: SimTime,
        disk: FaultyDisk,
        durability: Durability,
        machine: Machine,
        recorder: &Recorder,
    ) -> Result<Outcome, String> {
        let settings = StoreSettings {
            max_ttl: self.max_ttl,
            durability,
            is_first_start: false,
            needs_state: false,
        };
        let clocks = match machine == self.machine {
            true => self.clocks.machine(now),
            false => MachineTime::default(),
        };
        let reading = Reading {
            moment: Moment {
                time: Time::ZERO,
                wall: self.clocks.wall(now),
            },
            machine: clocks,
        };
        let opened = Store::open_sized(disk, &settings, SIZES, machine, reading, [7; 32]);
        let (_, start) = opened.map_err(|error| error.to_string())?;
        Ok(Outcome {
            wait_ns: start.quarantine_end.as_nanos(),
            fence_base: start.fence_base,
            locks: backs(&start, Time::ZERO, recorder),
        })
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
        self.pardon = self.pardon.or(match self.guard {
            Guarding::Off => Pardon::All,
            Guarding::Memory => Pardon::LostDisk,
            Guarding::Long | Guarding::Always => Pardon::Nothing,
        });
        let since = self.count_time(now);
        let pardon = std::mem::take(&mut self.pardon);
        let forgotten = self.oracle.pardon(pardon, outcome);
        let mut breaches = Vec::new();
        let has_mark = self
            .run
            .as_ref()
            .is_some_and(|run| run.reason == StartReason::CleanStop);
        let was_stopped = std::mem::take(&mut self.may_be_clean);
        if pardon != Pardon::All {
            let tolerance = self.clocks.noise_max();
            if std::mem::take(&mut self.is_rotten) {
                self.oracle.rots();
            }
            let when = "after its start";
            breaches = self.oracle.judge(outcome, tolerance, when);
            breaches.extend(self.oracle.judge_back(outcome, false, tolerance, when));
            if has_mark && !was_stopped {
                breaches.push(Breach::Lock {
                    key: KeyNo::MAX,
                    attempt: AttemptNo::MAX,
                    why: "says that its last run ended in order, which it did not".to_owned(),
                });
            }
        }
        self.oracle.adopt(outcome, self.clocks.machine(now), since);
        (breaches, forgotten)
    }

    /// A start begins to wait. Of what was told before, the time that has passed since counts where the machine's clocks are
    /// those of before.
    pub(super) fn count_time(&mut self, now: SimTime) -> Since {
        let since = std::mem::take(&mut self.since);
        self.oracle.begin(self.clocks.machine(now), since);
        if self.pardon != Pardon::Nothing {
            self.oracle.excuse(nanos(self.max_ttl));
        }
        since
    }

    /// Which locks are on the log, where there is one.
    fn keeps(&self) -> Option<Durability> {
        self.run.as_ref()?.store.as_ref()?;
        match self.guard {
            Guarding::Off | Guarding::Memory => None,
            Guarding::Long => Some(Durability::Long),
            Guarding::Always => Some(Durability::Always),
        }
    }
}

/// Every so many looks are at what the next process would read as well ...
const KILL_EVERY: u32 = 6;

/// ... and at a start that is cut short.
const CUT_EVERY: u32 = 9;

/// More operations than a start has.
const OPEN_STEPS: u64 = 24;
