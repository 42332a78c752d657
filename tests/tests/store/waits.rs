//! How long a node waits after a start, and why.

use std::time::Duration;

use locknode_engine::durable::{Durability, Machine, MachineTime, OpenErrorKind, StartReason};
use locknode_tests::faulty_disk::{keep_all, keep_none};

use crate::rig::{MAX_TTL, Rig, SECOND, seconds, wait_of};

/// A node that granted a lock of `ttl` and crashed `after` it.
fn crashed(ttl: Duration, after: Duration) -> Rig {
    let mut rig = Rig::started();
    rig.grant(b"a", ttl);
    rig.perform().unwrap();
    rig.advance(after);
    rig.crash(&mut keep_none);
    rig
}

fn check(rig: &mut Rig, reason: StartReason, wait: Duration) {
    let start = rig.expect_start(reason, wait);
    assert_eq!(start.durable.ttl_in_use.is_zero(), wait.is_zero());
}

/// [G4] [S5]
#[test]
fn a_first_start_waits_for_nothing_and_is_the_first_incarnation() {
    let mut rig = Rig::new();
    rig.settings.is_first_start = true;
    let start = rig.start();
    assert_eq!(start.reason, StartReason::FirstStart);
    assert_eq!((start.incarnation, rig.wait()), (1, Duration::ZERO));
    rig.crash(&mut keep_none);
    let error = rig.try_start().unwrap_err();
    assert_eq!(error.kind(), OpenErrorKind::StateExists);
    assert!(error.to_string().contains("first start"), "{error}");
    rig.settings.is_first_start = false;
    check(&mut rig, StartReason::Crash, Duration::ZERO);
}

/// [G3]
#[test]
fn an_empty_directory_is_no_knowledge() {
    let mut rig = Rig::new();
    check(&mut rig, StartReason::Empty, wait_of(MAX_TTL));
    rig.kill();
    let mut lost = crashed(seconds(5), seconds(1));
    lost.lose_disk();
    check(&mut lost, StartReason::Empty, wait_of(MAX_TTL));
}

/// [G6]
#[test]
fn a_crash_within_the_boot_waits_for_the_horizon() {
    for (ttl, after, want) in [
        (10, seconds(1), seconds(9)),
        // A lock is alive at exactly its deadline.
        (10, seconds(10), Duration::from_nanos(1)),
        (10, seconds(10) + Duration::from_nanos(1), Duration::ZERO),
        (10, seconds(11), Duration::ZERO),
        (60, Duration::ZERO, seconds(60)),
    ] {
        let mut rig = crashed(seconds(ttl), after);
        check(&mut rig, StartReason::Crash, want);
    }
}

/// [G6] The later of the two clocks counts.
#[test]
fn the_slower_clock_decides_when_the_horizon_has_passed() {
    for (boottime, raw) in [(8, 3), (3, 8)] {
        let mut rig = crashed(seconds(10), Duration::ZERO);
        rig.advance_unevenly(seconds(boottime), seconds(raw));
        check(&mut rig, StartReason::Crash, seconds(7));
    }
}

/// [G6] Whichever is first: the horizon with its slack may be later than any grant.
#[test]
fn the_wait_is_never_longer_than_the_ttl_in_use_asks_for() {
    let mut rig = Rig::started();
    rig.grant(b"a", seconds(10));
    rig.goal.horizon = rig.goal.horizon.saturating_add(seconds(30));
    rig.perform().unwrap();
    rig.crash(&mut keep_none);
    check(&mut rig, StartReason::Crash, wait_of(seconds(10)));
}

/// [G5]
#[test]
fn another_boot_waits_for_the_ttl_in_use() {
    let mut rig = crashed(seconds(10), seconds(1));
    rig.reboot();
    check(&mut rig, StartReason::Reboot, wait_of(seconds(10)));
    let mut idle = Rig::started();
    idle.crash(&mut keep_none);
    idle.reboot();
    check(&mut idle, StartReason::Reboot, Duration::ZERO);
}

/// [G7]
#[test]
fn clocks_that_cannot_be_compared_leave_the_horizon_unused() {
    type Change = fn(&mut Rig);
    let others: [(&str, Change); 6] = [
        ("another boot, long ago", |rig| {
            rig.reboot();
            rig.advance(seconds(24 * 3600));
        }),
        ("another machine and boot", |rig| {
            rig.reboot();
            rig.machine.machine_id = [1; 16];
        }),
        ("machine", |rig| rig.machine.machine_id = [1; 16]),
        ("time namespace", |rig| rig.machine.time_namespace = 1),
        ("boot", |rig| rig.machine.boot_id = [1; 16]),
        ("no boot id", |rig| rig.machine.boot_id = [0; 16]),
    ];
    for (name, change) in others {
        let mut rig = crashed(seconds(10), seconds(1));
        change(&mut rig);
        let start = rig.start();
        let want = (StartReason::Reboot, wait_of(seconds(10)));
        assert_eq!((start.reason, rig.wait()), want, "{name}");
    }
    for (boottime, raw) in [(11, 0), (0, 11), (11, 11)] {
        let mut rig = crashed(seconds(10), seconds(10));
        rig.clocks.boottime_ns -= boottime * SECOND;
        rig.clocks.raw_ns -= raw * SECOND;
        check(&mut rig, StartReason::ClockMismatch, wait_of(MAX_TTL));
    }
}

/// [G7] The number of a namespace that has ended is that of the next one, with other clocks.
#[test]
fn a_time_namespace_is_the_same_only_when_it_is_the_initial_one() {
    for (namespace, is_comparable) in [
        (Machine::INITIAL_TIME_NAMESPACE, true),
        (0, true),
        (Machine::INITIAL_TIME_NAMESPACE + 1, false),
        (4_026_532_177, false),
        (1, false),
    ] {
        let mut rig = Rig::new();
        rig.machine.time_namespace = namespace;
        rig.first_start();
        rig.grant(b"short", seconds(10));
        rig.put(b"long", Some(100_000));
        rig.perform().unwrap();
        // The next namespace of that number shows later clocks: nothing has passed.
        rig.kill();
        rig.clocks.boottime_ns += 1000 * SECOND;
        rig.clocks.raw_ns += 1000 * SECOND;
        rig.try_start().unwrap();
        let wait = if is_comparable {
            Duration::ZERO
        } else {
            wait_of(seconds(10))
        };
        assert_eq!(rig.wait(), wait, "{namespace}");
        assert_eq!(rig.holds(b"long"), !is_comparable, "{namespace}");
    }
}

/// [G7]
#[test]
fn a_machine_without_a_boot_id_is_never_the_same_boot() {
    let mut rig = Rig::new();
    rig.machine.boot_id = [0; 16];
    rig.first_start();
    rig.grant(b"a", seconds(10));
    rig.perform().unwrap();
    rig.advance(seconds(9));
    rig.crash(&mut keep_none);
    check(&mut rig, StartReason::Reboot, wait_of(seconds(10)));
}

/// [G5] S07
#[test]
fn a_lowered_max_ttl_shortens_no_wait() {
    let mut rig = crashed(seconds(60), seconds(1));
    rig.settings.max_ttl = seconds(10);
    rig.reboot();
    check(&mut rig, StartReason::Reboot, wait_of(seconds(60)));
    rig.crash(&mut keep_none);
    rig.reboot();
    check(&mut rig, StartReason::Reboot, wait_of(seconds(60)));
}

/// [G9]
#[test]
fn a_crash_in_quarantine_carries_the_wait_on() {
    let mut rig = Rig::new();
    let start = rig.start();
    assert_eq!(start.reason, StartReason::Empty);
    let mut left = wait_of(MAX_TTL);
    for _ in 0..4 {
        rig.advance(seconds(10));
        left -= seconds(10);
        rig.crash(&mut keep_none);
        // Other settings shorten nothing.
        rig.settings.max_ttl = seconds(1);
        check(&mut rig, StartReason::Crash, left);
    }
    rig.crash(&mut keep_none);
    rig.reboot();
    check(&mut rig, StartReason::Reboot, wait_of(MAX_TTL));
    rig.wait_out();
    rig.relax();
    rig.perform().unwrap();
    rig.crash(&mut keep_none);
    rig.reboot();
    check(&mut rig, StartReason::Reboot, Duration::ZERO);
}

/// [G9]
#[test]
fn a_stop_in_quarantine_is_no_clean_stop() {
    let mut rig = crashed(seconds(10), seconds(1));
    check(&mut rig, StartReason::Crash, seconds(9));
    rig.advance(seconds(4));
    rig.stop().unwrap();
    check(&mut rig, StartReason::Crash, seconds(5));
    rig.advance(seconds(5) + Duration::from_nanos(1));
    rig.stop().unwrap();
    check(&mut rig, StartReason::CleanStop, Duration::ZERO);
}

/// [L1] [G9]
#[test]
fn with_everything_on_the_log_no_crash_needs_a_wait_but_for_what_was_before() {
    let mut rig = crashed(seconds(10), seconds(1));
    rig.settings.durability = Durability::Always;
    rig.reboot();
    check(&mut rig, StartReason::Reboot, wait_of(seconds(10)));
    rig.wait_out();
    rig.relax();
    rig.put(b"x", Some(20_000));
    rig.perform().unwrap();
    rig.crash(&mut keep_none);
    rig.settings.durability = Durability::Long;
    check(&mut rig, StartReason::Logged, Duration::ZERO);
    assert!(rig.holds(b"x"));
    rig.grant(b"y", seconds(7));
    rig.perform().unwrap();
    rig.crash(&mut keep_none);
    rig.settings.durability = Durability::Always;
    check(&mut rig, StartReason::Crash, seconds(7));
}

/// [G12]
#[test]
fn the_wall_clock_shortens_no_wait() {
    for wall_ns in [0, 4_000_000_000 * SECOND] {
        let mut rig = crashed(seconds(10), seconds(1));
        rig.wall_ns = wall_ns;
        check(&mut rig, StartReason::Crash, seconds(9));
        rig.crash(&mut keep_none);
        rig.reboot();
        rig.wall_ns = wall_ns;
        check(&mut rig, StartReason::Reboot, wait_of(seconds(10)));
    }
}

/// [S3] [F4]
#[test]
fn a_damaged_slot_means_the_longer_wait_and_a_jump_of_the_ceiling() {
    for (slot, max_ttl, want) in [(0, 60, 60), (1, 60, 60), (0, 5, 10), (1, 5, 10)] {
        for offset in (0..500).step_by(3) {
            let mut rig = crashed(seconds(10), seconds(20));
            rig.settings.max_ttl = seconds(max_ttl);
            let acked = rig.ceiling_acked;
            rig.disk.flip("state", slot * 4096 + offset);
            let start = rig.start();
            let want = (StartReason::DamagedState, wait_of(seconds(want)));
            assert_eq!((start.reason, rig.wait()), want, "{slot} {offset}");
            assert!(start.fence_base >= acked + 8 * (1 << 20));
            // Both slots are whole again.
            rig.crash(&mut keep_none);
            assert_eq!(rig.start().reason, StartReason::Crash);
        }
    }
}

/// [F2] [F4]
#[test]
fn counters_begin_at_the_ceiling_or_at_the_wall_clock() {
    let mut rig = Rig::new();
    rig.first_start();
    let base = rig.ceiling_acked;
    assert_eq!(base, 1_800_000_000 << 20);
    rig.goal.ceiling = base + (1 << 30);
    rig.perform().unwrap();
    rig.crash(&mut keep_none);
    rig.wall_ns = 0;
    let start = rig.start();
    assert_eq!(start.fence_base, base + (1 << 30));
    rig.crash(&mut keep_none);
    rig.wall_ns = 2_000_000_000 * SECOND;
    assert_eq!(rig.start().fence_base, 2_000_000_000 << 20);
    rig.goal.ceiling = (1 << 53) - 1;
    rig.perform().unwrap();
    rig.kill();
    let start = rig.try_start().unwrap();
    assert_eq!(start.fence_base, (1 << 53) - 1);
}

/// [G11] S09 An old copy of the directory: the marker that it holds belongs to another incarnation, but nothing tells.
#[test]
fn a_copy_of_a_stopped_node_starts_like_the_node_itself() {
    let mut rig = Rig::started();
    rig.grant(b"a", seconds(10));
    rig.perform().unwrap();
    rig.advance(seconds(1));
    rig.stop().unwrap();
    let image = rig.disk.snapshot();
    rig.start();
    rig.kill();
    rig.disk.restore(&image);
    let start = rig.try_start().unwrap();
    assert_eq!(start.reason, StartReason::CleanStop);
    assert_eq!(rig.remaining_ms(1, b"a"), Some(9_000));
    rig.kill();
    rig.disk.restore(&image);
    rig.machine.boot_id[0] += 1;
    rig.clocks = MachineTime::default();
    let start = rig.try_start().unwrap();
    assert_eq!(start.reason, StartReason::CleanStop);
    assert_eq!(rig.remaining_ms(1, b"a"), Some(9_000));
}

/// [G3] A start that ended before it had begun left no state.
#[test]
fn a_first_start_that_was_cut_short_is_no_state() {
    for operations in 0..20 {
        let mut rig = Rig::new();
        rig.disk.stop(operations);
        let is_started = rig.try_start().is_ok();
        rig.store = None;
        rig.disk.crash(&mut keep_all);
        let start = rig.start();
        assert_eq!(rig.wait(), wait_of(MAX_TTL), "{operations}");
        let is_known = matches!(start.reason, StartReason::Crash | StartReason::DamagedState);
        assert!(is_known || !is_started, "{operations}");
    }
}
