#[cfg(feature = "compat")]
use crate::node::rows;
use crate::node::{Node, check};

/// Redis' documented release, as redlock-py and others send it: known by its SHA1 before anybody sent the text.
const RELEASE: &str = "4e92fdc63815b3a0a2dd1c1df3694de73607c88d";
/// An extension by PEXPIRE, as ShedLock sends it.
const EXTEND: &str = "67256370c2d1c87e2250898075542b1a7fa5b917";

#[test]
fn a_known_release_runs_on_a_cold_node_and_releases_for_the_holder_only() {
    for flush in ["EXISTS k => :1", "SCRIPT FLUSH => +OK"] {
        check(&format!(
            "SET k mine NX PX 1000 => +OK
             {flush}
             EVALSHA {RELEASE} 1 k other => :0
             GET k => $4 mine
             EVALSHA {} 1 k mine => :1
             EXISTS k => :0
             EVALSHA {RELEASE} 1 k mine => :0
             SCRIPT EXISTS {RELEASE} {} => *2 :1 :0",
            RELEASE.to_uppercase(),
            "0".repeat(40),
        ));
    }
}

#[test]
fn a_release_that_comes_after_the_ttl_keeps_the_next_holder() {
    check(&format!(
        "SET k first NX PX 1000 => +OK
         + 1001
         SET k second NX PX 1000 => +OK
         EVALSHA {RELEASE} 1 k first => :0
         EVALSHA {EXTEND} 1 k first 9000 => :0
         GET k => $6 second
         PTTL k => :1000"
    ));
}

#[test]
fn an_extension_moves_the_deadline_for_the_holder_only_and_creates_nothing() {
    check(&format!(
        "EVALSHA {EXTEND} 1 k mine 5000 => :0
         EXISTS k => :0
         SET k mine NX PX 1000 => +OK
         EVALSHA {EXTEND} 1 k other 5000 => :0
         PTTL k => :1000
         EVALSHA {EXTEND} 1 k mine 5000 => :1
         PTTL k => :5000
         EVALSHA {EXTEND} 1 k mine -1 => :1
         EXISTS k => :0"
    ));
}

#[test]
fn calls_that_are_wrong_are_refused_as_redis_refuses_them() {
    check(&format!(
        "EVALSHA {RELEASE} 2 k => -ERR Number of keys can't be greater than number of args
         EVALSHA {RELEASE} -1 k => -ERR Number of keys can't be negative
         EVALSHA {RELEASE} x k => -ERR value is not an integer or out of range
         EVALSHA nonsense 0 => -NOSCRIPT No matching script. Please use EVAL.
         EVALSHA nonsense 1 => -NOSCRIPT No matching script. Please use EVAL.
         EVALSHA_RO nonsense x => -NOSCRIPT No matching script. Please use EVAL.
         EVALSHA {RELEASE} => -ERR wrong number of arguments for 'evalsha' command
         SCRIPT NOPE => -ERR unknown subcommand 'NOPE'. Try SCRIPT HELP.
         SCRIPT FLUSH NOW => -ERR SCRIPT FLUSH only support SYNC|ASYNC option
         SCRIPT FLUSH SYNC x => -ERR SCRIPT FLUSH only support SYNC|ASYNC option
         SCRIPT FLUSH SYNC => +OK
         SCRIPT DEBUG NO => +OK
         SCRIPT DEBUG YES => -UNSUPPORTED the script debugger
         SCRIPT DEBUG x => -ERR Use SCRIPT DEBUG YES/SYNC/NO
         SCRIPT DEBUG => -ERR wrong number of arguments for 'script|debug' command
         SCRIPT LOAD a b => -ERR wrong number of arguments for 'script|load' command"
    ));
}

#[cfg(feature = "compat")]
#[test]
fn scripts_in_lua_see_commands_as_redis_shows_them() {
    let mut node = Node::with_shards(1);
    let table = r##"
        EVAL "return redis.call('set', KEYS[1], ARGV[1])" 1 k v => +OK
        EVAL_RO "return redis.call('get', KEYS[1])" 1 k => $1 v
        EVAL_RO "return redis.call('del', KEYS[1])" 1 k => -ERR Write commands are not allowed from read-only scripts.
        EVAL "#!lua flags=no-writes%0Areturn redis.pcall('del', KEYS[1]).err" 1 k => $58 ERR Write commands are not allowed from read-only scripts.
        EVAL "redis.pcall('zadd', 'z', 1, 'x') return 1" 0 => :1
        EVAL "return redis.pcall('keys', 'k*')" 0 => *1 $1 k
        EVAL "return redis.pcall('flushall')" 0 => -UNSUPPORTED a command that removes all keys in a script: send it outside
        EVAL "return redis.pcall('eval', 'return 1', 0)" 0 => -ERR This Redis command is not allowed from script
        EVAL "return redis.pcall('client', 'id')" 0 => -ERR This Redis command is not allowed from script
        EVAL "return redis.pcall('client', 'id', 'x')" 0 => -ERR Wrong number of args calling Redis command from script
        EVAL "return redis.pcall('client', 'nosuch')" 0 => -ERR Unknown Redis command called from script
        EVAL "return redis.pcall('command', 'help')[1].ok" 0 => $64 COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:
        EVAL "return #redis.call('command') - redis.call('command', 'count')" 0 => :0
        EVAL "return redis.pcall('cluster', 'info')" 0 => -ERR This instance has cluster support disabled
        EVAL "return redis.pcall('cluster', 'reset')" 0 => -ERR This Redis command is not allowed from script
        EVAL "return redis.pcall('waitaof', 0, 1, 0)" 0 => *2 :0 :0
        # SELECT is for the rest of the script.
        EVAL "redis.call('select', 3) return redis.call('exists', 'k')" 0 => :0
        GET k => $1 v
        EVAL "redis.call('set', 'k', 'w') error('no')" 0 => -ERR user_script:1: no
        GET k => $1 w
        EVAL "redis.call('set', 'k', 'x') while true do end" 0 => -UNSUPPORTED
    "##;
    for (request, want) in rows(table) {
        let reply = node.run(request);
        assert!(reply.starts_with(want), "{request}: {reply}");
    }
    assert_eq!(node.run("GET k"), "$1 w");
}

/// Lua has room for eight thousand handles.
#[cfg(feature = "compat")]
#[test]
fn a_full_cache_of_scripts_keeps_none_from_running() {
    let mut node = Node::with_shards(1);
    for number in 0..10_000 {
        let text = format!("return {number}");
        let reply = node.bytes(&[b"SCRIPT", b"LOAD", text.as_bytes()]);
        assert!(
            reply.starts_with(b"$40"),
            "{number}: {}",
            reply.escape_ascii()
        );
    }
    let full = node.run(r#"SCRIPT LOAD "return 'one more'""#);
    assert!(
        full.starts_with("-ERR the script cache is full (10000 scripts"),
        "{full}"
    );
    node.check(r#"EVAL "return redis.call('rpush', KEYS[1], unpack(ARGV))" 1 l a b => :2"#);
    let sha = node.run(r#"SCRIPT LOAD "return 9999""#);
    let sha = sha.strip_prefix("$40 ").expect("a SHA1").to_owned();
    node.check(&format!(
        "EVALSHA {sha} 0 => :9999\n SCRIPT FLUSH => +OK\n EVAL \"return 2\" 0 => :2"
    ));
}

#[cfg(not(feature = "compat"))]
#[test]
fn a_node_without_lua_runs_what_it_recognises_and_refuses_the_rest() {
    let mut node = Node::with_shards(1);
    let release =
        b"if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('del',KEYS[1]) end return 0";
    assert_eq!(node.run("SET k mine PX 1000"), "+OK");
    assert_eq!(
        node.bytes(&[b"EVAL", release, b"1", b"k", b"mine"]),
        b":1\r\n"
    );
    for words in [
        &[b"EVAL".as_slice(), b"return 1", b"0"],
        &[b"SCRIPT", b"LOAD", b"return 1"],
    ] {
        let reply = node.bytes(words).escape_ascii().to_string();
        assert!(
            reply.starts_with("-UNSUPPORTED this node does not run this script"),
            "{reply}"
        );
    }
}

/// Many arguments may be one string in Lua, which takes no memory there.
#[cfg(feature = "compat")]
#[test]
fn the_arguments_of_a_command_in_a_script_are_bounded() {
    let call = |count: usize| {
        format!(
            "EVAL \"local text, all = string.rep('x', 1048576), {{}} \
             for i = 1, {count} do all[i] = text end return redis.call('del', unpack(all))\" 0"
        )
    };
    let mut node = Node::new();
    assert!(node.run(&call(15)).starts_with(":0"));
    let refused = node.run(&call(4_000));
    assert!(
        refused.starts_with("-UNSUPPORTED a command with more than 16 MiB"),
        "{refused}"
    );
}
