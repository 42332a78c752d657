//! Runs a lock node beside Redis and Valkey servers, interleaved, and prints ratios.
//!
//! Method: the server is pinned to one core and the load generator to another; every round starts every server
//! afresh and every other round goes through them in reverse; a ratio is taken within each round and the median
//! over the rounds is shown with its spread. The main figure is server CPU per operation, from the scheduler's own
//! nanosecond account; where the disk is part of it, throughput. The load is `locknode bench`, which checks every
//! reply; a run with a wrong one is void. A round during which other processes used more than a quarter of a core is
//! void too and repeated.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is this program's product"
)]

mod case;
mod disk;
mod load;
mod options;
mod restart;
mod table;

use std::process::ExitCode;

use clap::Parser as _;
use locknode_peers::server::{Kind, Server};
use locknode_peers::{directory, machine, server};

use crate::options::Options;

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-peers: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), String> {
    let servers = server::find(&options.locknode, &options.servers)?;
    let floor = Server::probe(case::FLOOR, &options.floor, Kind::Redis).ok_or_else(|| {
        format!(
            "{} does not run; build it with cargo build --release -p locknode-peers",
            options.floor
        )
    })?;
    let cases = case::all(options, &servers, &floor);
    let (has_disk, has_restart) = (
        options.selects("disk", "disk"),
        options.selects("restart", "restart"),
    );
    if cases.is_empty() && !has_disk && !has_restart {
        return Err("--only leaves no row; see --help".to_owned());
    }
    println!("{}", machine::describe());
    let mut contestants = cases.iter().flat_map(|case| &case.contestants);
    if has_disk || has_restart || contestants.any(|it| it.setup.needs_directory()) {
        describe_disk(options)?;
    }
    for server in servers.iter().chain([&floor]) {
        println!("{:<10} {}", server.name, server.version);
    }
    println!(
        "{} rounds, medians of per-round ratios, spread in brackets; see --help",
        options.rounds
    );
    if options.smoke {
        println!("SMOKE: the figures say nothing");
    }
    if !cases.is_empty() {
        println!();
        table::print_header();
    }
    for case in cases {
        case.measure(options)?;
    }
    if let Some(ours) = servers.iter().find(|server| server.is_ours() && has_disk) {
        disk::measure(options, ours)?;
    }
    if has_restart {
        restart::measure(options, &servers)?;
    }
    Ok(())
}

/// Says what the servers write to, and refuses memory that looks like a disk.
fn describe_disk(options: &Options) -> Result<(), String> {
    let place = options.data_dir.display();
    let directory = directory::empty(&options.data_dir)?;
    let (kind, device) = machine::file_system(directory.path());
    if kind == "tmpfs" || kind == "ramfs" {
        return Err(format!(
            "{place} is on {kind}, which no sync makes durable: give another one with --data-dir"
        ));
    }
    let syncs = machine::syncs_per_second(directory.path());
    let syncs = syncs.map_err(|error| format!("{place}: {error}"))?;
    println!("data on {kind} ({device}), {syncs:.0} syncs/s of one page, one after the other");
    Ok(())
}
