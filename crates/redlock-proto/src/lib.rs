//! The Redlock client as a state machine.
//!
//! [`Core`] is the whole client without sockets, clock or randomness. `redlock-client` drives it with
//! tokio, the simulator of `locknode-testkit` with simulated time. [`round`] only counts votes. Programs
//! that need a lock use `redlock-client`; this interface may change with every release.
//!
//! ```text
//!   acquire, extend, release, ...       received(node, bytes)   connected(node)   disconnected(node)   on_time
//!   ----------------+------------       ---------------------------------+----------------------------------
//!                   v                                                    v
//!            +---------------------------------------------------------------------+
//!            |  operations: rounds, retries, renewal   |   links: order of replies |
//!            +---------------------------------------------------------------------+
//!                   |                                                    |
//!                   v                                                    v
//!   poll_notice: acquired, lost, connect(node), ...          output(node): bytes to write
//! ```
//!
//! A driver reads the clock, calls the core, delivers the notices, and only then writes the bytes of
//! [`output`](Core::output). So a holder learns of a shortened validity before any node can act on it.
//! A core is `Clone`, and two clones given the same events do the same.

mod argument_error;
mod cause;
mod core;
mod drift;
mod entropy;
mod error_kind;
mod fencing_token;
mod policy;
mod quorum;
pub mod round;
mod time;
mod token;

pub use crate::argument_error::ArgumentError;
pub use crate::cause::{Cause, Unreachable};
pub use crate::core::{
    Core, CoreConfig, Dialect, LockTerms, Login, Look, Notice, OpId, ServerInfo,
};
pub use crate::drift::Drift;
pub use crate::entropy::Entropy;
pub use crate::error_kind::ErrorKind;
pub use crate::fencing_token::FencingToken;
pub use crate::policy::{RenewPolicy, RetryPolicy};
pub use crate::quorum::{NODES_MAX, NodeId, NodeSet, Quorum};
pub use crate::time::Time;
pub use crate::token::{TOKEN_LEN_MAX, TOKEN_RANDOM_BYTES, Token};
