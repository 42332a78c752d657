//! The servers: finding, starting, stopping.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server program.
#[derive(Debug)]
pub struct Server {
    /// What the tables call it.
    pub name: String,
    /// What it answers to `--version`.
    pub version: String,
    path: String,
    kind: Kind,
}

/// Which command line a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Our node.
    Locknode,
    /// Redis, Valkey and whatever takes their arguments.
    Redis,
}

/// A running server; ended when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Its port on 127.0.0.1.
    pub port: u16,
}

/// The node whose program is `locknode` first, then every peer in PATH, then `more` as name and path.
///
/// # Errors
///
/// A program that does not run, or no peer at all.
pub fn find(locknode: &str, more: &[(String, String)]) -> Result<Vec<Server>, String> {
    let ours = Server::probe("locknode", locknode, Kind::Locknode)
        .ok_or_else(|| format!("{locknode} does not run; build it with cargo build --release"))?;
    let mut servers = vec![ours];
    for name in ["redis-server", "valkey-server"] {
        servers.extend(Server::probe(
            name.trim_end_matches("-server"),
            name,
            Kind::Redis,
        ));
    }
    for (name, path) in more {
        let server = Server::probe(name, path, Kind::Redis);
        servers.push(server.ok_or_else(|| format!("{path} does not run"))?);
    }
    if servers.len() == 1 {
        return Err(
            "no peer found: install redis-server, or name one with --server name=path".to_owned(),
        );
    }
    Ok(servers)
}

impl Server {
    /// The server whose program is at `path`, if it runs.
    #[must_use]
    pub fn probe(name: &str, path: &str, kind: Kind) -> Option<Self> {
        let output = Command::new(path).arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Some(Self {
            name: name.to_owned(),
            version,
            path: path.to_owned(),
            kind,
        })
    }

    /// Whether this is the node under test.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.kind == Kind::Locknode
    }

    /// Starts the server, empty, on a free loopback port, pinned to the first core.
    ///
    /// # Errors
    ///
    /// No free port, no `taskset`, or no answer within ten seconds.
    pub fn start(&self) -> Result<Running, String> {
        let port = free_port().map_err(|error| format!("no free port: {error}"))?;
        let mut command = Command::new("taskset");
        command.args(["-c", "0", &self.path]);
        match self.kind {
            Kind::Locknode => {
                command.args([
                    "serve",
                    "--bind",
                    "127.0.0.1",
                    "--port",
                    &port.to_string(),
                    "--threads",
                    "1",
                ]);
            }
            Kind::Redis => {
                command.args([
                    "--bind",
                    "127.0.0.1",
                    "--port",
                    &port.to_string(),
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                ]);
            }
        }
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child =
            child.map_err(|error| format!("cannot start taskset and {}: {error}", self.path))?;
        let running = Running { child, port };
        running
            .wait_for_pong()
            .map_err(|error| format!("{} does not answer: {error}", self.path))?;
        Ok(running)
    }
}

impl Running {
    /// The server's process id: taskset becomes the program it starts.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_for_pong(&self) -> std::io::Result<()> {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let pong = TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
                stream.set_read_timeout(Some(Duration::from_secs(1)))?;
                stream.write_all(b"PING\r\n")?;
                let mut reply = [0; 7];
                stream.read_exact(&mut reply)
            });
            match pong {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
