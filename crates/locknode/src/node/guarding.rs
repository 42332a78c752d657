//! What a node tells of its restart guard, and when that changes.

use std::time::Duration;

use locknode_engine::{GuardReport, GuardState};

use super::Node;

impl Node {
    /// What the restart guard does and has done: the quarantine, what is durable, trouble with the disk.
    pub fn guard(&self) -> GuardReport {
        let now = self.shared.clock.now().time;
        self.shared.engine.guard().report(now)
    }

    /// Waits until the guard is in another state than `seen`, and tells about it: the quarantine is over, the disk is
    /// full, has failed, or works again. What a program that embeds a node logs when it happens.
    ///
    /// # Cancel safety
    ///
    /// Waiting has no effect.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time.
    pub async fn guard_changed(&self, seen: GuardState) -> GuardReport {
        loop {
            let changed = self.shared.desk.changed();
            let report = self.guard();
            if report.state != seen {
                return report;
            }
            if report.state == GuardState::Quarantine {
                // The node's time decides; timers, which stand still while the machine sleeps, say when to look again.
                let until = report.quarantine_left.min(QUARANTINE_LOOK);
                let _ = tokio::time::timeout(until, changed).await;
            } else {
                changed.await;
            }
        }
    }

    /// How long the node stays out of every lock; `None` when it serves.
    pub fn quarantine_left(&self) -> Option<Duration> {
        let now = self.shared.clock.now().time;
        self.shared.engine.guard().quarantine_left(now)
    }
}

/// How often a quarantine is looked at: its end is noticed no later after the machine has slept.
const QUARANTINE_LOOK: Duration = Duration::from_secs(10);
