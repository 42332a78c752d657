//! The one definition of the command line: parsing, `--help`, shell completions and man pages come from it.

use std::ffi::OsString;
use std::io::Write as _;

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::failure::{Exit, Failure};

/// A lock node that speaks the Redis protocol, and tools around it.
#[derive(Debug, Parser)]
#[command(
    name = "locknode",
    version,
    about = "A lock node that speaks the Redis protocol, and tools around it",
    long_about = LONG_ABOUT,
    after_long_help = EXAMPLES,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true
)]
struct CommandLine {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run one lock node.
    #[command(long_about = crate::serve::LONG_ABOUT, after_long_help = crate::serve::EXAMPLES)]
    Serve(crate::serve::ServeFlags),
    /// Run a cluster of lock nodes in this process, to try things out.
    #[cfg(feature = "lab")]
    #[command(long_about = crate::lab::LONG_ABOUT, after_long_help = crate::lab::EXAMPLES)]
    Lab(crate::lab::LabFlags),
    /// Run a command while holding a lock.
    #[cfg(feature = "run")]
    #[command(long_about = crate::run::LONG_ABOUT, after_long_help = crate::run::EXAMPLES)]
    Run(crate::run::RunFlags),
    /// Acquire a lock and print its token.
    #[cfg(feature = "lock")]
    #[command(long_about = crate::lock::LOCK_LONG_ABOUT, after_long_help = crate::lock::LOCK_EXAMPLES)]
    Lock(crate::lock::LockFlags),
    /// Give a lock a new TTL.
    #[cfg(feature = "lock")]
    #[command(long_about = crate::lock::EXTEND_LONG_ABOUT, after_long_help = crate::lock::EXTEND_EXAMPLES)]
    Extend(crate::lock::ExtendFlags),
    /// Release a lock.
    #[cfg(feature = "lock")]
    #[command(long_about = crate::lock::RELEASE_LONG_ABOUT, after_long_help = crate::lock::RELEASE_EXAMPLES)]
    Release(crate::lock::ReleaseFlags),
    /// Show the state of a cluster's nodes, or of a lock on them.
    #[cfg(feature = "status")]
    #[command(long_about = crate::status::LONG_ABOUT, after_long_help = crate::status::EXAMPLES)]
    Status(crate::status::StatusFlags),
    /// Measure a node, or a Redis or Valkey server.
    #[cfg(feature = "bench")]
    #[command(long_about = crate::bench::LONG_ABOUT, after_long_help = crate::bench::EXAMPLES)]
    Bench(crate::bench::BenchFlags),
    /// Run simulated worlds with faults, and check them.
    #[cfg(feature = "sim")]
    #[command(long_about = crate::sim::LONG_ABOUT, after_long_help = crate::sim::EXAMPLES)]
    Sim(crate::sim::SimFlags),
    /// Print a completion script for a shell.
    #[cfg(feature = "completions")]
    #[command(after_long_help = crate::completions::EXAMPLES)]
    Completions(crate::completions::CompletionsFlags),
    /// Print the manual page, or write all pages to a directory.
    #[cfg(feature = "man")]
    #[command(after_long_help = crate::man::EXAMPLES)]
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
    let matches = match command().try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) => return answer(&error, &args),
    };
    let task = match Task::from_arg_matches(&matches) {
        Ok(task) => task,
        Err(error) => return answer(&error, &args),
    };
    match (task, matches.subcommand()) {
        (Task::Serve(_), Some((_, matches))) => {
            crate::serve::run(serve_command(), matches, args.get(2..).unwrap_or_default())
        }
        (Task::Serve(_), None) => Err(Failure::internal("the command line has no command")),
        #[cfg(feature = "lab")]
        (Task::Lab(flags), _) => crate::lab::run(&flags),
        #[cfg(feature = "run")]
        (Task::Run(flags), _) => crate::run::run(&flags),
        #[cfg(feature = "lock")]
        (Task::Lock(flags), _) => crate::lock::lock(&flags),
        #[cfg(feature = "lock")]
        (Task::Extend(flags), _) => crate::lock::extend(&flags),
        #[cfg(feature = "lock")]
        (Task::Release(flags), _) => crate::lock::release(&flags),
        #[cfg(feature = "status")]
        (Task::Status(flags), _) => crate::status::run(&flags),
        #[cfg(feature = "bench")]
        (Task::Bench(flags), _) => crate::bench::run(&flags),
        #[cfg(feature = "sim")]
        (Task::Sim(flags), _) => crate::sim::run(&flags),
        #[cfg(feature = "completions")]
        (Task::Completions(flags), _) => crate::completions::run(&flags, command()),
        #[cfg(feature = "man")]
        (Task::Man(flags), _) => crate::man::run(&flags, command()),
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
            // With standard error gone there is nobody left to tell; the exit code still says it.
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
    let is_given = |arg: &OsString| {
        let arg = arg.to_string_lossy();
        arg == flag
            || arg
                .strip_prefix(flag)
                .is_some_and(|rest| rest.starts_with('='))
    };
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

/// The definition as it is in this process' environment.
fn command() -> Command {
    let command = CommandLine::command().mut_subcommand("serve", deaf_to_service_links);
    // Help and man pages are the same wherever they are made, and show nobody's secrets.
    command.mut_subcommands(|command| command.mut_args(|arg| arg.hide_env_values(true)))
}

/// The options of `serve` alone, without a program name in front.
fn serve_command() -> Command {
    let command = Command::new("locknode serve")
        .no_binary_name(true)
        .disable_help_flag(true);
    deaf_to_service_links(crate::serve::ServeFlags::augment_args(command))
}

/// Kubernetes sets `LOCKNODE_PORT=tcp://10.0.0.1:6379` in every pod beside a service named `locknode`. That is not
/// our option, and must not keep a node from starting.
fn deaf_to_service_links(command: Command) -> Command {
    let is_link = |value: OsString| value.to_str().is_some_and(|value| value.contains("://"));
    if std::env::var_os("LOCKNODE_PORT").is_some_and(is_link) {
        return command.mut_arg("port", |port| port.env(Resettable::Reset));
    }
    command
}

const LONG_ABOUT: &str = "\
A lock node is a small server that holds locks and nothing else. Any Redis client can take a lock
on it (SET key token NX PX ttl), release it and extend it, with the scripts and commands that lock
libraries use. Redlock libraries take a lock on the majority of several independent nodes.

locknode serves, tries out, looks at and measures such nodes, and runs commands while it holds a
lock on them.";

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
70 internal error; lab, status, bench, sim, run, lock, extend and release add their own, see
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
