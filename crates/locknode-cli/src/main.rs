//! The `locknode` command: runs lock nodes and looks at them.
//!
//! This crate is glue: it reads the command line, opens sockets, starts threads and prints. What a node does is in
//! the `locknode` library; nothing here decides about a lock.

#[cfg(feature = "bench")]
mod bench;
mod command_line;
#[cfg(feature = "completions")]
mod completions;
mod descriptors;
mod duration;
mod failure;
#[cfg(any(feature = "bench", feature = "status"))]
mod json;
#[cfg(feature = "lab")]
mod lab;
mod listening;
mod log;
#[cfg(feature = "man")]
mod man;
mod output;
mod serve;
#[cfg(any(feature = "bench", feature = "status"))]
mod server_address;
#[cfg(any(feature = "bench", feature = "status"))]
mod server_connection;
#[cfg(any(feature = "bench", feature = "status"))]
mod server_info;
mod serving;
mod size;
#[cfg(feature = "status")]
mod status;

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
