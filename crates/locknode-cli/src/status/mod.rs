//! `locknode status`: shows the state of a cluster's nodes, or of a lock on them. It queries all nodes at
//! the same time.

#[cfg(feature = "lock")]
pub(crate) mod key;
mod report;
mod restart;

#[cfg(feature = "lock")]
use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use locknode_resp::Reply;

pub(crate) use self::report::table;
use self::report::{NodeStatus, Report, State};
use self::restart::Restart;
use crate::connect_flags::ConnectFlags;
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::output;
use crate::server_address::ServerAddress;
use crate::server_connection::{ServerConnection, TIMED_OUT, printable};
use crate::server_info::ServerInfo;
use crate::serving;

/// Show the state of a cluster's nodes, or of a lock on them
///
/// The nodes may be locknode, Redis or Valkey. Sends INFO and PING to all of them at the same time and
/// changes nothing. The round trip is the fastest of three. For a lock node it also shows which locks
/// its disk keeps, the number of its run, and how long and why it is in quarantine after a restart.
///
/// With the name of a lock it shows what each node holds of it instead: the token and its remaining
/// time, and whether a majority of the nodes agrees.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct StatusFlags {
    /// Addresses of the nodes, separated by commas
    ///
    /// host (port 6379), host:port, [::1]:port, unix:PATH, or with a login and a database
    /// redis://user:password@host:port/database, rediss:// for TLS. Give all nodes of the cluster: a
    /// majority is counted of these.
    #[arg(long, value_name = "ADDR,...", env = "LOCKNODE_NODES")]
    #[arg(required = true, value_delimiter = ',', verbatim_doc_comment)]
    nodes: Vec<String>,

    #[command(flatten)]
    connect: ConnectFlags,

    /// How long to wait for each node
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_timeout)]
    timeout: Duration,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Name of a lock: show what each node holds of it
    #[cfg(feature = "lock")]
    name: Option<OsString>,
}

/// Prints the state of the nodes.
///
/// # Errors
///
/// If there are too many of them or standard output fails. Unreachable nodes only change the exit code.
pub(crate) fn run(flags: &StatusFlags) -> Result<Exit, Failure> {
    #[cfg(feature = "lock")]
    if let Some(name) = &flags.name {
        return run_for_key(flags, name);
    }
    let nodes = addresses(&flags.nodes, &flags.connect)?;
    let deadline = Instant::now() + flags.timeout;
    let states = ask_all(&nodes, deadline, move |node| ask(node, deadline));
    let named = nodes.iter().map(ToString::to_string).zip(states);
    let report = Report {
        nodes: named
            .map(|(address, state)| NodeStatus { address, state })
            .collect(),
    };
    output::write_as(flags.json, || report.json(), || report.table())?;
    Ok(report.exit())
}

/// Prints what the nodes hold of a lock.
#[cfg(feature = "lock")]
fn run_for_key(flags: &StatusFlags, name: &OsStr) -> Result<Exit, Failure> {
    use std::os::unix::ffi::OsStrExt as _;

    use crate::cluster;

    let client = cluster::connect(&flags.nodes, &flags.connect, Some(flags.timeout))?;
    let nodes = serving::runtime()?.block_on(async {
        let nodes = client.inspect(name.as_bytes()).await;
        client.close().await;
        nodes
    });
    let nodes = nodes.map_err(|error| cluster::failure(&error, Exit::Unavailable))?;
    let report = key::KeyReport::new(printable(name.as_bytes()), nodes);
    output::write_as(flags.json, || report.json(), || report.table())?;
    Ok(report.exit())
}

/// The addresses of `--nodes`.
///
/// # Errors
///
/// When one is none, or there are too many.
pub(crate) fn addresses(
    nodes: &[String],
    flags: &ConnectFlags,
) -> Result<Vec<ServerAddress>, Failure> {
    if nodes.len() > NODES_MAX {
        return Err(Failure::usage(format!(
            "{} nodes are too many: at most {NODES_MAX}",
            nodes.len()
        )));
    }
    let nodes = nodes.iter();
    nodes
        .map(|node| ServerAddress::read(node.trim(), "--nodes", flags))
        .collect()
}

/// Queries every node on its own thread, because a host name look-up has no timeout.
pub(crate) fn ask_all<T: Clone + Send + 'static>(
    nodes: &[ServerAddress],
    deadline: Instant,
    ask: impl Fn(&ServerAddress) -> Result<T, String> + Clone + Send + 'static,
) -> Vec<Result<T, String>> {
    let (sender, answers) = mpsc::channel();
    let mut states = vec![Err(TIMED_OUT.to_owned()); nodes.len()];
    for (index, node) in nodes.iter().enumerate() {
        let (sender, node, ask) = (sender.clone(), node.clone(), ask.clone());
        let ask = move || {
            // Too late if the receiver has been dropped.
            let _ = sender.send((index, ask(&node)));
        };
        if let Err(failure) = serving::spawn("status".to_owned(), ask) {
            states[index] = Err(failure.to_string());
        }
    }
    drop(sender);
    // The deadline of each query comes first, with a better reason.
    let patience = deadline + GRACE;
    let left = || patience.saturating_duration_since(Instant::now());
    while let Ok((index, state)) = answers.recv_timeout(left()) {
        states[index] = state;
    }
    states
}

fn ask(node: &ServerAddress, deadline: Instant) -> Result<State, String> {
    let mut connection = ServerConnection::open(node, deadline)?;
    let info = ServerInfo::ask(&mut connection)?;
    let guarded = Restart::of(&info).and_then(|restart| restart.condition());
    let mut condition = guarded.unwrap_or_else(|| condition(&info));
    let mut round_trip = Duration::MAX;
    for _ in 0..PINGS {
        let start = Instant::now();
        match connection.call(&[b"PING"])? {
            Reply::Simple(_) | Reply::Bulk(_) => {}
            // A lock node in restart quarantine reports more in INFO.
            Reply::Error(error) if error.starts_with(b"LOADING") => {
                condition = guarded.unwrap_or("loading");
            }
            Reply::Error(error) => return Err(format!("PING failed: {}", printable(&error))),
            _ => return Err("no valid reply to PING".to_owned()),
        }
        round_trip = round_trip.min(start.elapsed());
    }
    Ok(State {
        condition,
        info,
        round_trip,
    })
}

/// Whether the node grants locks.
fn condition(info: &ServerInfo) -> &'static str {
    match (info.text("loading"), info.text("role")) {
        (Some("1"), _) => "loading",
        (_, Some("slave" | "replica")) => "replica",
        _ => report::SERVING,
    }
}

pub(crate) fn parse_timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration::parse(text)?;
    if timeout.is_zero() || timeout > TIMEOUT_MAX {
        return Err("must be within 1ms and 1h".to_owned());
    }
    Ok(timeout)
}

/// More than any sensible cluster; each has a thread.
const NODES_MAX: usize = 100;

/// The first may wake up a machine; the fastest of three shows the network.
const PINGS: usize = 3;

/// For a reply that arrives just at the deadline.
const GRACE: Duration = Duration::from_millis(50);

/// Longer than anyone waits.
const TIMEOUT_MAX: Duration = Duration::from_secs(3600);

const EXAMPLES: &str = "\
Examples:
  locknode status --nodes 10.0.0.5,10.0.0.6,10.0.0.7
  locknode status --nodes 10.0.0.5,10.0.0.6,10.0.0.7 deploy
  LOCKNODE_NODES=redis://:secret@10.0.0.5:6379,unix:/run/locknode.sock locknode status --json

Exit codes: 0 every node serves; 75 some do not, but a majority does, so locks can be acquired; 69
fewer than a majority serve; 64 wrong usage. With the name of a lock: 0 it is certain whether a
client holds it; 69 it is not certain, because too many nodes do not reply.";
