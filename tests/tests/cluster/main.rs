//! The cluster of real servers, over streams in memory under paused time and over loopback sockets: every method and
//! every fault is seen to have its effect.
//!
//! * `nodes`: starting, crashing, stopping, restarting, disks.
//! * `links`: cuts, delays, losses, and the rest of what happens between clients and nodes.
//! * `clocks`: the clocks of nodes and clients.
//! * `limits`: what is refused, and what is bounded.
//! * `stories`: our client through it all; the restart that forgets; a scenario file.
//! * `documents`: the Rust that README and docs/ show.
//! * `tools`: commands of the owner, histories.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what goes wrong in here is a test that fails"
)]

#[macro_use]
mod wire;

mod clocks;
mod documents;
mod limits;
mod links;
mod nodes;
mod stories;
mod tools;
