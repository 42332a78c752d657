//! Looking at processes that the program started, by what Linux says of them.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::program::{PATIENCE, Program};

/// Waits until something is so.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not happen: {what}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The number behind `"pid":` in a line of `--json`, or behind `name=` in a line of a script.
pub(crate) fn number_in(line: &str) -> u32 {
    let digits = line.split(|c: char| !c.is_ascii_digit());
    let number = digits.rev().find(|digits| !digits.is_empty());
    number
        .and_then(|digits| digits.parse().ok())
        .expect("a number")
}

/// The number of the command that `run --json` started.
pub(crate) fn command_of(job: &mut Program) -> u32 {
    number_in(&job.line_ever_with("\"event\":\"started\""))
}

/// Whether the process is there and has not ended.
pub(crate) fn is_alive(id: u32) -> bool {
    !matches!(state(id), None | Some('Z' | 'X'))
}

/// Whether the process is stopped.
pub(crate) fn is_stopped(id: u32) -> bool {
    state(id) == Some('T')
}

/// The process group.
pub(crate) fn group(id: u32) -> Option<u32> {
    fields(id)?.get(2)?.parse().ok()
}

/// Sends a signal to a process that the program started and that may have ended.
pub(crate) fn signal(id: u32, signal: Signal) {
    let id = i32::try_from(id).ok().and_then(Pid::from_raw);
    let _ = kill_process(id.expect("a process id"), signal);
}

fn state(id: u32) -> Option<char> {
    fields(id)?.first()?.chars().next()
}

/// What follows the name, which is in parentheses and may hold anything.
fn fields(id: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// How often a condition is looked at that nobody announces.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(5);
