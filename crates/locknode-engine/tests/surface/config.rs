//! CONFIG.

use super::node::{Node, check};

#[test]
fn options_are_found_by_patterns() {
    check(
        "CONFIG GET maxclients => *2 $10 maxclients $5 10000
         CONFIG GET MAXCLIENTS maxmem* timeout timeout MaxClients => *10 $10 MAXCLIENTS $5 10000 $9 maxmemory $1 0 $17 maxmemory-clients $1 0 $7 timeout $1 0 $16 maxmemory-policy $10 noeviction
         CONFIG GET nosuch => *0
         CONFIG GET save appendonly => *4 $10 appendonly $2 no $4 save $0
         CONFIG GET databases => *2 $9 databases $2 16
         CONFIG GET maxc* MAXCLIENTS => *2 $10 maxclients $5 10000
         CONFIG GET dir durability max-ttl restart-guard => *8 $3 dir $0  $10 durability $4 none $7 max-ttl $4 none $13 restart-guard $3 off
         CONFIG GET *buffer-limit => *4 $25 client-query-buffer-limit $8 67108864 $26 client-output-buffer-limit $19 normal 67108864 0 0
         CONFIG GET => -ERR wrong number of arguments for 'config|get' command",
    );
    let mut node = Node::new();
    node.run("HELLO 3");
    node.check("CONFIG GET maxclients timeout => %2 $10 maxclients $5 10000 $7 timeout $1 0\n CONFIG GET nosuch => %0");
    assert!(node.run("CONFIG GET *").starts_with("%21 "));
}

#[test]
fn what_is_set_is_shown() {
    for (option, value, shown) in [
        ("maxmemory", "0", "0"),
        ("maxmemory", "100mb", "104857600"),
        ("maxmemory", "1k", "1000"),
        ("maxmemory", "''", "0"),
        ("maxmemory-clients", "1mb", "1048576"),
        (
            "maxmemory-clients",
            "9223372036854775807",
            "9223372036854775807",
        ),
        ("maxmemory-clients", "100%", "100%"),
        ("maxmemory-clients", "0%", "0"),
        ("maxclients", "1", "1"),
        ("maxclients", "4294967295", "4294967295"),
        ("timeout", "2147483647", "2147483647"),
        ("tcp-keepalive", "0", "0"),
        ("proto-max-bulk-len", "1mb", "1048576"),
        ("client-query-buffer-limit", "1gb", "1073741824"),
        (
            "client-output-buffer-limit",
            "normal%2032mb%200%200",
            "normal 33554432 0 0",
        ),
        (
            "client-output-buffer-limit",
            "normal%201%202%200",
            "normal 1 0 0",
        ),
        (
            "client-output-buffer-limit",
            "pubsub%2032mb%208mb%2060",
            "normal 67108864 0 0",
        ),
        (
            "client-output-buffer-limit",
            "replica%201%202%203%20normal%205%200%200",
            "normal 5 0 0",
        ),
        ("client-output-buffer-limit", "''", "normal 67108864 0 0"),
        ("maxmemory-policy", "NoEviction", "noeviction"),
        ("protected-mode", "NO", "no"),
        ("requirepass", "sec", "sec"),
        ("save", "''", ""),
        ("appendonly", "no", "no"),
    ] {
        let mut node = Node::new();
        assert_eq!(
            node.run(&format!("CONFIG SET {option} {value}")),
            "+OK",
            "{option} {value}"
        );
        let name = option.to_ascii_lowercase();
        let want = format!("*2 ${} {name} ${} {shown}", name.len(), shown.len());
        assert_eq!(
            node.run(&format!("CONFIG GET {option}")),
            want.trim_end(),
            "{option} {value}"
        );
    }
}

#[test]
fn bad_values_are_refused_in_the_words_of_redis() {
    let size = "argument must be a memory value";
    let integer = "argument couldn't be parsed into an integer";
    let percent = "argument must be a memory or percent value";
    let percentage = "percentage argument must be less or equal to 100";
    let clients_size = "argument must be between 0 and 9223372036854775807 inclusive";
    let buffer = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
    let positive = "argument must be between 0 and 2147483647 inclusive";
    let bulk = "argument must be between 1048576 and 9223372036854775807 inclusive";
    let clients = "argument must be between 1 and 4294967295 inclusive";
    let immutable = "can't set immutable config";
    let switch = "argument must be 'yes' or 'no'";
    for (option, value, reason) in [
        ("maxmemory", "1x", size),
        ("maxmemory", "-1", size),
        ("maxmemory", "1.5mb", size),
        ("maxmemory", "%201", size),
        ("maxmemory", "5%", size),
        ("maxmemory", "99999999999gb", size),
        (
            "maxmemory-policy",
            "allkeys-lru",
            "argument(s) must be one of the following: noeviction",
        ),
        ("maxmemory-clients", "101%", percentage),
        ("maxmemory-clients", "-1%", percent),
        ("maxmemory-clients", "%", percent),
        ("maxmemory-clients", "05%", percent),
        ("maxmemory-clients", "-1", percent),
        ("maxmemory-clients", "9223372036854775808", clients_size),
        ("timeout", "abc", integer),
        ("timeout", "1.5", integer),
        ("timeout", "-1", positive),
        ("tcp-keepalive", "99999999999", positive),
        ("maxclients", "0", clients),
        ("maxclients", "-1", clients),
        ("maxclients", "4294967296", clients),
        ("maxclients", "abc", integer),
        ("proto-max-bulk-len", "1", bulk),
        ("proto-max-bulk-len", "9223372036854775808", bulk),
        ("proto-max-bulk-len", "abc", size),
        ("client-query-buffer-limit", "1", bulk),
        (
            "client-output-buffer-limit",
            "foo",
            "Wrong number of arguments in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "foo%201%202%203",
            "Invalid client class specified in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "master%201%202%203",
            "Invalid client class specified in buffer limit configuration.",
        ),
        ("client-output-buffer-limit", "normal%201x%202%203", buffer),
        ("client-output-buffer-limit", "normal%201%202%20-1", buffer),
        (
            "client-output-buffer-limit",
            "normal%201%202%203",
            "Soft limits are not supported, use 0 0.",
        ),
        ("protected-mode", "foo", switch),
        (
            "appendonly",
            "yes",
            "the node has no append-only file, use no; --durability sets which locks are written to disk",
        ),
        (
            "save",
            "60%201",
            "Invalid save parameters: the node takes no snapshots while it runs, use \"\"",
        ),
        ("databases", "3", immutable),
        ("port", "7000", immutable),
        ("bind", "1.2.3.4", immutable),
        ("enable-debug-command", "yes", immutable),
    ] {
        let mut node = Node::new();
        let before = node.engine.options();
        let want =
            format!("-ERR CONFIG SET failed (possibly related to argument '{option}') - {reason}");
        assert_eq!(
            node.run(&format!("CONFIG SET {option} {value}")),
            want,
            "{option} {value}"
        );
        assert_eq!(node.engine.options(), before, "{option} {value}");
    }
}

#[test]
fn several_options_are_set_together_or_not_at_all() {
    let mut node = Node::new();
    let before = node.engine.options();
    node.check(
        "CONFIG SET maxmemory 1gb timeout abc => -ERR CONFIG SET failed (possibly related to argument 'timeout') - argument couldn't be parsed into an integer
         CONFIG SET maxmemory 1gb foo => -ERR syntax error
         CONFIG SET maxmemory 1gb foo 1 => -ERR Unknown option or number of arguments for CONFIG SET - 'foo'
         CONFIG SET foo 1 databases 3 => -ERR Unknown option or number of arguments for CONFIG SET - 'foo'
         CONFIG SET databases 3 foo 1 => -ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
         CONFIG SET maxmemory x databases 3 => -ERR CONFIG SET failed (possibly related to argument 'databases') - can't set immutable config
         CONFIG SET TIMEOUT 1 timeout 2 => -ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate parameter
         CONFIG SET maxmemory => -ERR wrong number of arguments for 'config|set' command",
    );
    assert_eq!(node.engine.options(), before);
    assert_eq!(
        node.run("CONFIG SET maxmemory 1gb timeout 5 requirepass sec"),
        "+OK"
    );
    let after = node.engine.options();
    assert_eq!(
        (after.maxmemory, after.timeout, after.requirepass.as_str()),
        (1 << 30, 5, "sec")
    );
}

#[test]
fn a_changed_option_is_obeyed_at_once() {
    let mut node = Node::new();
    node.check(
        "SET k v => +OK
         CONFIG SET maxmemory 1 => +OK
         SET k2 v => -OOM command not allowed when used memory > 'maxmemory'.
         DEL k => :1
         CONFIG SET maxmemory 0 => +OK
         SET k2 v => +OK
         CONFIG SET maxclients 3 => +OK",
    );
    assert!(
        node.engine
            .connect(locknode_engine::Peer::default(), node.moment.time)
            .is_none()
    );
    node.advance_millis(5_000);
    node.check(
        "b> PING => +PONG
         CONFIG SET timeout 4 => +OK",
    );
    let closed = node.clients.iter().map(|it| it.client().is_killed());
    assert_eq!(closed.collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn statistics_are_reset() {
    let mut node = Node::new();
    node.check("SET k v => +OK\n GET k => $1 v\n GET no => $-1\n NOSUCH => -ERR unknown command 'NOSUCH', with args beginning with:");
    let stats = node.text("INFO stats");
    for line in [
        "total_connections_received:3\r\n",
        "keyspace_hits:1\r\n",
        "keyspace_misses:1\r\n",
        "total_error_replies:1\r\n",
    ] {
        assert!(stats.contains(line), "{line:?} in {stats}");
    }
    node.check("CONFIG RESETSTAT => +OK");
    let stats = node.text("INFO stats");
    for line in [
        "total_connections_received:0\r\n",
        "keyspace_hits:0\r\n",
        "keyspace_misses:0\r\n",
        "total_error_replies:0\r\n",
    ] {
        assert!(stats.contains(line), "{line:?} in {stats}");
    }
    assert!(
        node.text("INFO keyspace")
            .contains("db0:keys=1,expires=0\r\n")
    );
}

#[test]
fn what_else_config_is_asked_is_refused() {
    check(
        "CONFIG => -ERR wrong number of arguments for 'config' command
         CONFIG FOO => -ERR unknown subcommand 'FOO'. Try CONFIG HELP.
         CONFIG RESETSTAT x => -ERR wrong number of arguments for 'config|resetstat' command
         CONFIG REWRITE => -ERR The server is running without a config file
         CONFIG REWRITE x => -ERR wrong number of arguments for 'config|rewrite' command",
    );
    assert!(
        Node::new()
            .run("CONFIG HELP")
            .starts_with("*11 +CONFIG <subcommand> ")
    );
}
