//! Each rule by what a client of three nodes asks and hears, in milliseconds.

use std::fmt::Debug;
use std::str::FromStr;
use std::time::Duration;

use locknode_resp::Decoder;
use redlock_proto::{Core, CoreConfig, Drift, LockTerms, Login, OpId, RetryPolicy, Time};

use super::Conduct;
use super::wire::{self, Ask, Said};
use crate::random::Random;
use crate::scenario::LockAction;

/// A client that has just been connected to its nodes.
struct Stage {
    conduct: Conduct,
    op: OpId,
}

/// Plays scripts, with an empty line between two. A line of a script is a list of [steps](Stage::step), or says after `=>` what
/// the model has found up to there.
fn check(scripts: &str) {
    for script in scripts.split("\n\n") {
        let mut stage = Stage::new();
        for line in script.lines().map(str::trim) {
            if let Some(want) = line.strip_prefix("=> ") {
                assert_eq!(stage.found(), want, "{script}");
            } else if !line.starts_with('#') {
                stage.play(line);
            }
        }
    }
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
        stage.play("connect 0; connect 1; connect 2");
        stage
    }

    fn play(&mut self, steps: &str) {
        for step in steps.split("; ").filter(|step| !step.is_empty()) {
            self.step(step);
        }
    }

    /// `0 1: REQUEST -> REPLY`: these nodes are asked, and then they reply; one of the two may be missing. All other steps are
    /// the client's.
    fn step(&mut self, step: &str) {
        if let Some((nodes, rest)) = step.split_once(": ") {
            let (request, reply) = rest.split_once("-> ").unwrap_or((rest, ""));
            return self.asks(nodes, request.trim_end(), reply);
        }
        let (op, conduct) = (self.op, &mut self.conduct);
        let time = |at| Time::ZERO + ms(number(at));
        let words: Vec<&str> = step.split(' ').collect();
        match words[..] {
            ["connect", node] => {
                conduct.opens(number(node));
                self.asks(node, "INFO server", "$3\r\nabc");
            }
            ["close", node] => conduct.closes(number(node)),
            ["at", at] => {
                conduct.settle(true);
                conduct.begins(time(at));
            }
            ["call", ref wants @ ..] => {
                let wants = |name| wants.contains(&name).then(|| ms(number(wants[1])));
                let act = LockAction {
                    within: wants("within"),
                    renew_every: wants("renewing"),
                    ..LockAction::new("k", ms(1_000))
                };
                conduct.calls(op, &act);
            }
            ["grants", a, b, c] => {
                for (node, counter) in [("0", a), ("1", b), ("2", c)] {
                    self.asks(node, "ACQUIRE", &format!("GRANT {counter}"));
                }
            }
            ["holding"] => self.play("call; 0 1 2: ACQUIRE -> GRANT; acquired 7 until 988"),
            ["acquired", fencing, "until", until] => {
                conduct.acquired(op, b"t", fencing.parse().ok(), time(until));
            }
            ["extended", "until", until] => conduct.extended(op, time(until)),
            ["failed"] => conduct.failed(op),
            ["ends"] => conduct.ends(op, None),
            ["leaves", "until", until] => conduct.ends(op, Some(time(until))),
            ["lost", "denied"] => conduct.lost(op, true),
            ["lost", "late"] => conduct.lost(op, false),
            ["released", "by", a, b] => conduct.released(op, [a, b].map(number).into_iter()),
            ["releases", token] => conduct.releases(op, b"k", token.as_bytes()),
            ["looks", "until", until] => conduct.looks(op, b"k", time(until)),
            ["looked"] => conduct.looked(op),
            ["runs", count] => conduct.sees_operations(number(count)),
            _ => panic!("no such step: {step}"),
        }
    }

    fn asks(&mut self, nodes: &str, request: &str, reply: &str) {
        let request = match request {
            "ACQUIRE" => "LOCK.ACQUIRE k t 1000",
            "EXTEND" => "LOCK.EXTEND k t 1000",
            "RELEASE" => "LOCK.RELEASE k t",
            other => other,
        };
        let reply = match reply.split_once(' ') {
            Some(("GRANT", counter)) => format!("*3\r\n:1\r\n:{counter}\r\n:1000\r\n"),
            _ if reply == "GRANT" => GRANT.to_owned(),
            _ if reply == "REFUSAL" => REFUSAL.to_owned(),
            _ => format!("{reply}\r\n"),
        };
        if !request.is_empty() {
            for node in nodes.split(' ') {
                self.conduct.sends(number(node), &encoded(request));
            }
        }
        if reply.len() > 2 {
            for node in nodes.split(' ') {
                self.conduct.hears(number(node), reply.as_bytes());
            }
        }
    }

    /// What was wrong so far.
    fn found(&mut self) -> String {
        self.conduct.settle(true);
        let findings = self.conduct.findings.iter();
        match findings.map(|it| it.text.as_str()).collect::<Vec<_>>()[..] {
            [] => "fine".to_owned(),
            ref texts => texts.join(" / "),
        }
    }
}

const GRANT: &str = "*3\r\n:1\r\n:7\r\n:1000\r\n";
const REFUSAL: &str = "*3\r\n:0\r\n:7\r\n:900\r\n";

fn encoded(request: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    let mut bytes = Vec::new();
    locknode_resp::encode_command(&mut bytes, &words);
    bytes
}

fn number<N: FromStr<Err: Debug>>(word: &str) -> N {
    word.parse().expect("a number")
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn a_lock_has_a_majority_over_connections_that_have_not_ended() {
    check(
        "call; 0 1: ACQUIRE -> GRANT; acquired 7 until 988
        => fine

        call; 0 1: ACQUIRE -> GRANT; acquired 7 until 989
        => holds a lock with 0 nodes behind it

        call; 0: ACQUIRE -> GRANT; 1: ACQUIRE -> REFUSAL; 2: ACQUIRE; acquired 7 until 988
        => holds a lock with 1 nodes behind it / has a fencing token that 1 nodes hold

        call; 0 1: ACQUIRE -> GRANT; close 1; connect 1; acquired 7 until 988
        => holds a lock with 1 nodes behind it / has a fencing token that 1 nodes hold

        # The reply to an earlier request is not one to a later request.
        call; 1: LOCK.ACQUIRE k s 1000; 1: LOCK.RELEASE k s
        0 1: ACQUIRE -> GRANT; acquired 7 until 988
        => holds a lock with 1 nodes behind it / has a fencing token that 1 nodes hold

        call; acquired 7 until 988
        => holds a lock under a token that it never asked for",
    );
}

#[test]
fn an_extension_has_a_majority_and_none_that_may_still_get_a_shorter_one() {
    check(
        "holding; at 500; 0 1: EXTEND -> :1; extended until 1488
        => fine

        holding; at 500; 0 1: EXTEND -> :1; extended until 1489
        => has extended a lock with 0 nodes behind it

        # One is asked over a new connection, and owes the reply to an extension over the old one.
        holding; at 500; 1: LOCK.EXTEND k t 1000; close 1; connect 1
        0 1: EXTEND -> :1; extended until 1488
        => fine

        holding; at 500; 1: LOCK.EXTEND k t 999; close 1; connect 1
        0 1: EXTEND -> :1; extended until 1488
        => has extended a lock with 1 nodes behind it

        # In the words of other servers.
        holding; at 500; 0 1: SET k t IFEQ t PX 1000 -> +OK; extended until 1488
        => fine

        holding; at 500; 0 1: EVALSHA 36e9 1 k t 1000 -> :1; extended until 1488
        => fine",
    );
}

/// `[F7]`
#[test]
fn a_fencing_token_is_held_by_a_majority() {
    check(
        "call; grants 7 7 9; acquired 7 until 988
        => fine

        call; grants 7 8 9; 0: LOCK.FENCE k t 7 9 -> :1; acquired 9 until 988
        => fine

        call; grants 7 8 9; acquired 9 until 988
        => has a fencing token that 1 nodes hold

        call; grants 7 8 9; acquired 7 until 988
        => has a fencing token that 1 nodes hold

        call; grants 7 10 9; 1: LOCK.FENCE k t 7 9 -> :1; acquired 9 until 988
        => has a fencing token that 1 nodes hold

        call; grants 7 7 9; acquired none until 988
        => has no fencing token although a majority counts",
    );
}

#[test]
fn what_a_majority_granted_in_time_is_not_let_go() {
    check(
        "call; 0 1 2: ACQUIRE; 0: -> GRANT; at 100; failed; 0 1 2: RELEASE
        => fine

        call; 0 1 2: ACQUIRE; 0 1: -> GRANT; at 100; failed; 0 1 2: RELEASE
        => lets a lock go that a majority has granted in time

        call; 0 1 2: ACQUIRE; 0 1: -> GRANT; at 988; failed; 0 1 2: RELEASE
        => fine

        call; 0 1 2: ACQUIRE; at 100; 0 1: -> GRANT; at 100; failed; 0 1 2: RELEASE
        => fine

        call; 0 1 2: ACQUIRE; 0: -> GRANT; 1: -> GRANT 8; 0: LOCK.FENCE k t 7 8
        at 100; failed; 0 1 2: RELEASE
        => fine",
    );
}

#[test]
fn each_attempt_has_a_token_of_its_own_and_no_part_in_another() {
    check(
        "call; 0 1 2: ACQUIRE -> REFUSAL; 0 1 2: RELEASE -> :0; at 10; 0: LOCK.ACQUIRE k s 1000
        => fine
        0: ACQUIRE
        => asks for a lock under a token that it had before

        holding; 0: RELEASE
        => releases a lock that its caller holds

        holding; ends; 0 1 2: RELEASE; at 10; 0: EXTEND
        => asks for more under a token that it has let go

        holding; 0: LOCK.ACQUIRE j t 1000
        => uses one token for two keys

        holding; 0: LOCK.EXTEND k s 1000
        => speaks of a lock that it never asked for",
    );
}

#[test]
fn what_nobody_has_is_released_wherever_it_may_be() {
    check(
        "# Given up, and nothing said.
        call; 0: ACQUIRE -> GRANT; 1 2: ACQUIRE -> REFUSAL
        => fine
        failed
        => does not release what it has no use for on node 0

        # The attempt before the last one.
        call; 0: ACQUIRE -> GRANT; at 10; 1: LOCK.ACQUIRE k s 1000
        => does not release what it has no use for on node 0

        # When the node is back, again until it answers, and not once the TTL has passed.
        holding; close 0; ends; 1 2: RELEASE -> :1; at 500; connect 0
        => does not release what it has no use for on node 0

        holding; close 0; ends; 1 2: RELEASE -> :1; at 1000; connect 0
        => fine

        holding; close 0; ends; 1 2: RELEASE -> :1; at 500; connect 0; 0: RELEASE
        => fine

        holding; close 0; ends; 1 2: RELEASE -> :1; at 500; connect 0; 0: RELEASE
        at 600; close 0; connect 0
        => does not release what it has no use for on node 0

        holding; close 0; ends; 1 2: RELEASE -> :1; at 500; connect 0
        0: EVALSHA b70c 1 k t -> -NOSCRIPT no
        => does not release what it has no use for on node 0

        holding; close 0; ends; 1 2: RELEASE -> :1; at 500; connect 0; 0: RELEASE -> -LOADING no
        => fine

        # What is left to its TTL is. A node that was slow to reply is asked to extend it once more, even after the TTL.
        holding; leaves until 0
        => fine
        at 2000; at 2001; 0: EXTEND
        => fine",
    );
}

#[test]
fn a_node_that_lost_the_lock_gets_it_again() {
    check(
        "holding; at 500; 0 1 2: EXTEND; 1 2: -> :1; 0: -> :0; extended until 1488
        => does not heal its lock on node 0

        holding; at 500; 0 1 2: EXTEND; 1 2: -> :1; 0: -> :0; extended until 1488
        0: LOCK.ACQUIRE k t 1000 FLOOR 6
        => fine

        holding; at 500; 0 1 2: EXTEND; 1 2: -> :1; 0: -> :0; extended until 1488; 0: PTTL k
        => does not heal its lock on node 0

        holding; at 500; 0 1 2: EXTEND; 1 2: -> :1; at 510; extended until 1488; at 520; 0: -> :0
        => does not heal its lock on node 0

        # The majority was one of a later extension.
        holding; at 500; 0 1 2: EXTEND; 1 2: -> :1; at 510; extended until 1489; at 520; 0: -> :0
        => has extended a lock with 0 nodes behind it

        # The next round is asked at the very moment at which the last one succeeded: the client's process was stopped in
        # between. That a node has no lock for it is no reason to heal until it has succeeded, too.
        holding; at 500; 0 1 2: EXTEND; 1 2: -> :1; 0: -> :1; extended until 1488
        at 500; 0 1 2: EXTEND; at 500; 0: -> :0
        => fine
        extended until 1488
        => does not heal its lock on node 0",
    );
}

#[test]
fn the_end_of_a_lock_is_not_told_while_a_majority_may_hold_it() {
    check(
        "holding; at 500; 0: EXTEND -> :0; lost denied
        => says that a lock is lost that is not

        holding; at 500; 0 1: EXTEND -> :0; lost denied
        => fine

        holding; at 887; lost late
        => says that a lock is lost that is not

        holding; at 888; lost late
        => fine

        # One waits for its reply.
        holding; ends; 0 1 2: RELEASE -> :1; 0: PTTL k; released by 0 1
        => fine

        holding; ends; 0 1 2: RELEASE -> :0; 0: PTTL k; released by 0 1
        => says that a node has released a lock that has not said so",
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
        let mut bytes = encoded(words);
        let len = bytes.len();
        bytes.extend_from_slice(b"*1");
        let (key, token) = (b"k".as_slice(), b"t".as_slice());
        let request = wire::Request { key, token, ask };
        let read = &mut Decoder::new();
        assert_eq!(wire::request(read, &bytes), Some((request, len)));
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
    let tries = |call: &str, at: &str, want: &str| {
        check(&format!(
            "{call}; 0: ACQUIRE -> GRANT; 1 2: ACQUIRE -> REFUSAL; at 5; 0 1 2: RELEASE -> :0
            {at}
            0 1 2: LOCK.ACQUIRE k u 1000 -> REFUSAL
            => {want}"
        ));
    };
    tries("call", "", "tries for a lock again without a pause");
    tries("call", "at 15", "fine");
    tries("call within 16", "at 15", "fine");
    let late = "tries for a lock after its caller's time limit";
    tries("call within 15", "at 15", late);
}

#[test]
fn a_lock_is_renewed_and_kept_as_its_caller_wants() {
    check(
        "call renewing 300; 0 1 2: ACQUIRE -> GRANT; acquired 7 until 988; at 200; at 410; at 600
        => does not renew a lock as often as it is to

        call renewing 300; 0 1 2: ACQUIRE -> GRANT; acquired 7 until 988
        at 200; 0 1 2: EXTEND -> :1; at 400; 0 1 2: EXTEND -> :1; at 600
        => fine

        holding; leaves until 500; at 499; 0: RELEASE
        => releases a lock that is to be kept for longer

        holding; leaves until 500; at 500; 0: RELEASE
        => fine",
    );
}

#[test]
fn what_a_caller_gives_up_and_what_another_client_left_is_released() {
    check(
        "call; 0: ACQUIRE -> GRANT; ends; 0: GET k -> :0
        => does not release what it has no use for on node 0

        call; 0: ACQUIRE -> GRANT; ends; 0: RELEASE -> :0
        => fine

        releases left; 0 1 2: GET k -> :0
        => does not release what it has no use for on node 0 / does not release what it has no \
        use for on node 1 / does not release what it has no use for on node 2

        releases left; 0 1 2: LOCK.RELEASE k left -> :0
        => fine",
    );
}

#[test]
fn a_look_is_answered_in_time_and_no_operation_stays_for_nothing() {
    check(
        "looks until 250; at 249; at 249; looked; at 500
        => fine

        looks until 250; at 250; at 250; looked; at 500
        => does not say in time who holds a key",
    );
    // One that is stopped for long has not run so long.
    let long: Vec<_> = (0..11).map(|turn| turn * 500).collect();
    for (times, count, want) in [
        (&long[..], 1, "keeps operations that are over"),
        (&long[..], 0, "fine"),
        (&[0, 100_000, 200_000, 300_000], 1, "fine"),
    ] {
        let mut stage = Stage::new();
        for at in times {
            stage.play(&format!("at {at}; runs {count}"));
        }
        assert_eq!(stage.found(), want);
    }
}
