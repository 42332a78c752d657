//! The process of a server, and what CPU time it takes, as Linux reports them in /proc. Elsewhere no process is found.
//!
//! A server reports its process id in INFO. A process with that id on this machine need not be the server: that may run in
//! a container, or behind a tunnel. So the process must own a listening socket of the server's port; where another
//! user's sockets cannot be seen, it must have started when the server says that it did.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::iter::Sum;
use std::path::Path;
use std::time::Duration;

use redlock_client::Endpoint;

use crate::server_address::ServerAddress;
use crate::server_info::ServerInfo;

/// A process of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    id: u32,
    /// Ticks from the system's start to its own: a later process may have the same id.
    start_ticks: u64,
}

/// CPU time in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CpuTime {
    /// All of it.
    pub(super) all: f64,
    /// How it divides, in hundredths: the process itself, and the kernel for it.
    pub(super) user: f64,
    pub(super) system: f64,
}

/// The numbers of /proc/PID/stat that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    user_ticks: u64,
    system_ticks: u64,
    start_ticks: u64,
}

impl Process {
    /// This process.
    pub(super) fn own() -> Option<Self> {
        Self::of(std::process::id())
    }

    fn of(id: u32) -> Option<Self> {
        let start_ticks = Stat::of(id)?.start_ticks;
        Some(Self { id, start_ticks })
    }

    /// The process of a server that gave this INFO.
    ///
    /// # Errors
    ///
    /// Why there is no process whose CPU time would be the server's.
    pub(super) fn of_server(info: &ServerInfo, address: &ServerAddress) -> Result<Self, String> {
        let id = info.text("process_id").and_then(|id| id.parse().ok());
        let id: u32 = id.ok_or("it does not give its process id by INFO")?;
        let process = Self::of(id).ok_or_else(|| {
            format!("this machine has no process {id}: the server runs elsewhere or in a container")
        })?;
        let is_server = match sockets(id) {
            Ok(own) => !own.is_disjoint(&listening(address.node.endpoint())),
            Err(_) => info
                .text("uptime_in_seconds")
                .and_then(|uptime| uptime.parse().ok())
                .is_some_and(|uptime| process.is_as_old_as(uptime)),
        };
        if is_server {
            return Ok(process);
        }
        Err(format!(
            "process {id} of this machine is not the server: it runs elsewhere or in a container"
        ))
    }

    /// The CPU time until now, of all threads; `None` once the process has ended.
    pub(super) fn cpu(&self) -> Option<CpuTime> {
        let stat = Stat::of(self.id).filter(|stat| stat.start_ticks == self.start_ticks)?;
        let (user, system) = (seconds(stat.user_ticks), seconds(stat.system_ticks));
        Some(CpuTime {
            all: scheduled_seconds(self.id).unwrap_or(user + system),
            user,
            system,
        })
    }

    /// The processors that it may run on, as Linux writes them: `0-3,6`.
    pub(super) fn cores(&self) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id)).ok()?;
        let cores = (status.lines()).find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some(cores.trim().to_owned())
    }

    fn is_as_old_as(&self, uptime_seconds: f64) -> bool {
        let age = self.age_seconds();
        age.is_some_and(|age| (age - uptime_seconds).abs() <= START_SECONDS_MAX)
    }

    fn age_seconds(&self) -> Option<f64> {
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let system_seconds: f64 = uptime.split_whitespace().next()?.parse().ok()?;
        Some(system_seconds - seconds(self.start_ticks))
    }
}

impl CpuTime {
    /// What passed since `earlier`.
    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            all: self.all - earlier.all,
            user: self.user - earlier.user,
            system: self.system - earlier.system,
        }
    }

    /// Which part of it the process spent outside of the kernel, 0 to 1; `None` when that was too short to be seen.
    pub(super) fn user_share(self) -> Option<f64> {
        let both = self.user + self.system;
        (both > 0.0).then(|| self.user / both)
    }
}

impl Sum for CpuTime {
    fn sum<I: Iterator<Item = Self>>(times: I) -> Self {
        times.fold(Self::default(), |sum, time| Self {
            all: sum.all + time.all,
            user: sum.user + time.user,
            system: sum.system + time.system,
        })
    }
}

impl Stat {
    fn of(id: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        // The program's name is in brackets and may have brackets and spaces in it.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse().ok();
        Some(Self {
            user_ticks: number(11)?,
            system_ticks: number(12)?,
            start_ticks: number(19)?,
        })
    }
}

/// CPU time of the threads of a process, from the scheduler's account in nanoseconds; `None` where the kernel keeps none.
fn scheduled_seconds(id: u32) -> Option<f64> {
    let mut nanos: u64 = 0;
    for thread in fs::read_dir(format!("/proc/{id}/task")).ok()? {
        let account = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        nanos += account.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(Duration::from_nanos(nanos).as_secs_f64())
}

/// CPU time that everything on this machine took since its start, but for interrupts: kernels differ in whether they
/// count those for the process that was interrupted.
pub(super) fn machine_cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> = (stat.lines().next()?.split_whitespace().skip(1))
        .map_while(|field| field.parse().ok())
        .collect();
    // user, nice, system, steal
    let busy = [0, 1, 2, 7].iter().filter_map(|&index| ticks.get(index));
    Some(seconds(busy.sum()))
}

/// The machine in a few words, as far as it is known.
pub(super) fn describe_machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let names: Vec<&str> = (info.lines())
        .filter(|line| line.starts_with("model name"))
        .filter_map(|line| Some(line.split_once(':')?.1.trim()))
        .collect();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let name = names.first().copied().unwrap_or("unknown processors");
    format!("{} x {name}, Linux {}", names.len().max(1), kernel.trim())
}

/// The processors of a list such as `0-3,6`.
pub(super) fn core_numbers(list: &str) -> BTreeSet<u32> {
    let ranges = list.split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?)
    });
    ranges.flat_map(|range| range.take(CORES_MAX)).collect()
}

/// The sockets of a process, by inode.
fn sockets(id: u32) -> io::Result<BTreeSet<u64>> {
    let mut inodes = BTreeSet::new();
    for entry in fs::read_dir(format!("/proc/{id}/fd"))? {
        // A descriptor may be closed meanwhile.
        let Ok(target) = fs::read_link(entry?.path()) else {
            continue;
        };
        let name = target.to_string_lossy();
        let inode = name
            .strip_prefix("socket:[")
            .and_then(|name| name.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u64>().ok()));
    }
    Ok(inodes)
}

/// The sockets of this machine that listen on the endpoint's port, or at its path.
fn listening(endpoint: &Endpoint) -> BTreeSet<u64> {
    match endpoint {
        Endpoint::Tcp { port, .. } => {
            let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
            let tables = tables.into_iter().flatten();
            tables
                .flat_map(|table| tcp_listening(&table, *port))
                .collect()
        }
        Endpoint::Unix(path) => {
            let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
            unix_listening(&table, path).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn tcp_listening(table: &str, port: u16) -> Vec<u64> {
    let rows = table.lines().skip(1).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let is_it = *fields.get(3)? == "0A" && u16::from_str_radix(local_port, 16) == Ok(port);
        is_it.then(|| fields.get(9)?.parse().ok()).flatten()
    });
    rows.collect()
}

/// By the file's name, for the server may have been given another path to it.
fn unix_listening<'t>(table: &'t str, path: &'t Path) -> impl Iterator<Item = u64> + 't {
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let inode = fields.nth(6)?.parse().ok()?;
        let name = Path::new(fields.next()?).file_name();
        (name == path.file_name()).then_some(inode)
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a machine does not run for 2^53 ticks"
)]
fn seconds(ticks: u64) -> f64 {
    ticks as f64 / TICKS_PER_SECOND as f64
}

/// Linux reports times to programs in hundredths of a second, whatever its own clock is.
const TICKS_PER_SECOND: u64 = 100;

/// A server counts whole seconds, some of them only from when its data is loaded. Two processes of the same number on
/// two machines rarely start as close to each other.
const START_SECONDS_MAX: f64 = 3.0;

/// More processors than any machine has: a list that names more is damaged.
const CORES_MAX: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_behind_any_program_name() {
        let line = "7 (a) S (b) S 1 7 7 0 -1 4194560 1 0 0 0 250 75 0 0 20 0 1 0 12345 9 9";
        let stat = Stat::parse(line).expect("a process");
        let expected = Stat {
            user_ticks: 250,
            system_ticks: 75,
            start_ticks: 12345,
        };
        assert_eq!(stat, expected);
        for damaged in [
            "",
            "7 (a",
            "7 (a) S 1 2",
            "7 (a) S 1 7 7 0 -1 0 1 0 0 0 x y",
        ] {
            assert_eq!(Stat::parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn lists_of_processors_are_read() {
        for (list, expected) in [
            ("0", &[0][..]),
            ("0-2,5", &[0, 1, 2, 5]),
            ("3,x,7-6", &[3]),
            ("", &[]),
        ] {
            let numbers: Vec<u32> = core_numbers(list).into_iter().collect();
            assert_eq!(numbers, expected, "{list}");
        }
    }

    #[test]
    fn only_sockets_that_listen_on_the_port_are_found() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let row = |port: &str, state: &str, inode: &str| {
            format!(
                "   0: 0100007F:{port} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0\n"
            )
        };
        let table = [
            head,
            &row("18EB", "0A", "11"),
            &row("18EB", "01", "12"),
            &row("18EC", "0A", "13"),
            "damaged\n",
        ]
        .concat();
        assert_eq!(tcp_listening(&table, 0x18eb), [11]);
    }

    #[test]
    fn sockets_at_a_path_are_found_by_its_file() {
        let table = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 21 /run/n.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 22 /run/m.sock\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 23\n";
        let found: Vec<u64> = unix_listening(table, Path::new("n.sock")).collect();
        assert_eq!(found, [21]);
    }

    #[cfg(target_os = "linux")]
    mod linux {
        use std::net::TcpListener;
        use std::str::FromStr as _;

        use redlock_client::NodeAddress;

        use super::*;

        /// INFO of a server that says that it is this process and so old.
        fn info(id: u32) -> ServerInfo {
            ServerInfo::parse(format!("process_id:{id}\r\nuptime_in_seconds:5\r\n").as_bytes())
        }

        #[test]
        fn a_process_must_own_the_port_of_its_server() {
            let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let at = |address: &str| {
                ServerAddress::plain(NodeAddress::from_str(address).expect("an address"))
            };
            let address = at(&socket.local_addr().expect("an address").to_string());
            let own = std::process::id();
            assert_eq!(
                Process::of_server(&info(own), &address).ok(),
                Process::own()
            );
            drop(socket);
            let error = Process::of_server(&info(own), &address).expect_err("it is closed");
            assert!(error.contains("is not the server"), "{error}");
            let error = Process::of_server(&info(u32::MAX), &address).expect_err("no such process");
            assert!(error.contains("no process 4294967295"), "{error}");
            let nothing = ServerInfo::parse(b"redis_version:7\r\n");
            let error = Process::of_server(&nothing, &address).expect_err("no id");
            assert!(error.contains("process id"), "{error}");
        }

        #[test]
        fn an_age_is_compared_in_seconds() {
            let own = Process::own().expect("a process");
            let age = own.age_seconds().expect("an age");
            assert!(own.is_as_old_as(age));
            assert!(!own.is_as_old_as(age + 3600.0));
            assert!(!own.is_as_old_as(age - 3600.0));
        }

        #[test]
        fn cpu_time_grows_and_ends_with_the_process() {
            let own = Process::own().expect("a process");
            let before = own.cpu().expect("a time");
            let after = own.cpu().expect("a time").since(before);
            assert!(after.all >= 0.0 && after.user >= 0.0, "{after:?}");
            let shares = [(0.0, 0.0, None), (1.0, 3.0, Some(0.25))];
            for (user, system, expected) in shares {
                let time = CpuTime {
                    all: 4.0,
                    user,
                    system,
                };
                assert_eq!(time.user_share(), expected);
            }
            let other = Process {
                start_ticks: own.start_ticks + 1,
                ..own
            };
            assert_eq!(other.cpu(), None, "another process with the same id");
        }
    }
}
