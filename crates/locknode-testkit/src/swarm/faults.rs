//! The faults of one seed: which kinds there are at all, how many of each, when, and what puts them right.

use std::ops::Range;
use std::time::Duration;

use crate::fault::{Crash, DiskFault, Fault, Links, Members, Phase, Way, Who};
use crate::random::Random;
use crate::scenario::{Action, GuardMode, Hook, Scenario, Setup, Trigger};
use crate::span::{SimTime, nanos};
use crate::swarm::kinds::{FaultKind, FaultKinds};

/// Draws faults and writes them into a scenario.
#[derive(Debug)]
pub(crate) struct FaultMaker {
    pub(super) random: Random,
    nodes: u8,
    clients: u8,
    max_ttl: Duration,
    guard: GuardMode,
    /// Faults come up to here.
    end: u64,
    /// How often each node was made to end so far.
    downs: [u16; 16],
    /// What was chosen, and what there is more of.
    chosen: FaultKinds,
    focus: FaultKinds,
    /// When the next fault strikes, if faults come in turn: each has a time, and none waits for an event.
    turn: Option<u64>,
    /// When each node is up again, if faults come in turn.
    up_at: [u64; 16],
}

impl FaultMaker {
    pub(crate) fn new(random: Random, setup: &Setup, calm_at: SimTime) -> Self {
        Self {
            random,
            nodes: setup.nodes,
            clients: setup.clients,
            max_ttl: setup.max_ttl,
            guard: setup.guard,
            end: calm_at
                .as_nanos()
                .saturating_sub(nanos(Duration::from_secs(1))),
            downs: [0; 16],
            chosen: FaultKinds::NONE,
            focus: FaultKinds::NONE,
            turn: None,
            up_at: [0; 16],
        }
    }

    /// Chooses kinds out of those that may come. Some do not go together: what would be left is a world that promises
    /// nothing.
    pub(crate) fn choose(&mut self, allowed: FaultKinds, focus: FaultKinds) -> FaultKinds {
        let density = self.random.pick(&[10, 25, 40, 70]);
        let mut chosen = FaultKinds::NONE;
        for kind in allowed.iter().filter(|kind| !kind.is_of_work()) {
            if self.random.chance(density) || focus.has(kind) {
                chosen = chosen.with(kind);
            }
        }
        let loses = chosen.has(FaultKind::DiskLost) || chosen.has(FaultKind::Rot);
        if loses || !self.guard.has_directory() {
            // Who remembers nothing counts from the calendar on.
            chosen = chosen.without(FaultKind::Wall);
        }
        (self.chosen, self.focus) = (chosen, focus);
        chosen
    }

    /// Makes some of each kind that was chosen.
    pub(crate) fn make(&mut self, scenario: &mut Scenario) {
        for kind in self.chosen.iter() {
            let times = if self.focus.has(kind) { 2 } else { 1 };
            for _ in 0..self.random.between(times, times * kind.most()) {
                self.make_one(kind, scenario);
            }
        }
    }

    fn make_one(&mut self, kind: FaultKind, scenario: &mut Scenario) {
        if self.guard.has_directory() || !kind.is_of_disks() {
            kind.make(self, scenario);
        }
    }

    /// Makes one fault of these kinds after the other within this time, and every few of them restarts nodes one right after
    /// the other, as a hasty rollout of a new version does.
    pub(crate) fn make_in_turn(
        &mut self,
        scenario: &mut Scenario,
        kinds: FaultKinds,
        within: Range<Duration>,
    ) {
        let kinds: Vec<FaultKind> = kinds.iter().collect();
        (self.turn, self.end) = (Some(nanos(within.start)), nanos(within.end));
        let mut rolls_at = nanos(within.start + self.span(2_000, 8_000));
        while let Some(at) = self.turn.filter(|at| *at < self.end) {
            if let Some(kind) = kinds.get(self.random.index(kinds.len())) {
                self.make_one(*kind, scenario);
            }
            if rolls_at <= at {
                self.roll(scenario);
                rolls_at = at + nanos(self.span(8_000, 18_000));
            }
            self.turn = Some(at + nanos(self.span(600, 4_000)));
        }
    }

    /// A majority of the nodes, or all, are killed and start again one after the other, each within moments.
    fn roll(&mut self, scenario: &mut Scenario) {
        let nodes = u64::from(self.nodes);
        let (first, count) = (self.node(), self.random.between(nodes / 2 + 1, nodes));
        for step in 0..count {
            let node = u8::try_from((u64::from(first) + step) % nodes).unwrap_or(0);
            let (down, next) = (self.span(40, 100), self.span(40, 100));
            self.restart(scenario, node, Crash::Kill, down);
            self.turn = self.turn.map(|at| at + nanos(down + next));
        }
    }

    /// A node ends now and starts again after a while, unless it is down already.
    fn restart(&mut self, scenario: &mut Scenario, node: u8, how: Crash, down: Duration) {
        let at = self.moment();
        let up_at = self.up_at.get_mut(usize::from(node));
        let Some(up_at) = up_at.filter(|up_at| **up_at <= at && at < self.end) else {
            return;
        };
        *up_at = (at + nanos(down)).min(self.end);
        push(scenario, at, Fault::Crash(node, how));
        push(scenario, *up_at, Fault::Restart(node));
    }

    pub(super) fn late(&mut self, scenario: &mut Scenario) {
        let (links, way, count) = (self.links(), self.way(), self.count());
        let span = self.span(10, 3_000);
        // A shorter extension that arrives behind a longer one of another connection.
        if self.turn.is_none() && self.random.chance(40) {
            let client = self.client();
            let clients = Members::one(client);
            let links = Links { clients, ..links };
            let nth = self.nth(4);
            let fault = Fault::Late(links, Way::Requests, 1, span);
            return push_on(scenario, Hook::Shortens(client), nth, Duration::ZERO, fault);
        }
        self.any_time(scenario, Fault::Late(links, way, count, span));
    }

    pub(super) fn slew(&mut self, scenario: &mut Scenario) {
        // As often as not it is as fast as it gets.
        let ppm = if self.random.chance(50) {
            SLEW_PPM
        } else {
            self.ppm(SLEW_PPM)
        };
        // First one clock of a machine is faster and then the other, so that its node falls behind both.
        if self.random.chance(40) {
            let (node, every) = (Who::Node(self.node()), nanos(self.span(50, 800)));
            let (mut at, mut ppm) = (self.moment(), ppm);
            for _ in 0..self.random.between(4, 24) {
                push(scenario, at.min(self.end), Fault::Slew(node, ppm));
                (at, ppm) = (at + every, -ppm);
            }
            return push(scenario, at.min(self.end), Fault::Slew(node, 0));
        }
        // A client that sleeps has only its slewed clock to go by.
        let who = if self.chosen.has(FaultKind::Suspend) {
            Who::Node(self.node())
        } else {
            self.who()
        };
        self.with_repair(scenario, Fault::Slew(who, ppm), 30_000);
    }

    pub(super) fn noise(&mut self, scenario: &mut Scenario) {
        let span = Duration::from_micros(self.random.between(1, NOISE_US));
        let who = self.who();
        self.any_time(scenario, Fault::Noise(who, span));
    }

    pub(super) fn wall(&mut self, scenario: &mut Scenario) {
        let ms = i64::try_from(self.random.between(1, WALL_MS)).unwrap_or(1);
        let back = self.random.chance(50);
        let node = Who::Node(self.node());
        self.any_time(scenario, Fault::WallJump(node, if back { -ms } else { ms }));
    }

    /// Lower or higher by half: what was granted under the old one has to be waited for all the same.
    pub(super) fn max_ttl(&mut self, scenario: &mut Scenario) {
        let quarters = self.random.pick(&[2, 6]);
        let (node, max_ttl) = (self.node(), self.max_ttl * quarters / 4);
        self.any_time(scenario, Fault::MaxTtl(node, max_ttl));
        self.crash_of(node, scenario, &[Crash::Kill, Crash::PowerLoss]);
        self.crash_of(node, scenario, &[Crash::Kill, Crash::PowerLoss]);
    }

    /// A node ends, and a file of it is not as it was left.
    pub(super) fn rot(&mut self, scenario: &mut Scenario) {
        let node = self.node();
        let fault = self.random.pick(&[DiskFault::Rot, DiskFault::Cut]);
        self.any_time(scenario, Fault::Disk(node, fault));
        let hows = [Crash::Kill, Crash::PowerLoss, Crash::CleanStop];
        self.crash_of(node, scenario, &hows);
    }

    /// A node ends in the middle of something.
    pub(super) fn inside(&mut self, scenario: &mut Scenario) {
        let node = self.node();
        let phase = self.random.pick(&Phase::ALL);
        let after = u16::try_from(self.random.below(OPERATIONS)).unwrap_or(0);
        let hows = [Crash::Kill, Crash::PowerLoss, Crash::PowerLossAll];
        let how = self.random.pick(&hows);
        self.any_time(scenario, Fault::CrashIn(node, phase, after, how));
        match phase {
            Phase::Open => self.crash_of(node, scenario, &[Crash::Kill, Crash::PowerLoss]),
            Phase::Close => self.crash_of(node, scenario, &[Crash::CleanStop]),
            Phase::Compact => {}
        }
        self.restart_after_down(node, scenario);
    }

    /// A node ends, at any time or just when something happens, and starts again.
    pub(super) fn crash(&mut self, scenario: &mut Scenario, hows: &[Crash]) {
        let node = self.node();
        self.crash_of(node, scenario, hows);
    }

    fn crash_of(&mut self, node: u8, scenario: &mut Scenario, hows: &[Crash]) {
        let how = self.random.pick(hows);
        if self.turn.is_some() {
            let down = self.downtime();
            return self.restart(scenario, node, how, down);
        }
        let hooks = [
            Hook::Granted(node),
            Hook::Extended(node),
            Hook::Freed(node),
            Hook::Asked(node),
            Hook::Lowers(node),
        ];
        self.any_time_or_on(scenario, &hooks, Fault::Crash(node, how));
        self.restart_after_down(node, scenario);
    }

    /// A node starts again when it has gone down once more than was thought of so far.
    fn restart_after_down(&mut self, node: u8, scenario: &mut Scenario) {
        let downs = self.downs.get_mut(usize::from(node));
        let nth = downs.map_or(1, |downs| {
            *downs += 1;
            *downs
        });
        let after = self.downtime();
        push_on(scenario, Hook::Down(node), nth, after, Fault::Restart(node));
    }

    fn downtime(&mut self) -> Duration {
        match self.random.below(3) {
            0 => Duration::ZERO,
            1 => self.span(1, 100),
            _ => self.span(100, 6_000),
        }
    }

    pub(super) fn disk(&mut self, scenario: &mut Scenario) {
        let node = self.node();
        let span = self.span(5, 400);
        match self.random.below(7) {
            // While a bound is being lowered.
            6 => {
                let (hook, nth) = (Hook::Lowers(node), self.nth(3));
                for (after, fault) in [
                    (Duration::ZERO, DiskFault::Stall),
                    (self.span(5, 1_000), DiskFault::Go),
                ] {
                    push_on(scenario, hook, nth, after, Fault::Disk(node, fault));
                }
            }
            // While something is being written, and more is waiting.
            5 => {
                let at = self.moment();
                let slow = DiskFault::Slow(self.span(50, 400));
                let full = at + nanos(self.span(1, 2_000));
                let go = full + nanos(self.span(500, 2_000));
                for (at, fault) in [
                    (at, slow),
                    (full, DiskFault::WriteFull),
                    (go, DiskFault::Go),
                ] {
                    push(scenario, at.min(self.end), Fault::Disk(node, fault));
                }
            }
            4 => {
                let faults = [DiskFault::WriteError, DiskFault::WriteFull];
                let fault = self.random.pick(&faults);
                self.any_time(scenario, Fault::Disk(node, fault));
            }
            0 => {
                // Nothing is granted after it: the process has to start again, before the calm.
                let at = self.moment();
                let faults = [DiskFault::SyncError, DiskFault::SyncFull];
                let fault = self.random.pick(&faults);
                push(scenario, at, Fault::Disk(node, fault));
                let down = (at + nanos(self.span(100, 4_000))).min(self.end);
                push(scenario, down, Fault::Crash(node, Crash::Kill));
                let up = (down + nanos(self.span(1, 500))).min(self.end);
                push(scenario, up, Fault::Restart(node));
            }
            1 => self.with_repair(scenario, Fault::Disk(node, DiskFault::Full), 4_000),
            2 => self.with_repair(scenario, Fault::Disk(node, DiskFault::Slow(span)), 6_000),
            _ => self.with_repair(scenario, Fault::Disk(node, DiskFault::Stall), 2_000),
        }
    }

    pub(super) fn cut(&mut self, scenario: &mut Scenario, way: Way) {
        let links = self.links();
        self.with_repair(scenario, Fault::Cut(links, way), 8_000);
    }

    pub(super) fn stop(&mut self, scenario: &mut Scenario, how: fn(Who, Duration) -> Fault) {
        let who = self.who();
        let span = if self.random.chance(50) {
            self.span(10, 1_000)
        } else {
            self.span(1_000, 10_000)
        };
        let fault = how(who, span);
        match who {
            Who::Client(client) => {
                let node = self.node();
                let hooks = [
                    Hook::Calls(client),
                    Hook::Granted(node),
                    Hook::Acquired(client),
                    Hook::Checked(client),
                    Hook::Renewed(client),
                ];
                self.any_time_or_on(scenario, &hooks, fault);
            }
            Who::Node(node) => self.any_time_or_on(scenario, &[Hook::Granted(node)], fault),
        }
    }

    pub(super) fn rate(&mut self, scenario: &mut Scenario, most: i32) {
        let who = match self.turn {
            // A client on real nodes uses the clock of the recorder.
            Some(_) => Who::Node(self.node()),
            None => self.who(),
        };
        let ppm = self.ppm(most);
        self.any_time(scenario, Fault::Rate(who, ppm));
    }

    pub(super) fn any_time(&mut self, scenario: &mut Scenario, fault: Fault) {
        let at = self.moment();
        push(scenario, at, fault);
    }

    pub(super) fn any_time_or_on(&mut self, scenario: &mut Scenario, hooks: &[Hook], fault: Fault) {
        if self.turn.is_some() || self.random.chance(50) {
            return self.any_time(scenario, fault);
        }
        let Some(hook) = hooks.get(self.random.index(hooks.len())).copied() else {
            return;
        };
        let nth = self.nth(12);
        let after = if self.random.chance(50) {
            Duration::ZERO
        } else {
            self.span(1, 20)
        };
        push_on(scenario, hook, nth, after, fault);
    }

    /// A fault that is taken back within `ms_max` milliseconds.
    pub(super) fn with_repair(&mut self, scenario: &mut Scenario, fault: Fault, ms_max: u64) {
        let at = self.moment();
        push(scenario, at, fault);
        let after = at + nanos(self.span(10, ms_max));
        if let Some(repair) = fault.undo() {
            push(scenario, after.min(self.end), repair);
        }
    }

    /// How often something has to happen, from once to this often.
    fn nth(&mut self, most: u64) -> u16 {
        u16::try_from(self.random.between(1, most)).unwrap_or(1)
    }

    fn moment(&mut self) -> u64 {
        let drawn = || self.random.below(self.end) / 1_000_000 * 1_000_000;
        self.turn.unwrap_or_else(drawn)
    }

    /// A number of milliseconds between these, the shorter the likelier: for TTLs of about [`TTL_MS`], and in turns in
    /// proportion to the TTL.
    pub(super) fn span(&mut self, low: u64, high: u64) -> Duration {
        let most = self.random.between(low, high);
        let ms = self.random.between(low, most);
        match self.turn {
            Some(_) => self.max_ttl * u32::try_from(ms).unwrap_or(u32::MAX) / TTL_MS,
            None => Duration::from_millis(ms),
        }
    }

    fn node(&mut self) -> u8 {
        u8::try_from(self.random.below(self.nodes.into())).unwrap_or(0)
    }

    pub(super) fn client(&mut self) -> u8 {
        u8::try_from(self.random.below(self.clients.into())).unwrap_or(0)
    }

    fn who(&mut self) -> Who {
        if self.random.chance(50) {
            Who::Node(self.node())
        } else {
            Who::Client(self.client())
        }
    }

    pub(super) fn way(&mut self) -> Way {
        if self.random.chance(50) {
            Way::Requests
        } else {
            Way::Replies
        }
    }

    pub(super) fn count(&mut self) -> u8 {
        u8::try_from(self.random.between(1, 3)).unwrap_or(1)
    }

    /// One client or all, and some nodes.
    pub(super) fn links(&mut self) -> Links {
        let clients = if self.random.chance(30) {
            Members::ALL
        } else {
            Members::one(self.client())
        };
        let count = self.random.between(1, u64::from(self.nodes).div_ceil(2));
        let nodes = (0..count).map(|_| self.node()).collect::<Members>();
        Links { clients, nodes }
    }

    fn ppm(&mut self, most: i32) -> i32 {
        let most = most.unsigned_abs().into();
        let ppm = i32::try_from(self.random.between(1, most)).unwrap_or(1);
        if self.random.chance(50) { -ppm } else { ppm }
    }
}

fn push(scenario: &mut Scenario, at: u64, fault: Fault) {
    scenario.add(Trigger::At(SimTime::from_nanos(at)), Action::Fault(fault));
}

fn push_on(scenario: &mut Scenario, hook: Hook, nth: u16, after: Duration, fault: Fault) {
    scenario.add(Trigger::On { hook, nth, after }, Action::Fault(fault));
}

/// The TTL for which spans are drawn.
const TTL_MS: u32 = 4_000;

/// More operations on its disk than a start, a step of a compaction or a stop has.
const OPERATIONS: u64 = 14;

/// What time synchronisation changes a clock by at most.
const SLEW_PPM: i32 = 83_333;

/// A tenth of the constant part of the drift.
const NOISE_US: u64 = 200;

/// Two hours.
const WALL_MS: u64 = 7_200_000;
