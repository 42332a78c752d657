//! The built program, run as a person runs it.
//!
//! * `program`: starting the program and talking to it.
//! * `serve`: a node, its addresses, its signals.
//! * `configuration`: flags, environment, file, and `--print-config`.
//! * `lab`: several nodes in one process.
//! * `status`: looking at nodes that are there and nodes that are not.
//! * `bench`: runs that count and runs that do not.
//! * `manual`: help, completions and man pages.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[cfg(feature = "bench")]
mod bench;
mod configuration;
#[cfg(feature = "lab")]
mod lab;
#[cfg(all(
    feature = "bench",
    feature = "completions",
    feature = "lab",
    feature = "man",
    feature = "status"
))]
mod manual;
mod program;
mod serve;
#[cfg(all(feature = "lab", feature = "status"))]
mod status;
