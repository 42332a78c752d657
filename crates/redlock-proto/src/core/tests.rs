//! The core against honest nodes: scenes that are told step by step, and worlds in which anything may happen.

mod caller;
mod claims;
mod contending;
mod fences;
mod fencing;
mod random;
mod scenes;
mod seeds;
mod server;
mod stage;
mod world;
