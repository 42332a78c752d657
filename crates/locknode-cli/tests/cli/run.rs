//! A command that runs while a lock is held: exit codes, environment, waiting.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use crate::cluster::{Absent, Cluster, decided};
use crate::program::{Directory, Program, command, outcome, run, shows, text_of};

/// A command that says `ready`, goes on until SIGTERM, and then ends well.
pub(crate) const HOLDER: &[&str] = &[
    "sh",
    "-c",
    "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done",
];

/// `locknode run` with these flags and that command.
pub(crate) fn run_args<'a>(nodes: &'a str, flags: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["run", "--nodes", nodes];
    args.extend_from_slice(flags);
    args.push("--");
    args.extend_from_slice(command);
    args
}

/// The same with time to get the lock: one try gives the nodes 250 ms, and a busy machine may take longer.
pub(crate) fn patient_args<'a>(
    nodes: &'a str,
    flags: &[&'a str],
    command: &[&'a str],
) -> Vec<&'a str> {
    run_args(nodes, &[&["--wait", "20s"], flags].concat(), command)
}

/// Runs it to its end, with time to get the lock.
fn run_to_end(nodes: &str, flags: &[&str], command: &[&str]) -> (Option<i32>, String, String) {
    outcome(&run(patient_args(nodes, flags, command)))
}

/// Runs it with these flags alone to an end with that code.
fn run_decided(
    code: i32,
    nodes: &str,
    flags: &[&str],
    command: &[&str],
) -> (Option<i32>, String, String) {
    decided(code, || run(run_args(nodes, flags, command)))
}

#[test]
fn the_exit_code_is_that_of_the_command_and_the_lock_is_released() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let (found, out, err) = run_to_end(&nodes, &["job"], &["sh", "-c", script]);
        assert_eq!(found, Some(code), "{script}: {err}");
        assert_eq!((out.as_str(), err.as_str()), ("", ""), "{script}");
        assert!(cluster.is_free("job"), "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_the_codes_of_a_shell() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let directory = Directory::new("run-start");
    let text = directory.file("text", "not a program");
    fs::set_permissions(&text, fs::Permissions::from_mode(0o644)).expect("permissions");
    let folder = text_of(&directory.path);
    for (command, code, part) in [
        ("locknode-there-is-no-such-command", 127, "PATH"),
        ("/nowhere/at/all", 127, "/nowhere/at/all"),
        (text.as_str(), 126, "chmod"),
        (folder.as_str(), 126, folder.as_str()),
    ] {
        let (found, _, err) = run_to_end(&nodes, &["job"], &[command]);
        assert_eq!(found, Some(code), "{err}");
        assert!(err.contains(part), "{err}");
        assert!(cluster.is_free("job"), "{command}");
        let (found, _, err) = run_to_end(&nodes, &["--quiet", "job"], &[command]);
        assert_eq!((found, err.as_str()), (Some(code), ""));
    }
}

#[test]
fn wrong_usage_is_told_before_anything_is_done() {
    let taken = Absent::new();
    let nodes = taken.nodes();
    for (flags, part) in [
        (&["--grace", "20s", "job"][..], "--grace"),
        (&["--ttl", "3s", "--grace", "2s", "job"], "--grace"),
        (&["--ttl", "0s", "job"], "--ttl"),
        (&["--ttl", "30", "job"], "250ms"),
        (&["--wait", "soon", "job"], "forever"),
        (&["-n", "--wait", "5s", "job"], "--wait"),
        (&["--max-hold", "3s", "job"], "--max-hold"),
        (&["--at-least", "31s", "job"], "--at-least"),
        (&["-E", "256", "job"], "256"),
        (&["--quiet", "--json", "job"], "--json"),
        (&[], "<NAME>"),
        (&[""], "at least one byte"),
    ] {
        let (code, out, err) = outcome(&run(run_args(&nodes, flags, &["true"])));
        assert_eq!(code, Some(64), "{flags:?}: {err}");
        assert!(err.contains(part) && out.is_empty(), "{flags:?}: {err}");
    }
    for args in [
        &["run", "--nodes", "127.0.0.1:1", "job", "true"][..],
        &["run", "--nodes", "127.0.0.1:1", "job"],
        &["run", "--nodes", "127.0.0.1:1", "job", "--"],
        &["run", "--nodes", "http://127.0.0.1", "job", "--", "true"],
        &[
            "run",
            "--nodes",
            "127.0.0.1:1,127.0.0.1:1",
            "job",
            "--",
            "true",
        ],
        &["run", "job", "--", "true"],
    ] {
        let (code, _, err) = outcome(&run(args));
        assert_eq!(code, Some(64), "{args:?}: {err}");
    }
}

#[test]
fn a_lock_that_somebody_else_holds_keeps_the_command_from_running() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let mut holder = Program::start(command(patient_args(&nodes, &["job"], HOLDER)));
    holder.line_with("ready");
    for (flags, code) in [
        (&["job"][..], 75),
        (&["-n", "job"], 75),
        (&["--wait", "0", "job"], 75),
        (&["--wait", "500ms", "job"], 75),
        (&["-E", "1", "job"], 1),
        (&["--busy-exit-code", "0", "job"], 0),
        (&["--wait", "500ms", "-E", "200", "job"], 200),
    ] {
        let (found, out, err) = run_decided(code, &nodes, flags, &["echo", "ran"]);
        assert_eq!((found, out.as_str()), (Some(code), ""), "{flags:?}: {err}");
        assert!(err.contains("job"), "{err}");
        // Whose answers those were.
        let says = |address: &std::net::SocketAddr| err.contains(&address.to_string());
        assert!(
            cluster
                .addresses
                .iter()
                .filter(|address| says(address))
                .count()
                >= 3,
            "{err}"
        );
    }
    let (code, _, err) = run_decided(75, &nodes, &["--quiet", "job"], &["true"]);
    assert_eq!((code, err.as_str()), (Some(75), ""));
    let (code, _, err) = run_decided(75, &nodes, &["--json", "job"], &["true"]);
    assert_eq!(code, Some(75));
    assert!(
        err.starts_with("{\"event\":\"failed\",\"name\":\"job\",\"exit\":75,\"reason\":"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
    // Another lock is another matter.
    assert_eq!(run_to_end(&nodes, &["other"], &["true"]).0, Some(0));
    holder.signal(Signal::TERM);
    assert_eq!(holder.wait().code(), Some(0));
}

#[test]
fn who_waits_gets_the_lock_when_it_is_released() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    for (wait, announced) in [("30s", ""), ("forever", "\"event\":\"waiting\"")] {
        let mut holder = Program::start(command(patient_args(&nodes, &["job"], HOLDER)));
        holder.line_with("ready");
        let flags = ["--json", "--wait", wait, "job"];
        let mut waiting = Program::start(command(run_args(&nodes, &flags, &["echo", "ran"])));
        if !announced.is_empty() {
            waiting.line_with(announced);
        }
        holder.signal(Signal::TERM);
        assert_eq!(holder.wait().code(), Some(0));
        waiting.line_with("ran");
        assert_eq!(waiting.wait().code(), Some(0));
        assert!(cluster.is_free("job"));
    }
}

#[test]
fn without_a_majority_of_nodes_the_command_does_not_run() {
    let cluster = Cluster::start();
    let taken = Absent::new();
    let absent = taken.nodes();
    let absent: Vec<&str> = absent.split(',').collect();
    let present: Vec<String> = cluster.addresses.iter().map(ToString::to_string).collect();
    for (up, down, code) in [(5, 0, 0), (3, 2, 0), (2, 3, 69), (0, 5, 69)] {
        let nodes: Vec<&str> = present[..up].iter().map(String::as_str).collect();
        let nodes = [&nodes[..], &absent[..down]].concat().join(",");
        for wait in ["0", "500ms"] {
            let flags = ["--wait", wait, "job"];
            let (found, out, err) = run_decided(code, &nodes, &flags, &["echo", "ran"]);
            assert_eq!(found, Some(code), "{up} of {}: {err}", up + down);
            assert_eq!(out.is_empty(), code != 0);
        }
    }
}

#[test]
fn the_command_finds_the_lock_in_its_environment() {
    let cluster = Cluster::start();
    let script = "echo \"$LOCKNODE_NAME|$LOCKNODE_HELD|$LOCKNODE_TOKEN|$LOCKNODE_VALID_UNTIL|$1\"; date +%s%3N";
    let command = ["sh", "-c", script, "sh", "a b;$(c)*"];
    let nodes = cluster.nodes();
    let (code, out, err) = run_to_end(&nodes, &["--ttl", "20s", "invoice:7"], &command);
    assert_eq!(code, Some(0), "{err}");
    let mut lines = out.lines();
    let fields: Vec<&str> = lines.next().expect("a line").split('|').collect();
    // No shell of ours touched the argument.
    assert_eq!(
        (fields[0], fields[1], fields[4]),
        ("invoice:7", "1", "a b;$(c)*")
    );
    assert_eq!(fields[2].len(), 40, "{out}");
    let valid_until: u64 = fields[3].parse().expect("a number");
    let now: u64 = lines
        .next()
        .and_then(|line| line.parse().ok())
        .expect("a time");
    assert!((now + 1..now + 20_000).contains(&valid_until), "{out}");
}

#[test]
fn the_nodes_have_the_token_of_the_environment_while_the_command_runs() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let script = "trap 'exit 0' TERM; echo \"token=$LOCKNODE_TOKEN\"; while :; do sleep 0.01; done";
    let args = patient_args(&nodes, &["job"], &["sh", "-c", script]);
    let mut holder = Program::start(command(&args));
    let token = holder.line_with("token=").replace("token=", "");
    // The value is in the reply's second line; asking with the token is as good.
    let delete = format!("DELEX job IFEQ {token}");
    assert!(
        cluster
            .ask(&delete)
            .iter()
            .filter(|reply| *reply == ":1")
            .count()
            >= 3
    );
    holder.signal(Signal::TERM);
    holder.wait();
}

#[test]
fn a_lock_is_kept_for_at_least_the_time_given() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let flags = ["--ttl", "60s", "--at-least", "40s", "job"];
    let (code, _, err) = run_to_end(&nodes, &flags, &["true"]);
    assert_eq!((code, err.as_str()), (Some(0), ""));
    let (code, ..) = run_decided(75, &nodes, &["job"], &["true"]);
    assert_eq!(code, Some(75));
    let held = cluster.ask("PTTL job").into_iter().filter(|reply| {
        let left = reply.trim_start_matches(':').parse::<i64>();
        left.is_ok_and(|left| (1..=41_000).contains(&left))
    });
    assert!(held.count() >= 3, "{:?}", cluster.ask("PTTL job"));
}

#[test]
fn json_tells_the_whole_story() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let (code, out, err) = run_to_end(&nodes, &["--json", "job"], &["sh", "-c", "exit 7"]);
    assert_eq!((code, out.as_str()), (Some(7), ""));
    let lines: Vec<&str> = err.lines().collect();
    let starts = [
        "{\"event\":\"acquired\",\"name\":\"job\",\"valid_ms\":",
        "{\"event\":\"started\",\"name\":\"job\",\"pid\":",
        "{\"event\":\"exited\",\"name\":\"job\",\"code\":7}",
        "{\"event\":\"released\",\"name\":\"job\",\"confirmed\":",
    ];
    assert_eq!(lines.len(), starts.len(), "{err}");
    for (line, start) in lines.iter().zip(starts) {
        assert!(line.starts_with(start), "{line} and not {start}");
    }
    let (_, _, err) = run_to_end(&nodes, &["--json", "job"], &["sh", "-c", "kill -9 $$"]);
    shows(
        &err,
        &["\"event\":\"exited\",\"name\":\"job\",\"signal\":9}"],
    );
}
