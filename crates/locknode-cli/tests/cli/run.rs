//! A command that runs while a lock is held: exit codes, environment, waiting.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;

use crate::cluster::{Absent, Cluster, decided};
use crate::program::{Directory, Program, ended, ends, outcome, run, shows, text_of};

/// A script that says `ready`, goes on until SIGTERM, and then ends well.
pub(crate) const HOLDER: &str = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done";

/// Runs a script of a shell to its end, with time to get the lock.
fn run_to_end(cluster: &Cluster, flags: &str, script: &str) -> (Option<i32>, String, String) {
    let mut job = cluster.run(flags, &["sh", "-c", script]);
    outcome(&job.output().expect("it runs"))
}

/// Runs a command with these flags alone to an end with that code.
fn run_decided(code: i32, cluster: &Cluster, flags: &str, command: &[&str]) -> (String, String) {
    decided(code, || {
        let mut job = cluster.run_at_once(flags, command);
        job.output().expect("it runs")
    })
}

#[test]
fn the_exit_code_is_that_of_the_command_and_the_lock_is_released() {
    let cluster = Cluster::start();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let (found, out, err) = run_to_end(&cluster, "job", script);
        assert_eq!(found, Some(code), "{script}: {err}");
        assert_eq!((out.as_str(), err.as_str()), ("", ""), "{script}");
        assert!(cluster.is_free("job"), "{script}");
    }
}

#[test]
fn a_command_that_cannot_be_started_has_the_codes_of_a_shell() {
    let cluster = Cluster::start();
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
        let start = |flags| cluster.run(flags, &[command]).output().expect("it runs");
        let (_, err) = ended(code, &start("job"));
        shows(&err, &[part]);
        assert!(cluster.is_free("job"), "{command}");
        let (_, err) = ended(code, &start("--quiet job"));
        assert_eq!(err, "");
    }
}

#[test]
fn wrong_usage_is_told_before_anything_is_done() {
    let taken = Absent::new();
    let nodes = format!("--nodes {}", taken.nodes(5));
    for (flags, command, part) in [
        (&*nodes, "--grace 20s job -- true", "--grace"),
        (&nodes, "--ttl 3s --grace 2s job -- true", "--grace"),
        (&nodes, "--ttl 0s job -- true", "--ttl"),
        (&nodes, "--ttl 30 job -- true", "250ms"),
        (&nodes, "--wait soon job -- true", "forever"),
        (&nodes, "-n --wait 5s job -- true", "--wait"),
        (&nodes, "--max-hold 3s job -- true", "--max-hold"),
        (&nodes, "--at-least 31s job -- true", "--at-least"),
        (&nodes, "-E 256 job -- true", "256"),
        (&nodes, "--quiet --json job -- true", "--json"),
        (&nodes, "-- true", "<NAME>"),
        ("--nodes 127.0.0.1:1", "job true", ""),
        ("--nodes 127.0.0.1:1", "job", ""),
        ("--nodes 127.0.0.1:1", "job --", ""),
        ("--nodes http://127.0.0.1", "job -- true", ""),
        ("--nodes 127.0.0.1:1,127.0.0.1:1", "job -- true", ""),
        ("", "job -- true", ""),
    ] {
        let line = format!("run {flags} {command}");
        let (code, out, err) = outcome(&run(line.split_whitespace()));
        assert_eq!(code, Some(64), "{line}: {err}");
        assert!(err.contains(part) && out.is_empty(), "{line}: {err}");
    }
    let (_, err) = ends(64, ["run", "--nodes", &taken.nodes(5), "", "--", "true"]);
    shows(&err, &["at least one byte"]);
}

#[test]
fn a_lock_that_somebody_else_holds_keeps_the_command_from_running() {
    let cluster = Cluster::start();
    let mut holder = cluster.job("job", HOLDER);
    for (flags, code) in [
        ("job", 75),
        ("-n job", 75),
        ("--wait 0 job", 75),
        ("--wait 500ms job", 75),
        ("-E 1 job", 1),
        ("--busy-exit-code 0 job", 0),
        ("--wait 500ms -E 200 job", 200),
    ] {
        let (out, err) = run_decided(code, &cluster, flags, &["echo", "ran"]);
        assert_eq!(out, "", "{flags}: {err}");
        // Whose answers those were.
        assert!(err.contains("job") && cluster.count_in(&err) >= 3, "{err}");
    }
    let (_, err) = run_decided(75, &cluster, "--quiet job", &["true"]);
    assert_eq!(err, "");
    let (_, err) = run_decided(75, &cluster, "--json job", &["true"]);
    assert!(
        err.starts_with("{\"event\":\"failed\",\"name\":\"job\",\"exit\":75,\"reason\":"),
        "{err}"
    );
    assert_eq!(err.lines().count(), 1, "{err}");
    // Another lock is another matter.
    assert_eq!(run_to_end(&cluster, "other", "true").0, Some(0));
    assert_eq!(holder.end(Signal::TERM).code(), Some(0));
}

#[test]
fn who_waits_gets_the_lock_when_it_is_released() {
    let cluster = Cluster::start();
    for (wait, announced) in [("30s", ""), ("forever", "\"event\":\"waiting\"")] {
        let mut holder = cluster.job("job", HOLDER);
        let flags = format!("--json --wait {wait} job");
        let mut waiting = Program::start(cluster.run_at_once(&flags, &["echo", "ran"]));
        if !announced.is_empty() {
            waiting.line_with(announced);
        }
        assert_eq!(holder.end(Signal::TERM).code(), Some(0));
        waiting.line_with("ran");
        waiting.ends(0);
        assert!(cluster.is_free("job"));
    }
}

#[test]
fn without_a_majority_of_nodes_the_command_does_not_run() {
    let cluster = Cluster::start();
    let taken = Absent::new();
    let (present, absent) = (cluster.nodes(), taken.nodes(5));
    for (up, down, code) in [(5, 0, 0), (3, 2, 0), (2, 3, 69), (0, 5, 69)] {
        let up = present.split(',').take(up);
        let nodes: Vec<&str> = up.chain(absent.split(',').take(down)).collect();
        let nodes = nodes.join(",");
        for wait in ["0", "500ms"] {
            let line = format!("run --nodes {nodes} --wait {wait} job -- echo ran");
            let (out, _) = decided(code, || run(line.split(' ')));
            assert_eq!(out.is_empty(), code != 0, "{line}");
        }
    }
}

#[test]
fn the_command_finds_the_lock_in_its_environment() {
    let cluster = Cluster::start();
    let script = "echo \"$LOCKNODE_NAME|$LOCKNODE_HELD|$LOCKNODE_TOKEN|$LOCKNODE_VALID_UNTIL|$1\"; date +%s%3N";
    let command = ["sh", "-c", script, "sh", "a b;$(c)*"];
    let mut job = cluster.run("--ttl 20s invoice:7", &command);
    let (out, _) = ended(0, &job.output().expect("it runs"));
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
    let script = format!("echo \"token=$LOCKNODE_TOKEN\"; {HOLDER}");
    let mut holder = cluster.job("job", &script);
    let token = holder.line_ever_with("token=").replace("token=", "");
    // The value is in the reply's second line; asking with the token is as good.
    let delete = format!("DELEX job IFEQ {token}");
    assert!(cluster.count(&delete, |reply| reply == ":1") >= 3);
    holder.end(Signal::TERM);
}

#[test]
fn a_lock_is_kept_for_at_least_the_time_given() {
    let cluster = Cluster::start();
    let (code, _, err) = run_to_end(&cluster, "--ttl 60s --at-least 40s job", "true");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    run_decided(75, &cluster, "job", &["true"]);
    let held = cluster.count_ttls("job", 1..41_001);
    assert!(held >= 3, "{:?}", cluster.ask("PTTL job"));
}

#[test]
fn json_tells_the_whole_story() {
    let cluster = Cluster::start();
    let (code, out, err) = run_to_end(&cluster, "--json job", "exit 7");
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
    let (_, _, err) = run_to_end(&cluster, "--json job", "kill -9 $$");
    shows(
        &err,
        &["\"event\":\"exited\",\"name\":\"job\",\"signal\":9}"],
    );
}
