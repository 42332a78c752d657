//! TIME, ROLE, WAIT, SHUTDOWN, DEBUG, and what is always empty or refused.

use crate::node::{Node, check};

fn debuggable() -> Node {
    Node::with_options(|options| options.enable_debug_command = true)
}

#[test]
fn time_and_role_are_reported() {
    check(
        "TIME => *2 $10 1767268800 $1 0
         + 1
         TIME => *2 $10 1767268800 $4 1000
         TIME x => -ERR wrong number of arguments for 'time' command
         ROLE => *3 $6 master :0 *0
         ROLE x => -ERR wrong number of arguments for 'role' command",
    );
}

#[test]
fn nobody_acknowledges_so_nobody_waits() {
    check(
        "WAIT 0 0 => :0
         WAIT 1 0 => :0
         WAIT -1 0 => :0
         WAIT a 0 => -ERR value is not an integer or out of range
         WAIT 0 a => -ERR timeout is not an integer or out of range
         WAIT 0 1.5 => -ERR timeout is not an integer or out of range
         WAIT 0 -1 => -ERR timeout is negative
         WAIT 0 9223372036854775807 => -ERR timeout is out of range
         WAIT => -ERR wrong number of arguments for 'wait' command
         WAITAOF 0 0 0 => *2 :0 :0
         WAITAOF 0 1 10 => *2 :0 :0
         WAITAOF 1 0 0 => -ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.
         WAITAOF 2 0 0 => -ERR value is out of range, value must between 0 and 1
         WAITAOF -1 0 0 => -ERR value is out of range, value must between 0 and 1
         WAITAOF a 0 0 => -ERR value is not an integer or out of range
         WAITAOF 0 a 0 => -ERR value is out of range, must be positive
         WAITAOF 0 -1 0 => -ERR value is out of range, must be positive
         WAITAOF 0 0 a => -ERR timeout is not an integer or out of range
         WAITAOF 0 0 -1 => -ERR timeout is negative
         WAITAOF => -ERR wrong number of arguments for 'waitaof' command",
    );
}

#[test]
fn a_shutdown_ends_the_node_without_a_reply() {
    for (words, want) in [
        ("SHUTDOWN", "Shutdown"),
        ("shutdown nosave", "ShutdownNoSave"),
        ("SHUTDOWN NOW", "Shutdown"),
        ("SHUTDOWN NOSAVE NOW FORCE", "ShutdownNoSave"),
        ("SHUTDOWN SAVE FORCE", "Shutdown"),
    ] {
        assert_eq!(Node::new().run(words), want, "{words}");
    }
    let mut node = Node::new();
    node.check("CLIENT PAUSE 1000 => +OK\n b> SHUTDOWN => Shutdown");
}

#[test]
fn a_bad_shutdown_ends_nothing() {
    check(
        "SHUTDOWN FOO => -ERR syntax error
         SHUTDOWN NOSAVE SAVE => -ERR syntax error
         SHUTDOWN ABORT NOW => -ERR syntax error
         SHUTDOWN NOSAVE ABORT => -ERR syntax error
         SHUTDOWN ABORT => -ERR No shutdown in progress.
         SHUTDOWN SAVE => -ERR the node has no data directory to save its locks to, use SHUTDOWN NOSAVE",
    );
}

#[test]
fn debug_is_refused_unless_enabled() {
    let refusal = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run \
        it from a local connection, otherwise you need to set this option in the configuration file, and then restart \
        the server.";
    for request in ["DEBUG SLEEP 0", "DEBUG FOO", "DEBUG HELP"] {
        assert_eq!(Node::new().run(request), refusal, "{request}");
    }
    debuggable().check(
        "DEBUG => -ERR wrong number of arguments for 'debug' command
         DEBUG JMAP => -ERR unknown subcommand or wrong number of arguments for 'JMAP'. Try DEBUG HELP.
         DEBUG SLEEP => -ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.
         DEBUG HELP => *7 +DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are: +SET-ACTIVE-EXPIRE (0|1) +    Stop or start reclaiming expired locks in the background. +SLEEP <seconds> +    Hold back all commands for a time. +HELP +    Print this help.
         DEBUG SET-ACTIVE-EXPIRE 0 => +OK
         DEBUG SET-ACTIVE-EXPIRE abc => +OK
         DEBUG SET-ACTIVE-EXPIRE 1 => +OK",
    );
}

#[test]
fn debug_sleep_holds_everybody_back() {
    debuggable().check(
        "DEBUG SLEEP 0 => +OK
         DEBUG SLEEP abc => +OK
         DEBUG SLEEP -1 => +OK
         DEBUG SLEEP nan => +OK
         PING => +PONG
         DEBUG SLEEP 0.5 => +OK
         PING => Paused
         b> PING => Paused
         + 500
         b> PING => +PONG
         DEBUG SLEEP 1e300 => +OK
         b> PING => Paused
         CLIENT UNPAUSE => +OK
         b> PING => +PONG",
    );
}

#[test]
fn there_is_no_cluster_mode() {
    check(
        "READONLY => -ERR This instance has cluster support disabled
         READWRITE => -ERR This instance has cluster support disabled
         ASKING => -ERR This instance has cluster support disabled
         CLUSTER INFO => -ERR This instance has cluster support disabled
         cluster nodes => -ERR This instance has cluster support disabled
         CLUSTER HELP => -ERR This instance has cluster support disabled
         CLUSTER KEYSLOT => -ERR wrong number of arguments for 'cluster|keyslot' command
         CLUSTER FOO => -ERR unknown subcommand 'FOO'. Try CLUSTER HELP.
         CLUSTER => -ERR wrong number of arguments for 'cluster' command
         SENTINEL MASTERS => -ERR unknown command 'SENTINEL', with args beginning with: 'MASTERS'
         READONLY x => -ERR wrong number of arguments for 'readonly' command",
    );
}

#[cfg(not(feature = "metrics"))]
#[test]
fn the_slow_log_is_empty() {
    check(
        "SLOWLOG LEN => :0
         SLOWLOG GET => *0
         SLOWLOG GET 10 => *0
         SLOWLOG GET -1 => *0
         SLOWLOG GET -2 => -ERR count should be greater than or equal to -1
         SLOWLOG GET a => -ERR count should be greater than or equal to -1
         SLOWLOG GET 1 2 => -ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
         SLOWLOG RESET => +OK
         SLOWLOG FOO => -ERR unknown subcommand 'FOO'. Try SLOWLOG HELP.
         SLOWLOG LEN x => -ERR wrong number of arguments for 'slowlog|len' command",
    );
}

#[cfg(not(feature = "metrics"))]
#[test]
fn there_are_no_latency_samples() {
    let mut node = Node::new();
    node.check(
        "LATENCY LATEST => *0
         LATENCY HISTORY x => *0
         LATENCY HISTORY => -ERR wrong number of arguments for 'latency|history' command
         LATENCY RESET => :0
         LATENCY RESET x y => :0
         LATENCY GRAPH x => -ERR No samples available for event 'x'
         LATENCY HISTOGRAM => *0
         LATENCY HISTOGRAM set => *0
         LATENCY DOCTOR => $39 This node does not sample its latency.\\n
         LATENCY FOO => -ERR unknown subcommand 'FOO'. Try LATENCY HELP.",
    );
    node.run("HELLO 3");
    node.check("LATENCY HISTOGRAM => %0\n LATENCY LATEST => *0");
}

#[test]
fn there_are_no_functions_to_flush() {
    check(
        "FUNCTION FLUSH => +OK
         FUNCTION FLUSH ASYNC => +OK
         FUNCTION FLUSH sync => +OK
         FUNCTION FLUSH foo => -ERR FUNCTION FLUSH only supports SYNC|ASYNC option
         FUNCTION FLUSH SYNC x => -ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.
         FUNCTION LIST => *0
         FUNCTION LIST LIBRARYNAME a WITHCODE => *0
         FUNCTION LIST LIBRARYNAME => -ERR library name argument was not given
         FUNCTION LIST foo => -ERR Unknown argument foo
         FUNCTION FOO => -ERR unknown subcommand 'FOO'. Try FUNCTION HELP.",
    );
}
