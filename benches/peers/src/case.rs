//! The rows of the table.

use locknode_peers::directory;
use locknode_peers::machine::{self, Watch};
use locknode_peers::rounds::{Rounds, Turn};
use locknode_peers::server::Server;
use locknode_peers::setup::{Run, Setup};

use crate::load::Load;
use crate::options::Options;
use crate::table;

/// One row of the table: contestants under the same load.
#[derive(Debug)]
pub(crate) struct Case<'s> {
    /// What `--only` selects it by; the first section has no name.
    pub(crate) section: &'static str,
    pub(crate) name: String,
    pub(crate) figure: Figure,
    operations: u64,
    rounds: u32,
    /// The others are compared with the first.
    pub(crate) contestants: Vec<Contestant<'s>>,
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    /// Server CPU per operation.
    Cost,
    /// Resident bytes per lock after the run.
    Memory,
    /// Operations per second; the disk is part of it.
    Durable,
}

/// A server, what it keeps, and what it is sent.
#[derive(Clone, Debug)]
pub(crate) struct Contestant<'s> {
    pub(crate) label: String,
    server: &'s Server,
    pub(crate) setup: Setup,
    load: Load,
}

/// What one contestant did in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Server CPU per operation in nanoseconds; resident bytes per lock in a memory row.
    pub(crate) cost: f64,
    /// The user share of that CPU, 0 to 1.
    pub(crate) user_share: f64,
    pub(crate) operations_per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    /// Syncs of the disk, where the server counts them.
    pub(crate) syncs_per_second: Option<f64>,
}

/// All rows that are asked for.
pub(crate) fn all<'s>(
    options: &Options,
    servers: &'s [Server],
    floor: &'s Server,
) -> Vec<Case<'s>> {
    let mut cases = volatile(options, servers, floor);
    if let Some(ours) = servers.iter().find(|server| server.is_ours()) {
        cases.extend(guard(options, ours));
        cases.extend(fence(options, ours));
    }
    cases.extend(durable(options, servers));
    cases.retain(|case| options.selects(case.section, &case.name));
    cases
}

/// Everything in memory and no guard: what lock users run today.
fn volatile<'s>(options: &Options, servers: &'s [Server], floor: &'s Server) -> Vec<Case<'s>> {
    let mut cases = Vec::new();
    for workload in ["cycle-evalsha", "cycle-delex", "cycle-delifeq", "set"] {
        cases.extend(PIPELINES.map(|pipeline| {
            let load = Load::new(workload, pipeline, LONG_TTL);
            let contestants = of_each(servers.iter().chain([floor]), Setup::Nothing, load);
            Case::new(options, "", workload, pipeline, contestants)
        }));
    }
    let locks = options.memory_locks;
    if locks > 0 {
        let load = Load::new("set", 16, LONG_TTL);
        let contestants = of_each(servers, Setup::Nothing, load);
        cases.push(Case {
            name: format!("memory per lock, {locks} locks"),
            operations: locks,
            figure: Figure::Memory,
            ..Case::new(options, "", "memory", 16, contestants)
        });
    }
    cases
}

fn guard<'s>(options: &Options, ours: &'s Server) -> [Case<'s>; 2] {
    PIPELINES.map(|pipeline| {
        let contestants = [
            ("guard off", Setup::Nothing),
            ("guard on, --dir", Setup::Guard),
            ("guard on, no dir", Setup::GuardInMemory),
        ];
        let load = Load::new("cycle-evalsha", pipeline, SHORT_TTL);
        let contestants =
            contestants.map(|(label, setup)| Contestant::new(ours, label, setup, load));
        let contestants = contestants.into();
        let case = Case::new(options, "guard", "guard cycle", pipeline, contestants);
        Case {
            // Two in a hundred are to be seen.
            rounds: case.rounds * if options.smoke { 1 } else { 3 },
            ..case
        }
    })
}

fn fence<'s>(options: &Options, ours: &'s Server) -> [Case<'s>; 2] {
    PIPELINES.map(|pipeline| {
        let contestants = [
            ("SET, DELIFEQ", "cycle-delifeq"),
            ("SET, EVALSHA", "cycle-evalsha"),
            ("LOCK.*", "cycle-lock"),
            ("LOCK.* FLOOR", "cycle-lock-floor"),
        ];
        let contestants = contestants.map(|(label, workload)| {
            let load = Load::new(workload, pipeline, SHORT_TTL);
            Contestant::new(ours, label, Setup::Nothing, load)
        });
        let contestants = contestants.into();
        Case::new(options, "fence", "fence cycle", pipeline, contestants)
    })
}

fn durable<'s>(options: &Options, servers: &'s [Server]) -> Vec<Case<'s>> {
    let mut cases = Vec::new();
    for (name, workload) in [("durable set", "set"), ("durable cycle", "cycle-evalsha")] {
        cases.extend(PIPELINES.map(|pipeline| {
            let load = Load::new(workload, pipeline, SHORT_TTL);
            let contestants = of_each(servers, Setup::Always, load);
            let case = Case::new(options, "durable", name, pipeline, contestants);
            Case {
                operations: case.operations / DURABLE_PART,
                figure: Figure::Durable,
                ..case
            }
        }));
    }
    cases
}

/// The same of every server.
fn of_each<'s>(
    servers: impl IntoIterator<Item = &'s Server>,
    setup: Setup,
    load: Load,
) -> Vec<Contestant<'s>> {
    let servers = servers.into_iter();
    let contestants = servers.map(|server| Contestant::new(server, &server.name, setup, load));
    contestants.collect()
}

impl<'s> Case<'s> {
    fn new(
        options: &Options,
        section: &'static str,
        name: &str,
        pipeline: u32,
        contestants: Vec<Contestant<'s>>,
    ) -> Self {
        Self {
            section,
            name: format!("{name} P{pipeline}"),
            figure: Figure::Cost,
            operations: options.operations * if pipeline == 1 { 1 } else { 4 },
            rounds: options.rounds,
            contestants,
        }
    }

    /// Runs the rounds and prints them.
    pub(crate) fn measure(&self, options: &Options) -> Result<(), String> {
        let mut contestants: Vec<_> = self.contestants.iter().collect();
        let rounds = Rounds::collect(self.rounds, &mut contestants, |contestant| {
            self.turn(options, contestant)
        })?;
        table::print_case(self, &rounds);
        Ok(())
    }

    fn turn(
        &self,
        options: &Options,
        contestant: &Contestant<'_>,
    ) -> Result<Turn<Measured>, String> {
        let (server, setup) = (contestant.server, contestant.setup);
        let directory = directory::empty(&options.data_dir)?;
        let args = setup.args(server.kind, directory.path(), Run::First, MAX_TTL);
        let running = server.start_with(&args)?;
        let pid = running.pid();
        let send = |commands| contestant.load.send(options, &running, commands);
        if self.figure != Figure::Memory {
            // Connections, scripts, sub-tables and branch predictors: not what is measured.
            let report = send(WARM_UP_OPERATIONS.min(self.operations / 10))?;
            if report.is_none() {
                return Ok(Turn::Unable);
            }
        }
        let syncs = || running.info("restart", "disk_syncs");
        let syncs_before = syncs();
        let rss = machine::resident_bytes(pid);
        let split = machine::user_and_system_seconds(pid);
        let watch = Watch::start(vec![pid]);
        let Some(report) = send(self.operations)? else {
            return Ok(Turn::Unable);
        };
        let (seconds, cpu, others) = (watch.seconds(), watch.cpu_seconds(), watch.others());
        let split_after = machine::user_and_system_seconds(pid);
        if others > self.others_max() {
            if std::env::var_os("BENCH_PEERS_VERBOSE").is_some() {
                eprintln!("{}: others used {others:.2} of a core", contestant.label);
            }
            if !options.smoke {
                return Ok(Turn::Disturbed);
            }
        }
        let operations = report.number("/commands");
        let (user, system) = (split_after.0 - split.0, split_after.1 - split.1);
        Ok(Turn::Counted(Measured {
            cost: match self.figure {
                Figure::Memory => (machine::resident_bytes(pid) - rss) / operations,
                Figure::Cost | Figure::Durable => cpu * 1e9 / operations,
            },
            user_share: user / (user + system),
            operations_per_second: report.number("/commands_per_second"),
            p50_us: report.latency("p50"),
            p99_us: report.latency("p99"),
            syncs_per_second: syncs_before
                .zip(syncs())
                .map(|(before, after)| (after - before) / seconds),
        }))
    }

    /// Which share of a core others may use. The kernel's threads that write a file system's journal are others, too.
    fn others_max(&self) -> f64 {
        match self.figure {
            Figure::Durable => 0.5,
            Figure::Cost | Figure::Memory => 0.25,
        }
    }
}

impl<'s> Contestant<'s> {
    fn new(server: &'s Server, label: &str, setup: Setup, load: Load) -> Self {
        Self {
            label: label.to_owned(),
            server,
            setup,
            load,
        }
    }
}

/// What the tables call the bare server.
pub(crate) const FLOOR: &str = "floor";

const PIPELINES: [u32; 2] = [1, 16];

/// No lock ends during a run.
const LONG_TTL: &str = "600s";

/// Within the longest TTL that rides on the restart guard by default.
const SHORT_TTL: &str = "30s";

/// What a lock node has by default.
const MAX_TTL: &str = "60s";

const WARM_UP_OPERATIONS: u64 = 20_000;

/// A disk does thousands of syncs a second, not hundreds of thousands.
const DURABLE_PART: u64 = 4;
