//! `locknode completions`: scripts that let a shell complete the command line.

use clap::Command;
use clap_complete::Shell;

use crate::failure::{Exit, Failure};
use crate::output;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompletionsFlags {
    /// The shell to write for.
    shell: Shell,
}

/// Prints the script.
///
/// # Errors
///
/// When standard output fails.
pub(crate) fn run(flags: &CompletionsFlags, mut command: Command) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut command, "locknode", &mut script);
    output::write_bytes(&script)?;
    Ok(Exit::Success)
}

const EXAMPLES: &str = "\
Examples:
  locknode completions bash > ~/.local/share/bash-completion/completions/locknode
  locknode completions zsh > ~/.zfunc/_locknode
  locknode completions fish > ~/.config/fish/completions/locknode.fish";
