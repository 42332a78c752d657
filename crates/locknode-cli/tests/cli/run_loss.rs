//! What happens to a command when its lock is lost.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::cluster::Cluster;
use crate::processes::{self, command_of, number_in, wait_until};
use crate::program::{Directory, Program, clean};
use crate::run::HOLDER;

/// Says `ready` and writes the time, in milliseconds since 1970, to the file `$1` over and over.
const OBEDIENT: &str = "echo ready; while :; do date +%s%3N >>\"$1\"; sleep 0.01; done";

/// The same, and does not end when asked.
const STUBBORN: &str =
    "trap '' TERM; echo ready; while :; do date +%s%3N >>\"$1\"; sleep 0.01; done";

/// A job that leaves a trail.
pub(crate) struct Job {
    directory: Directory,
    pub(crate) program: Program,
}

impl Job {
    pub(crate) fn start(name: &str, cluster: &Cluster, flags: &str, script: &str) -> Self {
        let directory = Directory::new(&format!("run-loss-{name}"));
        let program = Command::new(env!("CARGO_BIN_EXE_locknode"));
        Self::start_in(directory, program, cluster, flags, script)
    }

    /// The same by that program, which may run as another user.
    pub(crate) fn start_in(
        directory: Directory,
        mut program: Command,
        cluster: &Cluster,
        flags: &str,
        script: &str,
    ) -> Self {
        let trail = directory.file("trail", "");
        let flags = format!("{flags} --json job");
        let run = cluster.run(&flags, &["sh", "-c", script, "sh", &trail]);
        let all = std::fs::Permissions::from_mode(0o666);
        std::fs::set_permissions(&trail, all).expect("permissions");
        clean(&mut program);
        program.args(run.get_args()).stdin(Stdio::null());
        let mut program = Program::start(program);
        program.line_with("ready");
        Self { directory, program }
    }

    /// The last time that the command was seen.
    fn last_seen(&self) -> u64 {
        let trail: PathBuf = self.directory.path.join("trail");
        let trail = std::fs::read_to_string(trail).expect("a trail");
        let times = trail.lines().filter_map(|line| line.parse().ok());
        times.max().expect("a time")
    }

    /// The end of the last validity that a majority of the nodes agreed to.
    fn valid_until(&self) -> u64 {
        let lines = self.program.seen().iter();
        let lines =
            lines.filter(|line| line.contains("\"acquired\"") || line.contains("\"renewed\""));
        let ends = lines.filter_map(|line| {
            let (_, number) = line.split_once("\"valid_until_unix_ms\":")?;
            number.trim_end_matches('}').parse().ok()
        });
        ends.max().expect("a validity")
    }

    fn has_ended_in_time(&self) -> bool {
        self.last_seen() < self.valid_until()
    }

    fn assert_ended_in_time(&self, what: &str) {
        let (last_seen, valid_until) = (self.last_seen(), self.valid_until());
        assert!(
            last_seen < valid_until,
            "{what}: seen at {last_seen}, valid until {valid_until}: {:#?}",
            self.program.seen()
        );
    }

    pub(crate) fn has_said(&self, part: &str) -> bool {
        self.program.count(part) > 0
    }
}

/// Plays a job that is killed, and again when it was seen too late: the kill comes a tenth of the TTL before the end,
/// and a busy machine may take longer to wake somebody. A kill that is too late by itself is so three times.
pub(crate) fn assert_is_killed_in_time(what: &str, play: impl Fn() -> Job) {
    for _ in 0..2 {
        if play().has_ended_in_time() {
            return;
        }
    }
    play().assert_ended_in_time(what);
}

#[test]
fn a_command_that_takes_longer_than_its_lock_is_ended_before_the_lock_is() {
    let play = |name: &str, script, is_killed| {
        let cluster = Cluster::start();
        let mut job = Job::start(name, &cluster, "--ttl 1500ms --grace 500ms", script);
        job.program.ends(79);
        assert!(job.has_said("\"event\":\"lost\"") && job.has_said("--renew"));
        assert_eq!(job.has_said("\"event\":\"killed\""), is_killed, "{name}");
        assert!(cluster.is_free("job"));
        job
    };
    play("obedient", OBEDIENT, false).assert_ended_in_time("obedient");
    assert_is_killed_in_time("stubborn", || play("stubborn", STUBBORN, true));
}

#[test]
fn a_command_that_ends_well_when_asked_has_lost_its_lock_nonetheless() {
    let cluster = Cluster::start();
    for (flags, code) in [("--ttl 2s", 79), ("--ttl 2s --lost-exit-code 5", 5)] {
        let mut job = Job::start("ends-well", &cluster, flags, HOLDER);
        job.program.ends(code);
        assert!(job.has_said("\"event\":\"exited\",\"name\":\"job\",\"code\":0}"));
    }
}

#[test]
fn a_command_with_no_grace_is_killed_at_the_end() {
    let cluster = Cluster::start();
    let script = format!("trap 'echo asked' TERM; {OBEDIENT}");
    assert_is_killed_in_time("no grace", || {
        let mut job = Job::start("no-grace", &cluster, "--ttl 2s --grace 0s", &script);
        job.program.ends(79);
        assert!(job.has_said("\"event\":\"killed\""));
        job
    });
}

#[test]
fn a_renewed_lock_lasts_as_long_as_the_command() {
    let cluster = Cluster::start();
    let script = "echo ready; sleep 4; exit 3";
    let mut job = Job::start("renewed", &cluster, "--ttl 3s --renew", script);
    job.program.line_with("\"event\":\"renewed\"");
    job.program.ends(3);
    assert!(cluster.is_free("job"));
}

#[test]
fn a_lock_is_not_renewed_longer_than_it_may_be_held() {
    let cluster = Cluster::start();
    let mut job = Job::start("max-hold", &cluster, "--ttl 3s --max-hold 8s", OBEDIENT);
    job.program.line_with("\"event\":\"renewed\"");
    let line = job.program.line_with("\"event\":\"lost\"");
    assert!(line.contains("--max-hold"), "{line}");
    job.program.ends(79);
    job.assert_ended_in_time("max-hold");
}

#[test]
fn with_three_of_five_nodes_gone_the_command_ends_before_the_validity() {
    let play = |name: &str, signal, script| {
        let cluster = Cluster::start_apart();
        let mut job = Job::start(name, &cluster, "--ttl 3s --renew", script);
        job.program.line_with("\"event\":\"renewed\"");
        cluster.signal(3, signal);
        job.program.ends(79);
        let seen = job.program.seen();
        assert!(job.has_said("no quorum"), "{name}: {seen:#?}");
        job
    };
    for (name, signal) in [("stopped", Signal::STOP), ("killed", Signal::KILL)] {
        play(&format!("{name}-obedient"), signal, OBEDIENT).assert_ended_in_time(name);
        let stubborn = format!("{name}-stubborn");
        assert_is_killed_in_time(&stubborn, || play(&stubborn, signal, STUBBORN));
    }
}

#[test]
fn with_two_of_five_nodes_gone_the_command_goes_on() {
    for signal in [Signal::STOP, Signal::KILL] {
        let cluster = Cluster::start_apart();
        let script = "trap 'exit 6' USR1; echo ready; while :; do sleep 0.01; done";
        let mut job = Job::start("two-gone", &cluster, "--ttl 3s --renew", script);
        cluster.signal(2, signal);
        // More renewals than the TTL has room for without them.
        for _ in 0..4 {
            job.program.line_with("\"event\":\"renewed\"");
        }
        assert_eq!(job.program.end(Signal::USR1).code(), Some(6));
    }
}

#[test]
fn a_lock_that_was_taken_away_ends_the_command_at_once() {
    let cluster = Cluster::start();
    let flags = "--ttl 6s --grace 1s --renew";
    let mut job = Job::start("taken", &cluster, flags, OBEDIENT);
    cluster.ask("DEL job");
    cluster.ask("SET job other NX PX 60000");
    let line = job.program.line_with("\"event\":\"lost\"");
    let (_, left) = line.split_once("\"valid_ms\":").expect("a validity");
    let left = left.split(',').next().and_then(|left| left.parse().ok());
    let left: u64 = left.expect("a number");
    // Not when the grace begins, but when the nodes said so.
    assert!(left > 1000, "{line}");
    job.program.ends(79);
    // Nobody released the other one's lock.
    assert_eq!(cluster.ask("EXISTS job"), [":1"; 5]);
}

#[test]
fn what_a_command_started_does_not_outlive_the_lock() {
    let cluster = Cluster::start();
    // The command ends when asked, what it started does not.
    let script = "sh -c 'trap \"\" TERM; echo started; while :; do date +%s%3N >>\"$1\"; sleep 0.01; done' \
        sh \"$1\" & echo \"grandchild=$!\"; echo ready; wait";
    let flags = "--ttl 1500ms --grace 500ms";
    assert_is_killed_in_time("grandchild", || {
        let mut job = Job::start("grandchild", &cluster, flags, script);
        let grandchild = number_in(&job.program.line_ever_with("grandchild="));
        job.program.ends(79);
        assert!(!processes::is_alive(grandchild));
        job
    });
}

#[test]
fn a_command_that_was_stopped_with_us_past_the_end_does_not_go_on() {
    let cluster = Cluster::start();
    let mut job = Job::start("stopped", &cluster, "--ttl 1500ms --grace 0s", OBEDIENT);
    let trail = job.directory.path.join("trail");
    wait_until("the command works", || {
        std::fs::metadata(&trail).is_ok_and(|trail| trail.len() > 0)
    });
    job.program.signal(Signal::TSTP);
    wait_until("locknode is stopped", || {
        processes::is_stopped(job.program.id())
    });
    wait_until("the nodes let go", || cluster.is_free("job"));
    job.program.signal(Signal::CONT);
    job.program.ends(79);
    job.assert_ended_in_time("stopped");
}

#[test]
fn a_locknode_that_was_stopped_past_the_end_kills_when_it_goes_on() {
    let cluster = Cluster::start();
    let mut job = Job::start("frozen", &cluster, "--ttl 1500ms --grace 500ms", STUBBORN);
    let child = command_of(&mut job.program);
    job.program.signal(Signal::STOP);
    wait_until("the nodes let go", || cluster.is_free("job"));
    assert!(processes::is_alive(child));
    job.program.signal(Signal::CONT);
    job.program.line_with("\"event\":\"killed\"");
    job.program.ends(79);
    assert!(!job.has_said("\"event\":\"lost\"") && !processes::is_alive(child));
}
