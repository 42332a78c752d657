//! Nodes that crash, restart and stop in order.

use locknode_testkit::{Bug, Crash, Fault, GuardMode, Hook, Scenario, ViolationKind};

use crate::outcome::*;
use crate::script::*;

/// Client 0 gets nodes 0, 1 and 2. Node 2 crashes and is back at once, and client 1 wants the lock of nodes 2, 3 and 4: then,
/// and when node 2 serves again.
pub(crate) fn amnesia(how: Crash) -> Scenario {
    split()
        .act(s(1), 0, lock(s(4)).write_every(ms(100)).into())
        .on(Hook::Acquired(0), Fault::Crash(2, how))
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(
            Hook::Started(2),
            1,
            SOON,
            1,
            lock(s(4)).write_every(ms(100)),
        )
        .acts_on(
            Hook::Serving(2),
            1,
            ms(1),
            1,
            lock(s(4)).write_every(ms(100)),
        )
}

#[test]
fn s01_crash_restart_amnesia() {
    for guard in [GuardMode::Memory, GuardMode::Long] {
        for how in [Crash::Kill, Crash::PowerLoss, Crash::PowerLossAll] {
            let script = amnesia(how).guarded(guard);
            let it = safe(&script);
            it.check(it.count(refused(2, 1, "LOADING")) > 0);
            assert!(it.last(failed_for(1, "no-quorum")) < it.serves_again(2));
            let (first, second) = (it.window(0), it.window(1));
            assert!(first.until <= second.from, "{first:?} {second:?}");
            assert!(second.from.since(it.serves_again(2)) < ms(50));
            breaks(&script.with(Bug::QuarantineOff), ViolationKind::Exclusion);
        }
    }
    let it = costs(
        &amnesia(Crash::Kill).guarded(GuardMode::Off),
        ViolationKind::Exclusion,
    );
    assert_eq!(it.count(refused(2, 1, "LOADING")), 0);
    assert!(
        it.has(ViolationKind::Resource),
        "nobody tells late writes apart"
    );
}

#[test]
fn s02_quarantine_short_by_epsilon() {
    for (guard, how) in [
        (GuardMode::Memory, Crash::Kill),
        (GuardMode::Long, Crash::Kill),
        (GuardMode::Long, Crash::PowerLossAll),
    ] {
        let script = amnesia(how).guarded(guard);
        let it = safe(&script);
        let over = it.ends(2, 0);
        assert!(it.serves_again(2) >= over, "{over}\n{}", it.story());
        assert!(it.window(1).from >= over);
        // A tenth less is too little, although the holder stops a little sooner than it has to.
        let short = breaks(&script.with(Bug::QuarantineShort), ViolationKind::Exclusion);
        short.check(short.serves_again(2) < over);
        assert!(
            short.count(refused(2, 1, "LOADING")) > 0,
            "there was a quarantine"
        );
    }
}

#[test]
fn s03_grant_then_crash_before_the_reply() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Granted(2), Fault::Crash(2, Crash::Kill))
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(Hook::Serving(2), 1, ms(1), 1, lock(s(4)));
    let it = safe(&script);
    assert_eq!(it.count(granted(2, 0)), 1);
    assert_eq!(it.count(answered(2, 0)), 0, "the reply never left");
    it.happens(failed_for(0, "no-quorum"), 1);
    assert!(it.windows(0).is_empty());
    // What the others granted is released, and the orphan died with the process.
    it.check_eq((it.count(freed(0)), it.count(freed(1))), (1, 1));
    assert_eq!(it.count(granted(2, 1)), 1);
    assert!(it.window(1).from.since(it.serves_again(2)) < ms(50));
}

#[test]
fn s04_reply_leaves_then_crash() {
    let script = split()
        .at(NOW, Fault::Delay(link(0, 2), ms(20)))
        .act(s(1), 0, lock(s(4)).into())
        .after(
            Hook::Granted(2),
            ms(10),
            Fault::Crash(2, Crash::PowerLossAll),
        )
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(Hook::Acquired(0), 1, SOON, 1, lock(s(4)))
        .acts_on(Hook::Serving(2), 1, ms(1), 1, lock(s(4)));
    let it = safe(&script);
    let (left, gone) = (it.first(answered(2, 0)), it.first(down(2)));
    it.check(left < gone && gone < it.first(acquired(0)));
    it.check(it.count(refused(2, 1, "LOADING")) > 0);
    assert!(it.window(1).from >= it.ends(2, 0));
    breaks(&script.with(Bug::QuarantineOff), ViolationKind::Exclusion);
}

#[test]
fn s06_majority_crash() {
    let script = Scenario::new(setup())
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Acquired(0), Fault::Crash(0, Crash::PowerLoss))
        .on(Hook::Acquired(0), Fault::Crash(1, Crash::PowerLoss))
        .on(Hook::Acquired(0), Fault::Crash(2, Crash::PowerLoss))
        .after(Hook::Down(2), ms(10), Fault::Restart(0))
        .after(Hook::Down(2), ms(10), Fault::Restart(1))
        .after(Hook::Down(2), ms(10), Fault::Restart(2))
        .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)).tries(60));
    let it = safe(&script);
    let wait = it
        .window(1)
        .from
        .since(it.first(started(2, true, "start-after-reboot")));
    // The longest TTL and its drift, then a client that comes back within half a second and has its nodes.
    assert!(
        wait >= ms(4_042) && wait < ms(4_042 + 800),
        "{wait:?}\n{}",
        it.story()
    );
    assert!(it.window(0).until <= it.window(1).from);
    breaks(&script.with(Bug::QuarantineOff), ViolationKind::Exclusion);
}

#[test]
fn s07_max_ttl_lowered_across_a_restart() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Acquired(0), Fault::MaxTtl(2, s(1)))
        .on(Hook::Acquired(0), Fault::Crash(2, Crash::PowerLossAll))
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(Hook::Started(2), 1, ms(1_100), 1, lock(s(1)))
        .acts_on(Hook::Serving(2), 1, ms(1), 1, lock(s(1)));
    let it = safe(&script);
    it.check(it.count(refused(2, 1, "LOADING")) > 0);
    assert!(
        it.serves_again(2) >= it.ends(2, 0),
        "the wait is that of the TTL in use"
    );
    assert_eq!(it.windows(1).len(), 1);
    let hasty = breaks(&script.with(Bug::WaitFromConfig), ViolationKind::Exclusion);
    assert!(hasty.serves_again(2).since(hasty.first(down(2))) < ms(1_100));
}

#[test]
fn s08_ttl_above_the_longest_is_refused_or_on_the_log() {
    let script = split()
        .act(s(1), 0, lock(s(15)).into())
        .after(
            Hook::Granted(2),
            ms(5),
            Fault::Crash(2, Crash::PowerLossAll),
        )
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(Hook::Serving(2), 1, ms(1), 1, lock(s(4)));
    let it = safe(&script);
    it.check_eq(it.windows(0).len(), 1);
    it.check_eq(it.counters.of("lock-restored"), 1);
    assert!(
        it.serves_again(2) < it.window(0).until,
        "long before the lock ends"
    );
    it.happens(failed_for(1, "contended"), 1);
    let it = safe(&script.guarded(GuardMode::Always));
    assert_eq!((it.windows(0).len(), it.windows(1).len()), (1, 0));
    it.happens(failed_for(1, "contended"), 1);
    // A crash while the record is on its way to the disk: the reply waits for it, or the lock is forgotten.
    for guard in [GuardMode::Long, GuardMode::Always] {
        let mut slow = script.guarded(guard);
        slow.setup.sync = (ms(20), ms(20));
        let it = safe(&slow);
        it.check_eq((it.count(granted(2, 0)), it.count(answered(2, 0))), (1, 0));
        it.check(it.windows(0).is_empty());
        breaks(&slow.with(Bug::LogNotAwaited), ViolationKind::Exclusion);
    }
    // Without a directory nobody could remember it.
    let mut script = split()
        .act(s(1), 0, lock(s(15)).into())
        .act(s(2), 1, lock(s(4)).into());
    script.setup.guard = GuardMode::Memory;
    let it = safe(&script);
    it.happens(failed_for(0, "no-quorum"), 1);
    let grants = (0..3).map(|node| it.count(granted(node, 0)));
    assert_eq!(grants.sum::<usize>(), 0, "no node takes it: {}", it.story());
    assert_eq!(it.windows(1).len(), 1);
}

#[test]
fn s09_stale_clean_marker() {
    let script = split()
        .at(ms(100), Fault::Crash(2, Crash::CleanStop))
        .breaks_on(Hook::Down(2), 1, ms(10), Fault::Restart(2))
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Acquired(0), Fault::Crash(2, Crash::Kill))
        .breaks_on(Hook::Down(2), 2, ms(1), Fault::Restart(2))
        .acts_on(Hook::Started(2), 2, SOON, 1, lock(s(4)));
    let it = safe(&script);
    it.happens(started(2, false, "start-after-clean-stop"), 1);
    it.happens(started(2, true, "start-after-crash"), 1);
    it.check(it.count(refused(2, 1, "LOADING")) > 0);
    let stale = breaks(&script.with(Bug::MarkerKept), ViolationKind::Exclusion);
    assert_eq!(stale.count(started(2, false, "start-after-clean-stop")), 2);
}

#[test]
fn s10_clean_stop_then_long_downtime() {
    // The lock outlives the stop, or ends while the node is down.
    for (away, is_held) in [(ms(500), true), (s(6), false)] {
        let script = split()
            .act(s(1), 0, lock(s(4)).into())
            .on(Hook::Acquired(0), Fault::Crash(2, Crash::CleanStop))
            .after(Hook::Down(2), away, Fault::Restart(2))
            .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)));
        let it = safe(&script);
        let back = it.first(started(2, false, "start-after-clean-stop"));
        assert_eq!(it.serves_again(2), back, "no wait\n{}", it.story());
        let restored = it.counters.of("lock-restored");
        it.check_eq(restored, u64::from(is_held));
        if is_held {
            it.happens(failed_for(1, "contended"), 1)
        } else {
            it.check(it.window(1).from.since(back) < ms(200))
        }
        // Without a directory there is nothing to restore, so the node waits; without a guard it votes twice.
        let it = safe(&script.guarded(GuardMode::Memory));
        assert!(it.serves_again(2) > it.first(down(2)) + away + s(4));
        let broken = damage(&script.guarded(GuardMode::Off));
        assert_eq!(
            broken.contains(&ViolationKind::Exclusion),
            is_held,
            "{broken:?}"
        );
    }
}

#[test]
fn s11_machine_restored_from_a_snapshot() {
    let script = split()
        .at(ms(100), Fault::Crash(2, Crash::CleanStop))
        .breaks_on(Hook::Down(2), 1, ms(10), Fault::Restart(2))
        .act(s(8), 0, lock(s(4)).write_every(ms(100)).into())
        .after(Hook::Acquired(0), ms(300), Fault::Crash(2, Crash::Rollback))
        .breaks_on(Hook::Down(2), 2, ms(1), Fault::Restart(2))
        .acts_on(
            Hook::Started(2),
            2,
            SOON,
            1,
            lock(s(4)).write_every(ms(100)),
        );
    let it = costs(&script, ViolationKind::Exclusion);
    // The marker of the past is there again, and nothing in the machine can tell.
    it.happens(started(2, false, "start-after-clean-stop"), 2);
    it.assert_fenced();
}

#[test]
fn s59_disk_in_another_machine() {
    let script = amnesia(Crash::Moved);
    let mut reasons = Vec::new();
    for seed in 1..=12 {
        // Machines that have been running for longer and for less long.
        let it = safe(&script.seeded(seed));
        it.check(it.count(refused(2, 1, "LOADING")) > 0);
        it.check(it.serves_again(2) >= it.ends(2, 0));
        reasons.push(it.counters.of("start-after-reboot"));
    }
    assert!(
        reasons.iter().all(|count| *count == 1),
        "not the same boot: {reasons:?}"
    );
    breaks(&script.with(Bug::QuarantineOff), ViolationKind::Exclusion);
}
