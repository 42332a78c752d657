//! The clocks of one machine of a cluster: those of a simulated machine, on the runtime's time.
//!
//! Below them is tokio's clock, so time that a test has paused passes for nodes and clients as it does for the test's
//! own timers. It is read inside the cluster's runtime, from any thread: elsewhere tokio shows the real time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locknode::{MachineTime, Moment, Reading};
use tokio::runtime::Handle;
use tokio::time::Instant;

use crate::random::Random;
use crate::sim::{Clocks, Rule};
use crate::span::SimTime;

/// A machine's clocks, as the node or the client on it reads them. Clones are the same clocks.
#[derive(Clone, Debug)]
pub(crate) struct MachineClock {
    runtime: Handle,
    origin: Instant,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    clocks: Clocks,
    noise: Random,
    /// When clocks that stand still go on, and how; in the order of time.
    stops: Vec<(SimTime, Change)>,
}

/// A change of the clocks at a moment.
type Change = fn(&mut Clocks, SimTime);

impl MachineClock {
    /// Clocks that run right, on the runtime's time.
    pub(crate) fn start(runtime: Handle, rule: Rule, wall_ns: u64, noise: Random) -> Self {
        let state = State {
            clocks: Clocks::new(rule, UPTIME_NS, wall_ns),
            noise,
            stops: Vec::new(),
        };
        Self {
            origin: now(&runtime),
            runtime,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Changes the clocks. Returns whether the process that goes by them can see it.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Clocks, SimTime)) -> bool {
        let (mut state, now) = self.settled();
        state.change(now, change)
    }

    /// Stops clocks for a time. Returns whether the process that goes by them can see it.
    pub(crate) fn stop(&self, span: Duration, stop: Change, go_on: Change) -> bool {
        let (mut state, now) = self.settled();
        state.stops.push((now + span, go_on));
        state.stops.sort_by_key(|(until, _)| *until);
        state.change(now, stop)
    }

    /// How far the clock that the process goes by is ahead of the runtime's time, in nanoseconds, and how far it goes in a
    /// million of them.
    pub(crate) fn view(&self) -> (i128, u32) {
        let (mut state, now) = self.settled();
        let view = state.clocks.view(now);
        let ahead = i128::from(view.shows.as_nanos()) - i128::from(now.as_nanos());
        (ahead, view.per_million)
    }

    /// The state, in which clocks that have stood still long enough go on, and the present.
    fn settled(&self) -> (MutexGuard<'_, State>, SimTime) {
        let now = SimTime::from(now(&self.runtime).saturating_duration_since(self.origin));
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((until, go_on)) = state.stops.first().copied()
            && until <= now
        {
            state.stops.remove(0);
            state.change(until, go_on);
        }
        (state, now)
    }
}

impl State {
    fn change(&mut self, now: SimTime, change: impl FnOnce(&mut Clocks, SimTime)) -> bool {
        // Up to now they went as they did.
        self.clocks.read(now, &mut self.noise);
        let (before, after) = self.clocks.changed(now, change);
        before != after
    }

    fn reading(&mut self, now: SimTime) -> Reading {
        self.clocks.reading(now, &mut self.noise)
    }
}

impl locknode::Clock for MachineClock {
    fn now(&self) -> Moment {
        self.reading().moment
    }

    fn machine(&self) -> MachineTime {
        self.reading().machine
    }

    fn slip_ns(&self) -> u64 {
        let (mut state, now) = self.settled();
        state.reading(now);
        state.clocks.slip
    }

    fn reading(&self) -> Reading {
        let (mut state, now) = self.settled();
        state.reading(now)
    }
}

impl redlock_client::Clock for MachineClock {
    fn now(&self) -> redlock_client::Time {
        let (mut state, now) = self.settled();
        redlock_client::Time::from_nanos(state.reading(now).moment.time.as_nanos())
    }
}

fn now(runtime: &Handle) -> Instant {
    let _inside = runtime.enter();
    Instant::now()
}

/// The machines were started an hour ago: a machine's clocks do not begin with its node's.
const UPTIME_NS: u64 = 3_600_000_000_000;

#[cfg(test)]
mod tests {
    use locknode::Clock as _;
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A node and a client whose machines go through the same.
    struct Pair([MachineClock; 2]);

    impl Pair {
        fn new() -> Self {
            Self([Rule::Slower, Rule::Faster].map(|rule| {
                MachineClock::start(Handle::current(), rule, 7_000_000_000, Random::new(1))
            }))
        }

        fn change(&self, change: Change) {
            for clock in &self.0 {
                clock.change(change);
            }
        }

        fn stop(&self, stop: Change, go_on: Change) {
            let seen = self.0.each_ref();
            let seen = seen.map(|clock| clock.stop(SECOND, stop, go_on));
            assert!(seen.contains(&true));
        }

        /// Milliseconds of: node, client, raw, boottime, wall.
        fn read(&self) -> [u64; 5] {
            let [node, client] = self.0.each_ref().map(MachineClock::reading);
            [
                node.moment.time.as_nanos(),
                client.moment.time.as_nanos(),
                node.machine.raw_ns - UPTIME_NS,
                node.machine.boottime_ns - UPTIME_NS,
                node.moment.wall.as_unix_nanos(),
            ]
            .map(|ns| ns / 1_000_000)
        }

        /// By how many milliseconds node and client are ahead, and their pace.
        fn faces(&self) -> [(i128, u32); 2] {
            let faces = self.0.each_ref().map(MachineClock::view);
            faces.map(|(ahead_ns, per_million)| (ahead_ns / 1_000_000, per_million))
        }
    }

    async fn pass(ms: u64) {
        advance(Duration::from_millis(ms)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn every_fault_bends_its_clocks_and_calm_bends_none_back() {
        let clocks = Pair::new();
        pass(1000).await;
        assert_eq!(clocks.read(), [1000, 1000, 1000, 1000, 8000]);
        assert_eq!(clocks.faces(), [(0, 1_000_000); 2]);
        clocks.change(|clocks, now| clocks.set_rate(now, 100_000));
        pass(1000).await;
        assert_eq!(clocks.read(), [2100, 2100, 2100, 2100, 9000]);
        assert_eq!(clocks.faces(), [(100, 1_100_000); 2]);
        clocks.change(|clocks, now| clocks.set_rate(now, 0));
        clocks.change(|clocks, now| clocks.set_slew(now, 100_000));
        pass(1000).await;
        assert_eq!(clocks.read(), [3100, 3200, 3100, 3200, 10_000]);
        clocks.change(|clocks, now| clocks.set_slew(now, -100_000));
        pass(1000).await;
        assert_eq!(clocks.read(), [4000, 4200, 4100, 4100, 11_000]);
        clocks.change(|clocks, now| clocks.set_rate(now, 0));
        clocks.stop(Clocks::suspend, Clocks::wake);
        assert_eq!(clocks.faces(), [(0, 0), (200, 1_000_000)]);
        pass(1500).await;
        assert_eq!(clocks.read(), [4500, 5700, 4600, 5600, 12_500]);
        clocks.stop(Clocks::freeze, Clocks::thaw);
        assert_eq!(clocks.faces(), [(-1000, 0), (200, 0)]);
        pass(1500).await;
        assert_eq!(clocks.read(), [5000, 6200, 5100, 6100, 13_000]);
        clocks.change(|clocks, now| clocks.jump_wall(now, -20_000));
        clocks.change(|clocks, now| clocks.jump_wall(now, 1500));
        assert_eq!(clocks.read(), [5000, 6200, 5100, 6100, 1500]);
    }

    #[tokio::test(start_paused = true)]
    async fn noise_shows_later_times_and_never_goes_back() {
        let Pair([clock, _]) = Pair::new();
        clock.change(|clocks, _| clocks.set_noise(5_000_000));
        let mut last = 0;
        let mut is_late = false;
        for true_ms in 0..200 {
            let shown = locknode::Clock::now(&clock).time.as_nanos();
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
        let clocks = Pair::new();
        pass(86_400_000).await;
        let elsewhere = std::thread::spawn(move || clocks.read()).join().unwrap();
        assert_eq!(elsewhere[0], 86_400_000);
    }
}
