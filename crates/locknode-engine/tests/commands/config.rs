//! CONFIG.

use crate::node::{Node, check, rows};

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
         CONFIG GET *buffer-limit => *4 $25 client-query-buffer-limit $8 67108864 $26 client-output-buffer-limit $46 normal 67108864 0 0 pubsub 33554432 8388608 60
         CONFIG GET => -ERR wrong number of arguments for 'config|get' command",
    );
    let mut node = Node::new();
    node.run("HELLO 3");
    node.check("CONFIG GET maxclients timeout => %2 $10 maxclients $5 10000 $7 timeout $1 0\n CONFIG GET nosuch => %0");
    let options = 27
        + usize::from(cfg!(feature = "acl"))
        + usize::from(cfg!(feature = "compat"))
        + 4 * usize::from(cfg!(feature = "metrics"))
        + 4 * usize::from(cfg!(feature = "tls"));
    let head = format!("%{options} ");
    assert!(node.run("CONFIG GET *").starts_with(&head));
}

#[test]
fn what_is_set_is_shown() {
    let table = "
        maxmemory 0 => 0
        maxmemory 100mb => 104857600
        maxmemory 1k => 1000
        maxmemory '' => 0
        maxmemory-clients 1mb => 1048576
        maxmemory-clients 9223372036854775807 => 9223372036854775807
        maxmemory-clients 100% => 100%
        maxmemory-clients 0% => 0
        maxclients 1 => 1
        maxclients 4294967295 => 4294967295
        timeout 2147483647 => 2147483647
        tcp-keepalive 0 => 0
        proto-max-bulk-len 1mb => 1048576
        client-query-buffer-limit 1gb => 1073741824
        client-output-buffer-limit normal%2032mb%200%200 => normal 33554432 0 0 pubsub 33554432 8388608 60
        client-output-buffer-limit normal%201%202%200 => normal 1 0 0 pubsub 33554432 8388608 60
        client-output-buffer-limit pubsub%201mb%2064kb%205 => normal 67108864 0 0 pubsub 1048576 65536 5
        client-output-buffer-limit replica%201%202%203%20normal%205%200%200 => normal 5 0 0 pubsub 33554432 8388608 60
        client-output-buffer-limit '' => normal 67108864 0 0 pubsub 33554432 8388608 60
        maxmemory-policy NoEviction => noeviction
        protected-mode NO => no
        requirepass sec => sec
        save '' =>
        appendonly no => no
    ";
    for (setting, shown) in rows(table) {
        let mut node = Node::new();
        let (name, _) = setting.split_once(' ').expect("a value");
        assert_eq!(
            node.run(&format!("CONFIG SET {setting}")),
            "+OK",
            "{setting}"
        );
        let want = format!("*2 ${} {name} ${} {shown}", name.len(), shown.len());
        let reply = node.run(&format!("CONFIG GET {name}"));
        assert_eq!(reply, want.trim_end(), "{setting}");
    }
}

#[test]
fn bad_values_are_refused_in_the_words_of_redis() {
    let table = r#"
        maxmemory 1x => argument must be a memory value
        maxmemory -1 => argument must be a memory value
        maxmemory 1.5mb => argument must be a memory value
        maxmemory %201 => argument must be a memory value
        maxmemory 5% => argument must be a memory value
        maxmemory 99999999999gb => argument must be a memory value
        maxmemory-policy allkeys-lru => argument(s) must be one of the following: noeviction
        maxmemory-clients 101% => percentage argument must be less or equal to 100
        maxmemory-clients -1% => argument must be a memory or percent value
        maxmemory-clients % => argument must be a memory or percent value
        maxmemory-clients 05% => argument must be a memory or percent value
        maxmemory-clients -1 => argument must be a memory or percent value
        maxmemory-clients 9223372036854775808 => argument must be between 0 and 9223372036854775807 inclusive
        timeout abc => argument couldn't be parsed into an integer
        timeout 1.5 => argument couldn't be parsed into an integer
        timeout -1 => argument must be between 0 and 2147483647 inclusive
        tcp-keepalive 99999999999 => argument must be between 0 and 2147483647 inclusive
        maxclients 0 => argument must be between 1 and 4294967295 inclusive
        maxclients -1 => argument must be between 1 and 4294967295 inclusive
        maxclients 4294967296 => argument must be between 1 and 4294967295 inclusive
        maxclients abc => argument couldn't be parsed into an integer
        proto-max-bulk-len 1 => argument must be between 1048576 and 9223372036854775807 inclusive
        proto-max-bulk-len 9223372036854775808 => argument must be between 1048576 and 9223372036854775807 inclusive
        proto-max-bulk-len abc => argument must be a memory value
        client-query-buffer-limit 1 => argument must be between 1048576 and 9223372036854775807 inclusive
        client-output-buffer-limit foo => Wrong number of arguments in buffer limit configuration.
        client-output-buffer-limit foo%201%202%203 => Invalid client class specified in buffer limit configuration.
        client-output-buffer-limit master%201%202%203 => Invalid client class specified in buffer limit configuration.
        client-output-buffer-limit normal%201x%202%203 => Error in hard, soft or soft_seconds setting in buffer limit configuration.
        client-output-buffer-limit normal%201%202%20-1 => Error in hard, soft or soft_seconds setting in buffer limit configuration.
        client-output-buffer-limit normal%201%202%203 => Soft limits are not supported for class normal, use 0 0.
        protected-mode foo => argument must be 'yes' or 'no'
        appendonly yes => the node has no append-only file, use no; --durability sets which locks are written to disk
        save 60%201 => Invalid save parameters: the node takes no snapshots while it runs, use ""
        databases 3 => can't set immutable config
        port 7000 => can't set immutable config
        bind 1.2.3.4 => can't set immutable config
        enable-debug-command yes => can't set immutable config
    "#;
    for (setting, reason) in rows(table) {
        let mut node = Node::new();
        let before = node.engine.options();
        let (name, _) = setting.split_once(' ').expect("a value");
        let want =
            format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}");
        assert_eq!(
            node.run(&format!("CONFIG SET {setting}")),
            want,
            "{setting}"
        );
        assert_eq!(node.engine.options(), before, "{setting}");
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
    let shows = |node: &mut Node, counts: [u64; 4]| {
        let stats = node.text("INFO stats");
        let names = "total_connections_received keyspace_hits keyspace_misses total_error_replies";
        for (name, count) in names.split(' ').zip(counts) {
            let line = format!("{name}:{count}\r\n");
            assert!(stats.contains(&line), "{line:?} in {stats}");
        }
    };
    shows(&mut node, [3, 1, 1, 1]);
    node.check("CONFIG RESETSTAT => +OK");
    shows(&mut node, [0; 4]);
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
