//! What is wrong with nodes, real ones: locknode, and Redis and Valkey where they are installed.

#![expect(
    clippy::print_stdout,
    reason = "who runs it wants to know what was left out"
)]

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::cluster::Absent;
use crate::processes::wait_until;
use crate::program::{Directory, Program, command, ends, outcome, run, serve, shows};

/// A Redis or Valkey; killed when dropped.
struct Other {
    process: Child,
    address: SocketAddr,
    _directory: Directory,
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts one with these settings; `None` where it is not installed.
fn other(program: &str, settings: &str) -> Option<Other> {
    for attempt in 0.. {
        let absent = Absent::new();
        let address: SocketAddr = absent.nodes(1).parse().expect("an address");
        drop(absent);
        let directory = Directory::new(&format!("doctor-{program}-{attempt}-{}", address.port()));
        let spawned = Command::new(program)
            .args(["--port", &address.port().to_string(), "--bind", "127.0.0.1"])
            .args(settings.split_whitespace())
            .current_dir(&directory.path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = spawned else {
            println!("skipped: there is no {program}");
            return None;
        };
        let mut other = Other {
            process,
            address,
            _directory: directory,
        };
        let mut has_ended = false;
        wait_until("it listens, or its port is taken", || {
            has_ended = other.process.try_wait().is_ok_and(|ended| ended.is_some());
            has_ended || TcpStream::connect(other.address).is_ok()
        });
        if !has_ended {
            return Some(other);
        }
    }
    None
}

fn doctor(nodes: &str) -> (Option<i32>, String, String) {
    outcome(&run([
        "doctor",
        "--for",
        "300ms",
        "--timeout",
        "20s",
        "--nodes",
        nodes,
    ]))
}

#[test]
fn nodes_of_ours_that_are_well_and_that_are_not() {
    let directory = Directory::new("doctor");
    let nodes: Vec<_> = (0..3)
        .map(|index| {
            let path = directory.path_of(&index.to_string());
            let mut node = serve(&format!("--first-start --dir {path}"));
            let address = node.address().to_string();
            (node, address)
        })
        .collect();
    let addresses: Vec<_> = nodes.iter().map(|(_, address)| address.as_str()).collect();
    // A machine that is busy with other tests may reply late, which is all that may be wrong.
    let (code, out, _) = doctor(&addresses.join(","));
    shows(&out, &["locknode 0.1.0", "ppm (+-"]);
    let is_late = code == Some(75) && !out.contains("problem ");
    assert!(
        code == Some(0) && out.contains("nothing is wrong") || is_late,
        "{out}"
    );

    let mut waiting = serve("--max-ttl 1h");
    let mut off = serve("--restart-guard off");
    let (waiting, off) = (waiting.address().to_string(), off.address().to_string());
    let absent = Absent::new();
    let away = absent.nodes(1);
    let twice = addresses[0].replace("127.0.0.1", "localhost");
    let nodes = [addresses[0], &twice, &waiting, &off, &away].join(",");
    let (code, out, err) = doctor(&nodes);
    assert_eq!(code, Some(69), "{out}{err}");
    shows(
        &out,
        &[
            &format!("{}, {twice}: these are one server", addresses[0]),
            &format!("{waiting}: it refuses locks for another 36"),
            &format!("{off}: its restart guard is off"),
            &format!("{away}: it does not reply: connection refused"),
            "max-ttl differs: 3600000 ms",
            "3 of 5 nodes grant locks: when one more is away",
            "2 problems, ",
        ],
    );
}

#[test]
fn every_finding_is_there_for_scripts() {
    let absent = Absent::new();
    let away = absent.nodes(1);
    let (out, _) = ends(69, ["doctor", "--json", "--nodes", &away]);
    shows(
        &out,
        &[
            "{\"nodes\":[{\"address\":\"127.0.0.1:",
            "\"away\":\"connection refused",
            "\"severity\":\"problem\",\"name\":\"no-majority\",\"nodes\":[],",
            "\"severity\":\"warning\",\"name\":\"away\",\"nodes\":[\"127.0.0.1:",
            "\"problems\":1,\"warnings\":1}",
        ],
    );
}

/// A Redis of which everything is as it comes, one that evicts, one that keeps what it grants, and a replica.
#[test]
fn settings_of_others_under_which_locks_are_lost() {
    for program in ["redis-server", "valkey-server"] {
        let Some(plain) = other(program, "--appendonly no") else {
            continue;
        };
        let evicts = "--appendonly yes --maxmemory 100mb --maxmemory-policy allkeys-lru";
        let evicts = other(program, evicts).expect("another one");
        let safe = "--appendonly yes --appendfsync always --requirepass secret";
        let safe = other(program, safe).expect("another one");
        let follow = format!("--replicaof 127.0.0.1 {}", plain.address.port());
        let replica = other(program, &follow).expect("another one");
        let [plain, evicts, replica] = [&plain, &evicts, &replica].map(|it| it.address);
        let safe = format!("redis://:secret@{}", safe.address);
        let nodes = [
            plain.to_string(),
            evicts.to_string(),
            safe,
            replica.to_string(),
        ]
        .join(",");
        wait_until("it is followed", || {
            let (_, out, _) = doctor(&nodes);
            out.contains("it has 1 replicas")
        });
        let (code, out, err) = doctor(&nodes);
        assert_eq!(code, Some(69), "{out}{err}");
        let name = if program.starts_with("redis") {
            "Redis "
        } else {
            "Valkey "
        };
        shows(
            &out,
            &[
                name,
                &format!("{plain}: it writes no log (appendonly no)"),
                &format!("{evicts}: it evicts keys when its memory is full (allkeys-lru)"),
                &format!("{evicts}: its log reaches the disk late (appendfsync everysec)"),
                &format!("{replica}: it is a replica"),
                "4 nodes survive as many failures as 3",
                "ppm (+-",
            ],
        );
        assert!(!out.contains("secret") && !out.contains("forgets"), "{out}");
    }
}

#[test]
fn the_lab_is_well() {
    let mut lab = Program::start(command(["lab", "--port", "0"]));
    let nodes: Vec<_> = (0..5).map(|_| lab.address().to_string()).collect();
    let (code, out, err) = doctor(&nodes.join(","));
    assert!(
        matches!(code, Some(0 | 75)) && !out.contains("problem "),
        "{out}{err}"
    );
}
