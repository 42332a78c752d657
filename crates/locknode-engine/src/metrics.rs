//! The metrics of a node, in the text format of Prometheus: one table, one row each.
//!
//! ```text
//!  shards, counters, guard, host --> Look --+--> TABLE: name, type, labels, help, write --> text
//!                          (under the locks)             (without them)
//! ```
//!
//! How many time series there are does not depend on clients: labels have values from a fixed list,
//! or from one with a limit.

mod table;

use std::cmp::Reverse;
use std::fmt::{Display, Write as _};
use std::time::Duration;

use crate::command::Commands;
use crate::guard::GuardReport;
use crate::histogram::Histogram;
use crate::host::HostFacts;
use crate::key_hash::DATABASES;
use crate::keyspace::Keyspace;
use crate::services::Services;
use crate::tally::{KeyName, Tally, TallyCounts};
use crate::time::{Moment, Time};

pub use table::METRICS;

/// One metric of a node.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    name: &'static str,
    kind: MetricKind,
    labels: &'static [&'static str],
    help: &'static str,
    write: fn(&Look<'_>, &mut Samples<'_>),
}

/// What a metric's value does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// It only rises, except when the node restarts and at CONFIG RESETSTAT.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Counters by size.
    Histogram,
}

/// What metrics are made of, at one moment.
pub(crate) struct Look<'e> {
    services: &'e Services,
    commands: Commands,
    moment: Moment,
    guard: GuardReport,
    facts: HostFacts,
    descriptors: (u64, u64),
    table: TableLook,
}

/// What the shards know.
#[derive(Debug, Default)]
struct TableLook {
    /// Keys by database, and how many of them have a deadline.
    keys: [(u64, u64); DATABASES],
    used_bytes: u64,
    waits: u64,
    expired: u64,
    hits: u64,
    misses: u64,
    locks: TallyCounts,
    held: Histogram,
    waited: Histogram,
    /// Since when the locks are held that are held longest, of those whose time is taken.
    longest_held: Vec<(Time, KeyName)>,
    /// How often the keys were refused that were refused most.
    most_refused: Vec<(u64, KeyName)>,
}

/// Where a metric writes its samples.
struct Samples<'t> {
    text: &'t mut String,
    name: &'static str,
}

/// Renders all metrics.
pub(crate) fn render(look: &Look<'_>) -> String {
    let mut text = String::with_capacity(TEXT_LEN);
    for metric in METRICS {
        let (name, kind, help) = (metric.name, metric.kind.name(), metric.help());
        let before = text.len();
        // Writing to a string cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        let head = text.len();
        let mut samples = Samples {
            text: &mut text,
            name,
        };
        (metric.write)(look, &mut samples);
        if text.len() == head {
            text.truncate(before);
        }
    }
    text
}

impl Metric {
    /// Returns its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns its type.
    pub const fn kind(&self) -> MetricKind {
        self.kind
    }

    /// Returns the names of its labels.
    pub const fn labels(&self) -> &'static [&'static str] {
        self.labels
    }

    /// Returns what it means, on one line.
    pub const fn help(&self) -> &'static str {
        self.help.trim_ascii()
    }
}

impl MetricKind {
    /// Returns the type as Prometheus writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl<'e> Look<'e> {
    /// Reads what is needed. The shards are locked only while their counters are read.
    pub(crate) fn take(
        services: &'e Services,
        commands: Commands,
        keyspace: &Keyspace,
        moment: Moment,
    ) -> Self {
        let mut table = TableLook::default();
        {
            let mut space = keyspace.enter();
            space.lock_all();
            table.used_bytes = space.used_bytes();
            table.waits = space.waits();
            for shard in space.shards() {
                for (db, (keys, volatile)) in (0..).zip(&mut table.keys) {
                    *keys += shard.key_count(db);
                    *volatile += shard.volatile_count(db);
                }
                let (hits, misses) = shard.read_counts();
                table.hits += hits;
                table.misses += misses;
                table.expired += shard.expired_count();
                table.add(&mut shard.tally, moment.time);
            }
        }
        Self {
            guard: services.guard.report(moment.time),
            facts: services.facts(),
            descriptors: services.host.descriptors(),
            services,
            commands,
            moment,
            table,
        }
    }
}

impl TableLook {
    /// Adds what a shard has counted.
    fn add(&mut self, tally: &mut Tally, now: Time) {
        tally.relax(now);
        self.locks.add(&tally.counts);
        self.held.add(&tally.held);
        self.waited.add(&tally.waited);
        first(&mut self.longest_held, tally.held_since(), |since| {
            Reverse(*since)
        });
        first(&mut self.most_refused, tally.contended(), |refusals| {
            *refusals
        });
    }
}

/// Keeps the [`RANKS`] greatest of those found so far and some more.
pub(crate) fn first<'t, V, O: Ord>(
    found: &mut Vec<(V, KeyName)>,
    more: impl Iterator<Item = (V, &'t KeyName)>,
    order: impl Fn(&V) -> O,
) {
    for (value, key) in more {
        let place = found.partition_point(|(other, _)| order(other) >= order(&value));
        if place < RANKS {
            found.truncate(RANKS - 1);
            found.insert(place, (value, key.clone()));
        }
    }
}

impl Samples<'_> {
    /// The value of a metric without labels.
    fn value(&mut self, value: impl Display) {
        self.labelled(&[], value);
    }

    /// A value that is left out when it is unknown.
    fn known(&mut self, value: impl Display, is_known: bool) {
        if is_known {
            self.value(value);
        }
    }

    /// The value with these labels.
    fn labelled(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.sample("", labels, value);
    }

    /// A histogram with these labels, whose buckets go from 2^`low` microseconds in fourfold steps.
    fn histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram, low: u32) {
        let mut bucket = |bound: &str, below| {
            let labels = [labels, &[("le", bound)]].concat();
            self.sample("_bucket", &labels, below);
        };
        let powers = (0..).zip(histogram.below());
        let shown = powers.filter(|(power, _)| *power >= low && power % 2 == 0);
        for (_, (bound, below)) in shown.take(BUCKETS_SHOWN) {
            let seconds = Duration::from_micros(bound).as_secs_f64();
            bucket(&seconds.to_string(), below);
        }
        let count = histogram.count();
        bucket("+Inf", count);
        self.sample("_sum", labels, histogram.sum().as_secs_f64());
        self.sample("_count", labels, count);
    }

    /// A value for each key of a list, named by its rank, and by itself if the options allow it.
    fn ranked<V>(&mut self, look: &Look<'_>, keys: &[(V, KeyName)], value: impl Fn(&V) -> String) {
        let names_keys = look.services.settings.read(|options| options.metrics_keys);
        for (rank, (found, key)) in (1..).zip(keys) {
            let (rank, db) = (i32::to_string(&rank), key.db.to_string());
            let name = String::from_utf8_lossy(&key.key);
            let labels = [("rank", &*rank), ("db", &*db), ("key", &*name)];
            let shown = if names_keys {
                &labels[..]
            } else {
                &labels[..1]
            };
            self.labelled(shown, value(found));
        }
    }

    fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{open}{label}=\"{}\"", Escaped(text));
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// The value of a label. Everything but visible ASCII is escaped, because clients choose some of them.
struct Escaped<'t>(&'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                ' '..='~' => f.write_char(c)?,
                _ => f.write_char('?')?,
            }
        }
        Ok(())
    }
}

/// Keys named in the metrics of the longest-held and most refused ones.
const RANKS: usize = 10;

/// Buckets of a histogram, but for the last: from a microsecond to 17 seconds, or from a
/// millisecond to five hours.
const BUCKETS_SHOWN: usize = 13;

/// Room for all metrics of a node that is in use.
const TEXT_LEN: usize = 32 << 10;

#[cfg(test)]
mod tests;
