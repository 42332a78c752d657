//! `--history`: all that happened, as lines of JSON.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use locknode_testkit::History;

use crate::failure::Failure;

/// Writes a history to a file.
///
/// # Errors
///
/// When that does not work, with what to do.
pub(crate) fn write(path: &Path, history: &History) -> Result<(), Failure> {
    write_lines(path, history).map_err(|error| {
        Failure::unavailable(format!(
            "cannot write the history to {}: {error}; choose another file with --history",
            path.display()
        ))
    })
}

fn write_lines(path: &Path, history: &History) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for line in history.json_lines() {
        writeln!(file, "{line}")?;
    }
    file.flush()
}
