//! The node as a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A running node; killed when dropped.
#[derive(Debug)]
pub(crate) struct NodeProcess {
    child: Child,
    address: Receiver<SocketAddr>,
    lines: Arc<Mutex<Vec<String>>>,
    /// Ends with the process, after its last line.
    reader: Option<JoinHandle<()>>,
}

impl NodeProcess {
    /// Starts the program with these arguments and none of our variables in its environment. With a lazy disk, what is
    /// not synced is lost with the process, and each sync takes so much longer.
    pub(crate) fn start(args: &[String], lazy_disk: Option<Duration>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_locknode"));
        if let Some(sync) = lazy_disk {
            command
                .env("LD_PRELOAD", &*LAZY_DISK)
                .env("LAZY_DISK_SYNC_US", sync.as_micros().to_string());
        }
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LOCKNODE_") {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut child = command
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stderr = child.stderr.take().expect("a pipe");
        let (sender, address) = channel();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let listening = line.split_once("listening on ");
                let address = listening.and_then(|(_, address)| address.parse().ok());
                seen.lock().expect("no panic").push(line);
                if let Some(address) = address {
                    let _ = sender.send(address);
                }
            }
        });
        Self {
            child,
            address,
            lines,
            reader: Some(reader),
        }
    }

    /// Waits until the node listens.
    ///
    /// # Errors
    ///
    /// When it ends instead, or takes too long.
    pub(crate) fn address(&self) -> Result<SocketAddr, String> {
        let listening = self.address.recv_timeout(PATIENCE);
        listening.map_err(|error| format!("the node does not listen: {error}"))
    }

    /// Whether the node has said by now that it listens.
    pub(crate) fn is_listening(&self) -> bool {
        self.address.try_recv().is_ok()
    }

    /// SIGKILL, and the end of the process.
    pub(crate) fn kill(&mut self) -> ExitStatus {
        // A process that has ended by itself is none to kill.
        let _ = self.child.kill();
        let status = self.child.wait().expect("a child");
        self.read_rest();
        status
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        let id = Pid::from_raw(id).expect("a process id");
        let _ = kill_process(id, Signal::TERM);
    }

    /// Waits for the end of the process.
    ///
    /// # Errors
    ///
    /// When it takes too long.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                self.read_rest();
                return Ok(status);
            }
            if Instant::now() > deadline {
                return Err("the node does not end after SIGTERM".to_owned());
            }
            std::thread::sleep(GLANCE);
        }
    }

    fn read_rest(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("no panic");
        }
    }

    /// What the node has said.
    pub(crate) fn log(&self) -> String {
        self.lines.lock().expect("no panic").join("\n")
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The library of `lazy_disk.c`, built once by the C compiler that Rust links with.
static LAZY_DISK: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash/lazy_disk.c");
    let name = format!("lazy-disk-{}.so", std::process::id());
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .args([&library, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success(), "lazy_disk.c does not compile");
    library
});

/// Only what will never happen takes so long, on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Between two looks at something that nobody announces.
pub(crate) const GLANCE: Duration = Duration::from_millis(1);
