//! The one definition of the command line: parsing, `--help`, shell completions and man pages come from it.

use std::ffi::OsString;
use std::io::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::{Exit, Failure};
use crate::serve::ServeFlags;

/// A lock node that speaks the Redis protocol, and tools around it
///
/// A lock node is a small server that holds locks and nothing else. Any Redis client can take a lock
/// on it (SET key token NX PX ttl), release it and extend it, with the scripts and commands that lock
/// libraries use. Redlock libraries take a lock on the majority of several independent nodes.
///
/// locknode serves, tries out, looks at and measures such nodes, and runs commands while it holds a
/// lock on them.
#[derive(Debug, Parser)]
#[command(name = "locknode", version, verbatim_doc_comment, after_long_help = EXAMPLES)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    Serve(ServeFlags),
    /// Run a cluster of lock nodes in this process, to try things out.
    #[cfg(feature = "lab")]
    #[command(long_about = crate::lab::LONG_ABOUT, after_long_help = crate::lab::EXAMPLES)]
    Lab(crate::lab::LabFlags),
    #[cfg(feature = "run")]
    Run(crate::run::RunFlags),
    #[cfg(feature = "lock")]
    Lock(crate::lock::LockFlags),
    #[cfg(feature = "lock")]
    Extend(crate::lock::ExtendFlags),
    #[cfg(feature = "lock")]
    Release(crate::lock::ReleaseFlags),
    #[cfg(feature = "status")]
    Status(crate::status::StatusFlags),
    #[cfg(feature = "status")]
    Doctor(crate::doctor::DoctorFlags),
    #[cfg(feature = "bench")]
    Bench(crate::bench::BenchFlags),
    /// Run simulated worlds with faults, and check them.
    #[cfg(feature = "sim")]
    #[command(long_about = crate::sim::LONG_ABOUT, after_long_help = crate::sim::EXAMPLES)]
    Sim(crate::sim::SimFlags),
    #[cfg(feature = "completions")]
    Completions(crate::completions::CompletionsFlags),
    #[cfg(feature = "man")]
    Man(crate::man::ManFlags),
}

/// Does what the command line says. `args` start with the program's name.
///
/// # Errors
///
/// What went wrong and what to do about it.
pub(crate) fn run(args: Vec<OsString>) -> Result<Exit, Failure> {
    #[cfg(feature = "run")]
    if let Some(args) = crate::run::parent_death::marked(&args) {
        return crate::run::parent_death::become_command(args);
    }
    #[cfg(feature = "run")]
    if crate::run::witness::is_marked(&args) {
        crate::run::witness::wait();
        return Ok(Exit::Success);
    }
    let matches = command().try_get_matches_from(&args);
    let read = matches.and_then(|matches| Ok((Task::from_arg_matches(&matches)?, matches)));
    let (task, matches) = match read {
        Ok(read) => read,
        Err(error) => return answer(&error, &args),
    };
    match task {
        Task::Serve(_) => match matches.subcommand() {
            Some((_, matches)) => {
                crate::serve::run(serve_command(), matches, args.get(2..).unwrap_or_default())
            }
            None => Err(Failure::internal("the command line has no command")),
        },
        #[cfg(feature = "lab")]
        Task::Lab(flags) => crate::lab::run(&flags),
        #[cfg(feature = "run")]
        Task::Run(flags) => crate::run::run(&flags),
        #[cfg(feature = "lock")]
        Task::Lock(flags) => crate::lock::lock(&flags),
        #[cfg(feature = "lock")]
        Task::Extend(flags) => crate::lock::extend(&flags),
        #[cfg(feature = "lock")]
        Task::Release(flags) => crate::lock::release(&flags),
        #[cfg(feature = "status")]
        Task::Status(flags) => crate::status::run(&flags),
        #[cfg(feature = "status")]
        Task::Doctor(flags) => crate::doctor::run(&flags),
        #[cfg(feature = "bench")]
        Task::Bench(flags) => crate::bench::run(&flags),
        #[cfg(feature = "sim")]
        Task::Sim(flags) => crate::sim::run(&flags),
        #[cfg(feature = "completions")]
        Task::Completions(flags) => crate::completions::run(&flags, command()),
        #[cfg(feature = "man")]
        Task::Man(flags) => crate::man::run(&flags, command()),
    }
}

/// What clap has to say: help and version on standard output, errors on standard error.
fn answer(error: &clap::Error, args: &[OsString]) -> Result<Exit, Failure> {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            error.print().map_err(|error| Failure::output(&error))?;
            Ok(Exit::Success)
        }
        _ => {
            // If standard error is closed, the exit code still says it.
            let _ = error.print();
            if let Some(variable) = variable_at_fault(error, args) {
                let _ = writeln!(
                    std::io::stderr(),
                    "The value is that of the environment variable {variable}."
                );
            }
            Ok(Exit::Usage)
        }
    }
}

/// The environment variable that has the bad value, if it was not a flag on the command line.
fn variable_at_fault(error: &clap::Error, args: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let flag = shown.split([' ', '=']).next()?;
    let is_given = |arg: &OsString| arg.to_string_lossy().split('=').next() == Some(flag);
    if args.iter().any(is_given) {
        return None;
    }
    let command = command();
    let subcommand = command.find_subcommand(args.get(1)?)?;
    let arg = subcommand
        .get_arguments()
        .find(|arg| arg.get_long() == flag.strip_prefix("--"))?;
    let variable = arg
        .get_env()
        .filter(|variable| std::env::var_os(variable).is_some())?;
    Some(variable.to_string_lossy().into_owned())
}

/// The definition as it is in this process's environment.
fn command() -> Command {
    let command = CommandLine::command().mut_subcommand("serve", ServeFlags::with_variables);
    // Help and man pages are the same wherever they are made, and show nobody's secrets.
    command.mut_subcommands(|command| command.mut_args(|arg| arg.hide_env_values(true)))
}

/// The options of `serve` alone, without a program name in front.
fn serve_command() -> Command {
    let command = Command::new("locknode serve")
        .no_binary_name(true)
        .disable_help_flag(true);
    ServeFlags::with_variables(ServeFlags::augment_args(command))
}

const EXAMPLES: &str = "\
Examples:
  locknode lab                       five nodes on this machine, to try things out
  locknode lab --chaos 7             clients that want one lock, and all that can go wrong
  locknode serve --bind 10.0.0.5 --requirepass \"$SECRET\"
  locknode status --nodes 10.0.0.5,10.0.0.6,10.0.0.7
  locknode run --nodes 10.0.0.5,10.0.0.6,10.0.0.7 --renew backup -- backup.sh
  locknode bench --addr 127.0.0.1:6379 --workload cycle-evalsha
  locknode sim                       a thousand simulated worlds with every fault

Exit codes: 0 done, 64 wrong usage, 69 unavailable (an address is taken, too few nodes),
70 internal error; lab, status, doctor, bench, sim, run, lock, extend and release add their own, see
their help.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        command().debug_assert();
        serve_command().debug_assert();
    }
}
