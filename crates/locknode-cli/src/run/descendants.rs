//! The processes that descend from this one, found in `/proc`. What a command started may have left its process group
//! and its session, but not its ancestry: this process is a subreaper, so that even orphans come back to it.

use std::collections::HashMap;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, getpid, kill_process};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};

use super::refusal::Refusal;

/// A process: its number, which another may get later, and when it was started, in ticks since the boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) id: Pid,
    started: u64,
}

/// The processes that descend from this one, those in `others` and what descends from them left out. `None` where the
/// system does not report them.
pub(super) fn find(others: &[Pid]) -> Option<Vec<Process>> {
    let entries = std::fs::read_dir("/proc").ok()?;
    let mut all = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.parse().ok());
        all.extend(id.and_then(Pid::from_raw).and_then(look));
    }
    // Without even this process, it is not the directory that it looks like.
    let ours = getpid();
    let is_complete = all.iter().any(|(process, _)| process.id == ours);
    is_complete.then(|| below(ours, others, &all))
}

/// Sends signals, in order, to processes that were found, except those that ended meanwhile.
pub(super) fn send(processes: &[Process], signals: &[Signal]) -> Vec<Refusal> {
    let sent = processes.iter().map(|process| send_one(*process, signals));
    sent.filter_map(Result::err).collect()
}

fn send_one(process: Process, signals: &[Signal]) -> Result<(), Refusal> {
    let send = |send: &dyn Fn(Signal) -> Result<(), Errno>| {
        let sent = signals.iter().try_for_each(|signal| send(*signal));
        Refusal::unless_gone(process.id, sent)
    };
    #[cfg(target_os = "linux")]
    if let Ok(descriptor) = pidfd_open(process.id, PidfdFlags::empty()) {
        // The number may belong to another process by now; this descriptor does not.
        return match look(process.id) {
            Some((now, _)) if now == process => {
                send(&|signal| pidfd_send_signal(&descriptor, signal))
            }
            _ => Ok(()),
        };
    }
    // An old kernel, a sandbox, or another system.
    send(&|signal| kill_process(process.id, signal))
}

/// The processes below one, of all processes with their parents.
fn below(root: Pid, others: &[Pid], all: &[(Process, Pid)]) -> Vec<Process> {
    let mut children: HashMap<Pid, Vec<Process>> = HashMap::new();
    for (process, parent) in all {
        children.entry(*parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let ours = children.remove(&parent).unwrap_or_default();
        for process in ours {
            if !others.contains(&process.id) {
                parents.push(process.id);
                found.push(process);
            }
        }
    }
    found
}

/// A process and its parent.
fn look(id: Pid) -> Option<(Process, Pid)> {
    let directory = Path::new("/proc").join(id.as_raw_nonzero().to_string());
    let (parent, started) = read(&std::fs::read(directory.join("stat")).ok()?)?;
    Some((Process { id, started }, parent))
}

/// Parent and start in the kernel's line. The name is in parentheses and may hold anything; state and parent follow.
fn read(stat: &[u8]) -> Option<(Pid, u64)> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(stat.get(end + 1..)?).ok()?;
    let mut fields = rest.split_whitespace().skip(1);
    let parent = Pid::from_raw(fields.next()?.parse().ok()?)?;
    let started = fields.nth(STARTED_BEHIND_PARENT)?.parse().ok()?;
    Some((parent, started))
}

/// Fields between the parent's number and the time of the start.
const STARTED_BEHIND_PARENT: usize = 17;

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).expect("not zero")
    }

    #[test]
    fn parent_and_start_are_read_whatever_the_name_is() {
        let rest = "12 12 0 -1 4194304 94 0 0 0 0 0 0 0 20 0 1 0 5551 2703360 195";
        for (name, parent, expected) in [
            (&b"sh"[..], 7, Some(7)),
            (b"a) S 1 (b\n\xff", 9, Some(9)),
            (b"kthreadd", 0, None),
        ] {
            let numbers = format!(") S {parent} {rest}");
            let stat = [b"12 (", name, numbers.as_bytes()].concat();
            assert_eq!(read(&stat), expected.map(|parent| (pid(parent), 5551)));
        }
        for stat in [&b"12 (sh"[..], b"12 (sh) S", b"12 (sh) S 7 1", b""] {
            assert_eq!(read(stat), None);
        }
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_others_left_out() {
        let process = |id, parent| {
            let started = 1;
            (
                Process {
                    id: pid(id),
                    started,
                },
                pid(parent),
            )
        };
        let all = [
            process(9, 5),
            process(2, 1),
            process(5, 2),
            process(6, 2),
            process(7, 6),
            process(3, 1),
            process(4, 3),
        ];
        let ids = |others: &[Pid]| {
            let found = below(pid(2), others, &all);
            let mut ids: Vec<i32> = found
                .iter()
                .map(|process| process.id.as_raw_nonzero().get())
                .collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&[]), [5, 6, 7, 9]);
        assert_eq!(ids(&[pid(6)]), [5, 9]);
        assert_eq!(ids(&[pid(5), pid(6)]), [0; 0]);
    }
}
