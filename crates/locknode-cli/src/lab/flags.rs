//! The flags of `locknode lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, ValueEnum};
use locknode_testkit::Guarding;

use crate::duration;

/// What is to be tried out.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("happening").args(["faults", "script", "chaos"]).multiple(true)))]
pub(crate) struct LabFlags {
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=NODES_MAX))]
    #[arg(long_help = "Number of nodes, 1 to 100; with faults 16 at most.\n\n\
        A Redlock client takes a lock on a majority of them: 3 of 5. An even number tolerates no\n\
        more lost nodes than the odd one below it.")]
    pub(super) nodes: u16,

    /// Port of the first node, the others follow; 0 for any free ones [default: 7101]
    #[arg(long)]
    #[arg(
        long_help = "Port of the first node, the others follow; 0 for any free ones. Default 7101; with\n\
        --chaos any free ones."
    )]
    pub(super) port: Option<u16>,

    /// Threads that serve all nodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX))]
    #[arg(conflicts_with = "happening")]
    pub(super) threads: u16,

    /// Longest TTL that rides on the restart guard; locks with a longer one, or none, are written to disk
    #[arg(long, value_name = "DURATION", default_value = "60s")]
    #[arg(value_parser = parse_max_ttl, conflicts_with_all = ["chaos", "script"])]
    #[arg(
        long_help = "Longest TTL that rides on the restart guard, 1ms to 24h; locks with a longer one, or none, are\n\
        written to a temporary directory before they are granted.\n\n\
        A node that comes back from a crash and has lost its disk stays out of every lock for so long."
    )]
    pub(super) max_ttl: Duration,

    /// off: nodes serve at once after a crash, with everything forgotten, as Redis does
    #[arg(long, value_name = "on|off", hide_possible_values = true)]
    #[arg(
        long_help = "off: nodes serve at once after a crash, with everything forgotten, as Redis does.\n\n\
        With --script, on is for scenarios that are without: other guards stay as they are."
    )]
    pub(super) restart_guard: Option<Guard>,

    /// Let any client break things with the command FAULT; see FAULT HELP
    #[arg(long, help_heading = FAULTS)]
    #[arg(long_help = "Let any client break things with the command FAULT.\n\n\
        It crashes and restarts nodes, cuts links, loses, delays and doubles messages, stops\n\
        processes and bends clocks: redis-cli -p 7101 FAULT HELP tells how.")]
    pub(super) faults: bool,

    /// Play the faults and clients of a scenario file, and judge what came of it
    #[arg(long, value_name = "FILE", help_heading = FAULTS)]
    #[arg(conflicts_with_all = ["chaos", "nodes"])]
    pub(super) script: Option<PathBuf>,

    /// Let clients contend for a lock while everything goes wrong that this seed decides
    #[arg(long, value_name = "SEED", help_heading = FAULTS)]
    #[arg(
        long_help = "Let clients contend for a lock while everything goes wrong that this seed decides.\n\n\
        Nodes are killed and restarted, links cut, replies lost, messages delayed, processes\n\
        stopped. At the end the verdict: did two clients ever hold the lock at once? The same seed\n\
        does the same faults again; the clients' luck is new each time."
    )]
    pub(super) chaos: Option<u64>,

    /// Clients with links of their own [default: 8 with --chaos, otherwise 1]
    #[arg(long, value_name = "N", help_heading = FAULTS)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=16))]
    #[arg(requires = "happening", conflicts_with = "script")]
    #[arg(
        long_help = "Clients with links of their own, 1 to 16. Default 8 with --chaos, otherwise 1.\n\n\
        With --chaos they are clients of this process. With --faults each has ports of its own,\n\
        for any number of programs, and FAULT CUT CLIENT 1 cuts off those that use its ports."
    )]
    pub(super) clients: Option<u8>,

    /// How long the chaos lasts
    #[arg(long = "for", value_name = "DURATION", default_value = "20s", help_heading = FAULTS)]
    #[arg(value_parser = parse_run_for, requires = "chaos")]
    pub(super) run_for: Duration,

    /// TTL of the locks that the chaos is about
    #[arg(long, value_name = "DURATION", default_value = "1s", help_heading = FAULTS)]
    #[arg(value_parser = parse_ttl, requires = "chaos")]
    pub(super) ttl: Duration,

    /// File for the picture [default: locknode-chaos-SEED.html or locknode-SCRIPT.html]
    #[arg(long, value_name = "FILE", help_heading = FAULTS)]
    #[arg(requires = "happening")]
    #[arg(
        long_help = "File for the picture of what happened, written at the end. With --faults alone none is drawn\n\
        unless this is given. Default locknode-chaos-SEED.html with --chaos and\n\
        locknode-SCRIPT.html with --script, after the name of the file; without restart guard\n\
        locknode-chaos-SEED-guard-off.html and locknode-SCRIPT-guard-off.html."
    )]
    pub(super) timeline: Option<PathBuf>,

    /// File for all that happened, as lines of JSON, for other checkers
    #[arg(long, value_name = "FILE", help_heading = FAULTS)]
    #[arg(requires = "happening")]
    #[arg(
        long_help = "File for all that happened, as lines of JSON, for other checkers; written at the end.\n\n\
        What clients of other programs held is read off the messages between them and the nodes."
    )]
    pub(super) history: Option<PathBuf>,
}

/// Whether nodes guard their restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Guard {
    On,
    Off,
}

impl LabFlags {
    /// Whether anything is to go wrong.
    pub(super) const fn has_faults(&self) -> bool {
        self.faults || self.script.is_some() || self.chaos.is_some()
    }

    /// Whether nodes forget everything in a crash.
    pub(super) fn is_unguarded(&self) -> bool {
        self.restart_guard == Some(Guard::Off)
    }

    /// The port of the first node; 0 for any free ones.
    pub(super) fn first_port(&self) -> u16 {
        let default = if self.chaos.is_some() { 0 } else { PORT };
        self.port.unwrap_or(default)
    }

    /// How nodes guard their restarts, when that was said.
    pub(super) fn guard(&self) -> Option<Guarding> {
        Some(match self.restart_guard? {
            Guard::On => Guarding::Memory,
            Guard::Off => Guarding::Off,
        })
    }
}

fn parse_run_for(text: &str) -> Result<Duration, String> {
    within(
        text,
        Duration::from_secs(1),
        Duration::from_secs(600),
        "1s to 10m",
    )
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    within(
        text,
        Duration::from_millis(100),
        Duration::from_secs(60),
        "100ms to 60s",
    )
}

fn parse_max_ttl(text: &str) -> Result<Duration, String> {
    within(
        text,
        Duration::from_millis(1),
        Duration::from_secs(86_400),
        "1ms to 24h",
    )
}

fn within(text: &str, low: Duration, high: Duration, range: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    match (low..=high).contains(&duration) {
        true => Ok(duration),
        false => Err(format!("it can be {range}")),
    }
}

const FAULTS: &str = "Faults";

/// Next to Redis' port and its cluster's, and nobody's.
const PORT: u16 = 7101;

/// More than any cluster on which a majority makes sense.
const NODES_MAX: i64 = 100;

/// More threads than nodes would be idle.
const THREADS_MAX: i64 = NODES_MAX;

pub(crate) const LONG_ABOUT: &str = "\
Run a cluster of lock nodes in this process, to try things out and to break them.

The nodes listen on 127.0.0.1 only, start empty and serve at once, because nobody can hold a lock of
theirs yet. Each has a temporary data directory (below TMPDIR, or /tmp), so that they grant what a
node with --dir grants: any TTL, and locks without one. It is removed when the lab ends, and all that
the nodes granted ends with it.

On a terminal a table shows each node's state, keys, commands per second and connections;
elsewhere a line is printed when something changes, at most every 5 seconds.

With --faults any client can break things by the command FAULT. --chaos lets clients of its own
contend for a lock while nodes crash and links fail, and --script plays a file of such faults, with
clients of its own or of any other program. All end with a verdict: did two clients hold a lock at
once? What other programs held is read off the messages between them and the nodes: a token that a
majority of the nodes has granted is a holder. What did not go through the lab's ports is not judged.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  locknode lab                       five nodes on ports 7101 to 7105
  locknode lab --nodes 3 --port 0    three nodes on free ports, for a test-suite
  locknode lab --chaos 7             20 seconds of everything that can go wrong
  locknode lab --chaos 7 --restart-guard off
                                     the same with nodes that forget, as Redis does
  locknode lab --faults              then, from any client: redis-cli -p 7103 FAULT CRASH FOR 5s
  locknode lab --faults --timeline seen.html --history seen.jsonl
                                     the same, with a picture and a history of what clients did

Exit codes: 0 done, 1 a promise was broken, such as two clients that held a lock at once, 64 wrong
usage, 69 a port is taken or a file cannot be used, 70 internal error.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_out_of_range_are_refused_with_the_range() {
        assert_eq!(parse_run_for("20s"), Ok(Duration::from_secs(20)));
        for (text, range) in [
            ("0s", "1s to 10m"),
            ("11m", "1s to 10m"),
            ("20", "with its unit"),
        ] {
            let error = parse_run_for(text).unwrap_err();
            assert!(error.contains(range), "{text}: {error}");
        }
    }
}
