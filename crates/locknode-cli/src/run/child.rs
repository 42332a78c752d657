//! The command as processes: starting it, sending it signals, seeing it end. What is to be done when is decided in
//! [`timeline`](super::timeline).

use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use redlock_client::Time;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait,
};

use super::cgroup::Cgroup;
use super::descendants::{self, Process};
use super::parent_death;
use super::refusal::Refusal;
use super::timeline::Ending;
use super::witness::Witness;
use crate::failure::Failure;

/// A running command and everything that descends from it.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    /// It leads a process group of its own. On a terminal it shares ours instead.
    has_group: bool,
    is_reaped: bool,
    /// Children that we had before, of the program that became us.
    others: Vec<Pid>,
    cgroup: Option<Cgroup>,
    witness: Witness,
}

/// What a look at the command showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sight {
    /// How the command itself ended, reported once.
    pub(super) ending: Option<Ending>,
    /// Nothing of the command is left.
    pub(super) is_gone: bool,
}

impl Child {
    /// Starts a command with more variables in its environment. To be called by the thread that lives longest, because
    /// the command is killed when that ends.
    ///
    /// # Errors
    ///
    /// When it cannot be started, with the exit code that shells have for it.
    pub(super) fn start(
        command: &[OsString],
        variables: &[(&str, OsString)],
        has_terminal: bool,
        is_quiet: bool,
    ) -> Result<Self, Failure> {
        let others = descendants::find(&[]).unwrap_or_default();
        // What the command leaves behind becomes our child and not somebody else's, so that it is found.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let cgroup = Cgroup::make();
        let spawn = |mut command: Command| {
            command.envs(variables.iter().map(|(name, value)| (name, value)));
            if !has_terminal {
                command.process_group(0);
            }
            command.spawn()
        };
        let new = |id: u32, cgroup| {
            let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
            Ok(Self {
                pid: pid.ok_or_else(|| Failure::internal(format!("{id} is no process id")))?,
                has_group: !has_terminal,
                is_reaped: false,
                others: others.iter().map(|process| process.id).collect(),
                cgroup,
                witness: if has_terminal {
                    Witness::start()
                } else {
                    Witness::default()
                },
            })
        };
        #[cfg(target_os = "linux")]
        {
            let entered = cgroup.as_ref().map_or(OsStr::new(""), Cgroup::path);
            if let Ok(child) = spawn(parent_death::wrap(command, is_quiet, entered)) {
                return new(child.id(), cgroup);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (is_quiet, cgroup);
        // Without /proc the command is started directly.
        let [program, args @ ..] = command else {
            return Err(Failure::usage("there is no command"));
        };
        let mut direct = Command::new(program);
        direct.args(args);
        let child = spawn(direct).map_err(|error| parent_death::explain(program, &error))?;
        new(child.id(), None)
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u64 {
        u64::try_from(self.pid.as_raw_nonzero().get()).unwrap_or(0)
    }

    /// Finds out which signals came to us alone.
    pub(super) const fn witness(&mut self) -> &mut Witness {
        &mut self.witness
    }

    /// Passes a signal on as a terminal or a shell would: to the command's process group, or on a terminal to the
    /// command itself. When it has ended, to what it left.
    pub(super) fn pass(&self, signal: Signal) {
        // The only failure is that it has ended meanwhile, which is seen elsewhere. The number of a process that is
        // gone may be another's.
        match (self.is_reaped, self.has_group) {
            (true, _) => drop(self.send(&[signal], 1)),
            (false, true) => drop(kill_process_group(self.pid, signal)),
            (false, false) => drop(kill_process(self.pid, signal)),
        }
    }

    /// Asks everything of the command to end. Few looks at the processes of the machine, so that what forks without end
    /// cannot delay the kill; what they do not find is killed.
    pub(super) fn ask(&self) {
        // A process that was stopped could not react otherwise.
        self.send(&[Signal::TERM, Signal::CONT], ROUNDS_TO_ASK);
    }

    /// Lets everything of the command go on after a stop.
    pub(super) fn go_on(&self) {
        self.send(&[Signal::CONT], 1);
    }

    /// Stops everything of the command.
    pub(super) fn stop(&self) {
        // Not SIGTSTP, which a program may ignore.
        self.send(&[Signal::STOP], ROUNDS_MAX);
    }

    /// Kills everything of the command. To be called again until nothing is left.
    pub(super) fn kill(&self) -> Vec<Refusal> {
        if let Some(cgroup) = &self.cgroup {
            cgroup.kill();
        }
        self.send(&[Signal::KILL], ROUNDS_MAX)
    }

    /// Sends signals to everything of the command, and to what was forked meanwhile.
    fn send(&self, signals: &[Signal], rounds: usize) -> Vec<Refusal> {
        let mut sent: HashSet<Process> = HashSet::new();
        let mut refusals = Vec::new();
        for _ in 0..rounds {
            let Some(mut fresh) = self.find() else {
                return self.send_to_group(signals);
            };
            fresh.retain(|process| sent.insert(*process));
            if fresh.is_empty() {
                break;
            }
            refusals.extend(descendants::send(&fresh, signals));
        }
        refusals
    }

    /// What there is of the command now. To be asked whenever a child process changed its state.
    pub(super) fn look(&mut self, now: Time) -> Sight {
        let mut ending = None;
        let mut has_children = true;
        loop {
            match wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
                Ok(Some((pid, status))) if Some(pid) == self.witness.id() => {
                    self.witness.saw(now, status);
                }
                // Also those that the command left behind, which are ours to clear away.
                Ok(Some((pid, status))) if pid == self.pid && !status.stopped() => {
                    self.is_reaped = true;
                    self.witness.end();
                    ending = Some(read(status));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) => {
                    has_children = false;
                    break;
                }
            }
        }
        Sight {
            ending,
            is_gone: self.is_reaped && self.is_gone(has_children),
        }
    }

    /// How many processes are there that the command started.
    pub(super) fn count(&self) -> usize {
        self.find().map_or(0, |found| found.len())
    }

    fn is_gone(&self, has_children: bool) -> bool {
        let is_populated = self.cgroup.as_ref().is_some_and(Cgroup::is_populated);
        // A child that cannot be found, because it is hidden from us, is one nevertheless.
        let has_ours = has_children
            && (self.others.is_empty() || self.find().is_none_or(|found| !found.is_empty()));
        !is_populated && !has_ours
    }

    fn find(&self) -> Option<Vec<Process>> {
        let witness = self.witness.id();
        let others: Vec<Pid> = self.others.iter().copied().chain(witness).collect();
        descendants::find(&others)
    }

    /// For systems that do not report which process descends from which.
    fn send_to_group(&self, signals: &[Signal]) -> Vec<Refusal> {
        let send = |signal: &Signal| match (self.has_group, self.is_reaped) {
            (true, _) => kill_process_group(self.pid, *signal),
            (false, false) => kill_process(self.pid, *signal),
            (false, true) => Ok(()),
        };
        let sent = signals.iter().try_for_each(send);
        let refusal = Refusal::unless_gone(self.pid, sent).err();
        refusal.into_iter().collect()
    }
}

fn read(status: WaitStatus) -> Ending {
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Code(byte(code)),
        (None, Some(signal)) => Ending::Signal(byte(signal)),
        // Stops are not endings, so there is nothing else.
        (None, None) => Ending::Code(u8::MAX),
    }
}

/// Looks at the processes of the machine, for what was forked while a signal was sent. What forks faster is found when
/// all is killed again.
const ROUNDS_MAX: usize = 4;

/// A second look for what got another parent during the first.
const ROUNDS_TO_ASK: usize = 2;
