//! Standard error that nobody reads: neither the lock nor its end waits for a write.

use std::io::Write as _;
use std::process::Stdio;
use std::time::Instant;

use rustix::io::ioctl_fionbio;
use rustix::termios::{Action, tcflow};

use crate::cluster::Cluster;
use crate::program::{Directory, PATIENCE};
use crate::terminal::Terminal;

/// A pipe that is full, and its other end.
fn full_pipe() -> (std::io::PipeReader, Stdio) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    ioctl_fionbio(&writer, true).expect("a pipe");
    while writer.write(&[b'x'; 512]).is_ok() {}
    while writer.write(b"x").is_ok() {}
    ioctl_fionbio(&writer, false).expect("a pipe");
    (reader, writer.into())
}

/// Runs a job with that standard error: what it wrote to a file, and its exit code.
fn run_with(
    name: &str,
    stderr: Stdio,
    cluster: &Cluster,
    flags: &str,
    script: &str,
) -> (String, Option<i32>) {
    let directory = Directory::new(&format!("run-output-{name}"));
    let trail = directory.file("trail", "");
    let flags = format!("{flags} --json job");
    let mut locknode = cluster.run(&flags, &["sh", "-c", script, "sh", &trail]);
    let child = locknode.stderr(stderr).stdout(Stdio::null()).spawn();
    let mut child = child.expect("it starts");
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it did not end");
        }
        std::thread::sleep(crate::processes::LOOK_AGAIN);
    };
    let trail = std::fs::read_to_string(trail).expect("a trail");
    (trail, status.code())
}

fn check(name: &str, stderr: impl Fn() -> (Box<dyn std::any::Any>, Stdio)) {
    let cluster = Cluster::start();
    // Renewals go on, and so does the end.
    let (_keep, full) = stderr();
    let flags = "--ttl 1500ms --renew";
    let (_, code) = run_with(name, full, &cluster, flags, "sleep 3; exit 3");
    assert_eq!(code, Some(3));
    assert!(cluster.is_free("job"));
    // The kill comes in time; twice too late on a busy machine is no proof yet.
    let script = r#"trap '' TERM; echo "until=$LOCKNODE_VALID_UNTIL" >>"$1"
        while :; do date +%s%3N >>"$1"; sleep 0.01; done"#;
    let is_in_time = || {
        let (_keep, full) = stderr();
        let flags = "--ttl 1500ms --grace 300ms";
        let (trail, code) = run_with(name, full, &cluster, flags, script);
        assert_eq!(code, Some(79));
        let number = |line: &str| line.trim_start_matches("until=").parse::<u64>().ok();
        let until = trail.lines().next().and_then(number).expect("a time");
        let last = trail.lines().skip(1).filter_map(number).max();
        last.expect("a time") < until
    };
    assert!((0..3).any(|_| is_in_time()));
}

#[test]
fn a_pipe_that_nobody_reads_stops_neither_renewals_nor_the_kill() {
    check("pipe", || {
        let (reader, writer) = full_pipe();
        (Box::new(reader), writer)
    });
}

#[test]
fn a_terminal_that_was_stopped_with_ctrl_s_stops_neither_renewals_nor_the_kill() {
    check("terminal", || {
        let terminal = Terminal::open();
        let stderr = terminal.theirs();
        tcflow(&stderr, Action::OOff).expect("a terminal");
        (Box::new(terminal), stderr.into())
    });
}
