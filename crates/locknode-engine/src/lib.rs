//! A lock node as a pure state machine: the lock table, expiry, the commands and the scripts.
//!
//! This crate has no sockets, threads, clocks or randomness. A driver (the tokio server in
//! `locknode`, a simulator, a test) passes in requests and the time, and sends on the reply bytes.
//!
//! ```
//! use locknode_engine::{Engine, EngineConfig, Moment, Peer, Time};
//!
//! let now = Moment::default();
//! let engine = Engine::new(EngineConfig::new(7, "run"), now);
//! let mut session = engine.connect(Peer::default(), now.time).expect("room for a client");
//!
//! let mut out = Vec::new();
//! let mut batch = engine.batch(now);
//! batch.execute(&mut session, &[b"SET", b"invoice:7", b"token-a", b"NX", b"PX", b"30000"], &mut out);
//! batch.execute(&mut session, &[b"SET", b"invoice:7", b"token-b", b"NX", b"PX", b"30000"], &mut out);
//! // Without a restart guard the replies may be sent at once.
//! assert!(batch.finish(&session, 2).is_none());
//! assert_eq!(out, b"+OK\r\n$-1\r\n");
//!
//! // One tick after the TTL the lock is gone, swept or not.
//! let later = Moment { time: Time::from_millis(30_001), ..now };
//! out.clear();
//! engine.batch(later).execute(&mut session, &[b"EXISTS", b"invoice:7"], &mut out);
//! assert_eq!(out, b":0\r\n");
//! ```

mod byte_size;
#[cfg(feature = "hand-over")]
mod carried;
#[cfg(feature = "compat")]
mod channels;
mod client;
mod client_user;
mod command;
mod command_id;
mod counters;
#[cfg(feature = "compat")]
mod delivery;
pub mod durable;
mod engine;
mod entry;
#[cfg(feature = "compat")]
mod event_classes;
mod fence;
#[cfg(feature = "acl")]
mod file_task;
mod flags;
mod glob;
mod guard;
#[cfg(feature = "metrics")]
mod histogram;
mod holds;
mod host;
#[cfg(feature = "compat")]
mod invalidation;
mod key_change;
mod key_hash;
mod keyspace;
mod label;
mod log_level;
mod logins;
#[cfg(feature = "compat")]
mod mailbox;
#[cfg(feature = "compat")]
mod message;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "compat")]
mod monitors;
#[cfg(feature = "compat")]
mod notifications;
mod observers;
mod options;
mod output_limit;
mod pause;
mod ran;
mod reports;
#[cfg(feature = "metrics")]
mod sampler;
mod script;
mod scripts;
mod search;
mod services;
mod session;
mod settings;
mod shard;
mod slab;
#[cfg(feature = "compat")]
mod subscriptions;
#[cfg_attr(not(feature = "metrics"), path = "no_tally.rs")]
mod tally;
mod time;
#[cfg_attr(not(feature = "metrics"), path = "no_timings.rs")]
mod timings;
#[cfg(feature = "tls")]
mod tls_clients;
#[cfg(feature = "compat")]
mod tracking;
#[cfg_attr(not(feature = "compat"), path = "no_transaction.rs")]
mod transaction;
mod turns;
#[cfg_attr(not(feature = "acl"), path = "no_users.rs")]
mod users;
#[cfg_attr(not(feature = "compat"), path = "no_values.rs")]
mod values;
mod version;
#[cfg(feature = "compat")]
mod waiters;
#[cfg(feature = "compat")]
mod wake_queue;
#[cfg(feature = "compat")]
mod watches;

#[cfg(feature = "hand-over")]
pub use carried::CarriedSession;
pub use client::{Client, Peer};
pub use command::Flow;
pub use engine::{Batch, Engine, EngineConfig, LockTable, Stats};
#[cfg(feature = "compat")]
pub use event_classes::EventClasses;
pub use guard::{Guard, GuardConfig, GuardMode, GuardReport, GuardState, Need};
pub use host::{Host, HostFacts, NoHost};
pub use key_hash::DATABASES;
pub use keyspace::TableSizes;
pub use log_level::LogLevel;
#[cfg(feature = "metrics")]
pub use metrics::{METRICS, Metric, MetricKind};
pub use options::{ConfigOption, Options};
pub use output_limit::{OutputLimits, PubsubLimit};
pub use script::StartThread;
pub use session::Session;
pub use shard::{LOOK_AHEAD_MAX, Swept};
pub use time::{Deadline, Moment, Time, WallTime};
#[cfg(feature = "tls")]
pub use tls_clients::TlsClients;
#[cfg(feature = "acl")]
pub use users::{UserList, UserListError};
