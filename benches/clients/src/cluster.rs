//! Five nodes, and ways for one of them to fall silent.

use std::net::TcpListener;
use std::process::Command;

use locknode_peers::server::{Running, Server};

/// Five running nodes; ended when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    nodes: Vec<Running>,
}

/// An address that takes connections and never answers, as long as the process lives.
#[derive(Debug)]
pub(crate) struct BlackHole {
    address: String,
}

impl Cluster {
    /// Starts five empty nodes.
    pub(crate) fn start(server: &Server) -> Result<Self, String> {
        let nodes: Result<_, String> = (0..NODES).map(|_| server.start()).collect();
        Ok(Self { nodes: nodes? })
    }

    /// The addresses as clients take them.
    pub(crate) fn addresses(&self) -> String {
        let addresses = self.nodes.iter();
        let addresses: Vec<_> = addresses
            .map(|node| format!("127.0.0.1:{}", node.port))
            .collect();
        addresses.join(",")
    }

    /// The same, but in place of the last node a black hole.
    pub(crate) fn addresses_with(&self, hole: &BlackHole) -> String {
        let addresses = self.addresses();
        let (others, _last) = addresses.rsplit_once(',').unwrap_or_default();
        format!("{others},{}", hole.address)
    }

    /// Stops the last node in its tracks: its connections stay and it answers nothing any more.
    pub(crate) fn freeze_last(&self) -> Result<(), String> {
        let Some(node) = self.nodes.last() else {
            return Ok(());
        };
        let stop = format!("kill -STOP {}", node.pid());
        match Command::new("sh").args(["-c", &stop]).status() {
            Ok(status) if status.success() => Ok(()),
            outcome => Err(format!("{stop}: {outcome:?}")),
        }
    }

    /// The process ids of all nodes.
    pub(crate) fn pids(&self) -> Vec<u32> {
        self.nodes.iter().map(Running::pid).collect()
    }
}

impl BlackHole {
    /// Listens on a free port.
    pub(crate) fn open() -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0");
        let listener = listener.map_err(|error| format!("no black hole: {error}"))?;
        let address = listener.local_addr();
        let address = address.map_err(|error| format!("no black hole: {error}"))?;
        std::thread::spawn(move || {
            // Kept, because a connection that is closed is an answer.
            let mut connections = Vec::new();
            for connection in listener.incoming() {
                connections.push(connection);
            }
        });
        Ok(Self {
            address: address.to_string(),
        })
    }
}

/// The usual Redlock cluster: it survives the loss of two.
const NODES: usize = 5;
