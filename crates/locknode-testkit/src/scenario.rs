//! A scenario: all data of a run. Set-up, what clients do, what goes wrong and when; and one seed for the rest.

mod text;

use std::time::Duration;

use crate::bug::Bug;
use crate::fault::{Fault, Who};
use crate::named::named;
use crate::span::SimTime;

/// All that determines a run: two worlds of one scenario do the same, event by event, on any machine.
///
/// It has a text form, a file that replays; see [`Scenario::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// What the world is made of.
    pub setup: Setup,
    /// What is done and what goes wrong, in any order.
    pub steps: Vec<Step>,
}

/// What a world is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Determines delays, pieces, tokens, the clocks' starting points and what a crash leaves on a disk.
    pub seed: u64,
    /// How many nodes, 1 to 16.
    pub nodes: u8,
    /// How many clients, 1 to 16.
    pub clients: u8,
    /// How nodes guard their restarts.
    pub guard: GuardMode,
    /// The longest TTL that rides on the restart guard.
    pub max_ttl: Duration,
    /// How long a message travels, at least and at most.
    pub delay: (Duration, Duration),
    /// How long a disk works before something is durable, at least and at most.
    pub sync: (Duration, Duration),
    /// How many millionths of the TTL clients allow for clocks that disagree ...
    pub drift_ppm: u32,
    /// ... and how much more.
    pub drift_constant: Duration,
    /// Each node has a replica that receives a command this long after its reply: what Redis fails over to.
    pub replica_lag: Option<Duration>,
    /// Which client runs.
    pub client: ClientKind,
    /// Into how many parts each node divides its locks: a power of two.
    pub shards: u8,
    /// Which commands the nodes say they have: the shipped client speaks so to them.
    pub dialect: Dialect,
    /// A mistake to make.
    pub bug: Option<Bug>,
    /// Whether only every second client is compared with its model, and restarts are tried on the disk of every second node
    /// only; the seed says which. That saves a tenth of a world's time, and a swarm still watches them all.
    pub watches_half: bool,
    /// When the world ends.
    pub run_for: Duration,
    /// From when on progress is demanded: after a [`Fault::Calm`].
    pub liveness_from: Option<SimTime>,
}

named! {
    /// How the nodes of a world guard their restarts.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum GuardMode {
        /// Not at all, like Redis.
        Off = "off",
        /// By waiting for the longest TTL after every start; nothing is kept.
        Memory = "memory",
        /// With a data directory; locks longer than the longest TTL are on the log.
        #[default]
        Long = "long",
        /// With a data directory; every lock is on the log.
        Always = "always",
    }
}

named! {
    /// Which client a world runs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ClientKind {
        /// The core of the crate `redlock-client`.
        Shipped = "shipped",
        /// A plain Redlock loop of the kit's own, as users write it.
        Plain = "plain",
        /// The same over locks held as hashes, as Redisson has them: scripts or transactions, re-entry, a watchdog.
        Hash = "hash",
    }
}

named! {
    /// Which commands the nodes of a world say they have.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Dialect {
        /// `LOCK.ACQUIRE` and its like: locknode.
        Lock = "lock",
        /// `DELEX` and `SET ... IFEQ`: Redis 8.4.
        DelEx = "delex",
        /// `DELIFEQ` and `SET ... IFEQ`: Valkey 9.
        DelIfEq = "delifeq",
        /// None of them: the scripts of every Redis.
        Script = "script",
        /// Each node has its own, which the seed decides: most are locknodes.
        Mixed = "mixed",
    }
}

/// One thing that is done or goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When.
    pub when: Trigger,
    /// What.
    pub what: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Something goes wrong or is put right.
    Fault(Fault),
    /// A client does something.
    Client(u8, ClientAction),
}

/// When a step comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// At a moment in true time.
    At(SimTime),
    /// So long after the `nth` time that something happens, counted from 1.
    On {
        /// What has to happen.
        hook: Hook,
        /// How often; 1 is the first time.
        nth: u16,
        /// How long after; nothing comes between when it is zero.
        after: Duration,
    },
}

/// Makes [`Hook`] of one row for each: how it is written, whose doing it is, and what it is.
macro_rules! hooks {
    ($($name:literal $hook:ident $who:ident $what:literal,)+) => {
        /// What a step can wait for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Hook {
            $(#[doc = $what] $hook(u8),)+
        }

        impl Hook {
            /// How each is written, whose doing it is, and the one of a node or client with this number.
            pub(crate) const FORMS: &[(&str, &str, fn(u8) -> Self)] =
                &[$(($name, stringify!($who), Self::$hook)),+];

            /// How it is written, and whose doing it is.
            pub(crate) const fn name(self) -> (&'static str, Who) {
                match self {
                    $(Self::$hook(number) => ($name, who!($who number)),)+
                }
            }
        }
    };
}

macro_rules! who {
    (node $number:ident) => {
        Who::Node($number)
    };
    (client $number:ident) => {
        Who::Client($number)
    };
}

hooks! {
    "started" Started node "A node's process has started.",
    "serving" Serving node "A node serves: its quarantine is over or there was none.",
    "down" Down node "A node is down.",
    "stops" Stops node "A node is asked to end in order, and has not begun to.",
    "asked" Asked node "A node is about to read something that a client sent.",
    "granted" Granted node "A node has granted a lock; the reply has not left.",
    "extended" Extended node "A node has extended a lock; the reply has not left.",
    "freed" Freed node "A node has deleted a lock because its holder released it.",
    "lowers" Lowers node "A node begins to write down a lower TTL in use.",
    "calls" Calls client "A client begins to acquire.",
    "acquired" Acquired client "A client holds a lock.",
    "renewed" Renewed client "A client's lock was extended.",
    "shortens" Shortens client "A client is about to extend its lock by a shorter TTL than the lock's own.",
    "failed" Failed client "A client did not get a lock.",
    "lost" Lost client "A client is told that its lock is lost.",
    "releases" Releases client "A client has begun to release.",
    "checked" Checked client "A client has seen that it holds the lock and is about to write to the resource.",
}

/// What a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAction {
    /// Acquires a lock, works under it and lets it go.
    Lock(LockAction),
    /// Extends the lock that it holds on the key.
    Extend {
        /// The key.
        key: Box<str>,
        /// The new TTL, from now on.
        ttl: Duration,
    },
    /// Releases the lock that it holds on the key.
    Release {
        /// The key.
        key: Box<str>,
    },
    /// Gives up what it has begun with the key: it does not wait any longer for the lock or for the outcome of its release, and
    /// a lock that it holds ends as by [`Ending::Drop`].
    GiveUp {
        /// The key.
        key: Box<str>,
    },
    /// Asks every node who holds the key; the plain client does not know how.
    Look {
        /// The key.
        key: Box<str>,
    },
    /// Another thread of its process asks a node something by a connection of its own, and does not look at the reply.
    Ask {
        /// The node.
        node: u8,
        /// Which of its connections.
        line: u8,
        /// The words of the request; those of several with ` ; ` between.
        words: Box<str>,
    },
    /// Looks whether it holds the lock on the key, and if so writes to the resource, which takes some time.
    Write {
        /// The key.
        key: Box<str>,
        /// From looking to the arrival of the write.
        takes: Duration,
    },
}

/// How a client works under a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockAction {
    /// The key.
    pub key: Box<str>,
    /// The TTL.
    pub ttl: Duration,
    /// Attempts at most.
    pub tries: u32,
    /// How long to try at most instead, as often as there is time for.
    pub within: Option<Duration>,
    /// How long it is held; `None` until something else ends it.
    pub hold: Option<Duration>,
    /// How often the client extends it by its TTL meanwhile.
    pub extend_every: Option<Duration>,
    /// The TTL of every second of these extensions instead: shorter and longer ones follow each other.
    pub extend_to: Option<Duration>,
    /// How long after an extension the client core is to renew it on its own.
    pub renew_every: Option<Duration>,
    /// Up to what age of the lock it does that; `None` as long as it is held.
    pub renew_for: Option<Duration>,
    /// How often the client writes to the resource meanwhile.
    pub write_every: Option<Duration>,
    /// How long the key stays taken from the acquisition on, also when the lock is released sooner.
    pub at_least: Option<Duration>,
    /// What happens after `hold`.
    pub ending: Ending,
}

named! {
    /// How a client ends its lock.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Ending {
        /// It releases it.
        Release = "release",
        /// It releases it, and does not wait for the outcome.
        Drop = "drop",
        /// It leaves it to its TTL.
        Leave = "leave",
        /// It leaves it to the next client, which takes it over.
        HandOver = "hand-over",
        /// It leaves it to the next client, which releases it by its token.
        ReleaseByNext = "release-by-next",
        /// Its process ends.
        Crash = "crash",
    }
}

impl Default for Setup {
    /// Seed 1: five nodes with a data directory, three clients, a minute of each, half a millisecond to three per message.
    fn default() -> Self {
        Self {
            seed: 1,
            nodes: 5,
            clients: 3,
            guard: GuardMode::Long,
            max_ttl: Duration::from_secs(10),
            delay: (Duration::from_micros(500), Duration::from_millis(3)),
            sync: (Duration::from_micros(200), Duration::from_millis(2)),
            drift_ppm: 10_000,
            drift_constant: Duration::from_millis(2),
            replica_lag: None,
            client: ClientKind::Shipped,
            shards: 1,
            dialect: Dialect::Lock,
            bug: None,
            watches_half: false,
            run_for: Duration::from_secs(60),
            liveness_from: None,
        }
    }
}

impl GuardMode {
    /// Whether nodes have a data directory.
    pub(crate) const fn has_directory(self) -> bool {
        matches!(self, Self::Long | Self::Always)
    }
}

impl Setup {
    /// The default with another seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            ..Self::default()
        }
    }

    /// Whether the client or node with this number is watched closely.
    pub(crate) fn watches(&self, number: u8) -> bool {
        !self.watches_half || (self.seed ^ u64::from(number)) & 1 == 0
    }

    /// Whether the plain client runs, with whichever locks: it is asked for, or the mistake is one of a client's.
    pub(crate) fn is_plain(&self) -> bool {
        self.client != ClientKind::Shipped || self.bug.is_some_and(Bug::is_clients)
    }
}

impl Scenario {
    /// A world of this set-up in which nothing happens yet.
    pub const fn new(setup: Setup) -> Self {
        Self {
            setup,
            steps: Vec::new(),
        }
    }

    /// A client does something at a moment.
    #[must_use]
    pub fn act(self, at: Duration, client: u8, act: ClientAction) -> Self {
        self.step(Trigger::At(at.into()), Action::Client(client, act))
    }

    /// Something goes wrong at a moment.
    #[must_use]
    pub fn at(self, at: Duration, fault: Fault) -> Self {
        self.step(Trigger::At(at.into()), Action::Fault(fault))
    }

    /// Something goes wrong the first time that something else happens, before anything comes of that.
    #[must_use]
    pub fn on(self, hook: Hook, fault: Fault) -> Self {
        self.after(hook, Duration::ZERO, fault)
    }

    /// Something goes wrong `after` the first time that something else happens.
    #[must_use]
    pub fn after(self, hook: Hook, after: Duration, fault: Fault) -> Self {
        self.step(
            Trigger::On {
                hook,
                nth: 1,
                after,
            },
            Action::Fault(fault),
        )
    }

    /// All that goes wrong or is put right, in the order of the steps.
    pub(crate) fn faults(&self) -> impl Iterator<Item = Fault> {
        self.steps.iter().filter_map(|step| match step.what {
            Action::Fault(fault) => Some(fault),
            Action::Client(..) => None,
        })
    }

    /// All that clients do, in the order of the steps.
    pub(crate) fn acts(&self) -> impl Iterator<Item = &ClientAction> {
        self.steps.iter().filter_map(|step| match &step.what {
            Action::Client(_, act) => Some(act),
            Action::Fault(_) => None,
        })
    }

    /// Any step.
    #[must_use]
    pub fn step(mut self, when: Trigger, what: Action) -> Self {
        self.add(when, what);
        self
    }

    /// The same in place.
    pub(crate) fn add(&mut self, when: Trigger, what: Action) {
        self.steps.push(Step { when, what });
    }
}

impl LockAction {
    /// A lock that is tried for once and held until something else ends it.
    pub fn new(key: &str, ttl: Duration) -> Self {
        Self {
            key: key.into(),
            ttl,
            tries: 1,
            hold: None,
            extend_every: None,
            extend_to: None,
            renew_every: None,
            renew_for: None,
            write_every: None,
            at_least: None,
            within: None,
            ending: Ending::Release,
        }
    }

    /// Tried for at most `tries` times.
    #[must_use]
    pub const fn tries(mut self, tries: u32) -> Self {
        self.tries = tries;
        self
    }

    /// Tried for at most `time`, however often.
    #[must_use]
    pub const fn within(mut self, time: Duration) -> Self {
        self.within = Some(time);
        self
    }

    /// Held for `hold`.
    #[must_use]
    pub const fn hold(mut self, hold: Duration) -> Self {
        self.hold = Some(hold);
        self
    }

    /// Extended at this interval.
    #[must_use]
    pub const fn extend_every(mut self, every: Duration) -> Self {
        self.extend_every = Some(every);
        self
    }

    /// Every second extension asks for this TTL.
    #[must_use]
    pub const fn extend_to(mut self, ttl: Duration) -> Self {
        self.extend_to = Some(ttl);
        self
    }

    /// The TTL that an extension asks for: the lock's own and [`extend_to`](Self::extend_to) in turn. Extensions are counted
    /// from 1.
    pub fn ttl_of_extension(&self, number: u32) -> Duration {
        let other = self.extend_to.filter(|_| number.is_multiple_of(2));
        other.unwrap_or(self.ttl)
    }

    /// Renewed by the client core, `every` after each extension.
    #[must_use]
    pub const fn renew_every(mut self, every: Duration) -> Self {
        self.renew_every = Some(every);
        self
    }

    /// Renewed up to this age of the lock.
    #[must_use]
    pub const fn renew_for(mut self, bound: Duration) -> Self {
        self.renew_for = Some(bound);
        self
    }

    /// The resource is written to at this interval while the lock is held.
    #[must_use]
    pub const fn write_every(mut self, every: Duration) -> Self {
        self.write_every = Some(every);
        self
    }

    /// Its key stays taken for `time`, also when it is released sooner.
    #[must_use]
    pub const fn at_least(mut self, time: Duration) -> Self {
        self.at_least = Some(time);
        self
    }

    /// Ended in this way.
    #[must_use]
    pub const fn ending(mut self, ending: Ending) -> Self {
        self.ending = ending;
        self
    }
}

impl From<LockAction> for ClientAction {
    fn from(lock: LockAction) -> Self {
        Self::Lock(lock)
    }
}

#[cfg(test)]
mod tests;
