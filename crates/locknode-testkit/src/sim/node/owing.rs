//! What a node owes although nobody waits for it: what it granted becomes durable, and it does not waste its counters.

use locknode_engine::WallTime;
use locknode_engine::durable::StartReason;

use super::{Run, SimNode};
use crate::sim::oracle::Breach;
use crate::span::SimTime;

impl SimNode {
    /// Reports a disk that has had nothing to do although something has to become durable `[G17]`: a command wakes the
    /// disk at once.
    pub(crate) fn neglects(&self, now: SimTime) -> Vec<Breach> {
        let neglected = self.run.as_ref().filter(|run| {
            let guard = run.engine.guard();
            let is_idle = run.store.is_some() && run.in_flight.is_none() && !self.is_stalled;
            let is_over = self.struck.is_none() && run.owed.1 < now && self.disk_rests_until < now;
            is_idle && is_over && !guard.has_failed() && !guard.is_durable(&run.owed.0)
        });
        let breach = |run: &Run| {
            let since = run.owed.1;
            Breach::of_node(format!(
                "has let its disk rest since {since}, and what it granted is not durable"
            ))
        };
        neglected.map(breach).into_iter().collect()
    }

    /// The run ends: up to where the next one's counters begin `[F3]`, but for the calendar and damage.
    pub(super) fn note_ceiling(&mut self) {
        let Some(run) = &self.run else { return };
        let counters = run.reference.as_ref().and_then(|it| it.counters());
        self.base_most = counters.map_or(u64::MAX, |(base, highest)| match highest - base {
            0 => base,
            used => highest + used.clamp(FIRST_STEP, FENCE_STEP),
        });
    }

    /// A start reads the wall clock.
    pub(super) fn note_calendar(&mut self, wall: WallTime) {
        let seconds = wall.as_unix_nanos() / 1_000_000_000;
        self.base_most = self.base_most.max(seconds * FENCE_STEP);
    }

    /// A start was cut short: it may have found damage, and have written what follows from that.
    pub(super) fn note_jump(&mut self) {
        self.base_most = self.base_most.saturating_add(JUMP);
    }

    /// A run has begun with its counters there: whether it had to, and waits to the last instant of its quarantine.
    pub(crate) fn judge_beginning(&mut self, base: u64) -> Option<Breach> {
        let run = self.run.as_ref()?;
        if let Some(end) = run.waits_until
            && run.engine.guard().quarantine_left(end).is_none()
        {
            return Some(Breach::of_node("serves before its quarantine has ended"));
        }
        let reason = run.reason;
        if matches!(
            reason,
            StartReason::DamagedState | StartReason::DroppedBatch
        ) {
            self.note_jump();
        }
        let most = std::mem::replace(&mut self.base_most, base);
        (base > most).then(|| {
            Breach::of_node(format!(
                "begins its counters at {base}, {} above where it has to",
                base - most
            ))
        })
    }
}

/// What the calendar gains in a second, and the ceiling is raised by at most.
const FENCE_STEP: u64 = 1 << 20;

/// What the ceiling is raised by at first.
const FIRST_STEP: u64 = 1 << 12;

/// What damage to the state adds `[F4]`.
const JUMP: u64 = 8 * FENCE_STEP;
