//! Each mistake does harm where the client without it does none.

use std::time::Duration;

use crate::bug::Bug;
use crate::sim::notice::ClientNotice;
use crate::sim::plain::PlainTerms;
use crate::sim::plain::tests::cluster::{Cluster, Way, ms, terms};

#[test]
fn every_mistake_does_harm_and_nothing_else_does() {
    let rows: [(Bug, DoesHarm); 15] = [
        (Bug::ValidityFromReply, replies_that_take_long),
        (Bug::DriftAdded, the_moment_after_the_ttl),
        (Bug::ValidityUnchecked, replies_after_the_ttl),
        (Bug::VotesKept, an_extension_that_one_node_hears_of),
        (Bug::ReleaseWithoutCompare, a_second_try),
        (Bug::SharedToken, a_second_try),
        (Bug::ExtendWithoutCompare, an_extension_of_anothers_lock),
        (Bug::TokenReused, an_attempt_that_half_succeeded),
        (Bug::ExtendOrSet, an_extension_after_another_held_it),
        (Bug::ExtendAfterEnd, an_extension_after_the_end),
        (Bug::QuorumOfReachable, a_cluster_in_two_parts),
        (Bug::HalfIsQuorum, two_nodes_for_each),
        (Bug::MaxOnly, counters_that_differ),
        (Bug::MaxOnly, counters_that_differ_less),
        (Bug::RepliesMixedUp, replies_to_an_attempt_before),
    ];
    for (bug, does_harm) in rows {
        assert!(does_harm(Some(bug)), "{bug}");
        assert!(!does_harm(None), "the scenario of {bug} without it");
    }
    let has_row = |bug: &Bug| rows.iter().any(|(row, _)| row == bug);
    let mut clients = Bug::ALL.into_iter().filter(|bug| bug.is_clients());
    // That one is in the clock that the client is told, not in the client.
    assert!(clients.all(|bug| has_row(&bug) || bug == Bug::SleepyClock));
}

fn replies_that_take_long(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, patient(ms(1_000)));
    cluster.advance(ms(300));
    cluster.set_ways(0, [Way::Open; 3]);
    assert!(cluster.holds(0));
    cluster.advance(ms(701));
    cluster.acquire_now(1);
    cluster.do_both_hold()
}

fn the_moment_after_the_ttl(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    cluster.acquire_now(0);
    cluster.advance(ms(1_001));
    cluster.acquire_now(1);
    cluster.do_both_hold()
}

/// Harm is that the lock is handed out.
fn replies_after_the_ttl(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 1, bug);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, patient(ms(100)));
    cluster.advance(ms(200));
    cluster.set_ways(0, [Way::Open; 3]);
    let said = cluster.said(0);
    let is_acquired = |notice: &ClientNotice| matches!(notice, ClientNotice::Acquired { .. });
    said.iter().any(is_acquired)
}

fn an_extension_that_one_node_hears_of(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(900));
    cluster.set_ways(0, [Way::Open, Way::Silent, Way::Silent]);
    cluster.extend(0, lock, ms(1_000));
    cluster.advance(ms(101));
    cluster.acquire_now(1);
    cluster.do_both_hold()
}

fn a_second_try(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    cluster.acquire_now(0);
    cluster.acquire(1, terms(2));
    cluster.advance(ms(100));
    cluster.do_both_hold()
}

/// Its clock is slow, so that it extends in good faith; harm is that it may.
fn an_extension_of_anothers_lock(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(500));
    cluster.slow_clock(0, ms(501));
    cluster.advance(ms(501));
    cluster.acquire_now(1);
    cluster.extend(0, lock, ms(1_000));
    cluster.do_both_hold()
}

fn an_attempt_that_half_succeeded(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    cluster.set_ways(0, [Way::Open, Way::Silent, Way::Silent]);
    let wanted = PlainTerms {
        timeout: ms(300),
        tries: 2,
        ..terms(2)
    };
    cluster.acquire(0, wanted);
    cluster.advance(ms(299));
    cluster.set_ways(0, [Way::Open, Way::Open, Way::Silent]);
    cluster.advance(ms(500));
    assert!(cluster.holds(0));
    // Since the first attempt a TTL has passed, since the second it has not.
    cluster.advance(ms(202));
    cluster.acquire(1, terms(1));
    cluster.do_both_hold()
}

/// Harm is that an extension goes through although another had the lock in between.
fn an_extension_after_another_held_it(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    let lock = cluster.acquire_now(0);
    cluster.restart(1);
    cluster.restart(2);
    cluster.advance(ms(30));
    let other = cluster.acquire_now(1);
    cluster.release(1, other);
    cluster.extend(0, lock, ms(1_000));
    cluster.holds(0)
}

/// Harm is that it goes through.
fn an_extension_after_the_end(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 1, bug);
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(990));
    cluster.extend(0, lock, ms(1_000));
    cluster.holds(0)
}

fn a_cluster_in_two_parts(bug: Option<Bug>) -> bool {
    use Way::{Open, Refused};
    let mut cluster = Cluster::new(5, 2, bug);
    cluster.set_ways(0, [Open, Open, Open, Refused, Refused]);
    cluster.set_ways(1, [Refused, Refused, Refused, Open, Open]);
    cluster.acquire_now(0);
    cluster.acquire(1, terms(1));
    cluster.advance(ms(100));
    cluster.do_both_hold()
}

fn two_nodes_for_each(bug: Option<Bug>) -> bool {
    use Way::{Open, Silent};
    let mut cluster = Cluster::new(5, 2, bug);
    cluster.set_ways(0, [Open, Open, Silent, Silent, Silent]);
    cluster.set_ways(1, [Silent, Silent, Open, Open, Silent]);
    cluster.acquire(0, terms(1));
    cluster.acquire(1, terms(1));
    cluster.advance(ms(100));
    cluster.do_both_hold()
}

/// Harm is a later lock with a lower number.
fn counters_that_differ(bug: Option<Bug>) -> bool {
    let (first, second) = two_locks(bug, 3);
    second < first
}

/// Harm is a later lock with the same number.
fn counters_that_differ_less(bug: Option<Bug>) -> bool {
    let (first, second) = two_locks(bug, 1);
    second == first
}

/// The fencing tokens of two locks, one after the other, of which each lacks a node, after so many other locks that
/// only the first node knows of.
fn two_locks(bug: Option<Bug>, others: u32) -> (u64, u64) {
    let mut cluster = Cluster::new(3, 2, bug);
    for _ in 0..others {
        cluster.tell(0, "LOCK.ACQUIRE key other 1000");
        cluster.tell(0, "DEL key");
    }
    cluster.set_ways(0, [Way::Open, Way::Open, Way::Silent]);
    cluster.set_ways(1, [Way::Silent, Way::Open, Way::Open]);
    let lock = cluster.acquire_now(0);
    cluster.release(0, lock);
    cluster.acquire_now(1);
    (cluster.fence(0).0, cluster.fence(1).0)
}

fn replies_to_an_attempt_before(bug: Option<Bug>) -> bool {
    let mut cluster = Cluster::new(3, 2, bug);
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, terms(2));
    // The attempt fails at 50 ms. It is released, which is not confirmed either until 100 ms.
    cluster.advance(ms(101));
    cluster.acquire_now(1);
    cluster.advance(ms(48));
    cluster.set_ways(0, [Way::Open; 3]);
    cluster.do_both_hold()
}

/// Whether a scenario comes to harm, with a mistake or without.
type DoesHarm = fn(Option<Bug>) -> bool;

/// One attempt with much time for the nodes.
fn patient(ttl: Duration) -> PlainTerms {
    PlainTerms {
        ttl,
        timeout: ms(400),
        ..terms(1)
    }
}
