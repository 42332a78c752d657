//! The steps of a lock, one process each, and what the nodes say of it.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::{Absent, Cluster, decided};
use crate::program::{Directory, ask, command, connect, ended, ends, outcome, run, shows, text_of};

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
fn patient_lock<'a>(nodes: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["lock", "--nodes", nodes, "job", "--wait", "20s"], more].concat()
}

/// The words of a command line.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn a_lock_goes_from_process_to_process_by_its_token() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let (out, err) = ends(0, patient_lock(&nodes, &["--ttl", "20s"]));
    assert_eq!(err, "");
    let token = out.trim_end();
    assert_eq!((token.len(), out.len()), (40, 41), "{out:?}");
    for (flags, expected) in [("", 75), ("-n", 75), ("--wait 500ms", 75), ("-E 3", 3)] {
        let line = format!("lock --nodes {nodes} job {flags}");
        let (out, err) = decided(expected, || run(words(&line)));
        assert!(out.is_empty() && err.contains("job"), "{out}{err}");
    }
    let extend = ["extend", "--nodes", &nodes, "job", "-", "--ttl", "50s"];
    for (input, expected) in [
        (token, 0),
        (&format!("{token}\n"), 0),
        ("wrong", 1),
        ("", 64),
    ] {
        let (out, err) = decided(expected, || run_with_input(&extend, input));
        assert_eq!((out.as_str(), err.is_empty()), ("", expected == 0), "{err}");
    }
    assert!(cluster.count_ttls("job", 20_001..i64::MAX) >= 3);
    for (token, expected) in [("wrong", 1), (token, 0), (token, 1)] {
        ends(expected, ["release", "--nodes", &nodes, "job", token]);
    }
    assert!(cluster.is_free("job"));
    // What has ended is not taken again.
    let extend = ["extend", "--nodes", &nodes, "job", token];
    decided(1, || run(extend));
    assert!(cluster.is_free("job"));
}

#[test]
fn the_token_can_be_in_a_file_that_only_its_owner_reads() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let directory = Directory::new("token");
    let file = directory.path_of("token");
    let (out, err) = ends(0, patient_lock(&nodes, &["--token-file", &file]));
    assert_eq!((out.as_str(), err.as_str()), ("", ""));
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for (task, expected) in [("extend", 0), ("release", 0), ("release", 1)] {
        let args = [task, "--nodes", &nodes, "job", "--token-file", &file];
        decided(expected, || run(args));
    }
    let nowhere = directory.path_of("no/such/folder");
    ends(69, patient_lock(&nodes, &["--token-file", &nowhere]));
    assert!(cluster.is_free("job"));
    let release = ["release", "--nodes", &nodes, "job", "--token-file"];
    ends(64, release.iter().chain([&&*nowhere]));
}

#[test]
fn json_has_the_token_and_its_time() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let (out, _) = ends(0, patient_lock(&nodes, &["--json"]));
    assert!(out.starts_with("{\"name\":\"job\",\"token\":\""), "{out}");
    shows(&out, &["\"valid_ms\":2", "\"valid_until_unix_ms\":"]);
    let token = &out["{\"name\":\"job\",\"token\":\"".len()..][..40];
    let extend = ["extend", "--nodes", &nodes, "job", token, "--json"];
    let (out, _) = decided(0, || run(extend));
    shows(&out, &[token, "\"valid_ms\":2"]);
}

#[test]
fn a_token_that_nobody_reads_is_no_lock() {
    let cluster = Cluster::start();
    let mut command = command(patient_lock(&cluster.nodes(), &[]));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    drop(child.stdout.take());
    ended(69, &child.wait_with_output().expect("it ends"));
    assert!(cluster.is_free("job"));
}

#[test]
fn without_a_majority_nothing_is_done() {
    let taken = Absent::new();
    let absent = taken.nodes(5);
    for line in [
        "lock job",
        "lock job --wait 500ms",
        "extend job token",
        "release job token",
        "status job",
    ] {
        let line = format!("{line} --nodes {absent}");
        let (out, err) = ends(69, words(&line));
        // Why, node by node, of those that decided it.
        let is_named = |address: &&str| out.contains(*address) || err.contains(*address);
        let named = absent.split(',').filter(is_named).count();
        assert!(named >= 3, "{line}: {err}");
    }
}

/// Three of five nodes do not answer, so that the two others have granted it for a while before anything is decided.
#[test]
fn a_signal_before_the_token_is_printed_leaves_nothing_behind() {
    use crate::processes::wait_until;
    use crate::program::Program;
    use rustix::process::Signal;

    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let cluster = Cluster::start_apart();
        let nodes = cluster.nodes();
        cluster.signal(3, Signal::STOP);
        let line = format!("lock --nodes {nodes} job --ttl 60s --wait forever");
        let mut lock = Program::start(command(words(&line)));
        let has = |address, reply| ask(&mut connect(address), "EXISTS job") == reply;
        wait_until("a node grants it", || has(cluster.addresses[4], ":1"));
        assert_eq!(lock.end(signal).code(), Some(code));
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
        let line = format!("lock --nodes {nodes} {name} --wait 20s --token-file {file}");
        ends(0, words(&line));
        let metadata = fs::symlink_metadata(&path).expect("a file");
        assert!(metadata.is_file());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        // A process that opened the old file does not see the token either.
        let mut seen = String::new();
        old.read_to_string(&mut seen).expect("text");
        assert!(seen == "old" || seen == "not a token", "{seen}");
    }
    let left = fs::read_dir(&directory.path).expect("a directory");
    assert_eq!(left.count(), 3);
}

/// Nodes that never granted it say so, and one is down: the others let it go, and a majority is free.
#[test]
fn a_release_is_done_when_a_majority_is_free() {
    let cluster = Cluster::start();
    let absent = Absent::new();
    let nodes = cluster.nodes();
    let (up, _) = nodes.rsplit_once(',').expect("five");
    let nodes = format!("{up},{}", absent.nodes(1));
    for address in &cluster.addresses[..2] {
        let granted = ask(&mut connect(*address), "SET job mine NX PX 60000");
        assert_eq!(granted, "+OK");
    }
    let release = ["release", "--nodes", &nodes, "job", "-"];
    for (token, expected) in [("wrong", 1), ("mine", 0), ("mine", 1)] {
        let (out, err) = ended(expected, &run_with_input(&release, token));
        assert_eq!((out.as_str(), err.is_empty()), ("", expected == 0), "{err}");
    }
    assert!(cluster.is_free("job"));
}

#[test]
fn wrong_usage_is_told() {
    let taken = Absent::new();
    let nodes = ["--nodes", &taken.nodes(5)];
    let long = "x".repeat(65);
    for (nodes, args) in [
        (&nodes[..], &["lock"][..]),
        (&[], &["lock", "job"]),
        (&nodes, &["lock", "job", "--ttl", "0s"]),
        (&nodes, &["lock", ""]),
        (&nodes, &["extend", "job"]),
        (&nodes, &["extend", "job", ""]),
        (&nodes, &["extend", "job", "token", "--token-file", "file"]),
        (&nodes, &["release", "job"]),
        (&nodes, &["release", "job", &long]),
        (&nodes, &["status", ""]),
    ] {
        let (code, out, err) = outcome(&run([args, nodes].concat()));
        assert_eq!(code, Some(64), "{args:?}: {err}");
        assert!(out.is_empty() && !err.is_empty(), "{args:?}");
    }
}

#[test]
fn status_shows_what_each_node_says_of_a_lock() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let status = ["status", "--nodes", &nodes, "job"];
    let (out, _) = decided(0, || run(status));
    shows(&out, &["job is free"]);
    let (token, _) = ends(0, patient_lock(&nodes, &[]));
    let token = token.trim_end();
    let (out, _) = decided(0, || run(status));
    let held = format!("job is held by {token} (");
    shows(&out, &[&held, ":locknode, for ", "a majority is 3"]);
    assert_eq!(cluster.count_in(&out), 5, "{out}");

    let taken = Absent::new();
    let absent = taken.nodes(3);
    let some: Vec<&str> = nodes.split(',').take(2).chain([&*absent]).collect();
    let mut status = command(["status", "--json", "job"]);
    let output = status.env("LOCKNODE_NODES", some.join(",")).output();
    let (out, _) = ended(69, &output.expect("it runs"));
    let parts = [
        "{\"name\":\"job\",\"nodes\":[",
        "\"state\":\"unknown\",\"reason\":",
        "\"majority\":3,\"state\":\"unknown\"}",
    ];
    shows(&out, &parts);
}

/// The process ends when a majority has answered and the others have heard of the lock as well.
#[test]
fn a_lock_reaches_every_node_that_is_there() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    for n in 0..20 {
        let name = format!("job-{n}");
        let started = Instant::now();
        let (token, _) = ends(0, ["lock", "--nodes", &nodes, &name, "--wait", "20s"]);
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
fn what_each_node_says_is_shown_when_a_lock_is_not_acquired() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    for (index, address) in cluster.addresses.iter().enumerate() {
        let holder = if index < 3 { "one" } else { "two" };
        let set = format!("SET held {holder} NX PX 30000");
        assert_eq!(ask(&mut connect(*address), &set), "+OK");
    }
    let held = ["lock", "--nodes", &nodes, "held"];
    let (_, err) = decided(75, || run(held));
    shows(&err, &["held by another client"]);
    // The lock is decided by the first three that answer.
    assert!(cluster.count_in(&err) >= 3, "{err}");
}
