//! Hashes, lists, sets and sorted sets over crashes and stops, and directories of the older format.

use std::time::Duration;

use locknode_tests::{Answer, StoredNode};

use crate::{FALLS, SECOND, node, stop};

/// Requests that must not be answered before their record is durable, what makes them possible, and what shows after a
/// crash that they were done.
const AWAITED: [(&[&str], &str, &str, &str); 17] = [
    (&[], "HSET k f 1 g 2", "HGETALL k", "*4 $1 f $1 1 $1 g $1 2"),
    (&["HSET k f 1"], "HSET k f 2", "HGET k f", "$1 2"),
    (&["HSET k f 1"], "HSETNX k g 2", "HLEN k", ":2"),
    (&["HSET k f 1"], "HINCRBY k f 1", "HGET k f", "$1 2"),
    (&["HSET k f 1 g 2"], "HDEL k g", "HGETALL k", "*2 $1 f $1 1"),
    (&["HSET k f 1"], "HDEL k f", "EXISTS k", ":0"),
    (&["HSET k f 1"], "DEL k", "EXISTS k", ":0"),
    (&["HSET k f 1"], "SET k v", "GET k", "$1 v"),
    (&["HSET k f 1"], "PEXPIRE k 3600000", "HGET k f", "$1 1"),
    (&[], "RPUSH k a b", "LRANGE k 0 -1", "*2 $1 a $1 b"),
    (
        &["RPUSH k a b"],
        "LPUSH k c",
        "LRANGE k 0 -1",
        "*3 $1 c $1 a $1 b",
    ),
    (&["RPUSH k a b"], "LPOP k", "LRANGE k 0 -1", "*1 $1 b"),
    (&["RPUSH k a b a"], "LREM k 0 a", "LRANGE k 0 -1", "*1 $1 b"),
    (&[], "SADD k a b", "SCARD k", ":2"),
    (&["SADD k a b"], "SREM k a", "SISMEMBER k a", ":0"),
    (
        &[],
        "ZADD k 1.5 a -inf b",
        "ZRANGE k 0 -1 WITHSCORES",
        "*4 $1 b $4 -inf $1 a $3 1.5",
    ),
    (&["ZADD k 1 a"], "ZINCRBY k 2 a", "ZSCORE k a", "$1 3"),
];

/// `[L1]` `[L3]`
#[test]
fn what_is_told_of_a_value_on_the_log_is_durable_first() {
    for (before, request, look, seen) in AWAITED {
        for fall in FALLS {
            let mut node = node();
            for request in before {
                node.reply(request);
            }
            node.hold_disk();
            let ticket = node.expect_withheld(request);
            // What depends on it waits, too.
            let next = node.expect_withheld(look);
            node.release_disk();
            let late = node.take_late();
            let are_sent = late.iter().map(|(it, _)| *it).collect::<Vec<_>>();
            assert_eq!(are_sent, [ticket, next], "{request}: {late:?}");
            assert_eq!(late[1].1, Answer::Reply(seen.to_owned()), "{request}");
            node.restart(fall);
            node.wait();
            node.expect(look, seen);
        }
    }
}

/// A lock held as a hash rides on the guard like any other: only the wait knows of it after a crash, and a clean stop
/// writes it down. `[G5]` `[G10]`
#[test]
fn a_short_lock_held_as_a_hash_is_waited_for_or_kept() {
    for (end, is_kept) in [
        (StoredNode::kill as fn(&mut StoredNode), false),
        (stop, true),
    ] {
        let mut node = node();
        node.reply("SET long v");
        node.hold_disk();
        let script = "EVAL \"redis.call('hincrby',KEYS[1],'holder',1) redis.call('pexpire',KEYS[1],30000) return 1\" 1 k";
        let answer = node.send(script);
        node.release_disk();
        assert!(matches!(answer, Answer::Reply(_) | Answer::Withheld(_)));
        node.restart(end);
        if is_kept {
            node.expect("HGET k holder", "$1 1");
            node.advance(Duration::from_secs(31));
            node.expect("EXISTS k", ":0");
        } else {
            assert!(node.is_loading("HGET k holder"));
            assert!(node.quarantine_left().expect("a wait") >= 30 * SECOND);
            node.wait();
            node.expect("EXISTS k", ":0");
        }
        node.expect("GET long", "$1 v");
    }
}

/// `[S4]` An older node, or one without values, refuses the directory from the first value on, and not before.
#[test]
fn the_first_value_makes_the_directory_one_of_format_2() {
    let format = |node: &StoredNode| node.disk.snapshot()["state"][8];
    for (request, end, want) in [
        ("SET k v", StoredNode::kill as fn(&mut StoredNode), 1),
        ("HSET k f v", StoredNode::kill, 2),
        ("SET k v PX 1000", stop, 1),
        (
            "EVAL \"redis.call('sadd',KEYS[1],1) return redis.call('pexpire',KEYS[1],1000)\" 1 k",
            stop,
            2,
        ),
    ] {
        let mut node = node();
        assert_eq!(format(&node), 1);
        node.reply(request);
        end(&mut node);
        assert_eq!(format(&node), want, "{request}");
        node.start();
        node.wait();
        node.reply("DEL k");
        assert_eq!(format(&node), want, "{request}");
    }
}

/// A directory that the release before values wrote: a snapshot of a clean stop, then a log up to a crash. Its segment
/// was as long as its header says; the zeros at its end are left out of the repository. `[L6]`
#[test]
fn a_directory_of_the_older_format_is_read_and_carried_on() {
    let files: [(&str, &[u8]); 3] = [
        ("state", include_bytes!("../../fixtures/format-1/state")),
        (
            "snapshot-0000000000000001",
            include_bytes!("../../fixtures/format-1/snapshot-0000000000000001"),
        ),
        (
            "log-0000000000000002",
            include_bytes!("../../fixtures/format-1/log-0000000000000002"),
        ),
    ];
    let mut image = locknode_tests::faulty_disk::Image::default();
    for (name, content) in files {
        let mut content = content.to_vec();
        if name.starts_with("log") {
            content.resize(4 << 20, 0);
        }
        image.insert(name.to_owned(), content);
    }
    for fall in FALLS {
        let mut node = StoredNode::new(crate::settings());
        node.disk.restore(&image);
        node.open(false).expect("a directory of format 1");
        node.wait();
        let check = |node: &mut StoredNode| {
            node.expect("GET kept", "$9 token-new");
            node.expect("GET late", "$10 token-late");
            node.expect("EXISTS gone", ":0");
            node.expect_ok(&["SELECT 3"]);
            node.expect("GET invoice:7", "$7 token-7");
            node.expect_ok(&["SELECT 0"]);
        };
        check(&mut node);
        node.reply("HSET value f 1");
        node.restart(fall);
        node.wait();
        check(&mut node);
        node.expect("HGET value f", "$1 1");
    }
}
