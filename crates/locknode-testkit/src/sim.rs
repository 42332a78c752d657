//! The simulator: worlds of nodes and clients in one thread, without sockets and without real time.

mod backlog;
mod batch;
mod buffers;
mod by_number;
mod caller;
mod client;
mod clocks;
mod conduct;
mod event;
mod faulting;
mod hash_lock;
mod judging;
mod link;
mod node;
mod notice;
mod observing;
mod oracle;
mod plain;
mod player;
mod queue;
mod recorder;
mod reference;
mod serving;
mod stopping;
mod trying;
mod world;

pub(crate) use caller::GIVEN_UP;
#[cfg(feature = "cluster")]
pub(crate) use clocks::{Clocks, Rule};
pub(crate) use player::timeout;
#[cfg(feature = "cluster")]
pub(crate) use player::word;
pub use recorder::{Counters, Recording};
#[cfg(feature = "cluster")]
pub(crate) use serving::reason_word;
pub use world::World;
