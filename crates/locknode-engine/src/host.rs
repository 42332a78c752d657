//! What INFO reports that only the surrounding process knows.

use std::fmt::Debug;
use std::time::Duration;

use crate::guard::GuardMode;

/// A source of facts about the process, read when a client requests them, never on the hot path.
pub trait Host: Debug + Send + Sync {
    /// Reads the facts.
    fn facts(&self) -> HostFacts;

    /// Takes a line for the log, about something that an operator did. It must not wait: the caller
    /// holds a part of the lock table.
    fn note(&self, _line: &str) {}

    /// Returns how many file descriptors are open, and how many may be; zeros when unknown. Counting
    /// them takes long where there are many.
    #[cfg(feature = "metrics")]
    fn descriptors(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Fills a buffer with random bytes that nobody can guess, for a password; returns `false` when it
    /// has none.
    #[cfg(feature = "acl")]
    fn fill_random(&self, buffer: &mut [u8]) -> bool {
        let _ = buffer;
        false
    }

    /// Reads the file with the users.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read.
    #[cfg(feature = "acl")]
    fn read_users(&self) -> Result<Vec<u8>, String> {
        Err("this node has no files".to_owned())
    }

    /// Replaces the file with the users, wholly or not at all.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be written.
    #[cfg(feature = "acl")]
    fn write_users(&self, text: &[u8]) -> Result<(), String> {
        let _ = text;
        Err("this node has no files".to_owned())
    }
}

/// Facts about the process; INFO shows each under Redis's name.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct HostFacts {
    /// Operating system, kernel and architecture, as `uname -srm` prints them.
    pub os: String,
    /// The process id.
    pub process_id: u32,
    /// The TCP port of the node; 0 without one.
    pub tcp_port: u16,
    /// The port on which it speaks TLS; 0 without one.
    pub tls_port: u16,
    /// The addresses that the node listens on, separated by spaces, as CONFIG GET bind shows them.
    pub bind: String,
    /// The program's path; empty when unknown.
    pub executable: String,
    /// The configuration file; empty without one.
    pub config_file: String,
    /// Resident memory in bytes; 0 when unknown.
    pub resident_bytes: u64,
    /// Virtual memory in bytes; 0 when unknown.
    pub virtual_bytes: u64,
    /// User CPU time of the process in seconds.
    pub cpu_user_seconds: f64,
    /// System CPU time of the process in seconds.
    pub cpu_system_seconds: f64,
    /// Bytes read from clients.
    pub net_input_bytes: u64,
    /// Bytes written to clients.
    pub net_output_bytes: u64,
    /// The data directory; empty without one.
    pub dir: String,
    /// Syncs of files in the data directory since the start.
    pub disk_syncs: u64,
    /// Bytes of the files in the data directory.
    pub disk_bytes: u64,
    /// How restarts are guarded; the engine fills it in.
    pub(crate) guard: GuardMode,
    /// Locks with a longer TTL are written to the log; the engine fills it in.
    pub(crate) max_ttl: Duration,
}

/// A host without facts, for simulations and tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn facts(&self) -> HostFacts {
        HostFacts::default()
    }
}
