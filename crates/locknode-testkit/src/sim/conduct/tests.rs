//! Each rule by what a client of three nodes asks and hears, in milliseconds.

use std::time::Duration;

use redlock_proto::{Core, CoreConfig, Drift, LockTerms, Login, OpId, RetryPolicy, Time};

use super::wire::{self, Ask, Said};
use super::{Conduct, Terms};
use crate::random::Random;

/// A client that has just been connected to its nodes.
struct Stage {
    conduct: Conduct,
    op: OpId,
}

impl Stage {
    fn new() -> Self {
        let config = CoreConfig {
            logins: vec![Login::default()],
            drift: Drift::default(),
            connect_timeout: ms(1_000),
        };
        let mut core = Core::new(config, Random::stream(0, "test", 0)).expect("one node");
        let terms = LockTerms {
            ttl: ms(1_000),
            retry: RetryPolicy::tries(1),
            ..LockTerms::looking(b"k".as_slice().into(), ms(100))
        };
        let op = core.acquire(Time::ZERO, terms);
        let conduct = Conduct::new(3, Drift::new(10_000, ms(2)));
        let mut stage = Self { conduct, op };
        for node in 0..3 {
            stage.connects(node);
        }
        stage
    }

    /// It has been let in, and a caller wants `k`.
    fn calling() -> Self {
        Self::calling_on(Terms::default())
    }

    fn calling_on(terms: Terms) -> Self {
        let mut stage = Self::new();
        stage.conduct.calls(stage.op, b"k", terms);
        stage
    }

    fn connects(&mut self, node: usize) {
        self.conduct.opens(node);
        self.sends(node, "INFO server");
        self.hears(node, "$3\r\nabc\r\n");
    }

    fn at(&mut self, at: u64) {
        self.conduct.settle(true);
        self.conduct.begins(time(at));
    }

    fn sends(&mut self, node: usize, words: &str) {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let mut bytes = Vec::new();
        locknode_resp::encode_command(&mut bytes, &words);
        self.conduct.sends(node, &bytes);
    }

    fn hears(&mut self, node: usize, reply: &str) {
        self.conduct.hears(node, reply.as_bytes());
    }

    /// Each of these nodes is asked and says this.
    fn asks(&mut self, nodes: &[usize], words: &str, reply: &str) {
        for node in nodes {
            self.sends(*node, words);
        }
        for node in nodes {
            self.hears(*node, reply);
        }
    }

    /// The lock is held from all nodes, under `t`, with 7.
    fn holding() -> Self {
        let mut stage = Self::calling();
        stage.asks(&[0, 1, 2], ACQUIRE, GRANT);
        stage.acquired(Some(7), 988);
        stage
    }

    fn acquired(&mut self, fencing: Option<u64>, until: u64) {
        let op = self.op;
        self.conduct.acquired(op, b"t", fencing, time(until));
    }

    /// What was wrong so far.
    #[track_caller]
    fn found(&mut self, want: &[&str]) {
        self.conduct.settle(true);
        let findings = self.conduct.findings.iter();
        let texts: Vec<&str> = findings.map(|it| it.text.as_str()).collect();
        assert_eq!(texts, want);
    }
}

const ACQUIRE: &str = "LOCK.ACQUIRE k t 1000";
const GRANT: &str = "*3\r\n:1\r\n:7\r\n:1000\r\n";
const REFUSAL: &str = "*3\r\n:0\r\n:7\r\n:900\r\n";
const EXTEND: &str = "LOCK.EXTEND k t 1000";
const RELEASE: &str = "LOCK.RELEASE k t";

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn time(at: u64) -> Time {
    Time::ZERO + ms(at)
}

#[test]
fn a_lock_has_a_majority_over_connections_that_have_not_ended() {
    let held = |prepare: fn(&mut Stage), until, want: &[&str]| {
        let mut stage = Stage::calling();
        prepare(&mut stage);
        stage.acquired(Some(7), until);
        stage.found(want);
    };
    let by_two = |stage: &mut Stage| stage.asks(&[0, 1], ACQUIRE, GRANT);
    held(by_two, 988, &[]);
    held(by_two, 989, &["holds a lock with 0 nodes behind it"]);
    held(
        |stage| {
            stage.asks(&[0], ACQUIRE, GRANT);
            stage.asks(&[1], ACQUIRE, REFUSAL);
            stage.sends(2, ACQUIRE);
        },
        988,
        &[
            "holds a lock with 1 nodes behind it",
            "has a fencing token that 1 nodes hold",
        ],
    );
    held(
        |stage| {
            stage.asks(&[0, 1], ACQUIRE, GRANT);
            stage.conduct.closes(1);
            stage.connects(1);
        },
        988,
        &[
            "holds a lock with 1 nodes behind it",
            "has a fencing token that 1 nodes hold",
        ],
    );
    // The reply to an earlier request is none to a later one.
    held(
        |stage| {
            stage.sends(1, "LOCK.ACQUIRE k s 1000");
            stage.sends(1, "LOCK.RELEASE k s");
            stage.asks(&[0, 1], ACQUIRE, GRANT);
        },
        988,
        &[
            "holds a lock with 1 nodes behind it",
            "has a fencing token that 1 nodes hold",
        ],
    );
    held(
        |_| {},
        988,
        &["holds a lock under a token that it never asked for"],
    );
}

/// The second of two nodes is asked over a new connection, and owes the answer to an extension over the old one.
fn breaks(stage: &mut Stage, ttl: u64) {
    stage.sends(1, &format!("LOCK.EXTEND k t {ttl}"));
    stage.conduct.closes(1);
    stage.connects(1);
    stage.asks(&[0, 1], EXTEND, ":1\r\n");
}

#[test]
fn an_extension_has_a_majority_and_none_that_may_still_get_a_shorter_one() {
    let extended = |prepare: fn(&mut Stage), until, want: &[&str]| {
        let mut stage = Stage::holding();
        stage.at(500);
        prepare(&mut stage);
        stage.conduct.extended(stage.op, time(until));
        stage.found(want);
    };
    let by_two = |stage: &mut Stage| stage.asks(&[0, 1], EXTEND, ":1\r\n");
    extended(by_two, 1_488, &[]);
    extended(
        by_two,
        1_489,
        &["has extended a lock with 0 nodes behind it"],
    );
    extended(|stage| breaks(stage, 1_000), 1_488, &[]);
    extended(
        |stage| breaks(stage, 999),
        1_488,
        &["has extended a lock with 1 nodes behind it"],
    );
    // In the words of other servers.
    extended(
        |stage| stage.asks(&[0, 1], "SET k t IFEQ t PX 1000", "+OK\r\n"),
        1_488,
        &[],
    );
    extended(
        |stage| stage.asks(&[0, 1], "EVALSHA 36e9 1 k t 1000", ":1\r\n"),
        1_488,
        &[],
    );
}

/// `[F7]`
#[test]
fn a_fencing_token_is_held_by_a_majority() {
    let fenced = |replies: [u64; 3], accepts: &[usize], fencing, want: &[&str]| {
        let mut stage = Stage::calling();
        for (node, counter) in replies.into_iter().enumerate() {
            let reply = format!("*3\r\n:1\r\n:{counter}\r\n:1000\r\n");
            stage.asks(&[node], ACQUIRE, &reply);
        }
        stage.asks(accepts, "LOCK.FENCE k t 7 9", ":1\r\n");
        stage.acquired(fencing, 988);
        stage.found(want);
    };
    fenced([7, 7, 9], &[], Some(7), &[]);
    fenced([7, 8, 9], &[0], Some(9), &[]);
    let few = ["has a fencing token that 1 nodes hold"];
    fenced([7, 8, 9], &[], Some(9), &few);
    fenced([7, 8, 9], &[], Some(7), &few);
    fenced([7, 10, 9], &[1], Some(9), &few);
    let none = ["has no fencing token although a majority counts"];
    fenced([7, 7, 9], &[], None, &none);
}

#[test]
fn what_a_majority_granted_in_time_is_not_let_go() {
    let let_go = |prepare: fn(&mut Stage), at, want: &[&str]| {
        let mut stage = Stage::calling();
        for node in 0..3 {
            stage.sends(node, ACQUIRE);
        }
        prepare(&mut stage);
        stage.at(at);
        stage.conduct.failed(stage.op);
        for node in 0..3 {
            stage.sends(node, RELEASE);
        }
        stage.found(want);
    };
    let wrong = ["lets a lock go that a majority has granted in time"];
    let_go(|stage| stage.hears(0, GRANT), 100, &[]);
    let by_two = |stage: &mut Stage| {
        stage.hears(0, GRANT);
        stage.hears(1, GRANT);
    };
    let_go(by_two, 100, &wrong);
    let_go(by_two, 988, &[]);
    let_go(
        |stage| {
            stage.at(100);
            stage.hears(0, GRANT);
            stage.hears(1, GRANT);
        },
        100,
        &[],
    );
    let_go(
        |stage| {
            stage.hears(0, GRANT);
            stage.hears(1, "*3\r\n:1\r\n:8\r\n:1000\r\n");
            stage.sends(0, "LOCK.FENCE k t 7 8");
        },
        100,
        &[],
    );
}

#[test]
fn each_attempt_has_a_token_of_its_own_and_no_part_in_another() {
    let mut stage = Stage::calling();
    stage.asks(&[0, 1, 2], ACQUIRE, REFUSAL);
    stage.asks(&[0, 1, 2], RELEASE, ":0\r\n");
    stage.at(10);
    stage.sends(0, "LOCK.ACQUIRE k s 1000");
    stage.found(&[]);
    stage.sends(0, ACQUIRE);
    stage.found(&["asks for a lock under a token that it had before"]);

    let mut stage = Stage::holding();
    stage.sends(0, "LOCK.RELEASE k t");
    stage.found(&["releases a lock that its caller holds"]);

    let mut stage = Stage::holding();
    stage.conduct.ends(stage.op, false, Time::ZERO);
    for node in 0..3 {
        stage.sends(node, RELEASE);
    }
    stage.at(10);
    stage.sends(0, EXTEND);
    stage.found(&["asks for more under a token that it has let go"]);

    let mut stage = Stage::holding();
    stage.sends(0, "LOCK.ACQUIRE j t 1000");
    stage.found(&["uses one token for two keys"]);

    let mut stage = Stage::holding();
    stage.sends(0, "LOCK.EXTEND k s 1000");
    stage.found(&["speaks of a lock that it never asked for"]);
}

#[test]
fn what_nobody_has_is_released_wherever_it_may_be() {
    let left = "does not release what it has no use for on node 0";
    // Given up, and nothing said.
    let mut stage = Stage::calling();
    stage.asks(&[0], ACQUIRE, GRANT);
    stage.asks(&[1, 2], ACQUIRE, REFUSAL);
    stage.found(&[]);
    stage.conduct.failed(stage.op);
    stage.found(&[left]);

    // The attempt before the last one.
    let mut stage = Stage::calling();
    stage.asks(&[0], ACQUIRE, GRANT);
    stage.at(10);
    stage.sends(1, "LOCK.ACQUIRE k s 1000");
    stage.found(&[left]);

    // When the node is back, again until it answers, and not when the TTL is over.
    let back = |at, prepare: fn(&mut Stage), want: &[&str]| {
        let mut stage = Stage::holding();
        stage.conduct.closes(0);
        stage.conduct.ends(stage.op, false, Time::ZERO);
        stage.asks(&[1, 2], RELEASE, ":1\r\n");
        stage.at(at);
        stage.connects(0);
        prepare(&mut stage);
        stage.found(want);
    };
    back(500, |_| {}, &[left]);
    back(1_000, |_| {}, &[]);
    back(500, |stage| stage.sends(0, RELEASE), &[]);
    let breaks = |stage: &mut Stage| {
        stage.sends(0, RELEASE);
        stage.at(600);
        stage.conduct.closes(0);
        stage.connects(0);
    };
    back(500, breaks, &[left]);
    back(
        500,
        |stage| stage.asks(&[0], "EVALSHA b70c 1 k t", "-NOSCRIPT no\r\n"),
        &[left],
    );
    back(
        500,
        |stage| stage.asks(&[0], RELEASE, "-LOADING no\r\n"),
        &[],
    );

    // What is left to its TTL is.
    let mut stage = Stage::holding();
    stage.conduct.ends(stage.op, true, Time::ZERO);
    stage.found(&[]);
    // A node that was slow to reply is told of it once more, even when the TTL is over.
    stage.at(2_000);
    stage.at(2_001);
    stage.sends(0, EXTEND);
    stage.found(&[]);
}

#[test]
fn a_node_that_lost_the_lock_gets_it_again() {
    let lost = "does not heal its lock on node 0";
    let extends = |stage: &mut Stage| {
        stage.at(500);
        for node in 0..3 {
            stage.sends(node, EXTEND);
        }
        stage.hears(1, ":1\r\n");
        stage.hears(2, ":1\r\n");
    };
    let early = |heal: Option<&str>, want: &[&str]| {
        let mut stage = Stage::holding();
        extends(&mut stage);
        stage.hears(0, ":0\r\n");
        stage.conduct.extended(stage.op, time(1_488));
        if let Some(words) = heal {
            stage.sends(0, words);
        }
        stage.found(want);
    };
    early(None, &[lost]);
    early(Some("LOCK.ACQUIRE k t 1000 FLOOR 6"), &[]);
    early(Some("PTTL k"), &[lost]);
    let late = |until, want: &[&str]| {
        let mut stage = Stage::holding();
        extends(&mut stage);
        stage.at(510);
        stage.conduct.extended(stage.op, time(until));
        stage.at(520);
        stage.hears(0, ":0\r\n");
        stage.found(want);
    };
    late(1_488, &[lost]);
    // The majority was one of a later extension.
    late(1_489, &["has extended a lock with 0 nodes behind it"]);

    // The next round is asked at the very moment at which the last one succeeded: the client's process was stopped in between.
    // That a node has no lock for it is no reason to heal until it has succeeded, too.
    let mut stage = Stage::holding();
    extends(&mut stage);
    stage.hears(0, ":1\r\n");
    stage.conduct.extended(stage.op, time(1_488));
    stage.at(500);
    for node in 0..3 {
        stage.sends(node, EXTEND);
    }
    stage.at(500);
    stage.hears(0, ":0\r\n");
    stage.found(&[]);
    stage.conduct.extended(stage.op, time(1_488));
    stage.found(&[lost]);
}

#[test]
fn the_end_of_a_lock_is_not_told_while_a_majority_may_hold_it() {
    let told = |is_denied, at, denials: &[usize], want: &[&str]| {
        let mut stage = Stage::holding();
        stage.at(at);
        stage.asks(denials, EXTEND, ":0\r\n");
        stage.conduct.lost(stage.op, is_denied);
        stage.found(want);
    };
    let wrong = ["says that a lock is lost that is not"];
    told(true, 500, &[0], &wrong);
    told(true, 500, &[0, 1], &[]);
    told(false, 887, &[], &wrong);
    told(false, 888, &[], &[]);

    let released = |reply, want: &[&str]| {
        let mut stage = Stage::holding();
        stage.conduct.ends(stage.op, false, Time::ZERO);
        stage.asks(&[0, 1, 2], RELEASE, reply);
        // One waits for its reply.
        stage.sends(0, "PTTL k");
        stage.conduct.released(stage.op, [0, 1].into_iter());
        stage.found(want);
    };
    released(":1\r\n", &[]);
    released(
        ":0\r\n",
        &["says that a node has released a lock that has not said so"],
    );
}

#[test]
fn words_are_understood_and_replies_are_read_to_their_end() {
    let ttl = ms(900);
    let rows = [
        ("SET k t NX PX 900", Ask::Acquire { ttl }),
        ("LOCK.EXTEND k t 900", Ask::Extend { ttl }),
        ("SET k t IFEQ t PX 900", Ask::Extend { ttl }),
        ("EVAL script 1 k t 900", Ask::Extend { ttl }),
        ("LOCK.FENCE k t 7 9", Ask::Fence { fence: 9 }),
        ("DELEX k IFEQ t", Ask::Release),
        ("DELIFEQ k t", Ask::Release),
        ("EVALSHA b70c 1 k t", Ask::Release),
    ];
    for (words, ask) in rows {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        let mut bytes = Vec::new();
        locknode_resp::encode_command(&mut bytes, &words);
        let len = bytes.len();
        bytes.extend_from_slice(b"*1");
        let (key, token) = (b"k".as_slice(), b"t".as_slice());
        let request = wire::Request { key, token, ask };
        assert_eq!(wire::request(&bytes), Some((request, len)));
    }
    let rows = [
        ("+OK\r\n", Said::Yes(None)),
        (GRANT, Said::Yes(Some(7))),
        (REFUSAL, Said::No),
        ("$-1\r\n", Said::No),
        ("-NOSCRIPT no\r\n", Said::UnknownScript),
        ("-LOADING no\r\n", Said::Error),
        ("$5\r\na\r\nbc\r\n", Said::Other),
        ("*2\r\n*2\r\n:1\r\n$1\r\na\r\n*0\r\n", Said::Other),
    ];
    for (text, said) in rows {
        let followed = format!("{text}:1\r\n");
        assert_eq!(wire::reply(followed.as_bytes()), Some((said, text.len())));
        for cut in 0..text.len() {
            let head = text.as_bytes().get(..cut).expect("it is shorter");
            assert_eq!(wire::reply(head), None, "{text} cut at {cut}");
        }
    }
}

#[test]
fn between_attempts_is_a_pause_and_none_begins_when_the_time_is_over() {
    let tries = |at, terms| {
        let mut stage = Stage::calling_on(terms);
        stage.asks(&[0], ACQUIRE, GRANT);
        stage.asks(&[1, 2], ACQUIRE, REFUSAL);
        stage.at(5);
        stage.asks(&[0, 1, 2], RELEASE, ":0\r\n");
        if at > 5 {
            stage.at(at);
        }
        stage.asks(&[0, 1, 2], "LOCK.ACQUIRE k u 1000", REFUSAL);
        stage
    };
    let within = |within| Terms {
        within: Some(ms(within)),
        renews: None,
    };
    let rushes = "tries for a lock again without a pause";
    tries(5, Terms::default()).found(&[rushes]);
    tries(15, Terms::default()).found(&[]);
    tries(15, within(16)).found(&[]);
    tries(15, within(15)).found(&["tries for a lock after its caller's time limit"]);
}

#[test]
fn a_lock_is_renewed_and_kept_as_its_caller_wants() {
    let renewing = || {
        let mut stage = Stage::calling_on(Terms {
            within: None,
            renews: Some(ms(300)),
        });
        stage.asks(&[0, 1, 2], ACQUIRE, GRANT);
        stage.acquired(Some(7), 988);
        stage
    };
    let mut stage = renewing();
    for at in [200, 410, 600] {
        stage.at(at);
    }
    stage.found(&["does not renew a lock as often as it is to"]);
    let mut stage = renewing();
    for at in [200, 400] {
        stage.at(at);
        stage.asks(&[0, 1, 2], EXTEND, ":1\r\n");
    }
    stage.at(600);
    stage.found(&[]);

    for (at, want) in [
        (499, &["releases a lock that is to be kept for longer"][..]),
        (500, &[]),
    ] {
        let mut stage = Stage::holding();
        stage.conduct.ends(stage.op, true, time(500));
        stage.at(at);
        stage.sends(0, RELEASE);
        stage.found(want);
    }
}

#[test]
fn what_a_caller_gives_up_and_what_another_client_left_is_released() {
    let unreleased = ["does not release what it has no use for on node 0"];
    for (words, want) in [("GET k", &unreleased[..]), (RELEASE, &[])] {
        let mut stage = Stage::calling();
        stage.asks(&[0], ACQUIRE, GRANT);
        stage.conduct.ends(stage.op, false, Time::ZERO);
        stage.asks(&[0], words, ":0\r\n");
        stage.found(want);

        let mut stage = Stage::new();
        stage.conduct.releases(stage.op, b"k", b"left");
        let words = words.replace(" t", " left");
        stage.asks(&[0, 1, 2], &words, ":0\r\n");
        let mut wants: Vec<String> = Vec::new();
        for node in 0..3 {
            wants.extend(want.iter().map(|text| text.replace('0', &node.to_string())));
        }
        let wants: Vec<&str> = wants.iter().map(String::as_str).collect();
        stage.found(&wants);
    }
}

#[test]
fn a_look_is_answered_in_time_and_no_operation_stays_for_nothing() {
    for (answered_at, want) in [
        (249, &[][..]),
        (250, &["does not say in time who holds a key"]),
    ] {
        let mut stage = Stage::new();
        stage.conduct.looks(stage.op, b"k", time(250));
        stage.at(answered_at);
        stage.conduct.settle(true);
        stage.conduct.looked(stage.op);
        stage.at(500);
        stage.found(want);
    }
    // One that is stopped for long has not run so long.
    for (step, count, want) in [
        (500, 1, &["keeps operations that are over"][..]),
        (500, 0, &[]),
        (100_000, 1, &[]),
    ] {
        let mut stage = Stage::new();
        for turn in 0..11 {
            stage.at(turn * step);
            stage.conduct.sees_operations(count);
            if step > 1_000 && turn == 3 {
                break;
            }
        }
        stage.found(want);
    }
}
