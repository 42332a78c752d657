//! When `locknode run` ends its command: the decisions, without clocks, processes or sockets.
//!
//! ```text
//!  now, validity of the lock --> Timeline::step --> pass a signal on, ask, kill, finish
//!  lost, signal, command ended, nothing left -->
//!
//!      start                            TERM          KILL     validity ends
//!        |------- running -------|---- grace ----|---- lead ----|
//! ```
//!
//! A command is the process that was started and everything that descends from it. It is over when nothing of it is
//! left, unless it ended by itself: then what it left behind runs on.
//!
//! The validity is an argument of every step and is looked at again each time: a renewal moves the ends away, and a
//! timer that fires late cannot make a dead lock look alive. Timers only decide when the next step is.

use std::time::Duration;

use redlock_client::Time;
use rustix::process::Signal;

use crate::signals::SIGNAL_CODE_BASE;

/// The rules for one command.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// How long the command has to end once it was asked to.
    pub(super) grace: Duration,
    /// How long before the end of the validity everything is killed.
    pub(super) lead: Duration,
    /// What a command leaves running when it ends by itself is killed.
    pub(super) kills_rest: bool,
    /// There is a terminal: a program there may use Ctrl-C for something else than ending.
    pub(super) has_terminal: bool,
}

/// How far one command is.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    rules: Rules,
    phase: Phase,
    /// When the first interrupt came.
    interrupted: Option<Time>,
    /// A signal was passed on that ends most programs.
    is_signalled: bool,
    /// How the command itself ended, while something of it is left.
    ending: Option<Ending>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Only time passed.
    Woke,
    /// The client says that the lock is lost or about to end.
    Lost,
    /// A signal for us; `is_shared` if the command's process group got it too.
    Signal { signal: Signal, is_shared: bool },
    /// The command itself ended; whether something that it started is left.
    Ended { ending: Ending, leaves: bool },
    /// Nothing of the command is left.
    Gone,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Code(u8),
    /// Died of a signal, by number.
    Signal(u8),
}

/// What to do, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Pass a signal on.
    Pass(Signal),
    /// Ask everything of the command to end.
    Ask,
    /// Say that the command is being ended, and why.
    Tell(Why),
    /// Kill everything of the command, because of that.
    Kill(Why),
    /// Kill what is there still.
    KillAgain,
    /// Nothing more will happen.
    Finish(Finish),
}

/// Why a command is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The lock was not renewed, and its validity ends within the grace.
    RunningOut,
    /// The client says that the lock is lost.
    Lost,
    /// The validity has ended.
    RanOut,
    /// The command did not end within the grace.
    Stayed,
    /// A second interrupt came.
    Interrupted,
    /// It is what a command left running.
    Left,
}

/// The end of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// The command ended while the lock was valid.
    Ended(Ending),
    /// The lock was lost first, and the command ended because of that or too late.
    Lost(Ending),
    /// The command was killed and something of it is still there; nobody may release its lock.
    Unkillable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Asked to end; killed at that time.
    Terminating {
        kill_at: Time,
        is_lost: bool,
    },
    Killed {
        at: Time,
        is_lost: bool,
    },
    Finished,
}

impl Ending {
    /// The exit code that a shell would show.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => SIGNAL_CODE_BASE.saturating_add(signal),
        }
    }
}

impl Timeline {
    pub(super) const fn new(rules: Rules) -> Self {
        Self {
            rules,
            phase: Phase::Running,
            interrupted: None,
            is_signalled: false,
            ending: None,
        }
    }

    /// Takes what happened and says what to do. `validity` is what is left of it at `now`.
    pub(super) fn step(&mut self, now: Time, validity: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Ended { ending, leaves } => {
                self.ending = Some(ending);
                if leaves {
                    self.take_rest(now, validity, ending, &mut actions);
                } else {
                    self.finish(validity, ending, &mut actions);
                }
            }
            Event::Gone => {
                if let Some(ending) = self.ending {
                    self.finish(validity, ending, &mut actions);
                }
            }
            Event::Woke | Event::Lost => {
                self.watch(now, validity, event == Event::Lost, &mut actions);
            }
            Event::Signal { signal, is_shared } => {
                self.watch(now, validity, false, &mut actions);
                self.take_signal(now, signal, is_shared, &mut actions);
            }
        }
        actions
    }

    /// How long nothing needs to be decided if nothing happens.
    pub(super) fn sleep(&self, now: Time, validity: Duration) -> Duration {
        let Rules { grace, lead, .. } = self.rules;
        let needed = match self.phase {
            Phase::Running => validity.saturating_sub(grace + lead),
            Phase::Terminating { kill_at, .. } => {
                kill_at.since(now).min(validity.saturating_sub(lead))
            }
            // Sooner at first: most of what was just started while all was killed is found then.
            Phase::Killed { at, .. } => (now.since(at) / 4).clamp(KILL_AGAIN_MIN, KILL_AGAIN_MAX),
            Phase::Finished => Duration::ZERO,
        };
        needed.clamp(SLEEP_MIN, SLEEP_MAX)
    }

    /// Compares the time with the ends.
    fn watch(&mut self, now: Time, validity: Duration, lost: bool, actions: &mut Vec<Action>) {
        let Rules { grace, lead, .. } = self.rules;
        let ends = validity <= lead;
        let kill_at = now + validity.saturating_sub(lead);
        match self.phase {
            Phase::Running | Phase::Terminating { .. } if ends => {
                self.kill(now, true, Why::RanOut, actions);
            }
            Phase::Running if lost || validity <= grace + lead => {
                // A renewal that comes now would be too late: the command has its SIGTERM.
                self.phase = Phase::Terminating {
                    kill_at: kill_at.min(now + grace),
                    is_lost: true,
                };
                let why = if lost { Why::Lost } else { Why::RunningOut };
                actions.extend([Action::Ask, Action::Tell(why)]);
            }
            Phase::Terminating { kill_at, is_lost } if now >= kill_at => {
                self.kill(now, is_lost, Why::Stayed, actions);
            }
            Phase::Terminating {
                kill_at,
                is_lost: false,
            } if lost => {
                self.phase = Phase::Terminating {
                    kill_at,
                    is_lost: true,
                };
                actions.push(Action::Tell(Why::Lost));
            }
            Phase::Killed { at, is_lost } => {
                let is_over = is_lost || validity.is_zero();
                if is_over && now.since(at) >= PATIENCE {
                    self.phase = Phase::Finished;
                    actions.push(Action::Finish(Finish::Unkillable));
                } else {
                    actions.push(Action::KillAgain);
                }
            }
            Phase::Running | Phase::Terminating { .. } | Phase::Finished => {}
        }
    }

    fn take_signal(
        &mut self,
        now: Time,
        signal: Signal,
        is_shared: bool,
        actions: &mut Vec<Action>,
    ) {
        if matches!(self.phase, Phase::Killed { .. } | Phase::Finished) {
            return;
        }
        if signal == Signal::INT {
            let is_second = self.interrupted.is_some_and(|first| {
                !self.rules.has_terminal || now.since(first) <= INTERRUPTS_APART_MAX
            });
            self.interrupted = Some(now);
            if is_second {
                let is_lost = self.is_lost();
                return self.kill(now, is_lost, Why::Interrupted, actions);
            }
        }
        if signal == Signal::TERM {
            if self.phase == Phase::Running {
                self.phase = Phase::Terminating {
                    kill_at: now + self.rules.grace,
                    is_lost: false,
                };
            }
            return actions.push(Action::Ask);
        }
        self.is_signalled |= ENDS.contains(&signal);
        if !is_shared {
            actions.push(Action::Pass(signal));
        }
    }

    /// The command itself has ended, and something that it started has not.
    fn take_rest(
        &mut self,
        now: Time,
        validity: Duration,
        ending: Ending,
        actions: &mut Vec<Action>,
    ) {
        match self.phase {
            Phase::Running if self.is_signalled => {
                self.phase = Phase::Terminating {
                    kill_at: now + self.rules.grace,
                    is_lost: false,
                };
                actions.push(Action::Ask);
            }
            Phase::Running if self.rules.kills_rest => {
                self.kill(now, validity.is_zero(), Why::Left, actions);
            }
            Phase::Running => self.finish(validity, ending, actions),
            Phase::Terminating { .. } | Phase::Killed { .. } | Phase::Finished => {}
        }
    }

    fn finish(&mut self, validity: Duration, ending: Ending, actions: &mut Vec<Action>) {
        let is_lost = self.is_lost() || validity.is_zero();
        self.phase = Phase::Finished;
        actions.push(Action::Finish(if is_lost {
            Finish::Lost(ending)
        } else {
            Finish::Ended(ending)
        }));
    }

    fn kill(&mut self, now: Time, is_lost: bool, why: Why, actions: &mut Vec<Action>) {
        self.phase = Phase::Killed { at: now, is_lost };
        actions.push(Action::Kill(why));
    }

    const fn is_lost(&self) -> bool {
        match self.phase {
            Phase::Terminating { is_lost, .. } | Phase::Killed { is_lost, .. } => is_lost,
            Phase::Running | Phase::Finished => false,
        }
    }
}

/// How long before the end of the validity everything is killed: a tenth of the TTL, for a machine so loaded that the
/// watching thread is woken late and finding all processes takes a while; a second is late enough for any TTL.
pub(super) fn lead(ttl: Duration) -> Duration {
    (ttl / 10).min(LEAD_MAX)
}

const LEAD_MAX: Duration = Duration::from_secs(1);

/// What ends a program that does nothing about it. SIGTERM is more: a request to end.
const ENDS: [Signal; 3] = [Signal::HUP, Signal::INT, Signal::QUIT];

/// How long a killed process is waited for. Ending takes milliseconds; one that takes seconds hangs in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often what is still there is killed again.
const KILL_AGAIN_MIN: Duration = Duration::from_millis(2);
const KILL_AGAIN_MAX: Duration = Duration::from_millis(250);

/// Two interrupts within this time are meant for us. Only on a terminal: there a program may use Ctrl-C for
/// something else than ending.
const INTERRUPTS_APART_MAX: Duration = Duration::from_secs(2);

/// Timers have milliseconds; shorter sleeps would be a busy loop.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// Timers stand still while the machine sleeps, the validity does not: after waking up, this is how long it takes
/// at most to see that.
const SLEEP_MAX: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;
