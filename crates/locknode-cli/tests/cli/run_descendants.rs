//! What the command started, wherever it went: other process groups, other sessions, orphans, other users.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Signal, geteuid};

use crate::cluster::Cluster;
use crate::processes::{self, command_of, number_in, wait_until};
use crate::program::{Directory, Program};
use crate::run_loss::{Job, assert_is_killed_in_time};

/// Starts deaf processes in another process group, in another session, as an orphan there, and below `timeout`; each
/// says its number and leaves a trail.
const SCATTERED: &str = r#"w='trap "" TERM; echo "member=$$"; while :; do date +%s%3N >>"$1"; sleep 0.01; done'
    setsid sh -c "$w" sh "$1" &
    timeout 600 sh -c "$w" sh "$1" &
    (setsid sh -c "(sh -c '$w' sh \"$1\" &)" sh "$1" &)
    sh -c "$w" sh "$1" &
    echo ready; wait"#;

/// Flags for a lock that ends soon.
const SHORT: &str = "--ttl 2s --grace 300ms";

/// The numbers of the scattered processes.
fn members(program: &mut Program) -> Vec<u32> {
    while program.count("member=") < 4 {
        program.line_with("member=");
    }
    let lines = program.seen().iter();
    let members = lines.filter(|line| line.starts_with("member="));
    members.map(|line| number_in(line)).collect()
}

#[test]
fn nothing_that_descends_from_the_command_outlives_the_lock() {
    let cluster = Cluster::start();
    assert_is_killed_in_time("scattered", || {
        let mut job = Job::start("scattered", &cluster, SHORT, SCATTERED);
        let members = members(&mut job.program);
        job.program.ends(79);
        assert!(!members.iter().any(|member| processes::is_alive(*member)));
        job
    });
}

/// The program as a user without privileges runs it, who can reach the directory. Tests that are not run by root have
/// no other user.
fn unprivileged(directory: &Directory) -> Command {
    if !geteuid().is_root() {
        return Command::new(env!("CARGO_BIN_EXE_locknode"));
    }
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&directory.path, open).expect("permissions");
    let program = copied(directory, "locknode", env!("CARGO_BIN_EXE_locknode"));
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY);
    command
}

/// A copy of a program. Another process makes it: children that other tests start in this one meanwhile would have the
/// copy open for writing, and the system would refuse to run it.
fn copied(directory: &Directory, name: &str, original: &str) -> String {
    let path = directory.path_of(name);
    let status = Command::new("cp").args([original, &path]).status();
    assert!(status.expect("cp").success());
    path
}

/// The user `nobody`, wherever there is one.
const NOBODY: u32 = 65_534;

#[test]
fn nothing_that_descends_from_another_users_command_outlives_the_lock() {
    let cluster = Cluster::start();
    assert_is_killed_in_time("unprivileged", || {
        let directory = Directory::new("run-unprivileged");
        let program = unprivileged(&directory);
        let mut job = Job::start_in(directory, program, &cluster, SHORT, SCATTERED);
        let members = members(&mut job.program);
        job.program.ends(79);
        assert!(!members.iter().any(|member| processes::is_alive(*member)));
        job
    });
}

/// Orphans in sessions of their own, as fast as a shell can, a few hundred at a time.
#[test]
fn a_command_that_forks_without_end_is_killed_in_time() {
    let cluster = Cluster::start();
    let script = r#"trap "" TERM; echo ready
        while :; do (setsid sh -c 'date +%s%3N >>"$1"; exec sleep 0.3' sh "$1" >/dev/null 2>&1 &); done"#;
    assert_is_killed_in_time("forks", || {
        let directory = Directory::new("run-forks");
        let program = unprivileged(&directory);
        let mut job = Job::start_in(directory, program, &cluster, SHORT, script);
        job.program.ends(79);
        assert!(cluster.is_free("job"));
        job
    });
}

#[test]
fn a_stop_ends_all_that_descends_from_the_command_and_then_releases() {
    let cluster = Cluster::start();
    let mut job = Job::start("stop", &cluster, "--grace 300ms", SCATTERED);
    let members = members(&mut job.program);
    assert_eq!(job.program.end(Signal::TERM).code(), Some(143));
    assert!(!members.iter().any(|member| processes::is_alive(*member)));
    assert!(job.has_said("\"event\":\"killed\""));
    assert!(cluster.is_free("job"));
}

#[test]
fn a_stop_waits_for_all_that_descends_from_the_command_before_it_releases() {
    let cluster = Cluster::start();
    let directory = Directory::new("run-orderly");
    let go = directory.path_of("go");
    // The shell ends at once, the worker takes its time, in a session of its own.
    let worker = r#"trap 'echo ending; while [ ! -e "$1" ]; do sleep 0.01; done; echo ended; exit' TERM
        echo ready; while :; do sleep 0.01; done"#;
    let script = r#"setsid sh -c "$0" sh "$1" && echo next"#;
    let job = cluster.run("--grace 18s --json job", &["sh", "-c", script, worker, &go]);
    let mut job = Program::start(job);
    let child = command_of(&mut job);
    job.line_ever_with("ready");
    job.signal(Signal::TERM);
    job.line_with("ending");
    wait_until("the shell ends", || !processes::is_alive(child));
    assert!(!cluster.is_free("job"), "{:#?}", job.seen());
    std::fs::write(&go, "").expect("a file");
    job.line_with("ended");
    job.ends(143);
    assert!(!job.seen().iter().any(|line| line == "next"));
    assert!(cluster.is_free("job"));
}

#[test]
fn what_is_left_in_another_session_is_killed_if_so_wished() {
    let cluster = Cluster::start();
    let script =
        r#"(setsid sh -c 'echo "member=$$"; exec sleep 1000' >&2 &) ; read line <"$1"; exit 4"#;
    let directory = Directory::new("run-left");
    let pipe = directory.path_of("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()));
    for (flags, is_killed) in [("--kill-group --json job", true), ("--json job", false)] {
        let job = cluster.run(flags, &["sh", "-c", script, "sh", &pipe]);
        let mut job = Program::start(job);
        let member = number_in(&job.line_with("member="));
        std::fs::write(&pipe, "go\n").expect("a reader");
        if !is_killed {
            job.line_with("\"left_running\":1");
            wait_until("the lock is released", || cluster.is_free("job"));
            assert!(processes::is_alive(member));
            processes::signal(member, Signal::KILL);
        }
        job.ends(4);
        wait_until("the member is gone", || !processes::is_alive(member));
        assert!(cluster.is_free("job"));
    }
}

#[test]
fn what_does_not_descend_from_the_command_is_left_alone() {
    let cluster = Cluster::start();
    let inner = cluster.run("job", &["sh", "-c", "echo ready; exec sleep 1000"]);
    // A child of the shell, and of locknode once that has taken the shell's place.
    let mut outer = Command::new("sh");
    outer
        .args(["-c", "sleep 1000 & echo \"other=$!\"; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args())
        .stdin(Stdio::null());
    let mut job = Program::start(outer);
    let other = number_in(&job.line_with("other="));
    job.line_with("ready");
    job.signal(Signal::TERM);
    wait_until("the lock is released", || cluster.is_free("job"));
    assert!(processes::is_alive(other));
    processes::signal(other, Signal::KILL);
    job.ends(143);
}

/// Without privileges there is no control group either.
#[test]
fn a_process_that_became_another_user_is_said_not_to_be_killed_and_keeps_the_lock() {
    if !geteuid().is_root() {
        return;
    }
    let cluster = Cluster::start();
    let directory = Directory::new("run-user");
    // What sudo does.
    let sudo = copied(&directory, "sudo", "/usr/bin/setpriv");
    std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o4755)).expect("permissions");
    let shell = ["sh", "-c", "echo ready; exec sleep 1000"];
    let words = [&[&*sudo, "--reuid=0", "--"][..], &shell].concat();
    let job = cluster.run("--ttl 1500ms --grace 300ms --json job", &words);
    let mut locknode = unprivileged(&directory);
    locknode.args(job.get_args()).stdin(Stdio::null());
    let mut job = Program::start(locknode);
    let child = command_of(&mut job);
    job.line_ever_with("ready");
    let line = job.line_with("\"event\":\"not_killed\"");
    assert!(line.contains(&format!("\"pid\":{child},")), "{line}");
    assert_eq!(job.count("\"killed\""), 0);
    job.line_with("\"event\":\"kept\"");
    assert!(processes::is_alive(child));
    processes::signal(child, Signal::KILL);
    job.ends(79);
}

#[test]
fn where_a_control_group_can_be_made_the_command_is_in_one_of_its_own() {
    let cluster = Cluster::start();
    let mut job = Program::start(cluster.run("job", &["cat", "/proc/self/cgroup"]));
    let line = job.line_with("0::");
    job.ends(0);
    // An empty one is left nowhere, whoever could make it.
    if let Some((_, name)) = line.rsplit_once("/locknode-run-") {
        assert_eq!(name, job.id().to_string());
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let point = mount
            .and_then(|line| line.split(' ').nth(4))
            .expect("a mount");
        let own = line.trim_start_matches("0::/");
        assert!(!Path::new(point).join(own).exists());
    }
}
