//! How a connection ends that keeps much.

use super::Engine;
use crate::session::Session;

impl Engine {
    /// Returns whether a connection that has ended may be dropped: to end what it has subscribed to,
    /// watches or waits for may take long, so it waits for its turn, and must yield if it may not.
    pub fn may_leave(&self, session: &mut Session) -> bool {
        if session.kept_bytes() < QUICKLY_LEFT {
            return true;
        }
        let turns = &self.services.turns;
        let Some(turn) = turns.begin(&mut session.place) else {
            return false;
        };
        session.forget_interests();
        turns.end(turn);
        true
    }
}

/// What a connection may keep of subscriptions and the like to be dropped in microseconds.
const QUICKLY_LEFT: usize = 16 << 10;
