//! `locknode run`: runs a command only while a lock is held.
//!
//! ```text
//!  thread      what it does                                    what it may wait for
//!  main        signals, deadline, kill; starts the command     only these
//!  client      redlock-client: connections, names, renewals    nodes, resolver
//!  stderr      writes lines                                    the process that reads them
//! ```
//!
//! `docs/run.md` has the contract, sentence by sentence, and the test of each.

mod cgroup;
mod child;
mod client_thread;
mod descendants;
pub(crate) mod parent_death;
mod refusal;
mod renewals;
mod report;
mod supervision;
mod tenure;
mod timeline;
pub(crate) mod witness;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redlock_client::{Guard, LockRequest, Redlock, RenewPolicy};

use self::child::Child;
use self::client_thread::ClientThread;
use self::renewals::Renewals;
use self::report::{Manner, Report};
use self::timeline::{Finish, Rules};
use crate::acquisition::{AcquisitionFlags, Validity};
use crate::cluster::ClusterFlags;
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::lines::Lines;
use crate::serving;
use crate::signals::Signals;

/// Run a command while holding a lock
///
/// Acquires the lock on a majority of the nodes, runs the command (never through a shell) and releases
/// the lock when the command ends. If another client holds the lock, the command does not run. So at
/// most one runs at a time, but they may run one after the other. For a job that every machine starts
/// at the same time and only one should run, see --at-least.
///
/// The lock expires after --ttl; with --renew it is renewed every third of that. If it cannot be
/// renewed, the command gets SIGTERM, and after --grace SIGKILL, a tenth of --ttl (at most 1s) before
/// the lock expires. The thread that does this never waits for a node, a resolver or a write.
///
/// "The command" is the started process and all its descendants, in any process group or session. A
/// service manager (systemd-run, docker, at) starts processes that do not descend from the command:
/// locknode run does not reach them. It cannot kill a process that became another user without
/// privileges, unless it can create a control group (v2). It then reports that, and does not release
/// the lock before that process ends or the lock expires.
///
/// SIGTERM is sent to all of the command; after --grace the rest is killed; then the lock is released.
/// HUP, INT, QUIT, USR1 and USR2 are passed on; if the command then ends, its descendants get SIGTERM
/// and --grace. A second INT kills everything. When the command ends by itself, descendants that still
/// run go on without the lock, unless you give --kill-group. A signal that is ignored when locknode run
/// starts stays ignored, for the command too.
///
/// With a controlling terminal the command shares the process group of locknode run, as job control
/// requires. A signal that the terminal sends to both is not passed on again; one sent to locknode run
/// alone is. Without a terminal the command leads its own process group.
///
/// If locknode run is killed with SIGKILL, Linux kills the started process, but not its descendants:
/// use SIGTERM to end locknode run. While it is stopped (SIGSTOP) or the machine sleeps, it kills
/// nothing; if the lock has expired when it resumes, it kills at once. If even then something must not
/// be written twice, check a fencing token where it is written.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = EXAMPLES)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    acquisition: AcquisitionFlags,

    /// Renew the lock while the command runs, for up to --max-hold
    #[arg(long)]
    renew: bool,

    /// Longest time to renew the lock for; implies --renew [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    max_hold: Option<Duration>,

    /// Time between SIGTERM and SIGKILL for the command [default: 5s, or a third of --ttl if that is less]
    ///
    /// The command gets SIGTERM when locknode run does, or this long before it would be killed
    /// because the lock expires. --grace and a tenth of --ttl together must be less than two
    /// thirds of --ttl, because renewal comes after the first third. With 0s there is only SIGKILL.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, verbatim_doc_comment)]
    grace: Option<Duration>,

    /// Exit code if the lock is lost while the command runs
    #[arg(long, value_name = "CODE", default_value_t = LOST)]
    lost_exit_code: u8,

    /// When the command ends, kill its descendants that still run
    #[arg(long)]
    kill_group: bool,

    /// Keep the lock for at least this long, even if the command ends sooner
    ///
    /// For jobs that every machine starts at the same time by its own clock: a machine with a late
    /// clock finds the lock still held. Counted from the acquisition, at most --ttl.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, verbatim_doc_comment)]
    at_least: Option<Duration>,

    /// Write nothing to standard error
    #[arg(long, conflicts_with = "json")]
    quiet: bool,

    /// Report events on standard error, one JSON object per line
    #[arg(long)]
    json: bool,

    /// Name of the lock
    name: OsString,

    /// The command and its arguments, after --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// The command's name, by which people know the holder of the lock. Arguments may be secrets.
fn program(flags: &RunFlags) -> String {
    let command = flags.command.first().map(Path::new);
    let name = command.and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Acquires the lock, runs the command, releases the lock.
///
/// # Errors
///
/// If the lock cannot be acquired or the command cannot be started.
pub(crate) fn run(flags: &RunFlags) -> Result<Exit, Failure> {
    let plan = Plan::new(flags)?;
    let client = flags
        .cluster
        .observed_client(Arc::new(plan.renewals.clone()), &program(flags))?;
    let client_thread = ClientThread::start()?;
    let runtime = serving::runtime()?;
    let result = runtime.block_on(async {
        let result = plan.run(&client, &client_thread).await;
        client.close().await;
        result
    });
    plan.report.finish();
    result
}

/// The flags, checked.
#[derive(Debug)]
struct Plan<'a> {
    flags: &'a RunFlags,
    rules: Rules,
    max_hold: Option<Duration>,
    renewals: Renewals,
    report: Report,
}

impl<'a> Plan<'a> {
    fn new(flags: &'a RunFlags) -> Result<Self, Failure> {
        let ttl = flags.acquisition.ttl;
        let max_hold = flags.max_hold.or(flags.renew.then_some(MAX_HOLD));
        if let Some(max_hold) = max_hold.filter(|max_hold| *max_hold < ttl) {
            return Err(Failure::usage(format!(
                "--max-hold ({max_hold:?}) is less than --ttl ({ttl:?}): lower --ttl"
            )));
        }
        if flags.at_least.is_some_and(|at_least| at_least > ttl) {
            return Err(Failure::usage(
                "--at-least is more than --ttl, so the lock would expire first: raise --ttl",
            ));
        }
        let manner = match (flags.quiet, flags.json) {
            (true, _) => Manner::Quiet,
            (false, true) => Manner::Json,
            (false, false) => Manner::Text,
        };
        Ok(Self {
            flags,
            rules: Rules {
                grace: grace(flags.grace, ttl)?,
                lead: timeline::lead(ttl),
                kills_rest: flags.kill_group,
                has_terminal: File::open("/dev/tty").is_ok(),
            },
            max_hold,
            renewals: Renewals::default(),
            report: Report::new(
                manner,
                flags.name.to_string_lossy().into_owned(),
                Lines::start()?,
            ),
        })
    }

    async fn run(&self, client: &Redlock, thread: &ClientThread) -> Result<Exit, Failure> {
        let mut signals = Signals::take()?;
        let mut taking = thread.spawn(self.take(client));
        let taken = tokio::select! {
            biased;
            exit = signals.end() => {
                taking.stop().await;
                return Ok(exit);
            }
            taken = taking.result() => taken.and_then(|taken| taken),
        };
        let guard = taken.map_err(|failure| self.report.failed(&failure))?;
        self.report.acquired(Validity::read(|| guard.validity()));
        let mut child = match self.start(&guard) {
            Ok(child) => child,
            Err(failure) => {
                self.release(guard).await;
                return Err(self.report.failed(&failure));
            }
        };
        self.report.started(child.id());
        let finish = self.supervise(&guard, &mut child, &mut signals).await;
        Ok(self.finish(finish, guard, &child).await)
    }

    fn take(
        &self,
        client: &Redlock,
    ) -> impl Future<Output = Result<Guard, Failure>> + Send + use<> {
        let (request, report) = (self.request(client), self.report.clone());
        let acquisition = self.flags.acquisition.clone();
        async move {
            let waiting = |error: &redlock_client::Error| report.waiting(&error.to_string());
            acquisition.acquire(request, waiting).await
        }
    }

    fn request(&self, client: &Redlock) -> LockRequest {
        let mut request = client.lock(self.flags.name.as_bytes());
        if let Some(max_hold) = self.max_hold {
            request = request.renew(RenewPolicy::until(max_hold));
        }
        if let Some(at_least) = self.flags.at_least {
            request = request.hold_at_least(at_least);
        }
        request
    }

    fn start(&self, guard: &Guard) -> Result<Child, Failure> {
        let token = guard.token().as_ref().to_vec();
        let variables = [
            ("LOCKNODE_NAME", self.flags.name.clone()),
            ("LOCKNODE_TOKEN", OsString::from_vec(token)),
            (
                "LOCKNODE_VALID_UNTIL",
                Validity::read(|| guard.validity())
                    .unix_millis_at_end()
                    .to_string()
                    .into(),
            ),
            ("LOCKNODE_HELD", "1".into()),
        ];
        let command = &self.flags.command;
        let has_terminal = self.rules.has_terminal;
        Child::start(command, &variables, has_terminal, self.flags.quiet)
    }

    /// Releases the lock, unless something of the command is still there that was to end.
    async fn finish(&self, finish: Finish, guard: Guard, child: &Child) -> Exit {
        let lost = Exit::Code(self.flags.lost_exit_code);
        let (ending, exit) = match finish {
            Finish::Ended(ending) => (ending, Exit::Code(ending.code())),
            Finish::Lost(ending) => (ending, lost),
            Finish::Unkillable => {
                let _ = guard.leak();
                self.report
                    .kept("processes of the command still run after SIGKILL");
                return lost;
            }
        };
        self.report.exited(ending, child.count());
        self.release(guard).await;
        exit
    }

    async fn release(&self, guard: Guard) {
        let is_valid = guard.is_valid();
        let released = guard.release().await;
        self.report.released(&released);
        if is_valid && !released.is_settled() {
            let answers = self.flags.cluster.answers(&released);
            self.report
                .kept(&format!("no majority of the nodes released it ({answers})"));
        }
    }
}

/// How long the command has to end after SIGTERM.
fn grace(given: Option<Duration>, ttl: Duration) -> Result<Duration, Failure> {
    let Some(grace) = given else {
        return Ok(GRACE.min(ttl / 3));
    };
    if grace + timeline::lead(ttl) >= ttl * 2 / 3 {
        return Err(Failure::usage(format!(
            "--grace ({grace:?}) is too long for --ttl ({ttl:?}): with {:?} between the kill and the expiry it must be \
             less than two thirds of --ttl, because renewal comes after the first third; lower --grace or raise --ttl",
            timeline::lead(ttl)
        )));
    }
    Ok(grace)
}

/// `--max-hold` when only `--renew` is given: a job that hangs gives its lock back some day.
const MAX_HOLD: Duration = Duration::from_secs(3600);

/// Long enough for a program to end in order, short enough to leave most of the TTL for work.
const GRACE: Duration = Duration::from_secs(5);

/// Not in `sysexits.h`, so that nothing else means it.
const LOST: u8 = 79;

const EXAMPLES: &str = "\
The command's environment has LOCKNODE_NAME, LOCKNODE_TOKEN, LOCKNODE_VALID_UNTIL (when the lock
expires without renewal, as of the start, in milliseconds since 1970) and LOCKNODE_HELD=1.

With --json each line on standard error is an object with \"event\" (waiting, acquired, started,
renewed, lost, killed, not_killed, exited, released, kept, failed) and \"name\". The command's own
standard error appears between these lines. Lines that nobody reads are dropped.

Examples:
  export LOCKNODE_NODES=10.0.0.5:6379,10.0.0.6:6379,10.0.0.7:6379
  locknode run nightly-report -- /usr/local/bin/report --all
  locknode run --ttl 30s --renew --max-hold 2h backup -- backup.sh
  locknode run --wait 5m deploy -- sh -c 'make build && make install'
  locknode run --ttl 60s --at-least 50s minutely -- job     in the crontab of every machine

Exit codes: the command's own, if the lock was valid until it ended, 128+N if signal N killed it;
75 another client holds the lock, or clients kept splitting the votes (or the code of -E; flock uses
1); 79 the lock was lost while the command ran (or the code of --lost-exit-code); 69 too few nodes
took part to decide; 126 the command cannot be executed, 127 it was not found; 64 wrong usage, 70
internal error.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grace_leaves_time_for_a_renewal() {
        let ms = Duration::from_millis;
        for (given, ttl, expected) in [
            (None, 30_000, Some(5_000)),
            (None, 3_000, Some(1_000)),
            (Some(0), 3_000, Some(0)),
            (Some(1_699), 3_000, Some(1_699)),
            (Some(1_700), 3_000, None),
            (Some(18_999), 30_000, Some(18_999)),
            (Some(19_000), 30_000, None),
            (Some(9_000), 3_000, None),
        ] {
            let found = grace(given.map(ms), ms(ttl)).ok();
            assert_eq!(found, expected.map(ms), "{given:?} of {ttl}");
        }
    }
}
