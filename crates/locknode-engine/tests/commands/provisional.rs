//! What scripts leave is judged when they end: on a node without a data directory nothing stays that it cannot keep.

use std::time::Duration;

use locknode_engine::GuardMode;

use crate::node::Node;

/// A node that grants no lock above a minute and has no log.
fn node(shards: usize) -> Node {
    Node::with_config(|config| {
        config.shards = shards;
        config.guard.mode = GuardMode::Memory;
        config.guard.max_ttl = Duration::from_secs(60);
    })
}

fn eval(node: &mut Node, script: &str) -> String {
    let mut words: Vec<&[u8]> = vec![b"EVAL", script.as_bytes()];
    words.extend("3 k j i token 10".split(' ').map(str::as_bytes));
    let reply = String::from_utf8(node.bytes(&words)).unwrap();
    reply.trim_end().to_owned()
}

#[track_caller]
fn check(script: &str, want: &str, left: [(&str, &str); 2]) {
    for shards in [1, 8] {
        let mut node = node(shards);
        let reply = eval(&mut node, script);
        assert!(reply.starts_with(want), "{script}: {reply}");
        for (request, want) in left {
            assert_eq!(node.run(request), want, "{script}: {request}");
        }
    }
}

/// sherlock, walrus and limits write so.
#[test]
fn a_lock_that_gets_its_ttl_within_the_script_has_that_ttl() {
    for script in [
        "if redis.call('setnx',KEYS[1],ARGV[1])==1 then redis.call('expire',KEYS[1],ARGV[2]) return 1 end return 0",
        "redis.call('set',KEYS[1],ARGV[1]) redis.call('pexpire',KEYS[1],10000) return 1",
        "redis.call('mset',KEYS[1],ARGV[1]) return redis.call('expire',KEYS[1],ARGV[2])",
        "redis.call('set',KEYS[1],ARGV[1],'EX',90000) return redis.call('expire',KEYS[1],ARGV[2])",
        "redis.call('set',KEYS[1],'x','PX',5) redis.call('persist',KEYS[1]) redis.call('set',KEYS[1],ARGV[1],'EX',ARGV[2]) return 1",
        "local n = redis.call('incr',KEYS[2]) redis.call('del',KEYS[2]) redis.call('setex',KEYS[1],ARGV[2],ARGV[1]) return n",
    ] {
        check(script, ":1", [("GET k", "$5 token"), ("PTTL k", ":10000")]);
    }
}

#[test]
fn a_script_that_leaves_what_the_node_cannot_keep_has_done_nothing() {
    for script in [
        "return redis.call('setnx',KEYS[1],ARGV[1])",
        "return redis.pcall('set',KEYS[1],ARGV[1])",
        "redis.call('set',KEYS[2],ARGV[1],'PX',500) redis.call('set',KEYS[1],ARGV[1],'PX',60001) return 1",
        "redis.call('set',KEYS[2],ARGV[1],'PX',500) redis.call('set',KEYS[1],ARGV[1]) return redis.call('get',KEYS[2])",
        "redis.call('set',KEYS[1],ARGV[1]) return redis.call('incr',KEYS[1])",
        "redis.call('set',KEYS[1],ARGV[1]) return redis.error_reply('MINE no')",
        "redis.call('mset',KEYS[1],1,KEYS[2],2,KEYS[3],3) redis.call('expire',KEYS[1],5) redis.call('expire',KEYS[3],5)",
    ] {
        check(
            script,
            "-UNSUPPORTED give a TTL of 60000 ms at most (SET key token NX PX 60000): this node has no data directory",
            [("EXISTS k j i", ":0"), ("DBSIZE", ":0")],
        );
    }
}

#[test]
fn what_was_held_before_is_held_again() {
    for script in [
        "redis.call('set',KEYS[1],'other') return 1",
        "redis.call('del',KEYS[1]) redis.call('set',KEYS[2],'other') return 1",
        "redis.call('persist',KEYS[1]) redis.call('pexpire',KEYS[2],5)",
        "redis.call('set',KEYS[1],'longer than before by far') redis.call('del',KEYS[2],KEYS[1]) redis.call('set',KEYS[3],1)",
        "redis.call('pexpire',KEYS[1],100) redis.call('del',KEYS[2]) while true do end",
        "redis.call('del',KEYS[1],KEYS[2]) for i = 1, 1e5 do redis.call('setex','n'..i,5,i) end",
    ] {
        for shards in [1, 8] {
            let mut node = node(shards);
            node.run("SELECT 3");
            assert_eq!(node.run("SET k mine NX PX 30000"), "+OK");
            assert_eq!(node.run("SET j his NX PX 40000"), "+OK");
            let grants = [node.run("LOCK.GET k"), node.run("LOCK.GET j")];
            let reply = eval(&mut node, script);
            assert!(reply.starts_with("-UNSUPPORTED "), "{script}: {reply}");
            let now = ["LOCK.GET k", "LOCK.GET j"].map(|request| {
                // A fence counter that was raised stays raised.
                let reply = node.run(request);
                reply.rsplit_once(' ').unwrap().0.to_owned()
            });
            let before = grants.map(|reply| reply.rsplit_once(' ').unwrap().0.to_owned());
            assert_eq!(now, before, "{script}");
            assert_eq!(node.run("DBSIZE"), ":2", "{script}");
            assert_eq!(node.run("EXISTS i"), ":0", "{script}");
        }
    }
}

/// As on Redis.
#[test]
fn what_a_script_wrote_before_its_own_error_stays() {
    check(
        "redis.call('set',KEYS[1],ARGV[1],'EX',ARGV[2]) redis.call('set',KEYS[2],1,'PX',5) return redis.call('incr',KEYS[1])",
        "-ERR value is not an integer",
        [("PTTL k", ":10000"), ("PTTL j", ":5")],
    );
}

/// As Redis 8.0.6 replies.
#[test]
fn values_of_resp3_are_written_in_the_protocol_of_the_client() {
    crate::node::check(
        "
        EVAL \"return {double=3.5}\" 0 => $3 3.5
        EVAL \"return {double=1e300}\" 0 => $6 1e+300
        EVAL \"return {map={a=1}}\" 0 => *2 $1 a :1
        EVAL \"return {set={a=true}}\" 0 => *1 $1 a
        EVAL \"return {big_number='12'}\" 0 => $2 12
        EVAL \"return {verbatim_string={format='txt',string='hi'}}\" 0 => $2 hi
        EVAL \"redis.setresp(3) return {true,false}\" 0 => *2 :1 :0
        EVAL \"return {true,false}\" 0 => *2 :1 $-1
        b> HELLO 3 => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :2 $4 mode $10 standalone $4 role $6 master $7 modules *0
        b> EVAL \"return {double=1e300}\" 0 => ,1e+300
        b> EVAL \"return {map={a=1}}\" 0 => %1 $1 a :1
        b> EVAL \"return {set={a=true}}\" 0 => ~1 $1 a
        b> EVAL \"return {big_number='12'}\" 0 => (12
        b> EVAL \"return {verbatim_string={format='txt',string='hi'}}\" 0 => =6 txt:hi
        b> EVAL \"redis.setresp(3) return {true,false}\" 0 => *2 #t #f
        b> EVAL \"return {true,false}\" 0 => *2 :1 _
        b> EVAL \"redis.setresp(3) return type(redis.call('get','none'))\" 0 => $3 nil
        ",
    );
}
