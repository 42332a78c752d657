//! What the command started, wherever it went: other process groups, other sessions, orphans, other users.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Signal, geteuid};

use crate::cluster::Cluster;
use crate::processes::{self, number_in, wait_until};
use crate::program::{Directory, Program, command, text_of};
use crate::run::patient_args;
use crate::run_loss::{Job, assert_is_killed_in_time};

/// Starts deaf processes in another process group, in another session, as an orphan there, and below `timeout`; each
/// says its number and leaves a trail.
const SCATTERED: &str = r#"w='trap "" TERM; echo "member=$$"; while :; do date +%s%3N >>"$1"; sleep 0.01; done'
    setsid sh -c "$w" sh "$1" &
    timeout 600 sh -c "$w" sh "$1" &
    (setsid sh -c "(sh -c '$w' sh \"$1\" &)" sh "$1" &)
    sh -c "$w" sh "$1" &
    echo ready; wait"#;

/// The numbers of the scattered processes.
fn members(program: &mut Program) -> Vec<u32> {
    let count = |program: &Program| {
        let lines = program.seen().iter();
        lines.filter(|line| line.starts_with("member=")).count()
    };
    while count(program) < 4 {
        program.line_with("member=");
    }
    let lines = program.seen().iter();
    let members = lines.filter(|line| line.starts_with("member="));
    members.map(|line| number_in(line)).collect()
}

#[test]
fn nothing_that_descends_from_the_command_outlives_the_lock() {
    let cluster = Cluster::start();
    let flags = ["--ttl", "2s", "--grace", "300ms"];
    assert_is_killed_in_time("scattered", || {
        let mut job = Job::start("scattered", &cluster.nodes(), &flags, SCATTERED);
        let members = members(&mut job.program);
        assert_eq!(job.program.wait().code(), Some(79));
        for member in members {
            assert!(!processes::is_alive(member), "{:#?}", job.program.seen());
        }
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
    let program = directory.path.join("locknode");
    std::fs::copy(env!("CARGO_BIN_EXE_locknode"), &program).expect("a copy");
    let mut command = Command::new(&program);
    command.uid(NOBODY).gid(NOBODY);
    command
}

/// The user `nobody`, wherever there is one.
const NOBODY: u32 = 65_534;

#[test]
fn nothing_that_descends_from_another_users_command_outlives_the_lock() {
    let cluster = Cluster::start();
    let flags = ["--ttl", "2s", "--grace", "300ms"];
    assert_is_killed_in_time("unprivileged", || {
        let directory = Directory::new("run-unprivileged");
        let program = unprivileged(&directory);
        let mut job = Job::start_in(directory, program, &cluster.nodes(), &flags, SCATTERED);
        let members = members(&mut job.program);
        assert_eq!(job.program.wait().code(), Some(79));
        assert!(!members.iter().any(|member| processes::is_alive(*member)));
        job
    });
}

/// Orphans in sessions of their own, as fast as a shell can, a few hundred at a time.
#[test]
fn a_command_that_forks_without_end_is_killed_in_time() {
    let cluster = Cluster::start();
    let flags = ["--ttl", "2s", "--grace", "300ms"];
    let script = r#"trap "" TERM; echo ready
        while :; do (setsid sh -c 'date +%s%3N >>"$1"; exec sleep 0.3' sh "$1" >/dev/null 2>&1 &); done"#;
    assert_is_killed_in_time("forks", || {
        let directory = Directory::new("run-forks");
        let program = unprivileged(&directory);
        let mut job = Job::start_in(directory, program, &cluster.nodes(), &flags, script);
        assert_eq!(job.program.wait().code(), Some(79));
        assert!(cluster.is_free("job"));
        job
    });
}

#[test]
fn a_stop_ends_all_that_descends_from_the_command_and_then_releases() {
    let cluster = Cluster::start();
    let flags = ["--grace", "300ms"];
    let mut job = Job::start("stop", &cluster.nodes(), &flags, SCATTERED);
    let members = members(&mut job.program);
    job.program.signal(Signal::TERM);
    assert_eq!(job.program.wait().code(), Some(143));
    assert!(!members.iter().any(|member| processes::is_alive(*member)));
    assert!(job.has_said("\"event\":\"killed\""));
    assert!(cluster.is_free("job"));
}

#[test]
fn a_stop_waits_for_all_that_descends_from_the_command_before_it_releases() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let directory = Directory::new("run-orderly");
    let go = text_of(&directory.path.join("go"));
    // The shell ends at once, the worker takes its time, in a session of its own.
    let worker = r#"trap 'echo ending; while [ ! -e "$1" ]; do sleep 0.01; done; echo ended; exit' TERM
        echo ready; while :; do sleep 0.01; done"#;
    let script = r#"setsid sh -c "$0" sh "$1" && echo next"#;
    let flags = ["--grace", "18s", "--json", "job"];
    let args = patient_args(&nodes, &flags, &["sh", "-c", script, worker, &go]);
    let mut job = Program::start(command(&args));
    let child = number_in(&job.line_ever_with("\"event\":\"started\""));
    job.line_ever_with("ready");
    job.signal(Signal::TERM);
    job.line_with("ending");
    wait_until("the shell ends", || !processes::is_alive(child));
    assert!(!cluster.is_free("job"), "{:#?}", job.seen());
    std::fs::write(&go, "").expect("a file");
    job.line_with("ended");
    assert_eq!(job.wait().code(), Some(143));
    assert!(!job.seen().iter().any(|line| line == "next"));
    assert!(cluster.is_free("job"));
}

#[test]
fn what_is_left_in_another_session_is_killed_if_so_wished() {
    let cluster = Cluster::start();
    let script =
        r#"(setsid sh -c 'echo "member=$$"; exec sleep 1000' >&2 &) ; read line <"$1"; exit 4"#;
    let directory = Directory::new("run-left");
    let pipe = text_of(&directory.path.join("pipe"));
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .is_ok_and(|made| made.success())
    );
    for (flags, is_killed) in [
        (&["--kill-group", "--json", "job"][..], true),
        (&["--json", "job"], false),
    ] {
        let nodes = cluster.nodes();
        let args = patient_args(&nodes, flags, &["sh", "-c", script, "sh", &pipe]);
        let mut job = Program::start(command(&args));
        let member = number_in(&job.line_with("member="));
        std::fs::write(&pipe, "go\n").expect("a reader");
        if !is_killed {
            job.line_with("\"left_running\":1");
            wait_until("the lock is released", || cluster.is_free("job"));
            assert!(processes::is_alive(member));
            processes::signal(member, Signal::KILL);
        }
        assert_eq!(job.wait().code(), Some(4));
        assert!(!processes::is_alive(member));
        assert!(cluster.is_free("job"));
    }
}

#[test]
fn what_does_not_descend_from_the_command_is_left_alone() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let inner = command(patient_args(
        &nodes,
        &["job"],
        &["sh", "-c", "echo ready; exec sleep 1000"],
    ));
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
    assert_eq!(job.wait().code(), Some(143));
}

/// Without privileges there is no control group either.
#[test]
fn a_process_that_became_another_user_is_said_not_to_be_killed_and_keeps_the_lock() {
    if !geteuid().is_root() {
        return;
    }
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let directory = Directory::new("run-user");
    // What sudo does.
    let sudo = directory.path.join("sudo");
    std::fs::copy("/usr/bin/setpriv", &sudo).expect("setpriv");
    std::fs::set_permissions(&sudo, std::fs::Permissions::from_mode(0o4755)).expect("permissions");
    let sudo = text_of(&sudo);
    let args = patient_args(
        &nodes,
        &["--ttl", "1500ms", "--grace", "300ms", "--json", "job"],
        &[
            &sudo,
            "--reuid=0",
            "--",
            "sh",
            "-c",
            "echo ready; exec sleep 1000",
        ],
    );
    let mut locknode = unprivileged(&directory);
    locknode.args(args).stdin(Stdio::null());
    let mut job = Program::start(locknode);
    let child = number_in(&job.line_with("\"event\":\"started\""));
    job.line_ever_with("ready");
    let line = job.line_with("\"event\":\"not_killed\"");
    assert!(line.contains(&format!("\"pid\":{child},")), "{line}");
    assert!(!job.seen().iter().any(|line| line.contains("\"killed\"")));
    job.line_with("\"event\":\"kept\"");
    assert!(processes::is_alive(child));
    processes::signal(child, Signal::KILL);
    assert_eq!(job.wait().code(), Some(79));
}

#[test]
fn where_a_control_group_can_be_made_the_command_is_in_one_of_its_own() {
    let cluster = Cluster::start();
    let nodes = cluster.nodes();
    let args = patient_args(&nodes, &["job"], &["cat", "/proc/self/cgroup"]);
    let mut job = Program::start(command(&args));
    let line = job.line_with("0::");
    assert_eq!(job.wait().code(), Some(0));
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
