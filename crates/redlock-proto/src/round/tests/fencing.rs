//! The fencing token of a round, row by row.

use std::time::Duration;

use super::{DEADLINE, END, ROUND, START, TIMEOUT, TTL, ballot, id, vote};
use crate::drift::Drift;
use crate::fencing_token::FencingToken;
use crate::quorum::Quorum;
use crate::round::{AcquireRound, AcquireVerdict, Answer, Refusal, WRITABLE_MAX};

fn n(number: u64) -> Option<FencingToken> {
    FencingToken::new(number)
}

/// A round of which all nodes were asked; those in `plain` count nothing.
fn round(nodes: usize, plain: &[usize]) -> AcquireRound {
    let quorum = Quorum::of(nodes).unwrap();
    let mut round = AcquireRound::new(ROUND, quorum, START, TTL, Drift::default(), TIMEOUT);
    for node in 0..nodes {
        if plain.contains(&node) {
            round.asked_plainly(id(node), 1)
        } else {
            round.ballot.asked(id(node), 1)
        }
    }
    round
}

/// A round in which nodes granted with these counters, in this order.
fn granted(nodes: usize, counters: &[(usize, u64)]) -> AcquireRound {
    let mut round = round(nodes, &[]);
    for (node, counter) in counters {
        assert!(round.on_vote(ballot(*node), Answer::Yes, n(*counter)));
    }
    round
}

/// The same, and its token is fixed and written back to those that lag.
fn fixed(nodes: usize, counters: &[(usize, u64)]) -> AcquireRound {
    let mut round = granted(nodes, counters);
    assert_eq!(
        round.verdict(START),
        AcquireVerdict::Diverged,
        "{counters:?}"
    );
    round.write_back(START + LATER, TIMEOUT);
    ask(&mut round);
    round
}

fn ask(round: &mut AcquireRound) {
    for node in round.lagging().iter() {
        round.write_back_asked(node);
    }
    assert!(round.lagging().is_empty(), "each is asked once");
}

fn lagging(round: &AcquireRound) -> Vec<usize> {
    round.lagging().iter().map(|node| node.index()).collect()
}

fn won(fencing: u64) -> AcquireVerdict {
    AcquireVerdict::Won {
        valid_until: END,
        fencing: n(fencing),
    }
}

fn is_pending(round: &AcquireRound) -> bool {
    matches!(round.verdict(START), AcquireVerdict::Pending { .. })
}

/// `[F7]` `[F8]`
#[test]
fn what_a_majority_told_alike_is_the_token_at_once() {
    type Row<'a> = (usize, &'a [(usize, u64)], u64);
    let rows: [Row<'_>; 9] = [
        (1, &[(0, 1)], 1),
        (2, &[(0, 7), (1, 7)], 7),
        (3, &[(0, 7), (1, 7)], 7),
        (3, &[(0, 7), (1, 7), (2, 7)], 7),
        // As if the reply of the third had come too late.
        (3, &[(0, 8), (1, 7), (2, 7)], 7),
        (3, &[(0, 3), (1, 7), (2, 7)], 7),
        (5, &[(0, 9), (1, 7), (2, 7), (3, 1), (4, 7)], 7),
        (5, &[(4, 7), (3, 7), (2, 7)], 7),
        (3, &[(0, (1 << 53) - 1), (1, (1 << 53) - 1)], (1 << 53) - 1),
    ];
    for (nodes, counters, token) in rows {
        let round = granted(nodes, counters);
        assert_eq!(round.verdict(START), won(token), "{counters:?}");
        assert!(round.lagging().is_empty());
    }
}

/// `[F7]`
#[test]
fn a_token_that_is_not_everywhere_is_the_callers_when_a_majority_has_accepted_it() {
    // Counters in the order of their grants, those who accept, and the token.
    type Row<'a> = (usize, &'a [(usize, u64)], &'a [usize], u64);
    let rows: [Row<'_>; 5] = [
        (2, &[(0, 4), (1, 1)], &[1], 4),
        (3, &[(0, 4), (1, 1)], &[1], 4),
        (3, &[(2, 1), (1, 2)], &[2], 2),
        (5, &[(0, 1), (1, 2), (2, 3)], &[0, 1], 3),
        (5, &[(0, 3), (1, 3), (2, 1)], &[2], 3),
    ];
    for (nodes, counters, accepting, token) in rows {
        let mut round = granted(nodes, counters);
        assert_eq!(round.verdict(START), AcquireVerdict::Diverged);
        assert_eq!((round.fixed(), lagging(&round)), (None, vec![]));
        round.write_back(START, TIMEOUT);
        assert_eq!(round.fixed(), n(token));
        let mut expected = accepting.to_vec();
        expected.sort_unstable();
        assert_eq!(lagging(&round), expected, "{counters:?}");
        ask(&mut round);
        for (i, node) in accepting.iter().enumerate() {
            let told = counters.iter().find(|(other, _)| other == node).unwrap().1;
            assert_eq!(round.counter(id(*node)), n(told), "what it quotes");
            assert!(is_pending(&round), "{i} of {accepting:?}");
            assert!(round.on_write_back(ballot(*node), Answer::Yes));
        }
        assert_eq!(round.verdict(START), won(token), "{counters:?}");
    }
}

/// `[F7]`
#[test]
fn a_token_that_a_majority_cannot_have_is_nobodys() {
    let lost = |why| AcquireVerdict::Lost(why);
    // What the lagging node says and the third has said; what it comes to.
    let rows = [
        (Answer::No, Answer::No, lost(Refusal::Busy)),
        (Answer::No, Answer::Failed, lost(Refusal::Split)),
        (Answer::Failed, Answer::No, lost(Refusal::Split)),
        (Answer::Failed, Answer::Failed, lost(Refusal::NoQuorum)),
    ];
    for (lagging, third, expected) in rows {
        let mut round = fixed(3, &[(0, 8), (1, 7)]);
        assert!(round.on_vote(ballot(2), third, None));
        assert!(is_pending(&round));
        assert!(round.on_write_back(ballot(1), lagging));
        assert_eq!(round.verdict(START), expected, "{lagging:?}, {third:?}");
        assert_eq!(round.ballot.yes().len(), 1, "its grant is gone as well");
    }
    // With five, one that refuses is not the end.
    let mut round = fixed(5, &[(0, 8), (1, 7), (2, 6)]);
    round.on_vote(ballot(3), Answer::Yes, n(8));
    assert!(round.on_write_back(ballot(1), Answer::No));
    assert!(is_pending(&round));
    assert!(round.on_write_back(ballot(2), Answer::Yes));
    assert_eq!(round.verdict(START), won(8));
}

/// `[F7]`
#[test]
fn a_late_grant_is_credited_with_the_very_token_asked_with_less_and_never_credited_with_more() {
    for (counter, is_credited, is_asked) in [(8, true, false), (7, false, true), (9, false, false)]
    {
        let mut round = fixed(3, &[(0, 8), (1, 6)]);
        assert!(round.on_vote(ballot(2), Answer::Yes, n(counter)));
        assert_eq!(round.fixed(), n(8), "the token stays");
        assert_eq!(
            round.verdict(START) == won(8),
            is_credited,
            "told {counter}"
        );
        assert_eq!(lagging(&round), if is_asked { vec![2] } else { vec![] });
        if is_asked {
            ask(&mut round);
            assert!(round.on_write_back(ballot(2), Answer::Yes));
            assert_eq!(round.verdict(START), won(8));
        }
        if !is_credited && !is_asked {
            // Two hold the lock and their counters are at least the token, and still it is not theirs.
            assert!(round.on_write_back(ballot(1), Answer::No));
            assert_eq!(round.ballot.yes().len(), 2);
            assert_eq!(round.verdict(START), AcquireVerdict::Lost(Refusal::Split));
        }
    }
}

/// `[F7]`
#[test]
fn a_credit_belongs_to_its_round_its_node_and_its_connection_and_comes_once() {
    let mut round = granted(3, &[(0, 8), (1, 7)]);
    assert!(!round.on_write_back(ballot(1), Answer::Yes), "nobody asked");
    round.write_back(START, TIMEOUT);
    assert!(
        !round.on_write_back(ballot(1), Answer::Yes),
        "not asked yet"
    );
    ask(&mut round);
    let others = [
        vote(2, 5, 1, 1),
        vote(3, 6, 1, 1),
        vote(3, 5, 1, 2),
        ballot(0),
        ballot(2),
        ballot(7),
    ];
    for answer in [Answer::Yes, Answer::No, Answer::Failed] {
        for vote in others {
            let before = round.clone();
            assert!(!round.on_write_back(vote, answer), "{vote:?}");
            assert_eq!(round, before);
        }
    }
    assert!(
        !round.on_vote(ballot(1), Answer::Yes, n(8)),
        "a second grant"
    );
    assert!(is_pending(&round));
    let (before, mut again) = (round.clone(), round.clone());
    again.write_back(START + TIMEOUT, TIMEOUT);
    assert_eq!(again, before, "the token is fixed once");
    assert!(round.on_write_back(ballot(1), Answer::Yes));
    for answer in [Answer::Yes, Answer::No, Answer::Failed] {
        assert!(!round.on_write_back(ballot(1), answer), "a second answer");
    }
    assert_eq!(round.verdict(START), won(8));
}

/// `[F7]`
#[test]
fn a_credit_ends_with_the_connection() {
    // The one that told the token, and the one that was asked.
    for broken in [0, 1] {
        let mut round = fixed(3, &[(0, 8), (1, 7)]);
        assert!(round.ballot.on_disconnected(id(broken), 1));
        assert!(!round.on_write_back(ballot(broken), Answer::Yes));
        round.on_write_back(ballot(1), Answer::Yes);
        assert!(is_pending(&round), "of {broken}");
        assert!(round.ballot.on_unreachable(id(2)));
        let lost = AcquireVerdict::Lost(Refusal::NoQuorum);
        assert_eq!(round.verdict(START), lost, "of {broken}");
    }
    let mut round = fixed(3, &[(0, 8), (1, 7)]);
    assert!(round.on_write_back(ballot(1), Answer::Yes));
    assert!(round.ballot.on_disconnected(id(1), 1), "after it accepted");
    assert!(is_pending(&round));
    assert!(round.on_vote(ballot(2), Answer::Yes, n(8)));
    assert_eq!(round.verdict(START), won(8));
}

/// `[F7]`
#[test]
fn whoever_cannot_be_asked_or_does_not_answer_in_time_has_failed() {
    let mut round = granted(3, &[(0, 8), (1, 7)]);
    round.write_back(START, TIMEOUT);
    assert!(round.on_write_back_failed(id(1)));
    assert!(!round.on_write_back_failed(id(1)), "once");
    assert!(is_pending(&round), "the third may come");

    let nano = Duration::from_nanos(1);
    let deadline = START + LATER + TIMEOUT;
    let mut round = fixed(3, &[(0, 8), (1, 7)]);
    let first = AcquireVerdict::Pending { until: DEADLINE };
    assert_eq!(
        round.verdict(START),
        first,
        "the third has its time from the start"
    );
    let late: Vec<_> = round.on_time(START + TIMEOUT).iter().collect();
    assert_eq!(late, [id(2)]);
    let second = AcquireVerdict::Pending { until: deadline };
    assert_eq!(
        round.verdict(START + TIMEOUT),
        second,
        "and the second from its question"
    );
    assert_eq!(round.asked_at(), START + LATER);
    assert!(round.on_time(deadline.minus(nano)).is_empty());
    let late: Vec<_> = round.on_time(deadline).iter().collect();
    assert_eq!(late, [id(1)]);
    assert!(!round.on_write_back(ballot(1), Answer::Yes), "too late");
    let lost = AcquireVerdict::Lost(Refusal::NoQuorum);
    assert_eq!(round.verdict(deadline), lost);
}

/// `[F7]`
#[test]
fn validity_counts_from_before_the_first_byte_and_ends_during_the_write_back() {
    let nano = Duration::from_nanos(1);
    for (now, is_valid) in [(END.minus(nano), true), (END, false)] {
        let mut round = granted(3, &[(0, 8), (1, 7)]);
        round.write_back(START, TTL);
        ask(&mut round);
        let before = round.verdict(now);
        round.on_write_back(ballot(1), Answer::Yes);
        let expected = if is_valid {
            won(8)
        } else {
            AcquireVerdict::Lost(Refusal::Expired)
        };
        assert_eq!(round.verdict(now), expected);
        let was_pending = matches!(before, AcquireVerdict::Pending { until } if until <= END);
        assert_eq!(was_pending, is_valid, "{before:?}");
    }
}

/// `[F7]`
#[test]
fn a_lock_has_no_token_when_too_few_nodes_count_and_waits_only_for_those_that_may() {
    // All votes are yes. Which nodes count nothing, the counters of those that have voted, and the outcome.
    type Row<'a> = (usize, &'a [usize], &'a [(usize, u64)], Option<Option<u64>>);
    let rows: [Row<'_>; 9] = [
        (1, &[0], &[(0, 0)], Some(None)),
        (3, &[0, 1, 2], &[(0, 0), (1, 0)], Some(None)),
        // Nobody waits for the third, whatever it is.
        (3, &[0, 1], &[(0, 0), (1, 0)], Some(None)),
        (3, &[0, 1], &[(0, 0), (2, 7)], Some(None)),
        (3, &[0], &[(0, 0), (1, 7)], None),
        (3, &[0], &[(0, 0), (1, 7), (2, 7)], Some(Some(7))),
        (3, &[0], &[(1, 7), (2, 7)], Some(Some(7))),
        (5, &[0, 1], &[(0, 0), (1, 0), (2, 7)], None),
        (5, &[0, 1, 2], &[(0, 0), (1, 0), (3, 7)], Some(None)),
    ];
    for (nodes, plain, votes, outcome) in rows {
        let mut round = round(nodes, plain);
        for (node, counter) in votes {
            assert!(round.on_vote(ballot(*node), Answer::Yes, n(*counter)));
        }
        let expected = match outcome {
            Some(fencing) => AcquireVerdict::Won {
                valid_until: END,
                fencing: fencing.and_then(n),
            },
            None => AcquireVerdict::Pending { until: DEADLINE },
        };
        assert_eq!(round.verdict(START), expected, "{plain:?} {votes:?}");
        // In the end it is decided, with or without.
        round.on_time(START + TIMEOUT);
        let verdict = round.verdict(START + TIMEOUT);
        assert!(matches!(verdict, AcquireVerdict::Won { .. }), "{verdict:?}");
    }
    // Once a token is fixed it is that or none.
    let mut round = round(5, &[3, 4]);
    for (node, counter) in [(0, 8), (1, 7), (2, 7), (3, 0), (4, 0)] {
        round.on_vote(ballot(node), Answer::Yes, n(counter));
    }
    assert_eq!(round.verdict(START), AcquireVerdict::Diverged);
    round.write_back(START, TIMEOUT);
    ask(&mut round);
    round.on_write_back(ballot(1), Answer::No);
    assert_eq!(round.ballot.yes().len(), 4);
    assert_eq!(round.verdict(START), AcquireVerdict::Lost(Refusal::Split));
}

/// `[F6]`
#[test]
fn a_node_that_counts_out_of_range_stops_nobody_else() {
    let top = WRITABLE_MAX.get();
    let mut round = fixed(3, &[(0, top + 1), (1, 7), (2, 8)]);
    assert_eq!(round.fixed(), n(8));
    round.on_write_back(ballot(1), Answer::Yes);
    assert_eq!(round.verdict(START), won(8));
    let round = fixed(3, &[(0, top), (1, 7), (2, 8)]);
    assert_eq!(round.fixed(), n(top), "as far as it may be written");
    // Without the node there is no majority: nodes will refuse, and the attempt is lost.
    let round = fixed(3, &[(0, top + 1), (1, 7)]);
    assert_eq!(round.fixed(), n(top + 1));
}

/// `[F8]`
#[test]
fn uneven_counters_are_remembered_those_of_refusals_included() {
    let mut round = granted(3, &[(0, 7), (1, 7)]);
    assert_eq!(round.uneven(), None);
    round.on_vote(ballot(2), Answer::No, n(9));
    assert_eq!(round.uneven(), n(9));
    assert_eq!(
        round.verdict(START),
        won(7),
        "a refusal has no say in the token"
    );
    assert_eq!(round.counter(id(2)), None);
}

const LATER: Duration = Duration::from_millis(40);
