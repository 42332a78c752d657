//! The core against honest nodes, step by step. What may happen to clients and nodes at any time is played by the failure kit's
//! swarm, which drives the same core.

mod contending;
mod fencing;
mod random;
mod scenes;
mod server;
mod stage;
