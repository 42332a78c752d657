//! Why a command ends, as an exit code and a sentence for a person.
//!
//! The codes are those of `sysexits.h`, so that scripts can tell "you wrote it wrong" from "the nodes are away".

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit codes of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Success,
    /// A benchmark run that does not count: an error or a wrong reply came.
    #[cfg(feature = "bench")]
    Void,
    /// A simulated world broke a promise, or two clients of the lab held a lock.
    #[cfg(any(feature = "lab", feature = "sim"))]
    Broken,
    /// The command line, the environment or the configuration file is wrong.
    Usage,
    /// A simulated world was not the same again.
    #[cfg(feature = "sim")]
    Differs,
    /// Something needed is not there: an address is taken, a majority of the nodes does not answer.
    Unavailable,
    /// The program or the operating system failed.
    Internal,
    /// Works now but needs attention: some nodes of the cluster are away.
    #[cfg(feature = "status")]
    Degraded,
    /// The lock that was to be extended or released is not held with that token.
    #[cfg(feature = "lock")]
    NotHeld,
    /// Ctrl-C ended it before it was done.
    #[cfg(feature = "sim")]
    Interrupted,
    /// A code that the user chose, or that of a command that was run.
    #[cfg(any(feature = "lock", feature = "run"))]
    Code(u8),
}

/// The end of a command that did not work: what happened and what to do about it.
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
            #[cfg(feature = "bench")]
            Self::Void => 1,
            #[cfg(any(feature = "lab", feature = "sim"))]
            Self::Broken => 1,
            Self::Usage => 64,
            #[cfg(feature = "sim")]
            Self::Differs => 65,
            Self::Unavailable => 69,
            Self::Internal => 70,
            #[cfg(feature = "status")]
            Self::Degraded => 75,
            #[cfg(feature = "lock")]
            Self::NotHeld => 1,
            // As a shell tells of a command that SIGINT ended.
            #[cfg(feature = "sim")]
            Self::Interrupted => 130,
            #[cfg(any(feature = "lock", feature = "run"))]
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

    /// A failed write to standard output. A reader that went away (`locknode lab | head`) has what it wanted.
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
