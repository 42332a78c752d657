//! A lock node that speaks the Redis protocol, as a library to embed.
//!
//! # What it is
//!
//! A server that holds locks and does nothing else: `SET key token NX PX ttl`, release and
//! extension by the holder, with the commands, scripts, errors and connection behaviour that Redis
//! clients and lock libraries rely on.
//!
//! # What it is not
//!
//! Not a cache or a database: it stores strings only, evicts nothing and replicates nothing.
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
//! * A key granted to one client with NX is granted to no other until it is released or its TTL has
//!   passed on the node's monotonic clock, whatever the wall clock does.
//! * A command is executed entirely or not at all, and in the order in which its connection sent
//!   it.
//! * Bad input gets an error and changes nothing; a client that does not read costs bounded memory.
//! * After a crash the node refuses locks until every lock that it may have granted has expired; a
//!   clean stop ([`Node::close`]) keeps the locks. See [`NodeBuilder::open`] and `SPEC.md`.
//!
//! It guarantees nothing across a restart if [`first_start`](NodeBuilder::first_start) was set
//! wrongly or the [restart guard](NodeBuilder::restart_guard) is off. Locks without a TTL, or with
//! one above [`max_ttl`](NodeBuilder::max_ttl), are lost with the disk; to refuse such a start,
//! [require a state](NodeBuilder::require_state).
//!
//! # Features
//!
//! * `compat`: Lua 5.1, for scripts other than those of the known lock libraries. It needs a C
//!   compiler. Without it such a script is refused.
//! * `acl`: users with passwords and permissions, and `UsersFile`, where they are kept.
//! * `tls`: `Tls`, for clients that connect over TLS. It needs a C compiler, too.
//! * `metrics`: `Node::metrics`, the node's figures as Prometheus reads them.

mod clock;
mod connection;
mod directory;
mod disk_thread;
mod error;
#[cfg(feature = "hand-over")]
mod hand_over;
mod listener;
mod machine_identity;
#[cfg(feature = "hand-over")]
mod memory_disk;
mod node;
mod node_builder;
mod notes;
mod open_error;
mod process;
mod scope;
mod scratch;
mod shared;
mod sweeper;
mod sync_waiters;
#[cfg(feature = "tls")]
mod tls;
#[cfg(feature = "tls")]
mod tls_listener;
mod upcoming;
#[cfg(feature = "acl")]
mod users_file;

pub use clock::{Clock, SystemClock};
pub use directory::{Directory, DirectoryError};
pub use error::ServeError;
#[cfg(feature = "hand-over")]
pub use hand_over::{CarriedConnection, Legacy, Resumed, Resuming};
pub use listener::{Accepted, Listener};
#[cfg(feature = "tls")]
pub use locknode_engine::TlsClients;
pub use locknode_engine::durable::{
    Durability, Machine, MachineTime, OpenErrorKind, Reading, StartReason, StoreError,
};
pub use locknode_engine::{
    ConfigOption, GuardMode, GuardReport, GuardState, LogLevel, Moment, Options, Peer, Stats, Time,
    WallTime,
};
#[cfg(feature = "metrics")]
pub use locknode_engine::{METRICS, Metric, MetricKind};
pub use node::Node;
pub use node_builder::NodeBuilder;
pub use open_error::OpenNodeError;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError};
#[cfg(feature = "tls")]
pub use tls_listener::{TlsListener, TlsStream};
#[cfg(feature = "acl")]
pub use users_file::{UsersFile, UsersFileError};

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
