//! Swarm testing: from each seed another world, with another part of all faults.
//!
//! A seed decides the set-up, what clients do, which kinds of faults there are at all, and when each comes. All of that is
//! written into a [`Scenario`], which is data: it can be kept, edited and shrunk. For most of a run everything may break;
//! then comes [`Fault::Calm`], and progress is demanded.

mod asides;
mod chaos;
mod faults;
mod kinds;
mod stops;
mod whims;

use std::time::Duration;

use crate::bug::Bug;
use crate::fault::Fault;
use crate::random::Random;
use crate::report::Report;
use crate::scenario::{
    Action, ClientKind, Dialect, Ending, GuardMode, LockAction, Scenario, Setup, Trigger,
};
use crate::span::{SimTime, nanos};
use crate::swarm::asides::AsideMaker;
use crate::swarm::faults::FaultMaker;

pub use kinds::{FaultKind, FaultKinds};

/// What all worlds of a swarm have in common; the seed decides the rest.
///
/// ```
/// use locknode_testkit::Swarm;
///
/// for seed in 0..3 {
///     Swarm::default().run(seed).assert_safe();
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swarm {
    nodes: u8,
    clients: u8,
    ttl: Option<Duration>,
    guard: Option<GuardMode>,
    faults: FaultKinds,
    /// In how many of a hundred seeds faults may come under which only fencing is promised.
    fenced_percent: u64,
    /// Kinds that every seed has, and more of.
    focus: FaultKinds,
    client: ClientKind,
    bug: Option<Bug>,
    run_for: Duration,
    /// Each step has a time, and all spans are in proportion to the TTL.
    is_chaos: bool,
}

/// What the clients of one seed do alike.
#[derive(Clone, Copy, Debug)]
struct Style {
    /// How many keys they share; each has its own when `None`.
    keys: Option<u64>,
    /// They work longer than their locks are valid.
    overruns: bool,
    /// Some die.
    crashes: bool,
    /// Their client can renew locks, and extend them by another TTL.
    renews: bool,
}

impl Default for Swarm {
    /// Five nodes, three clients, a minute, every fault under which locks are promised to be exclusive; in one seed of eight
    /// those as well under which only the order of fencing tokens is.
    fn default() -> Self {
        Self {
            nodes: 5,
            clients: 3,
            ttl: None,
            guard: None,
            faults: FaultKinds::PROMISED,
            fenced_percent: 12,
            focus: FaultKinds::NONE,
            client: ClientKind::Shipped,
            bug: None,
            run_for: Duration::from_secs(60),
            is_chaos: false,
        }
    }
}

impl Swarm {
    /// Worlds that make a mistake, of a kind that shows it.
    ///
    /// Most bugs are found by the default swarm; some need more of a kind of faults. An extension that sets lost keys again
    /// does harm only where nodes come back without a wait, so its nodes guard nothing; a fencing token is what is left
    /// when clocks are wrong, so where one is at fault clocks may be.
    pub fn for_bug(bug: Bug) -> Self {
        let mut swarm = Self::default().bug(Some(bug));
        if bug.is_clients() {
            swarm.client = ClientKind::Plain;
        }
        let second = Duration::from_secs(1);
        let none = FaultKinds::NONE;
        match bug {
            Bug::QuarantineShort => {
                let swarm = swarm.guard(GuardMode::Memory).ttl(8 * second);
                swarm.focus(none.with(FaultKind::Crash))
            }
            Bug::WaitFromConfig => swarm.focus(none.with(FaultKind::MaxTtl)),
            Bug::NamespaceTrusted => swarm.focus(none.with(FaultKind::Machine)),
            Bug::CutLogServed => swarm.focus(none.with(FaultKind::Rot)),
            Bug::MarkerKept => swarm.focus(none.with(FaultKind::CleanStop).with(FaultKind::Crash)),
            Bug::ExtendOrSet => {
                let faults = none
                    .with(FaultKind::Crash)
                    .with(FaultKind::Rivalry)
                    .with(FaultKind::Overrun);
                let swarm = swarm.guard(GuardMode::Off).faults(faults).focus(faults);
                swarm.nodes(3).ttl(4 * second)
            }
            Bug::ValidityUnchecked => swarm.focus(none.with(FaultKind::Pause)),
            Bug::ExtendWithoutCompare => {
                swarm.focus(none.with(FaultKind::Late).with(FaultKind::Hold))
            }
            Bug::WriteBackAnyway => {
                let often = none
                    .with(FaultKind::Freeze)
                    .with(FaultKind::BadClock)
                    .with(FaultKind::OneWay);
                swarm.nodes(3).faults(FaultKinds::FENCED).focus(often)
            }
            Bug::FenceForgotten | Bug::FenceFromStarts | Bug::MaxOnly => {
                swarm.faults(FaultKinds::FENCED)
            }
            Bug::HashTtlOffGuard | Bug::Unwatched | Bug::InnerReleaseFrees => {
                swarm.client(ClientKind::Hash)
            }
            Bug::HashForgotten => {
                let swarm = swarm.client(ClientKind::Hash);
                swarm.focus(none.with(FaultKind::CleanStop))
            }
            _ => swarm,
        }
    }

    /// Eight clients that contend for one lock with this TTL for 20 seconds, under the faults that real nodes can have: what
    /// `locknode lab --chaos` plays. Each step has a time, so `Cluster::run` can play it. The last 2.5 TTLs, at most a third of
    /// the time, are without faults.
    ///
    /// ```
    /// use std::time::Duration;
    /// use locknode_testkit::Swarm;
    ///
    /// Swarm::chaos(Duration::from_secs(1)).run(7).assert_safe();
    /// ```
    pub fn chaos(ttl: Duration) -> Self {
        Self {
            clients: 8,
            is_chaos: true,
            run_for: Duration::from_secs(20),
            ..Self::default()
                .ttl(ttl)
                .guard(GuardMode::Memory)
                .faults(chaos::KINDS)
        }
    }

    /// Kinds that every seed has, and twice as many of, if they may come at all.
    #[must_use]
    pub const fn focus(mut self, kinds: FaultKinds) -> Self {
        self.focus = kinds;
        self
    }

    /// How many nodes, 1 to 16.
    #[must_use]
    pub fn nodes(mut self, nodes: u8) -> Self {
        self.nodes = nodes.clamp(1, 16);
        self
    }

    /// How many clients, 1 to 16.
    #[must_use]
    pub fn clients(mut self, clients: u8) -> Self {
        self.clients = clients.clamp(1, 16);
        self
    }

    /// One TTL for all locks, instead of what the seed decides.
    #[must_use]
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// One way to guard restarts, instead of what the seed decides.
    #[must_use]
    pub const fn guard(mut self, guard: GuardMode) -> Self {
        self.guard = Some(guard);
        self
    }

    /// The kinds of faults that may come.
    #[must_use]
    pub const fn faults(mut self, faults: FaultKinds) -> Self {
        self.faults = faults;
        self.fenced_percent = 0;
        self
    }

    /// Which client runs.
    #[must_use]
    pub const fn client(mut self, client: ClientKind) -> Self {
        self.client = client;
        self
    }

    /// A mistake that every world makes.
    #[must_use]
    pub const fn bug(mut self, bug: Option<Bug>) -> Self {
        self.bug = bug;
        self
    }

    /// How long each world runs: at least 10 s, of which the last third is for calm and liveness, or at least 1 s of chaos.
    #[must_use]
    pub fn run_for(mut self, run_for: Duration) -> Self {
        let least = Duration::from_secs(if self.is_chaos { 1 } else { 10 });
        self.run_for = run_for.max(least);
        self
    }

    /// Which client runs, but for the few worlds of others in a swarm of shipped clients.
    pub const fn client_kind(&self) -> ClientKind {
        self.client
    }

    /// The kinds of faults that may come.
    pub const fn kinds(&self) -> FaultKinds {
        self.faults
    }

    /// The world of a seed, run and judged.
    pub fn run(&self, seed: u64) -> Report {
        Report::of(&self.scenario(seed))
    }

    /// The scenario of a seed.
    pub fn scenario(&self, seed: u64) -> Scenario {
        let mut random = Random::stream(seed, "swarm", 0);
        let setup = self.setup(seed, &mut random);
        if self.is_chaos {
            let setup = Setup {
                max_ttl: self.ttl.unwrap_or(setup.max_ttl),
                delay: (Duration::ZERO, Duration::ZERO),
                liveness_from: None,
                ..setup
            };
            return chaos::scenario(setup, self.faults);
        }
        let calm_at = setup.liveness_from.unwrap_or_default();
        let mut scenario = Scenario::new(setup);
        let has_shipped = self.client == ClientKind::Shipped && self.bug.is_none();
        if has_shipped && Random::stream(seed, "hashes", 0).chance(HASH_PERCENT) {
            scenario.setup.client = ClientKind::Hash;
        }
        let is_hash = scenario.setup.client == ClientKind::Hash;
        let mut maker =
            FaultMaker::new(Random::stream(seed, "faults", 0), &scenario.setup, calm_at);
        let mut others = Random::stream(seed, "asides", 0);
        let mut faults = if others.chance(self.fenced_percent) {
            FaultKinds::FENCED
        } else {
            self.faults
        };
        if is_hash {
            // A transaction that comes a second time, by a connection that has watched nothing, is a mistake of its own.
            faults = faults.without(FaultKind::Duplicate);
        }
        if !scenario.setup.is_plain() {
            let dialects = [Dialect::DelEx, Dialect::DelIfEq, Dialect::Script];
            let dialect = dialects.get(others.index(8)).copied();
            scenario.setup.dialect = match dialect {
                Some(_) if Random::stream(seed, "mixed", 0).chance(50) => Dialect::Mixed,
                dialect => dialect.unwrap_or(Dialect::Lock),
            };
        }
        scenario.setup.shards = others.pick(&[1, 1, 4]);
        maker.choose(faults, self.focus);
        let keys = random.between(1, 2);
        let style = Style {
            keys: (self.faults.has(FaultKind::Rivalry) && random.chance(95)).then_some(keys),
            overruns: self.faults.has(FaultKind::Overrun) && random.chance(80),
            crashes: self.faults.has(FaultKind::ClientCrash),
            renews: !scenario.setup.is_plain(),
        };
        for client in 0..self.clients {
            let mut random = Random::stream(seed, "workload", client.into());
            self.workload(&mut scenario, client, &style, &mut random);
        }
        if faults.has(FaultKind::Asides) && others.chance(70) {
            let locks: Vec<String> = match style.keys {
                Some(_) => vec!["a".to_owned(), "b".to_owned()],
                None => (0..self.clients)
                    .map(|client| format!("c{client}"))
                    .collect(),
            };
            let meddles = faults.has(FaultKind::Meddling) && others.chance(50);
            for client in 0..self.clients {
                let maker = AsideMaker {
                    random: Random::stream(seed, "aside", client.into()),
                    scenario: &mut scenario,
                    client,
                    line: 0,
                    locks: &locks,
                    meddles,
                    calm_at,
                };
                maker.make();
            }
        }
        maker.make(&mut scenario);
        stops::disturb(&mut scenario, &mut Random::stream(seed, "stops", 0));
        whims::add(&mut scenario, &mut Random::stream(seed, "whims", 0));
        scenario.at(Duration::from_nanos(calm_at.as_nanos()), Fault::Calm)
    }

    fn setup(&self, seed: u64, random: &mut Random) -> Setup {
        let ms = Duration::from_millis;
        let guard = random.pick(&[
            GuardMode::Long,
            GuardMode::Long,
            GuardMode::Always,
            GuardMode::Memory,
        ]);
        let (low, high) = random.pick(&[
            (ms(1), ms(3)),
            (ms(0), ms(1)),
            (ms(1), ms(15)),
            (ms(2), ms(20)),
        ]);
        let max_ttl = random.pick(&[ms(2_000), ms(4_000), ms(8_000)]);
        Setup {
            seed,
            nodes: self.nodes,
            clients: self.clients,
            guard: self.guard.unwrap_or(guard),
            max_ttl: self.ttl.map_or(max_ttl, |ttl| max_ttl.max(ttl)),
            delay: (low, high),
            client: self.client,
            bug: self.bug,
            watches_half: true,
            run_for: self.run_for,
            liveness_from: Some(SimTime::from(self.run_for * 6 / 10)),
            ..Setup::default()
        }
    }

    /// What one client does from the first second to the last.
    fn workload(&self, scenario: &mut Scenario, client: u8, style: &Style, random: &mut Random) {
        let setup = &scenario.setup;
        let (max_ttl, logs) = (nanos(setup.max_ttl), setup.guard.has_directory());
        let is_hash = setup.client == ClientKind::Hash;
        // A node has a tenth of the TTL for a reply, and with a client that has just started three round trips.
        let least_ttl = (nanos(setup.delay.1) * 100).max(nanos(MS * 300));
        let mut at = nanos(MS * 200) + random.below(nanos(MS * 1_000));
        let end = nanos(self.run_for).saturating_sub(nanos(MS * 2_000));
        let stream = |name| Random::stream(setup.seed, name, client.into());
        let (mut others, mut keeping) = (stream("extensions"), stream("keeping"));
        let mut patience = stream("patience");
        while at < end {
            let most = if logs && random.chance(10) {
                max_ttl * 3 / 2
            } else {
                max_ttl
            };
            let drawn = whole_ms(random.between(least_ttl.min(most), most));
            let ttl = self.ttl.unwrap_or(drawn);
            let ttl_ns = nanos(ttl);
            let hold_max = if style.overruns {
                ttl_ns * 3 / 2
            } else {
                ttl_ns / 2
            };
            let hold = whole_ms(random.between(ttl_ns / 20, hold_max));
            let own = format!("c{client}");
            let key = match style.keys {
                Some(keys) if random.below(keys) > 0 => "b",
                Some(_) => "a",
                None => &own,
            };
            let tries = random.pick(&[1, 1, 3, 8]);
            let mut act = LockAction::new(key, ttl)
                .tries(tries)
                .hold(hold)
                .write_every(whole_ms(nanos(hold) / 3 + 1_000_000));
            if random.chance(50) {
                act = act.extend_every(whole_ms(ttl_ns / random.between(2, 4)));
            }
            if is_hash {
                act = act.extend_every(ttl / WATCHDOG);
            }
            act = act.ending(match random.below(20) {
                0 | 1 => Ending::Leave,
                2 if style.crashes => Ending::Crash,
                3 if style.renews => Ending::HandOver,
                _ => Ending::Release,
            });
            let mut act = extend_otherwise(act, style, &mut others);
            let is_kept = keeping.chance(20);
            let least = whole_ms(keeping.between(ttl_ns / 4, ttl_ns));
            // An extension that comes twice must not be shorter than what is kept.
            if is_kept && style.renews && act.extend_to.is_none() && act.ending == Ending::Release {
                act = act.at_least(least);
            }
            // What is still under way to a node must not be shorter than what the next client asks for.
            if act.ending == Ending::HandOver
                && (act.extend_to.is_some() || act.renew_for.is_some())
            {
                act.ending = Ending::Leave;
            }
            let within = whole_ms(patience.between(nanos(MS * 200), nanos(MS * 2_000)));
            if patience.chance(20) && style.renews {
                act = act.within(within);
            }
            let hold = nanos(act.hold.unwrap_or(hold));
            let when = Trigger::At(SimTime::from_nanos(at));
            scenario.add(when, Action::Client(client, act.into()));
            at += nanos(whole_ms(hold + random.below(nanos(MS * 3_000))));
            if style.keys.is_none() {
                // Not in its own way either: its release has come to all nodes.
                at += nanos(MS * 300);
            }
        }
    }
}

/// Of the locks that their callers extend, some get another TTL now and then; of the rest the client renews some, which are
/// held longer. `random` is a stream of its own, and as much is drawn from it for every lock.
fn extend_otherwise(act: LockAction, style: &Style, random: &mut Random) -> LockAction {
    let ttl = nanos(act.ttl);
    let is_chosen = random.chance(40);
    let other = whole_ms(random.between(ttl / 4, ttl));
    let every = whole_ms(ttl / random.between(2, 5));
    let is_bounded = random.chance(50);
    let bound = whole_ms(random.between(ttl / 2, ttl * 5 / 2));
    let hold = whole_ms(random.between(ttl / 2, ttl * 2));
    if !is_chosen || !style.renews {
        return act;
    }
    if act.extend_every.is_some() {
        return act.extend_to(other);
    }
    let mut act = act.renew_every(every);
    act.renew_for = is_bounded.then_some(bound);
    if style.overruns {
        act = act.hold(hold);
    }
    act
}

/// In how many of a hundred worlds locks are held as hashes.
const HASH_PERCENT: u64 = 6;

/// A watchdog renews a lock three times in its TTL.
const WATCHDOG: u32 = 3;

/// Whole milliseconds: shorter to read.
const fn whole_ms(nanos: u64) -> Duration {
    Duration::from_millis(nanos / 1_000_000)
}

const MS: Duration = Duration::from_millis(1);
