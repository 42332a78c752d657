use crate::node::check;

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
