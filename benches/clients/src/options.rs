//! What to measure.

use clap::builder::PossibleValuesParser;
use clap::{ValueEnum, value_parser};
use locknode_peers::server::{Kind, Server};

use crate::client::Client;
use crate::contestant;
use crate::run::Load;

/// Runs Redlock clients beside each other on the same five nodes, interleaved, and prints ratios as Markdown
#[derive(Debug, clap::Parser)]
#[command(name = "scripts/bench-clients", args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    /// The node's program (the script gives it)
    #[arg(long, value_name = "PATH", default_value = "target/release/locknode")]
    locknode: String,

    /// What the five nodes are
    #[arg(long, value_enum, default_value_t = Kind::Locknode)]
    servers: Kind,

    /// Rounds that count
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    #[arg(default_value = "5", default_value_if("quick", "true", "1"))]
    pub(crate) rounds: u32,

    /// How long each client runs in a round, after a warm-up of half of that
    #[arg(long, value_name = "S", value_parser = seconds)]
    // Enough to see that everything works; too short for a figure.
    #[arg(default_value = "2", default_value_if("quick", "true", "0.3"))]
    pub(crate) seconds: f64,

    /// Show that everything works, on a machine however busy: the figures mean nothing
    #[arg(long)]
    quick: bool,

    /// Only these clients
    #[arg(long, value_name = "CLIENT,...", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(contestant::names()))]
    only: Vec<String>,

    /// Only these tables
    #[arg(long, value_enum, value_name = "TABLE,...", value_delimiter = ',')]
    tables: Vec<Table>,

    /// Where the packages of a client in another language are (the script gives it)
    #[arg(long, value_name = "NAME=DIR", value_parser = locknode_peers::pair)]
    pub(crate) packages: Vec<(String, String)>,

    #[command(subcommand)]
    pub(crate) client: Option<Client>,
}

/// One part of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    Cost,
    Silence,
    EndToEnd,
}

impl Options {
    /// What a client is asked for.
    pub(crate) fn load(&self, in_flight: u32) -> Load {
        Load {
            in_flight,
            seconds: self.seconds,
            others_max: if self.quick {
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
        if self.quick {
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

    /// What the five nodes are.
    pub(crate) fn server(&self) -> Result<Server, String> {
        match self.servers {
            Kind::Locknode => self.locknode(),
            Kind::Redis => redis(),
        }
    }

    /// Our node.
    pub(crate) fn locknode(&self) -> Result<Server, String> {
        let node = Server::probe("locknode", &self.locknode, Kind::Locknode);
        node.ok_or_else(|| format!("{} does not run; build it first", self.locknode))
    }
}

/// The `redis-server` in PATH.
pub(crate) fn redis() -> Result<Server, String> {
    Server::probe("redis", "redis-server", Kind::Redis)
        .ok_or_else(|| "redis-server is not in PATH".to_owned())
}

/// The slowest client makes a hundred locks a second; fewer than ten have no percentile. A client keeps every latency: a
/// minute of the fastest is tens of megabytes.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok();
    let seconds = seconds.filter(|seconds| (0.1..=60.0).contains(seconds));
    seconds.ok_or_else(|| "takes 0.1 to 60".to_owned())
}

/// A neighbour that uses more than a quarter of a core shows in the figures.
const OTHERS_MAX: f64 = 0.25;

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    #[test]
    fn a_quick_run_is_short_where_nothing_else_is_asked_for() {
        Options::command().debug_assert();
        let options = Options::parse_from(["bench-clients", "--quick", "--rounds", "2"]);
        assert_eq!((options.rounds, options.load(1).seconds), (2, 0.3));
    }

    #[test]
    fn a_number_of_seconds_is_within_its_bounds() {
        for (text, is_right) in [("0.1", true), ("60", true), ("0", false), ("x", false)] {
            let read = Options::try_parse_from(["bench-clients", "--seconds", text]);
            assert_eq!(read.is_ok(), is_right, "{text}");
        }
    }
}
