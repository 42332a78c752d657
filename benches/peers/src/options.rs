//! The command line.

use std::path::{Path, PathBuf};

/// The command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// The binary with `serve` and `bench`.
    pub(crate) locknode: String,
    /// Extra servers as `name=path`; `redis-server` and `valkey-server` from PATH are found without it.
    pub(crate) servers: Vec<(String, String)>,
    pub(crate) rounds: usize,
    /// Operations per run at pipeline 1; a pipelined run does four times as many.
    pub(crate) operations: u64,
    /// Locks held when memory is measured; 0 leaves memory out.
    pub(crate) memory_locks: u64,
    /// Locks held over a restart.
    pub(crate) restart_locks: u64,
    /// Cycles after which the data directory is measured.
    pub(crate) disk_cycles: u64,
    /// Where servers keep what they keep.
    pub(crate) data_dir: PathBuf,
    /// Whether this only shows that everything works.
    pub(crate) is_smoke: bool,
    only: Option<String>,
}

impl Options {
    /// Reads the command line; `None` when it asks for help.
    pub(crate) fn from_args(
        mut args: impl Iterator<Item = String>,
    ) -> Result<Option<Self>, String> {
        let mut options = Self {
            locknode: "target/release/locknode".to_owned(),
            servers: Vec::new(),
            rounds: 5,
            operations: 200_000,
            memory_locks: 1_000_000,
            restart_locks: 1_000_000,
            disk_cycles: 1_000_000,
            data_dir: PathBuf::new(),
            is_smoke: false,
            only: None,
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--locknode" => options.locknode = value()?,
                "--server" => {
                    let spec = value()?;
                    let (name, path) = spec.split_once('=').ok_or("--server takes name=path")?;
                    options.servers.push((name.to_owned(), path.to_owned()));
                }
                "--rounds" => options.rounds = number(&value()?)?,
                "--operations" => options.operations = number(&value()?)?,
                "--memory-locks" => options.memory_locks = number(&value()?)?,
                "--restart-locks" => options.restart_locks = number(&value()?)?,
                "--disk-cycles" => options.disk_cycles = number(&value()?)?,
                "--data-dir" => options.data_dir = value()?.into(),
                "--only" => options.only = Some(value()?),
                "--smoke" => options.make_small(),
                "--help" | "-h" => return Ok(None),
                _ => return Err(format!("unknown option {flag}; see --help")),
            }
        }
        if options.data_dir.as_os_str().is_empty() {
            let beside = Path::new(&options.locknode).parent();
            options.data_dir = beside.unwrap_or(Path::new(".")).to_owned();
        }
        Ok(Some(options))
    }

    /// Whether to measure a row of a section; the first section has no name.
    pub(crate) fn selects(&self, section: &str, row: &str) -> bool {
        self.only.as_deref().is_none_or(|only| {
            only.split(',').any(|words| {
                if section.is_empty() {
                    row.contains(words)
                } else {
                    row.starts_with(words)
                }
            })
        })
    }

    fn make_small(&mut self) {
        self.is_smoke = true;
        self.rounds = 1;
        self.operations = 4000;
        self.memory_locks = 20_000;
        self.restart_locks = 20_000;
        self.disk_cycles = 20_000;
    }
}

/// Reads a number that may have underscores.
pub(crate) fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.replace('_', "")
        .parse()
        .map_err(|_| format!("'{text}' is not a number"))
}

/// What `--help` prints.
pub(crate) const HELP: &str = "\
Runs a lock node beside Redis and Valkey servers, interleaved, and prints ratios.

usage: scripts/bench-peers [OPTION...]
  --rounds N         rounds per row; rows of the section guard take three times as many (5)
  --operations N     commands per run at pipeline 1; four times as many at pipeline 16 (200000)
  --memory-locks N   locks held when memory is measured; 0 leaves it out (1000000)
  --restart-locks N  locks held over a restart (1000000)
  --disk-cycles N    cycles after which the data directory is measured (1000000)
  --data-dir DIR     where data directories are made and removed; a real file system (beside the binary)
  --only WORDS       rows whose name contains WORDS, and sections or rows of sections that begin with WORDS;
                     a list with commas is possible: --only guard,durable
  --server NAME=PATH one more server beside those in PATH; may be repeated
  --smoke            one short round of everything, disturbed or not: shows that it works, the figures say nothing
  --locknode PATH    the binary with serve and bench (the script gives it)
Environment: BENCH_PEERS_VERBOSE=1 shows why rounds are disturbed and what servers complain about.

Columns: cost/op is server CPU per command, all threads and the kernel's part, in ns (bytes per lock in the memory
row). 'x first' is this line against the first line of its row, taken within each round, median and spread: cost of
this by cost of the first, and throughput of the first by throughput of this; above 1 this line is the worse one.
syncs/s is what a lock node counts. The load generator checks every reply; a wrong one voids the whole run.

Rows, 50 connections, 30 byte keys, 32 byte tokens:
  cycle-evalsha P1, P16    SET NX PX, then the release script by EVALSHA; nothing kept, restart guard off
  cycle-delex, -delifeq    the same with the release command of newer servers
  set P1, P16              SET NX PX on fresh keys
  memory per lock          resident bytes per lock held
  guard cycle P1, P16      cycle-evalsha, TTL 30 s within max-ttl: restart guard off, on with --dir, on without.
                           Target: at most 1.02 x the cost of off
  fence cycle P1, P16      one node, guard off: SET NX PX and DELIFEQ, SET NX PX and EVALSHA, LOCK.ACQUIRE and LOCK.RELEASE,
                           the same with FLOOR
  durable set P1, P16      SET NX PX on fresh keys, TTL 30 s, every grant on disk before its reply: --durability always
                           against --appendonly yes --appendfsync always (without rewrites of the file, which favours the
                           peer). Bound by syncs, so throughput is the figure; target 1.5 x at pipeline 1, 4 x at 16
  durable cycle P1, P16    the same with cycle-evalsha
  disk                     bytes in the data directory before and after cycles of TTL 30 s, most of them while it was
                           filled, and syncs: with the guard (constant, about one sync per slack of 1.9 s and per 2^20
                           grants of one counter), and with --durability always (constant by compaction)
  restart                  a stop with locks held, TTL 10 min: how long the stop takes, then the time from exec to the
                           first PONG and to the first granted lock, with warm caches. A node's snapshot and Redis'
                           RDB after a clean stop, an append-only file, and a node's log after SIGKILL. Void if a lock is missing
";

#[cfg(test)]
mod tests {
    use super::*;

    fn options(args: &[&str]) -> Options {
        let args = args.iter().map(ToString::to_string);
        let options = Options::from_args(args).expect("valid");
        options.expect("no help")
    }

    #[test]
    fn rows_are_selected_by_words_and_sections_by_their_beginning() {
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
    fn directories_are_made_beside_the_binary() {
        let options = options(&["--locknode", "out/release/locknode"]);
        assert_eq!(options.data_dir, Path::new("out/release"));
    }
}
