//! A real server that ends with the test.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::loopback::LoopbackPort;

/// A `redis-server` (or whatever `LOCKNODE_TEST_REDIS` names; Valkey's will do) in a directory of its own, with
/// nothing to load and nothing written.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    directory: PathBuf,
    port: Option<LoopbackPort>,
}

impl RedisServer {
    /// Starts the server on a Unix socket; `None`, with the reason printed, when there is none.
    pub fn start() -> Option<Self> {
        Self::start_at(None)
    }

    /// Starts the server on a free loopback port as well.
    pub fn start_on_tcp() -> Option<Self> {
        Self::start_at(Some(LoopbackPort::reserve()))
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.directory.join("s")
    }

    /// Its TCP address.
    ///
    /// # Panics
    ///
    /// When it was started without one.
    pub fn address(&self) -> SocketAddr {
        self.port.as_ref().expect("a TCP port").address()
    }

    /// Kills the process at once: what it knew is gone.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Starts it again, empty, at the same addresses.
    pub fn restart(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(self.socket());
        let port = self.port.as_ref().map(LoopbackPort::address);
        self.process = spawn(&self.directory, port).expect("a program that was there before");
        self.wait_until_it_listens();
    }

    fn start_at(port: Option<LoopbackPort>) -> Option<Self> {
        let directory = std::env::temp_dir().join(format!(
            "locknode-peer-{}-{}",
            std::process::id(),
            STARTED.fetch_add(1, Ordering::Relaxed)
        ));
        std::fs::create_dir(&directory).expect("a fresh directory");
        let process = match spawn(&directory, port.as_ref().map(LoopbackPort::address)) {
            Ok(process) => process,
            Err(error) => {
                println!("skipped: cannot start {}: {error}", program());
                let _ = std::fs::remove_dir(&directory);
                return None;
            }
        };
        let mut server = Self {
            process,
            directory,
            port,
        };
        server.wait_until_it_listens();
        Some(server)
    }

    fn wait_until_it_listens(&mut self) {
        let patience = Instant::now() + Duration::from_secs(20);
        loop {
            let socket = UnixStream::connect(self.socket());
            let port = self.port.as_ref().map(LoopbackPort::address);
            if socket.is_ok() && port.is_none_or(|port| TcpStream::connect(port).is_ok()) {
                return;
            }
            let exit = self.process.try_wait().expect("the state of a child");
            assert!(exit.is_none(), "{} ended at once: {exit:?}", program());
            assert!(Instant::now() < patience, "{} does not listen", program());
            std::thread::yield_now();
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
        // Nothing can be done about an error, and the next run uses another path.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// The program that is taken for a real server.
fn program() -> String {
    std::env::var("LOCKNODE_TEST_REDIS").unwrap_or("redis-server".to_owned())
}

fn spawn(directory: &Path, port: Option<SocketAddr>) -> std::io::Result<Child> {
    let port = port.map_or(0, |address| address.port()).to_string();
    Command::new(program())
        .args(["--port", &port, "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", "no", "--unixsocket"])
        .arg(directory.join("s"))
        .current_dir(directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Servers that this process has started.
static STARTED: AtomicU32 = AtomicU32::new(0);
