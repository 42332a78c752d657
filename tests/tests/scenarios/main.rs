//! The catalogue of failures, one test for each row: a script that leads into the danger, and what has to come of it.
//!
//! Every script is data: it is written, read again and played by the simulator, so each can be kept as a file. A script that
//! is safe proves nothing if it never comes near the danger; so wherever there is a mistake to plant, the same script is
//! played with it, and has to break. `SCENARIOS.md` is the list.

#![cfg(test)]

mod client;
mod clocks;
mod cluster;
mod crash;
mod disk;
mod extend_release;
mod fencing;
mod hashes;
mod listing;
mod liveness;
mod outcome;
mod pictures;
mod script;
mod stop;
