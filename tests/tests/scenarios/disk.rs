//! Disks that are lost, torn, broken or full.

use locknode_testkit::history::Event;
use locknode_testkit::{
    Bug, Crash, DiskFault, Fault, GuardMode, Hook, LockAction, Report, Scenario, Violation,
    ViolationKind, Who,
};

use crate::outcome::*;
use crate::script::*;

#[test]
fn s13_disk_lost() {
    let script = split()
        .act(s(5), 0, lock(s(4)).into())
        .on(Hook::Acquired(0), Fault::Crash(2, Crash::DiskLost))
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)))
        .acts_on(Hook::Serving(2), 1, ms(1), 1, lock(s(4)));
    let it = safe(&script);
    let wait = it.between(started(2, true, "start-on-empty-disk"), |event| {
        matches!(event, Event::Acquired { client: 1, .. })
    });
    assert!(wait >= ms(4_042), "the full wait: {wait:?}");
    it.check(it.count(refused(2, 1, "LOADING")) > 0);
    assert!(it.fences().is_sorted_by(|a, b| a < b), "{:?}", it.fences());
    breaks(&script.with(Bug::QuarantineOff), ViolationKind::Exclusion);
}

/// A disk is lost and the wall clock is an hour behind: the one thing that fencing tokens rest on. Node 2 was started once
/// more after it had granted, so that its counters are above the others'.
#[test]
fn s13_disk_lost_while_the_wall_clock_is_behind() {
    let script = |by| {
        split()
            .act(ms(10), 0, lock(s(2)).hold(ms(20)).into())
            .at(ms(100), Fault::Crash(2, Crash::CleanStop))
            .breaks_on(Hook::Down(2), 1, ms(10), Fault::Restart(2))
            .act(s(5), 0, lock(s(2)).hold(ms(100)).into())
            .at(s(6), Fault::WallJump(Who::Node(2), by))
            .at(s(7), Fault::Crash(2, Crash::DiskLost))
            .breaks_on(Hook::Down(2), 2, ms(1), Fault::Restart(2))
            .acts_on(Hook::Serving(2), 2, SOON, 1, lock(s(2)))
    };
    let it = costs(&script(-3_600_000), ViolationKind::FencingOrder);
    assert!(
        !it.has(ViolationKind::Exclusion),
        "the wait does not look at the calendar"
    );
    let it = safe(&script(-1_000));
    assert!(
        !it.has(ViolationKind::FencingOrder),
        "a second is no harm: {:?}",
        it.fences()
    );
    it.check_eq(it.fences().len(), 3);
}

/// The machine loses power in the middle of a write of the state, at any place of it.
#[test]
fn s14_torn_state_write() {
    let script = |after| {
        let mut script = split()
            .act(s(1), 0, lock(s(4)).into())
            .after(
                Hook::Granted(2),
                ms(after),
                Fault::Crash(2, Crash::TornWrite),
            )
            .after(Hook::Down(2), ms(1), Fault::Restart(2))
            .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)))
            .acts_on(Hook::Serving(2), 1, ms(1), 1, lock(s(4)));
        script.setup.sync = (ms(20), ms(20));
        script
    };
    let (mut damaged, mut whole) = (0, 0);
    for seed in 1..=20 {
        for after in [5, 25] {
            let script = script(after).seeded(seed);
            let it = safe(&script);
            assert_eq!(it.windows(1).len(), 1, "seed {seed}: {}", it.story());
            assert!(it.fences().is_sorted_by(|a, b| a < b), "{:?}", it.fences());
            if it.windows(0).is_empty() {
                assert_eq!(
                    it.count(answered(2, 0)),
                    0,
                    "what is not durable is not told"
                );
            }
            damaged += it.counters.of("start-with-damaged-state");
            whole += it.counters.of("start-after-reboot");
        }
    }
    assert!(damaged > 0 && whole > 0, "{damaged} damaged, {whole} whole");
    // A reply that does not wait for its state is forgotten in some of these crashes.
    let is_caught = |seed: &u64| {
        let it = play(&script(5).seeded(*seed).with(Bug::StateNotAwaited));
        assert!(
            it.has(ViolationKind::NodeDurability),
            "seed {seed}: {}",
            it.story()
        );
        it.has(ViolationKind::Exclusion)
    };
    let caught: Vec<u64> = (1..=40).filter(is_caught).collect();
    assert!(caught.len() >= 3, "{caught:?}");
}

/// A sync fails once. Nothing is granted any more until the node is started again, and nothing that was not synced is told.
#[test]
fn s15_fsync_error() {
    let script = split()
        .at(ms(500), Fault::Disk(2, DiskFault::SyncError))
        .act(s(1), 0, lock(s(4)).into())
        .act(s(2), 0, lock(s(4)).into())
        .at(s(3), Fault::Crash(2, Crash::PowerLossAll))
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)))
        .acts_on(Hook::Serving(2), 1, s(2), 1, lock(s(4)));
    let it = safe(&script);
    it.happens(answered(2, 0), 0);
    it.check_eq(it.counters.of("reply-lost-to-disk"), 1);
    assert_eq!(
        it.count(refused(2, 0, "MISCONF")),
        1,
        "no second sync is tried"
    );
    it.happens(failed_for(0, "no-quorum"), 2);
    assert!(
        it.count(freed(2)) > 0,
        "releases are served: {}",
        it.story()
    );
    assert_eq!(
        it.windows(1).len(),
        1,
        "a restart puts it right: {}",
        it.story()
    );
    let hasty = breaks(&script.with(Bug::StateNotAwaited), ViolationKind::Exclusion);
    assert!(hasty.has(ViolationKind::NodeDurability));
}

/// The log finds no room: grants that need it are refused, releases and locks that ride on the guard go on.
#[test]
fn s16_disk_full() {
    let long = "k".repeat(600);
    let mut script = split()
        .at(ms(100), Fault::Disk(2, DiskFault::Full))
        .at(s(10), Fault::Disk(2, DiskFault::Room));
    for step in 0..10 {
        script = script.act(
            ms(500 + step * 900),
            0,
            LockAction::new(&long, s(2)).hold(ms(20)).into(),
        );
    }
    script = script.act(ms(10_500), 0, lock(s(2)).hold(ms(20)).into());
    let it = safe(&script.guarded(GuardMode::Always));
    assert!(
        it.counters.of("refused-by-failed-disk") > 0,
        "{:?}",
        it.counters
    );
    assert!(
        it.count(failed_for(0, "no-quorum")) > 0,
        "{:?}",
        it.counters
    );
    let room =
        it.first(|event| matches!(event, Event::Fault(text) if &**text == "disk node 2 room"));
    it.check(it.last(failed(0)) < room);
    assert!(
        it.last(acquired(0)).since(room) < ms(600),
        "half a second later: {}",
        it.story()
    );
    let freed = it.count(freed(2));
    assert_eq!(freed, it.count(granted(2, 0)), "every lock was let go");
    let it = safe(&script);
    assert_eq!(it.count(acquired(0)), 11, "{:?}", it.counters);
    assert_eq!(it.counters.of("refused-by-failed-disk"), 0);
}

fn text(lines: &str) -> Scenario {
    Scenario::parse(&format!("locknode-scenario 1\n{lines}")).expect("a scenario")
}

/// Whether each of some worlds of a script keeps its promises, and how many of them do not with a mistake.
fn safe_but_for(script: &Scenario, seeds: u64, bug: Bug) -> usize {
    let mut broken = 0;
    for seed in 1..=seeds {
        let mut script = script.clone();
        script.setup.seed = seed;
        Report::of(&script).assert_safe();
        script.setup.bug = Some(bug);
        let report = Report::of(&script);
        let is_meant = |it: &Violation| {
            matches!(
                it.kind,
                ViolationKind::NodeDurability | ViolationKind::Stuck
            )
        };
        broken += usize::from(report.violations().iter().any(is_meant));
    }
    broken
}

const READ_DURING_A_SYNC: &str = "guard always\nsync 20ms 20ms\nrun 5s\n\
    at 1s client 0 lock a ttl 4s tries 1 hold 1s then release\n\
    on granted node 2 nth 1 after 1ms client 1 ask node 2 line 0 GET a";

/// Another client looks while the disk is still writing.
#[test]
fn s63_read_of_a_lock_that_is_not_durable() {
    let script = text(READ_DURING_A_SYNC);
    assert_eq!(safe_but_for(&script, 20, Bug::ReadsNotAwaited), 20);
}

/// A world that watches every second node watches each in one of two seeds.
#[test]
fn a_node_is_watched_in_half_of_the_seeds() {
    let mut script = text(READ_DURING_A_SYNC);
    script.setup.watches_half = true;
    assert_eq!(safe_but_for(&script, 20, Bug::ReadsNotAwaited), 10);
}

/// A container is made anew: its time namespace has the number of the last one, and clocks of its own.
#[test]
fn s64_container_with_other_clocks() {
    let script = text(
        "run 9s\nat 1s client 0 lock a ttl 4s tries 1 hold 3s then release\n\
         at 1500ms do crash node 2 contained\nat 1510ms do restart node 2",
    );
    let broken = safe_but_for(&script, 20, Bug::NamespaceTrusted);
    assert!(broken >= 3, "{broken}");
}

/// A file has lost its end or a bit beside a crash: the node refuses it, or waits.
#[test]
fn s65_file_that_was_cut_or_rotted() {
    let mut broken = 0;
    for what in ["cut", "rot"] {
        let script = text(&format!(
            "guard always\nrun 9s\nat 1s client 0 lock a ttl 4s tries 1 hold 3s then release\n\
             at 1500ms do disk node 2 {what}\nat 1500ms do crash node 2 kill\nat 1510ms do restart node 2",
        ));
        broken += safe_but_for(&script, 200, Bug::CutLogServed);
    }
    assert!(broken >= 1, "{broken}");
}

/// The disk goes, and with it a lock that is longer than what is waited for: that lock is told of as lost, and others are not.
#[test]
fn s66_lost_disk_and_a_long_lock() {
    let script = text(
        "max-ttl 2s\nrun 20s\nat 1s client 0 lock a ttl 9s tries 1 hold 8s then release\n\
         at 1s client 1 lock b ttl 2s tries 1 hold 1s then release\nat 1500ms do crash node 2 disk-lost\n\
         at 1510ms do restart node 2",
    );
    let report = Report::of(&script);
    report.assert_safe();
    assert_eq!(report.counters().of("lock-lost-with-disk"), 1);
}

/// A client that does something again and again without any time in between ends its world.
#[test]
fn s67_client_that_never_rests() {
    let script = text("run 5s\nat 1s client 0 lock a ttl 4s tries 1 hold 1s then release");
    assert_eq!(safe_but_for(&script, 3, Bug::Restless), 3);
}

/// The newest record of a lock is damaged and dropped: an older one counts, which holds it for longer than the one that was
/// dropped. A lock of later is held to its newest record all the same.
#[test]
fn s68_rot_brings_an_older_record_back() {
    let script = text(
        "seed 9730\nclients 3\nguard always\nmax-ttl 8s\ndelay 0s 1ms\nsync 200us 2ms\ndrift 10000ppm 2ms\n\
         dialect script\nrun 15.900571038s\nliveness-from 36s\n\
         at 3.8s client 0 lock a ttl 2.285s tries 1 hold 771ms renew every 457ms write 258ms then release\n\
         at 3.8s do disk node 2 rot\n\
         at 14.9s client 0 lock b ttl 707ms tries 3 hold 202ms write 68ms then release\n\
         on down node 2 nth 1 after 1.323s do restart node 2\n\
         on freed node 2 nth 1 after 8ms do crash node 2 kill",
    );
    let report = Report::of(&script);
    report.assert_safe();
    assert_eq!(report.counters().of("start-with-dropped-batch"), 1);
}

/// What is granted without a reply becomes durable though nobody waits for it.
#[test]
fn s69_grant_without_a_reply() {
    for words in [
        "CLIENT REPLY OFF ; SET p u NX",
        "CLIENT REPLY SKIP ; SET p u NX PX 1500",
    ] {
        let script = text(&format!(
            "max-ttl 2s\nrun 5s\nat 1s client 1 ask node 2 line 0 {words}\nat 1500ms do crash node 2 power-loss-all"
        ));
        assert_eq!(safe_but_for(&script, 3, Bug::SilentNotSynced), 3, "{words}");
    }
}

/// A node that crashes at once after each start uses none of its fence counters up.
#[test]
fn s70_crashes_one_after_the_other() {
    let mut lines = "run 5s\n".to_owned();
    for at in (1_000..1_500).step_by(20) {
        lines += &format!(
            "at {at}ms do crash node 2 kill\nat {}ms do restart node 2\n",
            at + 10
        );
    }
    assert_eq!(safe_but_for(&text(&lines), 3, Bug::CeilingBurnt), 3);
}
