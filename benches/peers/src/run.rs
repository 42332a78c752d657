//! One round: every server once.

use std::process::Command;
use std::time::Instant;

use locknode_peers::machine;
use locknode_peers::server::Server;
use serde_json::Value;

use crate::options::{Case, Options};

/// What one server did in one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Server CPU per operation in nanoseconds; resident bytes per lock in a memory row.
    pub(crate) cost: f64,
    /// The user share of that CPU, 0 to 1.
    pub(crate) user_share: f64,
    pub(crate) operations_per_second: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// Runs every server once; `None` when other processes disturbed one of the runs or a server lacks the command.
pub(crate) fn round(
    options: &Options,
    servers: &[Server],
    case: &Case,
    is_reversed: bool,
) -> Result<Option<Vec<Option<Measured>>>, String> {
    let mut results = vec![None; servers.len()];
    let mut order: Vec<usize> = (0..servers.len()).collect();
    if is_reversed {
        order.reverse();
    }
    for index in order {
        let Some(server) = servers.get(index) else {
            continue;
        };
        match run(options, server, case)? {
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

fn run(options: &Options, server: &Server, case: &Case) -> Result<Run, String> {
    let running = server.start()?;
    let pid = running.pid();
    if !case.is_memory {
        // Connections, scripts, sub-tables and branch predictors: not what is measured.
        let (report, _) = load(options, case, running.port, WARM_UP_OPERATIONS)?;
        if report.is_none() {
            return Ok(Run::Unsupported);
        }
    }
    let (busy, cpu, rss) = (
        machine::busy_seconds(),
        machine::cpu_seconds(pid),
        machine::resident_bytes(pid),
    );
    let split = machine::user_and_system_seconds(pid);
    let started = Instant::now();
    let (report, load_cpu) = load(options, case, running.port, case.operations)?;
    let seconds = started.elapsed().as_secs_f64();
    let cpu = machine::cpu_seconds(pid) - cpu;
    let split_after = machine::user_and_system_seconds(pid);
    let others = machine::busy_seconds() - busy - cpu - load_cpu;
    if others > seconds / 4.0 {
        if std::env::var_os("BENCH_PEERS_VERBOSE").is_some() {
            eprintln!(
                "{}: others used {others:.2} s of {seconds:.2} s",
                server.name
            );
        }
        return Ok(Run::Disturbed);
    }
    let Some(report) = report else {
        return Ok(Run::Unsupported);
    };
    let latency = |point: &str| {
        // A workload of one step has no sum over its steps.
        let step = if report.pointer("/latency_us/all").is_some() {
            "all"
        } else {
            "acquire"
        };
        let value = report.pointer(&format!("/latency_us/{step}/{point}"));
        value.and_then(Value::as_f64).unwrap_or(f64::NAN)
    };
    let number = |pointer: &str| {
        report
            .pointer(pointer)
            .and_then(Value::as_f64)
            .unwrap_or(f64::NAN)
    };
    let operations = number("/commands");
    let (user, system) = (split_after.0 - split.0, split_after.1 - split.1);
    let cost = if case.is_memory {
        (machine::resident_bytes(pid) - rss) / operations
    } else {
        cpu * 1e9 / operations
    };
    Ok(Run::Done(Measured {
        cost,
        user_share: user / (user + system),
        operations_per_second: number("/commands_per_second"),
        p50_us: latency("p50"),
        p99_us: latency("p99"),
    }))
}

/// Runs the load generator on the second core; its report, or `None` when the server lacks the command, and the
/// CPU time it took.
fn load(
    options: &Options,
    case: &Case,
    port: u16,
    operations: u64,
) -> Result<(Option<Value>, f64), String> {
    let mut command = Command::new("taskset");
    command.args(["-c", "1", &options.locknode, "bench", "--json"]);
    command.args([
        "--addr",
        &format!("127.0.0.1:{port}"),
        "--workload",
        case.workload,
    ]);
    command.args([
        "--requests",
        &operations.to_string(),
        "--keys",
        &case.keys.to_string(),
    ]);
    command.args([
        "--pipeline",
        &case.pipeline.to_string(),
        "--connections",
        &case.connections.to_string(),
    ]);
    command.args(["--ttl", "600s", "--warmup", "0s"]);
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

const WARM_UP_OPERATIONS: u64 = 20_000;
