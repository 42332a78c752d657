//! What a node keeps across a restart: the state file, the log of long locks, the snapshot of a
//! clean stop.
//!
//! ```text
//!  commands --> Guard --Work--> Store --write, sync--> Disk
//!      ^                          |
//!      +------ Durable <----------+      replies are sent once what they depend on is durable
//! ```
//!
//! Everything here is pure: the disk is a trait, and time is an argument. The server runs a
//! [`Store`] over a real directory on a thread of its own; tests and simulators run the same store
//! over a disk that loses, tears and refuses writes. `SPEC.md` defines the bytes and the rules;
//! marks such as `[F3]` name its requirements.

mod compaction;
mod disk;
mod frame;
mod log;
mod machine;
mod open_error;
mod opening;
mod record;
mod recovery;
mod replay;
mod snapshot;
mod start;
mod start_reason;
mod state_file;
mod store;
mod store_error;
mod verdict;
mod volume;
mod work;

pub use disk::Disk;
pub use machine::{Machine, MachineTime, Reading};
pub use open_error::{OpenError, OpenErrorKind};
pub use record::{LockRecord, Record};
pub use start::{Locks, Start};
pub use start_reason::StartReason;
pub use store::{Store, StoreFigures, StoreSettings, StoreSizes};
pub use store_error::StoreError;
pub use work::{Durability, Durable, Table, Which, Work};
