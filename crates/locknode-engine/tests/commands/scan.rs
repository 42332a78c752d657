use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use locknode_engine::Flow;

use crate::node::{Node, check};

#[test]
fn keys_and_dbsize_see_one_database() {
    check(
        "KEYS * => *0
         SET one 1 => +OK
         KEYS * => *1 $3 one
         KEYS o?e => *1 $3 one
         KEYS [^n-p]* => *0
         KEYS '' => *0
         KEYS => -ERR wrong number of arguments for 'keys' command
         DBSIZE => :1
         SET '' 1 PX 1 => +OK
         DEL one => :1
         KEYS * => *1 $0
         + 2
         KEYS * => *0
         RANDOMKEY => $-1",
    );
}

#[test]
fn scan_refuses_bad_input() {
    check(
        "SCAN abc => -ERR invalid cursor
         SCAN -1 => -ERR invalid cursor
         SCAN '' => -ERR invalid cursor
         SCAN 18446744073709551616 => -ERR invalid cursor
         SCAN 18446744073709551615 => *2 $1 0 *0
         SCAN abc foo => -ERR invalid cursor
         SCAN 0 COUNT => -ERR syntax error
         SCAN 0 COUNT 0 => -ERR syntax error
         SCAN 0 COUNT -1 => -ERR syntax error
         SCAN 0 COUNT a => -ERR value is not an integer or out of range
         SCAN 0 foo bar => -ERR syntax error
         SCAN 0 MATCH => -ERR syntax error
         SCAN 0 TYPE => -ERR syntax error
         SCAN => -ERR wrong number of arguments for 'scan' command
         SET a 1 => +OK
         SCAN 0 COUNT 1000 => *2 $1 0 *1 $1 a
         SCAN 0 TYPE string MATCH a* COUNT 100 => *2 $1 0 *1 $1 a
         SCAN 0 TYPE zset => *2 $1 0 *0
         SCAN 0 MATCH b* => *2 $1 0 *0",
    );
}

/// Calls SCAN until it has ended, with something done after each call; returns all keys, and the number of calls.
fn scan(node: &mut Node, options: &str, between: impl Fn(&mut Node, i32)) -> (Vec<String>, i32) {
    let (mut cursor, mut keys, mut calls) = ("0".to_owned(), Vec::new(), 0);
    loop {
        let reply = node.run(&format!("SCAN {cursor}{options}"));
        let words = reply.split(' ');
        let mut words = words.filter(|word| !word.starts_with(['$', '*']));
        cursor = words.next().expect("a cursor").to_owned();
        keys.extend(words.map(str::to_owned));
        between(node, calls);
        calls += 1;
        if cursor == "0" {
            return (keys, calls);
        }
    }
}

#[test]
fn scan_replies_every_key_that_stays_exactly_once_while_others_come_and_go() {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        for key in 0..5_000 {
            node.run(&format!("SET stays:{key} 1"));
        }
        let (mut seen, calls) = scan(&mut node, " COUNT 50", |node, calls| {
            for i in 0..20 {
                node.run(&format!("SET comes:{calls}:{i} 1"));
                node.run(&format!("DEL comes:{}:{i}", calls - 1));
                let key = calls * 20 + i;
                node.run(&format!("SET stays:{key} 22222222222222222222222222222222"));
            }
        });
        seen.retain(|key| key.starts_with("stays:"));
        assert!(calls > 20, "COUNT bounds a call");
        assert_eq!(seen.len(), 5_000);
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), 5_000);
    }
}

#[test]
fn scan_of_a_small_database_beside_a_large_one_ends_and_finds_all() {
    let mut node = Node::with_shards(1);
    for key in 0..20_000 {
        node.run(&format!("SET big:{key} 1"));
    }
    assert_eq!(node.run("SELECT 1"), "+OK");
    node.run("SET small 1");
    let (keys, calls) = scan(&mut node, "", |_, _| {});
    assert_eq!(keys, ["small"]);
    assert!(calls > 10, "a call looks at a bounded number of entries");
}

#[test]
fn randomkey_is_roughly_uniform() {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        for key in 0..10 {
            node.run(&format!("SET k{key} 1"));
        }
        let mut counts = BTreeMap::new();
        for _ in 0..2_000 {
            *counts.entry(node.run("RANDOMKEY")).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 10);
        assert!(
            counts.values().all(|&count| (120..280).contains(&count)),
            "{counts:?}"
        );
    }
}

#[test]
fn randomkey_finds_the_one_live_key_among_many_expired_ones() {
    let mut node = Node::with_shards(1);
    for key in 0..70_000 {
        node.run(&format!("SET dead:{key} 1 PX 1"));
    }
    assert!(node.run("RANDOMKEY").starts_with("$"));
    node.run("SET alive 1");
    node.advance_nanos(2_000_000);
    assert_eq!(node.run("RANDOMKEY"), "$5 alive");
    node.run("DEL alive");
    assert_eq!(node.run("RANDOMKEY"), "$-1");
}

/// As on a server, where other clients are served while it goes on.
#[test]
fn keys_lets_others_in_between_and_misses_no_key() {
    for shards in [1, 8] {
        let mut node = Node::with_config(|config| {
            config.shards = shards;
            config.stopwatch = Some(|| Duration::ZERO);
        });
        for number in 0..50_000 {
            node.bytes(&[b"SET", format!("k{number}").as_bytes(), b"v"]);
        }
        let (mut out, mut parts) = (Vec::new(), 0);
        loop {
            let mut batch = node.engine.batch(node.moment);
            let flow = batch.execute(&mut node.clients[0], &[b"KEYS", b"k*"], &mut out);
            drop(batch);
            if flow != Flow::Paused {
                break;
            }
            assert!(out.is_empty() && node.clients[0].is_in_queue());
            parts += 1;
            // Another search waits until this one is done, and what takes little time does not.
            let mut batch = node.engine.batch(node.moment);
            let flow = batch.execute(&mut node.clients[2], &[b"KEYS", b"k*"], &mut Vec::new());
            assert_eq!(flow, Flow::Paused);
            drop(batch);
            assert_eq!(node.run(&format!("b> SET another{parts} v")), "+OK");
            assert_eq!(node.run(&format!("b> DEL k{parts}")), ":1");
        }
        node.clients[2].leave_queue();
        assert!(parts > 1, "{parts}");
        let text = String::from_utf8(out).unwrap();
        let mut keys = BTreeSet::new();
        for key in text.split("\r\n").filter(|line| line.starts_with('k')) {
            assert!(keys.insert(key.to_owned()), "{key} twice");
        }
        assert_eq!(text.lines().next(), Some(&*format!("*{}", keys.len())));
        let is_missing = |number: &usize| !keys.contains(&format!("k{number}"));
        let missing: Vec<usize> = (0..50_000).filter(is_missing).collect();
        assert!(missing.iter().all(|number| (1..=parts).contains(number)));
        // In a transaction nobody comes in between.
        #[cfg(feature = "compat")]
        node.check(
            "MULTI => +OK
             KEYS another1 => +QUEUED
             EXEC => *1 *1 $8 another1",
        );
    }
}

#[test]
fn a_search_whose_connection_has_gone_holds_up_nobody() {
    let mut node = Node::with_config(|config| config.stopwatch = Some(|| Duration::ZERO));
    for number in 0..30_000 {
        node.bytes(&[b"SET", format!("k{number}").as_bytes(), b"v"]);
    }
    let mut batch = node.engine.batch(node.moment);
    let flow = batch.execute(&mut node.clients[0], &[b"KEYS", b"x"], &mut Vec::new());
    drop(batch);
    assert_eq!(flow, Flow::Paused);
    drop(node.clients.remove(0));
    assert_eq!(node.run("KEYS x"), "*0");
}

/// Comparing one key with this pattern takes ten billion looks at a byte.
#[test]
fn a_pattern_that_takes_long_is_refused() {
    const HARD: &str =
        "-UNSUPPORTED a pattern that takes so long to compare: make it, or the names, shorter\r\n";
    let (key, pattern) = ("a".repeat(500_000), format!("*{}b", "a".repeat(20_000)));
    let mut node = Node::new();
    node.bytes(&[b"SET", key.as_bytes(), b"v"]);
    node.bytes_for(1, &[b"SUBSCRIBE", key.as_bytes()]);
    for words in [
        &["KEYS", &pattern][..],
        &["SCAN", "0", "COUNT", "10000", "MATCH", &pattern],
        #[cfg(feature = "compat")]
        &["EVAL", "return redis.call('keys', ARGV[1])", "0", &pattern],
        #[cfg(feature = "compat")]
        &["PUBSUB", "CHANNELS", &pattern],
    ] {
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let reply = String::from_utf8(node.bytes(&args)).unwrap();
        assert!(reply.starts_with(HARD.trim_end()), "{}: {reply}", words[0]);
    }
    let long = format!("*{}", "?".repeat(1_000_000));
    assert_eq!(node.run(&format!("CONFIG GET {long}")), "*0");
    assert_eq!(node.run("KEYS *b"), "*0");
}
