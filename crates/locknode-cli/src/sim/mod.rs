//! `locknode sim`: runs thousands of simulated worlds, each from one seed, and checks each.
//!
//! Worlds, faults and checkers are in `locknode-testkit`. This module runs them on threads, counts them,
//! and writes down each violation: a scenario that replays it, and a picture.

mod catalog;
mod coverage;
mod evidence;
mod exploration;
mod figures;
mod inspection;
mod interrupt;
mod progress;
mod replay;
mod seeds;
mod swarm_flags;
mod tally;
mod verdict;
mod violations;

use std::num::NonZero;
use std::path::PathBuf;
use std::thread;

use self::exploration::Exploration;
use self::seeds::Seeds;
use self::swarm_flags::SwarmFlags;
use crate::failure::{Exit, Failure};
use crate::output;

/// The flags of `locknode sim`.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("task").multiple(false))]
pub(crate) struct SimFlags {
    /// Seeds to run, one world each [default: 0..1000]
    ///
    /// For example 0..10000, or equally 0..=9999. A seed gives the same world, event by event, on any
    /// machine.
    #[arg(long, value_name = "FIRST..END", group = "task", value_parser = Seeds::parse)]
    #[arg(verbatim_doc_comment)]
    seeds: Option<Seeds>,

    /// One seed to run
    #[arg(long, value_name = "N", group = "task")]
    seed: Option<u64>,

    /// Run a scenario file instead; - for standard input
    ///
    /// Such a file is written after a broken promise. It has the setup, the operations, the faults and
    /// the seed, so it gives the same world, event by event, on any machine. It is text, which you can
    /// edit.
    #[arg(long, value_name = "FILE", group = "task", conflicts_with_all = OF_A_SWARM)]
    #[arg(verbatim_doc_comment)]
    replay: Option<PathBuf>,

    /// Print the scenario of a seed without running it
    #[arg(long, value_name = "SEED", group = "task")]
    #[arg(conflicts_with_all = ["timeline", "history", "check_determinism", "coverage", "keep_going", "threads", "json", "out"])]
    print: Option<u64>,

    /// List the bugs for --bug
    #[arg(long, group = "task")]
    list_bugs: bool,

    /// List the faults for --faults
    #[arg(long, group = "task")]
    list_faults: bool,

    #[command(flatten)]
    swarm: SwarmFlags,

    /// Number of threads [default: one per core]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX))]
    threads: Option<u16>,

    /// Continue after a world that broke a promise
    ///
    /// Such worlds are counted. Without it the run stops, and reports the lowest such seed, with any
    /// number of threads.
    #[arg(verbatim_doc_comment, long)]
    keep_going: bool,

    /// Run each world twice and compare all events
    #[arg(long)]
    check_determinism: bool,

    /// Print how often each fault and state occurred, and which never did
    #[arg(long)]
    coverage: bool,

    /// Fail if the hash of all events differs
    ///
    /// The exit code is 65. It is then another world, for example because the program has another
    /// version.
    #[arg(long, value_name = "HASH", requires = "replay", value_parser = parse_hash)]
    #[arg(verbatim_doc_comment)]
    expect: Option<u64>,

    /// Write a picture of the world to this file
    ///
    /// HTML, for a browser. It shows the world that broke a promise, or else that of the first seed.
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    timeline: Option<PathBuf>,

    /// Write all events of the world to this file, as lines of JSON
    ///
    /// One object per line, for other checkers and your own pictures. History::json_lines of the crate
    /// locknode-testkit documents the events and their fields.
    ///
    /// It is the world that broke a promise, or else that of the first seed.
    #[arg(verbatim_doc_comment, long, value_name = "FILE")]
    history: Option<PathBuf>,

    /// Directory for the scenario and the picture of a broken promise
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        conflicts_with = "replay"
    )]
    out: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs worlds, or prints lists and scenarios.
///
/// # Errors
///
/// If flags contradict each other, or a file cannot be read or written.
pub(crate) fn run(flags: &SimFlags) -> Result<Exit, Failure> {
    let printed = |text: &str| output::write(text).map(|()| Exit::Success);
    if flags.list_bugs {
        return printed(&catalog::bugs());
    }
    if flags.list_faults {
        return printed(&catalog::faults());
    }
    if let Some(file) = &flags.replay {
        return replay::run(flags, file);
    }
    let swarm = flags.swarm.swarm()?;
    if let Some(seed) = flags.print {
        return printed(&swarm.scenario(seed).to_string());
    }
    let exploration = Exploration {
        seeds: flags.seeds(),
        threads: flags.threads(),
        keeps_going: flags.keep_going,
        is_twice: flags.check_determinism,
        run_for: flags.swarm.run_for,
        swarm,
    };
    verdict::explore(flags, &exploration)
}

impl SimFlags {
    fn seeds(&self) -> Seeds {
        let seed = self.seed.map(Seeds::one);
        seed.or(self.seeds).unwrap_or(Seeds::DEFAULT)
    }

    fn threads(&self) -> u16 {
        let cores = || {
            let cores = thread::available_parallelism().map_or(1, NonZero::get);
            u16::try_from(cores).unwrap_or(u16::MAX).clamp(1, CORES_MAX)
        };
        self.threads.unwrap_or_else(cores)
    }
}

fn parse_hash(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_hash =
        digits.len() == HASH_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hash = u64::from_str_radix(digits, 16).ok().filter(|_| is_hash);
    hash.ok_or_else(|| "a hash is 16 hexadecimal digits, as printed by a run".to_owned())
}

/// Flags that a scenario file replaces.
const OF_A_SWARM: [&str; 10] = [
    "clients",
    "nodes",
    "ttl",
    "guard",
    "faults",
    "client",
    "bug",
    "run_for",
    "keep_going",
    "threads",
];

/// More than the cores of any machine tried so far.
const THREADS_MAX: i64 = 1024;

/// The same, for the number that the system reports.
const CORES_MAX: u16 = 1024;

/// Of 64 bits.
const HASH_DIGITS: usize = 16;

pub(crate) const LONG_ABOUT: &str = "\
Run simulated worlds, and check that each keeps the promises.

A world is five nodes and three clients for a minute: the shipped code of node and client on
simulated clocks, disks and links. Its seed decides what the clients do and which faults occur:
crashes, power losses, lost disks, partitions, lost and late messages, pauses, clocks. In the last
third of a world nothing breaks, and nodes must grant locks again. Each world is checked for: one
holder at a time, fencing tokens in order, no extension over a later holder, a majority behind each
holder, progress, and the rules for a single node.

If a world breaks a promise, its scenario is shrunk as far as it still does, and written to a file
that replays it, event by event, on any machine.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  locknode sim                                      a thousand worlds
  locknode sim --seeds 0..10000 --clients 8 --faults crash,power-loss,partition
  locknode sim --bug quarantine-off                 plant a bug, which must be found
  locknode sim --seed 7 --timeline world.html       one world, and a picture of it
  locknode sim --print 7 > world.txt                the same world as text, to edit
  locknode sim --replay world.txt --timeline world.html

Exit codes: 0 every promise was kept, or with --bug the bug was found; 1 a promise was broken, or
the bug was not found; 64 wrong usage; 65 a world differed when it ran again (--expect,
--check-determinism); 69 a file cannot be read or written; 130 ended by Ctrl-C.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_sixteen_hexadecimal_digits() {
        for (text, expected) in [
            ("00000000000000ff", Some(255)),
            ("0x00000000000000FF", Some(255)),
            ("ff", None),
            ("", None),
            ("+0000000000000ff", None),
            ("00000000000000fg", None),
            ("00000000000000ff0", None),
        ] {
            assert_eq!(parse_hash(text).ok(), expected, "{text:?}");
        }
    }
}
