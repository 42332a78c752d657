//! What a lab says before it runs: its nodes, what is going to happen, and what to type.

use std::fmt::Write as _;
use std::net::SocketAddr;

use locknode_testkit::cluster::Cluster;
use locknode_testkit::{GuardMode, Setup, Span};

use super::flags::LabFlags;
use super::run::Run;
use crate::figures::counted;

/// Of a lab with faults.
pub(super) fn run(flags: &LabFlags, run: &Run, cluster: &Cluster) -> String {
    if run.again.is_none() {
        return introduction(flags, &cluster.addresses(), &faults(cluster));
    }
    let mut text = String::new();
    if flags.chaos.is_some() {
        text.push_str(&chaos(&run.scenario.setup));
    }
    if flags.faults || flags.script.is_some() {
        let nodes = counted(cluster.nodes(), "node");
        let _ = writeln!(
            text,
            "{nodes}. Other programs can use them, too, by the ports of any client, in the order of the nodes:\n{}",
            ports(cluster)
        );
    }
    text
}

/// The addresses, what becomes of locks, and what to type next; `more` comes before the last line.
pub(super) fn introduction(flags: &LabFlags, addrs: &[SocketAddr], more: &str) -> String {
    let port = addrs.first().map_or(0, SocketAddr::port);
    let all: Vec<String> = addrs.iter().map(SocketAddr::to_string).collect();
    let ports: Vec<String> = addrs.iter().map(|addr| addr.port().to_string()).collect();
    let mut text = format!(
        "locknode {}: {}. They serve at once, because nobody holds a lock of theirs yet.\n{}\n\n",
        env!("CARGO_PKG_VERSION"),
        counted(addrs.len(), "node"),
        locks(flags),
    );
    for (node, addr) in all.iter().enumerate() {
        let _ = writeln!(text, "  node {node}  listening on {addr}");
    }
    let _ = write!(
        text,
        "\n\
         A lock on one node for 30 seconds, and its release with the token:\n  \
           redis-cli -p {port} set invoice:7 my-token nx px 30000\n  \
           redis-cli -p {port} delex invoice:7 ifeq my-token\n\
         \n\
         A Redlock on a majority, here with Python (pip install redlock-py):\n  \
           python3 -c 'from redlock import Redlock; print(Redlock([{{\"host\": \"127.0.0.1\", \"port\": p}} \
           for p in ({ports},)]).lock(\"invoice:7\", 30000))'\n\
         \n\
         The state of the nodes:\n  \
           locknode status --nodes {all}\n\
         {more}\n\
         Ctrl-C stops the lab.\n\n",
        ports = ports.join(","),
        all = all.join(","),
    );
    text
}

/// Which locks the nodes keep over a crash.
fn locks(flags: &LabFlags) -> String {
    if flags.guard() == Some(GuardMode::Off) {
        return "They run without the restart guard: in a crash they forget every lock, as Redis does."
            .to_owned();
    }
    format!(
        "The restart guard covers locks with a TTL of up to {}; locks with a longer TTL, or without one, are\n\
             written to a temporary directory. All locks end with this process.",
        Span(flags.max_ttl)
    )
}

/// What is about to be seen.
fn chaos(setup: &Setup) -> String {
    let guard = match setup.guard {
        GuardMode::Off => {
            "The nodes run without the restart guard: after a crash a node has forgotten its\n\
             locks, and serves at once."
        }
        _ => {
            "After a crash a node refuses locks until every lock that it may have granted\n\
             has expired."
        }
    };
    format!(
        "{} of this process contend for one lock, with a TTL of {}, on {},\n\
         over real sockets. For {} nodes crash, links are cut, messages are lost or\n\
         late, and processes are paused, as seed {} decides.\n\
         {guard}\n\
         Do two clients ever hold the lock at the same time?\n\n",
        counted(setup.clients, "client"),
        Span(setup.max_ttl),
        counted(setup.nodes, "node"),
        Span(setup.run_for),
        setup.seed,
    )
}

/// How to inject faults.
fn faults(cluster: &Cluster) -> String {
    let addrs = cluster.addresses();
    let port = addrs.first().map_or(0, SocketAddr::port);
    let mut text = format!(
        "\nAny client can inject faults; FAULT HELP lists them:\n  \
           redis-cli -p {port} FAULT CRASH FOR 5s\n  \
           redis-cli -p {port} FAULT DROP REPLIES 2\n  \
           redis-cli -p {port} FAULT CUT NODE 1,2\n  \
           redis-cli -p {port} FAULT RESTART NODE 3\n  \
           redis-cli -p {port} FAULT STATUS\n"
    );
    if cluster.clients() > 1 {
        text.push_str(
            "\nEach client has its own ports, in the order of the nodes, and its own faults (FAULT CUT CLIENT 1):\n",
        );
        text.push_str(&ports(cluster));
    }
    text
}

fn ports(cluster: &Cluster) -> String {
    let line = |client| {
        let addrs = cluster.addresses_for(client).unwrap_or_default();
        let addrs: Vec<String> = addrs.iter().map(ToString::to_string).collect();
        format!("  client {client}: {}\n", addrs.join(","))
    };
    (0..cluster.clients()).map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Lab {
        #[command(flatten)]
        flags: LabFlags,
    }

    #[test]
    fn the_introduction_names_every_address_and_what_to_type() {
        let addrs = [7101, 7102, 7103].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let Lab { flags } = Lab::parse_from(["lab", "--max-ttl", "5s"]);
        let text = introduction(&flags, &addrs, "");
        for part in [
            "3 nodes",
            "node 2  listening on 127.0.0.1:7103\n",
            "a TTL of up to 5s",
            "redis-cli -p 7101 set invoice:7 my-token nx px 30000",
            "for p in (7101,7102,7103,)",
            "--nodes 127.0.0.1:7101,127.0.0.1:7102,127.0.0.1:7103",
        ] {
            assert!(text.contains(part), "{part} in:\n{text}");
        }
    }
}
