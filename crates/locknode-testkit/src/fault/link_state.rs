//! What is wrong with a link right now, simulated or real.

use std::time::Duration;

use crate::fault::{Refusal, Way};

/// What happens to what one client and one node send each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkState {
    pub(crate) requests: LaneState,
    pub(crate) replies: LaneState,
    /// Each message takes this much longer.
    pub(crate) delay: Duration,
    /// How many of the next requests arrive twice.
    pub(crate) doubles: u8,
    /// The next requests for locks are refused instead of executed: how many, and how.
    pub(crate) refusals: Option<(u8, Refusal)>,
}

/// One direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct LaneState {
    pub(crate) is_cut: bool,
    pub(crate) is_held: bool,
    /// How many of the next messages are lost ...
    pub(crate) losses: u8,
    /// ... or come later by this much.
    pub(crate) lates: u8,
    pub(crate) late_by: Duration,
}

impl LinkState {
    pub(crate) const fn lane(&mut self, is_requests: bool) -> &mut LaneState {
        if is_requests {
            &mut self.requests
        } else {
            &mut self.replies
        }
    }

    /// Changes the direction that is meant, or both.
    pub(crate) fn each(&mut self, way: Way, change: impl Fn(&mut LaneState)) {
        if way.has_requests() {
            change(&mut self.requests);
        }
        if way.has_replies() {
            change(&mut self.replies);
        }
    }

    /// How a request with this name is refused, if it is one of those that are.
    pub(crate) fn take_refusal(&mut self, name: &[u8]) -> Option<Refusal> {
        let (count, refusal) = self.refusals?;
        if ALWAYS_SERVED.iter().any(|it| name.eq_ignore_ascii_case(it)) {
            return None;
        }
        self.refusals = (count > 1).then(|| (count - 1, refusal));
        Some(refusal)
    }

    /// No connection can be made.
    pub(crate) const fn is_cut(&self) -> bool {
        self.requests.is_cut || self.replies.is_cut
    }
}

impl LaneState {
    /// Nothing passes.
    pub(crate) const fn is_closed(&self) -> bool {
        self.is_cut || self.is_held
    }

    /// By how much the next message comes later.
    pub(crate) fn take_late(&mut self) -> Duration {
        if take_one(&mut self.lates) {
            self.late_by
        } else {
            Duration::ZERO
        }
    }
}

/// Takes one of `count`. Returns whether there was one.
pub(crate) const fn take_one(count: &mut u8) -> bool {
    let is_left = *count > 0;
    *count = count.saturating_sub(1);
    is_left
}

/// What servers serve in every state: they say who they are, and whether they live.
const ALWAYS_SERVED: [&[u8]; 10] = [
    b"AUTH", b"HELLO", b"SELECT", b"CLIENT", b"COMMAND", b"INFO", b"PING", b"MULTI", b"WATCH",
    b"UNWATCH",
];
