//! `locknode run`: a command that runs while a lock is held, and not a moment longer.
//!
//! ```text
//!  nodes <-- redlock-client <-- Guard --> validity, lost --.
//!                                                           >-- Timeline --> Child
//!  signals, timer, SIGCHLD --------------------------------'
//! ```

mod child;
pub(crate) mod parent_death;
mod report;
mod signals;
mod supervision;
mod tenure;
mod timeline;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::time::Duration;

use redlock_client::{Guard, LockRequest, Redlock, RenewPolicy};
use rustix::process::Signal;

use self::child::Child;
use self::report::{Manner, Report};
use self::signals::{Signals, Taken};
use self::timeline::{Ending, Finish, KILL_EARLY, Rules};
use crate::acquisition::{self, AcquisitionFlags};
use crate::cluster::ClusterFlags;
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::serving;

/// The flags of `locknode run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    cluster: ClusterFlags,

    #[command(flatten)]
    acquisition: AcquisitionFlags,

    /// Renew the lock while the command runs, for up to --max-hold
    #[arg(long)]
    renew: bool,

    /// How long the lock is renewed at most; implies --renew [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    max_hold: Option<Duration>,

    /// How long before the lock ends the command gets SIGTERM [default: 5s or a third of --ttl]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    #[arg(
        long_help = "How long before the lock ends the command gets SIGTERM.\n\n\
        That is the time it has to end by itself. Less than two thirds of --ttl, because a lock is\n\
        renewed when a third of it is over. With 0s there is only SIGKILL.\n\n\
        [default: 5s, or a third of --ttl if that is less]"
    )]
    grace: Option<Duration>,

    /// Exit code when the lock was lost while the command ran
    #[arg(long, value_name = "CODE", default_value_t = LOST)]
    lost_exit_code: u8,

    /// When the command ends, kill what it left running in its process group
    #[arg(long)]
    kill_group: bool,

    /// Keep the lock for at least that long, even if the command ends sooner
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    #[arg(
        long_help = "Keep the lock for at least that long, even if the command ends sooner.\n\n\
        For jobs that every machine starts at the same time by its own clock: one whose clock is a\n\
        bit late finds the lock still taken. Counted from when it was taken, not more than --ttl."
    )]
    at_least: Option<Duration>,

    /// Say nothing on standard error
    #[arg(long, conflicts_with = "json")]
    quiet: bool,

    /// Say on standard error what happens, one JSON object per line
    #[arg(long)]
    json: bool,

    /// Name of the lock
    name: OsString,

    /// The command and its arguments, behind --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Takes the lock, runs the command, releases the lock.
///
/// # Errors
///
/// When the lock cannot be taken or the command not be started.
pub(crate) fn run(flags: &RunFlags) -> Result<Exit, Failure> {
    let plan = Plan::new(flags)?;
    let client = flags.cluster.client()?;
    serving::runtime()?.block_on(async {
        let result = plan.run(&client).await;
        client.close().await;
        result
    })
}

/// The flags, checked.
#[derive(Debug)]
struct Plan<'a> {
    flags: &'a RunFlags,
    rules: Rules,
    max_hold: Option<Duration>,
    report: Report,
}

impl<'a> Plan<'a> {
    fn new(flags: &'a RunFlags) -> Result<Self, Failure> {
        let ttl = flags.acquisition.ttl;
        let shares_group = std::io::stdin().is_terminal();
        if flags.kill_group && shares_group {
            return Err(Failure::usage(
                "--kill-group: a command on a terminal is in our own process group; add </dev/null",
            ));
        }
        let max_hold = flags.max_hold.or(flags.renew.then_some(MAX_HOLD));
        if let Some(max_hold) = max_hold.filter(|max_hold| *max_hold < ttl) {
            return Err(Failure::usage(format!(
                "--max-hold of {max_hold:?} is less than the --ttl of {ttl:?}: lower --ttl"
            )));
        }
        if flags.at_least.is_some_and(|at_least| at_least > ttl) {
            return Err(Failure::usage(
                "--at-least is more than --ttl, and the lock would end before: raise --ttl",
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
                shares_group,
            },
            max_hold,
            report: Report::new(manner, flags.name.to_string_lossy().into_owned()),
        })
    }

    async fn run(&self, client: &Redlock) -> Result<Exit, Failure> {
        let mut signals = Signals::take(!self.rules.shares_group)?;
        let guard = tokio::select! {
            taken = self.take(client) => match taken {
                Ok(guard) => guard,
                Err(failure) => return Err(self.report.failed(failure)),
            },
            ending = end_while_waiting(&mut signals) => return Ok(Exit::Code(ending.code())),
        };
        self.report.acquired(guard.validity());
        let mut child = match self.start(&guard) {
            Ok(child) => child,
            Err(failure) => {
                self.release(guard).await;
                return Err(self.report.failed(failure));
            }
        };
        self.report.started(child.id());
        let (finish, left) = self.supervise(&guard, &mut child, &mut signals).await;
        // What is left of the command is killed when the command itself would have been.
        let patience = left.saturating_sub(KILL_EARLY).min(self.rules.grace);
        self.finish(finish, patience, guard, &child, &mut signals)
            .await
    }

    async fn take(&self, client: &Redlock) -> Result<Guard, Failure> {
        let request = self.request(client);
        let tell = |error: &redlock_client::Error| self.report.waiting(&error.to_string());
        self.flags.acquisition.take(request, tell).await
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
                acquisition::unix_millis_at_end(guard.validity())
                    .to_string()
                    .into(),
            ),
            ("LOCKNODE_HELD", "1".into()),
        ];
        let has_group = !self.rules.shares_group;
        let command = &self.flags.command;
        Child::start(command, &variables, has_group, self.flags.quiet)
    }

    /// Releases the lock, unless something of the command is still there.
    async fn finish(
        &self,
        finish: Finish,
        patience: Duration,
        guard: Guard,
        child: &Child,
        signals: &mut Signals,
    ) -> Result<Exit, Failure> {
        let lost = Exit::Code(self.flags.lost_exit_code);
        let (ending, exit, patience) = match finish {
            Finish::Ended(ending) => {
                let is_cleared = self.flags.kill_group;
                let code = Exit::Code(ending.code());
                (ending, code, is_cleared.then_some(Duration::ZERO))
            }
            // What the command started may end in the same time as the command.
            Finish::Lost(ending) => (ending, lost, Some(patience)),
            Finish::Unkillable => {
                let _ = guard.leak();
                self.report
                    .kept("the command was killed and is still there");
                return Ok(lost);
            }
        };
        self.report.exited(ending);
        let is_gone = match patience {
            Some(patience) => child.clear_group(patience, signals).await,
            None => true,
        };
        if is_gone {
            self.release(guard).await;
        } else {
            let _ = guard.leak();
            self.report
                .kept("processes that the command started were killed and are still there");
        }
        Ok(exit)
    }

    async fn release(&self, guard: Guard) {
        let is_valid = guard.is_valid();
        let released = guard.release().await;
        self.report.released(&released);
        if is_valid && !released.is_settled() {
            self.report.kept("no majority of the nodes answered");
        }
    }
}

/// How long before the end the command is asked to end.
fn grace(given: Option<Duration>, ttl: Duration) -> Result<Duration, Failure> {
    let Some(grace) = given else {
        return Ok(GRACE.min(ttl / 3));
    };
    if grace >= ttl * 2 / 3 {
        return Err(Failure::usage(format!(
            "--grace of {grace:?} is not less than two thirds of the --ttl of {ttl:?}, when the lock is renewed: \
             lower --grace or raise --ttl"
        )));
    }
    Ok(grace)
}

/// Waits for a signal that ends us before there is a command.
async fn end_while_waiting(signals: &mut Signals) -> Ending {
    loop {
        match signals.next().await {
            Taken::Child | Taken::Signal(Signal::CONT) => {}
            Taken::Signal(Signal::TSTP) => supervision::stop_self(),
            Taken::Signal(signal) => {
                return Ending::Signal(u8::try_from(signal.as_raw()).unwrap_or(u8::MAX));
            }
        }
    }
}

/// `--max-hold` when only `--renew` is given: a job that hangs gives its lock back some day.
const MAX_HOLD: Duration = Duration::from_secs(3600);

/// Long enough for a program to end in order, short enough to leave most of the TTL for work.
const GRACE: Duration = Duration::from_secs(5);

/// Not in `sysexits.h`, so that nothing else means it.
const LOST: u8 = 79;

pub(crate) const LONG_ABOUT: &str = "\
Run a command while holding a lock.

Takes the lock on a majority of the nodes, runs the command (never through a shell) and releases
the lock when the command has ended. If somebody else holds the lock, the command is not run.

A lock lives for --ttl; with --renew it is renewed every third of that. If it cannot be renewed,
the command gets SIGTERM --grace before the lock ends, and SIGKILL when it ends: nobody else can
have the lock while the command runs. This does not hold while locknode itself is stopped or the
machine stands still; what must not be written twice even then needs a check where it is written.

HUP, INT, QUIT, TERM, USR1 and USR2 are passed on to the command; a second INT kills it. The
command has a process group of its own, to which all signals go, unless standard input is a
terminal: there it shares ours, and the terminal itself sends it INT and QUIT. If locknode is
killed, Linux kills the command too (but not what the command started); on other systems the
command goes on without a lock.";

pub(crate) const EXAMPLES: &str = "\
The command finds in its environment: LOCKNODE_NAME, LOCKNODE_TOKEN, LOCKNODE_VALID_UNTIL (when
the lock ends if it is not renewed, as of the start, in milliseconds since 1970) and
LOCKNODE_HELD=1.

With --json each line on standard error is an object with \"event\" (waiting, acquired, started,
renewed, lost, killed, exited, released, kept, failed) and \"name\". What the command itself writes
to standard error is between these lines.

Examples:
  export LOCKNODE_NODES=10.0.0.5:6379,10.0.0.6:6379,10.0.0.7:6379
  locknode run nightly-report -- /usr/local/bin/report --all
  locknode run --ttl 30s --renew --max-hold 2h backup -- backup.sh
  locknode run --wait 5m deploy -- sh -c 'make build && make install'
  locknode run --ttl 60s --at-least 50s minutely -- job     in the crontab of every machine

Exit codes: that of the command if it ran while the lock was valid, 128+N if it died of signal N;
75 somebody else holds the lock (or the code of -E; -E 1 is what flock does); 79 the lock was lost
while the command ran (or the code of --lost-exit-code); 69 no majority of the nodes answers;
126 the command cannot be executed, 127 it was not found; 64 wrong usage, 70 internal error.";

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
            (Some(1_999), 3_000, Some(1_999)),
            (Some(2_000), 3_000, None),
            (Some(9_000), 3_000, None),
        ] {
            let found = grace(given.map(ms), ms(ttl)).ok();
            assert_eq!(found, expected.map(ms), "{given:?} of {ttl}");
        }
    }
}
