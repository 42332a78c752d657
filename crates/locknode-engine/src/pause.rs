//! CLIENT PAUSE: a time span in which all commands, or only writes, wait.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::flags::Flags;
use crate::time::Time;

/// The pause in force, if any.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    /// Until when writes wait.
    until: AtomicU64,
    /// Until when all commands wait, writes or not.
    all_until: AtomicU64,
}

impl Pause {
    /// Pauses until then; a pause already in force is never shortened and keeps its stricter kind.
    pub(crate) fn begin(&self, until: Time, all: bool) {
        if all {
            self.all_until
                .fetch_max(until.as_nanos(), Ordering::Relaxed);
        }
        self.until.fetch_max(until.as_nanos(), Ordering::Relaxed);
    }

    /// Ends every pause.
    pub(crate) fn clear(&self) {
        self.until.store(0, Ordering::Relaxed);
        self.all_until.store(0, Ordering::Relaxed);
    }

    /// Returns whether a command with these flags must wait.
    #[inline]
    pub(crate) fn holds(&self, now: Time, flags: Flags) -> bool {
        let is_before = |until: &AtomicU64| now.as_nanos() < until.load(Ordering::Relaxed);
        is_before(&self.until)
            && !flags.has(Flags::NO_PAUSE)
            && (flags.has(Flags::WRITE)
                || flags.has(Flags::MAY_WRITE)
                || is_before(&self.all_until))
    }

    /// Returns when the pause in force at `now` ends.
    pub(crate) fn end(&self, now: Time) -> Option<Time> {
        let until = self.until.load(Ordering::Relaxed);
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
