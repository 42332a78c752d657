//! Each mistake does harm where the client without it does none.

use std::time::Duration;

use crate::bug::Bug;
use crate::sim::plain::PlainTerms;
use crate::sim::plain::tests::cluster::{Cluster, Way, ms, terms};

#[test]
fn every_mistake_does_harm_and_nothing_else_does() {
    let rows: [(Bug, u8, DoesHarm); 15] = [
        (Bug::ValidityFromReply, 3, replies_that_take_long),
        (Bug::DriftAdded, 3, the_moment_after_the_ttl),
        (Bug::ValidityUnchecked, 3, replies_after_the_ttl),
        (Bug::VotesKept, 3, an_extension_that_one_node_hears_of),
        (Bug::ReleaseWithoutCompare, 3, a_second_try),
        (Bug::SharedToken, 3, a_second_try),
        (Bug::ExtendWithoutCompare, 3, an_extension_of_anothers_lock),
        (Bug::TokenReused, 3, an_attempt_that_half_succeeded),
        (Bug::ExtendOrSet, 3, an_extension_after_another_held_it),
        (Bug::ExtendAfterEnd, 3, an_extension_after_the_end),
        (Bug::QuorumOfReachable, 5, a_cluster_in_two_parts),
        (Bug::HalfIsQuorum, 5, two_nodes_for_each),
        (Bug::MaxOnly, 3, counters_that_differ),
        (Bug::MaxOnly, 3, counters_that_differ_less),
        (Bug::RepliesMixedUp, 3, replies_to_an_attempt_before),
    ];
    for (bug, nodes, does_harm) in rows {
        assert!(does_harm(Cluster::new(nodes, 2, Some(bug))), "{bug}");
        let is_harmed = does_harm(Cluster::new(nodes, 2, None));
        assert!(!is_harmed, "the scenario of {bug} without it");
    }
    let has_row = |bug: &Bug| rows.iter().any(|(row, ..)| row == bug);
    let mut clients = Bug::ALL.into_iter().filter(|bug| bug.is_clients());
    // The first is in the clock that the client is told, not in the client; the others are of hashes, and have scenarios.
    let others = [Bug::SleepyClock, Bug::Unwatched, Bug::InnerReleaseFrees];
    assert!(clients.all(|bug| has_row(&bug) || others.contains(&bug)));
}

fn replies_that_take_long(mut cluster: Cluster) -> bool {
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, patient(ms(1_000)));
    cluster.advance(ms(300));
    cluster.set_ways(0, [Way::Open; 3]);
    assert!(cluster.holds(0));
    cluster.advance(ms(701));
    cluster.acquire_now(1);
    cluster.do_both_hold()
}

fn the_moment_after_the_ttl(mut cluster: Cluster) -> bool {
    cluster.acquire_now(0);
    cluster.advance(ms(1_001));
    cluster.acquire_now(1);
    cluster.do_both_hold()
}

/// Harm is that the lock is handed out.
fn replies_after_the_ttl(mut cluster: Cluster) -> bool {
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, patient(ms(100)));
    cluster.advance(ms(200));
    cluster.set_ways(0, [Way::Open; 3]);
    let said = cluster.said(0);
    said.iter().any(|words| words.contains("acquired"))
}

fn an_extension_that_one_node_hears_of(mut cluster: Cluster) -> bool {
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(900));
    cluster.set_ways(0, [Way::Open, Way::Silent, Way::Silent]);
    cluster.extend(0, lock, ms(1_000));
    cluster.advance(ms(101));
    cluster.acquire_now(1);
    cluster.do_both_hold()
}

fn a_second_try(mut cluster: Cluster) -> bool {
    cluster.acquire_now(0);
    cluster.acquire(1, terms(2));
    cluster.advance(ms(100));
    cluster.do_both_hold()
}

/// Its clock is slow, so that it extends in good faith; harm is that it may.
fn an_extension_of_anothers_lock(mut cluster: Cluster) -> bool {
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(500));
    cluster.side(0).behind += ms(501);
    cluster.advance(ms(501));
    cluster.acquire_now(1);
    cluster.extend(0, lock, ms(1_000));
    cluster.do_both_hold()
}

fn an_attempt_that_half_succeeded(mut cluster: Cluster) -> bool {
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
fn an_extension_after_another_held_it(mut cluster: Cluster) -> bool {
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
fn an_extension_after_the_end(mut cluster: Cluster) -> bool {
    let lock = cluster.acquire_now(0);
    cluster.advance(ms(990));
    cluster.extend(0, lock, ms(1_000));
    cluster.holds(0)
}

fn a_cluster_in_two_parts(mut cluster: Cluster) -> bool {
    use Way::{Open, Refused};
    cluster.set_ways(0, [Open, Open, Open, Refused, Refused]);
    cluster.set_ways(1, [Refused, Refused, Refused, Open, Open]);
    cluster.acquire_now(0);
    cluster.acquire(1, terms(1));
    cluster.advance(ms(100));
    cluster.do_both_hold()
}

fn two_nodes_for_each(mut cluster: Cluster) -> bool {
    use Way::{Open, Silent};
    cluster.set_ways(0, [Open, Open, Silent, Silent, Silent]);
    cluster.set_ways(1, [Silent, Silent, Open, Open, Silent]);
    cluster.acquire(0, terms(1));
    cluster.acquire(1, terms(1));
    cluster.advance(ms(100));
    cluster.do_both_hold()
}

/// Harm is a later lock with a lower number.
fn counters_that_differ(cluster: Cluster) -> bool {
    let (first, second) = two_locks(cluster, 3);
    second < first
}

/// Harm is a later lock with the same number.
fn counters_that_differ_less(cluster: Cluster) -> bool {
    let (first, second) = two_locks(cluster, 1);
    second == first
}

/// The fencing tokens of two locks, one after the other, each missing from one node, after `others` locks that only
/// the first node knows of.
fn two_locks(mut cluster: Cluster, others: u32) -> (u64, u64) {
    for _ in 0..others {
        cluster.raise_counter(0);
    }
    cluster.set_ways(0, [Way::Open, Way::Open, Way::Silent]);
    cluster.set_ways(1, [Way::Silent, Way::Open, Way::Open]);
    let lock = cluster.acquire_now(0);
    cluster.release(0, lock);
    cluster.acquire_now(1);
    (cluster.side(0).fence.0, cluster.side(1).fence.0)
}

fn replies_to_an_attempt_before(mut cluster: Cluster) -> bool {
    cluster.set_ways(0, [Way::RepliesHeld; 3]);
    cluster.acquire(0, terms(2));
    // The attempt fails at 50 ms. It is released, which is not confirmed either until 100 ms.
    cluster.advance(ms(101));
    cluster.acquire_now(1);
    cluster.advance(ms(48));
    cluster.set_ways(0, [Way::Open; 3]);
    cluster.do_both_hold()
}

/// Whether a scenario comes to harm, with clients that make a mistake or with others.
type DoesHarm = fn(Cluster) -> bool;

/// One attempt with much time for the nodes.
fn patient(ttl: Duration) -> PlainTerms {
    PlainTerms {
        ttl,
        timeout: ms(400),
        ..terms(1)
    }
}
