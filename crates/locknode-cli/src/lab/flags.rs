//! The flags of `locknode lab`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, ValueEnum};
use locknode::NodeBuilder;
use locknode_testkit::GuardMode;

use crate::duration;

/// The flags.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("scenario").args(["faults", "script", "chaos"]).multiple(true)))]
pub(crate) struct LabFlags {
    /// Number of nodes
    ///
    /// 1 to 100; with faults 16 at most. A Redlock client acquires a lock on a majority of them:
    /// 3 of 5. An even number tolerates no more lost nodes than the odd number below it.
    #[arg(verbatim_doc_comment, long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=NODES_MAX))]
    pub(super) nodes: u16,

    /// Port of the first node, the others follow; 0 for any free ones [default: 7101]
    ///
    /// With --chaos the default is 0.
    #[arg(verbatim_doc_comment, long)]
    pub(super) port: Option<u16>,

    /// Threads that serve all nodes
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=THREADS_MAX))]
    #[arg(conflicts_with = "scenario")]
    pub(super) threads: u16,

    /// Longest TTL that the restart guard covers; locks with a longer one, or none, are written to disk
    ///
    /// 1ms to 24h. Locks with a longer one, or none, are written to a temporary directory before they
    /// are granted.
    ///
    /// A node that has lost its disk in a crash refuses locks for this time after its restart.
    #[arg(
        verbatim_doc_comment,
        long,
        value_name = "DURATION",
        default_value = "60s"
    )]
    #[arg(value_parser = parse_max_ttl, conflicts_with_all = ["chaos", "script"])]
    pub(super) max_ttl: Duration,

    /// off: after a crash a node has forgotten its locks and serves at once, as Redis does
    ///
    /// With --script, on gives a guard to a scenario without one; other guards stay as they are.
    #[arg(
        verbatim_doc_comment,
        long,
        value_name = "on|off",
        hide_possible_values = true
    )]
    pub(super) restart_guard: Option<Guard>,

    /// Let any client inject faults with the command FAULT; see FAULT HELP
    ///
    /// It crashes and restarts nodes, cuts links, drops, delays and duplicates messages, pauses
    /// processes and changes clocks: redis-cli -p 7101 FAULT HELP lists its forms.
    #[arg(verbatim_doc_comment, long, help_heading = FAULTS)]
    pub(super) faults: bool,

    /// Play the faults and clients of a scenario file, and judge the outcome
    #[arg(long, value_name = "FILE", help_heading = FAULTS)]
    #[arg(conflicts_with_all = ["chaos", "nodes"])]
    pub(super) script: Option<PathBuf>,

    /// Let clients contend for a lock under the faults of this seed
    ///
    /// Nodes crash and restart, links are cut, messages are lost, late, doubled and refused,
    /// processes are paused. At the end comes the verdict: did two clients ever hold the lock at
    /// once? The same seed injects the same faults again; how the clients fare differs.
    #[arg(verbatim_doc_comment, long, value_name = "SEED", help_heading = FAULTS)]
    pub(super) chaos: Option<u64>,

    /// Clients with links of their own [default: 8 with --chaos, otherwise 1]
    ///
    /// 1 to 16. With --chaos they are clients of this process. With --faults each has ports of its own,
    /// for any number of programs, and FAULT CUT CLIENT 1 cuts off those that use its ports.
    #[arg(verbatim_doc_comment, long, value_name = "N", help_heading = FAULTS)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=16))]
    #[arg(requires = "scenario", conflicts_with = "script")]
    pub(super) clients: Option<u8>,

    /// How long the chaos lasts
    #[arg(long = "for", value_name = "DURATION", default_value = "20s", help_heading = FAULTS)]
    #[arg(value_parser = parse_run_for, requires = "chaos")]
    pub(super) run_for: Duration,

    /// TTL of the lock that the clients contend for
    #[arg(long, value_name = "DURATION", default_value = "1s", help_heading = FAULTS)]
    #[arg(value_parser = parse_ttl, requires = "chaos")]
    pub(super) ttl: Duration,

    /// File for the timeline [default: locknode-chaos-SEED.html or locknode-SCRIPT.html]
    ///
    /// The timeline is a page for a browser, written at the end. SCRIPT is the name of the file of
    /// --script; without restart guard the defaults are locknode-chaos-SEED-guard-off.html and
    /// locknode-SCRIPT-guard-off.html. With --faults alone there is no default and no timeline.
    #[arg(verbatim_doc_comment, long, value_name = "FILE", help_heading = FAULTS)]
    #[arg(requires = "scenario")]
    pub(super) timeline: Option<PathBuf>,

    /// File for the history, a line of JSON for each event, for other checkers
    ///
    /// It is written at the end. What other programs held is inferred from the messages between them
    /// and the nodes.
    #[arg(verbatim_doc_comment, long, value_name = "FILE", help_heading = FAULTS)]
    #[arg(requires = "scenario")]
    pub(super) history: Option<PathBuf>,
}

/// Whether nodes guard their restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Guard {
    On,
    Off,
}

impl LabFlags {
    /// Whether there may be faults.
    pub(super) const fn has_faults(&self) -> bool {
        self.faults || self.script.is_some() || self.chaos.is_some()
    }

    /// The port of the first node; 0 for any free ones.
    pub(super) fn first_port(&self) -> u16 {
        let default = if self.chaos.is_some() { 0 } else { PORT };
        self.port.unwrap_or(default)
    }

    /// How nodes guard their restarts, if the flag is given.
    pub(super) fn guard(&self) -> Option<GuardMode> {
        Some(match self.restart_guard? {
            Guard::On => GuardMode::Memory,
            Guard::Off => GuardMode::Off,
        })
    }
}

fn parse_run_for(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, Duration::from_secs(1)..=Duration::from_secs(600))
}

fn parse_ttl(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, Duration::from_millis(100)..=Duration::from_secs(60))
}

fn parse_max_ttl(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, Duration::from_millis(1)..=NodeBuilder::MAX_TTL_MAX)
}

const FAULTS: &str = "Faults";

/// Near the ports of Redis, and not in use by any other server.
const PORT: u16 = 7101;

/// More than any cluster in which a majority makes sense.
const NODES_MAX: i64 = 100;

/// More threads than nodes would be idle.
const THREADS_MAX: i64 = NODES_MAX;

pub(crate) const LONG_ABOUT: &str = "\
Run a cluster of lock nodes in this process, to try things out and to break them.

The nodes listen on 127.0.0.1 only, start empty and serve at once, because nobody can hold a lock of
theirs yet. Each has a temporary data directory (below TMPDIR, or /tmp), so they grant what a node
with --dir grants: locks with any TTL, and without one. The directories are removed when the lab
ends, and all locks end with it.

On a terminal a table shows the state, keys, commands per second and connections of each node;
elsewhere the lab writes a line when something changes, at most every 5 seconds.

With --faults any client can inject faults by the command FAULT. --chaos lets clients of its own
contend for a lock while nodes crash and links fail, and --script plays such faults from a file, with
clients of its own or in other programs. All three end with a verdict: did two clients hold a lock at
once? What other programs held is inferred from the messages between them and the nodes: a token that
a majority of the nodes has granted is a holder. Traffic that bypasses the lab's ports is not judged.";

pub(crate) const EXAMPLES: &str = "\
Examples:
  locknode lab                       five nodes on ports 7101 to 7105
  locknode lab --nodes 3 --port 0    three nodes on free ports, for a test-suite
  locknode lab --chaos 7             20 seconds of faults of every kind
  locknode lab --chaos 7 --restart-guard off
                                     the same on nodes that forget, as Redis does
  locknode lab --faults              then, from any client: redis-cli -p 7103 FAULT CRASH FOR 5s
  locknode lab --faults --timeline seen.html --history seen.jsonl
                                     the same, with a timeline and a history

Exit codes: 0 done, 1 a promise was broken, for example two clients held a lock at once, 64 wrong
usage, 69 a port is taken or a file cannot be used, 70 internal error.";
