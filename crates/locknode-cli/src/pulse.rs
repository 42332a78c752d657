//! Whether the serving threads still run: each of them counts, and a look shows which have counted since the last one.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::sleep;

/// The counts of all threads that serve.
#[derive(Clone, Debug)]
pub(crate) struct Pulse {
    beats: Arc<[AtomicU64]>,
    every: Duration,
}

/// The counts as they were felt the last time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Felt(Vec<u64>);

impl Pulse {
    /// The pulse of this number of threads, each of which counts once per `every`.
    pub(crate) fn of(threads: usize, every: Duration) -> Self {
        Self {
            beats: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            every,
        }
    }

    /// Counts for a thread for as long as that polls this.
    pub(crate) async fn beat(&self, thread: usize) -> Infallible {
        loop {
            self.count(thread);
            sleep(self.every).await;
        }
    }

    pub(crate) fn count(&self, thread: usize) {
        if let Some(beats) = self.beats.get(thread) {
            beats.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether every thread has counted since the last time, or has not begun: a node that does not listen in
    /// quarantine is not hanging.
    pub(crate) fn feel(&self, felt: &mut Felt) -> bool {
        felt.0.resize(self.beats.len(), 0);
        let mut are_all_there = true;
        for (beats, felt) in self.beats.iter().zip(&mut felt.0) {
            let now = beats.load(Ordering::Relaxed);
            are_all_there &= now != *felt || now == 0;
            *felt = now;
        }
        are_all_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_that_hangs_is_felt_among_others() {
        let pulse = Pulse::of(2, Duration::ZERO);
        let mut felt = Felt::default();
        assert!(
            pulse.feel(&mut felt) && pulse.feel(&mut felt),
            "none has begun"
        );
        pulse.count(0);
        assert!(pulse.feel(&mut felt), "the second has not begun");
        assert!(!pulse.feel(&mut felt), "the first hangs");
        pulse.count(0);
        pulse.count(1);
        assert!(pulse.feel(&mut felt), "both run");
        pulse.count(0);
        assert!(!pulse.feel(&mut felt), "the second hangs");
        pulse.count(1);
        assert!(!pulse.feel(&mut felt), "the first again");
        pulse.count(0);
        pulse.count(1);
        assert!(pulse.feel(&mut felt), "both are back");
    }
}
