//! The machine: what it is, and who else is using it.

use std::fs;
use std::io::{self, Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Watches who uses the processors: some processes, this one's children, and others.
#[derive(Debug)]
pub struct Watch {
    started: Instant,
    pids: Vec<u32>,
    cpu_seconds: f64,
    children_seconds: f64,
    busy_seconds: f64,
}

impl Watch {
    /// Watches these processes from now on.
    #[must_use]
    pub fn start(pids: Vec<u32>) -> Self {
        Self {
            started: Instant::now(),
            cpu_seconds: pids.iter().copied().map(cpu_seconds).sum(),
            children_seconds: children_cpu_seconds(),
            busy_seconds: busy_seconds(),
            pids,
        }
    }

    /// Seconds until now.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// CPU time of the processes until now.
    #[must_use]
    pub fn cpu_seconds(&self) -> f64 {
        let now: f64 = self.pids.iter().copied().map(cpu_seconds).sum();
        now - self.cpu_seconds
    }

    /// The share of a core that others used: neither these processes nor children that have ended.
    #[must_use]
    pub fn others(&self) -> f64 {
        let children = children_cpu_seconds() - self.children_seconds;
        let busy = busy_seconds() - self.busy_seconds;
        (busy - self.cpu_seconds() - children) / self.seconds()
    }
}

/// Busy time of all processors in seconds since boot.
fn busy_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let seconds = seconds(stat.lines().next().unwrap_or_default());
    // user + nice + system + steal. Interrupts are left out: they are the network's share of the very load measured, and
    // kernels differ in whether they count them as time of the process that was interrupted.
    [1, 2, 3, 8].iter().filter_map(|&i| seconds.get(i)).sum()
}

/// The fields of a line that the kernel counts in ticks, in seconds.
fn seconds(line: &str) -> Vec<f64> {
    let fields = line.split_whitespace();
    let ticks = fields.map(|field| field.parse().unwrap_or(0.0));
    ticks.map(|ticks: f64| ticks / TICKS_PER_SECOND).collect()
}

/// Two neighbouring times of a process in seconds, by the place of the first behind the program's name.
fn times_at(pid: &str, place: usize) -> (f64, f64) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let seconds = seconds(stat.rsplit_once(')').map_or("", |(_, rest)| rest));
    let at = |place: usize| seconds.get(place).copied().unwrap_or(0.0);
    (at(place), at(place + 1))
}

/// CPU time of a process in seconds, all threads, from the scheduler's nanosecond account.
#[must_use]
pub fn cpu_seconds(pid: u32) -> f64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let nanos: f64 = tasks
        .filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .sum();
    nanos / 1e9
}

/// User and system time of a process in seconds, in hundredths.
#[must_use]
pub fn user_and_system_seconds(pid: u32) -> (f64, f64) {
    times_at(&pid.to_string(), 11)
}

/// CPU time in seconds of this process's children that have ended.
fn children_cpu_seconds() -> f64 {
    let (user, system) = times_at("self", 13);
    user + system
}

/// Resident bytes of a process.
#[must_use]
pub fn resident_bytes(pid: u32) -> f64 {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let pages = statm.split_whitespace().nth(1);
    let pages: Option<f64> = pages.and_then(|pages| pages.parse().ok());
    pages.unwrap_or(0.0) * 4096.0
}

/// The machine in one line.
#[must_use]
pub fn describe() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models = cpuinfo
        .lines()
        .filter(|line| line.starts_with("model name"));
    let models = models.filter_map(|line| Some(line.split_once(':')?.1.trim()));
    let models: Vec<&str> = models.collect();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{} x {}, Linux {}, loopback TCP",
        models.len(),
        models.first().unwrap_or(&"unknown"),
        kernel.trim()
    )
}

/// The type of the file system that holds `path`, and its device; empty when the system does not tell.
#[must_use]
pub fn file_system(path: &Path) -> (String, String) {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    // Of mounts on the same place the last one is seen.
    let holder = mounts
        .lines()
        .filter_map(|line| {
            let (before, after) = line.split_once(" - ")?;
            let place = before.split(' ').nth(4)?;
            path.starts_with(place).then_some((place.len(), after))
        })
        .max_by_key(|(len, _)| *len);
    let mut words = holder.map_or("", |(_, after)| after).split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    (word(), word())
}

/// How often a second a page of a file that has its full length can be written and synced, one after the other.
///
/// # Errors
///
/// When there can be no file in `directory`.
pub fn syncs_per_second(directory: &Path) -> io::Result<f64> {
    let path = directory.join("probe");
    let mut file = fs::File::create(&path)?;
    file.write_all(&[0; 4096])?;
    file.sync_all()?;
    let started = Instant::now();
    let mut syncs = 0_u32;
    while started.elapsed() < SYNC_PROBE {
        file.rewind()?;
        file.write_all(&[1; 4096])?;
        file.sync_data()?;
        syncs += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    fs::remove_file(&path)?;
    Ok(f64::from(syncs) / seconds)
}

/// Long enough for hundreds of syncs of a slow disk.
const SYNC_PROBE: Duration = Duration::from_millis(500);

const TICKS_PER_SECOND: f64 = 100.0;
