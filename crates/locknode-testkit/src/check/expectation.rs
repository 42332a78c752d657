//! What a scenario has to keep: the expectation matrix as data.
//!
//! Each line is a reason why something is *not* promised; without one it is. Exclusion (with continuity and the majority
//! behind a lock) rests on clocks and on what nodes remember; fencing rests on memory alone; what a node does by itself
//! rests on neither, but for what it forgot.
//!
//! | what the scenario has | exclusion | node-grant | fencing | why |
//! |---|---|---|---|---|
//! | a node's clocks fast and a client's slow, together beyond the drift | no | yes | yes | the allowance is used up |
//! | a client that sleeps while its boottime is slewed, beyond the drift | no | yes | yes | its other clock stands still |
//! | noise of a node and a client, together beyond the drift's constant | no | yes | yes | the allowance is used up |
//! | a client whose hypervisor stops its clocks | no | yes | yes | nothing in it can notice |
//! | a disk that is taken back | no | no | if the calendar holds | a clean marker and counters of the past |
//! | no restart guard, and a crash | no | no | if the calendar holds | as in Redis, nothing is kept |
//! | the same, and nothing comes late | continuity only | no | if the calendar holds | a lock that is gone is not extended |
//! | no data directory, and a crash | but for longer locks | but for longer locks | if the calendar holds | the wait is for the longest TTL |
//! | a disk that is lost | but for longer locks | but for longer locks | if the calendar holds | the same: the log is lost |
//! | another thread that overwrites, moves or deletes the locks of others | no | yes | yes | nothing compares for it |
//! | clocks off within the drift, slews, sleep, pauses, a frozen node, wall clocks, links, full and broken disks | yes | yes | yes | |
//!
//! *But for longer locks*: after a lost disk, or without a data directory, a node waits until every lock with a TTL up to its longest
//! TTL of now has ended; longer ones are lost with the disk. Which those were depends on what happened: the history has each
//! ([`Event::Forgotten`](crate::history::Event::Forgotten)), and nothing is promised of such
//! a lock any more. Every other lock is exclusive.
//!
//! *If the calendar holds*: where a node remembers no counters they begin at the wall clock. That is above all counters that were reported
//! only when no wall clock was set ahead, its own was not set at all, and no start lies so near before that counters
//! may be ahead of the calendar; the last depends on when things happened: [`Promise::in_world`].
//!
//! Late writes to a resource that checks nothing ([`ViolationKind::Resource`]) are never excluded: a client that stands still
//! between looking and writing is enough. Progress is promised when the scenario says from when on. That a node keeps its
//! quarantine, that no expired lock is handed out, and that clients say and do only what replies bear out, is always promised; that a node reports only what is durable, whenever it has a data directory.
//!
//! A planted bug changes nothing here: it is there to break a promise.

mod meddling;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::check::violation::ViolationKind;
use crate::check::wall_floor::floors_hold;
use crate::fault::{Crash, DiskFault, Fault, Who};
use crate::history::History;
use crate::scenario::{GuardMode, Scenario};

/// The kinds of violations that must not occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Promise(u32);

impl Promise {
    /// What the scenario has to keep, whenever its faults come. Of fencing it is all that may be promised; see
    /// [`Promise::in_world`].
    pub fn of(scenario: &Scenario) -> Self {
        let traits = Traits::of(scenario);
        let setup = &scenario.setup;
        let mut promise = Self::all().without(&[ViolationKind::Resource]);
        if traits.has_forgotten_locks() {
            promise = promise.without(if traits.is_robbery_noticed() {
                &[ViolationKind::Exclusion, ViolationKind::Majority]
            } else {
                &EXCLUSION
            });
            promise = promise.without(&[ViolationKind::NodeGrant]);
        }
        if traits.is_time_broken() || meddling::is_meddled_with(scenario) {
            promise = promise.without(&EXCLUSION);
        }
        if traits.is_calendar_broken() {
            promise = promise.without(&FENCING);
        }
        if setup.liveness_from.is_none() {
            promise = promise.without(&[ViolationKind::Liveness]);
        }
        if scenario.setup.guard == GuardMode::Off {
            promise = promise.without(&[ViolationKind::NodeDurability]);
        }
        if traits.has_rollback {
            promise = promise.without(&[ViolationKind::NodeFiles]);
        }
        promise
    }

    /// What is left of it in the world that came of the scenario: fencing is not promised when a node that remembers no
    /// counters started so soon after other starts that the calendar may be behind.
    #[must_use]
    pub fn in_world(self, scenario: &Scenario, history: &History) -> Self {
        if floors_hold(scenario, history) {
            self
        } else {
            self.without(&FENCING)
        }
    }

    /// Whether a violation of this kind must not occur.
    pub const fn has(self, kind: ViolationKind) -> bool {
        self.0 & kind.bit() != 0
    }

    /// The kinds, in order.
    pub fn iter(self) -> impl Iterator<Item = ViolationKind> {
        ViolationKind::ALL
            .into_iter()
            .filter(move |kind| self.has(*kind))
    }

    fn all() -> Self {
        let kinds = ViolationKind::ALL.into_iter();
        Self(kinds.fold(0, |bits, kind| bits | kind.bit()))
    }

    fn without(self, kinds: &[ViolationKind]) -> Self {
        Self(kinds.iter().fold(self.0, |bits, kind| bits & !kind.bit()))
    }
}

/// Whether a node that starts after such an end remembers no counters, and begins at its wall clock.
pub(super) const fn forgets_counters(guard: GuardMode, how: Crash) -> bool {
    !guard.has_directory() || matches!(how, Crash::DiskLost | Crash::Rollback)
}

/// What of a scenario matters for what it has to keep.
struct Traits<'s> {
    scenario: &'s Scenario,
    clients: BTreeMap<u8, Pace>,
    /// The fastest node, millionths.
    fastest_node: u32,
    noise: (Duration, Duration),
    has_frozen_client: bool,
    has_crash: bool,
    has_rollback: bool,
    /// Requests or replies may come late.
    is_late: bool,
}

/// How slow a client's clocks may be, in millionths.
#[derive(Clone, Copy, Default)]
struct Pace {
    slow: u32,
    slewed: u32,
    sleeps: bool,
}

impl<'s> Traits<'s> {
    fn of(scenario: &'s Scenario) -> Self {
        let mut traits = Self {
            scenario,
            clients: BTreeMap::new(),
            fastest_node: 0,
            noise: (Duration::ZERO, Duration::ZERO),
            has_frozen_client: false,
            has_crash: false,
            has_rollback: false,
            is_late: false,
        };
        for fault in scenario.faults() {
            traits.note(fault);
        }
        traits
    }

    fn note(&mut self, fault: Fault) {
        match fault {
            // A node goes by the slower of two clocks: only what makes both fast makes it fast.
            Fault::Rate(Who::Node(_), ppm) => {
                self.fastest_node = self.fastest_node.max(positive(ppm));
            }
            // A client goes by the faster one.
            Fault::Rate(Who::Client(client), ppm) => {
                let pace = self.clients.entry(client).or_default();
                pace.slow = pace.slow.max(positive(ppm.saturating_neg()));
            }
            Fault::Slew(Who::Client(client), ppm) => {
                let pace = self.clients.entry(client).or_default();
                pace.slewed = pace.slewed.max(positive(ppm.saturating_neg()));
            }
            Fault::Suspend(Who::Client(client), _) => {
                self.clients.entry(client).or_default().sleeps = true;
                self.is_late = true;
            }
            Fault::Freeze(Who::Client(_), _) => {
                self.has_frozen_client = true;
                self.is_late = true;
            }
            Fault::Pause(Who::Client(_), _)
            | Fault::Cut(..)
            | Fault::Delay(..)
            | Fault::Hold(..)
            | Fault::Drop(..)
            | Fault::Late(..)
            | Fault::Duplicate(..) => self.is_late = true,
            Fault::Noise(Who::Node(_), span) => self.noise.0 = self.noise.0.max(span),
            Fault::Noise(Who::Client(_), span) => self.noise.1 = self.noise.1.max(span),
            Fault::Crash(_, how) => {
                self.has_crash = true;
                self.has_rollback |= how == Crash::Rollback;
            }
            _ => {}
        }
    }

    /// Nodes may grant what they granted before a crash.
    fn has_forgotten_locks(&self) -> bool {
        match self.scenario.setup.guard {
            GuardMode::Off => self.has_crash,
            // The history names each longer lock that is lost.
            GuardMode::Memory => false,
            GuardMode::Long | GuardMode::Always => self.has_rollback,
        }
    }

    /// A client whose lock nodes forgot learns of it when it extends: nothing brings the lock back.
    fn is_robbery_noticed(&self) -> bool {
        self.scenario.setup.guard == GuardMode::Off && !self.is_late
    }

    /// Clocks disagree by more than clients allow for.
    fn is_time_broken(&self) -> bool {
        let setup = &self.scenario.setup;
        // Asleep, only boottime goes on: what slows that down counts in full.
        let slewed = |pace: &Pace| if pace.sleeps { pace.slewed } else { 0 };
        let slowest = |pace: &Pace| pace.slow.saturating_add(slewed(pace));
        let slowest = self.clients.values().map(slowest).max().unwrap_or(0);
        let is_beyond = slowest.saturating_add(self.fastest_node) > setup.drift_ppm;
        let noise = self.noise.0.saturating_add(self.noise.1);
        is_beyond || noise > setup.drift_constant || self.has_frozen_client
    }

    /// A node begins at a wall clock that is not to be trusted, or after another one did.
    fn is_calendar_broken(&self) -> bool {
        let guard = self.scenario.setup.guard;
        let faults = || self.scenario.faults();
        let is_forgetful = |node: u8| {
            faults().any(|fault| {
                matches!(fault, Fault::Crash(it, how) if it == node && forgets_counters(guard, how))
            })
        };
        let has_forgetful = faults().any(|fault| match fault {
            Fault::Crash(_, how) => forgets_counters(guard, how),
            Fault::Disk(_, DiskFault::Rot | DiskFault::Cut) => true,
            _ => false,
        });
        has_forgetful
            && faults().any(|fault| match fault {
                Fault::WallJump(Who::Node(node), by) => by > 0 || is_forgetful(node),
                _ => false,
            })
    }
}

fn positive(ppm: i32) -> u32 {
    u32::try_from(ppm).unwrap_or(0)
}

/// What needs clocks that agree and nodes that remember.
const EXCLUSION: [ViolationKind; 3] = [
    ViolationKind::Exclusion,
    ViolationKind::Continuity,
    ViolationKind::Majority,
];

/// What needs nothing but counters that do not go back.
const FENCING: [ViolationKind; 4] = [
    ViolationKind::FencedResource,
    ViolationKind::FencingDuplicate,
    ViolationKind::FencingOrder,
    ViolationKind::NodeCounter,
];
