//! When `locknode run` ends its command: the decisions, without clocks, processes or sockets.
//!
//! ```text
//!  now, validity of the lock --> Timeline::step --> pass a signal on, terminate, kill, finish
//!  lost, signal, child ended -->
//!
//!      start                            TERM          KILL
//!        |------- running -------|---- grace ----|
//!                                            validity ends
//! ```
//!
//! The validity is an argument of every step and is looked at again each time: a renewal moves the ends away, and a
//! timer that fires late cannot make a dead lock look alive. Timers only decide when the next step is.

use std::time::{Duration, Instant};

use rustix::process::Signal;

/// The rules for one command.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// How long before the end of the validity the command is asked to end.
    pub(super) grace: Duration,
    /// The command shares our process group, so that the terminal's signals reach it without us.
    pub(super) shares_group: bool,
}

/// How far one command is.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    rules: Rules,
    phase: Phase,
    /// When the first interrupt came.
    interrupted: Option<Instant>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Only time passed.
    Woke,
    /// The client says that the lock is lost or about to end.
    Lost,
    /// A signal for us.
    Signal(Signal),
    /// The command ended.
    Ended(Ending),
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
    /// Ask the command to end, because of that.
    Terminate(Why),
    /// End the command, because of that.
    Kill(Why),
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
}

/// The end of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// The command ended while the lock was valid.
    Ended(Ending),
    /// The lock was lost first, and the command ended because of that or too late.
    Lost(Ending),
    /// The command was killed and is still there; nobody may release its lock.
    Unkillable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Asked to end; killed at that time.
    Terminating {
        kill_at: Instant,
    },
    Killed {
        at: Instant,
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
        }
    }

    /// Takes what happened and says what to do. `validity` is what is left of it at `now`.
    pub(super) fn step(&mut self, now: Instant, validity: Duration, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Event::Ended(ending) = event {
            let is_lost = self.is_lost() || validity.is_zero();
            self.phase = Phase::Finished;
            actions.push(Action::Finish(match is_lost {
                true => Finish::Lost(ending),
                false => Finish::Ended(ending),
            }));
            return actions;
        }
        self.watch(now, validity, event == Event::Lost, &mut actions);
        if let Event::Signal(signal) = event {
            self.take_signal(now, signal, &mut actions);
        }
        actions
    }

    /// How long nothing needs to be decided if nothing happens.
    pub(super) fn sleep(&self, now: Instant, validity: Duration) -> Duration {
        let needed = match self.phase {
            Phase::Running => validity.saturating_sub(self.rules.grace.max(KILL_EARLY)),
            Phase::Terminating { kill_at } => kill_at
                .saturating_duration_since(now)
                .min(validity.saturating_sub(KILL_EARLY)),
            Phase::Killed { at, .. } => (at + PATIENCE).saturating_duration_since(now),
            Phase::Finished => Duration::ZERO,
        };
        needed.clamp(SLEEP_MIN, SLEEP_MAX)
    }

    /// Compares the time with the ends.
    fn watch(&mut self, now: Instant, validity: Duration, lost: bool, actions: &mut Vec<Action>) {
        let ends = validity <= KILL_EARLY;
        match self.phase {
            Phase::Running if ends => {
                self.kill(now, true, Why::RanOut, actions);
            }
            Phase::Running if lost || validity <= self.rules.grace => {
                // A renewal that comes now would be too late: the command has been told.
                self.phase = Phase::Terminating {
                    kill_at: now + (validity - KILL_EARLY),
                };
                let why = if lost { Why::Lost } else { Why::RunningOut };
                actions.push(Action::Terminate(why));
            }
            Phase::Terminating { .. } if ends => {
                self.kill(now, true, Why::RanOut, actions);
            }
            Phase::Terminating { kill_at } if now >= kill_at => {
                self.kill(now, true, Why::Stayed, actions);
            }
            Phase::Killed { at, is_lost } => {
                let is_over = is_lost || validity.is_zero();
                if is_over && now.saturating_duration_since(at) >= PATIENCE {
                    self.phase = Phase::Finished;
                    actions.push(Action::Finish(Finish::Unkillable));
                }
            }
            Phase::Running | Phase::Terminating { .. } | Phase::Finished => {}
        }
    }

    fn take_signal(&mut self, now: Instant, signal: Signal, actions: &mut Vec<Action>) {
        if matches!(self.phase, Phase::Killed { .. } | Phase::Finished) {
            return;
        }
        if signal == Signal::INT {
            let is_second = self.interrupted.is_some_and(|first| {
                !self.rules.shares_group
                    || now.saturating_duration_since(first) <= INTERRUPTS_APART_MAX
            });
            self.interrupted = Some(now);
            if is_second {
                let is_lost = self.is_lost();
                return self.kill(now, is_lost, Why::Interrupted, actions);
            }
        }
        let is_there_already =
            self.rules.shares_group && (signal == Signal::INT || signal == Signal::QUIT);
        if !is_there_already {
            actions.push(Action::Pass(signal));
        }
    }

    fn kill(&mut self, now: Instant, is_lost: bool, why: Why, actions: &mut Vec<Action>) {
        self.phase = Phase::Killed { at: now, is_lost };
        actions.push(Action::Kill(why));
    }

    const fn is_lost(&self) -> bool {
        matches!(
            self.phase,
            Phase::Terminating { .. } | Phase::Killed { is_lost: true, .. }
        )
    }
}

/// Shells add the number of the signal to this.
const SIGNAL_CODE_BASE: u8 = 128;

/// The kill comes this much before the end of the validity, for timers that fire a millisecond late and a process
/// that takes a moment to die.
pub(super) const KILL_EARLY: Duration = Duration::from_millis(10);

/// How long a killed process is waited for. Ending takes milliseconds; one that takes seconds hangs in the kernel.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// Two interrupts within this time are meant for us. Only on a terminal: there a program may use Ctrl-C for
/// something else than ending.
const INTERRUPTS_APART_MAX: Duration = Duration::from_secs(2);

/// Timers have milliseconds; shorter sleeps would be a busy loop.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// Timers stand still while the machine sleeps, the validity does not: after waking up, this is how long it takes
/// at most to see that.
const SLEEP_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds since the start, validity left, what happened, what to do.
    type Row<'a> = (u64, u64, Event, &'a [Action]);

    const GRACE_MS: u64 = 1000;

    fn check(name: &str, shares_group: bool, rows: &[Row<'_>]) {
        let start = Instant::now();
        let mut timeline = Timeline::new(Rules {
            grace: Duration::from_millis(GRACE_MS),
            shares_group,
        });
        for (at, validity, event, expected) in rows {
            let now = start + Duration::from_millis(*at);
            let actions = timeline.step(now, Duration::from_millis(*validity), *event);
            assert_eq!(actions, *expected, "{name}: at {at} {event:?}");
        }
    }

    #[test]
    fn a_command_that_ends_while_the_lock_is_valid_gives_its_own_code() {
        for (ending, code) in [
            (Ending::Code(0), 0),
            (Ending::Code(3), 3),
            (Ending::Code(255), 255),
            (Ending::Signal(9), 137),
            (Ending::Signal(15), 143),
        ] {
            let ended = &[Action::Finish(Finish::Ended(ending))];
            check("ends", false, &[(5, 2000, Event::Ended(ending), ended)]);
            assert_eq!(ending.code(), code);
        }
    }

    #[test]
    fn the_command_is_asked_to_end_a_grace_before_the_validity_ends_and_killed_at_its_end() {
        use Action::{Finish as Done, Kill, Terminate};
        let killed = Event::Ended(Ending::Signal(9));
        let lost = &[Done(Finish::Lost(Ending::Signal(9)))][..];
        for (name, rows) in [
            (
                "never renewed",
                &[
                    (0, 3000, Event::Woke, &[][..]),
                    (1999, 1001, Event::Woke, &[]),
                    (2000, 1000, Event::Woke, &[Terminate(Why::RunningOut)]),
                    (2989, 11, Event::Woke, &[]),
                    (2990, 10, Event::Woke, &[Kill(Why::RanOut)]),
                    (3001, 0, Event::Woke, &[]),
                    (3002, 0, killed, lost),
                ][..],
            ),
            (
                "renewed in time",
                &[
                    (0, 3000, Event::Woke, &[]),
                    (2000, 2999, Event::Woke, &[]),
                    (4000, 2999, Event::Woke, &[]),
                ],
            ),
            (
                "renewed too late",
                &[
                    (2000, 1000, Event::Woke, &[Terminate(Why::RunningOut)]),
                    (2100, 3000, Event::Woke, &[]),
                    (2989, 2111, Event::Woke, &[]),
                    (2990, 2110, Event::Woke, &[Kill(Why::Stayed)]),
                ],
            ),
            (
                "woken up too late",
                &[(9000, 0, Event::Woke, &[Kill(Why::RanOut)])],
            ),
            (
                "too late, and a signal comes first",
                &[(9000, 0, Event::Signal(Signal::TERM), &[Kill(Why::RanOut)])],
            ),
            (
                "stopped with us until too late",
                &[(9000, 0, Event::Signal(Signal::CONT), &[Kill(Why::RanOut)])],
            ),
            (
                "lost",
                &[
                    (100, 2900, Event::Lost, &[Terminate(Why::Lost)]),
                    (101, 2899, Event::Lost, &[]),
                    (2989, 11, Event::Woke, &[]),
                    (2990, 10, Event::Woke, &[Kill(Why::RanOut)]),
                ],
            ),
            (
                "lost, and nothing is left",
                &[(100, 0, Event::Lost, &[Kill(Why::RanOut)])],
            ),
        ] {
            check(name, false, rows);
            check(name, true, rows);
        }
    }

    #[test]
    fn a_command_that_ends_after_the_loss_counts_as_lost() {
        let done = Event::Ended(Ending::Code(0));
        let lost = &[Action::Finish(Finish::Lost(Ending::Code(0)))];
        check(
            "ends when asked",
            false,
            &[
                (100, 2900, Event::Lost, &[Action::Terminate(Why::Lost)]),
                (101, 2899, done, lost),
            ],
        );
        check(
            "ends unseen after the validity",
            false,
            &[(9000, 0, done, lost)],
        );
    }

    #[test]
    fn signals_are_passed_on_unless_the_terminal_does_it() {
        for (signal, is_terminals) in [
            (Signal::HUP, false),
            (Signal::INT, true),
            (Signal::QUIT, true),
            (Signal::TERM, false),
            (Signal::USR1, false),
            (Signal::USR2, false),
            (Signal::CONT, false),
        ] {
            let passed = &[Action::Pass(signal)][..];
            let event = Event::Signal(signal);
            check("own group", false, &[(5, 2000, event, passed)]);
            let here = if is_terminals { &[] } else { passed };
            check("shared group", true, &[(5, 2000, event, here)]);
        }
    }

    #[test]
    fn a_second_interrupt_kills_and_the_lock_is_not_lost_by_that() {
        let interrupt = Event::Signal(Signal::INT);
        let pass = &[Action::Pass(Signal::INT)][..];
        let kill = &[Action::Kill(Why::Interrupted)][..];
        let killed = Event::Ended(Ending::Signal(9));
        let ended = &[Action::Finish(Finish::Ended(Ending::Signal(9)))][..];
        check(
            "own group, far apart",
            false,
            &[
                (0, 9000, interrupt, pass),
                (8000, 9000, interrupt, kill),
                (8001, 9000, interrupt, &[]),
                (8002, 9000, Event::Signal(Signal::TERM), &[]),
                (8003, 9000, killed, ended),
            ],
        );
        check(
            "terminal, in a row",
            true,
            &[(0, 9000, interrupt, &[]), (2000, 9000, interrupt, kill)],
        );
        check(
            "terminal, far apart",
            true,
            &[
                (0, 9000, interrupt, &[]),
                (2001, 9000, interrupt, &[]),
                (4002, 9000, interrupt, &[]),
                (4003, 9000, interrupt, kill),
            ],
        );
        check(
            "while terminating",
            false,
            &[
                (
                    0,
                    1000,
                    interrupt,
                    &[
                        Action::Terminate(Why::RunningOut),
                        Action::Pass(Signal::INT),
                    ],
                ),
                (1, 999, interrupt, kill),
                (
                    2,
                    998,
                    killed,
                    &[Action::Finish(Finish::Lost(Ending::Signal(9)))],
                ),
            ],
        );
    }

    #[test]
    fn a_command_that_survives_the_kill_is_given_up_only_when_the_lock_is_over() {
        let interrupt = Event::Signal(Signal::INT);
        let over = &[Action::Finish(Finish::Unkillable)][..];
        check(
            "lost",
            false,
            &[
                (0, 0, Event::Woke, &[Action::Kill(Why::RanOut)]),
                (4999, 0, Event::Woke, &[]),
                (5000, 0, Event::Woke, over),
            ],
        );
        check(
            "interrupted",
            false,
            &[
                (0, 9000, interrupt, &[Action::Pass(Signal::INT)]),
                (1, 8999, interrupt, &[Action::Kill(Why::Interrupted)]),
                (6000, 3000, Event::Woke, &[]),
                (9000, 0, Event::Woke, over),
            ],
        );
    }

    #[test]
    fn it_sleeps_until_the_next_end_and_never_long() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut timeline = Timeline::new(Rules {
            grace: ms(GRACE_MS),
            shares_group: false,
        });
        for (validity, expected) in [(9000, 1000), (1500, 500), (1000, 1), (0, 1)] {
            assert_eq!(timeline.sleep(start, ms(validity)), ms(expected));
        }
        timeline.step(start, ms(900), Event::Woke);
        assert_eq!(timeline.sleep(start, ms(900)), ms(890));
        assert_eq!(timeline.sleep(start + ms(100), ms(3000)), ms(790));
        assert_eq!(timeline.sleep(start + ms(100), ms(30)), ms(20));
        timeline.step(start + ms(900), ms(0), Event::Woke);
        assert_eq!(timeline.sleep(start + ms(900), ms(0)), ms(1000));
        assert_eq!(timeline.sleep(start + ms(5400), ms(0)), ms(500));
    }
}
