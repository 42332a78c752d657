//! `locknode lab`: a cluster in one process, to try things out and to run a program's tests against.
//!
//! Each node has its own locks; the nodes share the process and its threads only.
//!
//! ```text
//!  plain:               clients --> sockets --> nodes, each with a temporary data directory
//!  --faults, --script,  clients --> sockets --> links with faults --> nodes that crash and restart
//!  --chaos                                      ^ fault console: FAULT ...; run: faults and clients of a seed or a file
//! ```

mod cluster;
mod dashboard;
mod describe;
mod fault_command;
mod fault_console;
mod flags;
mod layout;
mod line;
mod run;
mod screen;
mod tally;
mod verdict;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use locknode::{LogLevel, Node, NodeBuilder, Options};
use locknode_testkit::GuardMode;
use locknode_testkit::cluster::Folder;

use self::dashboard::Dashboard;
pub(crate) use self::flags::{EXAMPLES, LONG_ABOUT, LabFlags};
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::listening::{self, BACKLOG};
use crate::log::{Log, LogFormat};
use crate::output;
use crate::serving::{Service, Serving, Socket};

/// Runs the nodes until Ctrl-C, or until the scenario ends.
///
/// # Errors
///
/// When a port is taken, a flag or a file makes no sense, or the operating system fails.
pub(crate) fn run(flags: &LabFlags) -> Result<Exit, Failure> {
    if flags.has_faults() {
        return cluster::run(flags);
    }
    let sockets = open_sockets(flags)?;
    let mut threads: Vec<Vec<Service>> = Vec::new();
    threads.resize_with(usize::from(flags.threads).min(sockets.len()), Vec::new);
    let thread_count = threads.len();
    let mut options = Options::default();
    let nodes = u64::from(flags.nodes);
    // The nodes share the descriptors of the process; listeners count like threads.
    let room = descriptors::make_room(options.maxclients * nodes, flags.threads + flags.nodes);
    options.maxclients = (room / nodes).max(1);
    let folder = folder(flags)?;
    let (mut nodes, mut watched, mut addrs) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (addr, socket)) in (0u8..).zip(sockets) {
        let index = usize::from(number);
        let builder = Node::builder()
            .options(options.clone())
            .max_ttl(flags.max_ttl)
            .drain(DRAIN);
        let node = open(builder, folder.as_ref(), number)?;
        node.listens_on(addr);
        nodes.push(node.clone());
        let ended = Arc::default();
        watched.push((addr, node.clone(), Arc::clone(&ended)));
        addrs.push(addr);
        threads[index % thread_count].push(Service {
            node,
            socket: Socket::Tcp(socket),
            ended,
            #[cfg(feature = "hand-over")]
            carried: Vec::new(),
        });
    }
    let serving = Serving::prepare()?;
    output::write(&describe::introduction(flags, &addrs, ""))?;
    let dashboard = Dashboard::of_nodes(watched);
    let log = Log::new(LogLevel::Warning, LogFormat::Text);
    let served = serving.run(threads, &log, None, dashboard.show());
    for node in nodes {
        // Its directory is removed next, so an error does no harm.
        let _ = node.close();
    }
    served.map(|()| Exit::Success)
}

/// The directories of the nodes: with them they grant locks with any TTL, and without one.
fn folder(flags: &LabFlags) -> Result<Option<Folder>, Failure> {
    if flags.guard() == Some(GuardMode::Off) {
        return Ok(None);
    }
    let folder = Folder::temporary();
    let what = "cannot create a temporary directory for the nodes";
    folder.map(Some).map_err(|error| unusable(what, &error))
}

fn open(builder: NodeBuilder, folder: Option<&Folder>, node: u8) -> Result<Node, Failure> {
    let Some(folder) = folder else {
        return Ok(builder.restart_guard(false).build());
    };
    let opened = builder.first_start(true).open(folder.of_node(node));
    let what = format!("node {node} cannot use its temporary directory");
    opened.map_err(|error| unusable(&what, &error))
}

fn unusable(what: &str, error: &dyn std::error::Error) -> Failure {
    Failure::unavailable(format!(
        "{what}: {error}; TMPDIR chooses another place, and --restart-guard off needs none"
    ))
}

fn open_sockets(flags: &LabFlags) -> Result<Vec<(SocketAddr, TcpListener)>, Failure> {
    let first = flags.first_port();
    if first != 0 && first.checked_add(flags.nodes - 1).is_none() {
        return Err(Failure::usage(format!(
            "{} nodes from port {} on need ports above 65535: choose a lower --port",
            flags.nodes, first
        )));
    }
    let mut sockets = Vec::new();
    for index in 0..flags.nodes {
        let port = if first == 0 { 0 } else { first + index };
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let opened = listening::listen(wanted, BACKLOG, 1);
        for socket in opened.map_err(|error| listening::explain(wanted, "--port", &error))? {
            sockets.push((socket.local_addr().unwrap_or(wanted), socket));
        }
    }
    Ok(sockets)
}

/// Nobody wants to wait after Ctrl-C.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(1);
