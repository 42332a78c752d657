//! Runs a lock node beside Redis and Valkey servers, interleaved, and prints ratios.
//!
//! Method: the server is pinned to one core and the load generator to another; every round starts every server
//! afresh and every other round goes through them in reverse; a ratio is taken within each round and the median
//! over the rounds is shown with its spread. The main figure is server CPU per operation, from the scheduler's own
//! nanosecond account; where the disk is part of it, throughput. The load generator checks every reply; a run with a wrong one is void. A round during which
//! other processes used more than a quarter of a core is void too and repeated.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is this program's product"
)]

mod case;
mod cycle;
mod disk;
mod options;
mod restart;
mod run;
mod setup;
mod table;

use std::process::ExitCode;

use locknode_peers::data_directory::DataDirectory;
use locknode_peers::machine;
use locknode_peers::server;

use crate::cycle::{Cycle, Size};
use crate::options::Options;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((first, rest)) if first == run::SEND => send(rest),
        _ => match Options::from_args(args.into_iter()) {
            Ok(Some(options)) => measure(&options),
            Ok(None) => {
                print!("{}", options::HELP);
                Ok(())
            }
            Err(message) => Err(message),
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-peers: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), String> {
    let servers = server::find(&options.locknode, &options.servers)?;
    let cases = case::all(options, &servers);
    let (has_disk, has_restart) = (
        options.selects("disk", "disk"),
        options.selects("restart", "restart"),
    );
    if cases.is_empty() && !has_disk && !has_restart {
        return Err("--only leaves no row; see --help".to_owned());
    }
    println!("{}", machine::describe());
    let keeps = |case: &case::Case<'_>| {
        let mut contestants = case.contestants.iter();
        contestants.any(|contestant| contestant.setup.needs_directory())
    };
    if has_disk || has_restart || cases.iter().any(keeps) {
        describe_disk(options)?;
    }
    for server in &servers {
        println!("{:<10} {}", server.name, server.version);
    }
    println!(
        "{} rounds, medians of per-round ratios, spread in brackets; see --help",
        options.rounds
    );
    if options.is_smoke {
        println!("SMOKE: the figures say nothing");
    }
    if !cases.is_empty() {
        println!();
        table::print_header();
    }
    for case in &cases {
        compare(options, case)?;
    }
    if let Some(ours) = servers.iter().find(|server| server.is_ours() && has_disk) {
        disk::measure(options, ours)?;
    }
    if has_restart {
        restart::measure(options, &servers)?;
    }
    Ok(())
}

fn compare(options: &Options, case: &case::Case<'_>) -> Result<(), String> {
    let mut rounds = Vec::new();
    let mut voided = 0;
    while rounds.len() < case.rounds {
        match run::round(options, case, rounds.len() % 2 == 1)? {
            Some(round) => rounds.push(round),
            None if voided < VOID_MAX => voided += 1,
            None => {
                return Err(format!(
                    "{VOID_MAX} rounds disturbed by other processes; try when it is quiet"
                ));
            }
        }
    }
    table::print_case(case, &rounds, voided);
    Ok(())
}

/// Says what the servers write to, and refuses memory that looks like a disk.
fn describe_disk(options: &Options) -> Result<(), String> {
    let directory = DataDirectory::new(&options.data_dir)
        .map_err(|error| format!("{}: {error}", options.data_dir.display()))?;
    let (kind, device) = machine::file_system(directory.path());
    if kind == "tmpfs" || kind == "ramfs" {
        return Err(format!(
            "{} is on {kind}, which no sync makes durable: give another one with --data-dir",
            options.data_dir.display()
        ));
    }
    let syncs = machine::syncs_per_second(directory.path())
        .map_err(|error| format!("{}: {error}", options.data_dir.display()))?;
    println!("data on {kind} ({device}), {syncs:.0} syncs/s of one page, one after the other");
    Ok(())
}

/// The load generator: label of the cycle, port, connections, pipeline, commands, keys.
fn send(args: &[String]) -> Result<(), String> {
    let [label, port, connections, pipeline, commands, keys] = args else {
        return Err(format!("{} is for this program itself", run::SEND));
    };
    let cycle = Cycle::from_label(label).ok_or("no such cycle")?;
    let size = Size {
        port: options::number(port)?,
        connections: options::number(connections)?,
        pipeline: options::number(pipeline)?,
        commands: options::number(commands)?,
        keys: options::number(keys)?,
    };
    println!("{}", cycle::run(cycle, size)?);
    Ok(())
}

/// Disturbed rounds per case after which the machine is too busy to measure on.
const VOID_MAX: usize = 40;
