//! What signals do to a command that runs while a lock is held.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::processes::{self, command_of, number_in, wait_until};
use crate::program::Program;
use crate::run::HOLDER;

#[test]
fn signals_reach_the_command() {
    let cluster = Cluster::start();
    for (signal, name, code) in [
        (Signal::HUP, "HUP", 11),
        (Signal::INT, "INT", 12),
        (Signal::QUIT, "QUIT", 13),
        (Signal::TERM, "TERM", 14),
        (Signal::USR1, "USR1", 15),
        (Signal::USR2, "USR2", 16),
    ] {
        let script = format!(
            "trap 'echo got {name}; exit {code}' {name}; echo ready; while :; do sleep 0.01; done"
        );
        let mut job = cluster.job("job", &script);
        job.signal(signal);
        job.line_with(&format!("got {name}"));
        job.ends(code);
        assert!(cluster.is_free("job"));
    }
}

#[test]
fn a_signal_that_ends_the_command_is_in_the_exit_code() {
    let cluster = Cluster::start();
    for (signal, code) in [
        (Signal::HUP, 129),
        (Signal::INT, 130),
        (Signal::TERM, 143),
        (Signal::USR1, 138),
        (Signal::USR2, 140),
    ] {
        // No trap, and echo is done by the program that gets the signal.
        let mut job = cluster.job("job", "echo ready; exec sleep 1000");
        assert_eq!(job.end(signal).code(), Some(code));
        assert!(cluster.is_free("job"));
    }
}

#[test]
fn a_second_interrupt_kills_a_command_that_does_not_end() {
    let cluster = Cluster::start();
    let script = "trap 'echo got' INT; echo ready; while :; do sleep 0.01; done";
    let mut job = cluster.job("job", script);
    job.signal(Signal::INT);
    job.line_with("got");
    assert_eq!(job.end(Signal::INT).code(), Some(137));
    assert!(cluster.is_free("job"));
}

#[test]
fn signals_reach_what_the_command_started() {
    let cluster = Cluster::start();
    let mut job = cluster.job("job", "sleep 1000 & echo \"grandchild=$! ready\"; wait");
    let grandchild = number_in(&job.line_ever_with("grandchild="));
    assert!(processes::is_alive(grandchild));
    assert_eq!(job.end(Signal::TERM).code(), Some(143));
    wait_until("the grandchild ends", || !processes::is_alive(grandchild));
}

#[test]
fn what_the_command_leaves_behind_is_killed_if_so_wished() {
    let cluster = Cluster::start();
    // Deaf to everything but SIGKILL, and two generations deep.
    let script = "trap '' HUP INT TERM QUIT; \
        sh -c 'sleep 1000 & echo \"deep=$!\"; wait' >&2 & \
        sleep 1000 >/dev/null 2>&1 & echo \"grandchild=$! ready\"; exit 4";
    for (flags, is_killed) in [("--kill-group job", true), ("job", false)] {
        let mut job = cluster.job(flags, script);
        let grandchild = number_in(&job.line_ever_with("grandchild="));
        if is_killed {
            job.ends(4);
            assert!(!processes::is_alive(grandchild));
        } else {
            let deep = number_in(&job.line_ever_with("deep="));
            wait_until("the lock is released", || cluster.is_free("job"));
            assert!(processes::is_alive(grandchild) && processes::is_alive(deep));
            processes::signal(grandchild, Signal::KILL);
            processes::signal(deep, Signal::KILL);
            job.ends(4);
        }
        assert!(cluster.is_free("job"));
    }
}

#[test]
fn a_signal_while_waiting_gives_up() {
    let cluster = Cluster::start();
    let mut holder = cluster.job("job", HOLDER);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let waiting = cluster.run_at_once("--wait forever --json job", &["echo", "ran"]);
        let mut waiting = Program::start(waiting);
        waiting.line_with("\"event\":\"waiting\"");
        assert_eq!(waiting.end(signal).code(), Some(code));
    }
    assert_eq!(holder.end(Signal::TERM).code(), Some(0));
    assert!(cluster.is_free("job"));
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored_for_the_command_too() {
    let cluster = Cluster::start();
    let script = "kill -HUP $$; kill -INT $$; echo ready; read line; exit 6";
    let inner = cluster.run("job", &["sh", "-c", script]);
    // As nohup and the shell's `&` do it.
    let mut nohup = Command::new("sh");
    nohup
        .args(["-c", "trap '' HUP INT; exec \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args());
    let (stdin, end) = std::io::pipe().expect("a pipe");
    nohup.stdin(Stdio::from(stdin));
    let mut job = Program::start(nohup);
    job.line_with("ready");
    for signal in [Signal::HUP, Signal::INT, Signal::INT] {
        job.signal(signal);
    }
    // The command goes on until its input ends.
    drop(end);
    job.ends(6);
    assert!(cluster.is_free("job"));
}

#[test]
fn the_command_does_not_outlive_locknode() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let cluster = Cluster::start();
    let mut job = Program::start(cluster.run("--json job", &["sleep", "1000"]));
    let child = command_of(&mut job);
    job.signal(Signal::KILL);
    wait_until("the command ends", || !processes::is_alive(child));
    // Nobody released it, and nobody can have it before its time is over.
    assert!(!cluster.is_free("job"));
}

#[test]
fn ctrl_z_stops_the_command_too() {
    let cluster = Cluster::start();
    // Not a shell that starts programs: stopped amid that it waits for them, and does not count as stopped.
    let mut job = cluster.job("--json job", "echo ready; exec sleep 1000");
    let child = command_of(&mut job);
    job.signal(Signal::TSTP);
    wait_until("both are stopped", || {
        processes::is_stopped(child) && processes::is_stopped(job.id())
    });
    job.signal(Signal::CONT);
    wait_until("the command goes on", || !processes::is_stopped(child));
    assert_eq!(job.end(Signal::TERM).code(), Some(143));
}

#[test]
fn without_a_terminal_the_command_leads_a_process_group() {
    let cluster = Cluster::start();
    // Not even the one that the tests may have.
    let inner = cluster.run("--json job", &["sh", "-c", HOLDER]);
    let mut apart = Command::new("setsid");
    apart
        .arg(inner.get_program())
        .args(inner.get_args())
        .stdin(Stdio::null());
    let mut job = Program::start(apart);
    let child = command_of(&mut job);
    assert_eq!(processes::group(child), Some(child));
    job.line_ever_with("ready");
    assert_eq!(job.end(Signal::TERM).code(), Some(0));
}
