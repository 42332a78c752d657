//! What the integration tests share: nodes on free ports or in-memory streams, honest and fake ones, clusters of them, a
//! clock that tests step, raw bytes.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what fails here fails a test, and tests say what they skip"
)]

pub mod certificates;
pub mod cluster;
mod conversation;
pub mod fake_node;
mod loopback;
mod manual_clock;
pub mod patience;
mod redis_server;
mod stored_node;
mod wire;

pub use conversation::Conversation;
pub use locknode_testkit::faulty_disk;
pub use locknode_testkit::faulty_disk::FaultyDisk;
pub use loopback::LoopbackPort;
pub use manual_clock::ManualClock;
pub use redis_server::RedisServer;
pub use stored_node::{Answer, NodeSettings, StoredNode, Ticket};
pub use wire::{Wire, serve_tcp};
