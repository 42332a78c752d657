//! One run of one client process.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use locknode_peers::machine::Watch;
use locknode_peers::rounds::Turn;
use locknode_peers::server::Server;
use serde_json::Value;

use crate::cluster::Cluster;
use crate::contestant::Contestant;

/// What is asked of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) in_flight: u32,
    pub(crate) seconds: f64,
    /// The share of a core that other processes may use meanwhile.
    pub(crate) others_max: f64,
}

/// What a client did.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The client's name for itself, with versions.
    pub(crate) title: String,
    /// Locks acquired.
    pub(crate) locks: f64,
    /// Locks not granted or not released.
    pub(crate) failures: f64,
    /// Client CPU per lock.
    pub(crate) cpu_us: f64,
    pub(crate) locks_per_second: f64,
    /// Of acquire.
    pub(crate) p50_us: f64,
    /// Of acquire.
    pub(crate) p99_us: f64,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) enum Run {
    Done(Measured),
    /// Other processes used more of a core than they may; the client's title.
    Disturbed(String),
    /// It did not end in time and was killed.
    Stuck,
}

/// Runs a client on `addresses` of the cluster; `on_warm` is called between its warm-up and what it measures.
pub(crate) fn run(
    contestant: &Contestant,
    cluster: &Cluster,
    addresses: &str,
    load: Load,
    on_warm: impl FnOnce() -> Result<(), String>,
) -> Result<Run, String> {
    let watch = Watch::start(cluster.pids());
    let mut command = contestant.command();
    command.args([
        addresses,
        &load.in_flight.to_string(),
        &load.seconds.to_string(),
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped());
    let child = command.spawn();
    let child = child.map_err(|error| format!("cannot start {}: {error}", contestant.name))?;
    let mut child = Killed(child);
    let output = lines(child.0.stdout.take());
    let complaints = lines(child.0.stderr.take());
    let mut input = child.0.stdin.take();
    let proceed = || {
        on_warm()?;
        let mut input = input.take().ok_or("no way to tell the client to go on")?;
        // One that has ended meanwhile will be missed by its report.
        let _ = input.write_all(b"\n");
        Ok(())
    };
    let deadline = Instant::now() + limit(load);
    let Some(report) = report(&output, deadline, proceed)? else {
        return Ok(Run::Stuck);
    };
    child.end();
    let complaint = complaints.iter().last().unwrap_or_default();
    let Some(report) = report else {
        return Err(format!(
            "{} ended without a report: {complaint}",
            contestant.name
        ));
    };
    let measured = measured(&report)
        .ok_or_else(|| format!("unreadable report of {}: {report}", contestant.name))?;
    if measured.failures > 0.0 && !complaint.is_empty() {
        eprintln!("{}: {complaint}", contestant.name);
    }
    if watch.others() > load.others_max {
        return Ok(Run::Disturbed(measured.title));
    }
    Ok(Run::Done(measured))
}

/// A run in which every lock has to be granted and released.
pub(crate) fn flawless(name: &str, run: Run) -> Turn<Measured> {
    match run {
        Run::Done(measured) if measured.failures > 0.0 || measured.locks < 1.0 => {
            let (failures, locks) = (measured.failures, measured.locks);
            Turn::Void(format!("{name}: {failures} failures beside {locks} locks"))
        }
        Run::Done(measured) => Turn::Counted(measured),
        Run::Disturbed(_) => Turn::Disturbed,
        Run::Stuck => Turn::Void(format!("{name} does not come to an end")),
    }
}

/// One flawless run on five fresh nodes.
pub(crate) fn afresh(
    contestant: &Contestant,
    server: &Server,
    load: Load,
) -> Result<Turn<Measured>, String> {
    let cluster = Cluster::start(server)?;
    let run = run(contestant, &cluster, &cluster.addresses(), load, || Ok(()))?;
    Ok(flawless(contestant.name, run))
}

/// How long a client may take from its start to its report.
pub(crate) fn limit(load: Load) -> Duration {
    Duration::from_secs_f64(load.seconds * 2.0) + PATIENCE
}

/// A child that does not outlive its owner.
#[derive(Debug)]
struct Killed(Child);

impl Killed {
    /// Ends it, for after its report a client may still wait for a silent node; its CPU time is known then.
    fn end(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a child prints, line by line, read whether or not anybody takes it: a full pipe would stop the child.
fn lines(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    if let Some(pipe) = pipe {
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // Nobody waits for the rest.
                let _ = sender.send(line);
            }
        });
    }
    receiver
}

/// The report; `None` when the deadline came first, and `Some(None)` when the client ended without one.
fn report(
    lines: &Receiver<String>,
    deadline: Instant,
    on_warm: impl FnOnce() -> Result<(), String>,
) -> Result<Option<Option<Value>>, String> {
    let mut on_warm = Some(on_warm);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match lines.recv_timeout(left) {
            Ok(line) if line == "warm" => {
                if let Some(on_warm) = on_warm.take() {
                    on_warm()?;
                }
            }
            Ok(line) => {
                if let Ok(report) = serde_json::from_str(&line) {
                    return Ok(Some(Some(report)));
                }
            }
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Ok(Some(None)),
        }
    }
}

fn measured(report: &Value) -> Option<Measured> {
    let number = |name: &str| report.get(name)?.as_f64();
    let locks = number("cycles")?;
    Some(Measured {
        title: report.get("client")?.as_str()?.to_owned(),
        locks,
        failures: number("failures")?,
        cpu_us: number("cpu_s")? * 1e6 / locks,
        locks_per_second: locks / number("wall_s")?,
        p50_us: number("p50_us")?,
        p99_us: number("p99_us")?,
    })
}

/// Beyond twice the measured time: for starting, connecting and the last replies on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
