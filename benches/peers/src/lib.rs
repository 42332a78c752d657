//! What every comparison of servers and clients needs: the machine, the servers, rounds and medians.
//!
//! The program beside this library compares servers; `locknode-client-bench` compares clients with the same means.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "rounds that do not count are reported"
)]

pub mod directory;
pub mod machine;
pub mod rounds;
pub mod server;
pub mod setup;
pub mod statistics;
pub mod wire;

/// Reads `NAME=VALUE` on a command line.
///
/// # Errors
///
/// A reason for a person.
pub fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("takes NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
