//! The planted bugs of a start.

use locknode_engine::durable::StartReason;
use locknode_engine::{GuardConfig, Time};

use super::SimNode;
use crate::bug::Bug;

impl SimNode {
    /// Changes what a node begins with as its bug, if it has one, would.
    pub(super) fn plant(&mut self, guard: &mut GuardConfig, now: Time) {
        let first_base = *self.first_base.get_or_insert(guard.fence_base);
        let left = guard
            .quarantine_end
            .as_nanos()
            .saturating_sub(now.as_nanos());
        match self.bug {
            Some(Bug::QuarantineOff) => guard.quarantine_end = Time::ZERO,
            Some(Bug::QuarantineShort) => {
                guard.quarantine_end = Time::from_nanos(now.as_nanos() + left - left / 10);
            }
            Some(Bug::WaitFromConfig) => {
                let configured = u64::try_from(self.max_ttl.as_nanos()).unwrap_or(u64::MAX);
                let configured = configured.saturating_add(configured / 100 + 2_000_000);
                guard.quarantine_end = Time::from_nanos(now.as_nanos() + left.min(configured));
            }
            Some(Bug::HashTtlOffGuard) if self.guard.has_directory() => {
                guard.quarantine_end = Time::from_nanos(now.as_nanos() + left.min(self.token_ttl));
            }
            Some(Bug::CutLogServed) if guard.reason == StartReason::DroppedBatch => {
                guard.quarantine_end = Time::ZERO;
            }
            Some(Bug::FenceForgotten) => guard.fence_base = first_base,
            Some(Bug::FenceFromStarts) => {
                guard.fence_base = first_base + (u64::from(self.incarnation) << 20);
            }
            Some(Bug::CeilingBurnt) => {
                guard.fence_base += u64::from(self.incarnation - 1) << 20;
            }
            _ => {}
        }
    }
}
