//! Random lives of a node. What must be so after every start is checked by the rig.

use std::io::ErrorKind;
use std::time::Duration;

use locknode_engine::durable::Durability;
use locknode_tests::faulty_disk::keep_none;
use proptest::prelude::*;

use crate::rig::Rig;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, Option<u32>),
    Extend(u8, u32),
    Remove(u8),
    Clear(Option<u8>),
    Grant(u8, u16),
    Relax,
    Ceiling(u32),
    Perform,
    Compact,
    Pass(u32),
    FailSync(u8),
    FailWrite(u8, u16),
    Full(bool),
    StopAfter(u8),
    Kill,
    Crash(u64),
    Reboot(u64),
    Stop,
    Durability(bool),
    MaxTtl(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0..12_u8;
    let loss = || prop_oneof![0..2_u64, any::<u64>()];
    prop_oneof![
        6 => (key.clone(), prop::option::of(1..200_000_u32)).prop_map(|(k, t)| Step::Put(k, t)),
        2 => (key.clone(), 1..200_000_u32).prop_map(|(k, t)| Step::Extend(k, t)),
        4 => key.clone().prop_map(Step::Remove),
        1 => prop::option::of(0..2_u8).prop_map(Step::Clear),
        4 => (key, 1..60_000_u16).prop_map(|(k, t)| Step::Grant(k, t)),
        1 => Just(Step::Relax),
        2 => (1..3_000_000_u32).prop_map(Step::Ceiling),
        10 => Just(Step::Perform),
        6 => Just(Step::Compact),
        4 => (0..30_000_u32).prop_map(Step::Pass),
        1 => (0..4_u8).prop_map(Step::FailSync),
        1 => (0..4_u8, 0..400_u16).prop_map(|(n, b)| Step::FailWrite(n, b)),
        1 => any::<bool>().prop_map(Step::Full),
        1 => any::<u8>().prop_map(Step::StopAfter),
        2 => Just(Step::Kill),
        3 => loss().prop_map(Step::Crash),
        2 => loss().prop_map(Step::Reboot),
        2 => Just(Step::Stop),
        1 => any::<bool>().prop_map(Step::Durability),
        1 => (1..60_u8).prop_map(Step::MaxTtl),
    ]
}

fn take(rig: &mut Rig, step: Step) {
    let name = |key: u8| format!("key-{key}-{}", "k".repeat(usize::from(key) * 12)).into_bytes();
    match step {
        Step::Put(key, ttl) => rig.put_in(key % 2, &name(key), ttl.map(i64::from)),
        Step::Extend(key, ttl) => rig.extend(&name(key), i64::from(ttl)),
        Step::Remove(key) => rig.remove_in(key % 2, &name(key)),
        Step::Clear(db) => rig.clear(db),
        Step::Grant(key, ttl) => {
            let ttl = Duration::from_millis(u64::from(ttl)).min(rig.settings.max_ttl);
            if !rig.is_quarantined() {
                rig.grant(&name(key), ttl);
            }
        }
        Step::Relax => rig.relax(),
        Step::Ceiling(by) => rig.goal.ceiling += u64::from(by),
        Step::Perform => {
            if let Err(error) = rig.perform()
                && !error.is_full()
            {
                rig.kill();
                rig.start();
            }
        }
        Step::Compact => {
            if rig.compact().is_err_and(|error| !error.is_full()) {
                rig.kill();
                rig.start();
            }
        }
        Step::Pass(ms) => rig.advance(Duration::from_millis(u64::from(ms))),
        Step::FailSync(after) => rig.disk.fail_sync(u64::from(after)),
        Step::FailWrite(after, written) => {
            let (after, written) = (u64::from(after), usize::from(written));
            rig.disk.fail_write(after, ErrorKind::StorageFull, written);
        }
        Step::Full(is_full) => {
            let bytes = rig.disk.bytes();
            rig.disk.limit(is_full.then_some(bytes));
        }
        Step::StopAfter(after) => rig.disk.stop(u64::from(after)),
        Step::Kill => {
            rig.kill();
            rig.start();
        }
        Step::Crash(seed) => {
            rig.crash_by(seed);
            rig.start();
        }
        Step::Reboot(seed) => {
            rig.crash_by(seed);
            rig.reboot();
            rig.start();
        }
        Step::Stop => {
            let is_stopped = rig.perform().is_ok() && rig.stop().is_ok();
            rig.kill();
            if !is_stopped {
                rig.crash(&mut keep_none);
            }
            rig.start();
        }
        Step::Durability(is_always) => {
            rig.settings.durability = if is_always {
                Durability::Always
            } else {
                Durability::Long
            };
        }
        Step::MaxTtl(seconds) => rig.settings.max_ttl = Duration::from_secs(u64::from(seconds)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// [G1] [G5] [G6] [G9] [G10] [G11] [L1] [L2] [L3] [L5] [L7] [F2] [F3] [S2] [S5]
    #[test]
    fn whatever_happens_what_was_acknowledged_is_kept_or_waited_for(
        steps in prop::collection::vec(step(), 1..150)
    ) {
        let mut rig = Rig::new();
        rig.sizes.segment = 1024;
        rig.sizes.log = 4096;
        rig.first_start();
        for step in steps {
            take(&mut rig, step);
        }
        rig.restart();
    }
}
