//! The decisions, row by row.

use super::*;

/// Milliseconds since the start, validity left, what happened, what to do.
type Row<'a> = (u64, u64, Event, &'a [Action]);

const GRACE_MS: u64 = 1000;
const LEAD_MS: u64 = 100;

fn at(millis: u64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn rules(has_terminal: bool) -> Rules {
    Rules {
        grace: Duration::from_millis(GRACE_MS),
        lead: Duration::from_millis(LEAD_MS),
        kills_rest: false,
        has_terminal,
    }
}

fn check_with(name: &str, rules: Rules, rows: &[Row<'_>]) {
    let mut timeline = Timeline::new(rules);
    for (millis, validity, event, expected) in rows {
        let actions = timeline.step(at(*millis), ms(*validity), *event);
        assert_eq!(actions, *expected, "{name}: at {millis} {event:?}");
    }
}

fn check(name: &str, rows: &[Row<'_>]) {
    check_with(name, rules(false), rows);
    check_with(name, rules(true), rows);
}

const fn alone(signal: Signal) -> Event {
    Event::Signal {
        signal,
        is_shared: false,
    }
}

const fn ended(ending: Ending) -> Event {
    Event::Ended {
        ending,
        leaves: false,
    }
}

const fn left(ending: Ending) -> Event {
    Event::Ended {
        ending,
        leaves: true,
    }
}

const DONE: Ending = Ending::Code(0);
const KILLED: Ending = Ending::Signal(9);
const RUNNING_OUT: &[Action] = &[Action::Ask, Action::Tell(Why::RunningOut)];
const LOST: &[Action] = &[Action::Ask, Action::Tell(Why::Lost)];
const RAN_OUT: &[Action] = &[Action::Kill(Why::RanOut)];
const STAYED: &[Action] = &[Action::Kill(Why::Stayed)];
const INTERRUPTED: &[Action] = &[Action::Kill(Why::Interrupted)];
const AGAIN: &[Action] = &[Action::KillAgain];
const LOST_DONE: &[Action] = &[Action::Finish(Finish::Lost(DONE))];
const LOST_KILLED: &[Action] = &[Action::Finish(Finish::Lost(KILLED))];
const ENDED_DONE: &[Action] = &[Action::Finish(Finish::Ended(DONE))];
const ENDED_KILLED: &[Action] = &[Action::Finish(Finish::Ended(KILLED))];

#[test]
fn a_command_that_ends_while_the_lock_is_valid_gives_its_own_code() {
    for (ending, code) in [
        (Ending::Code(0), 0),
        (Ending::Code(3), 3),
        (Ending::Code(255), 255),
        (Ending::Signal(9), 137),
        (Ending::Signal(15), 143),
    ] {
        let finished = &[Action::Finish(Finish::Ended(ending))];
        check("ends", &[(5, 2000, ended(ending), finished)]);
        assert_eq!(ending.code(), code);
    }
}

#[test]
fn the_command_is_asked_a_grace_before_it_is_killed_a_lead_before_the_validity_ends() {
    for (name, rows) in [
        (
            "never renewed",
            &[
                (0, 3000, Event::Woke, &[][..]),
                (1899, 1101, Event::Woke, &[]),
                (1900, 1100, Event::Woke, RUNNING_OUT),
                (2899, 101, Event::Woke, &[]),
                (2900, 100, Event::Woke, RAN_OUT),
                (3001, 0, Event::Woke, AGAIN),
                (3002, 0, ended(KILLED), LOST_KILLED),
            ][..],
        ),
        (
            "renewed in time",
            &[
                (0, 3000, Event::Woke, &[]),
                (1899, 2999, Event::Woke, &[]),
                (3800, 2999, Event::Woke, &[]),
            ],
        ),
        (
            "renewed too late",
            &[
                (1900, 1100, Event::Woke, RUNNING_OUT),
                (2100, 3000, Event::Woke, &[]),
                (2899, 2201, Event::Woke, &[]),
                (2900, 2200, Event::Woke, STAYED),
            ],
        ),
        ("woken too late", &[(9000, 0, Event::Woke, RAN_OUT)]),
        (
            "too late, and a signal comes first",
            &[(9000, 0, alone(Signal::TERM), RAN_OUT)],
        ),
        (
            "lost",
            &[
                (100, 2900, Event::Lost, LOST),
                (101, 2899, Event::Lost, &[]),
                (1099, 1901, Event::Woke, &[]),
                (1100, 1900, Event::Woke, STAYED),
            ],
        ),
        (
            "lost near the end",
            &[
                (100, 500, Event::Lost, LOST),
                (499, 101, Event::Woke, &[]),
                (500, 100, Event::Woke, RAN_OUT),
            ],
        ),
        (
            "lost, and nothing is left",
            &[(100, 0, Event::Lost, RAN_OUT)],
        ),
    ] {
        check(name, rows);
    }
}

#[test]
fn a_command_that_ends_after_the_loss_counts_as_lost() {
    check(
        "ends when asked",
        &[
            (100, 2900, Event::Lost, LOST),
            (101, 2899, ended(DONE), LOST_DONE),
        ],
    );
    check("ends unseen", &[(9000, 0, ended(DONE), LOST_DONE)]);
}

#[test]
fn a_stop_asks_all_waits_for_all_kills_all_and_is_no_loss() {
    let ask = &[Action::Ask][..];
    for (name, rows) in [
        (
            "all end",
            &[
                (0, 9000, alone(Signal::TERM), ask),
                (1, 8999, left(DONE), &[][..]),
                (900, 8100, Event::Woke, &[]),
                (901, 8099, Event::Gone, ENDED_DONE),
            ][..],
        ),
        (
            "the rest stays",
            &[
                (0, 9000, alone(Signal::TERM), ask),
                (1, 8999, left(DONE), &[]),
                (999, 8001, Event::Woke, &[]),
                (1000, 8000, Event::Woke, STAYED),
                (1001, 7999, Event::Woke, AGAIN),
                (1002, 7998, Event::Gone, ENDED_DONE),
            ],
        ),
        (
            "the command stays",
            &[
                (0, 9000, alone(Signal::TERM), ask),
                (500, 8500, alone(Signal::TERM), ask),
                (1000, 8000, Event::Woke, STAYED),
                (1001, 7999, left(KILLED), &[]),
                (1002, 7998, Event::Gone, ENDED_KILLED),
            ],
        ),
        (
            "lost meanwhile",
            &[
                (0, 9000, alone(Signal::TERM), ask),
                (1, 8999, Event::Lost, &[Action::Tell(Why::Lost)]),
                (2, 8998, ended(DONE), LOST_DONE),
            ],
        ),
        (
            "the lock ends first",
            &[
                (0, 600, alone(Signal::TERM), RUNNING_OUT_THEN_ASK),
                (1, 599, left(DONE), &[]),
                (500, 100, Event::Woke, RAN_OUT),
                (501, 99, Event::Gone, LOST_DONE),
            ],
        ),
    ] {
        check(name, rows);
    }
}

/// The time is looked at before the signal.
const RUNNING_OUT_THEN_ASK: &[Action] = &[Action::Ask, Action::Tell(Why::RunningOut), Action::Ask];

#[test]
fn what_a_command_left_is_asked_after_a_signal_left_alone_otherwise_or_killed_on_demand() {
    for signal in [Signal::HUP, Signal::INT, Signal::QUIT] {
        for is_shared in [false, true] {
            let passed = &[Action::Pass(signal)][..];
            let event = Event::Signal { signal, is_shared };
            check(
                "signalled",
                &[
                    (0, 9000, event, if is_shared { &[] } else { passed }),
                    (100, 8900, left(DONE), &[Action::Ask]),
                    (1099, 7901, Event::Woke, &[]),
                    (1100, 7900, Event::Woke, STAYED),
                    (1101, 7899, Event::Gone, ENDED_DONE),
                ],
            );
        }
    }
    check("by itself", &[(100, 8900, left(DONE), ENDED_DONE)]);
    let usr = alone(Signal::USR1);
    check(
        "by itself after a signal that means something else",
        &[
            (0, 9000, usr, &[Action::Pass(Signal::USR1)]),
            (100, 8900, left(DONE), ENDED_DONE),
        ],
    );
    let kills_rest = Rules {
        kills_rest: true,
        ..rules(false)
    };
    check_with(
        "on demand",
        kills_rest,
        &[
            (100, 8900, left(DONE), &[Action::Kill(Why::Left)]),
            (101, 8899, Event::Gone, ENDED_DONE),
        ],
    );
}

#[test]
fn signals_are_passed_on_unless_the_command_got_them() {
    for signal in [
        Signal::HUP,
        Signal::INT,
        Signal::QUIT,
        Signal::USR1,
        Signal::USR2,
    ] {
        let passed = &[Action::Pass(signal)];
        check("alone", &[(5, 2000, alone(signal), passed)]);
        let is_shared = true;
        let shared = Event::Signal { signal, is_shared };
        check("shared", &[(5, 2000, shared, &[])]);
    }
}

#[test]
fn a_second_interrupt_kills_and_the_lock_is_not_lost_by_that() {
    let interrupt = alone(Signal::INT);
    let pass = &[Action::Pass(Signal::INT)][..];
    check_with(
        "far apart",
        rules(false),
        &[
            (0, 9000, interrupt, pass),
            (8000, 9000, interrupt, INTERRUPTED),
            (8001, 9000, interrupt, AGAIN),
            (8002, 9000, alone(Signal::TERM), AGAIN),
            (8003, 9000, ended(KILLED), ENDED_KILLED),
        ],
    );
    check_with(
        "terminal, in a row",
        rules(true),
        &[
            (0, 9000, interrupt, pass),
            (2000, 9000, interrupt, INTERRUPTED),
        ],
    );
    check_with(
        "terminal, far apart",
        rules(true),
        &[
            (0, 9000, interrupt, pass),
            (2001, 9000, interrupt, pass),
            (4002, 9000, interrupt, pass),
            (4003, 9000, interrupt, INTERRUPTED),
        ],
    );
    check(
        "while the lock runs out",
        &[
            (0, 1100, Event::Woke, RUNNING_OUT),
            (1, 1099, interrupt, pass),
            (2, 1098, interrupt, INTERRUPTED),
            (3, 1097, ended(KILLED), LOST_KILLED),
        ],
    );
}

#[test]
fn a_command_that_survives_the_kill_is_given_up_only_when_the_lock_is_over() {
    let interrupt = alone(Signal::INT);
    let over = &[Action::Finish(Finish::Unkillable)][..];
    check(
        "lost",
        &[
            (0, 0, Event::Woke, RAN_OUT),
            (4999, 0, Event::Woke, AGAIN),
            (5000, 0, Event::Woke, over),
        ],
    );
    check(
        "interrupted",
        &[
            (0, 9000, interrupt, &[Action::Pass(Signal::INT)]),
            (1, 8999, interrupt, INTERRUPTED),
            (6000, 3000, Event::Woke, AGAIN),
            (9000, 0, Event::Woke, over),
        ],
    );
}

#[test]
fn it_sleeps_until_the_next_end_and_never_long() {
    let mut timeline = Timeline::new(rules(false));
    for (validity, expected) in [(9000, 250), (1300, 200), (1100, 1), (0, 1)] {
        assert_eq!(timeline.sleep(at(0), ms(validity)), ms(expected));
    }
    timeline.step(at(0), ms(300), Event::Woke);
    assert_eq!(timeline.sleep(at(0), ms(300)), ms(200));
    assert_eq!(timeline.sleep(at(100), ms(3000)), ms(100));
    assert_eq!(timeline.sleep(at(100), ms(130)), ms(30));
    timeline.step(at(250), ms(0), Event::Woke);
    for (millis, expected) in [(250, 2), (330, 20), (9000, 250)] {
        assert_eq!(timeline.sleep(at(millis), ms(0)), ms(expected));
    }
}

#[test]
fn the_kill_leaves_a_tenth_of_the_ttl_and_a_second_at_most() {
    for (ttl, expected) in [(300, 30), (2000, 200), (10_000, 1000), (3_600_000, 1000)] {
        assert_eq!(lead(ms(ttl)), ms(expected));
    }
}
