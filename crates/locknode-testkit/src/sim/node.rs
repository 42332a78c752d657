//! One simulated node: the shipped engine and store, in the order in which the server drives them.
//!
//! ```text
//!   execute: clock -> engine -> Need          begin_work: engine -> Work     finish_work: store, disk -> engine
//!   delivery(Need): the replies are sent, wait for the disk, or are lost
//! ```
//!
//! Nothing in here is random but the names of machines and what a crash leaves of unsynced writes, which a stream of the
//! world's seed decides. Bugs of nodes are planted here and nowhere else.

mod bugs;
mod dialect;
mod disk;
mod ending;
mod owing;
mod replica;

use std::time::Duration;

use locknode_engine::durable::{
    Durability, LockRecord, Machine, MachineTime, OpenErrorKind, Reading, Start, StartReason,
    Store, StoreSettings, StoreSizes, Table as _, Which,
};
use locknode_engine::{
    Engine, EngineConfig, GuardConfig, GuardMode as EngineGuard, GuardState, Moment, Need, Peer,
    Session, TableSizes, Time,
};
use locknode_resp::{Reply, ReplyDecoder, ReplyLimits, parse_integer};

use crate::bug::Bug;
use crate::fault::{Crash, DiskFault, Phase};
use crate::faulty_disk::{FaultyDisk, Image};
use crate::random::Random;
use crate::scenario::{Dialect, GuardMode, Setup};
use crate::sim::batch::Request;
use crate::sim::clocks::{Clocks, Rule};
use crate::sim::node::disk::Job;
use crate::sim::oracle::{Oracle, Outcome, Pardon, Since};
use crate::sim::recorder::Recorder;
use crate::sim::reference::{Condition, Reference};
use crate::span::{SimTime, nanos};

pub(super) use disk::backs;
pub(crate) use ending::Stage;

/// A node; at first it is down and its disk is empty.
#[derive(Debug)]
pub(crate) struct SimNode {
    pub(crate) clocks: Clocks,
    pub(crate) random: Random,
    pub(crate) run: Option<Run>,
    /// The node's time when it executed its last request.
    pub(crate) executed_at: u64,
    /// Its machine went down with its process, so nobody tells its clients that the process is gone.
    pub(crate) is_silent: bool,
    /// Counts starts.
    pub(crate) incarnation: u32,
    /// Its disk has failed at least once.
    pub(super) was_broken: bool,
    /// The last write to a file may be incomplete.
    pub(super) is_torn: bool,
    /// The longest TTL of a lock that is no hash; kept for a planted bug.
    pub(crate) token_ttl: u64,
    /// The last work of its disk lowered the durable TTL in use.
    pub(super) has_lowered: bool,
    /// Whether starts are tried on its disk.
    pub(super) is_looked_at: bool,
    /// How often the state had been synced when the last batch of this run became durable in the log.
    pub(super) log_marked: Option<u64>,
    /// What the machine's clocks showed when it started.
    pub(super) began_at: MachineTime,
    /// The disk finishes nothing for now.
    pub(crate) is_stalled: bool,
    /// What each piece of work takes instead of its usual time.
    pub(crate) slow: Option<Duration>,
    /// Its disk has refused work, and gets no more before this.
    pub(crate) disk_rests_until: SimTime,
    pub(crate) oracle: Oracle,
    /// Chooses what is tried on copies of its disk.
    pub(super) trials: Random,
    /// What its next start need not bring back.
    pub(super) pardon: Pardon,
    /// It starts again after its orderly stop; with `true` on an empty disk, if it refuses its own.
    pub(crate) starts_again: Option<bool>,
    /// Its last run has begun to write the mark of a clean stop.
    pub(super) may_be_clean: bool,
    /// In which phase its process ended, and how, until the world has taken note.
    struck: Option<(Phase, Crash)>,
    /// What happens to its files when its process ends next.
    rots: Option<DiskFault>,
    /// Its files were damaged.
    pub(super) is_rotten: bool,
    /// How the clocks of its machine compare with those of its last run.
    pub(super) since: Since,
    /// In which phase its process is to end, after how many more operations of its disk, and how.
    doom: Option<(Phase, u16, Crash)>,
    pub(super) guard: GuardMode,
    pub(super) max_ttl: Duration,
    /// What `max_ttl` is from the next start on.
    pub(crate) next_max_ttl: Duration,
    bug: Option<Bug>,
    pub(super) disk: FaultyDisk,
    pub(super) machine: Machine,
    /// The disk at the last clean stop.
    image: Option<Image>,
    /// Where the counters began at the first start.
    pub(super) first_base: Option<u64>,
    /// Where they begin at most at the next start, as far as is known.
    pub(super) base_most: u64,
    has_replica: bool,
    dialect: Dialect,
    shards: u8,
    /// What takes the node's place when it is lost.
    replica: Option<(Engine, Session)>,
}

/// One run of a node's process.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) engine: Engine,
    pub(crate) reason: StartReason,
    /// The model of its answers; none for a promoted replica, and where a planted bug answers.
    pub(crate) reference: Option<Reference>,
    pub(super) store: Option<Store<FaultyDisk>>,
    in_flight: Option<(Job, Reading)>,
    /// How far an orderly stop has come.
    stop: Option<Stage>,
    /// What its batches need of the disk, and when the last of them ran that needs something.
    owed: (Need, SimTime),
    batches: u32,
    /// When its quarantine ends, if it began with one. At exactly this instant it still waits.
    pub(super) waits_until: Option<Time>,
    /// Its disk has failed, and not because it was full.
    has_failed: bool,
    /// Its quarantine is over, or there was none.
    pub(crate) is_serving: bool,
}

/// Why a node did not start.
#[derive(Debug)]
pub(crate) enum NoStart {
    /// Its store refused, for this reason; `is_damage` when it found damaged files.
    Refused { why: String, is_damage: bool },
    /// The process ended in the middle of it.
    CutShort(Crash),
}

/// When replies are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    Now,
    /// When the disk has caught up.
    Later,
    /// They are lost, and their connection is closed.
    Never,
}

impl SimNode {
    pub(crate) fn new(setup: &Setup, number: u8) -> Self {
        let mut random = Random::stream(setup.seed, "node", number.into());
        let rule = match setup.bug {
            Some(Bug::SlewedClock) => Rule::Boottime,
            Some(Bug::WallClock) => Rule::Wall,
            _ => Rule::Slower,
        };
        let uptime = match random.below(4) {
            0 => random.below(UPTIME_SHORT_NS),
            1 => random.below(UPTIME_LONG_NS),
            _ => random.between(UPTIME_NS.0, UPTIME_NS.1),
        };
        let wall = NOON_NS + random.below(WALL_SPREAD_NS);
        let mut machine = Machine {
            boot_id: fresh_id(&mut random),
            machine_id: fresh_id(&mut random),
            time_namespace: Machine::INITIAL_TIME_NAMESPACE,
        };
        let mut trials = Random::stream(setup.seed, "trials", number.into());
        if trials.chance(10) {
            // A system that has no names for that.
            machine = Machine::default();
        }
        Self {
            clocks: Clocks::new(rule, uptime, wall),
            random,
            run: None,
            executed_at: 0,
            is_silent: false,
            incarnation: 0,
            was_broken: false,
            is_torn: false,
            token_ttl: 0,
            has_lowered: false,
            is_looked_at: setup.watches(number),
            log_marked: None,
            began_at: MachineTime::default(),
            is_stalled: false,
            slow: None,
            disk_rests_until: SimTime::ZERO,
            oracle: Oracle::default(),
            trials,
            pardon: Pardon::Nothing,
            starts_again: None,
            may_be_clean: false,
            struck: None,
            rots: None,
            is_rotten: false,
            since: Since::Same,
            doom: None,
            guard: setup.guard,
            max_ttl: setup.max_ttl,
            next_max_ttl: setup.max_ttl,
            bug: setup.bug,
            disk: FaultyDisk::new(),
            machine,
            image: None,
            first_base: None,
            base_most: 0,
            has_replica: setup.replica_lag.is_some(),
            dialect: setup.dialect.of_node(setup.seed, number),
            shards: setup.shards,
            replica: None,
        }
    }

    /// Starts the process; `is_first` says that it has never granted anything.
    ///
    /// # Errors
    ///
    /// Why it stays down.
    pub(crate) fn start(
        &mut self,
        now: SimTime,
        is_first: bool,
        recorder: &Recorder,
    ) -> Result<Outcome, NoStart> {
        self.clocks.restart(now, 0);
        self.max_ttl = self.next_max_ttl;
        self.disk_rests_until = SimTime::ZERO;
        let reading = self.clocks.reading(now, &mut self.random);
        self.note_calendar(reading.moment.wall);
        (self.began_at, self.log_marked) = (reading.machine, None);
        let (store, start, mode) = match self.guard {
            GuardMode::Off => (None, Start::without_guard(reading), EngineGuard::Off),
            GuardMode::Memory => {
                let start = Start::without_directory(self.max_ttl, is_first, reading);
                (None, start, EngineGuard::Memory)
            }
            GuardMode::Long => self.open(now, Durability::Long, is_first, reading)?,
            GuardMode::Always => self.open(now, Durability::Always, is_first, reading)?,
        };
        self.incarnation += 1;
        let mut guard = GuardConfig::new(mode, self.max_ttl, &start);
        self.plant(&mut guard, reading.moment.time);
        let run_id = format!("{:040x}", self.random.next());
        let mut config = EngineConfig::new(self.random.next(), run_id);
        let outcome = Outcome {
            reason: start.reason,
            wait_ns: nanos(guard.quarantine_end.since(reading.moment.time)),
            fence_base: guard.fence_base,
            locks: backs(&start, reading.moment.time, recorder),
        };
        let waits_until = Some(guard.quarantine_end).filter(|end| *end > reading.moment.time);
        config.guard = guard;
        config.shards = usize::from(self.shards);
        config.sizes = TABLES;
        let mut reference = Reference::new(self.guard, self.max_ttl, config.guard.fence_base);
        let engine = Engine::new(config, reading.moment);
        let is_kept =
            |lock: &LockRecord<'_>| !lock.is_collection || self.bug != Some(Bug::HashForgotten);
        for lock in start.locks().filter(is_kept) {
            engine.restore(&lock, reading.moment.time);
            reference.restore(&lock, reading.moment.time.as_nanos());
        }
        self.run = Some(Run {
            reference: (self.bug != Some(Bug::WriteBackAnyway)).then_some(reference),
            store,
            waits_until,
            ..Run::new(engine, start.reason, now)
        });
        Ok(outcome)
    }

    /// Whether its process runs.
    pub(crate) const fn is_up(&self) -> bool {
        self.run.is_some()
    }

    /// Opens a connection; `None` when the node is down or accepts no more.
    pub(crate) fn connect(&mut self, now: SimTime) -> Option<Session> {
        let run = self.run.as_ref().filter(|run| run.stop.is_none())?;
        let time = Time::from_nanos(self.clocks.read(now, &mut self.random));
        run.engine.connect(Peer::default(), time)
    }

    /// Executes requests in one go, and appends their replies and where each of them ends.
    pub(crate) fn execute(
        &mut self,
        now: SimTime,
        (session, is_aside): (&mut Session, bool),
        requests: &[Request<'_>],
        out: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> Need {
        let Some(run) = &mut self.run else {
            return Need::NONE;
        };
        let moment = self.clocks.moment(now, &mut self.random);
        self.executed_at = moment.time.as_nanos();
        run.engine.guard().note_slip(self.clocks.slip);
        if self.bug == Some(Bug::WriteBackAnyway)
            && let [request] = requests
            && request.with(is_fence)
        {
            let need = request.with(|args| run.write_back_anyway(moment, session, args, out));
            ends.push(out.len());
            return need;
        }
        let mut batch = run.engine.batch(moment);
        for request in requests {
            request.with(|args| {
                let hidden = self.dialect.hide(args).filter(|_| !is_aside);
                batch.execute(session, hidden.as_deref().unwrap_or(args), out)
            });
            ends.push(out.len());
        }
        let need = batch.finish(session, requests.len() as u64);
        if !need.is_none() {
            run.owed = (run.owed.0.and(need), now);
        }
        run.batches = run.batches.wrapping_add(1);
        if run.batches % SWEEP_EVERY == 0 {
            run.engine.sweep(moment.time, SWEEP_SLOTS);
        }
        need
    }

    /// What its answers depend on besides its keys.
    pub(crate) fn condition(&self) -> Option<Condition> {
        let run = self.run.as_ref()?;
        let now = Time::from_nanos(self.executed_at);
        let guard = run.engine.guard();
        let is_troubled = if self.was_broken {
            guard.report(now).state != GuardState::Serving
        } else {
            guard.has_failed()
        };
        Some(Condition {
            now: self.executed_at,
            is_quarantined: run.waits_until.is_some_and(|end| now <= end),
            is_troubled,
            has_failed: run.has_failed,
        })
    }

    /// How many requests are executed in one go: all, unless a planted bug sits between two.
    pub(crate) fn most(&self) -> usize {
        match self.bug {
            Some(Bug::WriteBackAnyway) => 1,
            _ => usize::MAX,
        }
    }

    /// When replies are sent that rest on `need`. `is_logged`: it was the log's part.
    pub(crate) fn delivery(&self, need: &Need, is_logged: bool) -> Delivery {
        let Some(run) = &self.run else {
            return Delivery::Never;
        };
        let guard = run.engine.guard();
        let is_planted = match self.bug {
            Some(Bug::StateNotAwaited) => !is_logged,
            Some(Bug::LogNotAwaited) => is_logged,
            _ => false,
        };
        if need.is_none() || is_planted || guard.is_durable(need) {
            Delivery::Now
        } else if guard.is_hopeless(need) {
            Delivery::Never
        } else {
            Delivery::Later
        }
    }

    /// How long the node still refuses locks.
    pub(crate) fn quarantine_left(&mut self, now: SimTime) -> Option<Duration> {
        let run = self.run.as_ref()?;
        let time = Time::from_nanos(self.clocks.read(now, &mut self.random));
        run.engine.guard().quarantine_left(time)
    }

    /// When the quarantine ends in true time, if the clocks keep their pace.
    pub(crate) fn serves_at(&mut self, now: SimTime) -> Option<SimTime> {
        let left = self.quarantine_left(now)?;
        let time = self.clocks.read(now, &mut self.random);
        let left = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
        Some(self.clocks.when(now, time.saturating_add(left)))
    }

    fn open(
        &mut self,
        now: SimTime,
        durability: Durability,
        is_first_start: bool,
        reading: Reading,
    ) -> Result<(Option<Store<FaultyDisk>>, Start, EngineGuard), NoStart> {
        let settings = StoreSettings {
            max_ttl: self.max_ttl,
            durability,
            is_first_start,
            needs_state: false,
        };
        let mut entropy = [0; 32];
        redlock_proto::Entropy::fill(&mut self.random, &mut entropy);
        self.arm(Phase::Open);
        let (disk, mut machine) = (self.disk.clone(), self.machine);
        if self.bug == Some(Bug::NamespaceTrusted) {
            machine.time_namespace = Machine::INITIAL_TIME_NAMESPACE;
        }
        let opened = Store::open_sized(disk, &settings, SIZES, machine, reading, entropy);
        let cut_short = self.disarm(Phase::Open);
        let failed = opened.as_ref().err();
        if cut_short.is_some() || failed.is_some_and(|it| it.kind() == OpenErrorKind::Io) {
            // It may have written when its wait ends, and where its counters begin.
            self.count_time(now);
            self.note_jump();
        }
        if let Some((_, how)) = cut_short {
            return Err(NoStart::CutShort(how));
        }
        match opened {
            Ok((store, start)) => Ok((Some(store), start, EngineGuard::Store(durability))),
            Err(error) => Err(NoStart::Refused {
                why: error.to_string(),
                is_damage: error.kind() != OpenErrorKind::Io && !self.is_rotten,
            }),
        }
    }
}

impl Run {
    /// A run that keeps nothing, begins with no locks and serves at once.
    const fn new(engine: Engine, reason: StartReason, now: SimTime) -> Self {
        Self {
            engine,
            reason,
            reference: None,
            store: None,
            in_flight: None,
            stop: None,
            owed: (Need::NONE, now),
            batches: 0,
            waits_until: None,
            has_failed: false,
            is_serving: false,
        }
    }

    /// The locks of its table, as records.
    pub(super) fn table(&self, which: Which, time: Time) -> Vec<u8> {
        let (mut records, mut cursor) = (Vec::new(), 0);
        let mut table = self.engine.table(time);
        while table.records(which, &mut cursor, &mut records) {}
        records
    }

    /// The write-back without its condition: it raises the counter and says so, whoever holds the key.
    fn write_back_anyway(
        &mut self,
        moment: Moment,
        session: &mut Session,
        args: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Need {
        let [_, key, _, _, wanted, ..] = *args else {
            return Need::NONE;
        };
        let mut unheard = Vec::new();
        let mut batch = self.engine.batch(moment);
        batch.execute(session, &[b"LOCK.GET", key], &mut unheard);
        let reply = ReplyDecoder::new(ReplyLimits::default()).decode(&unheard);
        if let Ok(Some((Reply::Array(parts), _))) = reply
            && let [Reply::Bulk(token), _, Reply::Integer(grant), ..] = &parts[..]
        {
            let grant = grant.to_string();
            let request = [b"LOCK.FENCE", key, token, grant.as_bytes(), wanted];
            batch.execute(session, &request, &mut unheard);
        } else {
            let below = parse_integer(wanted).unwrap_or(1).saturating_sub(1);
            let (below, ttl) = (below.to_string(), b"1");
            let request = [
                b"LOCK.ACQUIRE",
                key,
                b"nobody",
                ttl,
                b"FLOOR",
                below.as_bytes(),
            ];
            batch.execute(session, &request, &mut unheard);
            batch.execute(session, &[b"LOCK.RELEASE", key, b"nobody"], &mut unheard);
        }
        out.extend_from_slice(b":1\r\n");
        batch.finish(session, 1)
    }
}

fn fresh_id(random: &mut Random) -> [u8; 16] {
    let mut id = [0; 16];
    redlock_proto::Entropy::fill(random, &mut id);
    id
}

/// Whether a node is asked to accept a fencing token.
fn is_fence(args: &[&[u8]]) -> bool {
    args.first()
        .is_some_and(|name| name.eq_ignore_ascii_case(b"LOCK.FENCE"))
}

/// Files so small that a minute of locks sees segments change and the log compacted.
pub(super) const SIZES: StoreSizes = StoreSizes {
    segment: 4 << 10,
    log: 16 << 10,
};

/// Tables for few keys: a node lives for some seconds.
const TABLES: TableSizes = TableSizes {
    tables: 64,
    fences: 1 << 12,
};

/// The number of a time namespace that is not the machine's own.
const CONTAINER_NAMESPACE: u64 = 0xf000_0001;

/// By how much clocks go back at most.
const BACK_NS: u64 = 20_000_000_000;

/// A day in 2027, in nanoseconds since 1970.
const NOON_NS: u64 = 1_800_000_000_000_000_000;

/// Wall clocks agree to a second.
const WALL_SPREAD_NS: u64 = 1_000_000_000;

/// Machines have been running for an hour to a day.
const UPTIME_NS: (u64, u64) = (3_600_000_000_000, 86_400_000_000_000);

/// Or they have just booted ...
const UPTIME_SHORT_NS: u64 = 3_000_000_000;

/// ... or run for up to a century.
const UPTIME_LONG_NS: u64 = 100 * 365 * 86_400_000_000_000;

/// A world's keys are few: sweeping now and then reclaims what has expired.
const SWEEP_EVERY: u32 = 64;

/// More than a world's locks.
const SWEEP_SLOTS: usize = 256;

/// How many bytes a failing write may have written.
const WRITTEN_MAX: usize = 600;
