//! Five nodes, and what is on them.

use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

#[cfg(all(
    feature = "lab",
    any(feature = "run", all(feature = "lock", feature = "status"))
))]
use crate::program::{Program, ask, command, connect, outcome};

/// A running cluster; ended when dropped.
#[cfg(all(
    feature = "lab",
    any(feature = "run", all(feature = "lock", feature = "status"))
))]
#[derive(Debug)]
pub(crate) struct Cluster {
    /// One for all nodes, or one for each.
    #[cfg_attr(
        not(feature = "run"),
        expect(dead_code, reason = "ends them when dropped")
    )]
    programs: Vec<Program>,
    pub(crate) addresses: Vec<SocketAddr>,
}

/// Five addresses that refuse connections: they are taken, so that no node of another test gets them, and nobody
/// listens.
#[derive(Debug)]
pub(crate) struct Absent {
    sockets: Vec<Socket>,
}

impl Absent {
    pub(crate) fn new() -> Self {
        let bound = |_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            socket.bind(&any.into()).expect("a free port");
            socket
        };
        Self {
            sockets: (0..5).map(bound).collect(),
        }
    }

    /// For `--nodes`.
    pub(crate) fn nodes(&self) -> String {
        let addresses = self.sockets.iter().map(|socket| {
            let address = socket.local_addr().expect("an address");
            address.as_socket().expect("an address")
        });
        join(addresses)
    }
}

#[cfg(all(
    feature = "lab",
    any(feature = "run", all(feature = "lock", feature = "status"))
))]
impl Cluster {
    /// Five nodes in one process.
    pub(crate) fn start() -> Self {
        let mut lab = Program::start(command(["lab", "--port", "0"]));
        let addresses = (0..5).map(|_| lab.address()).collect();
        Self {
            programs: vec![lab],
            addresses,
        }
    }

    /// Five nodes in five processes.
    #[cfg(feature = "run")]
    pub(crate) fn start_apart() -> Self {
        let start = |_| Program::start(command(["serve", "--first-start", "--port", "0"]));
        let mut programs: Vec<Program> = (0..5).map(start).collect();
        let addresses = programs.iter_mut().map(Program::address).collect();
        Self {
            programs,
            addresses,
        }
    }

    /// For `--nodes`.
    pub(crate) fn nodes(&self) -> String {
        join(self.addresses.iter().copied())
    }

    /// Sends a signal to the first nodes, each a process of its own.
    #[cfg(feature = "run")]
    pub(crate) fn signal(&self, count: usize, signal: rustix::process::Signal) {
        for program in &self.programs[..count] {
            program.signal(signal);
        }
    }

    /// The first line of the reply of every node.
    pub(crate) fn ask(&self, request: &str) -> Vec<String> {
        let addresses = self.addresses.iter();
        addresses
            .map(|address| ask(&mut connect(*address), request))
            .collect()
    }

    /// Whether no node has the key.
    pub(crate) fn is_free(&self, key: &str) -> bool {
        let replies = self.ask(&format!("EXISTS {key}"));
        replies.iter().all(|reply| reply == ":0")
    }
}

/// The outcome of a run that ends with that code, and again while too few nodes were in time instead: one try gives
/// them 250 ms, with connecting, and a busy machine may take longer.
#[cfg(all(
    feature = "lab",
    any(feature = "run", all(feature = "lock", feature = "status"))
))]
pub(crate) fn decided(
    code: i32,
    run: impl Fn() -> std::process::Output,
) -> (Option<i32>, String, String) {
    let mut tries = 1..10;
    loop {
        let outcome = outcome(&run());
        let is_undecided = outcome.0 == Some(69) && code != 69;
        if !is_undecided || tries.next().is_none() {
            return outcome;
        }
    }
}

fn join(addresses: impl Iterator<Item = SocketAddr>) -> String {
    let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
    addresses.join(",")
}
