//! The clocks of one simulated machine, and the time that a process on it goes by.
//!
//! A machine has three clocks: boottime, which goes on while it sleeps; raw, which nobody slews; and the wall clock. A node
//! goes by the slower of the first two, a client by the faster one, step by step from reading to reading, as the shipped
//! clocks do.

use locknode_engine::durable::{MachineTime, Reading};
use locknode_engine::{Moment, Time, WallTime};

use crate::random::Random;
use crate::span::SimTime;

/// Which clocks a process goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The slower of boottime and raw: a node's.
    Slower,
    /// The faster of boottime and raw: a client's.
    Faster,
    /// Boottime alone.
    Boottime,
    /// Raw alone.
    Raw,
    /// The wall clock.
    Wall,
}

/// The clocks of one machine. Everything is nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Clocks {
    boottime: Clock,
    raw: Clock,
    wall: Clock,
    rule: Rule,
    /// The time that the process goes by, at the last reading, and what the clocks showed then.
    time: u64,
    last: [u64; 3],
    /// How far behind the machine's clocks it had fallen by then.
    pub(crate) slip: u64,
    noise: u64,
    /// By how much readings may have been off so far.
    pub(crate) noise_max: u64,
    shown: u64,
    /// What an onlooker sees, who is not concerned by restarts, and what the clocks showed when he last looked.
    viewed: u64,
    viewed_last: [u64; 3],
}

/// What an onlooker sees of the clock that a process goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClockView {
    /// From the start of the world on.
    pub(crate) shows: SimTime,
    /// How far it goes in a million nanoseconds of true time.
    pub(crate) per_million: u32,
}

/// One clock.
#[derive(Clone, Copy, Debug)]
struct Clock {
    shows: u64,
    mark: u64,
    ppm: i32,
    stops: u8,
}

impl Clocks {
    /// Clocks of a machine that has been running for `uptime`, where the calendar shows `wall`.
    pub(crate) fn new(rule: Rule, uptime: u64, wall: u64) -> Self {
        let clock = |shows| Clock {
            shows,
            mark: 0,
            ppm: 0,
            stops: 0,
        };
        let last = [uptime, uptime, wall];
        let [boottime, raw, wall] = last.map(clock);
        Self {
            boottime,
            raw,
            wall,
            rule,
            time: 0,
            last,
            slip: 0,
            noise: 0,
            noise_max: 0,
            shown: 0,
            viewed: 0,
            viewed_last: last,
        }
    }

    /// What an onlooker sees now. Looking changes nothing for the process.
    pub(crate) fn view(&mut self, now: SimTime) -> ClockView {
        let readings = self.readings(now);
        let step = self.step(self.viewed_last, readings);
        self.viewed = self.viewed.saturating_add(step);
        self.viewed_last = readings;
        ClockView {
            shows: SimTime::from_nanos(self.viewed),
            per_million: u32::try_from(self.pace()).unwrap_or(u32::MAX),
        }
    }

    /// Changes the clocks; what an onlooker sees before and after.
    pub(crate) fn changed(
        &mut self,
        now: SimTime,
        change: impl FnOnce(&mut Self, SimTime),
    ) -> (ClockView, ClockView) {
        let before = self.view(now);
        change(self, now);
        (before, self.view(now))
    }

    /// The time of a process that starts now begins at `from`.
    pub(crate) fn restart(&mut self, now: SimTime, from: u64) {
        self.last = self.readings(now);
        (self.time, self.shown, self.slip) = (from, from, 0);
    }

    /// The machine boots: boottime and raw begin at zero.
    pub(crate) fn reboot(&mut self, now: SimTime) {
        self.replace(now, 0);
    }

    /// The machine is another one, which has been running for `uptime`.
    pub(crate) fn replace(&mut self, now: SimTime, uptime: u64) {
        self.set(now, [uptime, uptime]);
    }

    /// The machine's clocks go back within its boot.
    pub(crate) fn put_back(&mut self, now: SimTime, by: u64) {
        let [boottime, raw, _] = self.readings(now);
        self.set(now, [boottime.saturating_sub(by), raw.saturating_sub(by)]);
    }

    /// Boottime and raw show something else, and an onlooker sees nothing of it.
    fn set(&mut self, now: SimTime, [boottime, raw]: [u64; 2]) {
        self.view(now);
        self.boottime.set(now, boottime);
        self.raw.set(now, raw);
        self.viewed_last = self.readings(now);
    }

    /// What the process takes for the time; readings never run back.
    pub(crate) fn read(&mut self, now: SimTime, random: &mut Random) -> u64 {
        let readings = self.readings(now);
        let step = self.step(self.last, readings);
        let [boot, raw] = [0, 1].map(|i| readings[i].saturating_sub(self.last[i]));
        self.slip += boot.abs_diff(raw) / 2;
        self.time += step;
        self.last = readings;
        let off = if self.noise > 0 {
            random.below(self.noise)
        } else {
            0
        };
        self.shown = self.shown.max(self.time + off);
        self.shown
    }

    /// The node's moment: its time, and the wall clock.
    pub(crate) fn moment(&mut self, now: SimTime, random: &mut Random) -> Moment {
        Moment {
            time: Time::from_nanos(self.read(now, random)),
            wall: WallTime::from_unix_nanos(self.wall.at(now)),
        }
    }

    /// The node's moment and the machine's clocks.
    pub(crate) fn reading(&mut self, now: SimTime, random: &mut Random) -> Reading {
        Reading {
            moment: self.moment(now, random),
            machine: self.machine(now),
        }
    }

    /// What the machine's clocks show.
    pub(crate) fn machine(&self, now: SimTime) -> MachineTime {
        MachineTime {
            boottime_ns: self.boottime.at(now),
            raw_ns: self.raw.at(now),
        }
    }

    /// What the wall clock shows.
    pub(crate) fn wall(&self, now: SimTime) -> WallTime {
        WallTime::from_unix_nanos(self.wall.at(now))
    }

    /// When the process's time reaches `target` if the clocks go on as they do: never sooner than it really does, by less
    /// than a microsecond later; the present when it has.
    pub(crate) fn when(&self, now: SimTime, target: u64) -> SimTime {
        let time = self.time + self.step(self.last, self.readings(now));
        let Some(left) = target.checked_sub(time) else {
            return now;
        };
        let pace = self.pace();
        let when = passed(now, left, pace);
        SimTime::from_nanos(when.as_nanos().saturating_add(u64::from(pace != EVEN)))
    }

    /// When a lock with this TTL ends that a node grants now and whose clocks go on as they do, by the rule that nodes have to
    /// follow, whatever this one does.
    pub(crate) fn ends(&self, now: SimTime, ttl: u64) -> SimTime {
        passed(now, ttl, self.boottime.pace().min(self.raw.pace()))
    }

    /// Both monotonic clocks run too fast by this many millionths from now on.
    pub(crate) fn set_rate(&mut self, now: SimTime, ppm: i32) {
        self.boottime.set_rate(now, ppm);
        self.raw.set_rate(now, ppm);
    }

    /// Boottime alone does.
    pub(crate) fn set_slew(&mut self, now: SimTime, ppm: i32) {
        self.boottime.set_rate(now, ppm);
    }

    /// The wall clock is set ahead by so much, or back.
    pub(crate) fn jump_wall(&mut self, now: SimTime, by_ms: i64) {
        let shows = self.wall.at(now);
        let by = by_ms.unsigned_abs().saturating_mul(1_000_000);
        let shows = if by_ms < 0 {
            shows.saturating_sub(by)
        } else {
            shows.saturating_add(by)
        };
        self.wall.set(now, shows);
    }

    /// Readings are later than right by up to so much.
    pub(crate) fn set_noise(&mut self, noise: u64) {
        self.noise = noise;
        self.noise_max = self.noise_max.max(noise);
    }

    /// The machine goes to sleep: raw stands still.
    pub(crate) fn suspend(&mut self, now: SimTime) {
        self.raw.stop(now);
    }

    /// It wakes.
    pub(crate) fn wake(&mut self, now: SimTime) {
        self.raw.go(now);
    }

    /// All clocks stand still.
    pub(crate) fn freeze(&mut self, now: SimTime) {
        for clock in [&mut self.boottime, &mut self.raw, &mut self.wall] {
            clock.stop(now);
        }
    }

    /// They go on.
    pub(crate) fn thaw(&mut self, now: SimTime) {
        for clock in [&mut self.boottime, &mut self.raw, &mut self.wall] {
            clock.go(now);
        }
    }

    fn readings(&self, now: SimTime) -> [u64; 3] {
        [self.boottime.at(now), self.raw.at(now), self.wall.at(now)]
    }

    fn step(&self, last: [u64; 3], readings: [u64; 3]) -> u64 {
        let steps = [0, 1, 2].map(|i| readings[i].saturating_sub(last[i]));
        self.rule.of(steps)
    }

    /// Nanoseconds of the process's time in a million of true time.
    fn pace(&self) -> u64 {
        let clocks = [self.boottime, self.raw, self.wall];
        self.rule.of(clocks.map(|clock| clock.pace()))
    }
}

impl Rule {
    /// What counts of boottime's, raw's and the wall clock's.
    fn of(self, [boottime, raw, wall]: [u64; 3]) -> u64 {
        match self {
            Self::Slower => boottime.min(raw),
            Self::Faster => boottime.max(raw),
            Self::Boottime => boottime,
            Self::Raw => raw,
            Self::Wall => wall,
        }
    }
}

impl Clock {
    #[inline]
    fn at(&self, now: SimTime) -> u64 {
        let passed = now.as_nanos().saturating_sub(self.mark);
        if self.stops > 0 {
            return self.shows;
        }
        if self.ppm == 0 {
            return self.shows + passed;
        }
        let off = i128::from(passed) * i128::from(self.ppm) / 1_000_000;
        let shows = i128::from(self.shows) + i128::from(passed) + off;
        u64::try_from(shows).unwrap_or(0)
    }

    fn set(&mut self, now: SimTime, shows: u64) {
        (self.shows, self.mark) = (shows, now.as_nanos());
    }

    fn set_rate(&mut self, now: SimTime, ppm: i32) {
        self.set(now, self.at(now));
        self.ppm = ppm.clamp(-PPM_MAX, PPM_MAX);
    }

    fn stop(&mut self, now: SimTime) {
        self.set(now, self.at(now));
        self.stops = self.stops.saturating_add(1);
    }

    fn go(&mut self, now: SimTime) {
        self.set(now, self.at(now));
        self.stops = self.stops.saturating_sub(1);
    }

    fn pace(&self) -> u64 {
        match self.stops {
            0 => EVEN.saturating_add_signed(self.ppm.into()),
            _ => 0,
        }
    }
}

/// When a clock that goes on by `pace` in a million nanoseconds has gone on by `span`.
fn passed(now: SimTime, span: u64, pace: u64) -> SimTime {
    let wait = match pace {
        0 => return SimTime::NEVER,
        EVEN => span,
        _ => {
            let wait = u128::from(span) * u128::from(EVEN) / u128::from(pace);
            u64::try_from(wait).unwrap_or(u64::MAX)
        }
    };
    SimTime::from_nanos(now.as_nanos().saturating_add(wait))
}

/// The pace of a clock that is right.
const EVEN: u64 = 1_000_000;

/// A clock that gains or loses nine tenths is broken enough.
const PPM_MAX: i32 = 900_000;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Rule::{Boottime, Faster, Raw, Slower, Wall};
    use super::*;

    fn at(seconds: u64) -> SimTime {
        SimTime::from(Duration::from_secs(seconds))
    }

    const SECOND: u64 = 1_000_000_000;

    /// `[G16]`
    #[test]
    fn a_process_goes_by_the_clocks_that_its_rule_names() {
        type Change = fn(&mut Clocks);
        let rows: [(&str, Change, [u64; 5]); 5] = [
            ("even", |_| (), [100, 100, 100, 100, 100]),
            (
                "slewed",
                |c| c.set_slew(at(0), 100_000),
                [100, 110, 110, 100, 100],
            ),
            (
                "fast",
                |c| c.set_rate(at(0), 10_000),
                [101, 101, 101, 101, 100],
            ),
            ("asleep", |c| c.suspend(at(0)), [0, 100, 100, 0, 100]),
            ("frozen", |c| c.freeze(at(0)), [0, 0, 0, 0, 0]),
        ];
        let rules = [Slower, Faster, Boottime, Raw, Wall];
        for (name, change, wants) in rows {
            for (rule, want) in rules.into_iter().zip(wants) {
                let mut clocks = Clocks::new(rule, SECOND, SECOND);
                change(&mut clocks);
                let shown = clocks.read(at(100), &mut Random::new(1));
                assert_eq!(shown / SECOND, want, "{name} {rule:?}");
            }
        }
    }

    #[test]
    fn the_moment_that_is_foretold_comes() {
        for ppm in [0, 10_000, -10_000, 83_333, -500_000] {
            let mut clocks = Clocks::new(Slower, 0, 0);
            clocks.set_rate(at(0), ppm);
            let when = clocks.when(at(0), 10 * SECOND);
            let shown = clocks.read(when, &mut Random::new(1));
            assert!(shown >= 10 * SECOND, "{ppm}: {shown}");
            assert!(shown < 10 * SECOND + 1_000, "{ppm}: {shown}");
        }
        let mut clocks = Clocks::new(Raw, 0, 0);
        clocks.suspend(at(0));
        assert_eq!(clocks.when(at(0), 1), SimTime::NEVER);
        clocks.wake(at(5));
        assert_eq!(clocks.when(at(5), 1), SimTime::from_nanos(5 * SECOND + 1));
    }

    #[test]
    fn an_onlooker_sees_the_pace_and_no_restart() {
        let mut clocks = Clocks::new(Slower, 5 * SECOND, 0);
        let view = |seconds, per_million| ClockView {
            shows: at(seconds),
            per_million,
        };
        assert_eq!(clocks.view(at(10)), view(10, 1_000_000));
        clocks.set_rate(at(10), -500_000);
        assert_eq!(clocks.view(at(10)), view(10, 500_000));
        clocks.restart(at(20), 0);
        clocks.reboot(at(30));
        assert_eq!(clocks.view(at(30)), view(20, 500_000));
        clocks.set_rate(at(30), 0);
        clocks.suspend(at(30));
        assert_eq!(clocks.view(at(40)), view(20, 0));
        clocks.wake(at(40));
        // Of the wall clock a node's time knows nothing.
        clocks.jump_wall(at(40), 3_600_000);
        assert_eq!(clocks.view(at(50)), view(30, 1_000_000));
        let mut clocks = Clocks::new(Wall, 0, SECOND);
        clocks.jump_wall(at(1), 60_000);
        assert_eq!(clocks.view(at(1)), view(61, 1_000_000));
    }

    #[test]
    fn noise_never_turns_time_back() {
        let (mut clocks, mut random) = (Clocks::new(Faster, 0, 0), Random::new(3));
        clocks.set_noise(1_000_000);
        let mut last = 0;
        for step in 0..1_000 {
            let shown = clocks.read(SimTime::from_nanos(step * 100_000), &mut random);
            assert!(shown >= last && shown <= step * 100_000 + 1_000_000);
            last = shown;
        }
    }
}
