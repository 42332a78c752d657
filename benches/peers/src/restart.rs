//! From a stop with many locks held to serving again.

use std::time::{Duration, Instant};

use locknode_peers::directory::{self, extent};
use locknode_peers::machine;
use locknode_peers::rounds::{Rounds, Turn};
use locknode_peers::server::{Kind, Server};
use locknode_peers::setup::{Run, Setup};

use crate::load::Load;
use crate::options::Options;

/// A server that is stopped and started again.
#[derive(Debug)]
struct Contestant<'s> {
    label: String,
    server: &'s Server,
    setup: Setup,
    stop: Stop,
}

/// How a server is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Terminate,
    ShutDownSaving,
    Kill,
}

/// What one contestant did in one round, in seconds unless said.
#[derive(Clone, Copy, Debug)]
struct Measured {
    stop: f64,
    bytes: f64,
    pong: f64,
    grant: f64,
    cpu: f64,
}

/// Stops and starts every server in every round, and prints how long it took.
pub(crate) fn measure(options: &Options, servers: &[Server]) -> Result<(), String> {
    let mut contestants = contestants(servers);
    println!(
        "\nrestart: {} locks, TTL 10 min, 30 byte keys, 32 byte tokens; seconds from exec\n{:<34} {:>9} {:>12} {:>9} {:>18} {:>11} {:>18} {:>8}",
        options.restart_locks,
        "server",
        "stop s",
        "bytes kept",
        "PONG s",
        "x first",
        "granting s",
        "x first",
        "CPU s"
    );
    let rounds = Rounds::collect(options.rounds, &mut contestants, |contestant| {
        let measured = restart(options, contestant);
        measured
            .map(Turn::Counted)
            .map_err(|error| format!("{}: {error}", contestant.label))
    })?;
    for (index, contestant) in contestants.iter().enumerate() {
        let of = |pick: fn(&Measured) -> f64| rounds.median(index, pick);
        let against_first = |pick: fn(&Measured) -> f64| match index {
            0 => String::new(),
            _ => rounds.ratio(index, 0, 2, |this, first| pick(this) / pick(first)),
        };
        println!(
            "{:<34} {:>9.3} {:>12.0} {:>9.3} {:>18} {:>11.3} {:>18} {:>8.3}",
            contestant.label,
            of(|m| m.stop),
            of(|m| m.bytes),
            of(|m| m.pong),
            against_first(|m| m.pong),
            of(|m| m.grant),
            against_first(|m| m.grant),
            of(|m| m.cpu),
        );
    }
    Ok(())
}

fn contestants(servers: &[Server]) -> Vec<Contestant<'_>> {
    let mut contestants = Vec::new();
    for server in servers {
        let mut add = |how: &str, setup, stop| {
            contestants.push(Contestant {
                label: format!("{} {how}", server.name),
                server,
                setup,
                stop,
            });
        };
        match server.kind {
            Kind::Locknode => {
                add("snapshot, SIGTERM", Setup::Guard, Stop::Terminate);
                add("log, SIGKILL", Setup::Always, Stop::Kill);
            }
            Kind::Redis => {
                add("RDB, SHUTDOWN SAVE", Setup::Guard, Stop::ShutDownSaving);
                add("AOF, SIGTERM", Setup::EverySecond, Stop::Terminate);
            }
        }
    }
    contestants
}

fn restart(options: &Options, contestant: &Contestant<'_>) -> Result<Measured, String> {
    let server = contestant.server;
    let directory = directory::empty(&options.data_dir)?;
    let args = |run| {
        let setup = contestant.setup;
        setup.args(server.kind, directory.path(), run, TTL)
    };
    let running = server.start_with(&args(Run::First))?;
    let load = Load::new("set", 16, TTL);
    let report = load.send(options, &running, options.restart_locks)?;
    report.ok_or("the server lacks SET")?;
    let stop = match contestant.stop {
        Stop::Terminate => running.terminate(PATIENCE)?,
        Stop::ShutDownSaving => running.shut_down_saving(PATIENCE)?,
        Stop::Kill => {
            let started = Instant::now();
            drop(running);
            started.elapsed()
        }
    };
    let bytes = extent(directory.path()).bytes;

    let started = Instant::now();
    let mut running = server.spawn(&args(Run::Later))?;
    running.wait_for_pong(PATIENCE)?;
    let pong = started.elapsed();
    let mut wire = running.wire()?;
    let mut ask = |line: &str| wire.ask(line).map_err(|error| format!("{line}: {error}"));
    let granted = ask("SET the-first-lock token NX PX 30000")?;
    let grant = started.elapsed();
    if granted != "+OK" {
        return Err(format!("the first lock after the start: {granted}"));
    }
    let cpu = machine::cpu_seconds(running.pid());
    let expected = format!(":{}", options.restart_locks + 1);
    let found = ask("DBSIZE")?;
    if found != expected {
        return Err(format!(
            "DBSIZE is {found} after the restart instead of {expected}"
        ));
    }
    Ok(Measured {
        stop: stop.as_secs_f64(),
        bytes: u32::try_from(bytes).map_or(f64::INFINITY, f64::from),
        pong: pong.as_secs_f64(),
        grant: grant.as_secs_f64(),
        cpu,
    })
}

/// No lock ends while it is measured, and a lock node's restart guard carries all of them.
const TTL: &str = "600s";

/// Longer than any server takes to load its locks.
const PATIENCE: Duration = Duration::from_secs(120);
