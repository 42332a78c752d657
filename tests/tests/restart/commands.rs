//! Late, repeated and foreign extensions and releases: by the plain commands, the scripts of lock libraries, and LOCK.

use std::time::Duration;

use locknode_tests::{Answer, NodeSettings, StoredNode};

use crate::{NANO, SECOND, loading, node, settings, told};

const RELEASE_SCRIPT: &str = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const EXTEND_SCRIPT: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], \
    ARGV[2]) else return 0 end";

fn releases(token: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["LOCK.RELEASE", "k", token],
        vec!["DELEX", "k", "IFEQ", token],
        vec!["DELIFEQ", "k", token],
        vec!["EVAL", RELEASE_SCRIPT, "1", "k", token],
    ]
}

fn extensions(token: &str) -> Vec<Vec<&str>> {
    vec![
        vec!["LOCK.EXTEND", "k", token, "60000"],
        vec!["SET", "k", token, "IFEQ", token, "PX", "60000"],
        vec!["EVAL", EXTEND_SCRIPT, "1", "k", token, "60000"],
    ]
}

/// A script that the node has seen before runs as one operation on the table, a new one in the evaluator.
fn known_or_not(requests: Vec<Vec<&str>>) -> Vec<(Vec<&str>, bool)> {
    let known = requests.clone().into_iter().map(|it| (it, true));
    requests
        .into_iter()
        .map(|it| (it, false))
        .chain(known)
        .collect()
}

fn send(node: &mut StoredNode, words: &[&str]) -> String {
    let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    match node.send_all(&[&args]) {
        Answer::Told(reply) => reply,
        answer => panic!("{words:?}: {answer:?}"),
    }
}

fn is_refused(reply: &str) -> bool {
    reply == ":0" || reply == "$-1"
}

/// S31
#[test]
fn an_extension_that_comes_after_the_release_creates_nothing() {
    for extension in extensions("a") {
        for how in [
            |_: &mut StoredNode| (),
            |node: &mut StoredNode| {
                node.advance(30 * SECOND + NANO);
            },
        ] {
            let mut node = node();
            assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
            how(&mut node);
            told(&mut node, "LOCK.RELEASE k a");
            assert!(is_refused(&send(&mut node, &extension)), "{extension:?}");
            assert_eq!(told(&mut node, "EXISTS k"), ":0", "{extension:?}");
        }
    }
}

/// S31: nor the plain commands that extend, on a node that restarted.
#[test]
fn no_extension_brings_a_lost_lock_back() {
    for words in [
        &["PEXPIRE", "k", "30000"][..],
        &["EXPIRE", "k", "30"],
        &["SET", "k", "a", "XX", "PX", "30000"],
        &["GETEX", "k", "PX", "30000"],
        &["PERSIST", "k"],
    ] {
        let mut node = node();
        assert_eq!(told(&mut node, "SET k a NX PX 30000"), "+OK");
        node.kill();
        node.start().unwrap();
        assert!(loading(&mut node, &words.join(" ")));
        node.advance(node.quarantine_left().unwrap());
        assert!(is_refused(&send(&mut node, words)), "{words:?}");
        assert_eq!(told(&mut node, "EXISTS k"), ":0", "{words:?}");
    }
}

/// S32
#[test]
fn a_release_by_one_whose_lock_has_ended_leaves_the_next_holder_alone() {
    for (release, is_known) in known_or_not(releases("a")) {
        let mut node = node();
        if is_known {
            send(&mut node, &release);
        }
        assert_eq!(told(&mut node, "SET k a NX PX 1000"), "+OK");
        node.advance(SECOND + NANO);
        assert_eq!(told(&mut node, "SET k b NX PX 30000"), "+OK");
        assert!(is_refused(&send(&mut node, &release)), "{release:?}");
        assert_eq!(told(&mut node, "GET k"), "$1 b", "{release:?}");
    }
}

/// S34
#[test]
fn an_extension_by_one_whose_lock_has_ended_leaves_the_next_holder_alone() {
    for (extension, is_known) in known_or_not(extensions("a")) {
        let mut node = node();
        if is_known {
            send(&mut node, &extension);
        }
        assert_eq!(told(&mut node, "SET k a NX PX 1000"), "+OK");
        node.advance(SECOND + NANO);
        assert_eq!(told(&mut node, "SET k b NX PX 2000"), "+OK");
        assert!(is_refused(&send(&mut node, &extension)), "{extension:?}");
        assert_eq!(
            told(&mut node, "LOCK.GET k").split(' ').nth(3),
            Some(":2000")
        );
    }
}

/// S34 [G5] [G6] [L1]: every way to extend is a grant, which is waited for or on the log.
#[test]
fn a_lock_that_was_extended_is_waited_for_to_its_new_end() {
    let plain = vec![
        vec!["PEXPIRE", "k", "60000"],
        vec!["EXPIRE", "k", "60"],
        vec!["PEXPIREAT", "k", "1800000060000"],
        vec!["SET", "k", "a", "XX", "PX", "60000"],
        vec!["SET", "k", "a", "PXAT", "1800000060000"],
        vec!["GETEX", "k", "PX", "60000"],
        vec!["PSETEX", "k", "60000", "a"],
        vec!["SETEX", "k", "60", "a"],
    ];
    let requests = extensions("a").into_iter().chain(plain).collect();
    for (extension, is_known) in known_or_not(requests) {
        for how in [StoredNode::kill, StoredNode::reboot] {
            let mut node = node();
            if is_known {
                send(&mut node, &extension);
                told(&mut node, "DEL k");
            }
            assert_eq!(told(&mut node, "SET k a NX PX 1000"), "+OK");
            let reply = send(&mut node, &extension);
            assert!(!is_refused(&reply), "{extension:?}: {reply}");
            how(&mut node);
            node.start().unwrap();
            let left = node.quarantine_left().unwrap();
            assert!(left > Duration::from_secs(60), "{extension:?}: {left:?}");
        }
    }
}

/// S34 [L1] [L3]: across the threshold, in both directions.
#[test]
fn a_lock_that_was_extended_beyond_max_ttl_survives_a_crash() {
    let plain = vec![
        vec!["PEXPIRE", "k", "3600000"],
        vec!["PERSIST", "k"],
        vec!["SET", "k", "a", "XX", "PX", "3600000"],
        vec!["SET", "k", "a"],
        vec!["GETEX", "k", "PERSIST"],
        vec!["LOCK.EXTEND", "k", "a", "3600000"],
        vec!["EVAL", EXTEND_SCRIPT, "1", "k", "a", "3600000"],
        vec!["MSET", "k", "a"],
        vec!["GETSET", "k", "a"],
    ];
    for extension in plain {
        let mut node = node();
        assert_eq!(told(&mut node, "SET k a NX PX 1000"), "+OK");
        let reply = send(&mut node, &extension);
        assert!(
            !is_refused(&reply) && !reply.starts_with('-'),
            "{extension:?}: {reply}"
        );
        node.reboot();
        node.start().unwrap();
        node.advance(node.quarantine_left().unwrap_or_default());
        assert_eq!(told(&mut node, "GET k"), "$1 a", "{extension:?}");
        // And down again: the shorter end counts.
        assert_eq!(told(&mut node, "LOCK.EXTEND k a 5000"), ":1");
        node.kill();
        node.start().unwrap();
        node.advance(5 * SECOND + NANO);
        node.advance(node.quarantine_left().unwrap_or_default());
        assert_eq!(told(&mut node, "EXISTS k"), ":0", "{extension:?}");
    }
}

/// S47
#[test]
fn a_node_without_memory_refuses_and_forgets_nothing() {
    let mut options = settings().options;
    // Some locks more than a node without any needs.
    options.maxmemory = 140_000;
    let mut node = StoredNode::first_start(NodeSettings {
        options,
        ..settings()
    })
    .unwrap();
    let mut held = 0;
    while told(&mut node, &format!("SET k{held} a NX PX 30000")) == "+OK" {
        held += 1;
        assert!(held < 3000, "it never ends");
    }
    let reply = told(&mut node, "LOCK.ACQUIRE another a 1000");
    assert!(reply.starts_with("-OOM "), "{reply}");
    for index in 0..held {
        assert_eq!(told(&mut node, &format!("GET k{index}")), "$1 a");
        assert_eq!(
            told(&mut node, &format!("LOCK.EXTEND k{index} a 30000")),
            ":1"
        );
    }
    assert_eq!(told(&mut node, "LOCK.RELEASE k0 a"), ":1");
}

/// S47 [L3]
#[test]
fn what_was_flushed_stays_away_after_a_crash() {
    for flush in ["FLUSHALL", "FLUSHDB"] {
        for how in [StoredNode::kill, StoredNode::reboot] {
            let mut node = node();
            assert_eq!(told(&mut node, "SET ever a NX"), "+OK");
            assert_eq!(told(&mut node, "SELECT 1"), "+OK");
            assert_eq!(told(&mut node, "SET other a NX"), "+OK");
            assert_eq!(told(&mut node, "SELECT 0"), "+OK");
            node.hold_disk();
            let Answer::Withheld(_) = node.send(flush) else {
                panic!("{flush} was told before it was durable");
            };
            node.release_disk();
            assert_eq!(node.take_late().len(), 1);
            assert_eq!(told(&mut node, "SET later a NX"), "+OK");
            how(&mut node);
            node.start().unwrap();
            assert_eq!(told(&mut node, "EXISTS ever"), ":0");
            assert_eq!(told(&mut node, "EXISTS later"), ":1");
            assert_eq!(told(&mut node, "SELECT 1"), "+OK");
            let others = if flush == "FLUSHALL" { ":0" } else { ":1" };
            assert_eq!(told(&mut node, "EXISTS other"), others, "{flush}");
        }
    }
}
