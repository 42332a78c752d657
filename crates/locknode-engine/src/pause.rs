//! CLIENT PAUSE: a time span in which all commands, or only writes, wait.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::flags::Flags;
use crate::time::Time;

/// The pause in force, if any: one word for all commands, one for writes only.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    all_until: AtomicU64,
    writes_until: AtomicU64,
}

impl Pause {
    /// Pauses until then; a pause already in force is never shortened and keeps its stricter kind.
    pub(crate) fn begin(&self, until: Time, all: bool) {
        let word = if all {
            &self.all_until
        } else {
            &self.writes_until
        };
        word.fetch_max(until.as_nanos(), Ordering::Relaxed);
    }

    /// Ends every pause.
    pub(crate) fn clear(&self) {
        self.all_until.store(0, Ordering::Relaxed);
        self.writes_until.store(0, Ordering::Relaxed);
    }

    /// Returns whether a command with these flags must wait.
    #[inline]
    pub(crate) fn holds(&self, now: Time, flags: Flags) -> bool {
        let all = self.all_until.load(Ordering::Relaxed);
        let writes = self.writes_until.load(Ordering::Relaxed);
        if all | writes == 0 || flags.has(Flags::NO_PAUSE) {
            return false;
        }
        let is_write = flags.has(Flags::WRITE) || flags.has(Flags::MAY_WRITE);
        now.as_nanos() < all || (is_write && now.as_nanos() < writes)
    }

    /// Returns when the pause in force at `now` ends.
    pub(crate) fn end(&self, now: Time) -> Option<Time> {
        let until = self
            .all_until
            .load(Ordering::Relaxed)
            .max(self.writes_until.load(Ordering::Relaxed));
        (now.as_nanos() < until).then(|| Time::from_nanos(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_of_writes_lets_reads_pass() {
        let pause = Pause::default();
        pause.begin(Time::from_millis(10), false);
        for (now_ms, flags, held) in [
            (5, Flags::WRITE, true),
            (5, Flags::MAY_WRITE, true),
            (5, Flags::READONLY, false),
            (5, Flags::WRITE.and(Flags::NO_PAUSE), false),
            (10, Flags::WRITE, false),
        ] {
            assert_eq!(
                pause.holds(Time::from_millis(now_ms), flags),
                held,
                "{now_ms} {flags:?}"
            );
        }
        pause.begin(Time::from_millis(8), true);
        assert!(pause.holds(Time::from_millis(7), Flags::READONLY));
        assert_eq!(pause.end(Time::from_millis(9)), Some(Time::from_millis(10)));
        pause.clear();
        assert_eq!(pause.end(Time::ZERO), None);
    }
}
