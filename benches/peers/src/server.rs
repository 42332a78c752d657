//! The servers: finding, starting, stopping.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::setup::{Run, Setup};
use crate::wire::Wire;

/// A server program.
#[derive(Debug)]
pub struct Server {
    /// What the tables call it.
    pub name: String,
    /// What it answers to `--version`.
    pub version: String,
    path: String,
    /// Which command line it takes.
    pub kind: Kind,
}

/// Which command line a server takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
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
        let short = name.trim_end_matches("-server");
        servers.extend(Server::probe(short, name, Kind::Redis));
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

    /// Starts the server, empty, on a free loopback port, pinned to the first core. It keeps nothing: no restart
    /// guard, no snapshots, no append-only file.
    ///
    /// # Errors
    ///
    /// No free port, no `taskset`, or no answer within ten seconds.
    pub fn start(&self) -> Result<Running, String> {
        let nowhere = Path::new("");
        self.start_with(&Setup::Nothing.args(self.kind, nowhere, Run::First, ""))
    }

    /// The same with these arguments for what it keeps.
    ///
    /// # Errors
    ///
    /// As [`Server::start`].
    pub fn start_with(&self, keeping: &[String]) -> Result<Running, String> {
        let mut running = self.spawn(keeping)?;
        running
            .wait_for_pong(START_MAX)
            .map_err(|error| format!("{} {}: {error}", self.path, keeping.join(" ")))?;
        Ok(running)
    }

    /// The same without waiting for an answer.
    ///
    /// # Errors
    ///
    /// No free port, or no `taskset`.
    pub fn spawn(&self, keeping: &[String]) -> Result<Running, String> {
        let port = free_port().map_err(|error| format!("no free port: {error}"))?;
        let mut command = Command::new("taskset");
        command.args(["-c", "0", &self.path]).args(match self.kind {
            Kind::Locknode => &["serve", "--threads", "1"][..],
            Kind::Redis => &["--save", ""],
        });
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        let complaints = if std::env::var_os("BENCH_PEERS_VERBOSE").is_some() {
            Stdio::inherit()
        } else {
            Stdio::null()
        };
        let child = command
            .args(keeping)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(complaints)
            .spawn();
        let child =
            child.map_err(|error| format!("cannot start taskset and {}: {error}", self.path))?;
        Ok(Running { child, port })
    }
}

impl Running {
    /// The server's process id: taskset becomes the program it starts.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A connection for questions.
    ///
    /// # Errors
    ///
    /// A reason for a person.
    pub fn wire(&self) -> Result<Wire, String> {
        Wire::open(self.port, ANSWER_MAX).map_err(|error| format!("no connection: {error}"))
    }

    /// A number that INFO tells, if it tells it.
    #[must_use]
    pub fn info(&self, section: &str, field: &str) -> Option<f64> {
        let text = self.wire().ok()?.ask(&format!("INFO {section}")).ok()?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value?.trim().parse().ok()
    }

    /// Waits until PING is answered with PONG, and nothing else.
    ///
    /// # Errors
    ///
    /// What came instead for the whole time, or that the server ended.
    pub fn wait_for_pong(&mut self, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        loop {
            let answer = Wire::open(self.port, ANSWER_MAX).and_then(|mut wire| wire.ask("PING"));
            let problem = match answer {
                Ok(answer) if answer == "+PONG" => return Ok(()),
                Ok(answer) => format!("answers {answer}"),
                Err(error) => format!("does not answer: {error}"),
            };
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended with {status}"));
            }
            if Instant::now() > deadline {
                return Err(problem);
            }
            // Short, because starts are timed with it.
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    /// Ends the server with SIGTERM and waits until it is gone; how long that took.
    ///
    /// # Errors
    ///
    /// When it does not end in time or not with success.
    pub fn terminate(self, patience: Duration) -> Result<Duration, String> {
        let started = Instant::now();
        let status = Command::new("kill")
            .args(["-TERM", &self.pid().to_string()])
            .status();
        if !status.is_ok_and(|status| status.success()) {
            return Err("cannot send SIGTERM".to_owned());
        }
        self.wait_for_end(started, patience)
    }

    /// Ends the server with SHUTDOWN SAVE, which makes a Redis write its snapshot; how long that took.
    ///
    /// # Errors
    ///
    /// As [`Running::terminate`].
    pub fn shut_down_saving(self, patience: Duration) -> Result<Duration, String> {
        let started = Instant::now();
        self.wire()?
            .tell("SHUTDOWN SAVE")
            .map_err(|error| format!("cannot send SHUTDOWN: {error}"))?;
        self.wait_for_end(started, patience)
    }

    fn wait_for_end(mut self, started: Instant, patience: Duration) -> Result<Duration, String> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(started.elapsed()),
                Ok(Some(status)) => return Err(format!("a server ended with {status}")),
                Ok(None) if started.elapsed() < patience => {
                    std::thread::sleep(Duration::from_micros(500));
                }
                Ok(None) => return Err(format!("a server did not end within {patience:?}")),
                Err(error) => return Err(format!("cannot wait for a server: {error}")),
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

/// Longer than an empty server takes to start on any machine.
const START_MAX: Duration = Duration::from_secs(10);

/// Longer than any pause of a server that works.
const ANSWER_MAX: Duration = Duration::from_secs(5);
