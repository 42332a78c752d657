//! Scenes with nodes that count.

use crate::core::tests::stage::{KEY, Stage, id, ms, terms};
use crate::core::{Dialect, Notice, OpId};
use crate::error_kind::ErrorKind;
use crate::fencing_token::FencingToken;
use crate::policy::RetryPolicy;
use crate::token::Token;

impl Stage {
    /// Acquires, and says with which fencing token.
    fn fenced(&mut self) -> (OpId, Option<u64>) {
        self.notices.clear();
        self.acquire(terms(ms(10_000)));
        self.exchange();
        self.had().expect("a lock")
    }

    /// The lock that was acquired, and its fencing token.
    fn had(&self) -> Option<(OpId, Option<u64>)> {
        self.notices.iter().find_map(|notice| match notice {
            Notice::Acquired { op, fencing, .. } => Some((*op, fencing.map(FencingToken::get))),
            _ => None,
        })
    }

    fn let_go(&mut self, op: OpId) {
        self.core.release(self.now, op);
        self.exchange();
        assert_eq!(self.holders(), 0);
    }

    /// How many requests there were so far: acquires, acquires with a floor, write-backs.
    fn counts(&self) -> [u64; 3] {
        self.servers.iter().fold([0; 3], |[a, b, c], server| {
            let counts = server.counts;
            [
                a + counts.acquires,
                b + counts.floors,
                c + counts.write_backs + counts.write_backs_refused,
            ]
        })
    }

    fn counters(&self) -> Vec<u64> {
        let all = self.servers.iter();
        all.map(|server| server.counter(KEY)).collect()
    }

    /// A node grants the key to somebody else, who then lets it go: its counter is one ahead.
    fn interfere(&mut self, node: usize) {
        let requests = [
            b"*4\r\n$12\r\nLOCK.ACQUIRE\r\n$3\r\nkey\r\n$5\r\nother\r\n$4\r\n9999\r\n".as_slice(),
            b"*3\r\n$12\r\nLOCK.RELEASE\r\n$3\r\nkey\r\n$5\r\nother\r\n".as_slice(),
        ];
        self.serve(node, requests.concat());
        self.servers[node].counts.acquires -= 1;
    }
}

/// `[F8]`
#[test]
fn in_steady_state_a_lock_takes_one_round_trip_and_its_token_is_one_higher() {
    for nodes in [1, 2, 3, 5] {
        let mut stage = Stage::new(nodes, Dialect::Lock);
        for expected in 1..=50 {
            let (op, fencing) = stage.fenced();
            assert_eq!(fencing, Some(expected));
            stage.let_go(op);
        }
        let asked = 50 * u64::try_from(nodes).unwrap();
        assert_eq!(stage.counts(), [asked, 0, 0], "of {nodes} nodes");
    }
}

/// `[F7]` `[F8]`
#[test]
fn a_node_that_restarted_costs_one_more_round_trip_once() {
    let mut stage = Stage::new(3, Dialect::Lock);
    let (op, _) = stage.fenced();
    stage.let_go(op);
    stage.servers[0].restart(None);
    stage.servers[0].raise_base(1 << 20);
    let base = 1 << 20;
    // The first two that grant differ; the third comes too late to be asked.
    let (op, fencing) = stage.fenced();
    assert_eq!(fencing, Some(base + 1));
    assert_eq!(stage.counts(), [6, 0, 1], "acquires, floors, write-backs");
    assert_eq!(stage.counters(), [base + 1, base + 1, 2]);
    stage.let_go(op);
    // They are made even by the next attempt, in which the third would be one of the first two.
    stage.take_down(1);
    for (expected, floors) in [(base + 2, 2), (base + 3, 2), (base + 4, 2)] {
        let (op, fencing) = stage.fenced();
        assert_eq!(fencing, Some(expected));
        let [_, so_far, write_backs] = stage.counts();
        assert_eq!((so_far, write_backs), (floors, 1));
        stage.let_go(op);
    }
}

/// `[F8]`
#[test]
fn a_loser_learns_from_the_counters_that_it_is_refused_with() {
    let mut stage = Stage::new(3, Dialect::Lock);
    let other =
        b"*4\r\n$12\r\nLOCK.ACQUIRE\r\n$3\r\nkey\r\n$5\r\nother\r\n$5\r\n30000\r\n".to_vec();
    for node in [1, 2] {
        (0..4).for_each(|_| stage.interfere(node));
        stage.serve(node, other.clone());
    }
    stage.acquire(terms(ms(10_000)));
    stage.exchange();
    assert!(stage.told("NotAcquired"));
    assert_eq!(stage.counters(), [1, 5, 5]);
    stage.servers.iter_mut().for_each(|server| server.end_all());
    let [_, _, before] = stage.counts();
    let (_, fencing) = stage.fenced();
    assert_eq!(fencing, Some(6));
    assert_eq!(stage.counters(), [6; 3], "with one round trip");
    assert_eq!(stage.counts()[2], before);
}

/// `[F7]`
#[test]
fn nobody_has_a_lock_before_a_majority_has_accepted_its_token() {
    let mut stage = Stage::new(3, Dialect::Lock);
    stage.interfere(0);
    stage.take_down(2);
    stage.acquire(terms(ms(10_000)));
    stage.answer(0);
    assert!(stage.had().is_none(), "one of three");
    let acquire = stage.sent(1);
    let replies = stage.serve(1, acquire);
    stage.pass(ms(7));
    stage.hear(1, &replies);
    assert!(stage.had().is_none(), "two of three, 2 and 1");
    let write_back = stage.sent(1);
    let expected = "*5\r\n$10\r\nLOCK.FENCE\r\n$3\r\nkey\r\n$40\r\n";
    assert!(write_back.starts_with(expected.as_bytes()));
    assert!(
        write_back.ends_with(b"\r\n$1\r\n1\r\n$1\r\n2\r\n"),
        "its grant and the token"
    );
    assert!(stage.sent(0).is_empty(), "it told the token itself");
    let accepted = stage.serve(1, write_back);
    assert_eq!(accepted, b":1\r\n");
    let started = stage.now.minus(ms(7));
    stage.pass(ms(9));
    assert!(stage.had().is_none());
    stage.hear(1, &accepted);
    let until = stage.find(|notice| match notice {
        Notice::Acquired {
            valid_until,
            fencing,
            ..
        } => Some((*valid_until, *fencing)),
        _ => None,
    });
    let expected = (started + ms(10_000), FencingToken::new(2));
    assert_eq!(until, Some(expected), "validity counts from the start");
}

/// `[F7]`
#[test]
fn a_token_that_is_refused_is_a_lost_attempt_and_the_next_is_higher() {
    // How the second node fails: the lock ended there, an error, silence, the end of its connection.
    for how in ["ended", "error", "silence", "broken"] {
        let mut stage = Stage::new(3, Dialect::Lock);
        stage.interfere(0);
        // Connections that were good for a while are opened again at once.
        stage.pass(ms(1_100));
        stage.take_down(2);
        let mut terms = terms(ms(10_000));
        terms.retry = RetryPolicy::tries(2).backoff(ms(1), ms(1));
        stage.acquire(terms);
        stage.answer(0);
        stage.answer_once(1);
        let write_back = stage.sent(1);
        assert!(!write_back.is_empty());
        match how {
            "ended" => {
                stage.servers[1].end_all();
                let refused = stage.serve(1, write_back);
                assert_eq!(refused, b":0\r\n");
                stage.hear(1, &refused);
            }
            "error" => stage.hear(1, b"-MISCONF x\r\n"),
            "silence" => {
                stage.pass(ms(100));
                stage.hear(1, b":1\r\n");
            }
            _ => {
                stage.break_off(1);
                stage.reconnect(1);
                stage.answer(1);
            }
        }
        assert!(stage.had().is_none(), "{how}");
        stage.pass(ms(1));
        stage.exchange();
        let (op, fencing) = stage.had().expect(how);
        assert!(fencing > Some(2), "{how}: {fencing:?}");
        stage.let_go(op);
        stage.pass(ms(200));
        assert_eq!(stage.core.operations(), 0, "{how}");
    }
}

/// `[F7]`
#[test]
fn an_answer_to_a_write_back_of_an_attempt_before_is_none_to_this_one() {
    let mut stage = Stage::new(3, Dialect::Lock);
    stage.interfere(0);
    stage.take_down(2);
    stage.acquire(terms(ms(10_000)));
    stage.answer(0);
    stage.answer_once(1);
    let write_back = stage.sent(1);
    let accepted = stage.serve(1, write_back);
    // The node is heard meanwhile, so that it is not taken for dead.
    stage.pass(ms(99));
    stage.core.look(stage.now, None, ms(100));
    stage.pass(ms(1));
    assert!(stage.told("NotAcquired"), "{:?}", stage.notices);
    stage.notices.clear();
    stage.hear(1, &accepted);
    stage.exchange();
    assert!(stage.had().is_none());
    assert_eq!(stage.holders(), 0);
}

/// `[F7]`
#[test]
fn a_lock_has_no_token_without_a_majority_that_counts() {
    let rows: [(&[Dialect], &[usize], Option<u64>); 6] = [
        (&[Dialect::Script; 3], &[], None),
        (
            &[Dialect::Lock, Dialect::DelEx, Dialect::DelIfEq],
            &[],
            None,
        ),
        (
            &[Dialect::Lock, Dialect::Lock, Dialect::DelIfEq],
            &[],
            Some(1),
        ),
        (
            &[Dialect::Lock, Dialect::Lock, Dialect::DelIfEq],
            &[0],
            None,
        ),
        (
            &[Dialect::Lock, Dialect::Lock, Dialect::DelIfEq],
            &[2],
            Some(1),
        ),
        (&[Dialect::Lock; 3], &[1], Some(1)),
    ];
    for (dialects, down, expected) in rows {
        let mut stage = Stage::unconnected(3, Dialect::Script);
        for (server, dialect) in stage.servers.iter_mut().zip(dialects) {
            server.dialect = *dialect;
        }
        stage.core.look(stage.now, None, ms(100));
        (0..3).for_each(|node| stage.reconnect(node));
        stage.exchange();
        down.iter().for_each(|node| stage.take_down(*node));
        let (op, fencing) = stage.fenced();
        assert_eq!(fencing, expected, "{dialects:?} without {down:?}");
        // Extension and release work in all of them.
        stage.extend(op, ms(20_000));
        assert!(stage.told("Extended"));
        stage.let_go(op);
    }
}

/// `[F7]`
#[test]
fn a_node_that_lost_the_key_gets_it_again_evenly_and_the_token_stays() {
    let mut stage = Stage::new(3, Dialect::Lock);
    (0..3).for_each(|node| (0..6).for_each(|_| stage.interfere(node)));
    let (op, fencing) = stage.fenced();
    assert_eq!(fencing, Some(7));
    // It comes back without its disk's last word, which it does not: a counter that is behind shows what is sent.
    stage.servers[0] = crate::core::tests::server::Server::new(Dialect::Lock);
    stage.extend(op, ms(10_000));
    assert!(stage.told("Extended") && !stage.told("Lost"));
    assert_eq!(stage.holders(), 3);
    assert_eq!(stage.counters(), [7; 3]);
    stage.let_go(op);
    let (_, fencing) = stage.fenced();
    assert_eq!(fencing, Some(8));
    assert_eq!(stage.counts()[2], 0, "in one round trip");
}

/// `[F7]`
#[test]
fn a_node_that_is_connected_after_the_lock_was_had_has_no_say_in_its_token() {
    let mut stage = Stage::unconnected(3, Dialect::Lock);
    stage.servers[2].raise_base(40);
    stage.acquire(terms(ms(10_000)));
    for node in 0..2 {
        stage.reconnect(node);
        stage.answer(node);
    }
    assert_eq!(stage.had().map(|(_, fencing)| fencing), Some(Some(1)));
    stage.reconnect(2);
    stage.answer(2);
    assert_eq!(stage.holders(), 3, "it holds the lock as well");
    assert_eq!(stage.counters(), [1, 1, 41]);
    assert_eq!(stage.counts()[2], 0);
}

/// `[F7]`
#[test]
fn a_lock_that_is_taken_over_has_no_token_of_its_own() {
    let mut stage = Stage::new(3, Dialect::Lock);
    stage.acquire(terms(ms(60_000)));
    stage.exchange();
    let (op, token) = stage.acquired().expect("a lock");
    stage.core.leak(op);
    stage.notices.clear();
    stage.core.adopt(stage.now, terms(ms(60_000)), token);
    stage.exchange();
    let (op, fencing) = stage.had().expect("taken over");
    assert_eq!(fencing, None);
    stage.let_go(op);
}

/// `[F7]`
#[test]
fn an_extension_compares_the_token() {
    let mut stage = Stage::new(3, Dialect::Lock);
    let (op, _) = stage.fenced();
    // Two nodes ended the lock and granted the key to another.
    let other = b"*4\r\n$12\r\nLOCK.ACQUIRE\r\n$3\r\nkey\r\n$5\r\nother\r\n$4\r\n9999\r\n";
    for node in 0..2 {
        stage.servers[node].end_all();
        stage.serve(node, other.to_vec());
    }
    stage.extend(op, ms(10_000));
    assert_eq!(stage.extended(), Some(Err(ErrorKind::Lost)));
    let now = stage.now.as_nanos();
    for node in 0..2 {
        let held = stage.servers[node].held(now, KEY).unwrap();
        assert_eq!(held.token, b"other");
    }
}

/// `[F6]`
#[test]
fn what_no_node_can_answer_ends_the_connection() {
    for nonsense in [
        "*3\r\n:1\r\n:0\r\n:10000\r\n",
        "*3\r\n:2\r\n:7\r\n:10000\r\n",
        "*3\r\n:1\r\n:-7\r\n:10000\r\n",
        "*3\r\n:1\r\n:9007199254740992\r\n:10000\r\n",
        "*3\r\n:0\r\n:9007199254740992\r\n:10000\r\n",
        "*2\r\n:1\r\n:7\r\n",
        "*3\r\n:1\r\n:7\r\n$1\r\nx\r\n",
        "+OK\r\n",
        "$-1\r\n",
        ":1\r\n",
    ] {
        let mut stage = Stage::new(1, Dialect::Lock);
        stage.acquire(terms(ms(10_000)));
        stage.sent(0);
        stage.hear(0, nonsense.as_bytes());
        let told = format!("{:?}", stage.notices);
        assert!(
            stage.told("NodeDown(NodeId(0), Protocol"),
            "{nonsense}: {told}"
        );
        assert!(stage.told("NotAcquired"));
    }
    // A refusal of a key that nobody ever had is possible: its lock came from a snapshot.
    let mut stage = Stage::new(1, Dialect::Lock);
    stage.acquire(terms(ms(10_000)));
    stage.sent(0);
    stage.hear(0, b"*3\r\n:0\r\n:0\r\n:-1\r\n");
    // Then the answers to the release, and to the question whose key it is.
    stage.hear(0, b":0\r\n$1\r\nx\r\n");
    assert!(stage.told("NotAcquired") && !stage.told("NodeDown"));
    // Neither OK nor two is an answer to a write-back.
    for nonsense in ["+OK\r\n", ":2\r\n", "$-1\r\n"] {
        let mut stage = Stage::new(2, Dialect::Lock);
        stage.interfere(0);
        stage.acquire(terms(ms(10_000)));
        stage.answer(0);
        stage.answer_once(1);
        stage.hear(1, nonsense.as_bytes());
        assert!(stage.told("NodeDown(NodeId(1), Protocol"), "{nonsense}");
        assert!(stage.had().is_none());
    }
}

/// `[F7]`
#[test]
fn a_token_from_elsewhere_is_released_where_nodes_count() {
    let mut stage = Stage::new(3, Dialect::Lock);
    let token = Token::new("other").unwrap();
    let other = b"*4\r\n$12\r\nLOCK.ACQUIRE\r\n$3\r\nkey\r\n$5\r\nother\r\n$4\r\n9999\r\n";
    for node in 0..3 {
        stage.serve(node, other.to_vec());
    }
    stage.take_down(1);
    stage
        .core
        .release_token(stage.now, terms(ms(60_000)), token);
    stage.exchange();
    assert_eq!(stage.holders(), 1);
    stage.pass(ms(200));
    stage.core.connected(stage.now, id(1));
    stage.exchange();
    assert_eq!(stage.holders(), 0);
}
