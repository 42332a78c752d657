//! The steps of a lock, one process each, and what the nodes say of it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::{Absent, Cluster, decided};
use crate::program::{Directory, ask, command, connect, outcome, run, shows, text_of};

/// What a node has for an answer.
const NODE_TIME: Duration = Duration::from_millis(250);

/// Runs the program with that on its standard input.
fn run_with_input(args: &[&str], input: &str) -> Output {
    let mut command = command(args);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

/// `locknode lock` of these nodes, with time to get the lock: one try gives them 250 ms, and a busy machine may take
/// longer.
fn patient_lock(nodes: &str) -> [&str; 6] {
    ["lock", "--nodes", nodes, "job", "--wait", "20s"]
}

#[test]
fn a_lock_goes_from_process_to_process_by_its_token() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let lock = [&patient_lock(&nodes)[..], &["--ttl", "20s"]].concat();
    let (code, out, err) = outcome(&run(&lock));
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let token = out.trim_end();
    assert_eq!((token.len(), out.len()), (40, 41), "{out:?}");
    for (flags, expected) in [
        (&[][..], 75),
        (&["-n"], 75),
        (&["--wait", "500ms"], 75),
        (&["-E", "3"], 3),
    ] {
        let args = [&["lock", "--nodes", &nodes, "job"], flags].concat();
        let (code, out, err) = decided(expected, || run(&args));
        assert_eq!((code, out.as_str()), (Some(expected), ""), "{err}");
        assert!(err.contains("job"), "{err}");
    }
    let extend = ["extend", "--nodes", &nodes, "job", "-", "--ttl", "50s"];
    for (input, expected) in [
        (token, 0),
        (&format!("{token}\n"), 0),
        ("wrong", 1),
        ("", 64),
    ] {
        let (code, out, err) = decided(expected, || run_with_input(&extend, input));
        assert_eq!((code, out.as_str()), (Some(expected), ""), "{err}");
        assert_eq!(err.is_empty(), expected == 0, "{err}");
    }
    let extended = cluster.ask("PTTL job").into_iter().filter(|reply| {
        let left = reply.trim_start_matches(':').parse::<i64>();
        left.is_ok_and(|left| left > 20_000)
    });
    assert!(extended.count() >= 3);
    for (token, expected) in [("wrong", 1), (token, 0), (token, 1)] {
        let (code, _, err) = outcome(&run(["release", "--nodes", &nodes, "job", token]));
        assert_eq!(code, Some(expected), "{err}");
    }
    assert!(cluster.is_free("job"));
    // What has ended is not taken again.
    let extend = ["extend", "--nodes", &nodes, "job", token];
    let (code, ..) = decided(1, || run(extend));
    assert_eq!(code, Some(1));
    assert!(cluster.is_free("job"));
}

#[test]
fn the_token_can_be_in_a_file_that_only_its_owner_reads() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let directory = Directory::new("token");
    let file = text_of(&directory.path.join("token"));
    let lock = [&patient_lock(&nodes)[..], &["--token-file", &file]].concat();
    let (code, out, err) = outcome(&run(&lock));
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for (task, expected) in [("extend", 0), ("release", 0), ("release", 1)] {
        let args = [task, "--nodes", &nodes, "job", "--token-file", &file];
        let (code, _, err) = decided(expected, || run(args));
        assert_eq!(code, Some(expected), "{task}: {err}");
    }
    let nowhere = text_of(&directory.path.join("no/such/folder"));
    let lock = [&patient_lock(&nodes)[..], &["--token-file", &nowhere]].concat();
    let (code, _, err) = outcome(&run(&lock));
    assert_eq!(code, Some(69), "{err}");
    assert!(cluster.is_free("job"));
    let release = [
        "release",
        "--nodes",
        &nodes,
        "job",
        "--token-file",
        &nowhere,
    ];
    assert_eq!(outcome(&run(release)).0, Some(64));
}

#[test]
fn json_has_the_token_and_its_time() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let lock = [&patient_lock(&nodes)[..], &["--json"]].concat();
    let (code, out, _) = outcome(&run(&lock));
    assert_eq!(code, Some(0));
    assert!(out.starts_with("{\"name\":\"job\",\"token\":\""), "{out}");
    for part in ["\"valid_ms\":2", "\"valid_until_unix_ms\":"] {
        assert!(out.contains(part), "{out}");
    }
    let token = &out["{\"name\":\"job\",\"token\":\"".len()..][..40];
    let extend = ["extend", "--nodes", &nodes, "job", token, "--json"];
    let (code, out, err) = decided(0, || run(extend));
    assert_eq!(code, Some(0), "{err}");
    shows(&out, &[token, "\"valid_ms\":2"]);
}

#[test]
fn a_token_that_nobody_reads_is_no_lock() {
    let cluster = Cluster::start();
    let mut command = command(patient_lock(&cluster.nodes()));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let (code, _, err) = outcome(&child.wait_with_output().expect("it ends"));
    assert_eq!(code, Some(69), "{err}");
    assert!(cluster.is_free("job"));
}

#[test]
fn without_a_majority_nothing_is_done() {
    let taken = Absent::new();
    let absent = taken.nodes();
    for args in [
        &["lock", "--nodes", &absent, "job"][..],
        &["lock", "--nodes", &absent, "job", "--wait", "500ms"],
        &["extend", "--nodes", &absent, "job", "token"],
        &["release", "--nodes", &absent, "job", "token"],
        &["status", "--nodes", &absent, "job"],
    ] {
        let (code, out, err) = outcome(&run(args));
        assert_eq!(code, Some(69), "{args:?}: {err}");
        // Why, node by node, of those that decided it.
        let is_named = |address: &&str| out.contains(*address) || err.contains(*address);
        assert!(
            absent.split(',').filter(is_named).count() >= 3,
            "{args:?}: {err}"
        );
    }
}

/// Three of five nodes do not answer, so that the two others have granted it for a while before anything is decided.
#[cfg(feature = "run")]
#[test]
fn a_signal_before_the_token_is_printed_leaves_nothing_behind() {
    use crate::processes::wait_until;
    use crate::program::Program;
    use rustix::process::Signal;

    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let cluster = Cluster::start_apart();
        let nodes = cluster.nodes();
        cluster.signal(3, Signal::STOP);
        let args = [
            "lock", "--nodes", &nodes, "job", "--ttl", "60s", "--wait", "forever",
        ];
        let mut lock = Program::start(command(args));
        let has = |address, reply| ask(&mut connect(address), "EXISTS job") == reply;
        wait_until("a node grants it", || has(cluster.addresses[4], ":1"));
        lock.signal(signal);
        assert_eq!(lock.wait().code(), Some(code));
        cluster.signal(3, Signal::CONT);
        for address in &cluster.addresses {
            wait_until("it is released", || has(*address, ":0"));
        }
    }
}

#[test]
fn a_token_file_that_others_can_read_is_replaced() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let directory = Directory::new("token-open");
    let elsewhere = directory.file("elsewhere", "not a token");
    let open = fs::Permissions::from_mode(0o666);
    for name in ["open", "link"] {
        let path = directory.path.join(name);
        match name {
            "open" => {
                fs::write(&path, "old").expect("a file");
                fs::set_permissions(&path, open.clone()).expect("permissions");
            }
            _ => std::os::unix::fs::symlink(&elsewhere, &path).expect("a link"),
        }
        let mut old = fs::File::open(&path).expect("a file");
        let file = text_of(&path);
        let lock = [
            "lock",
            "--nodes",
            &nodes,
            name,
            "--wait",
            "20s",
            "--token-file",
            &file,
        ];
        let (code, _, err) = outcome(&run(lock));
        assert_eq!(code, Some(0), "{err}");
        let metadata = fs::symlink_metadata(&path).expect("a file");
        assert!(metadata.is_file());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        // A process that opened the old file does not see the token either.
        let mut seen = String::new();
        old.read_to_string(&mut seen).expect("text");
        assert!(seen == "old" || seen == "not a token", "{seen}");
    }
    assert_eq!(
        fs::read_dir(&directory.path).expect("a directory").count(),
        3
    );
}

/// Nodes that never granted it say so, and one is down: the others let it go, and a majority is free.
#[test]
fn a_release_is_done_when_a_majority_is_free() {
    let cluster = Cluster::start();
    let absent = Absent::new();
    let absent = absent.nodes();
    let mut nodes: Vec<String> = cluster.addresses.iter().map(ToString::to_string).collect();
    nodes[4] = absent.split(',').take(1).collect();
    let nodes = nodes.join(",");
    for address in &cluster.addresses[..2] {
        let granted = ask(&mut connect(*address), "SET job mine NX PX 60000");
        assert_eq!(granted, "+OK");
    }
    let release = ["release", "--nodes", &nodes, "job", "-"];
    for (token, expected) in [("wrong", 1), ("mine", 0), ("mine", 1)] {
        let (code, out, err) = outcome(&run_with_input(&release, token));
        assert_eq!((code, out.as_str()), (Some(expected), ""), "{err}");
        assert_eq!(err.is_empty(), expected == 0, "{err}");
    }
    assert!(cluster.is_free("job"));
}

#[test]
fn wrong_usage_is_told() {
    let taken = Absent::new();
    let absent = taken.nodes();
    let long = "x".repeat(65);
    for args in [
        &["lock", "--nodes", &absent][..],
        &["lock", "job"],
        &["lock", "--nodes", &absent, "job", "--ttl", "0s"],
        &["lock", "--nodes", &absent, ""],
        &["extend", "--nodes", &absent, "job"],
        &["extend", "--nodes", &absent, "job", ""],
        &[
            "extend",
            "--nodes",
            &absent,
            "job",
            "token",
            "--token-file",
            "file",
        ],
        &["release", "--nodes", &absent, "job"],
        &["release", "--nodes", &absent, "job", &long],
        &["status", "--nodes", &absent, ""],
    ] {
        let (code, out, err) = outcome(&run(args));
        assert_eq!(code, Some(64), "{args:?}: {err}");
        assert!(out.is_empty() && !err.is_empty());
    }
}

#[test]
fn status_shows_what_each_node_says_of_a_lock() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let status = ["status", "--nodes", &nodes, "job"];
    let (code, out, err) = decided(0, || run(status));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("job is free"), "{out}");
    let (_, token, _) = outcome(&run(patient_lock(&nodes)));
    let token = token.trim_end();
    let (code, out, err) = decided(0, || run(status));
    assert_eq!(code, Some(0), "{err}");
    let held = format!("job is held by {token} on ");
    shows(&out, &[&held, "a majority is 3"]);
    for address in &cluster.addresses {
        assert!(out.contains(&address.to_string()), "{out}");
    }

    let taken = Absent::new();
    let absent = taken.nodes();
    let absent: Vec<&str> = absent.split(',').take(3).collect();
    let two: Vec<String> = cluster.addresses[..2]
        .iter()
        .map(ToString::to_string)
        .collect();
    let some = [
        &two.iter().map(String::as_str).collect::<Vec<_>>()[..],
        &absent,
    ]
    .concat();
    let mut status = command(["status", "--json", "job"]);
    let output = status.env("LOCKNODE_NODES", some.join(",")).output();
    let (code, out, err) = outcome(&output.expect("it runs"));
    assert_eq!(code, Some(69), "{err}");
    for part in [
        "{\"name\":\"job\",\"nodes\":[",
        "\"state\":\"unknown\",\"reason\":",
        "\"majority\":3,\"state\":\"unknown\"}",
    ] {
        assert!(out.contains(part), "{part} in {out}");
    }
}

/// The process ends when a majority has answered and the others have heard of the lock as well.
#[test]
fn a_lock_reaches_every_node_that_is_there() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    for n in 0..20 {
        let name = format!("job-{n}");
        let lock = ["lock", "--nodes", &nodes, &name, "--wait", "20s"];
        let started = Instant::now();
        let (code, token, err) = outcome(&run(lock));
        assert_eq!(code, Some(0), "{err}");
        // A node that does not answer for a quarter of a second, on a busy machine, is left out.
        if started.elapsed() >= NODE_TIME {
            continue;
        }
        assert_eq!(cluster.ask(&format!("EXISTS {name}")), [":1"; 5]);
        let extend = ["extend", "--nodes", &nodes, &name, "-", "--ttl", "50s"];
        let started = Instant::now();
        let (code, _, err) = outcome(&run_with_input(&extend, token.trim()));
        if started.elapsed() >= NODE_TIME {
            continue;
        }
        assert_eq!(code, Some(0), "{err}");
        for reply in cluster.ask(&format!("PTTL {name}")) {
            let left: i64 = reply.trim_start_matches(':').parse().expect("a number");
            assert!(left > 30_000, "{reply}");
        }
    }
}

/// The exit code follows from the votes, and what each node says is shown.
#[test]
fn what_each_node_says_is_shown_when_a_lock_is_not_had() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    for (index, address) in cluster.addresses.iter().enumerate() {
        let holder = if index < 3 { "one" } else { "two" };
        let set = format!("SET held {holder} NX PX 30000");
        assert_eq!(ask(&mut connect(*address), &set), "+OK");
    }
    let held = ["lock", "--nodes", &nodes, "held"];
    let (code, _, err) = decided(75, || run(held));
    assert_eq!(code, Some(75), "{err}");
    assert!(err.contains("held by another client"), "{err}");
    // The lock is decided by the first three that answer.
    let is_shown = |address: &&SocketAddr| err.contains(&address.to_string());
    assert!(
        cluster.addresses.iter().filter(is_shown).count() >= 3,
        "{err}"
    );
}
