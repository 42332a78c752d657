//! Hashes, lists, sets and sorted sets, with the replies of Redis 8.0.6.

use crate::node::{Node, check};

#[test]
fn a_hash_has_fields_with_values() {
    check(
        "HSET h f 1 g 2 => :2
         HSET h f 3 i 4 => :1
         HGET h f => $1 3
         HGET h none => $-1
         HGET none f => $-1
         HEXISTS h g => :1
         HEXISTS h none => :0
         HEXISTS none g => :0
         HLEN h => :3
         HLEN none => :0
         HKEYS h => *3 $1 f $1 g $1 i
         HKEYS none => *0
         HGETALL h => *6 $1 f $1 3 $1 g $1 2 $1 i $1 4
         HGETALL none => *0
         HSETNX h f 9 => :0
         HSETNX h j 9 => :1
         HSETNX other j 9 => :1
         HINCRBY h f 2 => :5
         HINCRBY h new -5 => :-5
         HINCRBY fresh n 1 => :1
         TYPE fresh => +hash
         HSET h text abc => :1
         HINCRBY h text 1 => -ERR hash value is not an integer
         HINCRBY h f x => -ERR value is not an integer or out of range
         HSET h big 9223372036854775807 => :1
         HINCRBY h big 1 => -ERR increment or decrement would overflow
         HDEL h f none big text => :3
         HDEL h g i j new => :4
         EXISTS h => :0
         HDEL h g => :0
         TYPE h => +none
         HSET h => -ERR wrong number of arguments for 'hset' command
         HSET h a => -ERR wrong number of arguments for 'hset' command
         HSET h a 1 b => -ERR wrong number of arguments for 'hset' command
         HSETNX h a => -ERR wrong number of arguments for 'hsetnx' command
         HGET h => -ERR wrong number of arguments for 'hget' command
         HDEL h => -ERR wrong number of arguments for 'hdel' command
         HINCRBY h a => -ERR wrong number of arguments for 'hincrby' command
         EXISTS h => :0",
    );
}

#[test]
fn in_resp3_replies_have_their_own_types() {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        node.run("HELLO 3");
        node.check(
            "HSET h f 1 g 2 => :2
             HGETALL h => %2 $1 f $1 1 $1 g $1 2
             HGETALL none => %0
             HGET h x => _
             ZADD z 1 a 2.5 b => :2
             ZRANGE z 0 -1 WITHSCORES => *2 *2 $1 a ,1 *2 $1 b ,2.5
             ZRANGE z 0 -1 => *2 $1 a $1 b
             ZSCORE z b => ,2.5
             ZSCORE z c => _
             ZINCRBY z 1 b => ,3.5
             LPOP none 2 => _
             LPOP none => _",
        );
    }
}

#[test]
fn a_list_has_two_ends() {
    check(
        "RPUSH l a b c => :3
         LPUSH l d e => :5
         LRANGE l 0 -1 => *5 $1 e $1 d $1 a $1 b $1 c
         LRANGE l 1 2 => *2 $1 d $1 a
         LRANGE l -2 -1 => *2 $1 b $1 c
         LRANGE l -100 100 => *5 $1 e $1 d $1 a $1 b $1 c
         LRANGE l 3 1 => *0
         LRANGE l 9 20 => *0
         LRANGE none 0 -1 => *0
         LLEN l => :5
         LLEN none => :0
         LINDEX l 0 => $1 e
         LINDEX l -1 => $1 c
         LINDEX l 5 => $-1
         LINDEX l -6 => $-1
         LINDEX none 0 => $-1
         LINDEX l x => -ERR value is not an integer or out of range
         LINDEX none x => $-1
         LPOP l => $1 e
         LPOP l 2 => *2 $1 d $1 a
         LPOP l 0 => *0
         LPOP none 0 => *-1
         LPOP none 3 => *-1
         LPOP l -1 => -ERR value is out of range, must be positive
         LPOP l x => -ERR value is out of range, must be positive
         LPOP l 1 1 => -ERR wrong number of arguments for 'lpop' command
         LRANGE l 0 -1 => *2 $1 b $1 c
         RPUSH l x b x b x => :7
         LREM l 2 x => :2
         LRANGE l 0 -1 => *5 $1 b $1 c $1 b $1 b $1 x
         LREM l -1 b => :1
         LRANGE l 0 -1 => *4 $1 b $1 c $1 b $1 x
         LREM l 0 b => :2
         LRANGE l 0 -1 => *2 $1 c $1 x
         LREM l 0 none => :0
         LREM none 0 b => :0
         LREM l x b => -ERR value is not an integer or out of range
         LPOP l 100 => *2 $1 c $1 x
         EXISTS l => :0
         LPUSH l => -ERR wrong number of arguments for 'lpush' command
         LRANGE l 0 => -ERR wrong number of arguments for 'lrange' command
         LRANGE l a b => -ERR value is not an integer or out of range",
    );
}

#[test]
fn a_set_has_each_member_once() {
    check(
        "SADD s a b a c => :3
         SADD s a d => :1
         SCARD s => :4
         SCARD none => :0
         SISMEMBER s a => :1
         SISMEMBER s z => :0
         SISMEMBER none a => :0
         SREM s a z b => :2
         SREM none a => :0
         SREM s c d => :2
         EXISTS s => :0
         SADD s => -ERR wrong number of arguments for 'sadd' command
         SREM s => -ERR wrong number of arguments for 'srem' command",
    );
}

#[test]
fn a_sorted_set_has_its_members_in_order() {
    check(
        "ZADD z 1 a 2 b 3 c => :3
         ZADD z 5 a 4 d => :1
         ZADD z CH 6 a 4 d 7 e => :2
         ZADD z NX 9 a 8 f => :1
         ZADD z XX 1 a 1 none => :0
         ZADD z XX CH 2 a => :1
         ZADD none XX 1 a => :0
         EXISTS none => :0
         ZADD z NX XX 1 a => -ERR XX and NX options at the same time are not compatible
         ZADD z 1 => -ERR wrong number of arguments for 'zadd' command
         ZADD z NX 1 => -ERR syntax error
         ZADD z 1 a 2 => -ERR syntax error
         ZADD z x a => -ERR value is not a valid float
         ZADD z 1 a nan b => -ERR value is not a valid float
         ZCARD z => :6
         ZCARD none => :0
         ZSCORE z a => $1 2
         ZSCORE z none => $-1
         ZSCORE none a => $-1
         ZRANGE z 0 -1 WITHSCORES => *12 $1 a $1 2 $1 b $1 2 $1 c $1 3 $1 d $1 4 $1 e $1 7 $1 f $1 8
         ZRANGE z 0 0 WITHSCORES => *2 $1 a $1 2
         ZRANGE z -1 -1 => *1 $1 f
         ZRANGE z 5 1 => *0
         ZRANGE z -100 100 => *6 $1 a $1 b $1 c $1 d $1 e $1 f
         ZRANGE none 0 -1 => *0
         ZREVRANGE z 0 0 WITHSCORES => *2 $1 f $1 8
         ZREVRANGE z 1 2 => *2 $1 e $1 d
         ZREVRANGE z 0 0 REV => -ERR syntax error
         ZRANGE z 0 -1 REV => *6 $1 f $1 e $1 d $1 c $1 b $1 a
         ZRANGE z 3 7 BYSCORE => *3 $1 c $1 d $1 e
         ZRANGE z 7 3 BYSCORE REV WITHSCORES => *6 $1 e $1 7 $1 d $1 4 $1 c $1 3
         ZRANGE z (3 (7 BYSCORE LIMIT 1 1 => *0
         ZRANGE z 0 1 LIMIT 0 1 => -ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX
         ZRANGE z a 1 => -ERR value is not an integer or out of range
         ZRANGE z 0 1 FOO => -ERR syntax error
         ZRANGE z a b BYSCORE => -ERR min or max is not a float
         ZRANGEBYSCORE z -inf +inf LIMIT 0 2 => *2 $1 a $1 b
         ZRANGEBYSCORE z -inf (4 WITHSCORES => *6 $1 a $1 2 $1 b $1 2 $1 c $1 3
         ZRANGEBYSCORE z (4 inf => *2 $1 e $1 f
         ZRANGEBYSCORE z (inf inf => *0
         ZRANGEBYSCORE z 9 1 => *0
         ZRANGEBYSCORE z (4 (4 => *0
         ZRANGEBYSCORE z 0 100 LIMIT -1 5 => *0
         ZRANGEBYSCORE z 0 100 LIMIT 1 -1 => *5 $1 b $1 c $1 d $1 e $1 f
         ZRANGEBYSCORE z 0 100 LIMIT 1 => -ERR syntax error
         ZRANGEBYSCORE z 0 100 LIMIT a 1 => -ERR value is not an integer or out of range
         ZRANGEBYSCORE z x 100 => -ERR min or max is not a float
         ZRANGEBYSCORE none 0 1 => *0
         ZCOUNT z 3 8 => :4
         ZCOUNT z (3 (8 => :2
         ZCOUNT z -inf +inf => :6
         ZCOUNT none 0 1 => :0
         ZCOUNT z x 1 => -ERR min or max is not a float
         ZINCRBY z 2.5 a => $3 4.5
         ZINCRBY z 1 new => $1 1
         ZINCRBY fresh -1 m => $2 -1
         ZINCRBY z x a => -ERR value is not a valid float
         ZADD z inf far => :1
         ZINCRBY z -inf far => -ERR resulting score is not a number (NaN)
         ZREM z far none new => :2
         ZREMRANGEBYSCORE z -inf 4.5 => :4
         ZREMRANGEBYSCORE z 100 200 => :0
         ZREMRANGEBYSCORE none 0 1 => :0
         ZREMRANGEBYSCORE z x 1 => -ERR min or max is not a float
         ZRANGE z 0 -1 WITHSCORES => *4 $1 e $1 7 $1 f $1 8
         ZADD same 1 b 1 a 1 c => :3
         ZRANGE same 0 -1 => *3 $1 a $1 b $1 c
         ZREMRANGEBYSCORE z 0 (inf => :2
         EXISTS z => :0
         ZREM z a => :0
         ZADD => -ERR wrong number of arguments for 'zadd' command
         ZADD z => -ERR wrong number of arguments for 'zadd' command
         ZREM z => -ERR wrong number of arguments for 'zrem' command
         ZCOUNT z 0 => -ERR wrong number of arguments for 'zcount' command",
    );
}

#[test]
fn a_key_of_another_type_is_refused_with_nothing_done() {
    check(
        "HSET h f 1 => :1
         RPUSH l a => :1
         SADD s a => :1
         ZADD z 1 a => :1
         SET k v => +OK
         TYPE h => +hash
         TYPE l => +list
         TYPE s => +set
         TYPE z => +zset
         TYPE k => +string
         TYPE none => +none
         GET h => -WRONGTYPE Operation against a key holding the wrong kind of value
         GETDEL l => -WRONGTYPE Operation against a key holding the wrong kind of value
         GETEX s PX 5 => -WRONGTYPE Operation against a key holding the wrong kind of value
         GETRANGE z 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         SUBSTR z 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         STRLEN h => -WRONGTYPE Operation against a key holding the wrong kind of value
         GETSET h v => -WRONGTYPE Operation against a key holding the wrong kind of value
         INCR h => -WRONGTYPE Operation against a key holding the wrong kind of value
         DECRBY l 2 => -WRONGTYPE Operation against a key holding the wrong kind of value
         MGET h k l none => *4 $-1 $1 v $-1 $-1
         SET h v GET => -WRONGTYPE Operation against a key holding the wrong kind of value
         SET h v NX => $-1
         SETNX l v => :0
         MSETNX n 1 l 2 => :0
         HGET k f => -WRONGTYPE Operation against a key holding the wrong kind of value
         HSET k f 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         HSETNX l f 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         HINCRBY s f 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         HDEL z f => -WRONGTYPE Operation against a key holding the wrong kind of value
         HEXISTS k f => -WRONGTYPE Operation against a key holding the wrong kind of value
         HLEN l => -WRONGTYPE Operation against a key holding the wrong kind of value
         HKEYS s => -WRONGTYPE Operation against a key holding the wrong kind of value
         HGETALL z => -WRONGTYPE Operation against a key holding the wrong kind of value
         LPUSH k a => -WRONGTYPE Operation against a key holding the wrong kind of value
         RPUSH h a => -WRONGTYPE Operation against a key holding the wrong kind of value
         LPOP s => -WRONGTYPE Operation against a key holding the wrong kind of value
         LPOP z 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         LREM k 0 a => -WRONGTYPE Operation against a key holding the wrong kind of value
         LLEN h => -WRONGTYPE Operation against a key holding the wrong kind of value
         LINDEX s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value
         LRANGE z 0 -1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         SADD k a => -WRONGTYPE Operation against a key holding the wrong kind of value
         SREM h a => -WRONGTYPE Operation against a key holding the wrong kind of value
         SCARD l => -WRONGTYPE Operation against a key holding the wrong kind of value
         SISMEMBER z a => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZADD k 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZADD h XX 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZINCRBY l 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZREM s a => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZREMRANGEBYSCORE k 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZSCORE h a => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZCARD l => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZCOUNT s 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZRANGE k 0 -1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZREVRANGE h 0 -1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         ZRANGEBYSCORE l 0 1 => -WRONGTYPE Operation against a key holding the wrong kind of value
         EVAL \"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end\" 1 h v => -WRONGTYPE Operation against a key holding the wrong kind of value script: ae3671744a5dbb24ea37ef607b8b10ac7856d43e, on @user_script:1.
         EXISTS h l s z k none => :5
         PEXPIRE h 5000 => :1
         PERSIST h => :1
         PTTL h => :-1
         EXPIRE l 0 => :1
         EXISTS l => :0
         DEL s z => :2
         SET h v => +OK
         TYPE h => +string
         GET h => $1 v
         HSET other f 1 => :1
         SETEX other 10 v => +OK
         TYPE other => +string
         SADD more m => :1
         MSET more 1 => +OK
         GET more => $1 1",
    );
}

/// What a client was sent beside its replies.
fn mail(node: &Node, client: usize) -> String {
    let mut mail = Vec::new();
    let session = &node.clients[client];
    assert!(session.mail_need().is_none());
    session.client().take_mail(&mut mail, usize::MAX);
    String::from_utf8(mail).unwrap().replace("\r\n", " ")
}

#[test]
fn who_waits_longest_for_an_element_gets_it_first() {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        node.check(
            "RPUSH full 1 2 => :2
             BLPOP empty full other 0 => *2 $4 full $1 1
             BLPOP l other 0 => Blocked
             b> BLPOP other l 0 => Blocked",
        );
        assert!(node.clients[0].is_waiting() && node.clients[1].is_waiting());
        // Both are served before the next command looks at the list.
        node.check(
            "c> RPUSH l x y z => :3
             c> LRANGE l 0 -1 => *1 $1 z
             c> RPUSH other w => :1
             c> LLEN other => :1",
        );
        assert_eq!(mail(&node, 0), "*2 $1 l $1 x ");
        assert_eq!(mail(&node, 1), "*2 $1 l $1 y ");
        assert!(!node.clients[0].is_waiting() && !node.clients[1].is_waiting());
    }
}

#[test]
fn a_wait_ends_with_its_time_or_its_connection() {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        node.check(
            "BLPOP l 1.5 => Blocked
             b> BLPOP l 0 => Blocked
             c> SET s v => +OK
             c> BLPOP l s 0 => -WRONGTYPE Operation against a key holding the wrong kind of value",
        );
        let blocked = |node: &mut Node| {
            let info = String::from_utf8(node.bytes_for(2, &[b"INFO", b"clients"])).unwrap();
            let count = info.split("blocked_clients:").nth(1).expect("a count");
            count.split("\r\n").next().expect("a line").to_owned()
        };
        assert_eq!(blocked(&mut node), "2");
        let end = node.clients[0].wait_end().expect("a timeout");
        assert_eq!(end.since(node.moment.time).as_millis(), 1500);
        assert_eq!(node.clients[1].wait_end(), None);
        let mut out = Vec::new();
        node.clients[0].give_up(&mut out);
        node.clients[0].give_up(&mut out);
        assert_eq!(out, b"*-1\r\n");
        let gone = node.clients.remove(1);
        drop(gone);
        node.check("b> LPUSH l x => :1\n LRANGE l 0 -1 => *1 $1 x");
        assert_eq!(mail(&node, 0), "");
        node.connect();
        assert_eq!(blocked(&mut node), "0");
    }
}

#[test]
fn a_client_that_wants_no_reply_gets_none_of_a_wait() {
    for mode in ["OFF", "SKIP"] {
        for end in ["RPUSH l x", "CLIENT UNBLOCK 1"] {
            let mut node = Node::with_shards(8);
            node.check(&format!("CLIENT REPLY {mode} =>\n BLPOP l 0 => Blocked"));
            node.check(&format!("b> {end} => :1\n b> EXISTS l => :0"));
            assert!(!node.clients[0].is_waiting(), "{mode}, {end}");
            assert_eq!(mail(&node, 0), "");
            node.check(&format!(
                "PING => {}",
                if mode == "OFF" { "" } else { "+PONG" }
            ));
        }
        let mut node = Node::with_shards(8);
        node.check(&format!("CLIENT REPLY {mode} =>\n BLPOP l 1 => Blocked"));
        let mut out = Vec::new();
        node.clients[0].give_up(&mut out);
        assert_eq!(out, b"");
    }
}

#[test]
fn the_keys_that_a_client_waits_for_are_bounded_and_counted() {
    let mut node = Node::with_shards(8);
    let keys: Vec<String> = (0..9_000).map(|n| format!("k{n}")).collect();
    let wait = |node: &mut Node, count: usize| {
        let keys = keys[..count].iter().map(|key| key.as_bytes());
        let words: Vec<&[u8]> = std::iter::once(&b"BLPOP"[..]).chain(keys).collect();
        let words = [words, vec![b"0"]].concat();
        String::from_utf8(node.bytes(&words)).unwrap()
    };
    let refused = "-ERR a connection waits for at most 1048576 bytes of keys\r\n";
    assert_eq!(wait(&mut node, 9_000), refused);
    node.check("b> RPUSH k1 x => :1\n LPOP k1 => $1 x");
    assert_eq!(node.clients[0].kept_bytes(), 0);
    assert_eq!(wait(&mut node, 7_000), "");
    assert!(node.clients[0].kept_bytes() > 800_000);
    node.clients[0].forget_wait();
    assert_eq!(node.clients[0].kept_bytes(), 0);
}

#[test]
fn client_unblock_ends_a_wait() {
    let mut node = Node::with_shards(8);
    node.check(
        "BLPOP l m 0 => Blocked
         b> BLPOP l 0 => Blocked
         c> CLIENT UNBLOCK 1 => :1
         c> CLIENT UNBLOCK 2 ERROR => :1
         c> CLIENT UNBLOCK 2 => :0
         c> CLIENT UNBLOCK 3 => :0
         c> CLIENT UNBLOCK -1 => :0",
    );
    assert_eq!(mail(&node, 0), "*-1 ");
    assert_eq!(
        mail(&node, 1),
        "-UNBLOCKED client unblocked via CLIENT UNBLOCK "
    );
    node.check("c> RPUSH l x => :1\n BLPOP l 0 => *2 $1 l $1 x");
}

/// python-redis-lock releases so: the element is there when its script has ended, and not before.
#[test]
fn a_script_that_pushes_serves_those_who_wait_at_its_end() {
    for shards in [1, 8] {
        let mut node = Node::with_shards(shards);
        node.check("b> BLPOP signal 10 => Blocked");
        let script = b"redis.call('lpush',KEYS[1],1) redis.call('pexpire',KEYS[1],500) return redis.call('llen',KEYS[1])";
        assert_eq!(node.bytes(&[b"EVAL", script, b"1", b"signal"]), b":1\r\n");
        assert_eq!(mail(&node, 1), "*2 $6 signal $1 1 ");
        let script = b"return redis.call('blpop',KEYS[1],0)";
        assert_eq!(node.bytes(&[b"EVAL", script, b"1", b"signal"]), b"$-1\r\n");
        node.check("EXISTS signal => :0");
    }
}

#[test]
fn an_element_is_not_given_to_a_client_that_was_killed() {
    let mut node = Node::with_shards(8);
    node.check(
        "BLPOP l 0 => Blocked
         b> BLPOP l 0 => Blocked
         c> CLIENT KILL ID 1 => :1
         c> LPUSH l x => :1
         c> EXISTS l => :0",
    );
    assert_eq!(
        (mail(&node, 0), mail(&node, 1)),
        (String::new(), "*2 $1 l $1 x ".to_owned())
    );
}

#[test]
fn ten_thousand_clients_that_wait_for_one_key_leave_quickly() {
    let mut node = Node::with_options(|options| options.maxclients = 20_000);
    for client in 3..10_003 {
        node.connect();
        assert!(node.bytes_for(client, &[b"BLPOP", b"l", b"0"]).is_empty());
    }
    let start = std::time::Instant::now();
    node.clients.truncate(3);
    assert!(start.elapsed().as_millis() < 2_000, "{:?}", start.elapsed());
    node.check("LPUSH l x => :1\n LPOP l => $1 x");
}

#[test]
fn nothing_that_ends_or_renews_a_lock_is_refused_for_memory() {
    let mut node = Node::with_shards(8);
    node.check(
        "HSET h a 1 b 1 => :2
         ZADD z 1 a 2 b => :2
         RPUSH l a b => :2
         SADD s a b => :2
         CONFIG SET maxmemory 1 => +OK
         HINCRBY h a 1 => :2
         HINCRBY h new 1 => -OOM command not allowed when used memory > 'maxmemory'.
         HINCRBY none a 1 => -OOM command not allowed when used memory > 'maxmemory'.
         ZADD z 5 a => :0
         ZADD z 5 new => -OOM command not allowed when used memory > 'maxmemory'.
         ZINCRBY z 5 new => -OOM command not allowed when used memory > 'maxmemory'.
         HSET h a 1 => -OOM command not allowed when used memory > 'maxmemory'.
         SADD s c => -OOM command not allowed when used memory > 'maxmemory'.
         RPUSH l c => -OOM command not allowed when used memory > 'maxmemory'.
         PEXPIRE h 1000 => :1
         HDEL h a => :1
         ZREM z a => :1
         LPOP l => $1 a
         LREM l 0 b => :1
         SREM s a => :1
         DEL h z s => :3",
    );
    // Redisson's unlock sets its latch after it has begun to release.
    let latch = b"redis.call('del',KEYS[1]) return redis.call('set',KEYS[2],1,'px',500)";
    assert_eq!(
        node.bytes(&[b"EVAL", latch, b"2", b"h", b"latch"]),
        b"+OK\r\n"
    );
}

#[test]
fn a_value_has_an_end() {
    let mut node = Node::with_shards(8);
    let long = vec![b'x'; 1 << 19];
    let refused = "-UNSUPPORTED a value of more than 1048576 bytes: this node holds locks\r\n";
    for [add, more] in [
        [&[&b"HSET"[..], b"h", b"f"][..], &[b"HSET", b"h", b"g"]],
        [&[b"RPUSH", b"l"], &[b"RPUSH", b"l"]],
        [&[b"SADD", b"s", b"m"], &[b"SADD", b"s", b"n"]],
    ] {
        assert!(node.bytes(&[add, &[&long]].concat()).starts_with(b":"));
        let reply = node.bytes(&[more, &[&long]].concat());
        assert_eq!(String::from_utf8(reply).unwrap(), refused);
    }
    node.check("HLEN h => :1\n LLEN l => :1\n EXISTS h l s => :3");
}

/// A hash lock of Redisson: a script grants it, and its TTL is judged at the script's end.
#[test]
fn a_lock_held_as_a_hash_is_a_lock_to_the_restart_guard() {
    let mut node = Node::with_config(|config| {
        config.shards = 8;
        config.guard.mode = locknode_engine::GuardMode::Memory;
        config.guard.max_ttl = std::time::Duration::from_secs(60);
    });
    let lock =
        b"redis.call('hincrby',KEYS[1],ARGV[2],1) redis.call('pexpire',KEYS[1],ARGV[1]) return nil";
    let run = |node: &mut Node, ttl: &[u8]| {
        let reply = node.bytes(&[b"EVAL", lock, b"1", b"lock", ttl, b"holder"]);
        String::from_utf8(reply).unwrap()
    };
    assert!(run(&mut node, b"60001").starts_with("-UNSUPPORTED"));
    node.check("EXISTS lock => :0");
    assert_eq!(run(&mut node, b"30000"), "$-1\r\n");
    node.check("HGET lock holder => $1 1\n PTTL lock => :30000\n PERSIST other => :0");
    assert_eq!(run(&mut node, b"40000"), "$-1\r\n");
    assert!(run(&mut node, b"60001").starts_with("-UNSUPPORTED"));
    node.check("HGETALL lock => *2 $6 holder $1 2\n PTTL lock => :40000");
    let refused = node.run("HSET none f 1");
    assert!(refused.starts_with("-UNSUPPORTED"), "{refused}");
    node.check("EXISTS none => :0\n + 40001\n EXISTS lock => :0\n DBSIZE => :0");
}

/// `[F1]`
#[test]
fn the_fence_rises_when_a_key_comes_to_be_and_not_when_its_value_changes() {
    let mut node = Node::with_shards(1);
    let mut counter = |requests: &[&str]| {
        requests.iter().for_each(|request| drop(node.run(request)));
        // A refused client is told the counter.
        let reply = node.run("LOCK.ACQUIRE h token 1000");
        let mut words = reply.split(' ').map(str::to_owned);
        assert_eq!(words.nth(1).as_deref(), Some(":0"), "{reply}");
        words.next().expect("a counter")
    };
    let first = counter(&["HSET h f 1"]);
    let changes = ["HINCRBY h f 1", "HSET h g 2", "HDEL h g", "PEXPIRE h 9000"];
    assert_eq!(counter(&changes), first);
    assert_ne!(counter(&["DEL h", "HSET h f 1"]), first);
}
