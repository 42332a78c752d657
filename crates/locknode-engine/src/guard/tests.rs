use proptest::prelude::*;

use super::*;
use crate::durable::MachineTime;
use crate::durable::Reading;
use crate::durable::Start;
use crate::time::Moment;

/// A guard of a node that starts at zero, without a quarantine and with nothing durable.
fn guard(mode: GuardMode, max_ttl: Duration) -> Guard {
    let start = Start::without_directory(max_ttl, true, at(Time::ZERO));
    let mut config = GuardConfig::new(mode, max_ttl, &start);
    config.durable = Durable::default();
    Guard::new(&config, Time::ZERO)
}

fn at(time: Time) -> Reading {
    Reading {
        moment: Moment {
            time,
            ..Moment::default()
        },
        machine: MachineTime::default(),
    }
}

fn long() -> GuardMode {
    GuardMode::Store(Durability::Long)
}

/// `[G2]` `[G3]`
#[test]
fn a_quarantine_lasts_to_its_last_nanosecond() {
    let minute = Duration::from_secs(60);
    let now = Time::from_millis(7);
    let start = Start::without_directory(minute, false, at(now));
    let guard = Guard::new(&GuardConfig::new(GuardMode::Memory, minute, &start), now);
    let end = now.as_nanos() + 60_602_000_000;
    for (at_ns, want) in [
        (now.as_nanos(), Some(60_602_000_001)),
        (end - 1, Some(2)),
        // A lock granted just before the start may be alive at exactly this instant.
        (end, Some(1)),
        (end + 1, None),
    ] {
        let left = guard.quarantine_left(Time::from_nanos(at_ns));
        assert_eq!(left, want.map(Duration::from_nanos), "at {at_ns}");
    }
}

/// `[L1]`
#[test]
fn without_a_log_only_short_locks_are_permitted() {
    let guard = guard(GuardMode::Memory, Duration::from_secs(60));
    let now = Time::from_millis(5);
    let mut need = Need::NONE;
    let mut permit = |deadline| guard.permit(now, deadline, || false, &mut need);
    assert!(permit(Deadline::after_millis(now, 60_000)).is_ok());
    for deadline in [
        Deadline::after_millis(now, 60_001),
        Deadline::after_millis(now, i64::MAX / 2),
        Deadline::NEVER,
    ] {
        assert!(
            matches!(permit(deadline), Err(Denial::NeedsLog { .. })),
            "{deadline:?}"
        );
    }
    assert!(need.is_none(), "nothing ever becomes durable there");
}

/// `[G15]`
#[test]
fn a_guard_that_is_off_permits_everything() {
    let guard = Guard::new(&GuardConfig::off(), Time::ZERO);
    let mut need = Need::NONE;
    for deadline in [Deadline::after_millis(Time::ZERO, 1), Deadline::NEVER] {
        assert!(
            guard
                .permit(Time::ZERO, deadline, || false, &mut need)
                .is_ok()
        );
    }
    assert!(need.is_none());
}

/// `[G8]`
#[test]
fn in_steady_state_no_reply_waits_and_each_sync_covers_a_slack() {
    for (ttl_ms, slack_ms) in [(100, 1000), (10_000, 1000), (30_000, 1875), (60_000, 3750)] {
        let guard = guard(long(), Duration::from_secs(60));
        let (mut works, mut waits) = (0, 0);
        // Grants every 5 ms for ten minutes; each sync ends with the second grant after it.
        let mut in_flight: Option<(u64, Work)> = None;
        for tick in 0..120_000_u64 {
            let now = Time::from_millis(tick * 5);
            if let Some((done_at, work)) = in_flight.take_if(|(done_at, _)| *done_at <= tick) {
                let _ = done_at;
                guard.done(&work);
            }
            let mut need = Need::NONE;
            let deadline = Deadline::after_millis(now, ttl_ms);
            assert!(guard.permit(now, deadline, || false, &mut need).is_ok());
            waits += u64::from(!need.is_none() && !guard.is_durable(&need));
            if guard.has_work()
                && let Some(work) = guard.take_work(now)
            {
                works += 1;
                in_flight = Some((tick + 2, work));
            }
        }
        assert!(waits <= 3, "{ttl_ms} ms: {waits} grants waited");
        let bound = 600_000 / slack_ms + 2;
        assert!(
            works <= bound,
            "{ttl_ms} ms: {works} syncs, {bound} at most"
        );
    }
}

/// `[G6]`
#[test]
fn a_horizon_covers_less_after_the_machines_clocks_gain() {
    let guard = guard(long(), Duration::from_secs(60));
    let second = 1_000_000_000;
    guard.note_slip(7 * second);
    let grant = |now_ms: u64, ttl_ms: i64| {
        let now = Time::from_millis(now_ms);
        let mut need = Need::NONE;
        let deadline = Deadline::after_millis(now, ttl_ms);
        assert!(guard.permit(now, deadline, || false, &mut need).is_ok());
        let waits = !guard.is_durable(&need);
        if let Some(work) = guard.take_work(now) {
            guard.done(&work);
        }
        assert!(guard.is_durable(&need));
        waits
    };
    assert!(grant(0, 60_000));
    assert!(!grant(1_000, 60_000), "the horizon is a slack ahead");
    assert!(!grant(50_000, 9_000));
    // The machine's clocks have each gained two seconds on the node's, in turns.
    guard.note_slip(9 * second);
    assert!(!grant(50_000, 9_000), "the slack covers it");
    assert!(grant(50_000, 13_000), "but not a lock that uses it");
    assert!(!grant(50_000, 13_000));
    guard.note_slip(6 * second);
    assert!(!grant(50_000, 13_000), "nothing is gained by going back");
    guard.note_slip(3_600 * second);
    assert!(grant(50_001, 10), "the machine has slept");
    assert!(!grant(50_002, 10));
}

/// `[G8]`
#[test]
fn an_idle_node_requests_no_work() {
    let guard = guard(long(), Duration::from_secs(60));
    let mut need = Need::NONE;
    let deadline = Deadline::after_millis(Time::ZERO, 1000);
    assert!(
        guard
            .permit(Time::ZERO, deadline, || false, &mut need)
            .is_ok()
    );
    assert!(!guard.is_durable(&need));
    let work = guard.take_work(Time::ZERO).unwrap();
    guard.done(&work);
    assert!(guard.is_durable(&need));
    assert!(!guard.has_work());
    assert_eq!(guard.take_work(Time::from_millis(1_000_000)), None);
}

#[test]
fn records_that_belong_together_are_one_work() {
    let guard = guard(long(), Duration::from_secs(60));
    let mut need = Need::NONE;
    guard.log_together(|| {
        for key in [b"a", b"b"] {
            guard.log(&Record::Remove { db: 0, key }, true, &mut need);
            assert_eq!(guard.take_work(Time::ZERO), None);
        }
    });
    assert!(guard.has_work());
    let work = guard.take_work(Time::ZERO).unwrap();
    guard.done(&work);
    assert!(guard.is_durable(&need));
}

/// `[G5]`
#[test]
fn the_ttl_in_use_is_lowered_once_longer_locks_have_expired() {
    let guard = guard(long(), Duration::from_secs(60));
    let grant = |now_ms: u64, ttl_ms: i64| {
        let now = Time::from_millis(now_ms);
        let mut need = Need::NONE;
        let deadline = Deadline::after_millis(now, ttl_ms);
        assert!(guard.permit(now, deadline, || false, &mut need).is_ok());
        if let Some(work) = guard.take_work(now) {
            guard.done(&work);
        }
        assert!(guard.is_durable(&need));
        guard.report(now).ttl_in_use.as_millis()
    };
    assert_eq!(grant(0, 50_000), 60_000, "the next bucket exceeds max-ttl");
    assert_eq!(grant(1_000, 900), 60_000);
    assert_eq!(grant(59_999, 900), 60_000, "the first lock may be alive");
    // From here on everything from before the epoch has expired, and the epoch had 50 s at most.
    assert_eq!(grant(62_000, 900), 60_000);
    assert_eq!(grant(123_000, 900), 1024);
    assert_eq!(grant(124_000, 3_000), 4096, "and raised when needed");
}

/// `[G5]` `[G9]`
#[test]
fn the_ttl_of_an_earlier_run_is_forgotten_once_its_locks_have_expired() {
    let minute = Duration::from_secs(60);
    let start = Start::without_directory(minute, true, at(Time::ZERO));
    let mut config = GuardConfig::new(GuardMode::Store(Durability::Always), minute, &start);
    config.durable = Durable {
        horizon: Time::from_millis(60_000),
        ttl_in_use: minute,
        ..Durable::default()
    };
    let guard = Guard::new(&config, Time::ZERO);
    for (now_ms, want) in [(59_000, minute), (60_000, minute), (60_001, Duration::ZERO)] {
        let now = Time::from_millis(now_ms);
        let mut need = Need::NONE;
        guard.log(&Record::Clear { db: None }, true, &mut need);
        let work = guard.take_work(now).unwrap();
        assert_eq!(work.goal.ttl_in_use, want, "{now_ms}");
        guard.done(&work);
    }
}

/// `[F3]`
#[test]
fn the_ceiling_is_raised_in_large_steps_and_ahead_of_need() {
    let guard = guard(long(), Duration::from_secs(60));
    let (mut works, mut waits) = (0, 0);
    for counter in (1..=8_u64 << 20).step_by(64) {
        let mut need = Need::NONE;
        guard.note_counter(counter, &mut need);
        waits += u64::from(!need.is_none());
        if let Some(work) = guard.take_work(Time::ZERO) {
            works += 1;
            guard.done(&work);
            assert!(guard.is_durable(&need));
        }
        assert!(counter <= guard.report(Time::ZERO).ceiling);
    }
    assert_eq!(waits, 1, "the first");
    assert!(
        works <= 17 + 14,
        "{works}: the usual steps, after smaller ones"
    );
}

/// `[F6]`
#[test]
fn used_up_tokens_stop_all_granting() {
    for mode in [GuardMode::Off, GuardMode::Memory, long()] {
        let guard = guard(mode, Duration::from_secs(60));
        let mut need = Need::NONE;
        let deadline = Deadline::after_millis(Time::ZERO, 1000);
        guard.note_counter(COUNTERS_END - 1, &mut need);
        assert!(
            guard
                .permit(Time::ZERO, deadline, || false, &mut need)
                .is_ok(),
            "{mode:?}"
        );
        guard.note_counter(COUNTERS_END, &mut need);
        assert_eq!(
            guard.permit(Time::ZERO, deadline, || false, &mut need),
            Err(Denial::Exhausted),
            "{mode:?}"
        );
    }
}

/// [F6]
#[test]
fn a_node_that_starts_with_used_up_tokens_grants_nothing() {
    let deadline = Deadline::after_millis(Time::ZERO, 1000);
    for (fence_base, is_refused) in [
        (COUNTERS_END - 1, false),
        (COUNTERS_END, true),
        (FENCE_END, true),
    ] {
        for mode in [GuardMode::Off, GuardMode::Memory, long()] {
            let config = GuardConfig {
                mode,
                fence_base,
                ..GuardConfig::off()
            };
            let guard = Guard::new(&config, Time::ZERO);
            let permit = guard.permit(Time::ZERO, deadline, || false, &mut Need::default());
            assert_eq!(
                permit == Err(Denial::Exhausted),
                is_refused,
                "{fence_base} {mode:?}"
            );
        }
    }
}

/// `[L4]`
#[test]
fn work_takes_all_requests_since_the_last_work() {
    let guard = guard(
        GuardMode::Store(Durability::Always),
        Duration::from_secs(60),
    );
    let record = Record::Remove { db: 0, key: b"key" };
    let mut first = Need::NONE;
    guard.log(&record, true, &mut first);
    let work = guard.take_work(Time::ZERO).unwrap();
    let mut others = [Need::NONE; 3];
    others
        .iter_mut()
        .for_each(|need| guard.log(&record, true, need));
    assert_eq!(guard.take_work(Time::ZERO), None, "one is in progress");
    assert!(!guard.is_durable(&first));
    guard.done(&work);
    assert!(guard.is_durable(&first));
    assert!(others.iter().all(|need| !guard.is_durable(need)));
    let work = guard.take_work(Time::ZERO).unwrap();
    assert_eq!(work.goal.records, 4);
    guard.done(&work);
    assert!(others.iter().all(|need| guard.is_durable(need)));
}

/// One event in the life of a guard.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pass(u64),
    Grant(i64),
    Count(u64),
    Take,
    Done,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0_u64..4_000).prop_map(Step::Pass),
        (1_i64..70_000).prop_map(Step::Grant),
        (1_u64..3_000_000).prop_map(Step::Count),
        Just(Step::Take),
        Just(Step::Done),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    /// Whatever the order of grants and syncs: a reply that may be sent depends on a durable
    /// horizon, a durable TTL in use and a durable ceiling, for as long as the lock is alive.
    /// `[G5]` `[G6]` `[F2]`
    #[test]
    fn every_reply_that_may_be_sent_is_covered_by_durable_state(steps in steps()) {
        let guard = guard(long(), Duration::from_secs(60));
        let mut now_ms = 0;
        let mut counter = 0;
        let mut on_disk = Durable::default();
        let mut in_flight: Option<Work> = None;
        // Deadline, TTL, counter and need of every grant.
        let mut granted: Vec<(u64, u64, u64, Need)> = Vec::new();
        for step in steps {
            let now = Time::from_millis(now_ms);
            match step {
                Step::Pass(ms) => now_ms += ms,
                Step::Grant(ttl_ms) => {
                    let deadline = Deadline::after_millis(now, ttl_ms);
                    let mut need = Need::NONE;
                    let Ok(permit) = guard.permit(now, deadline, || false, &mut need) else {
                        panic!("nothing prevents a grant");
                    };
                    prop_assert_eq!(permit.is_logged, ttl_ms > 60_000);
                    if !permit.is_logged {
                        let end = deadline.to_bits();
                        granted.push((end, end - now.as_nanos(), 0, need));
                    }
                }
                Step::Count(by) => {
                    counter += by;
                    let mut need = Need::NONE;
                    guard.note_counter(counter, &mut need);
                    granted.push((0, 0, counter, need));
                }
                Step::Take => {
                    if let Some(work) = guard.take_work(now) {
                        prop_assert!(in_flight.replace(work).is_none());
                    }
                }
                Step::Done => {
                    if let Some(work) = in_flight.take() {
                        on_disk = work.goal;
                        guard.done(&work);
                    }
                }
            }
            // A crash while work is in progress may leave the old state or the new one.
            let states = [Some(on_disk), in_flight.as_ref().map(|work| work.goal)];
            for state in states.into_iter().flatten() {
                for &(end, ttl, counter, ref need) in &granted {
                    if !guard.is_durable(need) {
                        continue;
                    }
                    prop_assert!(counter <= state.ceiling);
                    prop_assert!(end <= state.horizon.as_nanos());
                    let is_alive = end >= Time::from_millis(now_ms).as_nanos();
                    prop_assert!(!is_alive || Duration::from_nanos(ttl) <= state.ttl_in_use);
                }
            }
        }
    }
}
