//! A lock node that speaks the Redis protocol, as a library to embed.
//!
//! # What it is
//!
//! A server for locks and nothing else: `SET key token NX PX ttl`, release and extend by the holder, with the
//! commands, scripts, errors and connection habits that Redis clients and lock libraries rely on.
//!
//! # What it is not
//!
//! Not a cache and not a database: string values only, nothing is evicted, nothing is replicated.
//!
//! # Example
//!
//! ```
//! use locknode::Node;
//! use tokio::net::TcpListener;
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     println!("redis-cli -p {}", listener.local_addr()?.port());
//!     let shutdown = async { /* tokio::signal::ctrl_c().await.ok(); */ };
//!     Node::builder().first_start(true).build().serve(listener, shutdown).await?;
//!     Ok(())
//! }
//! ```
//!
//! # Guarantees
//!
//! * A key given to one client with NX is given to no other until it is released or its TTL has passed on the node's
//!   monotonic clock, whatever the wall clock does.
//! * A command is executed entirely or not at all, and in the order in which its connection sent it.
//! * Bad input gets an error and changes nothing; a client that does not read costs bounded memory.
//!
//! * After a crash the node stays out of every lock until all that it may have granted has ended; a clean stop
//!   ([`Node::close`]) keeps the locks. See [`NodeBuilder::open`] and `SPEC.md`.
//!
//! What it does not guarantee: anything over the restart of a node that was told the untrue
//! [`first_start`](NodeBuilder::first_start), or runs without its [restart guard](NodeBuilder::restart_guard). Locks with a TTL
//! above [`max_ttl`](NodeBuilder::max_ttl) or none are lost with the disk, unless a
//! [state is required](NodeBuilder::require_state).

mod clock;
mod connection;
mod directory;
mod error;
mod keeper;
mod listener;
mod lobby;
mod machine_identity;
mod node;
mod open_error;
mod process;
mod scope;
mod scratch;
mod shared;
mod sweeper;

pub use clock::{Clock, SystemClock};
pub use directory::{Directory, DirectoryError};
pub use error::ServeError;
pub use listener::{Accepted, Listener};
pub use locknode_engine::durable::{
    Durability, Machine, MachineTime, OpenErrorKind, Reading, StartReason, StoreError,
};
pub use locknode_engine::{
    GuardMode, GuardReport, GuardState, Moment, Options, Peer, Stats, Time, WallTime,
};
pub use node::{Node, NodeBuilder};
pub use open_error::OpenNodeError;

/// The example of the README is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
