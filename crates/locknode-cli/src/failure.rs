//! Failures of commands: an exit code and a message.
//!
//! The codes are those of `sysexits.h`, so that scripts can distinguish wrong usage from unreachable
//! nodes.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit codes of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Success,
    /// A benchmark run that does not count, because of an error or a wrong reply.
    Void,
    /// A simulated world broke a promise, or two clients of the lab held a lock.
    Broken,
    /// The command line, the environment or the configuration file is wrong.
    Usage,
    /// A simulated world was not the same again.
    Differs,
    /// Something needed is unavailable: an address is taken, a majority of the nodes does not reply.
    Unavailable,
    /// The program or the operating system failed.
    Internal,
    /// Works now but needs attention: some nodes of the cluster do not serve.
    Degraded,
    /// The lock to extend or release is not held with that token.
    NotHeld,
    /// Ctrl-C ended it early.
    Interrupted,
    /// A code that the user chose, or that of a command that was run.
    Code(u8),
}

/// A failed command: what happened and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    message: String,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Void | Self::Broken | Self::NotHeld => 1,
            Self::Usage => 64,
            Self::Differs => 65,
            Self::Unavailable => 69,
            Self::Internal => 70,
            Self::Degraded => 75,
            // As a shell reports a command that SIGINT ended.
            Self::Interrupted => 130,
            Self::Code(code) => code,
        }
    }
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
        }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Exit::Unavailable, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Exit::Internal, message)
    }

    /// A failed write to standard output. A closed pipe (`locknode lab | head`) is not a failure.
    pub(crate) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Success, "");
        }
        Self::internal(format!("cannot write to standard output: {error}"))
    }

    pub(crate) const fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
