//! What the service manager is told; these tests play the manager.

use std::io::{PipeReader, Read as _, Write as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::processes::wait_until;
use crate::program::{Directory, PATIENCE, Program, ask, command, connect};

/// A manager, and the address that it gives to its services.
struct Manager {
    socket: UnixDatagram,
    address: String,
    _directory: Directory,
}

impl Manager {
    fn at_path(name: &str) -> Self {
        let directory = Directory::new(name);
        let address = directory.path_of("notify");
        let socket = UnixDatagram::bind(&address).expect("a socket");
        Self::new(socket, address, directory)
    }

    fn at_abstract_name(name: &str) -> Self {
        let name = format!("locknode-{name}-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let socket = UnixDatagram::bind_addr(&address).expect("a socket");
        Self::new(socket, format!("@{name}"), Directory::new(&name))
    }

    fn new(socket: UnixDatagram, address: String, directory: Directory) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self {
            socket,
            address,
            _directory: directory,
        }
    }

    fn serve(&self, flags: &str) -> Command {
        let line = format!("serve --port 0 {flags}");
        let mut serve = command(line.split_whitespace());
        serve.env("NOTIFY_SOCKET", &self.address);
        serve
    }

    /// The next message; `None` when there is none for so long.
    fn message_within(&self, time: Duration) -> Option<String> {
        self.socket.set_read_timeout(Some(time)).expect("a timeout");
        let mut message = vec![0; 4096];
        let len = self.socket.recv(&mut message).ok()?;
        message.truncate(len);
        Some(String::from_utf8(message).expect("text"))
    }

    fn message(&self) -> String {
        self.message_within(PATIENCE).expect("a message")
    }

    /// The next message that begins so; those before it are passed over.
    fn message_with(&self, beginning: &str) -> String {
        loop {
            let message = self.message();
            if message.starts_with(beginning) {
                return message;
            }
        }
    }

    /// Takes what is there.
    fn forget(&self) {
        while self.message_within(Duration::from_millis(1)).is_some() {}
    }
}

#[test]
fn the_manager_learns_of_start_reload_and_stop() {
    for manager in [
        Manager::at_path("systemd"),
        Manager::at_abstract_name("systemd"),
    ] {
        let mut node = Program::start(manager.serve("--first-start"));
        assert_eq!(manager.message(), "READY=1\nSTATUS=granting locks");
        // It listens by then.
        let mut client = connect(node.address());
        assert_eq!(ask(&mut client, "SET k a NX PX 60000"), "+OK");
        node.signal(Signal::HUP);
        let reloading = manager.message();
        let micros = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        let micros: u64 = micros.and_then(|it| it.parse().ok()).expect(&reloading);
        assert!(micros > 0);
        assert_eq!(manager.message(), "READY=1");
        node.signal(Signal::TERM);
        assert!(manager.message().starts_with("STOPPING=1\nSTATUS="));
        assert!(node.wait().success());
    }
}

#[test]
fn the_status_has_the_time_left_of_a_quarantine() {
    let manager = Manager::at_path("systemd-status");
    let _node = Program::start(manager.serve("--max-ttl 1500ms"));
    let first = manager.message();
    assert!(
        first.starts_with("READY=1\nSTATUS=in quarantine for another 1."),
        "{first}"
    );
    manager.message_with("STATUS=in quarantine for another 0.");
    manager.message_with("STATUS=granting locks");
}

/// A node that does not listen until its quarantine is over is not ready before, and asks for more time.
#[test]
fn a_node_is_ready_only_when_it_listens() {
    let manager = Manager::at_path("systemd-refuse");
    let _node = Program::start(manager.serve("--max-ttl 200ms --quarantine refuse"));
    let first = manager.message();
    assert!(
        first.starts_with("EXTEND_TIMEOUT_USEC=30000000\nSTATUS=not listening: in quarantine"),
        "{first}"
    );
    assert_eq!(manager.message(), "READY=1\nSTATUS=granting locks");
    let mut node = Program::start(manager.serve("--max-ttl 1h --quarantine refuse"));
    manager.message_with("EXTEND_TIMEOUT_USEC=");
    node.signal(Signal::TERM);
    assert!(manager.message().starts_with("STOPPING=1"));
    assert!(node.wait().success());
}

#[test]
fn a_manager_that_cannot_be_told_ends_nothing() {
    for (address, is_told) in [("/nowhere/notify", true), ("vsock:2:1", true), ("", false)] {
        let mut serve = command("serve --first-start --port 0".split(' '));
        serve.env("NOTIFY_SOCKET", address);
        let mut node = Program::start(serve);
        let mut client = connect(node.address());
        assert_eq!(ask(&mut client, "SET k a NX PX 60000"), "+OK");
        assert!(node.end(Signal::TERM).success());
        let told = node.count("cannot tell the service manager anything");
        assert_eq!(told == 1, is_told, "{address:?}: {:?}", node.seen());
    }
}

/// How long the manager waits in these tests.
const PATIENCE_OF_MANAGER: Duration = Duration::from_millis(400);

fn watched(manager: &Manager, flags: &str) -> Command {
    let mut serve = manager.serve(flags);
    serve.env("WATCHDOG_USEC", PATIENCE_OF_MANAGER.as_micros().to_string());
    serve
}

#[test]
fn a_node_whose_threads_run_shows_it() {
    for threads in [1, 3] {
        let manager = Manager::at_path(&format!("systemd-watch-{threads}"));
        let node = Program::start(watched(&manager, &format!("--threads {threads}")));
        manager.message_with("READY=1");
        let began = Instant::now();
        for _ in 0..4 {
            manager.message_with("WATCHDOG=1");
        }
        assert!(
            began.elapsed() >= PATIENCE_OF_MANAGER,
            "it shows it too often"
        );
        // A process that is stopped does not.
        node.signal(Signal::STOP);
        wait_until("no sign of life", || {
            manager.forget();
            manager.message_within(2 * PATIENCE_OF_MANAGER).is_none()
        });
        node.signal(Signal::CONT);
        manager.message_with("WATCHDOG=1");
    }
    // What is meant for another process is not for this one.
    let manager = Manager::at_path("systemd-watch-other");
    let mut serve = watched(&manager, "--first-start");
    serve.env("WATCHDOG_PID", "1");
    let mut node = Program::start(serve);
    manager.message_with("READY=1");
    assert_eq!(manager.message_within(2 * PATIENCE_OF_MANAGER), None);
    assert!(node.end(Signal::TERM).success());
}

/// A thread that serves hangs, here in a line for which its standard error has no room; the others run. Nobody may then
/// show that the node does.
#[test]
fn a_node_with_a_thread_that_hangs_does_not_vouch_for_it() {
    let manager = Manager::at_path("systemd-hang");
    let (mut reader, mut writer) = std::io::pipe().expect("a pipe");
    let mut serve = watched(&manager, "--first-start --threads 2");
    serve.stdout(Stdio::null());
    serve.stderr(writer.try_clone().expect("another end"));
    let mut node = serve.spawn().expect("it starts");
    drop(serve);
    manager.message_with("READY=1");
    manager.message_with("WATCHDOG=1");
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    while writer.write(b"\n").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
    drop(writer);
    let id = i32::try_from(node.id()).expect("a process id");
    let id = rustix::process::Pid::from_raw(id).expect("a process id");
    rustix::process::kill_process(id, Signal::TERM).expect("it runs");
    wait_until("no sign of life", || {
        manager.forget();
        manager.message_within(2 * PATIENCE_OF_MANAGER).is_none()
    });
    assert!(node.try_wait().expect("a child").is_none(), "it hangs");
    read_all(&mut reader);
    assert!(node.wait().expect("a child").success());
}

fn read_all(reader: &mut PipeReader) {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).expect("what it wrote");
    assert!(String::from_utf8_lossy(&all).contains("SIGTERM"));
}
