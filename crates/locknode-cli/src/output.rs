//! Standard output: results only, and a reader that went away is no error.

use std::io::{self, Write as _};

use crate::failure::Failure;

/// Writes results and flushes them.
///
/// # Errors
///
/// Ends the command: successfully when the reader closed the pipe, as an internal error otherwise.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    write_bytes(text.as_bytes())
}

/// Writes a result as JSON, or else as a table for people.
///
/// # Errors
///
/// As [`write()`].
pub(crate) fn write_as(
    is_json: bool,
    json: impl FnOnce() -> String,
    table: impl FnOnce() -> String,
) -> Result<(), Failure> {
    write(&if is_json { json() } else { table() })
}

/// As [`write()`], for text that need not be UTF-8.
pub(crate) fn write_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(bytes)
        .and_then(|()| stdout.flush())
        .map_err(|error| Failure::output(&error))
}

/// Whether a person watches.
pub(crate) fn is_terminal() -> bool {
    io::IsTerminal::is_terminal(&io::stdout())
}
