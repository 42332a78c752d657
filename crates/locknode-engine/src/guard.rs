//! The restart guard: it refuses every lock that a crash could make the node grant twice.
//!
//! ```text
//!             deadline                      requests
//!  command --> permit -- within the bounds? --no--> Ledger --take_work--> store, disk
//!                |  yes                               ^                      |
//!                v                                    +------- done ---------+
//!             Permit, Need                    bounds rise, waiting replies are sent
//! ```
//!
//! A grant within the *bounds* costs two comparisons. The bounds lie below what is durable by the
//! time a sync takes, so that in steady state the next horizon is durable before any deadline
//! reaches the current one `[G8]`. A grant beyond the bounds requests a higher horizon, and a grant
//! beyond what is durable makes its reply wait.
//!
//! A reply about a lock, or about a free key, also waits if it depends on something not yet
//! durable, because a crash must not make it untrue `[G17]`. While no reply waits for the disk,
//! this costs one call of [`Guard::has_waiting_replies`] per key.
//!
//! The guard also decides whether the node is in quarantine `[G1]`, and why it grants nothing
//! `[G13]` `[G14]`.

mod batch_needs;
mod denial;
mod ledger;
mod need;
mod report;
mod unwritten_keys;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::durable::{Durability, Durable, Record, Start, StartReason, StoreError, Work};
use crate::fence::FENCE_END;
use crate::time::{Deadline, Time};

use ledger::Ledger;

pub(crate) use batch_needs::BatchNeeds;
pub(crate) use denial::Denial;
pub use need::Need;
pub use report::{GuardReport, GuardState};

/// How a node guards its restarts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GuardMode {
    /// Not at all, like Redis `[G15]`.
    #[default]
    Off,
    /// By refusing locks for `max-ttl` after every start; nothing is stored.
    Memory,
    /// With a store, whose state shortens the wait, and a log.
    Store(Durability),
}

/// The configuration of a guard, and what it starts from.
#[derive(Clone, Debug)]
pub struct GuardConfig {
    /// How restarts are guarded.
    pub mode: GuardMode,
    /// Locks with a longer TTL are written to the log.
    pub max_ttl: Duration,
    /// Locks are refused up to this instant; if it is not in the future, there is no quarantine.
    pub quarantine_end: Time,
    /// Why there is a quarantine, or none.
    pub reason: StartReason,
    /// The number of this run of the node; 0 without a store.
    pub incarnation: u64,
    /// Where all fence counters begin.
    pub fence_base: u64,
    /// What is already durable.
    pub durable: Durable,
}

/// The right to hold a key until a deadline, given by [`Guard::permit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permit {
    pub(crate) deadline: Deadline,
    /// Whether the lock must be written to the log.
    pub(crate) is_logged: bool,
    /// Whether the deadline is the one that the key had before.
    pub(crate) keeps_deadline: bool,
    /// The key's fence counter rises above this.
    pub(crate) floor: u64,
}

/// The restart guard of one node; see the module docs.
#[derive(Debug)]
pub struct Guard {
    mode: GuardMode,
    max_ttl_ns: u64,
    /// Deadlines up to here, in nanoseconds of the node's time, ...
    horizon_soft: AtomicU64,
    /// ... with TTLs up to this many nanoseconds, are within the bounds.
    ttl_soft: AtomicU64,
    /// Fence counters up to here are within the bounds.
    ceiling_soft: AtomicU64,
    /// The first instant at which commands on keys are served.
    serves_from: AtomicU64,
    /// How far the node's time had fallen behind when this was last updated.
    slip: AtomicU64,
    trouble: AtomicU8,
    has_work: AtomicBool,
    /// Whether a reply waits for something not yet durable, or would if its client waited for it.
    /// Set before the shard with the change is unlocked.
    has_waiting_replies: AtomicBool,
    version_durable: AtomicU64,
    records_durable: AtomicU64,
    ledger: Mutex<Ledger>,
}

impl GuardConfig {
    /// Returns the configuration without a guard: plain Redis behaviour.
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

    /// Returns the configuration of a guard that begins with `start`.
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
    /// A permit without conditions. Commands of a script get one too, because the journal requests
    /// the real one at the end of the script.
    pub(crate) const fn plain(deadline: Deadline) -> Self {
        Self {
            deadline,
            is_logged: false,
            keeps_deadline: false,
            floor: 0,
        }
    }

    /// The same permit, with the key's fence counter raised above `floor`.
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
            // Only a stored horizon can be reached too early.
            slip: AtomicU64::new(match config.mode {
                GuardMode::Store(_) => 0,
                GuardMode::Off | GuardMode::Memory => u64::MAX,
            }),
            trouble: AtomicU8::new(HEALTHY),
            has_work: AtomicBool::new(false),
            has_waiting_replies: AtomicBool::new(false),
            version_durable: AtomicU64::new(0),
            records_durable: AtomicU64::new(0),
            ledger: Mutex::new(Ledger::new(config, now)),
        };
        guard.set_bounds(&guard.ledger.lock());
        guard
    }

    /// Permits a key to be held from `now` until `deadline`, and adds to `need` what must be
    /// durable before the reply.
    ///
    /// `is_on_log` returns whether the lock that now holds the key is on the log.
    ///
    /// # Errors
    ///
    /// Returns why nothing, or nothing this long, is granted.
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

    /// Permits a key to be held from `now` until `deadline` if that is within the bounds.
    #[inline]
    pub(crate) fn permit_within(&self, now: Time, deadline: Deadline) -> Option<Permit> {
        let bits = deadline.to_bits();
        let is_within = bits <= self.horizon_soft.load(Ordering::Relaxed)
            && bits.saturating_sub(now.as_nanos()) <= self.ttl_soft.load(Ordering::Relaxed);
        is_within.then_some(Permit::plain(deadline))
    }

    /// Permits or refuses a grant beyond the bounds.
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
            keeps_deadline: false,
            floor: 0,
        })
    }

    /// Notes that a fence counter was raised to `counter`; no reply may contain it before it is
    /// covered by the ceiling `[F2]`.
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

    /// Writes a change to the log. With `waits`, the reply depends on it.
    pub(crate) fn log(&self, record: &Record<'_>, waits: bool, need: &mut Need) {
        let mut ledger = self.ledger.lock();
        ledger.append(record, waits, need);
        self.note_work(&ledger);
    }

    /// Returns whether a change that its reply must wait for can be written to the log `[G13]`
    /// `[G14]`: the release of a lock without a TTL, or of all locks.
    ///
    /// # Errors
    ///
    /// Returns why it cannot.
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

    /// Returns whether the disk has accepted every write so far and the node is not closed.
    #[inline]
    pub(crate) fn is_healthy(&self) -> bool {
        self.trouble.load(Ordering::Acquire) == HEALTHY
    }

    /// Returns whether any reply waits for something not yet durable. Call this while the shard in
    /// question is locked.
    #[inline]
    pub(crate) fn has_waiting_replies(&self) -> bool {
        self.has_waiting_replies.load(Ordering::Relaxed)
    }

    /// Returns what must be durable before a reply may reveal this key; see [`Ledger::need_of`].
    pub(crate) fn need_of(
        &self,
        now: Time,
        db: u8,
        key: &[u8],
        covered_until: Option<Deadline>,
    ) -> Need {
        self.ledger.lock().need_of(now, db, key, covered_until)
    }

    /// Returns what must be durable before a reply may reveal the whole table.
    pub(crate) fn need_of_all(&self) -> Need {
        self.ledger.lock().need_of_all()
    }

    /// Returns whether there is a log.
    pub(crate) const fn has_log(&self) -> bool {
        matches!(self.mode, GuardMode::Store(_))
    }

    /// Returns how restarts are guarded.
    pub const fn mode(&self) -> GuardMode {
        self.mode
    }

    /// Returns the longest TTL of a lock that is not written to the log.
    pub const fn max_ttl(&self) -> Duration {
        Duration::from_nanos(self.max_ttl_ns)
    }

    /// Notes how far the node's time has fallen behind the machine's clocks. A horizon is stored as
    /// readings of those clocks, which reach it earlier by that much `[G6]`.
    ///
    /// Call this before every batch; only growth matters.
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

    /// Returns how long commands on keys are still refused; `None` when they are served.
    #[inline]
    pub fn quarantine_left(&self, now: Time) -> Option<Duration> {
        let serves_from = self.serves_from.load(Ordering::Relaxed);
        if now.as_nanos() >= serves_from {
            return None;
        }
        Some(Duration::from_nanos(serves_from - now.as_nanos()))
    }

    /// Stops granting, so that a snapshot taken from here on contains every lock ever granted.
    ///
    /// A grant in progress holds its shard, and the snapshot waits for it; any later grant finds
    /// bounds of zero and is refused.
    pub(crate) fn close(&self) {
        let ledger = self.ledger.lock();
        self.trouble.fetch_max(CLOSED, Ordering::AcqRel);
        self.set_bounds(&ledger);
    }

    /// Returns whether the node was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.trouble.load(Ordering::Acquire) == CLOSED
    }

    /// Returns whether replies that depend on `need` may be sent.
    pub fn is_durable(&self, need: &Need) -> bool {
        if need.records > self.records_durable.load(Ordering::Acquire) {
            return false;
        }
        need.state <= self.version_durable.load(Ordering::Acquire)
    }

    /// Returns whether a sync has failed or the node was closed: replies that wait will wait in
    /// vain, and nothing is granted `[G13]`.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.trouble.load(Ordering::Acquire) >= FAILED
    }

    /// Returns whether `need` can no longer be met: the replies that depend on it are not sent, and
    /// their connection is closed `[G13]` `[G14]`.
    pub fn is_hopeless(&self, need: &Need) -> bool {
        match self.trouble.load(Ordering::Acquire) {
            HEALTHY => false,
            LOG_FULL => need.records > self.records_durable.load(Ordering::Acquire),
            _ => !self.is_durable(need),
        }
    }

    /// Returns whether there is work for the store that nobody has taken yet.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.has_work.load(Ordering::Acquire)
    }

    /// Takes everything that is to become durable now; `None` when there is nothing, or while
    /// earlier work is in progress.
    pub fn take_work(&self, now: Time) -> Option<Work> {
        let mut ledger = self.ledger.lock();
        let work = ledger.take_work(now);
        self.has_work.store(false, Ordering::Release);
        // A lowered TTL in use applies at once: grants made during the write are measured by it.
        self.set_bounds(&ledger);
        work
    }

    /// Notes that the work is durable: replies that depend on it may be sent.
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

    /// Notes that the work failed, except for the part in `durable`.
    ///
    /// If the disk is full, a later [`Guard::take_work`] returns the work again; after any other
    /// error nothing is granted.
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
        // A full disk may become less full; other trouble never improves.
        let now = self.trouble.load(Ordering::Acquire);
        if now < FAILED {
            self.trouble.store(trouble, Ordering::Release);
        }
        self.set_bounds(&ledger);
        self.note_work(&ledger);
    }

    /// Returns whether the disk refused a write that will be tried again.
    fn is_full(&self) -> bool {
        matches!(self.trouble.load(Ordering::Acquire), LOG_FULL | FULL)
    }

    /// Call this whenever the ledger has changed.
    fn note_work(&self, ledger: &Ledger) {
        let is_settled = ledger.need_of_all().is_none();
        self.has_waiting_replies
            .store(!is_settled, Ordering::Relaxed);
        if ledger.wants_work() && !self.has_failed() {
            self.has_work.store(true, Ordering::Release);
        }
    }

    /// Sets the bounds from the ledger; in trouble to zero, so that every grant is checked.
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

/// Counters from here on stop all granting `[F6]`: far enough below the largest token that no
/// counter reaches it by the grants of batches still running.
const COUNTERS_END: u64 = FENCE_END - (1 << 24);

#[cfg(test)]
mod tests;
