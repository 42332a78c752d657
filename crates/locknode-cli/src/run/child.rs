//! The command as a process: starting it, sending it signals, seeing it end. What is to be done when is decided in
//! [`timeline`](super::timeline).

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, wait, waitpgid,
};

use super::parent_death;
use super::signals::Signals;
use super::timeline::Ending;
use crate::failure::Failure;

/// A running command.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    /// It leads a process group of its own.
    has_group: bool,
    is_reaped: bool,
}

impl Child {
    /// Starts a command with more variables in its environment.
    ///
    /// # Errors
    ///
    /// When it cannot be started, with the exit code that shells have for it.
    pub(super) fn start(
        command: &[OsString],
        variables: &[(&str, OsString)],
        has_group: bool,
        is_quiet: bool,
    ) -> Result<Self, Failure> {
        if has_group {
            // What the command leaves behind becomes our child and not somebody else's, so that its end is seen.
            #[cfg(target_os = "linux")]
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        }
        let spawn = |mut command: Command| {
            command.envs(variables.iter().map(|(name, value)| (name, value)));
            if has_group {
                command.process_group(0);
            }
            command.spawn()
        };
        #[cfg(target_os = "linux")]
        if let Ok(child) = spawn(parent_death::wrap(command, is_quiet)) {
            return Self::new(child.id(), has_group);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = is_quiet;
        // Without /proc the command is started directly.
        let [program, args @ ..] = command else {
            return Err(Failure::usage("there is no command"));
        };
        let mut direct = Command::new(program);
        direct.args(args);
        let child = spawn(direct).map_err(|error| parent_death::explain(program, &error))?;
        Self::new(child.id(), has_group)
    }

    fn new(id: u32, has_group: bool) -> Result<Self, Failure> {
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| Failure::internal(format!("{id} is no process id")))?;
        Ok(Self {
            pid,
            has_group,
            is_reaped: false,
        })
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u64 {
        u64::try_from(self.pid.as_raw_nonzero().get()).unwrap_or(0)
    }

    /// Sends a signal to the command, and to its group if it has one of its own.
    pub(super) fn send(&self, signal: Signal) {
        // The number of a process that is gone may be another's.
        if self.is_reaped {
            return;
        }
        // The only failure is that it has ended meanwhile, which is seen elsewhere.
        let _ = if self.has_group {
            kill_process_group(self.pid, signal)
        } else {
            kill_process(self.pid, signal)
        };
    }

    /// How the command ended, once it did. To be asked whenever a child process changed its state.
    pub(super) fn ending(&mut self) -> Option<Ending> {
        let mut ending = None;
        // Those that the command left behind are ours to clear away too.
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.pid {
                self.is_reaped = true;
                ending = Some(read(status));
            }
        }
        ending
    }

    /// Waits for the processes that the command left in its group, and kills them after `patience`. Returns whether
    /// none is left.
    ///
    /// # Cancel safety
    ///
    /// May have killed them.
    pub(super) async fn clear_group(&self, patience: Duration, signals: &mut Signals) -> bool {
        if !self.has_group {
            return true;
        }
        if self.is_group_gone_within(patience, signals).await {
            return true;
        }
        // The group still has its number: the system gives that to nobody while the group has a member.
        let _ = kill_process_group(self.pid, Signal::KILL);
        self.is_group_gone_within(super::timeline::PATIENCE, signals)
            .await
    }

    async fn is_group_gone_within(&self, patience: Duration, signals: &mut Signals) -> bool {
        if self.is_group_gone() {
            return true;
        }
        let gone = async {
            while !self.is_group_gone() {
                // Any signal is a reason to look again.
                signals.next().await;
            }
        };
        tokio::time::timeout(patience, gone).await.is_ok()
    }

    fn is_group_gone(&self) -> bool {
        loop {
            match waitpgid(self.pid, WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }
}

fn read(status: WaitStatus) -> Ending {
    let byte = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ending::Code(byte(code)),
        (None, Some(signal)) => Ending::Signal(byte(signal)),
        // Stops are not waited for, so there is nothing else.
        (None, None) => Ending::Code(u8::MAX),
    }
}
