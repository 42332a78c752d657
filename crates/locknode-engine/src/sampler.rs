//! Which of many events are looked at closely: all while they are few, some while they are many.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::time::Time;

/// Chooses events by their numbers, so that about [`RATE`] a second are chosen.
///
/// It is statistics: threads that use it at the same time may choose a few more or less.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// A number is chosen when it has none of these bits.
    mask: AtomicU64,
    /// Since when this second is counted, in nanoseconds of the node's time.
    window: AtomicU64,
    /// How many were chosen in it.
    chosen: AtomicU64,
}

impl Sampler {
    /// Returns whether the event with this number is chosen.
    #[inline]
    pub(crate) fn chooses(&self, number: u64) -> bool {
        number & self.mask.load(Ordering::Relaxed) == 0
    }

    /// Returns how many events a chosen one stands for.
    pub(crate) fn weight(&self) -> u64 {
        self.mask.load(Ordering::Relaxed) + 1
    }

    /// Notes that an event was chosen, and chooses fewer if there are many.
    #[cold]
    pub(crate) fn note(&self, now: Time) {
        self.relax(now);
        let chosen = self.chosen.load(Ordering::Relaxed) + 1;
        self.chosen.store(chosen, Ordering::Relaxed);
        if chosen > RATE {
            let mask = self.mask.load(Ordering::Relaxed);
            self.begin((mask << 1 | 1).min(MASK_MAX), now);
        }
    }

    /// Chooses more if there were few in the last second; call this about once a second.
    pub(crate) fn relax(&self, now: Time) {
        let began = Time::from_nanos(self.window.load(Ordering::Relaxed));
        let seconds = now.since(began).as_secs();
        if seconds == 0 {
            return;
        }
        // As if the events had come evenly over the time.
        let rate = self.chosen.load(Ordering::Relaxed) / seconds;
        let mut mask = self.mask.load(Ordering::Relaxed);
        let mut expected = rate;
        while mask > 0 && expected < RATE / 2 {
            mask >>= 1;
            expected = expected * 2 + 1;
        }
        self.begin(mask, now);
    }

    fn begin(&self, mask: u64, now: Time) {
        self.mask.store(mask, Ordering::Relaxed);
        self.window.store(now.as_nanos(), Ordering::Relaxed);
        self.chosen.store(0, Ordering::Relaxed);
    }
}

/// Events looked at in a second: a thousand in a minute, and a ten-thousandth of the time of a core.
const RATE: u64 = 16;

/// At ten million events a second, some are still chosen.
const MASK_MAX: u64 = (1 << 18) - 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// Offers the same number of events in each second; returns how many were chosen in the last one,
    /// and how many they stand for.
    fn offer(sampler: &Sampler, events: u64, seconds: std::ops::Range<u64>) -> (u64, u64) {
        let mut last = (0, 0);
        for second in seconds {
            last = (0, 0);
            for number in 0..events {
                let now =
                    Time::from_nanos(second * 1_000_000_000 + number * 1_000_000_000 / events);
                if sampler.chooses(second * events + number) {
                    last.0 += 1;
                    last.1 += sampler.weight();
                    sampler.note(now);
                }
            }
            sampler.relax(Time::from_nanos((second + 1) * 1_000_000_000));
        }
        last
    }

    #[test]
    fn few_events_are_all_chosen_and_many_are_not() {
        let sampler = Sampler::default();
        assert_eq!(offer(&sampler, 10, 0..3), (10, 10));
        let (chosen, stands_for) = offer(&sampler, 100_000, 3..20);
        assert!((RATE / 4..=2 * RATE).contains(&chosen), "{chosen}");
        assert!((50_000..200_000).contains(&stands_for), "{stands_for}");
        // When it is quiet again, all are.
        assert_eq!(offer(&sampler, 10, 20..60), (10, 10));
    }
}
