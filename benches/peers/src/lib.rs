//! What every comparison of servers and clients needs: the machine, the servers, and medians.
//!
//! The program beside this library compares servers; `locknode-client-bench` compares clients with the same means.

pub mod data_directory;
pub mod machine;
pub mod server;
pub mod statistics;
pub mod wire;
