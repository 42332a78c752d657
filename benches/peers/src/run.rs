//! One round: every contestant once.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use locknode_peers::data_directory::DataDirectory;
use locknode_peers::machine;
use serde_json::Value;

use crate::case::{CONNECTIONS, Case, Contestant, Figure, Load};
use crate::options::Options;
use crate::setup;

/// What one contestant did in one round.
#[derive(Clone, Copy, Debug, Default)]
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

/// Runs every contestant once; `None` when other processes disturbed one of the runs. A contestant that lacks the command
/// has no result.
pub(crate) fn round(
    options: &Options,
    case: &Case<'_>,
    is_reversed: bool,
) -> Result<Option<Vec<Option<Measured>>>, String> {
    let mut results = vec![None; case.contestants.len()];
    let mut order: Vec<usize> = (0..results.len()).collect();
    if is_reversed {
        order.reverse();
    }
    for index in order {
        let Some(contestant) = case.contestants.get(index) else {
            continue;
        };
        match run(options, contestant, case)? {
            Run::Disturbed => return Ok(None),
            Run::Unsupported => {}
            Run::Done(measured) => {
                if let Some(slot) = results.get_mut(index) {
                    *slot = Some(measured);
                }
            }
        }
    }
    Ok(Some(results))
}

enum Run {
    Done(Measured),
    Disturbed,
    Unsupported,
}

fn run(options: &Options, contestant: &Contestant<'_>, case: &Case<'_>) -> Result<Run, String> {
    let setup = contestant.setup;
    let directory = setup
        .needs_directory()
        .then(|| DataDirectory::new(&options.data_dir))
        .transpose();
    let directory =
        directory.map_err(|error| format!("{}: {error}", options.data_dir.display()))?;
    let path = directory
        .as_ref()
        .map_or(Path::new(""), DataDirectory::path);
    let args = setup.args(contestant.server.kind(), path, setup::Run::First, MAX_TTL);
    let running = contestant.server.start_with(&args)?;
    let pid = running.pid();
    let sender = Sender {
        locknode: &options.locknode,
        load: contestant.load,
        port: running.port,
        pipeline: case.pipeline,
        keys: case.keys,
        ttl: case.ttl,
    };
    if case.figure != Figure::Memory {
        // Connections, scripts, sub-tables and branch predictors: not what is measured.
        let (report, _) = sender.send(WARM_UP_OPERATIONS.min(case.operations / 10))?;
        if report.is_none() {
            return Ok(Run::Unsupported);
        }
    }
    let syncs = || running.info("restart", "disk_syncs");
    let syncs_before = syncs();
    let (busy, cpu, rss) = (
        machine::busy_seconds(),
        machine::cpu_seconds(pid),
        machine::resident_bytes(pid),
    );
    let split = machine::user_and_system_seconds(pid);
    let started = Instant::now();
    let (report, load_cpu) = sender.send(case.operations)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = machine::cpu_seconds(pid) - cpu;
    let split_after = machine::user_and_system_seconds(pid);
    let others = machine::busy_seconds() - busy - cpu - load_cpu;
    if others > seconds * others_max(case.figure) {
        complain(&contestant.label, others, seconds);
        if !options.is_smoke {
            return Ok(Run::Disturbed);
        }
    }
    let Some(report) = report else {
        return Ok(Run::Unsupported);
    };
    let operations = number(&report, "/commands");
    let (user, system) = (split_after.0 - split.0, split_after.1 - split.1);
    let cost = if case.figure == Figure::Memory {
        (machine::resident_bytes(pid) - rss) / operations
    } else {
        cpu * 1e9 / operations
    };
    Ok(Run::Done(Measured {
        cost,
        user_share: user / (user + system),
        operations_per_second: number(&report, "/commands_per_second"),
        p50_us: latency(&report, "p50"),
        p99_us: latency(&report, "p99"),
        syncs_per_second: syncs_before
            .zip(syncs())
            .map(|(before, after)| (after - before) / seconds),
    }))
}

fn complain(label: &str, others: f64, seconds: f64) {
    if std::env::var_os("BENCH_PEERS_VERBOSE").is_some() {
        eprintln!("{label}: others used {others:.2} s of {seconds:.2} s");
    }
}

fn number(report: &Value, pointer: &str) -> f64 {
    let value = report.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or(f64::NAN)
}

fn latency(report: &Value, point: &str) -> f64 {
    // A workload of one step has no sum over its steps.
    let step = if report.pointer("/latency_us/all").is_some() {
        "all"
    } else {
        "acquire"
    };
    number(report, &format!("/latency_us/{step}/{point}"))
}

/// What a load generator has to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) locknode: &'a str,
    pub(crate) load: Load,
    pub(crate) port: u16,
    pub(crate) pipeline: u32,
    pub(crate) keys: u64,
    pub(crate) ttl: &'a str,
}

impl Sender<'_> {
    /// Runs the load generator on the second core; its report, or `None` when the server lacks the command, and the
    /// CPU time it took.
    ///
    /// # Errors
    ///
    /// When it finds a wrong reply.
    pub(crate) fn send(&self, operations: u64) -> Result<(Option<Value>, f64), String> {
        let numbers = [
            self.port.to_string(),
            CONNECTIONS.to_string(),
            self.pipeline.to_string(),
            operations.to_string(),
            self.keys.to_string(),
        ];
        let [port, connections, pipeline, requests, keys] = numbers.each_ref().map(String::as_str);
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]);
        match self.load {
            Load::Bench(workload) => {
                command.args([self.locknode, "bench", "--json", "--addr", &address]);
                command.args(["--workload", workload, "--requests", requests]);
                command.args(["--keys", keys, "--pipeline", pipeline]);
                command.args(["--connections", connections]);
                command.args(["--ttl", self.ttl, "--warmup", "0s"]);
            }
            Load::Own(cycle) => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                command.arg(program).args([SEND, cycle.label()]);
                command.args([port, connections, pipeline, requests, keys]);
            }
        }
        let cpu = machine::children_cpu_seconds();
        let output = command
            .output()
            .map_err(|error| format!("cannot start the load generator: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            if complaint.contains("unknown command") || complaint.contains("syntax error") {
                return Ok((None, 0.0));
            }
            return Err(format!("the load generator failed: {}", complaint.trim()));
        }
        let report: Value =
            serde_json::from_str(&text).map_err(|error| format!("unreadable report: {error}"))?;
        Ok((Some(report), machine::children_cpu_seconds() - cpu))
    }
}

/// Which share of a core others may use. The kernel's threads that write a file system's journal are others, too.
fn others_max(figure: Figure) -> f64 {
    match figure {
        Figure::Durable => 0.5,
        Figure::Cost | Figure::Memory => 0.25,
    }
}

/// The word that makes this program a load generator.
pub(crate) const SEND: &str = "send";

/// What a lock node has by default.
const MAX_TTL: &str = "60s";

const WARM_UP_OPERATIONS: u64 = 20_000;
