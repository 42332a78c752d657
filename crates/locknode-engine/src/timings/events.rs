//! LATENCY: what took longer than `latency-monitor-threshold`, by kind of event.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;

use crate::time::WallTime;

/// What may take long. The names are Redis's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A command, or a script.
    Command,
    /// A command of constant or logarithmic time.
    FastCommand,
    /// A sync of the data directory, which grants of long locks wait for.
    DiskSync,
}

/// The events so far.
#[derive(Debug, Default)]
pub(crate) struct LatencyEvents(Mutex<BTreeMap<Event, Samples>>);

/// The samples of one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    /// Seconds since 1970 and milliseconds, one for each second, the oldest first.
    pub(crate) samples: VecDeque<(u64, u64)>,
    pub(crate) max_ms: u64,
}

impl Event {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::FastCommand => "fast-command",
            Self::DiskSync => "aof-fsync-always",
        }
    }
}

impl LatencyEvents {
    /// Notes an event if it took as long as the threshold; with a threshold of 0, nothing is noted.
    pub(super) fn note(&self, event: Event, wall: WallTime, took: Duration, threshold_ms: u64) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        if threshold_ms == 0 || ms < threshold_ms {
            return;
        }
        let second = wall.as_unix_nanos() / 1_000_000_000;
        let mut events = self.0.lock();
        let event = events.entry(event).or_default();
        event.max_ms = event.max_ms.max(ms);
        match event.samples.back_mut() {
            Some((same, longest)) if *same == second => *longest = ms.max(*longest),
            _ => event.samples.push_back((second, ms)),
        }
        if event.samples.len() > SAMPLES_MAX {
            event.samples.pop_front();
        }
    }

    /// Returns the samples of all events.
    pub(crate) fn all(&self) -> BTreeMap<Event, Samples> {
        self.0.lock().clone()
    }

    /// Forgets the events that `is_meant` selects; returns how many there were.
    pub(crate) fn forget(&self, is_meant: impl Fn(Event) -> bool) -> usize {
        let mut events = self.0.lock();
        let before = events.len();
        events.retain(|event, _| !is_meant(*event));
        before - events.len()
    }
}

/// As in Redis.
const SAMPLES_MAX: usize = 160;
