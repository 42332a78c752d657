//! Fencing tokens: each rule that they rest on, and what comes of it when it is left out.

use locknode_engine::EngineConfig;
use locknode_testkit::{Bug, Crash, Fault, Hook, LockAction, Scenario, Setup, ViolationKind, Who};
use redlock_proto::FencingToken;

use crate::outcome::*;
use crate::script::*;

/// Three nodes. Client 2 reaches node 0 alone and raises its counter by failing three times. Client 0 then gets nodes 0 and
/// 1, and after it client 1 gets nodes 1 and 2.
fn uneven() -> Scenario {
    let mut script = Scenario::new(three())
        .cut(0, [2])
        .cut(1, [0])
        .cut(2, [1, 2])
        .act(s(3), 0, lock(s(2)).hold(ms(100)).into())
        .acts_on(Hook::Releases(0), 1, ms(100), 1, lock(s(2)).hold(ms(100)));
    for time in 0..3 {
        script = script.act(ms(500 + 500 * time), 2, lock(s(2)).into());
    }
    script
}

/// Client 0 gets nodes 0 and 1, which count differently, and its machine is frozen before it can write the token back. Its lock
/// ends on node 1, which client 1 gets with node 2, to the very same number. Then client 0 goes on.
fn overlapping() -> Scenario {
    Scenario::new(three())
        .cut(0, [2])
        .cut(1, [0])
        .cut(2, [1, 2])
        .act(ms(500), 2, lock(s(2)).into())
        .act(s(2), 0, lock(s(2)).into())
        .on(Hook::Granted(1), Fault::Freeze(Who::Client(0), s(4)))
        .acts_on(Hook::Granted(1), 1, s(3), 1, lock(s(2)))
}

/// Client 0 gets nodes 0 and 1 five times. Node 1 crashes, its wall clock is set back, so that only what it wrote down counts;
/// it comes back and serves, and client 1 gets nodes 1 and 2.
fn crashed() -> Scenario {
    let mut script = Scenario::new(three()).cut(0, [2]).cut(1, [0]);
    for time in 0..5 {
        script = script.act(ms(500 + 200 * time), 0, lock(s(2)).hold(ms(50)).into());
    }
    script
        .at(s(3), Fault::Crash(1, Crash::Kill))
        .on(Hook::Down(1), Fault::WallJump(Who::Node(1), -3_600_000))
        .after(Hook::Down(1), ms(1), Fault::Restart(1))
        .acts_on(Hook::Serving(1), 1, SOON, 1, lock(s(2)))
}

/// Node 0 has been started five times, node 1 once. Client 0 gets both; the token is that of node 0, and node 1 accepts it. Node
/// 1 crashes, comes back and serves, and client 1 gets nodes 1 and 2.
fn epochs() -> Scenario {
    let mut script = Scenario::new(three()).cut(0, [2]).cut(1, [0]);
    for time in 0..5 {
        script = script
            .at(ms(100 + 100 * time), Fault::Crash(0, Crash::CleanStop))
            .at(ms(150 + 100 * time), Fault::Restart(0));
    }
    script
        .act(s(1), 0, lock(s(2)).hold(ms(50)).into())
        .at(s(2), Fault::Crash(1, Crash::Kill))
        .after(Hook::Down(1), ms(1), Fault::Restart(1))
        .acts_on(Hook::Serving(1), 1, SOON, 1, lock(s(2)))
}

fn three() -> Setup {
    Setup {
        nodes: 3,
        ..setup()
    }
}

/// Both clients had the lock, one after the other, with tokens in that order.
fn assert_in_order(script: &Scenario) -> Outcome {
    let it = safe(script);
    it.check(!it.windows(0).is_empty());
    let (second, fences) = (it.window(1), it.fences());
    it.check(it.windows(0).iter().all(|first| first.from < second.from));
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
    it
}

#[test]
fn s51_max_only_token() {
    let it = assert_in_order(&uneven());
    it.happens(failed(2), 3);
    breaks(&uneven().with(Bug::MaxOnly), ViolationKind::FencingOrder);
}

#[test]
fn s52_token_race_with_unconditional_write_back() {
    let it = safe(&overlapping());
    // The node refuses the token of client 0, which tries again until the lock of client 1 is over.
    it.happens(granted(1, 0), 2);
    it.check_eq((it.windows(0).len(), it.windows(1).len()), (1, 1));
    let (second, first) = (it.window(0), it.window(1));
    it.check(first.until <= second.from);
    it.check(first.fencing < second.fencing);
    let it = breaks(
        &overlapping().with(Bug::WriteBackAnyway),
        ViolationKind::FencingDuplicate,
    );
    assert_eq!(it.window(0).fencing, it.window(1).fencing);
}

#[test]
fn s53_volatile_counter_or_boot_epoch() {
    assert_in_order(&crashed());
    breaks(
        &crashed().with(Bug::FenceForgotten),
        ViolationKind::FencingOrder,
    );
    assert_in_order(&epochs());
    breaks(
        &epochs().with(Bug::FenceFromStarts),
        ViolationKind::FencingOrder,
    );
}

/// No token is ever above what a double holds exactly.
#[test]
fn s54_token_above_2_to_the_53() {
    assert!(FencingToken::new((1 << 53) - 1).is_some());
    assert!(FencingToken::new(1 << 53).is_none() && FencingToken::new(0).is_none());
    let mut node = OneNode::new(EngineConfig::new(7, "run"));
    let granted = node.ask("LOCK.ACQUIRE k t 1000");
    let grant = granted.split("\r\n:").nth(2).expect("a counter").to_owned();
    let most: u64 = (1 << 53) - (1 << 40);
    for (fence, reply) in [
        (most + 1, "-ERR fence is out of range\r\n"),
        (1 << 53, "-ERR fence is out of range\r\n"),
        (u64::MAX >> 1, "-ERR fence is out of range\r\n"),
        (most, ":1\r\n"),
    ] {
        let fenced = node.ask(&format!("LOCK.FENCE k t {grant} {fence}"));
        assert_eq!(fenced, reply, "{fence}");
    }
    assert_eq!(node.ask("LOCK.RELEASE k t"), ":1\r\n");
    let next = node.ask("LOCK.ACQUIRE k u 1000");
    assert!(next.contains(&format!("\r\n:{}\r\n", most + 1)), "{next:?}");
    let floor = (1_u64 << 53) - 1;
    let refused = node.ask(&format!("LOCK.ACQUIRE other t 1000 FLOOR {floor}"));
    assert!(refused.starts_with("-ERR"), "{refused:?}");
}

/// Each refuted way to make tokens is found over a few seeds, with delays that differ, and the shipped one is clean.
fn refuted(script: &Scenario, bug: Bug, kind: ViolationKind) {
    for seed in 1..=12 {
        let mut script = script.seeded(seed);
        script.setup.delay = (ms(0), ms(4));
        script.setup.sync = (ms(0), ms(3));
        assert_eq!(verdict(&script), [], "seed {seed}");
        let found = verdict(&script.with(bug));
        assert!(found.contains(&kind), "seed {seed}: {found:?}");
    }
}

#[test]
fn r1_highest_counter_without_write_back() {
    refuted(&uneven(), Bug::MaxOnly, ViolationKind::FencingOrder);
}

#[test]
fn r2_write_back_whoever_holds_the_lock() {
    refuted(
        &overlapping(),
        Bug::WriteBackAnyway,
        ViolationKind::FencingDuplicate,
    );
}

#[test]
fn r3_counters_that_a_crash_resets() {
    refuted(&crashed(), Bug::FenceForgotten, ViolationKind::FencingOrder);
}

#[test]
fn r4_counters_from_the_number_of_starts() {
    refuted(&epochs(), Bug::FenceFromStarts, ViolationKind::FencingOrder);
}

/// Attempts that share a token are not told apart by it. The number of the grant, which a write-back quotes, tells them
/// apart all the same: fencing holds. What breaks is exclusion, when the release of one lock ends the next.
#[test]
fn r5_one_value_for_two_attempts() {
    for seed in 1..=12 {
        let it = play(&overlapping().seeded(seed).with(Bug::SharedToken));
        it.check_eq((it.windows(0).len(), it.windows(1).len()), (0, 1));
        it.check_eq((it.count(granted(1, 0)), it.count(failed(0))), (1, 1));
        it.check(!it.has(ViolationKind::FencingDuplicate));
        it.check(!it.has(ViolationKind::FencingOrder));
    }
    let script = Scenario::new(setup())
        .act(s(1), 0, LockAction::new("k", s(1)).into())
        .on(Hook::Acquired(0), Fault::Pause(Who::Client(0), s(3)))
        .act(s(3), 1, lock(s(4)).into())
        .acts_on(Hook::Lost(0), 1, SOON, 2, lock(s(4)));
    assert_eq!(verdict(&script), []);
    breaks(&script.with(Bug::SharedToken), ViolationKind::Exclusion);
}
