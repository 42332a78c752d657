//! The command line of `locknode bench`.

use std::path::PathBuf;
use std::time::Duration;

use super::workload::Workload;
use crate::connect_flags::ConnectFlags;
use crate::duration;

/// Measure a node, or a Redis or Valkey server
///
/// Checks every reply. With --against it compares several servers.
///
/// Each connection sends a pipeline of commands, waits for all replies, and sends the next one. An
/// error or a wrong reply makes the run void: exit code 1, and the reply is shown.
///
/// The CPU time of a server is counted where its process runs on this machine. The load generator costs
/// about as much CPU as the server: where they share cores, compare CPU per command rather than
/// throughput or latency. The results of --against say which figures to trust.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct BenchFlags {
    /// The server: host:port, unix:PATH or redis://user:password@host:port, rediss:// for TLS
    ///
    /// Without it a node is started for the time of the run, in a process of its own.
    #[arg(long, verbatim_doc_comment)]
    pub(super) addr: Option<String>,

    /// Another server, measured in turn with the first and compared with it; may be repeated
    ///
    /// Each round sends the load to every server, one after the other, and every second round in reverse.
    /// Ratios are taken within a round.
    #[arg(long, value_name = "ADDR", verbatim_doc_comment)]
    pub(super) against: Vec<String>,

    #[command(flatten)]
    pub(super) connect: ConnectFlags,

    /// Rounds of --against
    #[arg(long, value_name = "N", default_value_t = 15, requires = "against")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=ROUNDS_MAX))]
    pub(super) rounds: u32,

    /// Draw the comparison: CPU per command and latencies, as SVG
    #[arg(long, value_name = "FILE", requires = "against")]
    pub(super) svg: Option<PathBuf>,

    /// What to send
    #[arg(long, value_enum, value_name = "NAME", default_value_t = Workload::CycleEvalsha)]
    pub(super) workload: Workload,

    /// Connections; each waits for its replies before it sends more
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    pub(super) connections: u64,

    /// Commands that a connection sends before it waits, 1 to 1000
    ///
    /// The acquires of a pipeline are sent together, and when all are granted their releases.
    #[arg(long, value_name = "N", default_value_t = 1, verbatim_doc_comment)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=PIPELINE_MAX))]
    pub(super) pipeline: u64,

    /// Different keys that the cycles use
    ///
    /// At least connections x pipeline are needed, four times as many for mixed.
    /// Each connection has its own share, so that every lock is free when it is asked for. The
    /// workload set always uses new keys.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=KEYS_MAX), verbatim_doc_comment)]
    pub(super) keys: u64,

    /// Length of a key in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u64).range(KEY_LEN_MIN..=LEN_MAX))]
    pub(super) key_size: u64,

    /// Length of a token in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 32)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=LEN_MAX))]
    pub(super) token_size: u64,

    /// TTL of a lock
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_positive)]
    pub(super) ttl: Duration,

    /// Commands to send and count; with --against to each server in each round
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) requests: Option<u64>,

    /// Time to send and count [default: 10s; with --against at most 0.9s for each server in each round, 40s in all]
    #[arg(long, value_name = "DURATION", value_parser = parse_positive)]
    pub(super) duration: Option<Duration>,

    /// Time to send before counting [default: 1s; with --against a ninth of the duration; with --requests 0s]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub(super) warmup: Option<Duration>,

    /// Threads of the load generator
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=THREADS_MAX))]
    pub(super) threads: u64,

    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,

    /// Be the node that is measured without --addr
    #[arg(long, hide = true)]
    pub(super) as_node: bool,
}

impl BenchFlags {
    /// The threads that have a connection.
    pub(super) fn load_threads(&self) -> u64 {
        self.threads.min(self.connections)
    }

    /// The load in words.
    pub(super) fn describe(&self) -> String {
        format!(
            "{} connections, pipeline {}, load threads: {}, {} keys of {} B, tokens of {} B, TTL {} ms",
            self.connections,
            self.pipeline,
            self.load_threads(),
            self.keys,
            self.key_size,
            self.token_size,
            self.ttl.as_millis(),
        )
    }

    /// The flags that a test gives.
    #[cfg(test)]
    pub(super) fn of(args: &str) -> Self {
        use clap::{Args as _, FromArgMatches as _};
        let command = Self::augment_args(clap::Command::new("bench").no_binary_name(true));
        let matches = command.try_get_matches_from(args.split_whitespace());
        Self::from_arg_matches(&matches.expect("valid flags")).expect("valid flags")
    }
}

fn parse_positive(text: &str) -> Result<Duration, String> {
    let duration = duration::parse(text)?;
    if duration.is_zero() || duration > DURATION_MAX {
        return Err("must be within 1ms and 24h".to_owned());
    }
    Ok(duration)
}

/// More than enough for quartiles.
const ROUNDS_MAX: i64 = 1000;

/// More than the ephemeral ports towards one address allow.
const CONNECTIONS_MAX: u64 = 100_000;

/// The replies to that many commands fit into a socket's buffers, so that neither side waits for the other for ever.
const PIPELINE_MAX: u64 = 1000;

/// The walk over the keys has a step above that.
const KEYS_MAX: u64 = 1 << 32;

/// The digits of the run and of the key.
const KEY_LEN_MIN: u64 = 24;

/// Longer keys and tokens measure only the copying of bytes.
const LEN_MAX: u64 = 4096;

/// More than the cores that one server can keep busy.
const THREADS_MAX: u64 = 256;

/// A day: nothing is learnt from longer runs or TTLs.
const DURATION_MAX: Duration = Duration::from_secs(24 * 3600);

const EXAMPLES: &str = "\
Examples:
  locknode bench                                         a node of its own, acquire and release
  locknode bench --against 127.0.0.1:6379 --svg gain.svg what would a node cost beside that Redis? 30 s
  locknode bench --addr 127.0.0.1:7101 --against 127.0.0.1:6379 --against unix:/run/valkey.sock --pipeline 16
  locknode bench --addr 127.0.0.1:6379 --workload cycle-delex --pipeline 16
  locknode bench --addr unix:/run/locknode.sock --requests 1000000 --json

Locks that `set` leaves behind expire after --ttl.

Exit codes: 0 the run counts; 1 it is void; 64 wrong usage; 69 a server cannot be measured.";
