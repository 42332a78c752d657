//! What INFO reports about the process, read from the operating system on request.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use locknode_engine::{Host, HostFacts};

use crate::disk_thread::DiskStatus;
use crate::notes::Notes;
use crate::sync_waiters::lock;
#[cfg(feature = "acl")]
use crate::users_file;

/// This process, as one node sees it.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) disk_status: Arc<DiskStatus>,
    pub(crate) notes: Arc<Notes>,
    pub(crate) config_file: String,
    pub(crate) directory: PathBuf,
    /// Empty without one.
    #[cfg(feature = "acl")]
    pub(crate) users_file: PathBuf,
}

/// The bytes received and sent, and the addresses the node listens on.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    tcp_port: AtomicU16,
    tls_port: AtomicU16,
    bind: Mutex<Vec<IpAddr>>,
}

impl Host for Process {
    fn facts(&self) -> HostFacts {
        let mut facts = HostFacts::default();
        facts.process_id = std::process::id();
        facts.tcp_port = self.traffic.tcp_port.load(Ordering::Relaxed);
        facts.tls_port = self.traffic.tls_port.load(Ordering::Relaxed);
        facts.bind = self.traffic.bind();
        facts.executable = std::env::current_exe()
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        facts.config_file.clone_from(&self.config_file);
        facts.net_input_bytes = self.traffic.input_bytes.load(Ordering::Relaxed);
        facts.net_output_bytes = self.traffic.output_bytes.load(Ordering::Relaxed);
        facts.dir = self.directory.display().to_string();
        (facts.disk_syncs, facts.disk_bytes) = self.disk_status.figures();
        facts.os = operating_system();
        (facts.virtual_bytes, facts.resident_bytes) = memory_bytes().unwrap_or_default();
        (facts.cpu_user_seconds, facts.cpu_system_seconds) = cpu_seconds().unwrap_or_default();
        facts
    }

    fn note(&self, line: &str) {
        self.notes.add(line);
    }

    #[cfg(feature = "metrics")]
    fn descriptors(&self) -> (u64, u64) {
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        (open as u64, descriptors_max().unwrap_or(0))
    }

    #[cfg(feature = "acl")]
    fn fill_random(&self, buffer: &mut [u8]) -> bool {
        rand::fill(buffer);
        true
    }

    #[cfg(feature = "acl")]
    fn read_users(&self) -> Result<Vec<u8>, String> {
        users_file::read(&self.users_file).map_err(|error| error.to_string())
    }

    #[cfg(feature = "acl")]
    fn write_users(&self, text: &[u8]) -> Result<(), String> {
        users_file::replace(&self.users_file, text).map_err(|error| error.to_string())
    }
}

impl Traffic {
    /// Counts a batch. These are statistics only: with several threads an addition may be lost.
    #[inline]
    pub(crate) fn note(&self, input: usize, output: usize) {
        for (counter, bytes) in [(&self.input_bytes, input), (&self.output_bytes, output)] {
            counter.store(
                counter.load(Ordering::Relaxed).wrapping_add(bytes as u64),
                Ordering::Relaxed,
            );
        }
    }

    /// Adds an address that the node listens on; INFO reports the port of the last one.
    pub(crate) fn listens_on(&self, address: SocketAddr) {
        self.tcp_port.store(address.port(), Ordering::Relaxed);
        self.binds(address);
    }

    /// The same for an address on which it speaks TLS.
    #[cfg(feature = "tls")]
    pub(crate) fn listens_with_tls_on(&self, address: SocketAddr) {
        self.tls_port.store(address.port(), Ordering::Relaxed);
        self.binds(address);
    }

    fn binds(&self, address: SocketAddr) {
        let mut bind = lock(&self.bind);
        if !bind.contains(&address.ip()) {
            bind.push(address.ip());
        }
    }

    /// The addresses, separated by spaces.
    fn bind(&self) -> String {
        let bind = lock(&self.bind);
        let bind: Vec<String> = bind.iter().map(IpAddr::to_string).collect();
        bind.join(" ")
    }
}

fn operating_system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let os = match std::env::consts::OS {
        "linux" => "Linux",
        other => other,
    };
    format!("{os} {} {}", release.trim(), std::env::consts::ARCH)
}

/// Returns virtual and resident memory.
fn memory_bytes() -> Option<(u64, u64)> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut fields = statm.split_whitespace();
    let mut bytes = || Some(fields.next()?.parse::<u64>().ok()? * PAGE_BYTES);
    Some((bytes()?, bytes()?))
}

#[cfg(feature = "metrics")]
fn descriptors_max() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Reads user and system time from `/proc/self/stat`, whose fields follow the program's name, which
/// may contain spaces.
fn cpu_seconds() -> Option<(f64, f64)> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut seconds = || {
        let ticks: u32 = fields.next()?.parse().ok()?;
        Some(f64::from(ticks) / TICKS_PER_SECOND)
    };
    Some((seconds()?, seconds()?))
}

/// Linux reports `statm` in pages: 4 KiB on every supported platform.
const PAGE_BYTES: u64 = 4096;

/// Linux reports CPU times in hundredths of a second on every platform.
const TICKS_PER_SECOND: f64 = 100.0;
