//! Clocks that are set, run at another speed, or stand still.

use std::time::Duration;

use locknode_testkit::history::{Entry, Event};
use locknode_testkit::{
    Bug, ClientAction, Crash, Fault, Hook, LockAction, Scenario, ViolationKind, Who,
};

use crate::outcome::*;
use crate::script::*;

/// Client 0 gets nodes 0, 1 and 2 and writes all the time. Something happens to a clock, and after `wait` client 1 wants the
/// lock of nodes 2, 3 and 4.
fn held(ttl: Duration, fault: Fault, wait: Duration) -> Scenario {
    let lock: LockAction = lock(ttl).write_every(ms(50));
    let mut script = split()
        .act(s(1), 0, lock.clone().into())
        .on(Hook::Acquired(0), fault)
        .acts_on(Hook::Acquired(0), 1, wait, 1, lock);
    script.setup.max_ttl = s(10);
    script
}

#[test]
fn s17_node_wall_clock_jumps_forward() {
    let script = held(s(4), Fault::WallJump(Who::Node(2), 3_600_000), SOON);
    let it = safe(&script);
    it.happens(failed_for(1, "contended"), 1);
    breaks(&script.with(Bug::WallClock), ViolationKind::Exclusion);
}

/// The calendar is set while a node is down, and while it waits.
#[test]
fn s18_wall_clock_is_set_while_a_node_is_down() {
    let script = |down: i64, waits: i64| {
        split()
            .act(s(1), 0, lock(s(4)).into())
            .on(Hook::Acquired(0), Fault::Crash(2, Crash::PowerLossAll))
            .on(Hook::Down(2), Fault::WallJump(Who::Node(2), down))
            .after(Hook::Down(2), ms(1), Fault::Restart(2))
            .after(
                Hook::Started(2),
                ms(1),
                Fault::WallJump(Who::Node(2), waits),
            )
            .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)))
    };
    let even = safe(&script(0, 0)).serves_again(2);
    for (down, waits) in [
        (-3_600_000, 0),
        (3_600_000, 0),
        (0, 3_600_000),
        (0, -3_600_000),
    ] {
        let it = safe(&script(down, waits));
        assert_eq!(it.serves_again(2), even, "{down} {waits}");
        it.check(it.count(refused(2, 1, "LOADING")) > 0);
    }
    breaks(
        &script(0, 3_600_000).with(Bug::WallClock),
        ViolationKind::Exclusion,
    );
}

#[test]
fn s20_fast_node_clock() {
    // Within the drift that the holder allows for, client 1 comes as soon as the node lets it.
    let script = held(s(10), Fault::Rate(Who::Node(2), 9_900), ms(9_905));
    let it = safe(&script);
    it.check(it.window(1).from < it.window(0).from + s(10));
    assert!(it.window(1).from >= it.window(0).until);
    // Beyond it two hold the lock, and the fence tells them apart.
    let script = held(s(10), Fault::Rate(Who::Node(2), 50_000), ms(9_530));
    costs(&script, ViolationKind::Exclusion).assert_fenced();
}

#[test]
fn s21_slow_client_clock() {
    let script = held(s(10), Fault::Rate(Who::Client(0), -9_900), ms(10_001));
    let it = safe(&script);
    it.check(it.window(0).until.since(it.window(0).from) > ms(9_800));
    assert_eq!(it.windows(1).len(), 1);
    let script = held(s(10), Fault::Rate(Who::Client(0), -50_000), ms(10_001));
    costs(&script, ViolationKind::Exclusion).assert_fenced();
}

/// Time synchronisation speeds a node's clock up by as much as it may, and slows a client's down.
#[test]
fn s22_slew_storm() {
    let script = held(s(10), Fault::Slew(Who::Node(2), 83_333), ms(9_300));
    let it = safe(&script);
    // Client 1 tries again until the lock is over, and not a moment sooner: the other clock counts.
    it.check(
        it.windows(1)
            .first()
            .is_none_or(|second| it.window(0).until <= second.from),
    );
    breaks(&script.with(Bug::SlewedClock), ViolationKind::Exclusion);
    let it = safe(&held(
        s(10),
        Fault::Slew(Who::Client(0), -83_333),
        ms(10_001),
    ));
    it.check(it.window(0).until < it.window(1).from);
}

#[test]
fn s23_client_suspended() {
    let script = held(s(4), Fault::Suspend(Who::Client(0), s(8)), ms(4_010));
    let it = safe(&script);
    let (slept, woke) = (it.window(0), it.first(lost(0)));
    it.check(slept.until < it.window(1).from && it.window(1).from < woke);
    assert_eq!(
        it.count(|event| matches!(event, Event::Checked { client: 0, .. })),
        0,
        "it looks"
    );
    let sleepy = breaks(&script.with(Bug::SleepyClock), ViolationKind::Exclusion);
    assert!(sleepy.counters.of("write-fenced-off") > 0, "and writes");
    // A hypervisor that stops the whole machine is not noticed in it.
    let script = held(s(4), Fault::Freeze(Who::Client(0), s(5)), ms(4_010));
    costs(&script, ViolationKind::Exclusion).assert_fenced();
}

/// The client looks, stands still for longer than the TTL, and writes: no lock can help, a resource that checks tokens can.
#[test]
fn s24_pause_after_the_check() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .act(s(2), 0, write_now())
        .on(Hook::Checked(0), Fault::Pause(Who::Client(0), s(8)))
        .acts_on(
            Hook::Checked(0),
            1,
            ms(3_100),
            1,
            lock(s(4)).write_every(ms(100)),
        );
    let it = costs(&script, ViolationKind::Resource);
    assert!(
        !it.has(ViolationKind::Exclusion),
        "it does not believe in the lock any more"
    );
    let is_late = |event: &Event| {
        matches!(
            event,
            Event::Wrote {
                client: 0,
                is_accepted: false,
                fencing: Some(_),
                ..
            }
        )
    };
    it.happens(is_late, 1);
    assert!(it.first(is_late) > it.window(1).from);
    it.assert_fenced();
}

/// The hour of a daylight saving change and the second of a leap, everywhere: nothing whatever is different.
#[test]
fn s60_leap_smear_and_daylight_saving() {
    let script = |by: &[i64]| {
        let mut script = split()
            .act(s(1), 0, lock(s(4)).extend_every(s(1)).hold(s(6)).into())
            .act(s(2), 1, lock(s(4)).tries(30).into());
        for (step, by) in (0_u64..).zip(by) {
            let at = ms(1_500 + 700 * step);
            for member in 0..5 {
                script = script.at(at, Fault::WallJump(Who::Node(member), *by));
                script = script.at(at, Fault::WallJump(Who::Client(member % 3), -by));
            }
        }
        script
    };
    let without_faults = |outcome: &Outcome| -> Vec<Entry> {
        let entries = outcome.history.entries.iter();
        let entries = entries.filter(|entry| !matches!(entry.event, Event::Fault(_)));
        // Paces did not change, so what is said anew of a validity is what it was.
        let is_news = |entry: &&Entry| {
            !matches!(
                entry.event,
                Event::Validity {
                    is_extension: false,
                    ..
                }
            )
        };
        entries.filter(is_news).cloned().collect()
    };
    let (even, jumps) = (
        safe(&script(&[])),
        script(&[3_600_000, -3_600_000, 1_000, -1_000]),
    );
    even.check_eq(even.windows(1).len(), 1);
    assert_eq!(without_faults(&safe(&jumps)), without_faults(&even));
    breaks(&jumps.with(Bug::WallClock), ViolationKind::Exclusion);
}

fn write_now() -> ClientAction {
    ClientAction::Write {
        key: "k".into(),
        takes: ms(1),
    }
}
