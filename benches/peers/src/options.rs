//! The command line.

use std::path::PathBuf;

use clap::value_parser;

/// Runs a lock node beside Redis and Valkey servers, interleaved, and prints ratios
///
/// Environment: BENCH_PEERS_VERBOSE=1 shows why rounds are disturbed and what servers complain about.
///
/// Columns: cost/op is server CPU per command, all threads and the kernel's part, in ns (bytes per lock in the memory
/// row). 'x first' is this line against the first line of its row, taken within each round, median and spread: cost of
/// this by cost of the first, and throughput of the first by throughput of this; above 1 this line is the worse one.
/// 'x floor' is cost of this by cost of the floor, a bare tokio server that decodes the same requests and answers each with
/// the bytes of a granted lock: what is above 1 is the server's own.
/// syncs/s is what a lock node counts. The load generator checks every reply; a wrong one voids the whole run.
///
/// Rows, 50 connections, 30 byte keys, 32 byte tokens:
///   cycle-evalsha P1, P16    SET NX PX, then the release script by EVALSHA; nothing kept, restart guard off
///   cycle-delex, -delifeq    the same with the release command of newer servers
///   set P1, P16              SET NX PX on fresh keys
///   memory per lock          resident bytes per lock held
///   guard cycle P1, P16      cycle-evalsha, TTL 30 s within max-ttl: restart guard off, on with --dir, on without.
///                            Target: at most 1.02 x the cost of off
///   fence cycle P1, P16      one node, guard off: SET NX PX and DELIFEQ, SET NX PX and EVALSHA, LOCK.ACQUIRE and LOCK.RELEASE,
///                            the same with FLOOR
///   durable set P1, P16      SET NX PX on fresh keys, TTL 30 s, every grant on disk before its reply: --durability always
///                            against --appendonly yes --appendfsync always (without rewrites of the file, which favours the
///                            peer). Bound by syncs, so throughput is the figure; target 1.5 x at pipeline 1, 4 x at 16
///   durable cycle P1, P16    the same with cycle-evalsha
///   disk                     bytes in the data directory before and after cycles of TTL 30 s, most of them while it was
///                            filled, and syncs: with the guard (constant, about one sync per slack of 1.9 s and per 2^20
///                            grants of one counter), and with --durability always (constant by compaction)
///   restart                  a stop with locks held, TTL 10 min: how long the stop takes, then the time from exec to the
///                            first PONG and to the first granted lock, with warm caches. A node's snapshot and Redis'
///                            RDB after a clean stop, an append-only file, and a node's log after SIGKILL. Void if a lock is missing
#[derive(Debug, clap::Parser)]
#[command(name = "scripts/bench-peers", verbatim_doc_comment)]
pub(crate) struct Options {
    /// Rounds per row; rows of the section guard take three times as many
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    #[arg(default_value = "5", default_value_if("smoke", "true", "1"))]
    pub(crate) rounds: u32,

    /// Commands per run at pipeline 1; four times as many at pipeline 16
    #[arg(long, value_name = "N")]
    #[arg(default_value = "200000", default_value_if("smoke", "true", "4000"))]
    pub(crate) operations: u64,

    /// Locks held when memory is measured; 0 leaves it out
    #[arg(long, value_name = "N")]
    #[arg(default_value = "1000000", default_value_if("smoke", "true", "20000"))]
    pub(crate) memory_locks: u64,

    /// Locks held over a restart
    #[arg(long, value_name = "N")]
    #[arg(default_value = "1000000", default_value_if("smoke", "true", "20000"))]
    pub(crate) restart_locks: u64,

    /// Cycles after which the data directory is measured
    #[arg(long, value_name = "N")]
    #[arg(default_value = "1000000", default_value_if("smoke", "true", "20000"))]
    pub(crate) disk_cycles: u64,

    /// Where data directories are made and removed: a real file system
    #[arg(long, value_name = "DIR", default_value = "target")]
    pub(crate) data_dir: PathBuf,

    /// Rows whose name contains WORDS, and sections or rows of sections that begin with them
    #[arg(long, value_name = "WORDS,...", value_delimiter = ',')]
    only: Vec<String>,

    /// One more server beside the redis-server and valkey-server in PATH; may be repeated
    #[arg(long = "server", value_name = "NAME=PATH", value_parser = locknode_peers::pair)]
    pub(crate) servers: Vec<(String, String)>,

    /// One short round of everything, disturbed or not: shows that it works, the figures say nothing
    #[arg(long)]
    pub(crate) smoke: bool,

    /// The binary with serve and bench (the script gives it)
    #[arg(long, value_name = "PATH", default_value = "target/release/locknode")]
    pub(crate) locknode: String,

    /// The bare server that is the floor (the script gives it)
    #[arg(
        long,
        value_name = "PATH",
        default_value = "target/release/locknode-floor"
    )]
    pub(crate) floor: String,
}

impl Options {
    /// Whether to measure a row of a section; the first section has no name.
    pub(crate) fn selects(&self, section: &str, row: &str) -> bool {
        let meets = |words: &String| match section {
            "" => row.contains(words),
            _ => row.starts_with(words),
        };
        self.only.is_empty() || self.only.iter().any(meets)
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    fn options(args: &[&str]) -> Options {
        Options::parse_from([&["bench-peers"], args].concat())
    }

    #[test]
    fn rows_are_selected_by_words_and_sections_by_their_beginning() {
        Options::command().debug_assert();
        for (only, section, row, expected) in [
            ("set P1", "", "set P16", true),
            ("P16", "", "set P16", true),
            ("set", "durable", "durable set P1", false),
            ("durable", "durable", "durable set P1", true),
            ("guard,disk", "disk", "disk", true),
            ("guard,disk", "", "set P1", false),
        ] {
            assert_eq!(
                options(&["--only", only]).selects(section, row),
                expected,
                "{only:?} {row:?}"
            );
        }
    }

    #[test]
    fn a_smoke_run_is_small_where_nothing_else_is_asked_for() {
        let options = options(&["--smoke", "--operations", "7"]);
        assert_eq!((options.rounds, options.operations), (1, 7));
    }
}
