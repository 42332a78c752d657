//! The lines on standard error: what a node says about itself.
//!
//! No time stamps: whatever collects the lines (systemd, a container runtime) puts its own on. No line shows a
//! password or a token.

use std::fmt;
use std::io::Write as _;

use clap::ValueEnum;

/// How much is said, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    /// Only why the node could not go on.
    Error,
    /// Also what is risky.
    Warn,
    /// Also starting and stopping.
    Info,
    /// Also details for finding a fault.
    Debug,
}

/// Writes lines up to a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log {
    level: LogLevel,
}

impl Log {
    pub(crate) const fn new(level: LogLevel) -> Self {
        Self { level }
    }

    pub(crate) fn warn(self, message: impl fmt::Display) {
        self.line(LogLevel::Warn, "warning: ", message);
    }

    pub(crate) fn info(self, message: impl fmt::Display) {
        self.line(LogLevel::Info, "", message);
    }

    pub(crate) fn debug(self, message: impl fmt::Display) {
        self.line(LogLevel::Debug, "debug: ", message);
    }

    fn line(self, level: LogLevel, prefix: &str, message: impl fmt::Display) {
        if level <= self.level {
            // One write per line, so that lines of several threads do not mix. A failed write cannot be reported
            // anywhere.
            let line = format!("{prefix}{message}\n");
            let _ = std::io::stderr().lock().write_all(line.as_bytes());
        }
    }
}
