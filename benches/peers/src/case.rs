//! The rows of the table.

use locknode_peers::server::Server;

use crate::cycle::Cycle;
use crate::options::Options;
use crate::setup::Setup;

/// One row of the table: contestants under the same load.
#[derive(Debug)]
pub(crate) struct Case<'s> {
    /// What `--only` selects it by; the first section has no name.
    pub(crate) section: &'static str,
    pub(crate) name: String,
    pub(crate) pipeline: u32,
    pub(crate) operations: u64,
    pub(crate) keys: u64,
    pub(crate) ttl: &'static str,
    pub(crate) figure: Figure,
    pub(crate) rounds: usize,
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
    pub(crate) server: &'s Server,
    pub(crate) setup: Setup,
    pub(crate) load: Load,
}

/// Who sends the load.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Load {
    /// `locknode bench` with a workload of this name.
    Bench(&'static str),
    /// This program, which knows the commands with fencing tokens.
    Own(Cycle),
}

/// All rows that are asked for.
pub(crate) fn all<'s>(options: &Options, servers: &'s [Server]) -> Vec<Case<'s>> {
    let mut cases = volatile(options, servers);
    if let Some(ours) = servers.iter().find(|server| server.is_ours()) {
        cases.extend(guard(options, ours));
        cases.extend(fence(options, ours));
    }
    cases.extend(durable(options, servers));
    cases.retain(|case| options.selects(case.section, &case.name));
    cases
}

/// Everything in memory and no guard: what lock users run today.
fn volatile<'s>(options: &Options, servers: &'s [Server]) -> Vec<Case<'s>> {
    let mut cases = Vec::new();
    for workload in ["cycle-evalsha", "cycle-delex", "cycle-delifeq", "set"] {
        for pipeline in PIPELINES {
            let mut case = Case::new(options, "", &format!("{workload} P{pipeline}"), pipeline);
            // A plain SET NX must find its key free, so it runs over as many keys as it sends.
            if workload == "set" {
                case.keys = case.operations;
            }
            case.contestants = beside(servers, Setup::Nothing, Load::Bench(workload));
            cases.push(case);
        }
    }
    let locks = options.memory_locks;
    if locks > 0 {
        cases.push(Case {
            operations: locks,
            keys: locks,
            figure: Figure::Memory,
            contestants: beside(servers, Setup::Nothing, Load::Bench("set")),
            ..Case::new(options, "", &format!("memory per lock, {locks} locks"), 16)
        });
    }
    cases
}

fn guard<'s>(options: &Options, ours: &'s Server) -> Vec<Case<'s>> {
    let cases = PIPELINES.map(|pipeline| {
        let contestants = [
            ("guard off", Setup::Nothing),
            ("guard on, --dir", Setup::Guard),
            ("guard on, no dir", Setup::GuardInMemory),
        ];
        Case {
            ttl: SHORT_TTL,
            // Two in a hundred are to be seen.
            rounds: if options.is_smoke {
                1
            } else {
                options.rounds * 3
            },
            contestants: contestants
                .map(|(label, setup)| Contestant {
                    label: label.to_owned(),
                    server: ours,
                    setup,
                    load: Load::Bench("cycle-evalsha"),
                })
                .to_vec(),
            ..Case::new(
                options,
                "guard",
                &format!("guard cycle P{pipeline}"),
                pipeline,
            )
        }
    });
    cases.into()
}

fn fence<'s>(options: &Options, ours: &'s Server) -> Vec<Case<'s>> {
    let cases = PIPELINES.map(|pipeline| {
        let contestants = Cycle::ALL.map(|cycle| Contestant {
            label: cycle.label().to_owned(),
            server: ours,
            setup: Setup::Nothing,
            load: Load::Own(cycle),
        });
        Case {
            contestants: contestants.to_vec(),
            ..Case::new(
                options,
                "fence",
                &format!("fence cycle P{pipeline}"),
                pipeline,
            )
        }
    });
    cases.into()
}

fn durable<'s>(options: &Options, servers: &'s [Server]) -> Vec<Case<'s>> {
    let mut cases = Vec::new();
    for (name, workload) in [("set", "set"), ("cycle", "cycle-evalsha")] {
        for pipeline in PIPELINES {
            let case = Case::new(
                options,
                "durable",
                &format!("durable {name} P{pipeline}"),
                pipeline,
            );
            cases.push(Case {
                operations: case.operations / DURABLE_PART,
                ttl: SHORT_TTL,
                figure: Figure::Durable,
                contestants: beside(servers, Setup::Always, Load::Bench(workload)),
                ..case
            });
        }
    }
    cases
}

fn beside(servers: &[Server], setup: Setup, load: Load) -> Vec<Contestant<'_>> {
    let contestants = servers.iter().map(|server| Contestant {
        label: server.name.clone(),
        server,
        setup,
        load,
    });
    contestants.collect()
}

impl Case<'_> {
    fn new(options: &Options, section: &'static str, name: &str, pipeline: u32) -> Self {
        let operations = if pipeline == 1 {
            options.operations
        } else {
            options.operations * 4
        };
        Self {
            section,
            name: name.to_owned(),
            pipeline,
            operations,
            keys: 100_000,
            ttl: LONG_TTL,
            figure: Figure::Cost,
            rounds: options.rounds,
            contestants: Vec::new(),
        }
    }
}

/// Connections of every row.
pub(crate) const CONNECTIONS: u32 = 50;

const PIPELINES: [u32; 2] = [1, 16];

/// No lock ends during a run.
const LONG_TTL: &str = "600s";

/// Within the longest TTL that rides on the restart guard by default.
const SHORT_TTL: &str = "30s";

/// A disk does thousands of syncs a second, not hundreds of thousands.
const DURABLE_PART: u64 = 4;
