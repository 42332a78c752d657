//! `locknode doctor`: looks at all nodes of a cluster for some seconds, and says what is wrong and what to do.
//!
//! ```text
//!  addresses --> examination, one thread per node --> diagnosis --> report
//! ```

mod clock_rate;
mod diagnosis;
mod examination;
mod report;

use std::time::{Duration, Instant};

use self::examination::Examined;
use self::report::Report;
use crate::connect_flags::ConnectFlags;
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::server_address::ServerAddress;
use crate::status;

/// Look for what is wrong with the nodes of a cluster, and say what to do
///
/// The nodes may be locknode, Redis or Valkey. For some seconds it compares their clocks with this
/// machine's and measures round trips; it looks for one server under two names, replicas, settings under
/// which a server forgets or evicts locks, a max-ttl or versions that differ, quarantines and disks in
/// trouble. It sends INFO, TIME and CONFIG GET, and changes nothing.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct DoctorFlags {
    /// Addresses of the nodes, separated by commas
    ///
    /// host (port 6379), host:port, [::1]:port, unix:PATH, or with a login and a database
    /// redis://user:password@host:port/database, rediss:// for TLS. Give all nodes of the cluster.
    #[arg(long, value_name = "ADDR,...", env = "LOCKNODE_NODES")]
    #[arg(required = true, value_delimiter = ',', verbatim_doc_comment)]
    nodes: Vec<String>,

    #[command(flatten)]
    connect: ConnectFlags,

    /// How long to look: the longer, the better it knows the clocks
    #[arg(long = "for", value_name = "DURATION", default_value = "3s", value_parser = parse_time)]
    time: Duration,

    /// How long to wait for each node
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = status::parse_timeout)]
    timeout: Duration,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints what is wrong with the nodes.
///
/// # Errors
///
/// If there are too many of them or standard output fails. What is wrong with nodes only changes the exit code.
pub(crate) fn run(flags: &DoctorFlags) -> Result<Exit, Failure> {
    let nodes = status::addresses(&flags.nodes, &flags.connect)?;
    let (time, patience) = (flags.time, flags.timeout);
    let origin = Instant::now();
    let examine = move |node: &ServerAddress| examination::examine(node, origin, time, patience);
    let shown = status::ask_all(&nodes, origin + time + 2 * patience, examine);
    let named = nodes.iter().map(ToString::to_string).zip(shown);
    let nodes: Vec<_> = named
        .map(|(address, shown)| Examined { address, shown })
        .collect();
    let report = Report {
        findings: diagnosis::diagnose(&nodes),
        nodes,
    };
    output::write_as(flags.json, || report.json(), || report.text())?;
    Ok(report.exit())
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    if time.is_zero() || time > TIME_MAX {
        return Err("must be within 1ms and 1h".to_owned());
    }
    Ok(time)
}

/// Longer than anyone watches.
const TIME_MAX: Duration = Duration::from_secs(3600);

const EXAMPLES: &str = "\
Examples:
  locknode doctor --nodes 10.0.0.5,10.0.0.6,10.0.0.7
  locknode doctor --nodes 10.0.0.5,10.0.0.6,10.0.0.7 --for 1m --json

Exit codes: 0 nothing is wrong; 75 there are warnings: it works as long as nothing else goes wrong; 69 there are
problems: two clients may hold one lock, or nobody gets one; 64 wrong usage.";
