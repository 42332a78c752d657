//! How long commands take: a histogram of each, the slow log, and the latency events.
//!
//! Reading a clock costs as much as a tenth of an ordinary command. So commands that are known to
//! take little time are timed in some batches only, each for those in the others, too; the rest
//! always: whatever looks at the whole table, holds a collection, or runs in Lua.

mod events;
mod slow_log;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::flags::Flags;
use crate::histogram::Histogram;
use crate::options::Options;
use crate::ran::Ran;
use crate::sampler::Sampler;
use crate::settings::Settings;
use crate::time::{Time, WallTime};

pub(crate) use events::{Event, LatencyEvents};
pub(crate) use slow_log::SlowLog;

/// See the module docs.
#[derive(Debug)]
pub(crate) struct Timings {
    stopwatch: Option<fn() -> Duration>,
    batches: AtomicU64,
    sampler: Sampler,
    /// Whether the slow log wants to see commands that take little time.
    times_all: AtomicBool,
    /// By the number of the command; of those that were timed.
    commands: Box<[OnceLock<Box<Histogram>>]>,
    pub(crate) syncs: Histogram,
    pub(crate) slow_log: SlowLog,
    pub(crate) events: LatencyEvents,
}

/// When a command began that is timed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Began(Duration);

impl Timings {
    pub(crate) fn new(commands: usize, stopwatch: Option<fn() -> Duration>) -> Self {
        Self {
            stopwatch,
            batches: AtomicU64::new(0),
            sampler: Sampler::default(),
            times_all: AtomicBool::new(false),
            commands: (0..commands).map(|_| OnceLock::new()).collect(),
            syncs: Histogram::default(),
            slow_log: SlowLog::default(),
            events: LatencyEvents::default(),
        }
    }

    /// Returns how many commands each quick one of the batch that begins stands for; 0 when they are
    /// not timed.
    #[inline]
    pub(crate) fn begin_batch(&self, now: Time) -> u64 {
        let number = self.batches.load(Ordering::Relaxed).wrapping_add(1);
        self.batches.store(number, Ordering::Relaxed);
        if self.sampler.chooses(number) {
            return self.choose(now);
        }
        u64::from(self.times_all.load(Ordering::Relaxed))
    }

    #[cold]
    fn choose(&self, now: Time) -> u64 {
        let weight = self.sampler.weight();
        self.sampler.note(now);
        if self.times_all.load(Ordering::Relaxed) {
            1
        } else {
            weight
        }
    }

    /// Returns whether a command is timed in a batch of this weight.
    #[inline]
    pub(crate) const fn times(&self, weight: u64, flags: Flags) -> bool {
        (weight != 0) | !flags.has_any(Flags::FAST.and(Flags::QUICK))
    }

    /// Starts to time a command, if it is timed.
    pub(crate) fn begin(&self, weight: u64, flags: Flags) -> Option<Began> {
        let is_timed = self.times(weight, flags);
        is_timed.then(|| self.begin_always()).flatten()
    }

    /// Starts to time a command.
    #[cold]
    pub(crate) fn begin_always(&self) -> Option<Began> {
        self.stopwatch.map(|stopwatch| Began(stopwatch()))
    }

    /// Notes how long a command took.
    #[cold]
    pub(crate) fn end(&self, began: Began, ran: &Ran<'_>, settings: &Settings) {
        let Some(stopwatch) = self.stopwatch else {
            return;
        };
        let took = stopwatch().saturating_sub(began.0);
        let is_quick = ran.flags.has_any(Flags::FAST.and(Flags::QUICK));
        let weight = if is_quick { ran.weight.max(1) } else { 1 };
        if let Some(histogram) = self.commands.get(ran.id.index()) {
            histogram.get_or_init(Box::default).record(took, weight);
        }
        let (slower_than, len_max, threshold_ms) = settings.read(|options| {
            (
                options.slowlog_log_slower_than,
                options.slowlog_max_len,
                options.latency_monitor_threshold,
            )
        });
        let micros = i64::try_from(took.as_micros()).unwrap_or(i64::MAX);
        if (0..=micros).contains(&slower_than) {
            self.slow_log.add(ran, took, len_max);
        }
        let event = if ran.flags.has(Flags::FAST) {
            Event::FastCommand
        } else {
            Event::Command
        };
        self.events.note(event, ran.wall, took, threshold_ms);
    }

    /// Notes how long a sync of the disk took.
    pub(crate) fn note_sync(&self, took: Duration, wall: WallTime, settings: &Settings) {
        self.syncs.record(took, 1);
        let threshold_ms = settings.read(|options| options.latency_monitor_threshold);
        self.events.note(Event::DiskSync, wall, took, threshold_ms);
    }

    /// Returns the times of a command, if any were taken.
    pub(crate) fn of(&self, index: usize) -> Option<&Histogram> {
        let histogram = self.commands.get(index)?.get()?;
        (histogram.count() > 0).then_some(&**histogram)
    }

    /// Does what the options say.
    pub(crate) fn obey(&self, options: &Options) {
        let times_all = (0..QUICK_MICROS_MAX).contains(&options.slowlog_log_slower_than);
        self.times_all.store(times_all, Ordering::Relaxed);
    }

    /// Times more commands if there were few; call this about once a second.
    pub(crate) fn relax(&self, now: Time) {
        self.sampler.relax(now);
    }

    /// Forgets the times of all commands: CONFIG RESETSTAT.
    pub(crate) fn reset(&self) {
        let timed = self.commands.iter().filter_map(OnceLock::get);
        timed.for_each(|histogram| histogram.reset());
        self.syncs.reset();
    }
}

/// A quick command takes less than this, so that a slow log for what takes longer need not see it.
const QUICK_MICROS_MAX: i64 = 1000;
