//! Orderly stops that take long, and what comes in the middle of them.

use std::collections::BTreeSet;

use locknode_testkit::history::Event;
use locknode_testkit::{Crash, DiskFault, Fault, Hook, Scenario};

use crate::outcome::*;
use crate::script::*;

/// Client 0 holds a lock, node 2 is asked to end, its disk does that to it, and it starts again when it is down; client 1
/// wants the lock.
fn stopped(disk: DiskFault) -> Scenario {
    let stop = Fault::Crash(2, Crash::CleanStop);
    split()
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Acquired(0), stop)
        .on(Hook::Stops(2), Fault::Disk(2, disk))
        .after(Hook::Down(2), ms(1), Fault::Restart(2))
        .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)))
        .acts_on(Hook::Serving(2), 1, SOON, 1, lock(s(4)))
}

/// Why node 2 waited, or did not, when it started for the second time.
fn reason(it: &Outcome) -> &'static str {
    let entries = it.history.entries.iter();
    let mut reasons = entries.filter_map(|entry| match entry.event {
        Event::Started {
            node: 2, reason, ..
        } => Some(reason),
        _ => None,
    });
    reasons.nth(1).expect("it started again")
}

/// The stop lasts as long as the disk does, nobody is served meanwhile, and somebody who waits for its end starts the node.
#[test]
fn s71_orderly_stop_that_takes_long() {
    for disk in [DiskFault::Slow(ms(400)), DiskFault::Stall] {
        let script = stopped(disk)
            .after(Hook::Stops(2), ms(100), Fault::Restart(2))
            .acts_on(Hook::Stops(2), 1, ms(100), 1, lock(s(4)))
            .after(Hook::Stops(2), ms(600), Fault::Disk(2, DiskFault::Go));
        let it = safe(&script);
        let took = it.between(acquired(0), down(2));
        assert!(took >= ms(400) && took < ms(700), "{took:?}");
        it.check_eq(reason(&it), "start-after-clean-stop");
        assert_eq!(it.last(started(2, false, reason(&it))), it.first(down(2)));
        let refused = it.first(failed_for(1, "no-quorum"));
        it.check(refused < it.first(down(2)));
        it.check(it.counters.of("refused-by-stop") > 0);
        it.check_eq(it.counters.of("start-awaited"), 1);
        it.check_eq(it.counters.of("lock-restored"), 1);
    }
}

/// The process or the machine ends in the middle of it: the node waits as after any such end, unless the mark was there
/// already, and with it the lock.
#[test]
fn s71_orderly_stop_that_is_cut_short() {
    for how in [
        Crash::Kill,
        Crash::PowerLoss,
        Crash::PowerLossAll,
        Crash::TornWrite,
    ] {
        let mut reasons = BTreeSet::new();
        for seed in 1..=40 {
            let script = stopped(DiskFault::Stall)
                .after(Hook::Stops(2), ms(500), Fault::Crash(2, how))
                .seeded(seed);
            let it = safe(&script);
            it.check_eq(it.counters.of("stop-cut-short"), 1);
            let reason = reason(&it);
            reasons.insert(reason);
            match reason {
                "start-after-clean-stop" => assert_eq!(it.counters.of("lock-restored"), 1),
                _ => it.check(it.serves_again(2) >= it.ends(2, 0)),
            }
        }
        let cut = match how {
            Crash::Kill => "start-after-crash",
            _ => "start-after-reboot",
        };
        assert!(reasons.contains(cut), "{how:?}: {reasons:?}");
    }
}

/// A disk that is full, or fails, leaves no mark: the next start waits.
#[test]
fn s71_orderly_stop_that_the_disk_refuses() {
    for disk in [
        DiskFault::Full,
        DiskFault::WriteFull,
        DiskFault::WriteError,
        DiskFault::SyncError,
    ] {
        let it = safe(&stopped(disk).after(Hook::Down(2), ms(0), Fault::Disk(2, DiskFault::Room)));
        it.check_eq(it.counters.of("stop-without-mark"), 1);
        assert_eq!(reason(&it), "start-after-crash", "{disk:?}\n{}", it.story());
        it.check(it.serves_again(2) >= it.ends(2, 0));
    }
}

/// A grant waits for the disk when its node is asked to end. The node waits with it for five seconds, or until it is asked
/// again; then the client is cut off and knows nothing.
#[test]
fn s71_orderly_stop_with_a_reply_that_waits() {
    let script = |after| {
        split()
            .at(ms(900), Fault::Disk(2, DiskFault::Stall))
            .act(s(1), 0, lock(s(4)).into())
            .on(Hook::Granted(2), Fault::Crash(2, Crash::CleanStop))
            .after(Hook::Stops(2), after, Fault::Disk(2, DiskFault::Go))
            .after(Hook::Down(2), ms(1), Fault::Restart(2))
            .acts_on(Hook::Started(2), 1, SOON, 1, lock(s(4)))
    };
    let it = safe(&script(ms(100)));
    it.happens(answered(2, 0), 1);
    assert_eq!(it.counters.of("stop-cuts-off"), 0);
    let hurried = script(s(3)).after(Hook::Stops(2), s(1), Fault::Crash(2, Crash::CleanStop));
    for (script, takes, again) in [(script(s(8)), s(8), 0), (hurried, s(3), 1)] {
        let it = safe(&script);
        it.happens(answered(2, 0), 0);
        it.check_eq(it.counters.of("stop-hurried"), again);
        let took = it.between(granted(2, 0), down(2));
        assert!(took >= takes && took < takes + ms(100), "{took:?}");
        // The client gives its connection up sooner than that where nobody is in a hurry.
        it.check(it.counters.of("stop-cuts-off") <= 1);
        it.check_eq(reason(&it), "start-after-clean-stop");
    }
}
