//! Five nodes, and what is on them.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::process::{Command, Output};

use rustix::process::Signal;
use socket2::{Domain, Socket, Type};

use crate::program::{Program, ask, command, connect, ended, serve};

/// A running cluster; ended when dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// One for all nodes, or one for each.
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

    /// The first of them, for `--nodes`.
    pub(crate) fn nodes(&self, count: usize) -> String {
        let addresses = self.sockets[..count].iter().map(|socket| {
            let address = socket.local_addr().expect("an address");
            address.as_socket().expect("an address")
        });
        join(addresses)
    }
}

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
    pub(crate) fn start_apart() -> Self {
        let mut programs: Vec<Program> = (0..5).map(|_| serve("--first-start")).collect();
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
    pub(crate) fn signal(&self, count: usize, signal: Signal) {
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

    /// How many nodes reply that.
    pub(crate) fn count(&self, request: &str, is_it: impl Fn(&str) -> bool) -> usize {
        let replies = self.ask(request).into_iter();
        replies.filter(|reply| is_it(reply)).count()
    }

    /// On how many nodes the key has a TTL in this range of milliseconds.
    pub(crate) fn count_ttls(&self, key: &str, range: Range<i64>) -> usize {
        self.count(&format!("PTTL {key}"), |reply| {
            let left = reply.trim_start_matches(':').parse();
            left.is_ok_and(|left| range.contains(&left))
        })
    }

    /// Whether no node has the key.
    pub(crate) fn is_free(&self, key: &str) -> bool {
        self.count(&format!("EXISTS {key}"), |reply| reply == ":0") == self.addresses.len()
    }

    /// How many nodes a text names.
    pub(crate) fn count_in(&self, text: &str) -> usize {
        let addresses = self.addresses.iter();
        addresses
            .filter(|address| text.contains(&address.to_string()))
            .count()
    }

    /// `locknode run` with these flags and that command, with time to get the lock: one try gives the nodes 250 ms, and a
    /// busy machine may take longer.
    pub(crate) fn run(&self, flags: &str, words: &[&str]) -> Command {
        self.run_at_once(&format!("--wait 20s {flags}"), words)
    }

    /// The same without that time.
    pub(crate) fn run_at_once(&self, flags: &str, words: &[&str]) -> Command {
        let nodes = self.nodes();
        let line = format!("run --nodes {nodes} {flags} --");
        command(line.split_whitespace().chain(words.iter().copied()))
    }

    /// Starts a script of a shell while the lock is held, and waits until it says `ready`.
    pub(crate) fn job(&self, flags: &str, script: &str) -> Program {
        let mut job = Program::start(self.run(flags, &["sh", "-c", script]));
        job.line_with("ready");
        job
    }
}

/// Runs a program to an end with that code, and again while too few nodes were in time instead: one try gives them
/// 250 ms, with connecting, and a busy machine may take longer.
#[track_caller]
pub(crate) fn decided(code: i32, run: impl Fn() -> Output) -> (String, String) {
    let mut tries = 1..10;
    loop {
        let output = run();
        let is_undecided = output.status.code() == Some(69) && code != 69;
        if !is_undecided || tries.next().is_none() {
            return ended(code, &output);
        }
    }
}

fn join(addresses: impl Iterator<Item = SocketAddr>) -> String {
    let addresses: Vec<String> = addresses.map(|address| address.to_string()).collect();
    addresses.join(",")
}
