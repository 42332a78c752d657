//! How long the lock is still ours: what the client says while it holds the lock, and what it said last when it has
//! given the lock up. A lock that is lost has no validity any more, but the command has until the end of the last
//! one to end by itself.

use std::time::Duration;

use redlock_client::Time;

/// The validity of one lock as it was seen last.
#[derive(Clone, Debug)]
pub(super) struct Tenure {
    ends: Time,
    is_lost: bool,
}

impl Tenure {
    pub(super) fn new(now: Time, validity: Duration) -> Self {
        Self {
            ends: now + validity,
            is_lost: false,
        }
    }

    /// Takes what the client says now. Returns whether the lock was renewed.
    pub(super) fn look(&mut self, now: Time, validity: Duration) -> bool {
        if self.is_lost {
            return false;
        }
        let ends = now + validity;
        let is_renewed = ends > self.ends + READING_MAX;
        self.ends = ends;
        is_renewed
    }

    /// The client has given the lock up: what it says from now on is not about this lock.
    pub(super) const fn lose(&mut self) {
        self.is_lost = true;
    }

    /// What is left of it.
    pub(super) const fn left(&self, now: Time) -> Duration {
        self.ends.since(now)
    }
}

/// Two clocks are read one after the other, so the same end is seen a bit later or earlier each time. A renewal
/// moves it by at least a third of the TTL.
const READING_MAX: Duration = Duration::from_millis(5);

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
