//! The clocks of one machine of a cluster: the runtime's time, bent by faults.
//!
//! Below them is tokio's clock, so time that a test has paused passes for nodes and clients as it does for the test's
//! own timers. It is read inside of the cluster's runtime, from whatever thread: elsewhere tokio shows the real time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locknode::{Moment, Reading, Time, WallTime};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::fault::Who;
use crate::random::Random;
use crate::span::nanos;

/// A machine's clocks; nodes and clients read them by their own rules.
#[derive(Debug)]
pub(crate) struct MachineClock {
    runtime: Handle,
    origin: Instant,
    state: Mutex<State>,
}

/// A node's view: of the clocks that nobody sets the slower one counts, step by step.
#[derive(Debug)]
pub(crate) struct NodeClock(pub(crate) Arc<MachineClock>);

/// A client's view: the faster one counts.
#[derive(Debug)]
pub(crate) struct ClientClock(pub(crate) Arc<MachineClock>);

#[derive(Debug)]
struct State {
    /// What the clocks showed at a moment of the runtime's time; from there on they run evenly.
    mark: Shown,
    mark_at: u64,
    raw_ppm: i32,
    boot_ppm: i32,
    noise_ns: u64,
    noise: Random,
    /// Until when the machine sleeps, and until when it is frozen, in the runtime's time.
    asleep_until: u64,
    frozen_until: u64,
}

/// What the clocks show, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Shown {
    raw: u64,
    boot: u64,
    wall: u64,
    /// The sums of the lesser and of the greater steps.
    slower: u64,
    faster: u64,
}

impl MachineClock {
    /// Clocks that run right, on the runtime's time.
    pub(crate) fn start(runtime: Handle, wall_ns: u64, noise: Random) -> Self {
        let origin = now(&runtime);
        let state = State {
            mark: Shown {
                raw: UPTIME_NS,
                boot: UPTIME_NS,
                wall: wall_ns,
                slower: 0,
                faster: 0,
            },
            mark_at: 0,
            raw_ppm: 0,
            boot_ppm: 0,
            noise_ns: 0,
            noise,
            asleep_until: 0,
            frozen_until: 0,
        };
        Self {
            runtime,
            origin,
            state: Mutex::new(state),
        }
    }

    /// The clocks that nobody sets run so many millionths too fast; the wall clock is kept right.
    pub(crate) fn set_rate(&self, ppm: i32) {
        let mut state = self.settled().0;
        (state.raw_ppm, state.boot_ppm) = (ppm, ppm);
    }

    /// Boottime alone does.
    pub(crate) fn set_slew(&self, ppm: i32) {
        self.settled().0.boot_ppm = ppm;
    }

    /// Readings are late by up to this much.
    pub(crate) fn set_noise(&self, noise: Duration) {
        self.settled().0.noise_ns = nanos(noise);
    }

    /// The wall clock is set.
    pub(crate) fn jump_wall(&self, by_ms: i64) {
        let mut state = self.settled().0;
        let by_ns = by_ms.unsigned_abs().saturating_mul(1_000_000);
        state.mark.wall = match by_ms >= 0 {
            true => state.mark.wall.saturating_add(by_ns),
            false => state.mark.wall.saturating_sub(by_ns),
        };
    }

    /// The machine sleeps.
    pub(crate) fn suspend(&self, span: Duration) {
        let (mut state, at) = self.settled();
        state.asleep_until = state.asleep_until.max(at.saturating_add(nanos(span)));
    }

    /// The machine is frozen.
    pub(crate) fn freeze(&self, span: Duration) {
        let (mut state, at) = self.settled();
        state.frozen_until = state.frozen_until.max(at.saturating_add(nanos(span)));
    }

    /// The clocks run right from here on; what they show stays.
    pub(crate) fn calm(&self) {
        let mut state = self.settled().0;
        (state.raw_ppm, state.boot_ppm, state.noise_ns) = (0, 0, 0);
    }

    /// How far the clock that this process goes by is ahead of the runtime's time, in nanoseconds, and how far it goes in a
    /// million of them.
    pub(crate) fn face(&self, who: Who) -> (i128, u32) {
        let (state, at) = self.settled();
        let (raw, boot) = state.paces();
        let (shows, pace) = match who {
            Who::Node(_) => (state.mark.slower, raw.min(boot)),
            Who::Client(_) => (state.mark.faster, raw.max(boot)),
        };
        (i128::from(shows) - i128::from(at), pace)
    }

    /// The state with its mark at the present, and the present in the runtime's time.
    fn settled(&self) -> (MutexGuard<'_, State>, u64) {
        let at = self.elapsed();
        let mut state = self.state();
        state.settle(at);
        (state, at)
    }

    fn shown(&self) -> Shown {
        let at = self.elapsed();
        self.state().show(at)
    }

    fn elapsed(&self) -> u64 {
        nanos(now(&self.runtime).saturating_duration_since(self.origin))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl locknode::Clock for NodeClock {
    fn now(&self) -> Moment {
        self.reading().moment
    }

    fn machine(&self) -> locknode::MachineTime {
        self.reading().machine
    }

    fn reading(&self) -> Reading {
        let shown = self.0.shown();
        Reading {
            moment: Moment {
                time: Time::from_nanos(shown.slower),
                wall: WallTime::from_unix_nanos(shown.wall),
            },
            machine: locknode::MachineTime {
                boottime_ns: shown.boot,
                raw_ns: shown.raw,
            },
        }
    }
}

impl redlock_client::Clock for ClientClock {
    fn now(&self) -> redlock_client::Time {
        redlock_client::Time::from_nanos(self.0.shown().faster)
    }
}

impl State {
    fn show(&mut self, at: u64) -> Shown {
        if self.noise_ns > 0 {
            // Marked, so that the next reading is not before this one.
            let late = self.noise.between(0, self.noise_ns);
            self.settle(at.saturating_add(late));
            return self.mark;
        }
        self.settle_changes(at);
        self.after(at)
    }

    fn settle(&mut self, at: u64) {
        self.settle_changes(at);
        self.mark = self.after(at);
        self.mark_at = self.mark_at.max(at);
    }

    /// Moves the mark past the ends of sleep that have come.
    fn settle_changes(&mut self, at: u64) {
        loop {
            let ends = [self.asleep_until, self.frozen_until].into_iter();
            let Some(end) = ends.filter(|end| *end > self.mark_at && *end <= at).min() else {
                return;
            };
            self.mark = self.after(end);
            self.mark_at = end;
        }
    }

    /// What the clocks show when nothing changes between the mark and this moment.
    fn after(&self, at: u64) -> Shown {
        let passed = at.saturating_sub(self.mark_at);
        if self.mark_at < self.frozen_until {
            return self.mark;
        }
        let (raw, boot) = self.paces();
        let (raw, boot) = (scaled(passed, raw), scaled(passed, boot));
        Shown {
            raw: self.mark.raw.saturating_add(raw),
            boot: self.mark.boot.saturating_add(boot),
            wall: self.mark.wall.saturating_add(passed),
            slower: self.mark.slower.saturating_add(raw.min(boot)),
            faster: self.mark.faster.saturating_add(raw.max(boot)),
        }
    }

    /// How far raw and boottime go in a million nanoseconds, from the mark on.
    fn paces(&self) -> (u32, u32) {
        let pace = |ppm| 1_000_000_u32.saturating_add_signed(ppm);
        match (
            self.mark_at < self.frozen_until,
            self.mark_at < self.asleep_until,
        ) {
            (true, _) => (0, 0),
            (false, true) => (0, pace(self.boot_ppm)),
            (false, false) => (pace(self.raw_ppm), pace(self.boot_ppm)),
        }
    }
}

fn now(runtime: &Handle) -> Instant {
    let _inside = runtime.enter();
    Instant::now()
}

fn scaled(span_ns: u64, per_million: u32) -> u64 {
    let scaled = u128::from(span_ns) * u128::from(per_million) / 1_000_000;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The machines were started an hour ago: a machine's clocks do not begin with its node's.
const UPTIME_NS: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use locknode::Clock as _;
    use redlock_client::Clock as _;
    use tokio::time::advance;

    use super::*;

    fn clock() -> Arc<MachineClock> {
        let runtime = Handle::current();
        Arc::new(MachineClock::start(runtime, 7_000_000_000, Random::new(1)))
    }

    /// Milliseconds of: node, client, raw, boottime, wall.
    fn read(clock: &Arc<MachineClock>) -> [u64; 5] {
        let reading = NodeClock(Arc::clone(clock)).reading();
        [
            reading.moment.time.as_nanos(),
            ClientClock(Arc::clone(clock)).now().as_nanos(),
            reading.machine.raw_ns - UPTIME_NS,
            reading.machine.boottime_ns - UPTIME_NS,
            reading.moment.wall.as_unix_nanos(),
        ]
        .map(|ns| ns / 1_000_000)
    }

    /// By how many milliseconds node and client are ahead, and their pace.
    fn faces(clock: &MachineClock) -> [(i128, u32); 2] {
        [Who::Node(0), Who::Client(0)].map(|who| {
            let (ahead_ns, per_million) = clock.face(who);
            (ahead_ns / 1_000_000, per_million)
        })
    }

    async fn pass(ms: u64) {
        advance(Duration::from_millis(ms)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn every_fault_bends_its_clocks_and_calm_bends_none_back() {
        let clock = clock();
        pass(1000).await;
        assert_eq!(read(&clock), [1000, 1000, 1000, 1000, 8000]);
        assert_eq!(faces(&clock), [(0, 1_000_000); 2]);
        clock.set_rate(100_000);
        pass(1000).await;
        assert_eq!(read(&clock), [2100, 2100, 2100, 2100, 9000]);
        assert_eq!(faces(&clock), [(100, 1_100_000); 2]);
        clock.set_rate(0);
        clock.set_slew(100_000);
        pass(1000).await;
        assert_eq!(read(&clock), [3100, 3200, 3100, 3200, 10_000]);
        clock.set_slew(-100_000);
        pass(1000).await;
        assert_eq!(read(&clock), [4000, 4200, 4100, 4100, 11_000]);
        clock.calm();
        clock.suspend(Duration::from_secs(1));
        assert_eq!(faces(&clock), [(0, 0), (200, 1_000_000)]);
        pass(1500).await;
        assert_eq!(read(&clock), [4500, 5700, 4600, 5600, 12_500]);
        clock.freeze(Duration::from_secs(1));
        assert_eq!(faces(&clock), [(-1000, 0), (200, 0)]);
        pass(1500).await;
        assert_eq!(read(&clock), [5000, 6200, 5100, 6100, 13_000]);
        clock.jump_wall(-20_000);
        clock.jump_wall(1500);
        assert_eq!(read(&clock), [5000, 6200, 5100, 6100, 1500]);
    }

    #[tokio::test(start_paused = true)]
    async fn noise_shows_later_times_and_never_goes_back() {
        let clock = clock();
        clock.set_noise(Duration::from_millis(5));
        let mut last = 0;
        let mut is_late = false;
        for true_ms in 0..200 {
            let shown = NodeClock(Arc::clone(&clock)).now().time.as_nanos();
            let true_ns = true_ms * 1_000_000;
            assert!(shown >= last && shown >= true_ns && shown <= true_ns + 5_000_000);
            is_late |= shown > true_ns;
            last = shown;
            pass(1).await;
        }
        assert!(is_late);
    }

    #[tokio::test(start_paused = true)]
    async fn other_threads_see_the_time_that_the_test_has_paused() {
        let clock = clock();
        pass(86_400_000).await;
        let elsewhere = std::thread::spawn(move || read(&clock)).join().unwrap();
        assert_eq!(elsewhere[0], 86_400_000);
    }
}
