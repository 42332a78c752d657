//! Rounds at every boundary, and in every order of events against a model that keeps the whole history.

mod fencing;
mod order;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use crate::drift::Drift;
use crate::quorum::{NodeId, Quorum};
use crate::round::{
    AcquireRound, AcquireVerdict, Answer, ExtendRound, ExtendVerdict, Refusal, ReleaseRound,
    ReleaseVerdict, RoundId, Vote,
};
use crate::time::Time;

fn id(node: usize) -> NodeId {
    NodeId::new(node).unwrap()
}

fn ballot(node: usize) -> Vote {
    vote(ROUND.attempt, ROUND.round, node, 1)
}

/// A vote in any round, through any connection.
fn vote(attempt: u32, round: u32, node: usize, incarnation: u32) -> Vote {
    Vote {
        round: RoundId { attempt, round },
        node: id(node),
        incarnation,
    }
}

fn acquire(nodes: usize) -> AcquireRound {
    let quorum = Quorum::of(nodes).unwrap();
    let mut round = AcquireRound::new(ROUND, quorum, START, TTL, Drift::default(), TIMEOUT);
    (0..nodes).for_each(|node| round.ballot.asked(id(node), 1));
    round
}

fn extend(nodes: usize) -> ExtendRound {
    let quorum = Quorum::of(nodes).unwrap();
    let mut round = ExtendRound::new(ROUND, quorum, START, TTL, Drift::default(), TIMEOUT);
    (0..nodes).for_each(|node| round.ballot.asked(id(node), 1));
    round
}

fn release(nodes: usize) -> ReleaseRound {
    let mut round = ReleaseRound::new(ROUND, Quorum::of(nodes).unwrap(), START, TIMEOUT);
    (0..nodes).for_each(|node| round.ballot.asked(id(node), 1));
    round
}

/// Every way to split `nodes` nodes into those that say yes, no, fail and nothing.
fn splits(nodes: usize) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    (0..=nodes).flat_map(move |yes| {
        (0..=nodes - yes).flat_map(move |no| {
            (0..=nodes - yes - no).map(move |failed| (yes, no, failed, nodes - yes - no - failed))
        })
    })
}

fn answers(yes: usize, no: usize, failed: usize) -> impl Iterator<Item = (usize, Answer)> {
    let all = std::iter::repeat_n(Answer::Yes, yes)
        .chain(std::iter::repeat_n(Answer::No, no))
        .chain(std::iter::repeat_n(Answer::Failed, failed));
    all.enumerate()
}

#[test]
fn an_acquire_is_decided_by_a_majority_of_the_configured_nodes() {
    for nodes in 1..=16 {
        for (yes, no, failed, silent) in splits(nodes) {
            let mut round = acquire(nodes);
            for (node, answer) in answers(yes, no, failed) {
                assert!(round.on_vote(ballot(node), answer, None));
            }
            // In words other than the code's: more than half said yes; more than half can still.
            let expected = if 2 * yes > nodes {
                WON
            } else if 2 * (yes + silent) > nodes {
                AcquireVerdict::Pending { until: DEADLINE }
            } else if 2 * no > nodes {
                AcquireVerdict::Lost(Refusal::Busy)
            } else if 2 * (nodes - failed) <= nodes {
                AcquireVerdict::Lost(Refusal::NoQuorum)
            } else if silent > 0 {
                // Those that are missing decide which of the two it is.
                AcquireVerdict::Pending { until: DEADLINE }
            } else {
                AcquireVerdict::Lost(Refusal::Split)
            };
            let verdict = round.verdict(START);
            assert_eq!(
                verdict, expected,
                "{yes} yes, {no} no, {failed} failed of {nodes}"
            );
        }
    }
}

#[test]
fn an_extension_is_decided_by_a_majority_of_the_configured_nodes() {
    for nodes in 1..=16 {
        for (yes, no, failed, silent) in splits(nodes) {
            let mut round = extend(nodes);
            for (node, answer) in answers(yes, no, failed) {
                assert!(round.ballot.on_vote(ballot(node), answer));
            }
            let expected = if 2 * yes > nodes {
                ExtendVerdict::Extended { valid_until: END }
            } else if 2 * (nodes - no) <= nodes {
                // Whoever is not heard of may hold it; those that say no do not.
                ExtendVerdict::NotHeld
            } else if 2 * (yes + silent) > nodes {
                ExtendVerdict::Pending { until: DEADLINE }
            } else {
                ExtendVerdict::Failed
            };
            let verdict = round.verdict(START);
            assert_eq!(
                verdict, expected,
                "{yes} yes, {no} no, {failed} failed of {nodes}"
            );
        }
    }
}

#[test]
fn a_release_is_decided_when_a_majority_is_free_or_nobody_is_left() {
    for nodes in 1..=16 {
        for (yes, no, failed, silent) in splits(nodes) {
            let mut round = release(nodes);
            for (node, answer) in answers(yes, no, failed) {
                assert!(round.ballot.on_vote(ballot(node), answer));
            }
            let is_decided = 2 * (yes + no) > nodes || silent == 0;
            let expected = if is_decided {
                ReleaseVerdict::Decided
            } else {
                ReleaseVerdict::Pending { until: DEADLINE }
            };
            assert_eq!(round.verdict(), expected, "{yes} {no} {failed} of {nodes}");
            assert_eq!(
                (round.ballot.yes().len(), round.ballot.no().len()),
                (yes, no)
            );
        }
    }
}

#[test]
fn validity_ends_at_its_nanosecond_and_none_is_left_then() {
    for nodes in 1..=7 {
        let (mut acquired, mut extended) = (acquire(nodes), extend(nodes));
        for node in 0..nodes {
            acquired.on_vote(ballot(node), Answer::Yes, None);
            extended.ballot.on_vote(ballot(node), Answer::Yes);
        }
        let nano = Duration::from_nanos(1);
        for (now, is_valid) in [(END.minus(nano), true), (END, false), (END + nano, false)] {
            let (won, lasts) = if is_valid {
                (WON, ExtendVerdict::Extended { valid_until: END })
            } else {
                (
                    AcquireVerdict::Lost(Refusal::Expired),
                    ExtendVerdict::Failed,
                )
            };
            assert_eq!((acquired.verdict(now), extended.verdict(now)), (won, lasts));
        }
    }
}

#[test]
fn validity_counts_from_before_the_first_byte_whenever_the_answers_come() {
    for late in [0, 1, 100_000_000, 900_000_000] {
        let mut round = acquire(1);
        round.on_vote(ballot(0), Answer::Yes, None);
        let now = START + Duration::from_nanos(late);
        assert_eq!(round.verdict(now), WON);
    }
}

#[test]
fn a_ttl_within_the_drift_is_no_lock() {
    for ttl in [0, 1, 2] {
        let ttl = Duration::from_millis(ttl);
        let quorum = Quorum::of(1).unwrap();
        let mut round = AcquireRound::new(ROUND, quorum, START, ttl, Drift::default(), TIMEOUT);
        round.ballot.asked(id(0), 1);
        round.on_vote(ballot(0), Answer::Yes, None);
        assert_eq!(round.verdict(START), AcquireVerdict::Lost(Refusal::Expired));
    }
}

#[test]
fn a_vote_counts_for_its_round_its_connection_and_once() {
    assert_eq!(vote(3, 5, 0, 1), ballot(0), "which would count");
    let others = [
        vote(2, 5, 0, 1),
        vote(4, 5, 0, 1),
        vote(3, 4, 0, 1),
        vote(3, 6, 0, 1),
        vote(3, 5, 0, 0),
        vote(3, 5, 0, 2),
        vote(3, 5, 3, 1),
        vote(3, 5, 15, 1),
    ];
    for answer in [Answer::Yes, Answer::No, Answer::Failed] {
        let (mut acquired, mut extended, mut released) = (acquire(3), extend(3), release(3));
        for vote in others {
            assert!(!acquired.on_vote(vote, answer, None), "{vote:?}");
            assert!(!extended.ballot.on_vote(vote, answer), "{vote:?}");
            assert!(!released.ballot.on_vote(vote, answer), "{vote:?}");
        }
        assert_eq!(
            (acquired, extended, released),
            (acquire(3), extend(3), release(3))
        );
        let mut round = acquire(3);
        assert!(round.on_vote(ballot(1), answer, None));
        for again in [Answer::Yes, Answer::No, Answer::Failed] {
            let before = round.clone();
            assert!(!round.on_vote(ballot(1), again, None), "a second vote");
            assert_eq!(round, before);
        }
    }
}

#[test]
fn a_node_that_was_not_asked_has_no_vote() {
    let quorum = Quorum::of(3).unwrap();
    let mut round = AcquireRound::new(ROUND, quorum, START, TTL, Drift::default(), TIMEOUT);
    round.ballot.asked(id(0), 1);
    for incarnation in 0..3 {
        assert!(!round.on_vote(
            Vote {
                incarnation,
                ..ballot(1)
            },
            Answer::Yes,
            None
        ));
        assert!(!round.ballot.on_disconnected(id(1), incarnation));
    }
    assert!(round.ballot.yes().is_empty());
    assert!(round.ballot.on_unreachable(id(1)));
    assert!(!round.ballot.on_unreachable(id(1)), "fails once");
    assert!(
        !round.ballot.on_unreachable(id(3)),
        "is no node of the three"
    );
}

#[test]
fn a_yes_is_gone_with_its_connection_and_a_no_stays() {
    let mut round = acquire(3);
    for node in 0..2 {
        round.on_vote(ballot(node), Answer::Yes, None);
    }
    assert!(matches!(round.verdict(START), AcquireVerdict::Won { .. }));
    assert!(
        !round.ballot.on_disconnected(id(0), 2),
        "of another connection"
    );
    assert!(matches!(round.verdict(START), AcquireVerdict::Won { .. }));
    assert!(round.ballot.on_disconnected(id(0), 1));
    assert!(matches!(
        round.verdict(START),
        AcquireVerdict::Pending { .. }
    ));
    assert!(!round.ballot.on_disconnected(id(0), 1), "once");
    assert!(
        !round.on_vote(ballot(0), Answer::Yes, None),
        "a reply that was under way"
    );
    round.on_vote(ballot(2), Answer::No, None);
    assert!(
        !round.ballot.on_disconnected(id(2), 1),
        "it still does not grant it"
    );
    assert_eq!(round.ballot.no().len(), 1);
    assert_eq!(round.verdict(START), AcquireVerdict::Lost(Refusal::Split));

    let mut round = extend(1);
    round.ballot.on_vote(ballot(0), Answer::Yes);
    assert!(round.ballot.on_disconnected(id(0), 1));
    assert_eq!(round.verdict(START), ExtendVerdict::Failed);

    let mut round = release(2);
    round.ballot.on_vote(ballot(0), Answer::Yes);
    assert!(
        !round.ballot.on_disconnected(id(0), 1),
        "what is deleted stays deleted"
    );
    assert!(round.ballot.on_disconnected(id(1), 1));
    assert_eq!(round.ballot.yes().len(), 1);
}

#[test]
fn whoever_has_not_answered_at_the_deadline_has_failed() {
    let nano = Duration::from_nanos(1);
    for (now, late) in [
        (DEADLINE.minus(nano), 0),
        (DEADLINE, 2),
        (DEADLINE + nano, 2),
    ] {
        let mut round = acquire(4);
        round.on_vote(ballot(0), Answer::Yes, None);
        round.on_vote(ballot(1), Answer::No, None);
        assert_eq!(round.on_time(now).len(), late);
        assert!(round.on_time(now).is_empty(), "once");
        let is_lost = matches!(round.verdict(now), AcquireVerdict::Lost(_));
        assert_eq!(is_lost, late > 0);
        assert_eq!(
            round.on_vote(ballot(2), Answer::Yes, None),
            late == 0,
            "too late"
        );
    }
}

/// One thing that happens to a round.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Asked(usize, u32),
    Vote(usize, u32, u32, Answer),
    Unreachable(usize),
    Disconnected(usize, u32),
    Time(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let answer = prop_oneof![Just(Answer::Yes), Just(Answer::No), Just(Answer::Failed)];
    let node = 0..8_usize;
    prop_oneof![
        3 => (node.clone(), 1..3_u32).prop_map(|(node, via)| Happening::Asked(node, via)),
        6 => (node.clone(), 1..3_u32, 4..6_u32, answer)
            .prop_map(|(node, via, round, answer)| Happening::Vote(node, via, round, answer)),
        1 => node.clone().prop_map(Happening::Unreachable),
        1 => (node, 1..3_u32).prop_map(|(node, via)| Happening::Disconnected(node, via)),
        1 => (0..1_300_000_000_u64).prop_map(Happening::Time),
    ]
}

/// What each node is in the round, kept in the most literal way.
#[derive(Default)]
struct Model {
    asked: BTreeMap<usize, u32>,
    votes: BTreeMap<usize, Answer>,
}

impl Model {
    fn apply(&mut self, nodes: usize, happening: Happening) {
        match happening {
            Happening::Asked(node, via) => {
                self.asked.insert(node, via);
            }
            Happening::Vote(node, via, round, answer) => {
                if round == ROUND.round && self.asked.get(&node) == Some(&via) {
                    self.votes.entry(node).or_insert(answer);
                }
            }
            Happening::Unreachable(node) if node < nodes => {
                self.votes.entry(node).or_insert(Answer::Failed);
            }
            Happening::Disconnected(node, via) => {
                let is_no = self.votes.get(&node) == Some(&Answer::No);
                if self.asked.get(&node) == Some(&via) && !is_no {
                    self.votes.insert(node, Answer::Failed);
                }
            }
            Happening::Time(nanos) if START + Duration::from_nanos(nanos) >= DEADLINE => {
                for node in 0..nodes {
                    self.votes.entry(node).or_insert(Answer::Failed);
                }
            }
            Happening::Unreachable(_) | Happening::Time(_) => {}
        }
    }

    fn count(&self, answer: Answer) -> usize {
        self.votes.values().filter(|vote| **vote == answer).count()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn rounds_agree_with_a_model_whatever_happens_in_whatever_order(
        nodes in 1..=7_usize,
        happenings in proptest::collection::vec(happening(), 0..60),
        now in 0..1_300_000_000_u64,
    ) {
        let now = START + Duration::from_nanos(now);
        let quorum = Quorum::of(nodes).unwrap();
        let drift = Drift::default();
        let mut acquired = AcquireRound::new(ROUND, quorum, START, TTL, drift, TIMEOUT);
        let mut extended = ExtendRound::new(ROUND, quorum, START, TTL, drift, TIMEOUT);
        let mut model = Model::default();
        for happening in happenings {
            match happening {
                // A node is asked once per round, before it has a vote.
                Happening::Asked(node, via) => {
                    if node >= nodes || model.asked.contains_key(&node) || model.votes.contains_key(&node) {
                        continue;
                    }
                    acquired.ballot.asked(id(node), via);
                    extended.ballot.asked(id(node), via);
                }
                Happening::Vote(node, via, round, answer) => {
                    let round = RoundId { round, ..ROUND };
                    let vote = Vote { round, node: id(node), incarnation: via };
                    prop_assert_eq!(acquired.on_vote(vote, answer, None), extended.ballot.on_vote(vote, answer));
                }
                Happening::Unreachable(node) => {
                    acquired.ballot.on_unreachable(id(node));
                    extended.ballot.on_unreachable(id(node));
                }
                Happening::Disconnected(node, via) => {
                    acquired.ballot.on_disconnected(id(node), via);
                    extended.ballot.on_disconnected(id(node), via);
                }
                Happening::Time(nanos) => {
                    acquired.on_time(START + Duration::from_nanos(nanos));
                    extended.ballot.on_time(START + Duration::from_nanos(nanos));
                }
            }
            model.apply(nodes, happening);
            let (yes, no) = (model.count(Answer::Yes), model.count(Answer::No));
            let silent = nodes - model.votes.len();
            prop_assert_eq!(acquired.ballot.yes().len(), yes);
            prop_assert_eq!(acquired.ballot.no().len(), no);
            let (won, lasts) = if 2 * yes > nodes && now < END {
                (WON, ExtendVerdict::Extended { valid_until: END })
            } else if 2 * yes > nodes {
                (AcquireVerdict::Lost(Refusal::Expired), ExtendVerdict::Failed)
            } else {
                let can_win = 2 * (yes + silent) > nodes;
                let is_gone = 2 * (nodes - no) <= nodes;
                let has_failed = 2 * (nodes - model.count(Answer::Failed)) <= nodes;
                let until = DEADLINE;
                (
                    match (can_win, 2 * no > nodes, has_failed) {
                        (true, _, _) => AcquireVerdict::Pending { until },
                        (false, true, _) => AcquireVerdict::Lost(Refusal::Busy),
                        (false, false, true) => AcquireVerdict::Lost(Refusal::NoQuorum),
                        _ if silent > 0 => AcquireVerdict::Pending { until },
                        _ => AcquireVerdict::Lost(Refusal::Split),
                    },
                    match (is_gone, can_win) {
                        (true, _) => ExtendVerdict::NotHeld,
                        (false, true) => ExtendVerdict::Pending { until },
                        (false, false) => ExtendVerdict::Failed,
                    },
                )
            };
            prop_assert_eq!(acquired.verdict(now), won);
            prop_assert_eq!(extended.verdict(now), lasts);
        }
    }
}

/// Without a fencing token: these nodes do not count.
const WON: AcquireVerdict = AcquireVerdict::Won {
    valid_until: END,
    fencing: None,
};
const ROUND: RoundId = RoundId {
    attempt: 3,
    round: 5,
};
const START: Time = Time::from_nanos(77);
const TTL: Duration = Duration::from_millis(1_000);
const TIMEOUT: Duration = Duration::from_millis(100);
const DEADLINE: Time = Time::from_nanos(77 + 100_000_000);
/// A second less one percent and two milliseconds.
const END: Time = Time::from_nanos(77 + 988_000_000);
