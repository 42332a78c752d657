//! The restart guard: no lock is granted that a crash could hand out twice.
//!
//! ```text
//!             deadline                      what is wanted
//!  command --> permit -- within the bounds? --no--> Ledger --take_work--> store, disk
//!                |  yes                               ^                      |
//!                v                                    +------- done ---------+
//!             Permit, Need                    bounds rise, replies that waited leave
//! ```
//!
//! A grant within the *bounds* costs two comparisons. The bounds are soft: they lie below what is durable by the lead
//! that a sync takes, so that in steady state the next horizon is durable before a deadline reaches the present one
//! `[G8]`. A grant beyond them asks for more, and one beyond what is durable makes its reply wait.
//!
//! Who looks at what is not durable yet waits as well: a reply tells of a lock, or of a key that is free, only what a crash
//! cannot take back `[G17]`. While nobody waits for the disk that costs one look at [`Guard::has_awaited`] per key.
//!
//! The guard also tells whether the node is in quarantine `[G1]` and why it grants nothing `[G13]` `[G14]`.

mod denial;
mod ledger;
mod need;
mod report;
mod rest;
mod unsure;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::durable::{Durability, Durable, Record, Start, StartReason, StoreError, Work};
use crate::fence::FENCE_END;
use crate::time::{Deadline, Time};

use ledger::Ledger;

pub(crate) use denial::Denial;
pub use need::Need;
pub use report::{GuardReport, GuardState};
pub(crate) use rest::Rest;

/// How a node guards its restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuardMode {
    /// Not at all, like Redis `[G15]`.
    #[default]
    Off,
    /// By waiting for `max-ttl` after every start; nothing is kept.
    Memory,
    /// With a store that keeps what shortens the wait, and a log.
    Store(Durability),
}

/// What a guard begins with.
#[derive(Clone, Debug)]
pub struct GuardConfig {
    /// How restarts are guarded.
    pub mode: GuardMode,
    /// Locks with a longer TTL are written to the log.
    pub max_ttl: Duration,
    /// Nothing is granted up to this instant; one that is not ahead is no quarantine.
    pub quarantine_end: Time,
    /// Why there is a quarantine, or none.
    pub reason: StartReason,
    /// The number of this run of the node; 0 without a store.
    pub incarnation: u64,
    /// Where all fence counters begin.
    pub fence_base: u64,
    /// What is durable already.
    pub durable: Durable,
}

/// The right to make a key held until a deadline, which [`Guard::permit`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) deadline: Deadline,
    /// The lock is to be written to the log.
    pub(crate) is_logged: bool,
    /// The key's fence counter becomes higher than this.
    pub(crate) floor: u64,
}

/// The restart guard of one node; see the module text.
#[derive(Debug)]
pub struct Guard {
    mode: GuardMode,
    max_ttl_ns: u64,
    /// Deadlines up to here, in nanoseconds of the node's time, ...
    horizon_soft: AtomicU64,
    /// ... with TTLs up to this many nanoseconds are within the bounds.
    ttl_soft: AtomicU64,
    /// Fence counters up to here are within the bounds.
    ceiling_soft: AtomicU64,
    /// The first instant at which commands on keys are served.
    serves_from: AtomicU64,
    /// How far the node's time had fallen behind when this was looked at last.
    slip: AtomicU64,
    trouble: AtomicU8,
    has_work: AtomicBool,
    /// A reply waits for something that is not durable, or would if its client listened. Set before the shard is let go in
    /// which there is something new to see.
    has_awaited: AtomicBool,
    version_durable: AtomicU64,
    records_durable: AtomicU64,
    ledger: Mutex<Ledger>,
}

impl GuardConfig {
    /// No guard: plain Redis behaviour.
    pub fn off() -> Self {
        Self {
            mode: GuardMode::Off,
            max_ttl: Duration::MAX,
            quarantine_end: Time::ZERO,
            reason: StartReason::GuardOff,
            incarnation: 0,
            fence_base: 0,
            durable: Durable::default(),
        }
    }

    /// A guard that begins with this.
    pub fn new(mode: GuardMode, max_ttl: Duration, start: &Start) -> Self {
        Self {
            mode,
            max_ttl,
            quarantine_end: start.quarantine_end,
            reason: start.reason,
            incarnation: start.incarnation,
            fence_base: start.fence_base,
            durable: start.durable,
        }
    }
}

impl Permit {
    /// A permit that needs nothing; also for a command of a script, whose journal asks for the true one when the script has
    /// ended.
    pub(crate) const fn plain(deadline: Deadline) -> Self {
        Self {
            deadline,
            is_logged: false,
            floor: 0,
        }
    }

    /// The same, with the key's fence counter raised above `floor`.
    pub(crate) const fn above(self, floor: u64) -> Self {
        Self { floor, ..self }
    }
}

impl Guard {
    pub(crate) fn new(config: &GuardConfig, now: Time) -> Self {
        let max_ttl_ns = u64::try_from(config.max_ttl.as_nanos()).unwrap_or(u64::MAX);
        let serves_from = match config.quarantine_end {
            end if end <= now => 0,
            // A lock is alive at exactly its deadline.
            end => end.as_nanos() + 1,
        };
        let guard = Self {
            mode: config.mode,
            max_ttl_ns,
            horizon_soft: AtomicU64::new(0),
            ttl_soft: AtomicU64::new(0),
            ceiling_soft: AtomicU64::new(0),
            serves_from: AtomicU64::new(serves_from),
            // Only a horizon that is written down can be passed sooner.
            slip: AtomicU64::new(match config.mode {
                GuardMode::Store(_) => 0,
                GuardMode::Off | GuardMode::Memory => u64::MAX,
            }),
            trouble: AtomicU8::new(HEALTHY),
            has_work: AtomicBool::new(false),
            has_awaited: AtomicBool::new(false),
            version_durable: AtomicU64::new(0),
            records_durable: AtomicU64::new(0),
            ledger: Mutex::new(Ledger::new(config, now)),
        };
        guard.set_bounds(&guard.ledger.lock());
        guard
    }

    /// The right to make a key held from `now` until `deadline`, and in `need` what has to be durable before the reply.
    /// `is_on_log` tells whether a lock that is on the log holds it now.
    ///
    /// # Errors
    ///
    /// Why nothing, or not so much, is granted.
    #[inline]
    pub(crate) fn permit(
        &self,
        now: Time,
        deadline: Deadline,
        is_on_log: impl FnOnce() -> bool,
        need: &mut Need,
    ) -> Result<Permit, Denial> {
        match self.permit_within(now, deadline) {
            Some(permit) => Ok(permit),
            None => self.permit_beyond(now, deadline, is_on_log(), need),
        }
    }

    /// The right to make a key held from `now` until `deadline` when that is within the bounds.
    #[inline]
    pub(crate) fn permit_within(&self, now: Time, deadline: Deadline) -> Option<Permit> {
        let bits = deadline.to_bits();
        let is_within = bits <= self.horizon_soft.load(Ordering::Relaxed)
            && bits.saturating_sub(now.as_nanos()) <= self.ttl_soft.load(Ordering::Relaxed);
        is_within.then_some(Permit::plain(deadline))
    }

    /// A grant beyond the bounds.
    #[inline(never)]
    fn permit_beyond(
        &self,
        now: Time,
        deadline: Deadline,
        is_on_log: bool,
        need: &mut Need,
    ) -> Result<Permit, Denial> {
        let ttl_ns = deadline.to_bits().saturating_sub(now.as_nanos());
        let mut ledger = self.ledger.lock();
        if ledger.is_exhausted {
            return Err(Denial::Exhausted);
        }
        if self.is_closed() {
            return Err(Denial::Closed);
        }
        if self.has_failed() {
            return Err(Denial::Failed {
                error: ledger.error.clone(),
            });
        }
        let is_long = ttl_ns > self.max_ttl_ns;
        let is_logged = match self.mode {
            GuardMode::Off => false,
            GuardMode::Memory if is_long => {
                return Err(Denial::NeedsLog {
                    max_ttl: Duration::from_nanos(self.max_ttl_ns),
                });
            }
            GuardMode::Memory => false,
            GuardMode::Store(Durability::Always) => true,
            GuardMode::Store(Durability::Long) => is_long,
        };
        let trouble = self.trouble.load(Ordering::Acquire);
        let is_refused = match trouble {
            LOG_FULL => is_logged || is_on_log,
            FULL => is_logged || is_on_log || ledger.is_beyond(deadline, ttl_ns),
            _ => false,
        };
        if is_refused {
            return Err(Denial::Full {
                error: ledger.error.clone(),
            });
        }
        if matches!(self.mode, GuardMode::Store(_)) && !is_logged {
            ledger.note_grant(deadline, ttl_ns, need);
            self.set_bounds(&ledger);
            self.note_work(&ledger);
        }
        Ok(Permit {
            deadline,
            is_logged,
            floor: 0,
        })
    }

    /// Notes that a fence counter was raised to `counter`; it must be at most the ceiling before it is told `[F2]`.
    #[inline]
    pub(crate) fn note_counter(&self, counter: u64, need: &mut Need) {
        if counter > self.ceiling_soft.load(Ordering::Relaxed) {
            self.raise_ceiling(counter, need);
        }
    }

    #[inline(never)]
    fn raise_ceiling(&self, counter: u64, need: &mut Need) {
        let mut ledger = self.ledger.lock();
        if counter >= COUNTERS_END {
            ledger.is_exhausted = true;
        }
        if matches!(self.mode, GuardMode::Store(_)) {
            ledger.note_counter(counter, need);
        }
        self.set_bounds(&ledger);
        self.note_work(&ledger);
    }

    /// Writes a change to the log. `waits`: the reply rests on it.
    pub(crate) fn log(&self, record: &Record<'_>, waits: bool, need: &mut Need) {
        let mut ledger = self.ledger.lock();
        ledger.append(record, waits, need);
        self.note_work(&ledger);
    }

    /// Whether a change that a reply would have to wait for can be written to the log `[G13]` `[G14]`: the release of a lock
    /// without a TTL, or of everything.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    #[inline]
    pub(crate) fn may_log(&self) -> Result<(), Denial> {
        match self.trouble.load(Ordering::Acquire) {
            HEALTHY => Ok(()),
            CLOSED => Err(Denial::Closed),
            _ => Err(Denial::Unreleasable {
                error: self.ledger.lock().error.clone(),
            }),
        }
    }

    /// Whether the disk takes what it is given, as far as anybody knows, and the node was not closed.
    #[inline]
    pub(crate) fn is_healthy(&self) -> bool {
        self.trouble.load(Ordering::Acquire) == HEALTHY
    }

    /// Whether somebody's reply waits for something that is not durable yet. To be asked while the shard of what was
    /// looked at is held.
    #[inline]
    pub(crate) fn has_awaited(&self) -> bool {
        self.has_awaited.load(Ordering::Relaxed)
    }

    /// What has to be durable before anybody may be told of a key; see [`Ledger::need_of`].
    pub(crate) fn need_of(
        &self,
        now: Time,
        db: u8,
        key: &[u8],
        rides_until: Option<Deadline>,
    ) -> Need {
        self.ledger.lock().need_of(now, db, key, rides_until)
    }

    /// What has to be durable before anybody may be told of the whole table.
    pub(crate) fn need_of_all(&self) -> Need {
        self.ledger.lock().need_of_all()
    }

    /// Whether there is a log.
    pub(crate) const fn has_log(&self) -> bool {
        matches!(self.mode, GuardMode::Store(_))
    }

    /// How restarts are guarded.
    pub const fn mode(&self) -> GuardMode {
        self.mode
    }

    /// Locks with a longer TTL are written to the log.
    pub const fn max_ttl(&self) -> Duration {
        Duration::from_nanos(self.max_ttl_ns)
    }

    /// Takes note of how far the node's time has fallen behind the machine's clocks: a horizon is written
    /// down in terms of the machine's clocks, which pass it sooner by so much `[G6]`. To be called before every batch; only
    /// growth matters.
    #[inline]
    pub fn note_slip(&self, slip_ns: u64) {
        if slip_ns > self.slip.load(Ordering::Relaxed) {
            self.slipped(slip_ns);
        }
    }

    #[cold]
    fn slipped(&self, slip_ns: u64) {
        let mut ledger = self.ledger.lock();
        self.slip.fetch_max(slip_ns, Ordering::Relaxed);
        ledger.note_slip(slip_ns);
        self.set_bounds(&ledger);
    }

    /// How long commands on keys are refused still; `None` when they are served.
    #[inline]
    pub fn quarantine_left(&self, now: Time) -> Option<Duration> {
        let serves_from = self.serves_from.load(Ordering::Relaxed);
        if now.as_nanos() >= serves_from {
            return None;
        }
        Some(Duration::from_nanos(serves_from - now.as_nanos()))
    }

    /// Grants nothing any more: a snapshot that is taken from here on holds all that was granted. A grant that runs at
    /// this moment holds its shard, which the snapshot waits for; any later one finds bounds of zero and is refused.
    pub(crate) fn close(&self) {
        let ledger = self.ledger.lock();
        self.trouble.fetch_max(CLOSED, Ordering::AcqRel);
        self.set_bounds(&ledger);
    }

    /// Whether the node was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.trouble.load(Ordering::Acquire) == CLOSED
    }

    /// Whether replies that rest on `need` may leave.
    pub fn is_durable(&self, need: &Need) -> bool {
        if need.records > self.records_durable.load(Ordering::Acquire) {
            return false;
        }
        need.state <= self.version_durable.load(Ordering::Acquire)
    }

    /// Whether a sync has failed, or the node was closed: what waits for durability waits in vain, and nothing is
    /// granted `[G13]`.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.trouble.load(Ordering::Acquire) >= FAILED
    }

    /// Whether replies that rest on `need` wait for what cannot be written: they are not sent, and their connection is
    /// closed `[G13]` `[G14]`.
    pub fn is_hopeless(&self, need: &Need) -> bool {
        match self.trouble.load(Ordering::Acquire) {
            HEALTHY => false,
            LOG_FULL => need.records > self.records_durable.load(Ordering::Acquire),
            _ => !self.is_durable(need),
        }
    }

    /// Whether there is work for the store that nobody has taken yet.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_work.load(Ordering::Acquire)
    }

    /// Takes all that is to become durable now; `None` when there is nothing, or when earlier work is not done yet.
    pub fn take_work(&self, now: Time) -> Option<Work> {
        let mut ledger = self.ledger.lock();
        let work = ledger.take_work(now);
        self.has_work.store(false, Ordering::Release);
        // A lowered TTL in use holds from now on: what is granted while it is written is measured by it.
        self.set_bounds(&ledger);
        work
    }

    /// The work is durable: what rests on it may leave.
    pub fn done(&self, work: &Work) {
        let mut ledger = self.ledger.lock();
        ledger.done(&work.goal);
        if self.is_full() {
            self.trouble.store(HEALTHY, Ordering::Release);
        }
        self.version_durable
            .store(ledger.version_durable(), Ordering::Release);
        self.records_durable
            .store(work.goal.records, Ordering::Release);
        self.set_bounds(&ledger);
        self.note_work(&ledger);
    }

    /// The work could not be done, or only that part of it which is in `durable`. When the disk is full it is given out
    /// again by a later [`Guard::take_work`]; after any other error nothing is granted any more.
    pub fn failed(&self, work: Work, error: &StoreError, durable: &Durable) {
        let mut ledger = self.ledger.lock();
        let is_state_durable = ledger.give_back(work, durable);
        self.version_durable
            .store(ledger.version_durable(), Ordering::Release);
        ledger.error = error.to_string();
        let trouble = if !error.is_full() {
            FAILED
        } else if is_state_durable {
            LOG_FULL
        } else {
            FULL
        };
        // A disk may become a little less full; nothing else gets better.
        let now = self.trouble.load(Ordering::Acquire);
        if now < FAILED {
            self.trouble.store(trouble, Ordering::Release);
        }
        self.set_bounds(&ledger);
        self.note_work(&ledger);
    }

    /// Whether the disk has refused what was to be written and that is tried again.
    fn is_full(&self) -> bool {
        matches!(self.trouble.load(Ordering::Acquire), LOG_FULL | FULL)
    }

    /// To be called when the ledger has changed.
    fn note_work(&self, ledger: &Ledger) {
        let is_settled = ledger.need_of_all().is_none();
        self.has_awaited.store(!is_settled, Ordering::Relaxed);
        if ledger.wants_work() && !self.has_failed() {
            self.has_work.store(true, Ordering::Release);
        }
    }

    /// Sets the bounds to what the ledger says, or to nothing in trouble, so that every grant is looked at.
    fn set_bounds(&self, ledger: &Ledger) {
        let is_healthy = self.trouble.load(Ordering::Acquire) == HEALTHY && !ledger.is_exhausted;
        let (horizon, ttl, ceiling) = match self.mode {
            _ if !is_healthy => (0, 0, 0),
            GuardMode::Off => (u64::MAX, u64::MAX, COUNTERS_END - 1),
            GuardMode::Memory => (u64::MAX, self.max_ttl_ns, COUNTERS_END - 1),
            GuardMode::Store(Durability::Always) => (0, 0, ledger.ceiling_soft()),
            GuardMode::Store(Durability::Long) => (
                ledger.horizon_soft(),
                ledger.ttl_soft().min(self.max_ttl_ns),
                ledger.ceiling_soft(),
            ),
        };
        self.horizon_soft.store(horizon, Ordering::Relaxed);
        self.ttl_soft.store(ttl, Ordering::Relaxed);
        self.ceiling_soft.store(ceiling, Ordering::Relaxed);
    }
}

const HEALTHY: u8 = 0;
const LOG_FULL: u8 = 1;
const FULL: u8 = 2;
const FAILED: u8 = 3;
const CLOSED: u8 = 4;

/// Counters from here on end all granting `[F6]`: far enough below the end of the tokens that no counter reaches it by
/// the grants of the batches that run meanwhile.
const COUNTERS_END: u64 = FENCE_END - (1 << 24);

#[cfg(test)]
mod tests;
