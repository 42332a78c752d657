//! Starts that do not take place: what a node would make of its files, and of what else may be wrong, if it started now.
//!
//! Each is tried on a copy of the disk and compared with what the node has replied. So a world has as many restarts as replies,
//! and combines what seldom meets: a start that is cut short where the one before it was, a slot of the state that is
//! damaged while the longest TTL is being lowered, a machine that was copied.

use std::time::Duration;

use locknode_engine::durable::{
    Disk, Durability, Machine, MachineTime, Reading, StartReason, Store, StoreSettings,
};
use locknode_engine::{Moment, Time};

use crate::faulty_disk::{FaultyDisk, dice, keep_none};
use crate::sim::node::{SIZES, SimNode, backs};
use crate::sim::oracle::{Breach, Outcome, Pardon, until};
use crate::sim::recorder::Recorder;
use crate::span::{SimTime, nanos};

/// A start that is tried.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) disk: FaultyDisk,
    pub(super) machine: Machine,
    pub(super) reading: Reading,
    /// The longest TTL that the node is given.
    pub(super) max_ttl: Duration,
    /// Nothing is left of what was not synced.
    pub(super) is_synced_only: bool,
    /// What has happened before it, for people.
    pub(super) when: &'static str,
}

impl SimNode {
    /// A start on such a disk, where the node is.
    pub(super) fn trial(&self, now: SimTime, disk: FaultyDisk, when: &'static str) -> Trial {
        Trial {
            disk,
            machine: self.machine,
            reading: Reading {
                moment: Moment {
                    time: Time::ZERO,
                    wall: self.clocks.wall(now),
                },
                machine: self.clocks.machine(now),
            },
            max_ttl: self.max_ttl,
            is_synced_only: false,
            when,
        }
    }

    /// A start after a power loss.
    pub(super) fn after_power_loss(&self, now: SimTime, when: &'static str) -> Trial {
        let mut trial = self.trial(now, self.disk.survivor(false), when);
        trial.is_synced_only = true;
        self.boot(&mut trial, 1);
        trial
    }

    /// The machine boots before the start.
    fn boot(&self, trial: &mut Trial, number: u8) {
        trial.machine.boot_id = self.boot_named([number; 16]);
        trial.reading.machine = MachineTime::default();
    }

    /// What the node would begin with. With `Long` it makes no segment for what comes after, which costs as much as all the rest.
    pub(super) fn try_start(&self, trial: &Trial, recorder: &Recorder) -> Result<Outcome, Breach> {
        let settings = StoreSettings {
            max_ttl: trial.max_ttl,
            durability: Durability::Long,
            is_first_start: false,
            needs_state: false,
        };
        let (disk, machine, reading) = (trial.disk.clone(), trial.machine, trial.reading);
        let opened = Store::open_sized(disk, &settings, SIZES, machine, reading, [7; 32]);
        let refusal = |error| Breach::Refusal(format!("{}: {error}", trial.when));
        let (_, start) = opened.map_err(refusal)?;
        Ok(Outcome {
            reason: start.reason,
            wait_ns: start.quarantine_end.as_nanos(),
            fence_base: start.fence_base,
            locks: backs(&start, Time::ZERO, recorder),
        })
    }

    /// Tries something that may befall a node that runs.
    pub(super) fn try_something(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        match self.trials.below(7) {
            0 => self.try_crash(now, recorder),
            1 => self.try_cut_starts(now, recorder),
            2 => self.try_bad_slot(now, recorder),
            3 => self.try_bad_end(now, recorder),
            4 => self.try_bad_middle(now, recorder),
            5 => self.try_clocks_back(now, recorder),
            _ => self.try_copied_machine(now, recorder),
        }
    }

    /// The process dies, and starts again at once.
    pub(super) fn try_crash(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after a crash of the process";
        let trial = self.trial(now, self.disk.survivor(true), when);
        let tried = self.try_start(&trial, recorder);
        if let Ok(outcome) = &tried
            && outcome.reason == StartReason::DroppedBatch
            && self.log_marked.is_some()
        {
            return trial.breach(" drops a batch, and the last one is whole");
        }
        self.judge_trial(&trial, tried)
    }

    /// Starts that end in the middle, some with a power loss, and one that does not. The node may run, or just have ended.
    pub(super) fn try_cut_starts(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after starts that were cut short";
        let mut trial = self.trial(now, self.disk.fork(), when);
        let mut had_state = self.has_state();
        let loses_all = self.trials.chance(50);
        if loses_all {
            trial.disk.crash(&mut keep_none);
            self.boot(&mut trial, 1);
        }
        // What an end in the middle of something has made durable is not known.
        trial.is_synced_only = loses_all && self.run.is_some();
        for number in 2..2 + self.trials.index(3) {
            trial.disk.stop(self.trials.below(OPEN_STEPS));
            trial.max_ttl = self.another_max_ttl();
            let tried = self.try_start(&trial, recorder);
            let was_cut = trial.disk.go_on().is_none();
            match tried {
                Err(breach) if !was_cut => return vec![breach],
                tried => had_state |= tried.is_ok(),
            }
            let loses: Option<&mut dyn FnMut(usize) -> usize> = match self.trials.below(5) {
                0 => Some(&mut keep_none),
                1 => Some(&mut |len| len / 2),
                2 => Some(&mut dice(self.trials.next())),
                _ => None,
            };
            if let Some(keep) = loses {
                trial.disk.crash(keep);
                self.boot(&mut trial, u8::try_from(number).unwrap_or(u8::MAX));
            }
        }
        trial.max_ttl = self.another_max_ttl();
        let tried = self.try_start(&trial, recorder);
        if let Ok(outcome) = &tried
            && had_state
            && outcome.reason == StartReason::Empty
        {
            return trial.breach(" it takes its disk for an empty one");
        }
        self.judge_trial(&trial, tried)
    }

    /// `[S3]` A slot of the state is damaged.
    fn try_bad_slot(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let mut trial = self.some_survivor(now, "after damage to a slot of its state");
        let at = SLOT_LEN * self.trials.index(2) + self.trials.index(STATE_LEN);
        let len = trial.disk.snapshot().get(STATE).map_or(0, Vec::len);
        if self.was_broken || len <= at {
            return Vec::new();
        }
        trial.disk.flip(STATE, at);
        trial.max_ttl = self.another_max_ttl();
        self.judge_full_wait(&trial, recorder)
    }

    /// `[L5]` The last batch of the log is damaged, or bytes that are not a batch follow it.
    fn try_bad_end(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let mut trial = self.some_survivor(now, "after what is no batch at the end of its log");
        let Some((name, last, len)) = self.segments(&trial.disk).pop() else {
            return Vec::new();
        };
        trial.max_ttl = self.another_max_ttl();
        if self.trials.chance(50) {
            let at = last + 64 + self.trials.index(64);
            // What an earlier run has left there was waited for.
            if self.log_marked.is_none() || at >= len {
                return Vec::new();
            }
            trial.disk.flip(&name, at);
            return self.judge_full_wait(&trial, recorder);
        }
        trial.when = "after damage to the last batch of its log";
        let without = trial.disk.fork();
        trial.disk.flip(&name, last);
        let Ok(outcome) = self.try_start(&trial, recorder) else {
            return Vec::new();
        };
        trial.disk = without;
        if !self.is_needed(&mut trial, &name, recorder) {
            return Vec::new();
        }
        let syncs = self.disk.syncs(STATE);
        if self.log_marked.is_none_or(|marked| marked < syncs) {
            return trial.breach(", which its state knows to be durable, it starts");
        }
        let (longest, tolerance) = (nanos(trial.max_ttl), self.clocks.noise_max);
        let oracle = &self.oracle;
        let mut breaches = oracle.judge_told(&outcome, longest, tolerance, trial.when);
        breaches.extend(trial.judge_wait(&outcome));
        breaches
    }

    /// `[L5]` The last batch of a segment is damaged that is followed by another one with batches.
    fn try_bad_middle(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let mut trial = self.some_survivor(now, "");
        let mut segments = self.segments(&trial.disk);
        segments.pop();
        let Some((name, last, _)) = segments.get(self.trials.index(segments.len())) else {
            return Vec::new();
        };
        let without = trial.disk.fork();
        trial.disk.flip(name, *last);
        let starts = self.try_start(&trial, recorder).is_ok();
        trial.disk = without;
        if starts && self.is_needed(&mut trial, name, recorder) {
            trial.breach("starts with a log that lacks a batch in its middle")
        } else {
            Vec::new()
        }
    }

    /// Whether a node does not start without a file. One that was removed before a power loss may be there again.
    fn is_needed(&self, trial: &mut Trial, name: &str, recorder: &Recorder) -> bool {
        let is_removed = trial.disk.remove(name).is_ok();
        is_removed && self.try_start(trial, recorder).is_err()
    }

    /// `[G7]` One of the machine's clocks goes back, or both do.
    fn try_clocks_back(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after a clock of its machine went back";
        let mut trial = self.trial(now, self.disk.survivor(true), when);
        let began = self.began_at;
        if !trial.machine.is_same_boot(&trial.machine) || began.boottime_ns.min(began.raw_ns) == 0 {
            return Vec::new();
        }
        let clocks = &mut trial.reading.machine;
        match self.trials.below(3) {
            0 => clocks.boottime_ns = 0,
            1 => clocks.raw_ns = 0,
            _ => *clocks = MachineTime::default(),
        }
        trial.max_ttl = self.another_max_ttl();
        self.judge_full_wait(&trial, recorder)
    }

    /// `[G7]` The machine was copied while it ran: the boot has the same name, and the clocks have gone on.
    fn try_copied_machine(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after its machine was copied";
        let mut trial = self.trial(now, self.disk.survivor(true), when);
        if self.knows_boot() {
            trial.machine.machine_id = [1; 16];
        }
        trial.reading.machine = until(trial.reading.machine, HOUR_NS);
        let tried = self.try_start(&trial, recorder);
        self.judge_trial(&trial, tried)
    }

    /// A start on what a crash of the process or a power loss would leave.
    fn some_survivor(&mut self, now: SimTime, when: &'static str) -> Trial {
        if self.trials.chance(50) {
            self.after_power_loss(now, when)
        } else {
            self.trial(now, self.disk.survivor(true), when)
        }
    }

    /// The segments that hold batches, by name, the last byte of each that was used, and its length; none where what was
    /// used may be no batch.
    fn segments(&self, disk: &FaultyDisk) -> Vec<(String, usize, usize)> {
        if self.was_broken || self.is_torn {
            return Vec::new();
        }
        let used = |(name, content): (String, Vec<u8>)| {
            let last = content.iter().rposition(|byte| *byte != 0)?;
            let is_used = name.starts_with(SEGMENT) && last >= HEADER_LEN;
            is_used.then_some((name, last, content.len()))
        };
        disk.snapshot().into_iter().filter_map(used).collect()
    }

    /// What it may be given as its longest TTL the next time.
    fn another_max_ttl(&mut self) -> Duration {
        self.max_ttl * self.trials.pick(&[2, 4, 4, 6]) / 4
    }

    /// Whether its disk holds a state.
    fn has_state(&self) -> bool {
        self.first_base.is_some() && self.pardon == Pardon::Nothing
    }

    /// Judges a start that has to wait as long as with no knowledge at all.
    fn judge_full_wait(&self, trial: &Trial, recorder: &Recorder) -> Vec<Breach> {
        let tried = self.try_start(trial, recorder);
        let short = tried.as_ref().ok().and_then(|it| trial.judge_wait(it));
        let mut breaches = self.judge_trial(trial, tried);
        breaches.extend(short);
        breaches
    }

    /// Judges a start that has to give back what was replied, or to wait for it.
    fn judge_trial(&self, trial: &Trial, tried: Result<Outcome, Breach>) -> Vec<Breach> {
        let (is_synced_only, tolerance) = (trial.is_synced_only, self.clocks.noise_max);
        let judge = |it| {
            self.oracle
                .judge(&it, is_synced_only, tolerance, trial.when)
        };
        tried.map_or_else(|breach| vec![breach], judge)
    }
}

impl Trial {
    /// Judges a wait that has to be as long as with no knowledge at all.
    fn judge_wait(&self, outcome: &Outcome) -> Option<Breach> {
        let (when, max_ttl) = (self.when, nanos(self.max_ttl));
        let (wait, least) = (outcome.wait_ns, max_ttl + max_ttl / 100 + EPS_NS);
        (wait < least).then(|| {
            Breach::of_node(format!(
                "{when} would wait for {wait} ns, and has to for {least} ns"
            ))
        })
    }

    fn breach(&self, why: &str) -> Vec<Breach> {
        vec![Breach::of_node(format!("{}{why}", self.when))]
    }
}

/// More operations than a start has.
const OPEN_STEPS: u64 = 24;

/// The files of a node, as `SPEC.md` describes them.
const STATE: &str = "state";
const SLOT_LEN: usize = 4096;
const STATE_LEN: usize = 512;
const SEGMENT: &str = "log-";
const HEADER_LEN: usize = 128;

/// What clients allow for beside the drift.
const EPS_NS: u64 = 2_000_000;

const HOUR_NS: u64 = 3_600_000_000_000;
