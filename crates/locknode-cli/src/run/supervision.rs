//! The time in which the command runs: events go to the [`Timeline`], and its actions to the command.

use std::time::{Duration, Instant};

use redlock_client::Guard;
use rustix::process::{Signal, getpid, kill_process};

use super::Plan;
use super::child::Child;
use super::signals::{Signals, Taken};
use super::tenure::Tenure;
use super::timeline::{Action, Event, Finish, Timeline, Why};

impl Plan<'_> {
    /// Lets the command run until it has ended or is given up. Also returns what is left of the validity then.
    pub(super) async fn supervise(
        &self,
        guard: &Guard,
        child: &mut Child,
        signals: &mut Signals,
    ) -> (Finish, Duration) {
        let mut timeline = Timeline::new(self.rules.clone());
        let started = Instant::now();
        let mut tenure = Tenure::new(started, guard.validity());
        let mut lost = std::pin::pin!(guard.lost());
        let mut loss = None;
        loop {
            let now = Instant::now();
            let sleep = timeline.sleep(now, tenure.left(now));
            let event = tokio::select! {
                biased;
                error = &mut lost, if loss.is_none() => {
                    tenure.lose();
                    // That the validity ends soon is known here already.
                    let event = if error.is_lost() { Event::Lost } else { Event::Woke };
                    loss = Some(error);
                    event
                }
                taken = signals.next() => match taken {
                    Taken::Child => child.ending().map_or(Event::Woke, Event::Ended),
                    Taken::Signal(Signal::TSTP) => {
                        stop(child);
                        Event::Woke
                    }
                    Taken::Signal(signal) => Event::Signal(signal),
                },
                () = tokio::time::sleep(sleep) => Event::Woke,
            };
            let now = Instant::now();
            if tenure.look(now, guard.validity()) {
                self.report.renewed(tenure.left(now));
            }
            let left = tenure.left(now);
            for action in timeline.step(now, left, event) {
                match action {
                    Action::Pass(signal) => child.send(signal),
                    Action::Terminate(why) => {
                        child.send(Signal::TERM);
                        // A command that was stopped could not react otherwise.
                        child.send(Signal::CONT);
                        let detail = match (&loss, why) {
                            (Some(error), Why::Lost) => error.to_string(),
                            _ => self.why_it_runs_out(started.elapsed() + left),
                        };
                        self.report.terminating(why, &detail, left);
                    }
                    Action::Kill(why) => {
                        child.send(Signal::KILL);
                        self.report.killing(why, "");
                    }
                    Action::Finish(finish) => return (finish, left),
                }
            }
        }
    }

    /// Why a lock ends that will have been held for so long then.
    fn why_it_runs_out(&self, held: Duration) -> String {
        let ttl = self.flags.acquisition.ttl;
        match self.max_hold {
            None => format!(
                "the command takes longer than the TTL of {ttl:?}; raise --ttl, or renew the lock with --renew"
            ),
            // The validity is shorter than the TTL by the allowance for clocks that disagree.
            Some(max_hold) if held + ttl / 10 >= max_hold => format!(
                "the command takes longer than the --max-hold of {max_hold:?}; raise --max-hold"
            ),
            Some(_) => "it was not renewed in time, because no majority of the nodes answers; \
                look at them with locknode status"
                .to_owned(),
        }
    }
}

/// Ctrl-Z: stops the command and then us, for the command must not run while nobody watches the lock. The SIGCONT that
/// wakes us is passed on like other signals, unless the lock ended meanwhile. It is not sent from here: with several
/// threads, this one may get ahead before the process stops.
fn stop(child: &Child) {
    // Not SIGTSTP, which a program may ignore.
    child.send(Signal::STOP);
    stop_self();
}

pub(super) fn stop_self() {
    let _ = kill_process(getpid(), Signal::STOP);
}
