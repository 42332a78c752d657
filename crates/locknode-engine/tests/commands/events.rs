//! Keyspace events.

use crate::node::{Node, check};

/// Each row: what a client sends, and the events of it, as `class-letter-free` texts on one channel.
#[test]
fn every_write_has_the_events_that_redis_has() {
    let mut node = Node::new();
    node.run("CONFIG SET notify-keyspace-events KEAnm");
    node.run("b> PSUBSCRIBE __keyevent@*");
    node.run("c> PSUBSCRIBE __keyspace@*");
    for (request, events) in [
        ("SET k v", "new set"),
        ("SET k v", "set"),
        ("SET k w PX 1000", "set expire"),
        ("SET k w KEEPTTL", "set"),
        ("SET k w XX PX 1000", "set expire"),
        ("SET k w NX PX 1000", ""),
        ("SETNX k w", ""),
        ("SETEX k 10 w", "set expire"),
        ("PSETEX k 10000 w", "set expire"),
        ("GETSET k 7", "set"),
        ("INCR k", "incrby"),
        ("DECRBY k 3", "incrby"),
        ("PEXPIRE k 1000", "expire"),
        ("INCRBY k 3", "incrby"),
        ("PEXPIRE k 1000 NX", ""),
        ("PERSIST k", "persist"),
        ("PERSIST k", ""),
        ("GETEX k PX 1000", "expire"),
        ("GETEX k PERSIST", "persist"),
        ("GETEX k PERSIST", ""),
        ("GETEX k", ""),
        ("GET k", ""),
        ("GETDEL k", "del"),
        ("GET k", "keymiss"),
        ("GETDEL k", "keymiss"),
        ("EXISTS k", "keymiss"),
        ("DEL k", ""),
        ("INCR k", "new incrby"),
        ("PEXPIREAT k 1", "del"),
        ("SET k v PXAT 1", ""),
        ("MSET k a k b", "new set set"),
        ("UNLINK k", "del"),
        ("MSETNX k a", "new set"),
        ("DELEX k IFEQ b", ""),
        ("DELEX k IFEQ a", "del"),
        ("LOCK.ACQUIRE k t 1000", "new set expire"),
        ("LOCK.EXTEND k t 1000", "expire"),
        ("LOCK.RELEASE k t", "del"),
        ("HSET k f 1", "new hset"),
        ("HSETNX k g 1", "hset"),
        ("HSETNX k g 1", ""),
        ("HINCRBY k f 1", "hincrby"),
        ("HDEL k none", ""),
        ("HDEL k g", "hdel"),
        ("HDEL k f", "hdel del"),
        ("RPUSH k a b", "new rpush"),
        ("LPUSH k c", "lpush"),
        ("LREM k 0 c", "lrem"),
        ("LTRIM k 0 -1", "ltrim"),
        ("LPOP k", "lpop"),
        ("BLPOP k 0", "lpop del"),
        ("SADD k a b", "new sadd"),
        ("SADD k a", ""),
        ("SREM k a", "srem"),
        ("SREM k b", "srem del"),
        ("ZADD k 1 a 5 b 6 c", "new zadd"),
        ("ZADD k 1 a", ""),
        ("ZINCRBY k 1 a", "zincr"),
        ("ZINCRBY k 0 a", ""),
        ("ZREMRANGEBYSCORE k 0 2", "zremrangebyscore"),
        ("ZREM k b", "zrem"),
        ("ZREM k c", "zrem del"),
        ("SELECT 3", ""),
        ("SET k v", "new set"),
        ("FLUSHALL", ""),
        ("SELECT 0", ""),
    ] {
        let db = if request.contains("v")
            && request == "SET k v"
            && node.run("CLIENT INFO").contains(" db=3 ")
        {
            3
        } else {
            0
        };
        node.run(request);
        let events: Vec<&str> = events.split_whitespace().collect();
        let by_event: Vec<String> = events
            .iter()
            .map(|event| {
                let channel = format!("__keyevent@{db}__:{event}");
                let len = channel.len();
                format!("*4 $8 pmessage $13 __keyevent@* ${len} {channel} $1 k")
            })
            .collect();
        let by_key: Vec<String> = events
            .iter()
            .map(|event| {
                let len = event.len();
                format!("*4 $8 pmessage $13 __keyspace@* $16 __keyspace@{db}__:k ${len} {event}")
            })
            .collect();
        assert_eq!(
            node.mail(1),
            by_event
                .join(" ")
                .replace("$13 __keyevent", "$12 __keyevent"),
            "{request}"
        );
        assert_eq!(
            node.mail(2),
            by_key.join(" ").replace("$13 __keyspace", "$12 __keyspace"),
            "{request}"
        );
    }
}

#[test]
fn only_the_classes_that_are_set_are_published() {
    check(
        "b> SUBSCRIBE __keyevent@0__:del __keyevent@0__:set => *3 $9 subscribe $18 __keyevent@0__:del :1 *3 $9 subscribe $18 __keyevent@0__:set :2
         SET k v => +OK
         DEL k => :1
         b< =>
         CONFIG SET notify-keyspace-events Kg => +OK
         SET k v => +OK
         DEL k => :1
         b< =>
         CONFIG SET notify-keyspace-events Eg => +OK
         SET k v => +OK
         DEL k => :1
         b< => *3 $7 message $18 __keyevent@0__:del $1 k
         CONFIG GET notify-keyspace-events => *2 $22 notify-keyspace-events $2 gE
         CONFIG SET notify-keyspace-events Q => -ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event class character. Use 'Ag$lshzxeKEtmdn'.",
    );
}

#[test]
fn expiry_is_told_by_the_sweep_at_the_deadline_and_by_whoever_finds_it() {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        node.check(
            "CONFIG SET notify-keyspace-events Ex => +OK
             SET lazily v PX 100 => +OK
             b> SUBSCRIBE __keyevent@0__:expired => *3 $9 subscribe $22 __keyevent@0__:expired :1
             SET k v PX 50 => +OK
             SET later v PX 5000 => +OK
             + 50",
        );
        assert!(node.engine.is_observed());
        // The sweep is due one tick after the deadline, and one slice tells of it.
        let due = node.engine.next_deadline().expect("a deadline");
        assert_eq!(due, node.moment.time);
        node.engine.sweep(node.moment.time, 1024);
        assert_eq!(node.mail(1), "");
        node.advance_nanos(1);
        node.engine.sweep(node.moment.time, 1024);
        node.check(
            "b< => *3 $7 message $22 __keyevent@0__:expired $1 k
             + 50
             GET lazily => $-1
             b< => *3 $7 message $22 __keyevent@0__:expired $6 lazily
             b> UNSUBSCRIBE => *3 $11 unsubscribe $22 __keyevent@0__:expired :0",
        );
        assert!(!node.engine.is_observed());
    }
}

/// What a script does is told command by command, and what is undone is not told.
#[test]
fn a_script_tells_its_events_and_messages_in_their_order() {
    let mut node = Node::new();
    node.run("CONFIG SET notify-keyspace-events KA");
    node.run("b> SUBSCRIBE __keyspace@0__:k ch");
    let script = "redis.call('incr', KEYS[1]) redis.call('publish', 'ch', 'm') \
                  redis.call('pexpire', KEYS[1], 1000) return redis.call('persist', KEYS[1])";
    node.check(&format!(
        "EVAL \"{script}\" 1 k => :1
         b< => *3 $7 message $16 __keyspace@0__:k $6 incrby *3 $7 message $2 ch $1 m *3 $7 message $16 __keyspace@0__:k $6 expire *3 $7 message $16 __keyspace@0__:k $7 persist
         EVAL \"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end\" 1 k 1 => :1
         b< => *3 $7 message $16 __keyspace@0__:k $3 del"
    ));
}

/// An ordinary subscriber, such as a waiter for a lock, does not make the node record changes.
#[test]
fn changes_are_recorded_only_for_those_who_can_be_told() {
    let mut node = Node::new();
    node.run("CONFIG SET notify-keyspace-events KEA");
    node.run("b> SUBSCRIBE redisson_lock__channel:{k}");
    node.run("b> PSUBSCRIBE reg-channel:*");
    assert!(!node.engine.is_observed());
    node.run("c> SUBSCRIBE __keyevent@0__:expired");
    assert!(node.engine.is_observed());
    node.run("CONFIG SET notify-keyspace-events K");
    assert!(!node.engine.is_observed());
    node.run("CONFIG SET notify-keyspace-events Kg");
    assert!(node.engine.is_observed());
    node.clients.remove(2);
    assert!(!node.engine.is_observed());
}

/// Nobody else is served while the events of a command are sent.
#[test]
fn a_command_whose_events_would_be_too_many_messages_is_refused() {
    const REFUSAL: &str = "-UNSUPPORTED a command whose keyspace events are sent more than 200000 times: send several";
    let sets = |count: usize| {
        (0..count)
            .map(|number| format!(" k{number} v"))
            .collect::<String>()
    };
    let script = |count: usize| {
        format!("EVAL \"for i = 1, {count} do redis.call('set', 'k' .. i, 'v') end return 1\" 0")
    };
    let mut node = Node::new();
    node.run("CONFIG SET notify-keyspace-events KEA");
    // Two messages for each of them and each change, as far as the node knows.
    let patterns: String = (0..6_000)
        .map(|number| format!(" __key*:{number}"))
        .collect();
    node.run(&format!("b> PSUBSCRIBE{patterns}"));
    assert_eq!(node.run(&format!("MSET{}", sets(17))), REFUSAL);
    assert!(
        node.run(&script(17))
            .contains("sent more than 200000 times")
    );
    node.run("MULTI");
    (0..17).for_each(|number| drop(node.run(&format!("SET k{number} v"))));
    assert!(node.run("EXEC").contains("sent more than 200000 times"));
    assert_eq!(node.run("DBSIZE"), ":0");
    // A lock library changes few keys at once.
    assert_eq!(node.run(&format!("MSET{}", sets(16))), "+OK");
    assert_eq!(node.run(&script(16)), ":1");
    let keys = sets(17).replace(" v", "");
    assert_eq!(node.run(&format!("EXISTS{keys}")), ":17");
    assert_eq!(node.run(&format!("DEL{keys}")), REFUSAL);
    // Each key has its own subscribers.
    node.run("b> PUNSUBSCRIBE");
    let channels: String = (0..6_000)
        .map(|number| format!(" __keyspace@0__:k{number}"))
        .collect();
    node.run(&format!("b> SUBSCRIBE{channels}"));
    assert_eq!(node.run(&format!("DEL{keys}")), ":17");
    assert_eq!(node.run(&script(17)), ":1");
}
