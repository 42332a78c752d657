//! The shipped node, the shipped client and the kit's plain client keep every promise.

use locknode_testkit::{
    ClientKind, FaultKind, FaultKinds, GuardMode, Swarm, ViolationKind, check_all,
};

use crate::first_broken;

/// Seeds of the default swarm per run; `SEEDS=FROM..TO` runs others. A thousand take some ten seconds.
fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("SEEDS").ok();
    let parsed = given.as_deref().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    assert!(
        given.is_none() || parsed.is_some(),
        "SEEDS is FROM..TO, such as 0..1000"
    );
    parsed.unwrap_or(0..1_000)
}

#[test]
fn every_promise_is_kept_and_everything_happens() {
    let seeds = seeds();
    let is_enough = seeds.end - seeds.start >= 1_000;
    let (broken, counters) = first_broken(&Swarm::default(), seeds);
    if let Some(report) = broken {
        report.assert_safe();
    }
    // What never happened was not tested.
    let never: Vec<&str> = SOMETIMES
        .split(' ')
        .filter(|name| counters.of(name) == 0)
        .collect();
    assert!(!is_enough || never.is_empty(), "never happened: {never:?}");
}

#[test]
fn a_plain_client_without_a_mistake_keeps_every_promise() {
    let swarm = Swarm::default().client(ClientKind::Plain);
    if let (Some(report), _) = first_broken(&swarm, 0..300) {
        report.assert_safe();
    }
}

/// Locks held as hashes are as exclusive as tokens: re-entry, inner releases, a watchdog, scripts and transactions.
#[test]
fn a_client_of_hashes_keeps_every_promise() {
    let swarm = Swarm::default().client(ClientKind::Hash);
    let (broken, counters) = first_broken(&swarm, 0..150);
    if let Some(report) = broken {
        report.assert_safe();
    }
    let reached = "hash-taken hash-renewed hash-entered-again hash-left exec-tripped lock-restored";
    let never: Vec<&str> = reached
        .split(' ')
        .filter(|it| counters.of(it) == 0)
        .collect();
    assert!(never.is_empty(), "never happened: {never:?}");
}

#[test]
fn other_sizes_and_guards_keep_every_promise() {
    let one = Swarm::default().nodes(1).clients(2);
    let many = Swarm::default().nodes(7).clients(8);
    let mut swarms = vec![
        one,
        many,
        Swarm::default().nodes(3),
        Swarm::default().nodes(4),
    ];
    swarms
        .extend([GuardMode::Memory, GuardMode::Always].map(|guard| Swarm::default().guard(guard)));
    for swarm in swarms {
        if let (Some(report), _) = first_broken(&swarm, 0..60) {
            report.assert_safe();
        }
    }
}

/// Clocks that lie break exclusion, and never the order of fencing tokens.
#[test]
fn with_bad_clocks_two_hold_a_lock_and_fencing_tells_them_apart() {
    let mut overlaps = 0;
    let swarm = Swarm::default().faults(FaultKinds::FENCED);
    for seed in 0..150 {
        let report = swarm.run(seed);
        report.assert_safe();
        let all = check_all(report.history(), report.scenario());
        let of = |kind| {
            all.iter()
                .filter(|violation| violation.kind == kind)
                .count()
        };
        overlaps += of(ViolationKind::Exclusion);
        assert_eq!(of(ViolationKind::FencingOrder), 0, "seed {seed}");
        assert_eq!(of(ViolationKind::FencingDuplicate), 0, "seed {seed}");
        assert_eq!(of(ViolationKind::FencedResource), 0, "seed {seed}");
    }
    assert!(overlaps > 0, "bad clocks did nothing");
}

/// Without a restart guard a crash does harm, which is what the guard is for.
#[test]
fn without_a_restart_guard_two_hold_a_lock() {
    let faults = FaultKinds::PROMISED.without(FaultKind::CleanStop);
    let swarm = Swarm::default().guard(GuardMode::Off).faults(faults);
    let overlaps = (0..200).filter(|seed| {
        let report = swarm.run(*seed);
        let all = check_all(report.history(), report.scenario());
        all.iter()
            .any(|violation| violation.kind == ViolationKind::Exclusion)
    });
    assert!(overlaps.count() > 0, "crashes did nothing");
}

/// Faults and states that a thousand worlds reach.
const SOMETIMES: &str = "\
    kill power-loss power-loss-all torn-write clean-stop disk-lost moved restart sync-error \
    disk-full disk-room disk-slow disk-stall disk-go partition one-way-partition heal delay hold \
    release-held drop-requests drop-replies late duplicate refuse refused-by-fault reset \
    node-pause client-pause node-suspend client-suspend clock-rate clock-slew clock-noise \
    wall-jump client-crash max-ttl calm lost-request lost-reply duplicated-request \
    reply-waits-for-disk reply-lost-to-disk disk-refused refused-by-failed-disk \
    quarantine-refusal lock-restored start-after-crash start-after-reboot start-after-clean-stop \
    start-on-empty-disk start-without-directory start-from-log acquired extended \
    extension-failed extension-to-another-ttl renewed failed-busy failed-no-quorum \
    failed-expired lock-lost write-fenced-off act-of-dead-client act-while-stopped start-refused \
    start-with-damaged-state write-back write-back-refused message-in-two-pieces asked-aside \
    lock-shown read-waits-for-disk silent-request other-database several-locks-at-once \
    lock-on-the-log lock-without-end refused-without-log ttl-in-use-lowered healed handed-over \
    released-by-next call-given-up lock-dropped release-given-up looked look-finds-holder \
    dialect-lock dialect-delex dialect-delifeq dialect-script dialect-mixed node-freeze client-freeze \
    crash-in-open crash-in-compact crash-in-close open-cut-short compact-cut-short \
    close-cut-short sync-full write-error write-full disk-rot disk-cut disk-replaced contained \
    clocks-back start-with-clock-mismatch start-with-dropped-batch lock-lost-with-disk \
    released-and-kept stop-hurried stop-cut-short stop-cuts-off stop-without-mark start-awaited \
    refused-by-stop served-while-stopping";
