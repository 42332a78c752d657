//! A command on a terminal: its keys, its job control, and signals that do not come from it.

use std::process::Command;

use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::processes::{self, command_of, number_in, wait_until};
use crate::program::Program;
use crate::terminal::Terminal;

const CATCHER: &str = "trap 'echo got INT' INT; trap 'echo got QUIT' QUIT; trap 'echo got USR1' USR1; \
    trap 'echo ended; exit 5' TERM; echo ready; while :; do sleep 0.01; done";

/// A job on a terminal, and its command.
fn start(terminal: &Terminal, cluster: &Cluster, script: &str) -> (Program, u32) {
    let job = cluster.run("--json job", &["sh", "-c", script]);
    let mut job = Program::start(terminal.control(&job));
    let child = command_of(&mut job);
    job.line_ever_with("ready");
    (job, child)
}

#[test]
fn a_key_reaches_the_command_once() {
    let cluster = Cluster::start();
    let mut terminal = Terminal::open();
    let (mut job, child) = start(&terminal, &cluster, CATCHER);
    assert_eq!(processes::group(child), processes::group(job.id()));
    for (key, line) in [("\x03", "got INT"), ("\x1c", "got QUIT")] {
        terminal.type_keys(key);
        job.line_with(line);
        // Signals keep their order, so one that was passed on as well would have come by then.
        job.signal(Signal::USR1);
        job.line_with("got USR1");
        assert_eq!(job.count(line), 1);
    }
    assert_eq!(job.end(Signal::TERM).code(), Some(5));
    assert!(cluster.is_free("job"));
}

#[test]
fn a_signal_that_came_to_locknode_alone_is_passed_on() {
    let cluster = Cluster::start();
    let terminal = Terminal::open();
    let (mut job, _) = start(&terminal, &cluster, CATCHER);
    for (signal, line) in [
        (Signal::INT, "got INT"),
        (Signal::QUIT, "got QUIT"),
        (Signal::USR1, "got USR1"),
    ] {
        job.signal(signal);
        job.line_with(line);
    }
    assert_eq!(job.end(Signal::TERM).code(), Some(5));
    assert!(cluster.is_free("job"));
}

#[test]
fn two_interrupts_in_a_row_kill() {
    let cluster = Cluster::start();
    let mut terminal = Terminal::open();
    let (mut job, _) = start(&terminal, &cluster, CATCHER);
    terminal.type_keys("\x03");
    job.line_with("got INT");
    // A signal that comes before an equal one was taken is one with it. This one is taken after the first.
    job.signal(Signal::USR1);
    job.line_with("got USR1");
    terminal.type_keys("\x03");
    job.ends(137);
    assert!(cluster.is_free("job"));
}

#[test]
fn a_command_with_another_standard_input_reads_from_the_terminal() {
    let cluster = Cluster::start();
    let mut terminal = Terminal::open();
    let script = "echo ready; read line </dev/tty; echo \"read=$line\"";
    let inner = cluster.run("job", &["sh", "-c", script]);
    let mut piped = Command::new("sh");
    piped
        .args(["-c", "echo data | \"$0\" \"$@\""])
        .arg(inner.get_program())
        .args(inner.get_args());
    let mut job = Program::start(terminal.control(&piped));
    job.line_with("ready");
    terminal.type_keys("hello\n");
    job.line_with("read=hello");
    job.ends(0);
}

#[test]
fn ctrl_z_stops_the_command_and_locknode() {
    let cluster = Cluster::start();
    let mut terminal = Terminal::open();
    let (mut job, child) = start(&terminal, &cluster, "echo ready; exec sleep 1000");
    terminal.type_keys("\x1a");
    wait_until("both are stopped", || {
        processes::is_stopped(child) && processes::is_stopped(job.id())
    });
    job.signal(Signal::CONT);
    wait_until("the command goes on", || !processes::is_stopped(child));
    assert_eq!(job.end(Signal::TERM).code(), Some(143));
}

#[test]
fn what_a_command_leaves_on_a_terminal_is_killed_if_so_wished() {
    let cluster = Cluster::start();
    let terminal = Terminal::open();
    let script = ["sh", "-c", "sleep 1000 & echo \"left=$!\"; exit 4"];
    let job = cluster.run("--kill-group job", &script);
    let mut job = Program::start(terminal.control(&job));
    let left = number_in(&job.line_with("left="));
    job.ends(4);
    assert!(!processes::is_alive(left));
}
