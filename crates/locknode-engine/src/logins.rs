//! How a connection that gives wrong passwords is slowed, without holding up others.
//!
//! ```text
//!  wrong --> Flow::Paused, until the delay is over --> offered again --> -WRONGPASS
//!  wrong, in a transaction --> -WRONGPASS, and further logins in it too; the next command waits
//! ```

use std::time::Duration;

use crate::time::Time;

/// The wrong passwords of one connection since it last gave a right one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Logins {
    failures: u32,
    held_until: Option<Time>,
    /// The refusal has been sent, and the next command waits in its place.
    is_answered: bool,
}

impl Logins {
    /// Returns until when the connection's next command waits.
    pub(crate) fn wait_end(self, now: Time) -> Option<Time> {
        self.held_until.filter(|until| now < *until)
    }

    /// Returns whether the connection waits, or has waited and not been answered.
    pub(crate) const fn are_held(self) -> bool {
        self.held_until.is_some()
    }

    /// Notes a wrong password; returns whether it is answered now rather than when it is offered again.
    pub(crate) fn fail(&mut self, now: Time, is_in_transaction: bool) -> bool {
        if self.is_answered && self.wait_end(now).is_some() {
            // In a transaction in which one has failed.
            return true;
        }
        if self.held_until.is_some() && !self.is_answered {
            self.held_until = None;
            return true;
        }
        let delay = DELAY_MIN.saturating_mul(1 << self.failures.min(DOUBLINGS));
        self.failures += 1;
        self.held_until = Some(now.saturating_add(delay));
        self.is_answered = is_in_transaction;
        is_in_transaction
    }

    /// Ends a wait that is over and whose refusal has been sent.
    pub(crate) fn settle(&mut self, now: Time) {
        if self.is_answered && self.wait_end(now).is_none() {
            self.held_until = None;
        }
    }
}

/// A person does not notice it; a program tries no more than ten passwords per second.
const DELAY_MIN: Duration = Duration::from_millis(100);

/// It doubles up to this often, to 3.2 seconds: less than the time that drivers wait for a reply.
const DOUBLINGS: u32 = 5;
