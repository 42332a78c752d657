//! Sentinel groups as nodes: real ones, on loopback. Without a `redis-server` (or what
//! `LOCKNODE_TEST_REDIS` names) they are skipped.

#![cfg(all(test, unix))]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use redlock_client::{Guard, Redlock};
use tokio::net::TcpSocket;

/// A server on a port of its own, in a directory of its own; ended when dropped.
struct Server {
    process: Child,
    directory: PathBuf,
    port: Port,
}

/// A port that stays ours: it is bound, and nobody listens until a server does.
struct Port {
    number: u16,
    _holder: TcpSocket,
}

impl Port {
    fn reserve() -> Self {
        let holder = TcpSocket::new_v4().unwrap();
        holder.set_reuseaddr(true).unwrap();
        holder.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self {
            number: holder.local_addr().unwrap().port(),
            _holder: holder,
        }
    }
}

impl Server {
    /// Starts a server with these lines in its configuration; `None`, with the reason printed, without one.
    fn start(port: Port, mode: &[&str], config: &str) -> Option<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("redlock-groups-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let file = directory.join("conf");
        let number = port.number;
        let text = format!("port {number}\nbind 127.0.0.1\n{config}\n");
        std::fs::write(&file, text).unwrap();
        let program = std::env::var("LOCKNODE_TEST_REDIS").unwrap_or("redis-server".to_owned());
        let started = Command::new(&program)
            .arg(&file)
            .args(mode)
            .current_dir(&directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = match started {
            Ok(process) => process,
            Err(error) => {
                println!("skipped: cannot start {program}: {error}");
                let _ = std::fs::remove_dir_all(&directory);
                return None;
            }
        };
        let server = Self {
            process,
            directory,
            port,
        };
        until("it listens", || {
            TcpStream::connect(("127.0.0.1", number)).is_ok()
        });
        Some(server)
    }

    fn data(config: &str) -> Option<Self> {
        Self::start(Port::reserve(), &[], &format!("save \"\"\n{config}"))
    }

    fn port(&self) -> u16 {
        self.port.number
    }

    /// Sends a command and returns what comes back until nothing more does.
    fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port())).unwrap();
        stream
            .write_all(format!("{command}\r\n").as_bytes())
            .unwrap();
        // The server then closes the connection; a Sentinel has no QUIT.
        stream.shutdown(Shutdown::Write).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.replace("\r\n", " ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < patience, "not in time: {what}");
        std::thread::yield_now();
    }
}

fn client(nodes: &[String]) -> Redlock {
    let builder = Redlock::builder()
        .nodes(nodes)
        .node_timeout(Duration::from_secs(5));
    builder
        .connect_timeout(Duration::from_secs(10))
        .build()
        .unwrap()
}

async fn acquire(redlock: &Redlock, key: &str) -> Guard {
    let request = redlock.lock(key).ttl(Duration::from_secs(60));
    request
        .wait_for(Duration::from_secs(60))
        .acquire()
        .await
        .unwrap()
}

/// A master, its replica, and a Sentinel.
fn group() -> Option<[Server; 3]> {
    let master = Server::data("")?;
    let replica = Server::data(&format!("replicaof 127.0.0.1 {}", master.port()))?;
    let config = format!(
        "sentinel monitor g 127.0.0.1 {} 1\nsentinel failover-timeout g 10000",
        master.port()
    );
    let sentinel = Server::start(Port::reserve(), &["--sentinel"], &config)?;
    until("the replica is known", || {
        let known = sentinel
            .ask("SENTINEL REPLICAS g")
            .contains("master-link-status $2 ok");
        known
            && replica
                .ask("INFO replication")
                .contains("master_link_status:up")
    });
    Some([master, replica, sentinel])
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failover_a_sentinel_group_votes_with_its_new_master() {
    let Some([master, replica, sentinel]) = group() else {
        return;
    };
    // The first of the Sentinels is not there.
    let absent = Port::reserve();
    let places = format!("127.0.0.1:{},127.0.0.1:{}", absent.number, sentinel.port());
    let redlock = client(&[format!("sentinel://{places}/g")]);
    let guard = acquire(&redlock, "before").await;
    assert!(master.ask("EXISTS before").starts_with(":1"));
    assert!(guard.release().await.is_free());

    let named = || sentinel.ask("SENTINEL GET-MASTER-ADDR-BY-NAME g");
    until("the failover begins", || {
        sentinel.ask("SENTINEL FAILOVER g").starts_with("+OK")
    });
    until("the failover", || {
        named().contains(&replica.port().to_string())
    });
    until("the old master is a replica", || {
        master.ask("ROLE").contains("slave")
    });
    let guard = acquire(&redlock, "after").await;
    assert!(replica.ask("EXISTS after").starts_with(":1"));
    assert!(guard.release().await.is_free());

    let stranger = client(&[format!("sentinel://127.0.0.1:{}/other", sentinel.port())]);
    let error = stranger.lock("k").try_acquire().await.unwrap_err();
    assert!(
        error.to_string().contains("knows no group other"),
        "{error}"
    );
}
