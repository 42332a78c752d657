//! Starts that do not take place: what a node would make of its files, and of what else may be wrong, if it started now.
//!
//! Each is tried on a copy of the disk and held against what the node has told. So a world has as many restarts as replies,
//! and may combine what seldom meets: a start that is cut short where the one before it was, a slot of the state that is
//! damaged while the longest TTL is being lowered, a machine that was copied.

use std::time::Duration;

use locknode_engine::durable::{
    Disk, Durability, Machine, MachineTime, Reading, StartReason, Store, StoreSettings,
};
use locknode_engine::{Moment, Time};

use crate::faulty_disk::{FaultyDisk, dice, keep_none};
use crate::history::{AttemptNo, KeyNo};
use crate::sim::node::{SIZES, SimNode, backs};
use crate::sim::oracle::{Breach, Outcome, Pardon};
use crate::sim::recorder::Recorder;
use crate::span::{SimTime, nanos};

/// Where a start is tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) machine: Machine,
    pub(super) clocks: MachineTime,
    /// The longest TTL that the node is given.
    pub(super) max_ttl: Duration,
}

impl SimNode {
    /// Where it is.
    pub(super) fn here(&self, now: SimTime) -> Place {
        Place {
            machine: self.machine,
            clocks: self.clocks.machine(now),
            max_ttl: self.max_ttl,
        }
    }

    /// Where it would be after a power loss.
    pub(super) fn after_power_loss(&self, number: u8) -> Place {
        let mut machine = self.machine;
        machine.boot_id = self.boot_named([number; 16]);
        Place {
            machine,
            clocks: MachineTime::default(),
            max_ttl: self.max_ttl,
        }
    }

    /// What a start on such a disk would begin with. With `Long` it makes no segment for what comes after, which costs as much as
    /// all the rest.
    pub(super) fn try_start(
        &self,
        now: SimTime,
        disk: FaultyDisk,
        place: Place,
        recorder: &Recorder,
    ) -> Result<Outcome, String> {
        let settings = StoreSettings {
            max_ttl: place.max_ttl,
            durability: Durability::Long,
            is_first_start: false,
            needs_state: false,
        };
        let reading = Reading {
            moment: Moment {
                time: Time::ZERO,
                wall: self.clocks.wall(now),
            },
            machine: place.clocks,
        };
        let opened = Store::open_sized(disk, &settings, SIZES, place.machine, reading, [7; 32]);
        let (_, start) = opened.map_err(|error| error.to_string())?;
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
        let tried = self.try_start(now, self.disk.survivor(true), self.here(now), recorder);
        if let Ok(outcome) = &tried
            && outcome.reason == StartReason::DroppedBatch
            && self.log_marked.is_some()
        {
            return vec![breach(format!(
                "{when} drops a batch, and the last one is whole"
            ))];
        }
        self.judge_trial(tried, false, when)
    }

    /// Starts that end in the middle, some with a power loss, and one that does not. The node may run, or just have ended.
    pub(super) fn try_cut_starts(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after starts that were cut short";
        let disk = self.disk.fork();
        let mut place = self.here(now);
        let mut had_state = self.has_state();
        let loses_all = self.trials.chance(50);
        if loses_all {
            disk.crash(&mut keep_none);
            place = self.after_power_loss(1);
        }
        // What an end in the middle of something has made durable is not known.
        let is_synced_only = loses_all && self.run.is_some();
        for number in 2..2 + self.trials.index(3) {
            disk.stop(self.trials.below(OPEN_STEPS));
            place.max_ttl = self.another_max_ttl();
            let tried = self.try_start(now, disk.clone(), place, recorder);
            let was_cut = disk.go_on().is_none();
            match tried {
                Err(why) if !was_cut => return vec![Breach::Refusal(format!("{when}: {why}"))],
                tried => had_state |= tried.is_ok(),
            }
            let loses: Option<&mut dyn FnMut(usize) -> usize> = match self.trials.below(5) {
                0 => Some(&mut keep_none),
                1 => Some(&mut |len| len / 2),
                2 => Some(&mut dice(self.trials.next())),
                _ => None,
            };
            if let Some(keep) = loses {
                disk.crash(keep);
                let number = u8::try_from(number).unwrap_or(u8::MAX);
                place = self.after_power_loss(number);
            }
        }
        place.max_ttl = self.another_max_ttl();
        let tried = self.try_start(now, disk, place, recorder);
        if let Ok(outcome) = &tried
            && had_state
            && outcome.reason == StartReason::Empty
        {
            return vec![breach(format!("{when} it takes its disk for an empty one"))];
        }
        self.judge_trial(tried, is_synced_only, when)
    }

    /// `[S3]` A slot of the state is damaged.
    fn try_bad_slot(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after damage to a slot of its state";
        let (disk, mut place, is_synced_only) = self.some_survivor(now);
        let at = SLOT_LEN * self.trials.index(2) + self.trials.index(STATE_LEN);
        let len = disk.snapshot().get(STATE).map_or(0, Vec::len);
        if self.was_broken || len <= at {
            return Vec::new();
        }
        disk.flip(STATE, at);
        place.max_ttl = self.another_max_ttl();
        let tried = self.try_start(now, disk, place, recorder);
        let mut breaches = self.judge_wait(&tried, place, when);
        breaches.extend(self.judge_trial(tried, is_synced_only, when));
        breaches
    }

    /// `[L5]` The last batch of the log is damaged, or bytes that are not a batch follow it.
    fn try_bad_end(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let (disk, mut place, is_synced_only) = self.some_survivor(now);
        let Some((name, last, len)) = self.segments(&disk).pop() else {
            return Vec::new();
        };
        place.max_ttl = self.another_max_ttl();
        if self.trials.chance(50) {
            let when = "after what is no batch at the end of its log";
            let at = last + 64 + self.trials.index(64);
            // What an earlier run has left there was waited for.
            if self.log_marked.is_none() || at >= len {
                return Vec::new();
            }
            disk.flip(&name, at);
            let tried = self.try_start(now, disk, place, recorder);
            let mut breaches = self.judge_wait(&tried, place, when);
            breaches.extend(self.judge_trial(tried, is_synced_only, when));
            return breaches;
        }
        let when = "after damage to the last batch of its log";
        let without = disk.fork();
        disk.flip(&name, last);
        let Ok(outcome) = self.try_start(now, disk, place, recorder) else {
            return Vec::new();
        };
        if !self.is_needed(now, without, &name, place, recorder) {
            return Vec::new();
        }
        if self
            .log_marked
            .is_none_or(|marked| marked < self.disk.syncs(STATE))
        {
            return vec![breach(format!(
                "{when}, which its state knows to be durable, it starts"
            ))];
        }
        let mut breaches = self.judge_wait(&Ok(outcome.clone()), place, when);
        let tolerance = self.clocks.noise_max();
        let longest = nanos(place.max_ttl);
        breaches.extend(self.oracle.judge_but(&outcome, longest, tolerance, when));
        breaches
    }

    /// `[L5]` The last batch of a segment is damaged that is followed by another one with batches.
    fn try_bad_middle(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let (disk, place, _) = self.some_survivor(now);
        let mut segments = self.segments(&disk);
        segments.pop();
        let Some((name, last, _)) = segments.get(self.trials.index(segments.len())) else {
            return Vec::new();
        };
        let without = disk.fork();
        disk.flip(name, *last);
        let tried = self.try_start(now, disk, place, recorder);
        if tried.is_ok() && self.is_needed(now, without, name, place, recorder) {
            vec![breach(
                "starts with a log that lacks a batch in its middle".to_owned(),
            )]
        } else {
            Vec::new()
        }
    }

    /// Whether a node does not start without a file. One that was removed before a power loss may be there again.
    fn is_needed(
        &self,
        now: SimTime,
        mut disk: FaultyDisk,
        name: &str,
        place: Place,
        recorder: &Recorder,
    ) -> bool {
        let is_removed = disk.remove(name).is_ok();
        is_removed && self.try_start(now, disk, place, recorder).is_err()
    }

    /// `[G7]` One of the machine's clocks goes back, or both do.
    fn try_clocks_back(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after a clock of its machine went back";
        let mut place = self.here(now);
        let began = self.began_at;
        if !place.machine.is_same_boot(&place.machine) || began.boottime_ns.min(began.raw_ns) == 0 {
            return Vec::new();
        }
        match self.trials.below(3) {
            0 => place.clocks.boottime_ns = 0,
            1 => place.clocks.raw_ns = 0,
            _ => place.clocks = MachineTime::default(),
        }
        place.max_ttl = self.another_max_ttl();
        let tried = self.try_start(now, self.disk.survivor(true), place, recorder);
        let mut breaches = self.judge_wait(&tried, place, when);
        breaches.extend(self.judge_trial(tried, false, when));
        breaches
    }

    /// `[G7]` The machine was copied while it ran: the boot has the same name, and the clocks have gone on.
    fn try_copied_machine(&mut self, now: SimTime, recorder: &Recorder) -> Vec<Breach> {
        let when = "after its machine was copied";
        let mut place = self.here(now);
        if self.knows_boot() {
            place.machine.machine_id = [1; 16];
        }
        place.clocks.boottime_ns += HOUR_NS;
        place.clocks.raw_ns += HOUR_NS;
        let tried = self.try_start(now, self.disk.survivor(true), place, recorder);
        self.judge_trial(tried, false, when)
    }

    /// What would be left after a crash of the process or a power loss, where that is, and whether it was a power loss.
    fn some_survivor(&mut self, now: SimTime) -> (FaultyDisk, Place, bool) {
        if self.trials.chance(50) {
            (self.disk.survivor(false), self.after_power_loss(1), true)
        } else {
            (self.disk.survivor(true), self.here(now), false)
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

    /// A wait that is to be as long as with no knowledge at all.
    fn judge_wait(&self, tried: &Result<Outcome, String>, place: Place, when: &str) -> Vec<Breach> {
        let max_ttl = nanos(place.max_ttl);
        let least = max_ttl + max_ttl / 100 + EPS_NS;
        match tried {
            Ok(outcome) if outcome.wait_ns < least => vec![breach(format!(
                "{when} would wait for {} ns, and has to for {least} ns",
                outcome.wait_ns
            ))],
            _ => Vec::new(),
        }
    }

    /// What was told is to be there, or waited for.
    fn judge_trial(
        &self,
        tried: Result<Outcome, String>,
        is_synced_only: bool,
        when: &str,
    ) -> Vec<Breach> {
        let tolerance = self.clocks.noise_max();
        match tried {
            Ok(outcome) => {
                let mut breaches = self.oracle.judge(&outcome, tolerance, when);
                let back = self
                    .oracle
                    .judge_back(&outcome, is_synced_only, tolerance, when);
                breaches.extend(back);
                breaches
            }
            Err(why) => vec![Breach::Refusal(format!("{when}: {why}"))],
        }
    }
}

fn breach(why: String) -> Breach {
    Breach::Lock {
        key: KeyNo::MAX,
        attempt: AttemptNo::MAX,
        why,
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
