//! What the guard wants durable and what already is: the rarely changing part of the guard, behind
//! a mutex.

use std::time::Duration;

use super::unwritten_keys::UnwrittenKeys;
use super::{COUNTERS_END, GuardConfig, Need};
use crate::durable::{Durable, Record, StartReason, Work};
use crate::fence::{FENCE_FIRST_STEP, FENCE_STEP};
use crate::time::{Deadline, Time};

/// See the module docs.
#[derive(Debug)]
pub(super) struct Ledger {
    /// What the store has confirmed. The TTL in use is lowered here as soon as that is decided.
    durable: Durable,
    /// What the next work is to make durable.
    wanted: Durable,
    /// Grows whenever `wanted` does.
    version: u64,
    /// The version that the work in progress carries.
    version_in_flight: Option<u64>,
    version_durable: u64,
    /// How far the node's time has fallen behind the machine's clocks: now, when `wanted.horizon`
    /// was raised, and when `durable.horizon` was. A horizon is durable as readings of the
    /// machine's clocks, so each later slip moves it earlier in the node's time.
    slip_ns: u64,
    slip_wanted_ns: u64,
    slip_in_flight_ns: u64,
    slip_durable_ns: u64,
    /// Records that no work has taken yet.
    log: Vec<u8>,
    /// More records will follow that belong to the last one.
    is_open: bool,
    /// The last version and the last record that any reply waits or waited for.
    awaited: Need,
    /// The keys of the records that a failing disk did not accept; `None` while it is well.
    unwritten: Option<UnwrittenKeys>,
    /// How long before it is needed the horizon is raised.
    lead_ns: u64,
    /// Where the counters began, and how far below the wanted ceiling the next one is requested.
    fence_base: u64,
    ceiling_lead: u64,
    /// Grants before this instant had TTLs up to `durable.ttl_in_use`, later ones up to
    /// `epoch_ttl_ns`.
    epoch_start: Time,
    epoch_ttl_ns: u64,
    max_ttl: Duration,
    pub(super) is_exhausted: bool,
    pub(super) error: String,
    pub(super) reason: StartReason,
    pub(super) incarnation: u64,
    pub(super) quarantine: Duration,
}

impl Ledger {
    pub(super) fn new(config: &GuardConfig, now: Time) -> Self {
        Self {
            durable: config.durable,
            wanted: config.durable,
            version: 0,
            version_in_flight: None,
            version_durable: 0,
            slip_ns: 0,
            slip_wanted_ns: 0,
            slip_in_flight_ns: 0,
            slip_durable_ns: 0,
            log: Vec::new(),
            is_open: false,
            awaited: Need::NONE,
            unwritten: None,
            lead_ns: LEAD_MIN_NS,
            fence_base: config.fence_base,
            ceiling_lead: 0,
            epoch_start: now,
            epoch_ttl_ns: 0,
            max_ttl: config.max_ttl,
            is_exhausted: config.fence_base >= COUNTERS_END,
            error: String::new(),
            reason: config.reason,
            incarnation: config.incarnation,
            quarantine: config.quarantine_end.since(now),
        }
    }

    /// Notes a grant that relies on the guard rather than the log `[G5]` `[G6]`.
    pub(super) fn note_grant(&mut self, deadline: Deadline, ttl_ns: u64, need: &mut Need) {
        let end_ns = deadline.to_bits();
        self.epoch_ttl_ns = self.epoch_ttl_ns.max(ttl_ns);
        let ttl = Duration::from_nanos(ttl_ns);
        if ttl > self.wanted.ttl_in_use {
            self.wanted.ttl_in_use = bucket(ttl_ns).min(self.max_ttl);
            self.version += 1;
        }
        if end_ns > self.horizon_wanted().saturating_sub(self.lead_ns) {
            let slack_ns = (ttl_ns / SLACK_PART).max(SLACK_MIN_NS);
            self.lead_ns = slack_ns / LEAD_PART;
            let horizon = Time::from_nanos(end_ns + slack_ns + self.lead_ns);
            // If time has slipped by more than the slack, the same horizon must be written again, a
            // little later.
            self.wanted.horizon = horizon.max(self.wanted.horizon.saturating_add(TICK));
            self.slip_wanted_ns = self.slip_ns;
            self.version += 1;
        }
        debug_assert!(end_ns <= self.horizon_wanted());
        debug_assert!(ttl <= self.wanted.ttl_in_use);
        if self.is_beyond(deadline, ttl_ns) {
            self.await_state(need);
        }
    }

    /// Notes a raised fence counter `[F2]` `[F3]`. A crash loses what is left of a step, so a node
    /// that crashes again and again must not begin with a large one.
    pub(super) fn note_counter(&mut self, counter: u64, need: &mut Need) {
        if counter > self.wanted.ceiling.saturating_sub(self.ceiling_lead) {
            let used = counter.saturating_sub(self.fence_base);
            let step = used.clamp(FENCE_FIRST_STEP, FENCE_STEP);
            self.wanted.ceiling = counter + step;
            self.ceiling_lead = step / CEILING_LEAD_PART;
            self.version += 1;
        }
        if counter > self.durable.ceiling {
            self.await_state(need);
        }
    }

    fn await_state(&mut self, need: &mut Need) {
        need.state = self.version;
        self.awaited.state = self.version;
    }

    /// Returns whether a grant is beyond what is durable.
    pub(super) fn is_beyond(&self, deadline: Deadline, ttl_ns: u64) -> bool {
        deadline.to_bits() > self.horizon_durable()
            || Duration::from_nanos(ttl_ns) > self.durable.ttl_in_use
    }

    /// Deadlines up to here need no write.
    pub(super) fn horizon_soft(&self) -> u64 {
        self.horizon_durable().saturating_sub(self.lead_ns)
    }

    /// Notes how far the node's time has fallen behind the machine's clocks.
    pub(super) fn note_slip(&mut self, slip_ns: u64) {
        self.slip_ns = self.slip_ns.max(slip_ns);
    }

    /// TTLs up to here need no write: they are within what is durable and raise nothing in this
    /// epoch.
    pub(super) fn ttl_soft(&self) -> u64 {
        let durable = u64::try_from(self.durable.ttl_in_use.as_nanos()).unwrap_or(u64::MAX);
        self.epoch_ttl_ns.min(durable)
    }

    /// Fence counters up to here need no write.
    pub(super) const fn ceiling_soft(&self) -> u64 {
        self.durable.ceiling.saturating_sub(self.ceiling_lead)
    }

    /// Appends a record to the log. With `waits`, the reply depends on it.
    pub(super) fn append(&mut self, record: &Record<'_>, waits: bool, need: &mut Need) {
        record.encode(&mut self.log);
        self.wanted.records += 1;
        if waits {
            need.records = self.wanted.records;
            self.awaited.records = self.wanted.records;
            if let Some(unwritten) = &mut self.unwritten {
                unwritten.note(record);
            }
        }
    }

    /// Sets whether the records that follow belong together: no work takes some of them.
    pub(super) const fn set_open(&mut self, is_open: bool) {
        self.is_open = is_open;
    }

    /// Returns what must still become durable before a reply may reveal the whole table.
    pub(super) fn need_of_all(&self) -> Need {
        let newer = |wanted, durable| if wanted > durable { wanted } else { 0 };
        Need {
            state: newer(self.awaited.state, self.version_durable),
            records: newer(self.awaited.records, self.durable.records),
        }
    }

    /// Returns what must still become durable before a reply may reveal this key.
    ///
    /// `covered_until` is the deadline of a lock on it that relies on the guard; `None` if the lock
    /// is on the log or the key is free. While the disk is well, every record that some reply waits
    /// for counts, because the next sync writes them all. A failing disk writes none, so only the
    /// records of this key count.
    pub(super) fn need_of(
        &self,
        now: Time,
        db: u8,
        key: &[u8],
        covered_until: Option<Deadline>,
    ) -> Need {
        let all = self.need_of_all();
        let is_state_sure = covered_until.is_none_or(|deadline| {
            let left_ns = deadline.to_bits().saturating_sub(now.as_nanos());
            !self.is_beyond(deadline, left_ns)
        });
        let are_records_sure = self.unwritten.as_ref().is_some_and(|it| !it.has(db, key));
        Need {
            state: if is_state_sure { 0 } else { all.state },
            records: if are_records_sure { 0 } else { all.records },
        }
    }

    pub(super) const fn wants_work(&self) -> bool {
        self.version_in_flight.is_none()
            && !self.is_open
            && (self.version > self.version_durable || !self.log.is_empty())
    }

    pub(super) fn take_work(&mut self, now: Time) -> Option<Work> {
        if !self.wants_work() {
            return None;
        }
        // The state is written anyway, or everything that relied on the guard has expired without a
        // successor.
        if self.wanted.horizon > self.durable.horizon || self.durable.horizon < now {
            self.begin_epoch(now);
        }
        self.version_in_flight = Some(self.version);
        self.slip_in_flight_ns = self.slip_wanted_ns;
        Some(Work {
            log: std::mem::take(&mut self.log),
            goal: self.wanted,
        })
    }

    pub(super) fn done(&mut self, goal: &Durable) {
        debug_assert!(goal.horizon >= self.durable.horizon);
        debug_assert!(goal.ceiling >= self.durable.ceiling);
        if goal.horizon > self.durable.horizon {
            self.slip_durable_ns = self.slip_in_flight_ns;
        }
        self.durable = *goal;
        self.unwritten = None;
        if let Some(version) = self.version_in_flight.take() {
            self.version_durable = version;
        }
    }

    /// Takes back work that failed, except for what `durable` shows. Its records go before those
    /// appended since. Returns whether all of the state that the work wanted is durable.
    pub(super) fn give_back(&mut self, mut work: Work, durable: &Durable) -> bool {
        work.log.append(&mut self.log);
        self.log = work.log;
        self.unwritten = Some(UnwrittenKeys::of(&self.log));
        let is_state_durable = durable.horizon >= work.goal.horizon
            && durable.ceiling >= work.goal.ceiling
            && durable.ttl_in_use == work.goal.ttl_in_use;
        if is_state_durable {
            if work.goal.horizon > self.durable.horizon {
                self.slip_durable_ns = self.slip_in_flight_ns;
            }
            self.durable = Durable {
                records: self.durable.records,
                ..work.goal
            };
            self.version_durable = self.version_in_flight.unwrap_or(self.version_durable);
        }
        self.version_in_flight = None;
        is_state_durable
    }

    pub(super) const fn version_durable(&self) -> u64 {
        self.version_durable
    }

    pub(super) const fn durable(&self) -> Durable {
        self.durable
    }

    /// The last deadline that the durable horizon still covers.
    const fn horizon_durable(&self) -> u64 {
        let slipped = self.slip_ns.saturating_sub(self.slip_durable_ns);
        self.durable.horizon.as_nanos().saturating_sub(slipped)
    }

    /// The last deadline that the wanted horizon will cover.
    const fn horizon_wanted(&self) -> u64 {
        let slipped = self.slip_ns.saturating_sub(self.slip_wanted_ns);
        self.wanted.horizon.as_nanos().saturating_sub(slipped)
    }

    /// Lowers the TTL in use to that of the epoch once everything granted before the epoch has
    /// expired `[G5]`, and begins a new epoch.
    ///
    /// This joins other work. It costs a write of its own only when no lock relies on the guard any
    /// more: once, until one does again.
    fn begin_epoch(&mut self, now: Time) {
        let has_raised = self.wanted.ttl_in_use > self.durable.ttl_in_use;
        if has_raised || now.since(self.epoch_start) <= self.durable.ttl_in_use {
            return;
        }
        let lowered = match self.epoch_ttl_ns {
            0 => Duration::ZERO,
            ttl_ns => bucket(ttl_ns).min(self.durable.ttl_in_use),
        };
        self.wanted.ttl_in_use = lowered;
        self.durable.ttl_in_use = lowered;
        self.epoch_start = now;
        self.epoch_ttl_ns = 0;
    }
}

/// The next power of two in milliseconds, so that TTLs that differ little raise nothing.
fn bucket(ttl_ns: u64) -> Duration {
    Duration::from_millis(ttl_ns.div_ceil(NANOS_PER_MILLI).next_power_of_two())
}

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The least difference that makes a new horizon worth writing.
const TICK: Duration = Duration::from_nanos(1);

/// The horizon is raised by a sixteenth of the TTL `[G8]`; the wait after a crash is longer by
/// that.
const SLACK_PART: u64 = 16;

/// At least a second, so that short TTLs cost at most one sync per second.
const SLACK_MIN_NS: u64 = 1_000_000_000;

/// The next horizon is requested when a quarter of the slack is left, on top of the slack: at least
/// 250 ms, many times what a sync takes.
const LEAD_PART: u64 = 4;
const LEAD_MIN_NS: u64 = SLACK_MIN_NS / LEAD_PART;

/// The next ceiling is requested when half of the step is used up: at the usual step and half a
/// million grants per second, that is a second ahead.
const CEILING_LEAD_PART: u64 = 2;
