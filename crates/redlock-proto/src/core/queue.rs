//! Attempts that wait, so that no more is asked of the nodes at once than they answer in their time.
//!
//! All locks of a client share one connection per node, on which requests are answered in their order. What is asked
//! behind tens of thousands of others is not answered within the time that a node has, and nobody gets a lock. So an
//! attempt begins only while a majority of the nodes has room, and the time of the nodes counts from then.

use crate::core::acquiring::Trying;
use crate::core::{Core, Operation, State};
use crate::entropy::Entropy;
use crate::error_kind::ErrorKind;
use crate::time::Time;

/// An attempt that waits.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub(crate) trying: Trying,
    pub(crate) until: Time,
}

impl<E: Entropy> Core<E> {
    /// Begins an attempt, at once or when those before it have room for it.
    pub(super) fn begin_attempt(&mut self, now: Time, operation: &mut Operation, trying: Trying) {
        if self.queue.is_empty() && !self.is_congested() {
            return self.attempt(now, operation, trying);
        }
        let until = trying.deadline.min(now + QUEUED_MAX);
        operation.state = State::Queued(Queued { trying, until });
        self.set_alarm(operation, until);
        self.queue.push_back(operation.id);
    }

    /// Begins what had to wait, as far as there is room.
    pub(super) fn begin_queued(&mut self, now: Time) {
        while !self.queue.is_empty() && !self.is_congested() {
            let Some(op) = self.queue.pop_front() else {
                return;
            };
            self.with(op, |core, operation| {
                if let State::Queued(Queued { trying, until }) = operation.state {
                    if now < until {
                        core.attempt(now, operation, trying)
                    } else {
                        core.not_acquired(operation, ErrorKind::Timeout)
                    }
                }
            });
        }
    }

    /// Returns whether too many nodes have a full queue for another request to get a majority in time. Nodes that are
    /// silent or down do not count, because they are not asked.
    fn is_congested(&self) -> bool {
        let is_full = |link: &&crate::core::link::Link| {
            (link.is_ready() || link.is_hopeful()) && link.load() >= LOAD_MAX
        };
        self.links.iter().filter(is_full).count() > self.quorum.spare()
    }
}

/// Requests that a node has to answer before another attempt begins: a few milliseconds of work for any server.
const LOAD_MAX: usize = 1_024;

/// Longest that an attempt waits for room. Nodes that answer at all answer tens of thousands of requests a second.
const QUEUED_MAX: std::time::Duration = std::time::Duration::from_secs(10);
