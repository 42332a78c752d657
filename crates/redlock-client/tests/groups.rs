//! Sentinel groups and Redis Clusters as nodes: real ones, on loopback. Without a `redis-server` (or what
//! `LOCKNODE_TEST_REDIS` names) they are skipped.

#![cfg(all(test, unix))]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on fails, and says why it is skipped"
)]

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
        // A server that is about to become a replica closes its connections, and is asked again.
        let _ = stream.read_to_string(&mut reply);
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
    let patience = Instant::now() + Duration::from_secs(180);
    while !holds() {
        assert!(Instant::now() < patience, "not in time: {what}");
        // Each question is a connection, and the system has some tens of thousands of them in a minute.
        std::thread::sleep(Duration::from_millis(10));
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
    let master = Server::data("repl-diskless-sync-delay 0")?;
    let replica = Server::data(&format!("replicaof 127.0.0.1 {}", master.port()))?;
    // Before the Sentinel asks for the first time: it asks again after ten seconds.
    until("the replica is there", || {
        let link = replica.ask("INFO replication");
        link.contains("master_link_status:up")
    });
    let config = format!(
        "sentinel monitor g 127.0.0.1 {} 1\nsentinel failover-timeout g 10000",
        master.port()
    );
    let sentinel = Server::start(Port::reserve(), &["--sentinel"], &config)?;
    until("the replica is known", || {
        let known = sentinel.ask("SENTINEL REPLICAS g");
        known.contains("master-link-status $2 ok")
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

/// Three masters that share the slots.
fn cluster() -> Option<Vec<Server>> {
    let ranges = ["0 5460", "5461 10922", "10923 16383"];
    let mut masters = Vec::new();
    for range in ranges {
        let bus = Port::reserve();
        let config = format!("cluster-enabled yes\ncluster-port {}", bus.number);
        let master = Server::data(&config)?;
        let added = master.ask(&format!("CLUSTER ADDSLOTSRANGE {range}"));
        assert!(added.starts_with("+OK"), "{added}");
        masters.push((master, bus));
    }
    for (other, bus) in &masters[1..] {
        let (first, _) = &masters[0];
        let meet = format!("CLUSTER MEET 127.0.0.1 {} {}", other.port(), bus.number);
        assert!(first.ask(&meet).starts_with("+OK"));
    }
    let masters: Vec<Server> = masters.into_iter().map(|(master, _)| master).collect();
    for master in &masters {
        until("the cluster is whole", || {
            let info = master.ask("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        });
    }
    Some(masters)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_one_node_whichever_of_its_masters_has_the_key() {
    let Some(masters) = cluster() else {
        return;
    };
    let seed = format!("cluster://127.0.0.1:{}", masters[1].port());
    let redlock = client(&[seed]);
    let mut guards = Vec::new();
    for n in 0..40 {
        guards.push(acquire(&redlock, &format!("key {n}")).await);
    }
    for master in &masters {
        assert!(!master.ask("DBSIZE").starts_with(":0"));
    }
    let other = client(&[format!("cluster://127.0.0.1:{}", masters[0].port())]);
    assert!(other.lock("key 7").try_acquire().await.unwrap().is_none());
    for guard in &guards {
        guard.extend(Duration::from_secs(90)).await.unwrap();
    }
    for guard in guards {
        assert!(guard.release().await.is_free());
    }
    for master in &masters {
        assert!(master.ask("DBSIZE").starts_with(":0"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_on_its_way_to_another_master_is_followed() {
    let Some(masters) = cluster() else {
        return;
    };
    let (from, to) = (&masters[2], &masters[0]);
    let id = |master: &Server| {
        master
            .ask("CLUSTER MYID")
            .split(' ')
            .nth(1)
            .unwrap()
            .to_owned()
    };
    let redlock = client(&[format!("cluster://127.0.0.1:{}", from.port())]);
    // `foo` is in slot 12182, of the third master.
    let guard = acquire(&redlock, "foo").await;
    assert!(guard.release().await.is_free());
    assert!(
        to.ask(&format!("CLUSTER SETSLOT 12182 IMPORTING {}", id(from)))
            .starts_with("+OK")
    );
    assert!(
        from.ask(&format!("CLUSTER SETSLOT 12182 MIGRATING {}", id(to)))
            .starts_with("+OK")
    );
    // A key that is not there is asked for at the other one.
    let guard = acquire(&redlock, "foo").await;
    assert!(to.ask("DBSIZE").starts_with(":1"));
    for master in [to, from, &masters[1]] {
        let moved = master.ask(&format!("CLUSTER SETSLOT 12182 NODE {}", id(to)));
        assert!(moved.starts_with("+OK"), "{moved}");
    }
    guard.extend(Duration::from_secs(90)).await.unwrap();
    assert!(guard.release().await.is_free());
    assert!(to.ask("DBSIZE").starts_with(":0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_and_plain_nodes_make_one_quorum() {
    let (Some(masters), Some([_master, _replica, sentinel])) = (cluster(), group()) else {
        return;
    };
    let Some(plain) = Server::data("") else {
        return;
    };
    let redlock = client(&[
        format!("cluster://127.0.0.1:{}", masters[0].port()),
        format!("sentinel://127.0.0.1:{}/g", sentinel.port()),
        format!("127.0.0.1:{}", plain.port()),
    ]);
    let guard = acquire(&redlock, "k").await;
    let views = redlock.inspect("k").await.unwrap();
    let holding = views
        .iter()
        .filter(|view| matches!(view.answer, Ok(Some(_))));
    assert!(holding.count() >= 2, "{views:?}");
    // One cluster is one failure domain, and one vote.
    drop(masters);
    guard.extend(Duration::from_secs(30)).await.unwrap();
    assert!(guard.release().await.is_free());
}
