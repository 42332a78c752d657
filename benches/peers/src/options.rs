//! What to measure.

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
    only: Option<String>,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) workload: &'static str,
    pub(crate) pipeline: u32,
    pub(crate) connections: u32,
    pub(crate) operations: u64,
    pub(crate) keys: u64,
    /// Whether the row is about memory after the run and not about its speed.
    pub(crate) is_memory: bool,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            locknode: "target/release/locknode".to_owned(),
            servers: Vec::new(),
            rounds: 5,
            operations: 200_000,
            memory_locks: 1_000_000,
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
                "--only" => options.only = Some(value()?),
                _ => return Err(format!("unknown option {flag}; {USAGE}")),
            }
        }
        Ok(options)
    }

    /// The rows to measure.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for workload in ["cycle-evalsha", "cycle-delex", "cycle-delifeq", "set"] {
            for pipeline in [1, 16] {
                let operations = if pipeline == 1 {
                    self.operations
                } else {
                    self.operations * 4
                };
                // A plain SET NX must find its key free, so it runs over as many keys as it sends.
                let keys = if workload == "set" {
                    operations
                } else {
                    100_000
                };
                let connections = 50;
                cases.push(Case {
                    workload,
                    pipeline,
                    connections,
                    operations,
                    keys,
                    is_memory: false,
                });
            }
        }
        if self.memory_locks > 0 {
            let (operations, keys) = (self.memory_locks, self.memory_locks);
            let connections = 50;
            cases.push(Case {
                workload: "set",
                pipeline: 16,
                connections,
                operations,
                keys,
                is_memory: true,
            });
        }
        cases.retain(|case| {
            self.only
                .as_deref()
                .is_none_or(|only| case.name().contains(only))
        });
        cases
    }
}

impl Case {
    /// The row's name.
    pub(crate) fn name(&self) -> String {
        if self.is_memory {
            format!("memory per lock, {} locks", self.operations)
        } else {
            format!("{} P{}", self.workload, self.pipeline)
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.replace('_', "")
        .parse()
        .map_err(|_| format!("'{text}' is not a number"))
}

const USAGE: &str = "options: --locknode PATH, --server NAME=PATH, --rounds N, --operations N, --memory-locks N, \
    --only WORDS";
