//! Invalid arguments.

use std::fmt;

/// Why an argument is invalid, as a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArgumentError(String);

impl ArgumentError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgumentError {}
