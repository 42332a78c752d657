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
