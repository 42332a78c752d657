//! What INFO counts: calls, rejections and failures per command, and errors per code.
//!
//! Where the writer holds the table, counters use plain loads and stores instead of atomic
//! additions: the hot path pays for one memory write. With several threads on several shards an
//! addition may be lost; the counts are statistics, and nothing depends on them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::command_id::CommandId;
use crate::time::Time;
#[cfg(feature = "acl")]
use crate::users::Denial;

/// All counters of a node.
#[derive(Debug)]
pub(crate) struct Counters {
    commands: Box<[CommandCounts]>,
    errors: Mutex<BTreeMap<String, u64>>,
    rejected_connections: AtomicU64,
    failed_auths: AtomicU64,
    /// Of a command, a key and a channel.
    denials: [AtomicU64; 3],
    zero: Mutex<Totals>,
    rate: Mutex<Rate>,
}

/// Totals counted elsewhere that never go back; CONFIG RESETSTAT moves the point they are counted
/// from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) connections: u64,
    pub(crate) evicted_clients: u64,
    pub(crate) expired: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) net_input_bytes: u64,
    pub(crate) net_output_bytes: u64,
    pub(crate) shard_waits: u64,
}

/// The last measurement of commands per second.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    at: Time,
    calls: u64,
    per_second: u64,
}

/// The counts of one command.
#[derive(Debug, Default)]
pub(crate) struct CommandCounts {
    calls: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
}

impl Counters {
    pub(crate) fn new(commands: usize) -> Self {
        Self {
            commands: (0..commands).map(|_| CommandCounts::default()).collect(),
            errors: Mutex::default(),
            rejected_connections: AtomicU64::new(0),
            failed_auths: AtomicU64::new(0),
            denials: Default::default(),
            zero: Mutex::default(),
            rate: Mutex::default(),
        }
    }

    /// Counts an executed command.
    #[inline]
    pub(crate) fn note_call(&self, id: CommandId, has_failed: bool) {
        if let Some(counts) = self.commands.get(id.index()) {
            bump(&counts.calls);
            if has_failed {
                bump(&counts.failed);
            }
        }
    }

    /// Counts a command that was refused before it was executed.
    pub(crate) fn note_rejected(&self, id: CommandId) {
        if let Some(counts) = self.commands.get(id.index()) {
            bump(&counts.rejected);
        }
    }

    /// Counts a refused connection.
    pub(crate) fn note_rejected_connection(&self) {
        self.rejected_connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a wrong password or user.
    pub(crate) fn note_failed_auth(&self) {
        self.failed_auths.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an error reply: `-CODE text`. As in Redis, one without a code counts as `ERR`.
    #[cold]
    pub(crate) fn note_error(&self, reply: &[u8]) {
        let text = reply.get(1..).unwrap_or_default();
        let end = text
            .iter()
            .take(ERROR_CODE_MAX)
            .position(|&byte| byte == b' ');
        let code: String = match end.and_then(|end| text.get(..end)) {
            Some(code) => code.iter().map(|&byte| shown(byte)).collect(),
            None => "ERR".to_owned(),
        };
        let mut errors = self.errors.lock();
        // Codes come from the node and from scripts, and scripts must not fill memory.
        if errors.len() < ERROR_CODES_MAX || errors.contains_key(&code) {
            *errors.entry(code).or_default() += 1;
        }
    }

    /// Returns the calls, failures and rejections of one command.
    pub(crate) fn of(&self, id: usize) -> (u64, u64, u64) {
        self.commands.get(id).map_or((0, 0, 0), |counts| {
            let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            (
                load(&counts.calls),
                load(&counts.failed),
                load(&counts.rejected),
            )
        })
    }

    /// Returns the commands executed since the start.
    pub(crate) fn total_calls(&self) -> u64 {
        self.commands
            .iter()
            .map(|counts| counts.calls.load(Ordering::Relaxed))
            .sum()
    }

    /// Returns the errors replied, by code.
    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.lock().clone()
    }

    /// Returns the number of refused connections.
    pub(crate) fn rejected_connections(&self) -> u64 {
        self.rejected_connections.load(Ordering::Relaxed)
    }

    /// Counts something that a user was not allowed to do.
    #[cfg(feature = "acl")]
    pub(crate) fn note_denial(&self, denial: Denial) {
        let [command, key, channel] = &self.denials;
        let counter = match denial {
            Denial::Command(_) => command,
            Denial::Key => key,
            Denial::Channel => channel,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often users were not allowed a command, a key and a channel.
    pub(crate) fn denials(&self) -> [u64; 3] {
        self.denials.each_ref().map(|it| it.load(Ordering::Relaxed))
    }

    /// Returns the number of failed authentications.
    pub(crate) fn failed_auths(&self) -> u64 {
        self.failed_auths.load(Ordering::Relaxed)
    }

    /// Returns the totals since the last CONFIG RESETSTAT.
    pub(crate) fn since_reset(&self, totals: Totals) -> Totals {
        let zero = *self.zero.lock();
        Totals {
            connections: totals.connections.saturating_sub(zero.connections),
            evicted_clients: totals.evicted_clients.saturating_sub(zero.evicted_clients),
            expired: totals.expired.saturating_sub(zero.expired),
            hits: totals.hits.saturating_sub(zero.hits),
            misses: totals.misses.saturating_sub(zero.misses),
            net_input_bytes: totals.net_input_bytes.saturating_sub(zero.net_input_bytes),
            net_output_bytes: totals
                .net_output_bytes
                .saturating_sub(zero.net_output_bytes),
            shard_waits: totals.shard_waits.saturating_sub(zero.shard_waits),
        }
    }

    /// Returns the commands per second since the last measurement, which is at least
    /// [`RATE_SPAN_MIN`] old. A call before that returns the last result. The first measurement
    /// counts from the origin of time.
    pub(crate) fn calls_per_second(&self, now: Time) -> u64 {
        let calls = self.total_calls();
        let mut rate = self.rate.lock();
        let span = now.since(rate.at);
        if span >= RATE_SPAN_MIN {
            let done = u128::from(calls.saturating_sub(rate.calls)) * NANOS_PER_SECOND;
            let per_second = u64::try_from(done / span.as_nanos()).unwrap_or(u64::MAX);
            *rate = Rate {
                at: now,
                calls,
                per_second,
            };
        }
        rate.per_second
    }

    /// Resets everything: CONFIG RESETSTAT. `totals` are the totals counted elsewhere, at `now`.
    pub(crate) fn reset(&self, totals: Totals, now: Time) {
        *self.zero.lock() = totals;
        *self.rate.lock() = Rate {
            at: now,
            ..Rate::default()
        };
        for counter in self.denials.iter().chain([&self.failed_auths]) {
            counter.store(0, Ordering::Relaxed);
        }
        for counts in &self.commands {
            for counter in [&counts.calls, &counts.failed, &counts.rejected] {
                counter.store(0, Ordering::Relaxed);
            }
        }
        self.errors.lock().clear();
        self.rejected_connections.store(0, Ordering::Relaxed);
    }
}

#[inline]
/// A byte of an error code as INFO and metrics show it.
fn shown(byte: u8) -> char {
    let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if is_plain { char::from(byte) } else { '_' }
}

fn bump(counter: &AtomicU64) {
    counter.store(
        counter.load(Ordering::Relaxed).wrapping_add(1),
        Ordering::Relaxed,
    );
}

/// Redis keeps at most 128 error codes.
const ERROR_CODES_MAX: usize = 128;

/// The longest code shown; the node's own have at most eleven letters.
const ERROR_CODE_MAX: usize = 32;

/// The shortest span over which `instantaneous_ops_per_sec` is measured: Redis's sampling period.
const RATE_SPAN_MIN: Duration = Duration::from_millis(100);

const NANOS_PER_SECOND: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Commands;

    #[test]
    fn the_rate_is_measured_between_two_calls() {
        let commands = Commands::new();
        let counters = Counters::new(commands.all().len());
        let (id, _) = commands.find(b"set").expect("SET");
        let call = |times: usize| (0..times).for_each(|_| counters.note_call(id, false));
        for (calls, at_ms, want) in [
            (50, 99, 0),
            (50, 1000, 100),
            (7, 1050, 100),
            (3, 1100, 100),
            (0, 2100, 0),
        ] {
            call(calls);
            assert_eq!(
                counters.calls_per_second(Time::from_millis(at_ms)),
                want,
                "at {at_ms} ms"
            );
        }
    }

    #[test]
    fn a_reset_moves_the_point_from_which_totals_count() {
        let counters = Counters::new(1);
        let totals = |hits| Totals {
            hits,
            shard_waits: hits,
            connections: 3,
            ..Totals::default()
        };
        assert_eq!(counters.since_reset(totals(5)), totals(5));
        counters.note_failed_auth();
        counters.reset(totals(5), Time::ZERO);
        assert_eq!(
            counters.since_reset(totals(7)),
            Totals {
                hits: 2,
                shard_waits: 2,
                ..Totals::default()
            }
        );
        assert_eq!(counters.failed_auths(), 0);
    }
}
