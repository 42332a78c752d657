//! The servers: finding, starting, stopping.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::options::Options;

/// A server program.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) version: String,
    path: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Locknode,
    Redis,
}

/// A running server; ended when dropped.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    pub(crate) port: u16,
}

/// Our server first, then every peer there is.
pub(crate) fn find(options: &Options) -> Result<Vec<Server>, String> {
    let ours = probe("locknode", &options.locknode, Kind::Locknode).ok_or_else(|| {
        format!(
            "{} does not run; build it with cargo build --release",
            options.locknode
        )
    })?;
    let mut servers = vec![ours];
    for name in ["redis-server", "valkey-server"] {
        servers.extend(probe(name.trim_end_matches("-server"), name, Kind::Redis));
    }
    for (name, path) in &options.servers {
        let server = probe(name, path, Kind::Redis);
        servers.push(server.ok_or_else(|| format!("{path} does not run"))?);
    }
    if servers.len() == 1 {
        return Err(
            "no peer found: install redis-server, or name one with --server name=path".to_owned(),
        );
    }
    Ok(servers)
}

fn probe(name: &str, path: &str, kind: Kind) -> Option<Server> {
    let output = Command::new(path).arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Some(Server {
        name: name.to_owned(),
        version,
        path: path.to_owned(),
        kind,
    })
}

impl Server {
    /// Whether this is the node under test.
    pub(crate) fn is_ours(&self) -> bool {
        self.kind == Kind::Locknode
    }

    /// Starts the server, empty, on a free loopback port, pinned to the first core.
    pub(crate) fn start(&self) -> Result<Running, String> {
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
    pub(crate) fn pid(&self) -> u32 {
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
