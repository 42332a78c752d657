//! `locknode lab`: a cluster in one process, to try things out and to run a program's tests against.
//!
//! Every node is a node of its own, with its own locks; only the process and its threads are shared.
//!
//! ```text
//!  plain:               clients --> sockets --> nodes, each with a temporary data directory
//!  --faults, --script,  clients --> sockets --> links with faults --> nodes that come and go
//!  --chaos                                      ^ desk: FAULT ...; stage: a seed's or a file's faults, clients of the lab's own
//! ```

mod board;
mod closing;
mod desk;
mod fault_command;
mod flags;
mod happening;
mod line;
mod screen;
mod show;
mod table;
mod tally;
mod verdict;
mod view;

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use locknode::{Node, NodeBuilder, Options};
use locknode_testkit::Span;
use locknode_testkit::cluster::Folder;

pub(crate) use self::flags::{EXAMPLES, LONG_ABOUT, LabFlags};
use self::view::{News, View, Watched};
use crate::descriptors;
use crate::failure::{Exit, Failure};
use crate::listening::{self, BACKLOG};
use crate::log::{Log, LogLevel};
use crate::output;
use crate::serving::{Service, Serving, Socket};

/// Runs the nodes until Ctrl-C, or until what was to be shown is over.
///
/// # Errors
///
/// When a port is taken, a flag or a file makes no sense, or the operating system fails.
pub(crate) fn run(flags: &LabFlags) -> Result<Exit, Failure> {
    if flags.has_faults() {
        return happening::run(flags);
    }
    let sockets = open_sockets(flags)?;
    let mut threads: Vec<Vec<Service>> = Vec::new();
    threads.resize_with(usize::from(flags.threads).min(sockets.len()), Vec::new);
    let thread_count = threads.len();
    let mut options = Options::default();
    let nodes = u64::from(flags.nodes);
    // The nodes share the descriptors of the process; their listeners are counted like threads.
    let room = descriptors::make_room(options.maxclients * nodes, flags.threads + flags.nodes);
    options.maxclients = (room / nodes).max(1);
    let folder = folder(flags)?;
    let (mut nodes, mut watched) = (Vec::new(), Vec::new());
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
        watched.push(Watched::new(addr, node.clone(), Arc::clone(&ended)));
        threads[index % thread_count].push(Service {
            node,
            socket: Socket::Tcp(socket),
            ended,
        });
    }
    let addrs: Vec<SocketAddr> = watched.iter().map(|watched| watched.addr).collect();
    let serving = Serving::prepare()?;
    output::write(&introduction(&addrs, &locks(flags), ""))?;
    let view = View::new(watched, News::default());
    let served = serving.run(threads, Log::new(LogLevel::Warn), view.show());
    for node in nodes {
        // Its directory is about to go; what it still writes there is of no use to anybody.
        let _ = node.close();
    }
    served.map(|()| Exit::Success)
}

/// Where the nodes keep what has to survive a crash: with it they grant any TTL, and locks without one.
fn folder(flags: &LabFlags) -> Result<Option<Folder>, Failure> {
    if flags.is_unguarded() {
        return Ok(None);
    }
    let folder = Folder::temporary().map_err(|error| {
        Failure::unavailable(format!(
            "cannot create a temporary directory for the nodes: {error}; TMPDIR chooses another place, and \
             --restart-guard off needs none"
        ))
    })?;
    Ok(Some(folder))
}

fn open(builder: NodeBuilder, folder: Option<&Folder>, node: u8) -> Result<Node, Failure> {
    let Some(folder) = folder else {
        return Ok(builder.restart_guard(false).build());
    };
    let builder = builder.first_start(true);
    builder.open(folder.of_node(node)).map_err(|error| {
        Failure::unavailable(format!(
            "node {node} cannot use its temporary directory: {error}; TMPDIR chooses another place, and \
             --restart-guard off needs none"
        ))
    })
}

/// What the nodes grant, and what becomes of it.
fn locks(flags: &LabFlags) -> String {
    match flags.is_unguarded() {
        true => "Without their restart guard they forget every lock in a crash, as Redis does."
            .to_owned(),
        false => format!(
            "Locks of up to {} ride on the restart guard, longer ones and those without a TTL are written to a\n\
             temporary directory; all of them end with this process.",
            Span(flags.max_ttl)
        ),
    }
}

fn open_sockets(flags: &LabFlags) -> Result<Vec<(SocketAddr, TcpListener)>, Failure> {
    let first = flags.first_port();
    if first != 0 && first.checked_add(flags.nodes - 1).is_none() {
        return Err(Failure::usage(format!(
            "{} nodes from port {} on would need ports above 65535: choose a lower --port",
            flags.nodes, first
        )));
    }
    let mut sockets = Vec::new();
    for index in 0..flags.nodes {
        let port = if first == 0 { 0 } else { first + index };
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let opened = listening::listen(wanted, BACKLOG, 1);
        for socket in opened.map_err(|error| listening::explain(wanted, &error))? {
            sockets.push((socket.local_addr().unwrap_or(wanted), socket));
        }
    }
    Ok(sockets)
}

/// The addresses, what becomes of `locks`, and what to type next; `more` is put before the last line.
fn introduction(addrs: &[SocketAddr], locks: &str, more: &str) -> String {
    let port = addrs.first().map_or(0, SocketAddr::port);
    let all: Vec<String> = addrs.iter().map(SocketAddr::to_string).collect();
    let ports: Vec<String> = addrs.iter().map(|addr| addr.port().to_string()).collect();
    let plural = if addrs.len() == 1 { "node" } else { "nodes" };
    let mut text = format!(
        "locknode {}: {} {plural}, which serve at once: nobody holds a lock of theirs yet\n{locks}\n\n",
        env!("CARGO_PKG_VERSION"),
        addrs.len()
    );
    for (node, addr) in all.iter().enumerate() {
        let _ = writeln!(text, "  node {node}  listening on {addr}");
    }
    let _ = write!(
        text,
        "\n\
         One lock on one node, for 30 seconds, and its release by whoever knows the token:\n  \
           redis-cli -p {port} set invoice:7 my-token nx px 30000\n  \
           redis-cli -p {port} delex invoice:7 ifeq my-token\n\
         \n\
         A Redlock on the majority, here with Python (pip install redlock-py):\n  \
           python3 -c 'from redlock import Redlock; print(Redlock([{{\"host\": \"127.0.0.1\", \"port\": p}} \
           for p in ({ports},)]).lock(\"invoice:7\", 30000))'\n\
         \n\
         The nodes from outside:\n  \
           locknode status --nodes {all}\n\
         {more}\n\
         Ctrl-C ends them.\n\n",
        ports = ports.join(","),
        all = all.join(","),
    );
    text
}

/// Somebody who types Ctrl-C does not want to wait.
const DRAIN: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_introduction_names_every_address_and_what_to_type() {
        let addrs = [7101, 7102, 7103].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let text = introduction(&addrs, "Locks end.", "");
        for part in [
            "3 nodes",
            "node 2  listening on 127.0.0.1:7103\n",
            "Locks end.\n",
            "redis-cli -p 7101 set invoice:7 my-token nx px 30000",
            "for p in (7101,7102,7103,)",
            "--nodes 127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }
}
