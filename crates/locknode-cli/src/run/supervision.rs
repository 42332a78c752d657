//! The time in which the command runs: events go to the [`Timeline`], and its actions to the command. The thread that
//! does this waits for nothing else: it writes no line and sends nothing to a node.

use std::time::Duration;

use redlock_client::{Clock as _, Guard, SystemClock, Time};
use rustix::process::Signal;

use super::Plan;
use super::child::Child;
use super::tenure::Tenure;
use super::timeline::{Action, Event, Finish, Timeline, Why};
use crate::acquisition::Validity;
use crate::signals::{Signals, stop_self};

/// The command, while it runs.
struct Watch<'a> {
    plan: &'a Plan<'a>,
    child: &'a mut Child,
    timeline: Timeline,
    clock: &'a SystemClock,
    tenure: Tenure,
    started: Time,
    /// Everything of the command was stopped by us.
    is_stopped: bool,
    /// Why the client gave the lock up.
    loss: Option<redlock_client::Error>,
}

impl Plan<'_> {
    /// Lets the command run until it ends or is abandoned.
    pub(super) async fn supervise(
        &self,
        guard: &Guard,
        child: &mut Child,
        signals: &mut Signals,
    ) -> Finish {
        let clock = SystemClock::start();
        let started = clock.now();
        let mut watch = Watch {
            plan: self,
            child,
            timeline: Timeline::new(self.rules.clone()),
            clock: &clock,
            tenure: Tenure::new(started, guard.validity()),
            started,
            is_stopped: false,
            loss: None,
        };
        let mut lost = std::pin::pin!(guard.lost());
        loop {
            let sleep = watch.sleep(clock.now());
            let mut events = Vec::new();
            let mut signal = None;
            tokio::select! {
                biased;
                error = &mut lost, if watch.loss.is_none() => events.extend(watch.lose(error)),
                taken = signals.next() => signal = taken.signal(),
                () = tokio::time::sleep(sleep) => {}
            }
            let now = clock.now();
            if watch.tenure.look(now, guard.validity()) {
                self.report.renewed(watch.validity());
            }
            // The deadline before any signal: a command that was stopped past it must not go on.
            events.extend(watch.look(now));
            events.push(Event::Woke);
            for event in events {
                if let Some(finish) = watch.step(now, event) {
                    return finish;
                }
            }
            if let Some(finish) = watch.take(now, signal) {
                return finish;
            }
        }
    }

    /// Why the lock ends after it was held for `held`.
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
            Some(_) => self.renewals.why_not(),
        }
    }
}

impl Watch<'_> {
    /// What is left now, which is less than when the step began.
    fn validity(&self) -> Validity {
        Validity::read(|| self.tenure.left(self.clock.now()))
    }

    fn sleep(&mut self, now: Time) -> Duration {
        let sleep = self.timeline.sleep(now, self.tenure.left(now));
        let witness = self.child.witness().sleep();
        witness.map_or(sleep, |witness| witness.min(sleep))
    }

    fn lose(&mut self, error: redlock_client::Error) -> Option<Event> {
        self.tenure.lose();
        // That the validity ends soon is known here already.
        let event = error.is_lost().then_some(Event::Lost);
        self.loss = Some(error);
        event
    }

    /// What there is of the command.
    fn look(&mut self, now: Time) -> Option<Event> {
        let sight = self.child.look(now);
        let leaves = !sight.is_gone;
        match sight.ending {
            Some(ending) => Some(Event::Ended { ending, leaves }),
            None => sight.is_gone.then_some(Event::Gone),
        }
    }

    /// Takes a signal that came to us, and those whose way has become known.
    fn take(&mut self, now: Time, signal: Option<Signal>) -> Option<Finish> {
        let has_terminal = self.plan.rules.has_terminal;
        match signal {
            Some(Signal::CONT) => {
                self.child.witness().go_on();
                if std::mem::take(&mut self.is_stopped) || !has_terminal {
                    self.child.go_on();
                }
            }
            Some(signal) if has_terminal => self.child.witness().doubt(now, signal),
            Some(signal) => return self.judge(now, signal, false),
            None => {}
        }
        while let Some((signal, is_shared)) = self.child.witness().resolve(now) {
            if let Some(finish) = self.judge(now, signal, is_shared) {
                return Some(finish);
            }
        }
        None
    }

    fn judge(&mut self, now: Time, signal: Signal, is_shared: bool) -> Option<Finish> {
        if signal == Signal::TSTP {
            self.stop(is_shared);
            return None;
        }
        self.step(now, Event::Signal { signal, is_shared })
    }

    fn step(&mut self, now: Time, event: Event) -> Option<Finish> {
        let left = self.tenure.left(now);
        for action in self.timeline.step(now, left, event) {
            match action {
                Action::Pass(signal) => self.child.pass(signal),
                Action::Ask => self.child.ask(),
                Action::Tell(why) => {
                    let detail = match (&self.loss, why) {
                        (Some(error), Why::Lost) => error.to_string(),
                        _ => self.plan.why_it_runs_out(now.since(self.started) + left),
                    };
                    let rules = &self.plan.rules;
                    let time = left.saturating_sub(rules.lead).min(rules.grace);
                    let validity = self.validity();
                    self.plan.report.terminating(&detail, validity, time);
                }
                Action::Kill(why) => {
                    let refusals = self.child.kill();
                    self.plan.report.killing(why, &refusals);
                }
                Action::KillAgain => drop(self.child.kill()),
                Action::Finish(finish) => return Some(finish),
            }
        }
        None
    }

    /// Ctrl-Z: stops the command and then us, for the command must not run while nobody watches the lock. On a
    /// terminal the command got the signal too, and stops in its own way. When we go on, the command does, unless the
    /// lock ended meanwhile. It is not woken from here: with several threads, this one may get ahead before the process
    /// stops.
    fn stop(&mut self, is_shared: bool) {
        if !is_shared {
            self.child.stop();
            self.is_stopped = true;
        }
        stop_self();
    }
}
