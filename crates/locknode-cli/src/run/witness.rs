//! Whether a signal came to this process alone. On a terminal the command shares our process group, and Ctrl-C goes to
//! both: passed on, the command would get it twice; not passed on, a signal that somebody sent to us alone would be
//! lost. Safe code is not told who sent a signal. So a process in the same group does nothing but wait: what ends or
//! stops it has come to the whole group.

use std::io::Read as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use redlock_client::Time;
use rustix::process::{Pid, Signal, WaitStatus, kill_process};

use super::parent_death;

/// The process, and the signals whose way is not known yet.
#[derive(Debug, Default)]
pub(super) struct Witness {
    process: Option<Child>,
    /// What came to the group, and when that was seen.
    seen: Vec<(i32, Time)>,
    /// What came to us, and when.
    doubtful: Vec<(Signal, Time)>,
}

impl Witness {
    /// Starts the process; without one, what a terminal can send counts as sent to all.
    pub(super) fn start() -> Self {
        let mut witness = Self::default();
        witness.restart();
        witness
    }

    /// Its number, if it lives.
    pub(super) fn id(&self) -> Option<Pid> {
        let id = self.process.as_ref()?.id();
        Pid::from_raw(i32::try_from(id).ok()?)
    }

    /// A signal came to us.
    pub(super) fn doubt(&mut self, now: Time, signal: Signal) {
        self.doubtful.push((signal, now));
    }

    /// The process changed its state.
    pub(super) fn saw(&mut self, now: Time, status: WaitStatus) {
        let signal = status.terminating_signal().or(status.stopping_signal());
        self.seen.extend(signal.map(|signal| (signal, now)));
        if status.signaled() {
            self.restart();
        } else if status.exited() {
            self.process = None;
        }
    }

    /// The next signal whose way is known, and whether it came to the whole group.
    pub(super) fn resolve(&mut self, now: Time) -> Option<(Signal, bool)> {
        self.seen.retain(|(_, at)| now.since(*at) < PATIENCE);
        let (index, is_shared) = self
            .doubtful
            .iter()
            .enumerate()
            .find_map(|(index, doubt)| {
                let (signal, at) = *doubt;
                let is_seen = self.seen.iter().any(|(seen, _)| *seen == signal.as_raw());
                let is_known = is_seen || self.process.is_none() || now.since(at) >= PATIENCE;
                let is_shared = is_seen || (self.process.is_none() && KEYS.contains(&signal));
                is_known.then_some((index, is_shared))
            })?;
        let (signal, _) = self.doubtful.remove(index);
        self.seen.retain(|(seen, _)| *seen != signal.as_raw());
        Some((signal, is_shared))
    }

    /// How long nothing is known, if there is something to find out.
    pub(super) fn sleep(&self) -> Option<Duration> {
        (!self.doubtful.is_empty()).then_some(LOOK_AGAIN)
    }

    /// Lets the process go on after a stop.
    pub(super) fn go_on(&self) {
        if let Some(id) = self.id() {
            let _ = kill_process(id, Signal::CONT);
        }
    }

    /// Ends the process. From now on nothing is found out.
    pub(super) fn end(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    fn restart(&mut self) {
        let mut command = parent_death::this_program(MARK);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.process = command.spawn().ok();
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether the program was started to be one.
pub(crate) fn is_marked(args: &[std::ffi::OsString]) -> bool {
    matches!(args, [_, mark] if mark == MARK)
}

/// Waits for the end of the one that started it.
pub(crate) fn wait() {
    let mut stdin = std::io::stdin().lock();
    while matches!(stdin.read(&mut [0; 1]), Ok(1..)) {}
}

/// First and only argument of a program that becomes a witness. No person types it.
const MARK: &str = "__witness";

/// What a terminal sends when a key is pressed.
const KEYS: [Signal; 3] = [Signal::INT, Signal::QUIT, Signal::TSTP];

/// How long the witness has to show what it got: it needs the processor for that once.
const PATIENCE: Duration = Duration::from_millis(100);

const LOOK_AGAIN: Duration = Duration::from_millis(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_group_got_is_shared_once_and_keys_are_without_a_witness() {
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        let mut witness = Witness::default();
        for signal in [Signal::INT, Signal::USR1, Signal::TSTP] {
            witness.doubt(at(0), signal);
        }
        let told: Vec<_> = std::iter::from_fn(|| witness.resolve(at(0))).collect();
        let expected = [
            (Signal::INT, true),
            (Signal::USR1, false),
            (Signal::TSTP, true),
        ];
        assert_eq!(told, expected);

        witness.seen.push((Signal::USR1.as_raw(), at(10)));
        for expected in [true, false] {
            witness.doubt(at(20), Signal::USR1);
            assert_eq!(witness.resolve(at(20)), Some((Signal::USR1, expected)));
        }
        assert_eq!((witness.resolve(at(20)), witness.sleep()), (None, None));
    }
}
