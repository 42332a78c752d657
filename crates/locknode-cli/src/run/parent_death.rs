//! A command that dies with its parent: nobody else would end it when the lock is lost.
//!
//! On Linux a process can ask to be killed when its parent ends, but only for itself, and the request survives
//! exec. So `locknode run` starts this program again, which makes the request and then becomes the command. That
//! needs no code between fork and exec, which would be unsafe. It covers the command itself and not what the command
//! starts; and a command that gains privileges by exec (set-user-id) loses the request. Elsewhere than on Linux there
//! is no such request: the command then outlives a `locknode run` that is killed with SIGKILL.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use crate::failure::{Exit, Failure};

/// The command line of this program that becomes `command`, in `cgroup` if there is one.
#[cfg(target_os = "linux")]
pub(super) fn wrap(command: &[OsString], is_quiet: bool, cgroup: &OsStr) -> Command {
    let mut wrapped = this_program(MARK);
    wrapped
        .arg(std::process::id().to_string())
        .arg(if is_quiet { QUIET } else { "loud" })
        .arg(cgroup)
        .args(command);
    wrapped
}

/// This very program, even if its file was replaced since, with a first argument.
pub(super) fn this_program(mark: &str) -> Command {
    use std::os::unix::process::CommandExt as _;
    // Of the process that reads it. Elsewhere there is no such file, and the callers do without.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("locknode").arg(mark);
    command
}

/// What follows the mark, if these arguments of the program have it.
pub(crate) fn marked(args: &[OsString]) -> Option<&[OsString]> {
    match args {
        [_, mark, rest @ ..] if mark == MARK => Some(rest),
        _ => None,
    }
}

/// Becomes the command. Returns only when that fails.
///
/// # Errors
///
/// When the command cannot be started, with the exit code that shells have for it.
pub(crate) fn become_command(args: &[OsString]) -> Result<Exit, Failure> {
    let [parent, loudness, cgroup, command @ ..] = args else {
        return Err(Failure::usage("this is for locknode's own use"));
    };
    #[cfg(target_os = "linux")]
    {
        die_with(parent)?;
        super::cgroup::enter(cgroup);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (parent, cgroup);
    let failure = replace(command);
    if loudness == QUIET {
        return Ok(failure.exit());
    }
    Err(failure)
}

/// Asks to be killed with the parent, which must still be that one.
#[cfg(target_os = "linux")]
fn die_with(parent: &OsStr) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
        Failure::internal(format!("cannot ask to be ended with the parent: {error}"))
    })?;
    let is_there = getppid().is_some_and(|pid| parent == pid.as_raw_nonzero().to_string().as_str());
    if is_there {
        Ok(())
    } else {
        Err(Failure::internal(
            "locknode run has ended before its command started",
        ))
    }
}

/// Becomes the command; what it returns is why not.
fn replace(command: &[OsString]) -> Failure {
    use std::os::unix::process::CommandExt as _;
    let [program, args @ ..] = command else {
        return Failure::usage("there is no command");
    };
    explain(program, &Command::new(program).args(args).exec())
}

/// Why a program cannot be started, with the shells' exit codes.
pub(super) fn explain(program: &OsStr, error: &std::io::Error) -> Failure {
    let program = program.display();
    match error.kind() {
        std::io::ErrorKind::NotFound => Failure::new(
            Exit::Code(NOT_FOUND),
            format!("there is no command {program}: look for a typing error, and in PATH"),
        ),
        std::io::ErrorKind::PermissionDenied => Failure::new(
            Exit::Code(NOT_EXECUTABLE),
            format!("{program} may not be executed: chmod +x it, or name its interpreter"),
        ),
        _ => Failure::new(
            Exit::Code(NOT_EXECUTABLE),
            format!("{program} cannot be executed: {error}"),
        ),
    }
}

/// First argument of a program that becomes a command. No person types it.
const MARK: &str = "__become";

const QUIET: &str = "quiet";

/// As in a shell.
const NOT_EXECUTABLE: u8 = 126;

/// As in a shell.
const NOT_FOUND: u8 = 127;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mark_in_front_is_one() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        assert!(marked(&args(&["locknode", MARK, "1", "loud", "", "true"])).is_some());
        assert!(marked(&args(&["locknode", "run", "x", "--", MARK])).is_none());
        assert!(marked(&args(&["locknode"])).is_none());
    }

    #[test]
    fn errors_have_the_codes_of_a_shell() {
        for (kind, code) in [
            (std::io::ErrorKind::NotFound, 127),
            (std::io::ErrorKind::PermissionDenied, 126),
            (std::io::ErrorKind::IsADirectory, 126),
        ] {
            let failure = explain(OsStr::new("x"), &kind.into());
            assert_eq!(failure.exit().code(), code);
        }
    }
}
