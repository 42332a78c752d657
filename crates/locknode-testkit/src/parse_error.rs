//! Why a line of a script could not be read.

use std::error::Error;
use std::fmt::{Display, Formatter, Result as FmtResult};

/// A script, or a line of one, that is not what it should be; its text says what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    line: usize,
    text: String,
}

impl ParseError {
    pub(crate) fn missing(what: &str, line: &str) -> Self {
        Self {
            line: 0,
            text: format!("expected {what} at the end of `{line}`"),
        }
    }

    pub(crate) fn unexpected(what: &str, found: &str, line: &str) -> Self {
        let shown: String = found.chars().take(SHOWN_MAX).collect();
        Self {
            line: 0,
            text: format!("expected {what}, found `{shown}` in `{line}`"),
        }
    }

    pub(crate) fn because(text: impl Into<String>) -> Self {
        Self {
            line: 0,
            text: text.into(),
        }
    }

    /// The same, on a line of a file, counted from 1.
    pub(crate) fn on(mut self, line: usize) -> Self {
        self.line = line;
        self
    }

    /// The line of the script, counted from 1; 0 when only one line was read.
    pub const fn line(&self) -> usize {
        self.line
    }
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        f.write_str(&self.text)
    }
}

impl Error for ParseError {}

/// How much of a wrong word is shown.
const SHOWN_MAX: usize = 60;
