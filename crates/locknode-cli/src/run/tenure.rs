//! How long the lock is still held: the client's validity, or after a loss its last one. A lost lock has
//! no validity, but the command may use the rest of the last one to end by itself.

use std::time::Duration;

use redlock_client::Time;

/// The last known validity of one lock.
#[derive(Clone, Debug)]
pub(super) struct Tenure {
    ends: Time,
    /// An end that is later by more than this was moved by a renewal.
    tolerance: Duration,
    is_lost: bool,
}

impl Tenure {
    pub(super) fn new(now: Time, validity: Duration) -> Self {
        Self {
            ends: now + validity,
            tolerance: validity / 4,
            is_lost: false,
        }
    }

    /// Takes the client's current validity. Returns whether the lock was renewed. Two clocks are read one after the
    /// other, and a busy machine may do something else in between, so readings of the same end differ; a renewal moves
    /// it by at least a third of the TTL.
    pub(super) fn look(&mut self, now: Time, validity: Duration) -> bool {
        if self.is_lost {
            return false;
        }
        let ends = now + validity;
        let is_renewed = ends > self.ends + self.tolerance;
        self.ends = ends;
        is_renewed
    }

    /// The client has lost the lock: later validities are ignored.
    pub(super) const fn lose(&mut self) {
        self.is_lost = true;
    }

    /// The validity that is left.
    pub(super) const fn left(&self, now: Time) -> Duration {
        self.ends.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_client_until_the_lock_is_lost() {
        let (start, ms) = (Time::from_nanos(7), Duration::from_millis);
        let at = |millis| start + ms(millis);
        let mut tenure = Tenure::new(start, ms(1000));
        assert!(!tenure.look(at(100), ms(902)));
        assert!(tenure.look(at(300), ms(990)));
        assert_eq!(tenure.left(at(300)), ms(990));
        // A shorter TTL, or a clock that went on while the machine slept.
        assert!(!tenure.look(at(400), ms(200)));
        assert_eq!(tenure.left(at(400)), ms(200));
        tenure.lose();
        assert!(!tenure.look(at(450), ms(0)));
        assert_eq!(tenure.left(at(450)), ms(150));
        assert_eq!(tenure.left(at(700)), ms(0));
    }
}
