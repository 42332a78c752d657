//! What a client may get wrong while it acquires: validity, tokens, quorums, replies.

use std::time::Duration;

use locknode_testkit::history::Event;
use locknode_testkit::{Bug, Fault, Hook, LockAction, Scenario, ViolationKind, Way, Who};
use redlock_proto::{Drift, Quorum, Time};

use crate::outcome::*;
use crate::script::*;

/// The first attempt gets nodes 0, 1 and 2, the reply of node 2 is lost, and another attempt follows. Client 1 wants the lock
/// of nodes 2, 3 and 4 when the grant of the first has ended there.
#[test]
fn s19_same_value_used_again_by_a_retry() {
    let script = split()
        .act(s(1), 0, lock(s(4)).tries(2).into())
        .on(Hook::Granted(2), Fault::Drop(link(0, 2), Way::Replies, 1))
        .acts_on(Hook::Granted(2), 1, ms(4_010), 1, lock(s(4)));
    let it = safe(&script);
    it.check_eq(it.counters.of("lost-reply"), 1);
    let mut attempts = Vec::new();
    for entry in &it.history.entries {
        if let Event::Granted {
            node: 0, attempt, ..
        } = entry.event
        {
            attempts.push(attempt);
        }
    }
    it.check_eq(attempts.len(), 2);
    assert_ne!(attempts[0], attempts[1], "a token for each attempt");
    assert_eq!(it.windows(1).len(), 1);
    let again = breaks(&script.with(Bug::TokenReused), ViolationKind::Exclusion);
    assert_eq!(
        again.count(granted(2, 0)),
        1,
        "its second attempt found the key of the first"
    );
}

/// The reply of node 2 takes most of the time that the client gives it.
#[test]
fn s26_validity_from_the_reply() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .on(
            Hook::Granted(2),
            Fault::Late(link(0, 2), Way::Replies, 1, ms(200)),
        )
        .acts_on(Hook::Granted(2), 1, ms(4_010), 1, lock(s(4)));
    let it = safe(&script);
    let (late, window) = (it.first(acquired(0)), it.window(0));
    it.check(late.since(it.first(granted(2, 0))) > ms(200));
    assert!(window.until <= window.called + ms(4_000 - 42), "{window:?}");
    assert_eq!(it.windows(1).len(), 1);
    breaks(
        &script.with(Bug::ValidityFromReply),
        ViolationKind::Exclusion,
    );
}

#[test]
fn s27_drift_sign_error() {
    let script = split().act(s(1), 0, lock(s(4)).into()).acts_on(
        Hook::Granted(2),
        1,
        ms(4_001),
        1,
        lock(s(4)),
    );
    let it = safe(&script);
    it.check_eq(it.windows(1).len(), 1);
    breaks(&script.with(Bug::DriftAdded), ViolationKind::Exclusion);
    let start = Time::from_nanos(1_000_000_000);
    for (ppm, constant, ttl, drift) in [
        (10_000, ms(2), s(10), ms(102)),
        (10_000, ms(2), ms(100), ms(3)),
        (0, ms(2), s(10), ms(2)),
        (83_333, ms(0), s(3), Duration::from_micros(249_999)),
        (1_000_000, ms(0), s(3), s(3)),
    ] {
        let allowed = Drift::new(ppm, constant);
        assert_eq!(allowed.of(ttl), drift, "{ppm} {constant:?} {ttl:?}");
        assert_eq!(allowed.valid_until(start, ttl), start + (ttl - drift));
    }
}

/// The process stands still for two TTLs before it reads the replies.
#[test]
fn s28_acquired_when_it_had_already_expired() {
    let script = split()
        .act(s(1), 0, lock(s(2)).into())
        .on(Hook::Granted(2), Fault::Pause(Who::Client(0), s(4)))
        .acts_on(Hook::Granted(2), 1, ms(2_010), 1, lock(s(2)).hold(ms(100)))
        .acts_on(Hook::Failed(0), 1, ms(100), 1, lock(s(2)));
    let is_over = |it: &Outcome| {
        let mut entries = it.history.entries.iter();
        entries.any(|entry| match entry.event {
            Event::Acquired {
                client: 0,
                valid_until,
                ..
            } => valid_until <= entry.at,
            _ => false,
        })
    };
    let it = safe(&script);
    it.happens(failed_for(0, "expired"), 1);
    assert!(it.windows(0).is_empty());
    assert_eq!(it.windows(1).len(), 2, "nothing is left of it");
    let unchecked = breaks(&script.with(Bug::ValidityUnchecked), ViolationKind::Expired);
    assert!(
        is_over(&unchecked),
        "it is handed out: {}",
        unchecked.story()
    );
    assert!(!is_over(&it));
}

/// The reply to a grant is lost. The node is told to let it go all the same.
#[test]
fn s29_lost_reply() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Granted(2), Fault::Drop(link(0, 2), Way::Replies, 1))
        .acts_on(Hook::Freed(2), 1, ms(1), 1, lock(s(4)));
    let it = safe(&script);
    it.happens(failed_for(0, "no-quorum"), 1);
    let wait = it.between(granted(2, 0), freed(2));
    assert!(wait < s(2), "much sooner than its TTL: {wait:?}");
    it.check(it.window(1).from < it.ends(2, 0));
    // What cannot be told ends by itself.
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Granted(2), Fault::Cut(link(0, 2), Way::Both))
        .acts_on(Hook::Failed(0), 1, ms(1), 1, lock(s(4)).tries(40));
    let it = safe(&script);
    it.check(it.first(freed(2)) > it.first(acquired(1)));
    let wait = it.window(1).from.since(it.first(granted(2, 0)));
    assert!(wait >= s(4) && wait < s(4) + ms(600), "{wait:?}");
}

/// A majority is one of the nodes that are configured, not of those that answer, and more than half of them.
#[test]
fn s41_wrong_quorum_arithmetic() {
    for nodes in 1..=16 {
        let quorum = Quorum::of(nodes).expect("a number of nodes");
        assert_eq!(quorum.needed(), nodes / 2 + 1);
        assert!(2 * quorum.needed() > nodes, "any two share a node");
        assert_eq!(quorum.spare(), nodes - quorum.needed());
    }
    assert!(Quorum::of(0).is_none() && Quorum::of(17).is_none());

    let even = |nodes| {
        let mut script = Scenario::new(setup()).cut(0, [2, 3]).cut(1, [0, 1]);
        script.setup.nodes = nodes;
        script
            .act(s(1), 0, lock(s(4)).into())
            .act(s(2), 1, lock(s(4)).into())
    };
    let it = safe(&even(4));
    it.check_eq(it.history.windows().len(), 0);
    assert_eq!((it.count(failed(0)), it.count(failed(1))), (1, 1));
    breaks(&even(4).with(Bug::HalfIsQuorum), ViolationKind::Exclusion);

    let few = Scenario::new(setup())
        .cut(0, [2, 3, 4])
        .cut(1, [0, 1])
        .act(
            ms(500),
            0,
            LockAction::new("before", s(4)).hold(ms(10)).into(),
        )
        .act(s(1), 0, lock(s(4)).into())
        .act(s(2), 1, lock(s(4)).into());
    let it = safe(&few);
    it.check_eq((it.windows(0).len(), it.windows(1).len()), (0, 1));
    breaks(&few.with(Bug::QuorumOfReachable), ViolationKind::Exclusion);
}

/// A reply comes when nobody waits for it any more, and another request does.
#[test]
fn s45_reply_matched_to_the_wrong_request() {
    let script = split()
        .act(s(1), 1, lock(s(4)).into())
        .act(s(2), 0, LockAction::new("other", s(4)).into())
        .breaks_on(
            Hook::Granted(2),
            2,
            NOW,
            Fault::Late(link(0, 2), Way::Replies, 1, ms(600)),
        )
        .act(ms(2_560), 0, lock(s(4)).into());
    let it = safe(&script);
    assert_eq!(it.count(granted(2, 0)), 1, "`other`: {}", it.story());
    it.happens(failed(0), 2);
    assert!(it.windows(0).is_empty());
    breaks(&script.with(Bug::RepliesMixedUp), ViolationKind::Exclusion);
}

/// The late reply itself has no vote.
#[test]
fn s45_late_reply_has_no_vote() {
    let script = split().act(s(1), 0, lock(s(4)).into()).on(
        Hook::Granted(2),
        Fault::Late(link(0, 2), Way::Replies, 1, ms(400)),
    );
    let it = safe(&script);
    it.happens(answered(2, 0), 1);
    assert!(it.windows(0).is_empty());
    assert_eq!(it.count(freed(2)), 1, "and what it granted is released");
}

/// A client's process ends in the middle of acquiring, and while it holds; see also `s56` for how long that takes.
#[test]
fn s58_acquire_that_is_given_up() {
    let script = split()
        .act(s(1), 0, lock(s(4)).into())
        .on(Hook::Granted(2), Fault::CrashClient(0))
        .acts_on(Hook::Granted(2), 1, SOON, 1, lock(s(4)).tries(40));
    let it = safe(&script);
    assert!(it.windows(0).is_empty());
    let wait = it.window(1).from.since(it.first(granted(2, 0)));
    assert!(
        wait >= s(4) && wait < s(4) + ms(600),
        "{wait:?}: {}",
        it.story()
    );
}
