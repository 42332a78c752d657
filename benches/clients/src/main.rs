//! Runs Redlock clients beside each other on the same five nodes, interleaved, and prints ratios as Markdown.
//!
//! Method: the nodes are pinned to one core and the client, a process of its own, to another; every client meets
//! fresh nodes and every other round goes through the clients in reverse; a ratio is taken within each round and the
//! median over the rounds is shown with its spread. The main figure is the client's CPU per lock, an
//! acquire and its release, counted until the last reply is in. Every key is fresh; a round with a lock that was
//! not granted or not released is void, and so is one during which other processes used more than a quarter of a
//! core.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the tables are this program's product"
)]

mod client;
mod cluster;
mod contestant;
mod cost;
mod end_to_end;
mod options;
mod run;
mod silence;
mod target;

use std::process::ExitCode;

use clap::Parser as _;
use locknode_peers::machine;

use crate::options::{Options, Table};
use crate::target::Finding;

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match &options.client {
        Some(client) => client.run(),
        None => measure(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-clients: {message}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<(), String> {
    let server = options.server()?;
    let contestants = contestant::find(options)?;
    println!("# Redlock clients on the same five nodes\n");
    println!(
        "* machine: {}; nodes on one core, the client on the other",
        machine::describe()
    );
    println!("* nodes: {}", server.version);
    for contestant in &contestants {
        println!(
            "* `{}`: {}",
            contestant.name,
            contestant.title(options, &server)?
        );
    }
    println!("* {}", options.method());
    let mut findings: Vec<Finding> = Vec::new();
    if options.has(Table::Cost) {
        cost::measure(options, &server, &contestants, &mut findings)?;
    }
    if options.has(Table::Silence) {
        silence::measure(options, &server, &contestants, &mut findings)?;
    }
    if options.has(Table::EndToEnd) {
        end_to_end::measure(options, &contestants, &mut findings)?;
    }
    target::print(&findings);
    Ok(())
}
