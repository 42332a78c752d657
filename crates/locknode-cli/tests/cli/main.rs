//! The built program, run as a person runs it. What needs several features is tested in a build with the default ones.
//!
//! * `program`: starting the program and talking to it.
//! * `serve`: a node, its addresses, its signals.
//! * `restart`: a stop, a crash, a first start, and directories that are refused.
//! * `documents`: what README and docs/ show.
//! * `directory`: a data directory that is lost, damaged, full, or another's.
//! * `damage`: files of a node that were cut or flipped somewhere.
//! * `configuration`: flags, environment, file, and `--print-config`.
//! * `hand_over`: a node that goes on in another process.
//! * `lab`: several nodes in one process.
//! * `lab_faults`: what clients can make go wrong there.
//! * `lab_chaos`: clients and faults of the lab's own, a verdict, a picture.
//! * `lab_wire`: what it says of clients that are others'.
//! * `lab_first_minutes`: what libraries ask and the help shows, on a lab as it starts.
//! * `status`: looking at nodes that are there and nodes that are not.
//! * `doctor`: what is wrong with nodes, ours and others.
//! * `systemd`: what the service manager is told.
//! * `cluster`: five nodes, and what is on them.
//! * `processes`: what Linux says of a process.
//! * `run`: a command that runs while a lock is held: exit codes, environment, waiting.
//! * `run_signals`: what signals do to it.
//! * `run_loss`: what happens to it when the lock is lost.
//! * `run_descendants`: what it started, wherever that went.
//! * `run_terminal`: what a terminal does to it.
//! * `run_output`: standard error that nobody reads.
//! * `terminal`: a pseudo-terminal.
//! * `tls`: nodes and commands that speak TLS.
//! * `force`: who holds a lock, and a release by force.
//! * `users`: users of a file, and what each may do.
//! * `lock`: `lock`, `extend`, `release` and `status NAME`.
//! * `bench`: runs that count and runs that do not, and comparisons of servers.
//! * `sim`: simulated worlds: verdicts, planted bugs, replays.
//! * `monitoring`: metrics and probes, and what comes to their port.
//! * `prometheus`: a real one looks at five nodes.
//! * `logs`: what a node writes to standard error, and what it never does.
//! * `manual`: help, completions and man pages.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[cfg(feature = "default")]
mod bench;
#[cfg(feature = "default")]
mod cluster;
mod configuration;
mod damage;
mod directory;
#[cfg(feature = "default")]
mod doctor;
#[cfg(feature = "default")]
mod documents;
#[cfg(feature = "default")]
mod force;
#[cfg(all(feature = "default", target_os = "linux"))]
mod hand_over;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "lab")]
mod lab_chaos;
#[cfg(feature = "lab")]
mod lab_faults;
#[cfg(feature = "default")]
mod lab_first_minutes;
#[cfg(feature = "lab")]
mod lab_wire;
#[cfg(feature = "default")]
mod lock;
mod logs;
#[cfg(feature = "default")]
mod manual;
#[cfg(feature = "metrics")]
mod monitoring;
#[cfg(feature = "default")]
mod processes;
mod program;
#[cfg(feature = "metrics")]
mod prometheus;
mod restart;
#[cfg(feature = "default")]
mod run;
#[cfg(feature = "default")]
mod run_descendants;
#[cfg(feature = "default")]
mod run_loss;
#[cfg(feature = "default")]
mod run_output;
#[cfg(feature = "default")]
mod run_signals;
#[cfg(feature = "default")]
mod run_terminal;
mod serve;
#[cfg(feature = "sim")]
mod sim;
#[cfg(feature = "sim")]
mod sim_history;
#[cfg(feature = "default")]
mod status;
#[cfg(all(feature = "default", target_os = "linux"))]
mod systemd;
#[cfg(feature = "default")]
mod terminal;
#[cfg(feature = "default")]
mod tls;
#[cfg(feature = "default")]
mod users;
