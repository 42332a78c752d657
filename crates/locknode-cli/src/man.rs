//! `locknode man`: the manual pages, from the same definition as `--help`.

use std::path::PathBuf;

use clap::Command;

use crate::failure::{Exit, Failure};
use crate::output;

/// Print the manual page, or write all pages to a directory
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ManFlags {
    /// Directory to write locknode.1 and one page per command to; created if missing. Without it the main page goes to standard output.
    dir: Option<PathBuf>,
}

/// Prints or writes the pages.
///
/// # Errors
///
/// When standard output fails or the directory cannot be written.
pub(crate) fn run(flags: &ManFlags, command: Command) -> Result<Exit, Failure> {
    let Some(dir) = &flags.dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| Failure::output(&error))?;
        output::write_bytes(&page)?;
        return Ok(Exit::Success);
    };
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(command, dir))
        .map_err(|error| {
            Failure::unavailable(format!("cannot write to {}: {error}", dir.display()))
        })?;
    Ok(Exit::Success)
}

const EXAMPLES: &str = "\
Examples:
  locknode man | man -l -
  locknode man /usr/local/share/man/man1";
