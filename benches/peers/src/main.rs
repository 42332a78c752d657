//! Runs a lock node beside Redis and Valkey servers, interleaved, and prints ratios.
//!
//! Method: the server is pinned to one core and the load generator to another; every round starts every server
//! afresh and every other round goes through them in reverse; a ratio is taken within each round and the median
//! over the rounds is shown with its spread. The main figure is server CPU per operation, from the scheduler's own
//! nanosecond account. The load generator checks every reply; a run with a wrong one is void. A round during which
//! other processes used more than a quarter of a core is void too and repeated.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the table is this program's product"
)]

mod options;
mod run;
mod table;

use std::process::ExitCode;

use locknode_peers::{machine, server};

use crate::options::Options;

fn main() -> ExitCode {
    let result = Options::from_args(std::env::args().skip(1)).and_then(|options| measure(&options));
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
    println!("{}", machine::describe());
    for server in &servers {
        println!("{:<10} {}", server.name, server.version);
    }
    println!(
        "{} rounds, medians of per-round ratios, spread in brackets\n",
        options.rounds
    );
    table::print_header();
    for case in options.cases() {
        let mut rounds = Vec::new();
        let mut voided = 0;
        while rounds.len() < options.rounds {
            match run::round(options, &servers, &case, rounds.len() % 2 == 1)? {
                Some(round) => rounds.push(round),
                None if voided < VOID_MAX => voided += 1,
                None => {
                    return Err(format!(
                        "{VOID_MAX} rounds disturbed by other processes; try when it is quiet"
                    ));
                }
            }
        }
        table::print_case(&case, &servers, &rounds, voided);
    }
    Ok(())
}

/// Disturbed rounds per case after which the machine is too busy to measure on.
const VOID_MAX: usize = 40;
