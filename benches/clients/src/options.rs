//! What to measure.

use locknode_peers::server::{Kind, Server};

use crate::run::Load;

/// The command line.
#[derive(Debug)]
pub(crate) struct Options {
    /// The node's program.
    pub(crate) locknode: String,
    pub(crate) rounds: usize,
    /// How long each client runs in a round, after a warm-up of half of that.
    pub(crate) seconds: f64,
    /// Whether this is about everything working, on a machine however busy, and not about the figures.
    is_quick: bool,
    /// Directories with the packages of clients in other languages, by client.
    pub(crate) packages: Vec<(String, String)>,
    servers: Kind,
    /// Names of clients; empty for all.
    only: Vec<String>,
    /// Empty for all.
    tables: Vec<Table>,
}

/// One part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Cost,
    Silence,
    EndToEnd,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            locknode: "target/release/locknode".to_owned(),
            rounds: 5,
            seconds: 2.0,
            is_quick: false,
            packages: Vec::new(),
            servers: Kind::Locknode,
            only: Vec::new(),
            tables: Vec::new(),
        };
        while let Some(flag) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
            match flag.as_str() {
                "--locknode" => options.locknode = value()?,
                "--servers" => options.servers = servers(&value()?)?,
                "--rounds" => options.rounds = number(&value()?)?,
                "--seconds" => options.seconds = number(&value()?)?,
                "--quick" => {
                    options.is_quick = true;
                    (options.rounds, options.seconds) = (1, QUICK_SECONDS);
                }
                "--only" => options.only = value()?.split(',').map(str::to_owned).collect(),
                "--tables" => {
                    options.tables = value()?.split(',').map(table).collect::<Result<_, _>>()?;
                }
                "--packages" => {
                    let spec = value()?;
                    let (name, path) = spec.split_once('=').ok_or("--packages takes NAME=DIR")?;
                    options.packages.push((name.to_owned(), path.to_owned()));
                }
                _ => return Err(format!("unknown option {flag}; {USAGE}")),
            }
        }
        if options.rounds == 0 || !(SECONDS_MIN..=SECONDS_MAX).contains(&options.seconds) {
            return Err(format!(
                "at least one round, of {SECONDS_MIN} to {SECONDS_MAX} seconds"
            ));
        }
        Ok(options)
    }

    /// What a client is asked for.
    pub(crate) fn load(&self, in_flight: u32) -> Load {
        Load {
            in_flight,
            seconds: self.seconds,
            others_max: if self.is_quick {
                f64::INFINITY
            } else {
                OTHERS_MAX
            },
        }
    }

    /// How the rounds are, in words.
    pub(crate) fn method(&self) -> String {
        let Self {
            rounds, seconds, ..
        } = self;
        if self.is_quick {
            format!("{rounds} round of {seconds} s, whatever else runs: the figures mean nothing")
        } else {
            format!(
                "{rounds} rounds of {seconds} s for each client; medians, spread of the rounds' ratios in brackets"
            )
        }
    }

    /// Whether a table is wanted.
    pub(crate) fn has(&self, table: Table) -> bool {
        self.tables.is_empty() || self.tables.contains(&table)
    }

    /// Whether a client is wanted.
    pub(crate) fn wants(&self, client: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == client)
    }

    /// The first wanted client that is none of `known`.
    pub(crate) fn unknown<'a>(&'a self, known: &[&str]) -> Option<&'a str> {
        let mut names = self.only.iter().map(String::as_str);
        names.find(|name| !known.contains(name))
    }

    /// What the five nodes are.
    pub(crate) fn server(&self) -> Result<Server, String> {
        match self.servers {
            Kind::Locknode => self.locknode(),
            Kind::Redis => redis(),
        }
    }

    /// Our node.
    pub(crate) fn locknode(&self) -> Result<Server, String> {
        Server::probe("locknode", &self.locknode, Kind::Locknode).ok_or_else(|| {
            format!(
                "{} does not run; build it with cargo build --release",
                self.locknode
            )
        })
    }
}

/// The `redis-server` in PATH.
pub(crate) fn redis() -> Result<Server, String> {
    Server::probe("redis", "redis-server", Kind::Redis)
        .ok_or_else(|| "redis-server is not in PATH".to_owned())
}

fn servers(name: &str) -> Result<Kind, String> {
    match name {
        "locknode" => Ok(Kind::Locknode),
        "redis" => Ok(Kind::Redis),
        _ => Err(format!("--servers takes locknode or redis, not '{name}'")),
    }
}

fn table(name: &str) -> Result<Table, String> {
    match name {
        "cost" => Ok(Table::Cost),
        "silence" => Ok(Table::Silence),
        "end-to-end" => Ok(Table::EndToEnd),
        _ => Err(format!(
            "--tables takes cost, silence and end-to-end, not '{name}'"
        )),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not a number"))
}

/// Enough to see that everything works; too short for a figure.
const QUICK_SECONDS: f64 = 0.3;
/// A neighbour that uses more than a quarter of a core shows in the figures.
const OTHERS_MAX: f64 = 0.25;
/// The slowest client makes a hundred locks a second; fewer than ten have no percentile.
const SECONDS_MIN: f64 = 0.1;
/// A client keeps every latency: a minute of the fastest is tens of megabytes.
const SECONDS_MAX: f64 = 60.0;

const USAGE: &str = "options: --locknode PATH, --servers locknode|redis, --rounds N, --seconds S, --quick, \
    --only CLIENT,..., --tables cost,silence,end-to-end, --packages NAME=DIR";
