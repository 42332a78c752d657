//! Extensions and releases that come late, twice, for somebody else's lock, or at the same time.

use std::time::Duration;

use locknode_testkit::history::Event;
use locknode_testkit::{
    Bug, ClientAction, Crash, Ending, Fault, GuardMode, Hook, Links, Scenario, ViolationKind, Way,
    Who,
};

use crate::outcome::*;
use crate::script::*;

/// A second copy of an extension arrives after the release, through another connection.
#[test]
fn s31_late_extend_after_release() {
    let script = |next| {
        Scenario::new(setup())
            .act(s(1), 0, lock(s(4)).into())
            .at(ms(1_400), Fault::Duplicate(everywhere(0), 1))
            .at(
                ms(1_400),
                Fault::Late(everywhere(0), Way::Requests, 1, ms(600)),
            )
            .act(ms(1_500), 0, extend(s(4)))
            .act(ms(1_600), 0, release())
            .act(next, 1, lock(s(2)).hold(s(3)).into())
    };
    // The late ones find nothing, or the lock of another.
    for next in [ms(2_300), ms(1_700)] {
        let it = safe(&script(next));
        assert_eq!(it.counters.of("duplicated-request"), 5, "{:?}", it.counters);
        it.happens(renewed(0), 1);
        let extended = |event: &Event| matches!(event, Event::Extended { .. });
        assert_eq!(it.count(extended), 5, "once on each node: {}", it.story());
        assert!(
            it.last(extended) < it.first(freed(4)),
            "nothing is made anew: {}",
            it.story()
        );
        let window = it.window(1);
        assert!(
            window.from.since(next.into()) < ms(50),
            "free at once: {}",
            it.story()
        );
    }
    let blind = script(ms(1_700)).with(Bug::ExtendWithoutCompare);
    let it = play(&blind);
    let foreign = it.times(|event| matches!(event, Event::Extended { attempt: 1, .. }));
    assert!(
        !foreign.is_empty(),
        "it extends the lock of client 1: {}",
        it.story()
    );
}

/// Client 0 stands still until its lock is over and client 1 holds it, and then lets go. Client 2 comes.
#[test]
fn s32_unlock_of_an_expired_lock() {
    let script = Scenario::new(setup())
        .act(s(1), 0, lock(s(1)).into())
        .on(Hook::Acquired(0), Fault::Pause(Who::Client(0), s(3)))
        .act(s(3), 1, lock(s(4)).into())
        .acts_on(Hook::Lost(0), 1, SOON, 2, lock(s(4)));
    let it = safe(&script);
    let (held, late) = (it.window(1), it.first(lost(0)));
    it.check(held.from < late && late < held.until);
    it.happens(failed_for(2, "busy"), 1);
    breaks(
        &script.with(Bug::ReleaseWithoutCompare),
        ViolationKind::Exclusion,
    );
}

/// A second copy of a release arrives when its client holds the lock again.
#[test]
fn s33_late_release_hits_the_own_next_lock() {
    let script = Scenario::new(setup())
        .act(s(1), 0, lock(s(4)).into())
        .at(ms(1_400), Fault::Duplicate(everywhere(0), 1))
        .at(
            ms(1_400),
            Fault::Late(everywhere(0), Way::Requests, 1, ms(600)),
        )
        .act(ms(1_500), 0, release())
        .act(ms(1_600), 0, lock(s(4)).into())
        .act(ms(2_300), 1, lock(s(4)).into());
    let it = safe(&script);
    assert_eq!(it.counters.of("duplicated-request"), 5, "{:?}", it.counters);
    it.check_eq(it.windows(0).len(), 2);
    it.happens(failed_for(1, "busy"), 1);
    breaks(&script.with(Bug::SharedToken), ViolationKind::Exclusion);
}

/// Node 2 holds the orphan of client 1. Client 0 holds nodes 0, 1 and 3, loses sight of 3, and extends: two nodes are no
/// majority, whatever node 2 holds.
#[test]
fn s34_extend_without_compare() {
    let script = Scenario::new(setup())
        .cut(0, [4])
        .cut(1, [0, 1, 3, 4])
        .cut(2, [0, 1])
        .act(ms(500), 1, lock(s(4)).into())
        .on(
            Hook::Granted(2),
            Fault::Late(link(1, 2), Way::Requests, 1, s(3)),
        )
        .act(s(1), 0, lock(s(3)).into())
        .on(Hook::Acquired(0), Fault::Cut(link(0, 3), Way::Both))
        .act(s(2), 0, extend(s(3)))
        .act(ms(4_100), 2, lock(s(3)).into());
    let it = safe(&script);
    it.happens(failed(1), 1);
    it.check_eq((it.count(renewed(0)), it.count(not_extended(0))), (0, 1));
    let extended =
        |node| move |event: &Event| matches!(*event, Event::Extended { node: n, .. } if n == node);
    assert_eq!(
        (
            it.count(extended(0)),
            it.count(extended(1)),
            it.count(extended(2))
        ),
        (1, 1, 0)
    );
    it.check(it.window(0).until < it.window(2).from);
    breaks(
        &script.with(Bug::ExtendWithoutCompare),
        ViolationKind::Exclusion,
    );
}

/// The extension hears of one node alone; the votes of the acquisition are not its own.
#[test]
fn s35_extend_keeps_votes_of_the_round_before() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Acquired(0), Fault::Cut(link(0, 1), Way::Both))
        .on(Hook::Acquired(0), Fault::Cut(link(0, 2), Way::Both))
        .act(s(3), 0, extend(s(4)))
        .acts_on(Hook::Granted(2), 1, ms(4_010), 1, lock(s(4)));
    let it = safe(&script);
    it.check_eq((it.count(renewed(0)), it.count(not_extended(0))), (0, 1));
    assert_eq!(it.windows(1).len(), 1);
    breaks(&script.with(Bug::VotesKept), ViolationKind::Exclusion);
}

/// The reply of node 2 to one extension comes during the next one, whose request to node 2 is lost. Counted there it would make
/// the lock longer than node 2 holds it.
#[test]
fn s35_reply_of_the_round_before_has_no_vote() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .at(ms(1_990), Fault::Late(link(0, 2), Way::Replies, 1, ms(245)))
        .act(s(2), 0, extend(s(4)))
        .at(ms(2_220), Fault::Drop(link(0, 2), Way::Requests, 1))
        .act(ms(2_230), 0, extend(s(4)))
        .act(ms(6_020), 1, lock(s(4)).into());
    let it = safe(&script);
    let extended = |event: &Event| matches!(event, Event::Extended { node: 2, .. });
    it.happens(extended, 1);
    it.check_eq(
        (it.counters.of("lost-request"), it.count(renewed(0))),
        (1, 0),
    );
    it.check(it.window(0).until < it.window(1).from);
}

/// Nodes hold a lock for a little longer than its holder believes in it. In between it must not come to life again.
#[test]
fn s36_extend_after_the_validity_has_ended() {
    let mut script =
        Scenario::new(setup())
            .act(s(1), 0, lock(s(4)).into())
            .act(ms(4_700), 0, extend(s(4)));
    script.setup.drift_constant = ms(500);
    let it = safe(&script);
    let window = it.window(0);
    assert!(window.until < ms(4_500).into(), "{window:?}");
    it.happens(lost(0), 1);
    assert_eq!((it.count(renewed(0)), window.extensions), (0, 0));
    let late = breaks(&script.with(Bug::ExtendAfterEnd), ViolationKind::Continuity);
    let until = late
        .history
        .entries
        .iter()
        .find_map(|entry| match entry.event {
            Event::Acquired { valid_until, .. } => Some(valid_until),
            _ => None,
        });
    assert!(
        Some(late.first(renewed(0))) > until,
        "it is resurrected: {}",
        late.story()
    );
}

/// Nodes 1 and 2 forget the lock of client 0, client 1 holds it and lets it go, and then client 0 extends.
#[test]
fn s37_extend_or_set() {
    let script = split()
        .act(s(1), 0, lock(s(4)).write_every(ms(100)).into())
        .on(Hook::Acquired(0), Fault::Crash(1, Crash::Kill))
        .on(Hook::Acquired(0), Fault::Crash(2, Crash::Kill))
        .after(Hook::Down(2), ms(5), Fault::Restart(1))
        .after(Hook::Down(2), ms(5), Fault::Restart(2))
        .act(
            ms(1_500),
            1,
            lock(s(4)).hold(ms(300)).write_every(ms(100)).into(),
        )
        .act(s(2), 0, extend(s(4)));
    // Nothing is promised without a guard; still an extension does not make a lock anew.
    let it = costs(&script.guarded(GuardMode::Off), ViolationKind::Exclusion);
    it.check_eq(it.windows(1).len(), 1);
    it.happens(renewed(0), 0);
    assert!(!it.has(ViolationKind::Continuity));
    it.assert_fenced();
    let again = script.guarded(GuardMode::Off).with(Bug::ExtendOrSet);
    let again = play(&again);
    again.check(again.count(renewed(0)) > 0);
    again.check(again.has(ViolationKind::Continuity));
    // With one nobody else can have held it, and what was lost is still no vote.
    let it = safe(&script);
    it.check_eq((it.windows(1).len(), it.count(renewed(0))), (0, 0));
}

/// Node 3 lost the key and serves again. The extension that finds it missing gives it back, and does not count it; the next
/// one does.
#[test]
fn s37_healed_node_has_no_vote_in_that_round() {
    let long = lock(s(4)).extend_every(ms(900)).hold(s(9));
    let script = Scenario::new(setup())
        .cut(0, [4])
        .act(s(1), 0, long.into())
        .on(Hook::Acquired(0), Fault::Crash(3, Crash::Kill))
        .after(Hook::Down(3), ms(5), Fault::Restart(3));
    let it = safe(&script);
    let (back, healed) = (it.serves_again(3), it.last(granted(3, 0)));
    it.check(healed > back);
    let first_vote = it.first(|event| matches!(event, Event::Extended { node: 3, .. }));
    it.check(first_vote > healed);
    assert!(it.window(0).extensions >= 6);
    // Without node 2 the healing would be the third vote.
    let without = script.breaks_on(Hook::Serving(3), 1, NOW, Fault::Cut(link(0, 2), Way::Both));
    let it = safe(&without);
    assert_eq!(
        it.count(granted(3, 0)),
        1,
        "no majority, no healing: {}",
        it.story()
    );
    let serving = it.serves_again(3);
    it.check(it.times(renewed(0)).iter().all(|at| *at < serving));
    it.check(it.count(not_extended(0)) > 0 && it.count(lost(0)) == 1);
    let again = play(&without.with(Bug::ExtendOrSet));
    again.check(again.times(renewed(0)).iter().any(|at| *at > serving));
}

/// Both are under way at the same time, in either order and close to each other.
#[test]
fn s38_extend_races_release() {
    for apart in [0, 500, 1_000, 1_500, 2_000, 2_500, 4_000] {
        for extend_first in [true, false] {
            let (first, second) = (s(2), s(2) + Duration::from_micros(apart));
            let (extension, ending) = if extend_first {
                (first, second)
            } else {
                (second, first)
            };
            let script = Scenario::new(setup())
                .act(s(1), 0, lock(s(4)).into())
                .act(extension, 0, extend(s(4)))
                .act(ending, 0, release())
                .act(second + ms(10), 1, lock(s(4)).into());
            let it = safe(&script);
            for node in 0..5 {
                let extended =
                    |event: &Event| matches!(*event, Event::Extended { node: n, .. } if n == node);
                let (gone, extended) = (it.first(freed(node)), it.times(extended));
                it.check_eq(extended.len(), usize::from(extension <= ending));
                assert!(
                    extended.iter().all(|at| *at <= gone),
                    "{apart}: {}",
                    it.story()
                );
            }
            assert_eq!(
                it.windows(1).len(),
                1,
                "{apart} {extend_first}: {}",
                it.story()
            );
        }
    }
}

/// A crash of the client between two extensions: the others wait for one TTL, not for ever.
#[test]
fn s39_extensions_end_with_their_holder() {
    let busy = lock(s(2))
        .extend_every(ms(500))
        .hold(s(6))
        .ending(Ending::Leave);
    let script = Scenario::new(setup()).act(s(1), 0, busy.into()).act(
        s(1) + ms(10),
        1,
        lock(s(2)).tries(80).into(),
    );
    let it = safe(&script);
    let (held, next) = (it.window(0), it.window(1));
    assert!(held.extensions >= 10, "{held:?}");
    let last = it.last(|event| matches!(event, Event::Extended { .. }));
    let wait = next.from.since(last);
    assert!(wait <= ms(2_020) + ms(600), "{wait:?}");
}

/// Client 0 reaches nodes 0, 1 and 2 and holds a lock for ten seconds. It extends it to two, which comes to nodes 1 and 2 three
/// seconds late; then to ten again, over new connections, which succeeds on all three nodes. When the late ones have come and
/// nodes 1 and 2 have let the lock go, client 1 wants it of them and of nodes 3 and 4.
///
/// What the client promises (`core/voting.rs`, `Operation::doubtful`): where a shorter extension may still be under way, a longer
/// one has no vote. So the lock is as short as it was made, and ends before any node lets it go.
fn shortened(late: impl Fn(Scenario, Links) -> Scenario) -> Scenario {
    let script = Scenario::new(setup())
        .cut(0, [3, 4])
        .act(s(1), 0, lock(s(10)).into());
    late(script, Links::between(0, [1, 2]))
        .act(s(2), 0, extend(s(2)))
        .act(ms(3_400), 0, extend(s(10)))
        .act(s(7) + ms(50), 1, lock(s(2)).hold(s(1)).into())
}

/// Nodes 0, 1 and 2 made the lock longer and the holder did not believe them; it was lost as if there had been only the shorter
/// one, and released.
fn ends_as_the_shorter_one(it: &Outcome) {
    let longer =
        |event: &Event| matches!(*event, Event::Extended { ends, .. } if ends > s(13).into());
    it.happens(longer, 3);
    it.check(it.last(longer) < ms(3_500).into());
    let held = it.window(0);
    assert!(held.until < s(4).into(), "{held:?}: {}", it.story());
    it.happens(lost(0), 1);
    it.check_eq(it.windows(1).len(), 1);
}

/// The shorter one has failed for want of a reply when the client gives the connections up.
#[test]
fn s61_shorter_extension_that_timed_out_comes_after_a_longer_one() {
    let script =
        shortened(|script, links| script.at(ms(1_900), Fault::Late(links, Way::Requests, 1, s(3))));
    let it = safe(&script);
    let counts = (it.count(renewed(0)), it.count(not_extended(0)));
    it.check_eq(counts, (0, 2));
    ends_as_the_shorter_one(&it);
}

/// The connections break while the shorter one waits for its replies; a copy of it is under way elsewhere.
#[test]
fn s61_shorter_extension_of_a_broken_connection_comes_after_a_longer_one() {
    let script = shortened(|script, links| {
        script
            .at(ms(1_900), Fault::Duplicate(links, 1))
            .at(ms(1_900), Fault::Late(links, Way::Requests, 1, s(3)))
            .at(ms(1_900), Fault::Drop(links, Way::Requests, 1))
            .at(ms(2_100), Fault::Reset(links))
    });
    let it = safe(&script);
    let counts = (it.count(renewed(0)), it.count(not_extended(0)));
    it.check_eq(counts, (0, 2));
    ends_as_the_shorter_one(&it);
}

/// The shorter one has succeeded on nodes 0, 3 and 4 when the other connections break, and with them what nodes 1 and 2 owe. Of
/// the longer one nodes 3 and 4 hear nothing.
#[test]
fn s61_shorter_extension_that_succeeded_elsewhere_comes_after_a_longer_one() {
    let late = Links::between(0, [1, 2]);
    let script = Scenario::new(setup())
        .act(s(1), 0, lock(s(10)).into())
        .at(ms(1_900), Fault::Duplicate(late, 1))
        .at(ms(1_900), Fault::Late(late, Way::Requests, 1, s(3)))
        .at(ms(1_900), Fault::Drop(late, Way::Requests, 1))
        .act(s(2), 0, extend(s(2)))
        .at(ms(2_100), Fault::Reset(late))
        .at(ms(2_100), Fault::Cut(Links::between(0, [3, 4]), Way::Both))
        .act(ms(3_400), 0, extend(s(10)))
        .act(s(7) + ms(50), 1, lock(s(2)).hold(s(1)).into());
    let it = safe(&script);
    assert_eq!(it.count(renewed(0)), 1, "the shorter: {}", it.story());
    assert_eq!(it.count(not_extended(0)), 1, "the longer: {}", it.story());
    ends_as_the_shorter_one(&it);
}

/// A caller that asks for two TTLs in turn: the lock is shorter from the moment that it asks, and longer when a majority has said
/// so.
#[test]
fn s61_extensions_to_two_ttls_in_turn() {
    let busy = lock(s(4))
        .extend_every(ms(500))
        .extend_to(ms(1_500))
        .hold(s(6));
    let script = Scenario::new(setup()).act(s(1), 0, busy.into()).act(
        s(2),
        1,
        lock(s(2)).tries(80).hold(ms(10)).into(),
    );
    let it = safe(&script);
    assert!(
        it.counters.of("extension-to-another-ttl") >= 5,
        "{:?}",
        it.counters
    );
    let mut ends = it.history.entries.iter().filter_map(|entry| {
        let is_his = renewed(0)(&entry.event);
        match entry.event {
            Event::Validity { valid_until, .. } if is_his => Some(valid_until.since(entry.at)),
            _ => None,
        }
    });
    let (mut longer, mut shorter) = (ends.next(), ends.next());
    while let (Some(long), Some(short)) = (longer, shorter) {
        assert!(long > s(3) && short < ms(1_500), "{long:?} {short:?}");
        (longer, shorter) = (ends.next(), ends.next());
    }
    let (held, next) = (it.window(0), it.window(1));
    assert!(held.extensions >= 10, "{held:?}");
    it.check(held.until >= s(7).into() && next.from > held.until);
}

/// The client renews a lock on its own for ten TTLs, while a node crashes and is in quarantine, and not any longer. The node
/// that lost it has it again before it is over.
#[test]
fn s62_renewal_through_a_crash_up_to_its_bound() {
    let script = Scenario::new(setup())
        .act(
            s(1),
            0,
            lock(s(1)).renew_every(ms(300)).renew_for(s(10)).into(),
        )
        .at(s(3), Fault::Crash(2, Crash::Kill))
        .after(Hook::Down(2), ms(5), Fault::Restart(2))
        .act(s(2), 1, lock(s(1)).tries(80).hold(ms(10)).into());
    let it = safe(&script);
    let (held, next) = (it.window(0), it.window(1));
    assert!(held.extensions >= 30, "{held:?}");
    assert_eq!(it.counters.of("renewed"), held.extensions as u64);
    let lasts = held.until.since(held.called);
    assert!(
        lasts > ms(9_800) && lasts <= s(10),
        "{lasts:?}: {}",
        it.story()
    );
    it.happens(lost(0), 1);
    it.happens(not_extended(0), 0);
    let back = it.serves_again(2);
    it.check(it.last(granted(2, 0)) > back);
    it.check(next.from > held.until);
    assert!(
        next.from.since(held.until) < ms(700),
        "nobody waits for longer: {}",
        it.story()
    );
}

/// A renewal that finds no majority is tried again soon, and the lock is lost when its time is over and not before.
#[test]
fn s62_renewal_without_a_majority() {
    let cut = Fault::Cut(Links::between(0, [0, 1, 2]), Way::Both);
    let script = Scenario::new(setup())
        .act(s(1), 0, lock(s(2)).renew_every(ms(600)).into())
        .at(s(5), cut)
        .act(s(5), 1, lock(s(1)).tries(80).hold(ms(10)).into());
    let it = safe(&script);
    let (held, next) = (it.window(0), it.window(1));
    let last = it.last(renewed(0));
    it.check(last < ms(5_010).into());
    it.check(it.count(not_extended(0)) >= 2);
    it.happens(lost(0), 1);
    it.check(held.until.since(last) > ms(1_800));
    it.check(next.from > held.until);
}

fn extend(ttl: Duration) -> ClientAction {
    ClientAction::Extend {
        key: "k".into(),
        ttl,
    }
}

fn release() -> ClientAction {
    ClientAction::Release { key: "k".into() }
}

fn everywhere(client: u8) -> Links {
    Links::between(client, [0, 1, 2, 3, 4])
}

/// A job that is done in no time is not done again before its time is over.
#[test]
fn s72_key_that_is_kept_after_its_release() {
    let brief = lock(s(4)).hold(ms(5)).at_least(s(3));
    let script = split()
        .act(s(1), 0, brief.into())
        .acts_on(Hook::Releases(0), 1, SOON, 1, lock(s(4)))
        .act(s(5), 1, lock(s(4)).into());
    let kept = |event: &Event| matches!(event, Event::Kept { client: 0, .. });
    let it = safe(&script);
    it.happens(kept, 1);
    it.happens(failed(1), 1);
    it.check_eq(it.windows(1).len(), 1);
    let script = script
        .after(Hook::Releases(0), ms(10), Fault::Crash(2, Crash::Kill))
        .after(Hook::Down(2), ms(1), Fault::Restart(2));
    let it = safe(&script);
    it.happens(kept, 1);
    breaks(&script.with(Bug::QuarantineOff), ViolationKind::Exclusion);
}
