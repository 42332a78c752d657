//! The `locknode` command: runs lock nodes and looks at them.
//!
//! This crate is glue: it reads the command line, opens sockets, starts threads and prints. What a node does is in
//! the `locknode` library, what a client of a cluster does in `redlock-client`. The one decision made here is when
//! `locknode run` ends its command, in `run::timeline`.

#![cfg_attr(
    not(feature = "default"),
    allow(
        dead_code,
        reason = "what only some commands need is there in every build"
    )
)]

#[cfg(any(feature = "lock", feature = "run"))]
mod acquisition;
#[cfg(feature = "bench")]
mod bench;
#[cfg(any(feature = "lock", feature = "run"))]
mod cluster;
mod command_line;
#[cfg(feature = "completions")]
mod completions;
#[cfg(any(
    feature = "bench",
    feature = "lock",
    feature = "run",
    feature = "status"
))]
mod connect_flags;
mod descriptors;
#[cfg(feature = "status")]
mod doctor;
mod duration;
mod failure;
mod figures;
#[cfg(any(feature = "lab", feature = "sim"))]
mod history_file;
mod json;
#[cfg(feature = "lab")]
mod lab;
#[cfg(any(feature = "lock", feature = "run"))]
mod lines;
mod listening;
#[cfg(feature = "lock")]
mod lock;
mod log;
#[cfg(feature = "man")]
mod man;
mod output;
mod pulse;
#[cfg(feature = "run")]
mod run;
#[cfg(any(feature = "lab", feature = "sim"))]
mod scenario_file;
mod serve;
#[cfg(any(feature = "bench", feature = "status"))]
mod server_address;
#[cfg(any(feature = "bench", feature = "status"))]
mod server_connection;
#[cfg(any(feature = "bench", feature = "status"))]
mod server_info;
mod serving;
#[cfg(any(feature = "lock", feature = "run"))]
mod signals;
#[cfg(feature = "sim")]
mod sim;
mod size;
#[cfg(feature = "status")]
mod status;
#[cfg(any(
    feature = "bench",
    feature = "lock",
    feature = "run",
    feature = "status"
))]
mod tls_flags;

use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match command_line::run(std::env::args_os().collect()) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            let message = failure.to_string();
            if !message.is_empty() {
                let _ = writeln!(std::io::stderr(), "locknode: {message}");
            }
            failure.exit().into()
        }
    }
}
