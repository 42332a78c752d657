//! MULTI, EXEC, DISCARD, WATCH and UNWATCH.

use std::time::Duration;

use locknode_engine::{Flow, GuardMode};

use crate::node::{Node, check};

const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.";
const BECAUSE: &str = "-EXECABORT Transaction discarded because of: ";

#[test]
fn exec_runs_what_multi_queued() {
    check(
        "MULTI => +OK
         SET k a NX PX 60000 => +QUEUED
         SET k b NX PX 60000 => +QUEUED
         GET k => +QUEUED
         PTTL k => +QUEUED
         MGET k j => +QUEUED
         b> EXISTS k => :0
         EXEC => *5 +OK $-1 $1 a :60000 *2 $1 a $-1
         EXEC => -ERR EXEC without MULTI
         b> GET k => $1 a
         MULTI => +OK
         EXEC => *0
         MULTI => +OK
         DEL k => +QUEUED
         DISCARD => +OK
         DISCARD => -ERR DISCARD without MULTI
         EXISTS k => :1",
    );
}

#[test]
fn what_is_refused_when_queued_ends_the_transaction() {
    for (command, refusal) in [
        (
            "NOSUCH k",
            "-ERR unknown command 'NOSUCH', with args beginning with: 'k'",
        ),
        ("GET", "-ERR wrong number of arguments for 'get' command"),
        (
            "UNWATCH k",
            "-ERR wrong number of arguments for 'unwatch' command",
        ),
        (
            "DISCARD k",
            "-ERR wrong number of arguments for 'discard' command",
        ),
        (
            "MULTI k",
            "-ERR wrong number of arguments for 'multi' command",
        ),
        ("SHUTDOWN", "-ERR Command not allowed inside a transaction"),
        (
            "CLIENT NOSUCH",
            "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.",
        ),
        (
            "CLIENT SETNAME",
            "-ERR wrong number of arguments for 'client|setname' command",
        ),
        (
            "CLIENT HELP k",
            "-ERR wrong number of arguments for 'client|help' command",
        ),
    ] {
        check(&format!(
            "MULTI => +OK
             SET k a PX 60000 => +QUEUED
             {command} => {refusal}
             SET j a PX 60000 => +QUEUED
             EXEC => {ABORTED}
             EXISTS k j => :0
             EXEC => -ERR EXEC without MULTI
             MULTI => +OK
             {command} => {refusal}
             DISCARD => +OK
             SET k a PX 60000 => +OK"
        ));
    }
    check(&format!(
        "MULTI => +OK
         SET k a PX 60000 => +QUEUED
         EXEC k => {BECAUSE}wrong number of arguments for 'exec' command
         EXEC => -ERR EXEC without MULTI
         EXISTS k => :0"
    ));
}

#[test]
fn nothing_begins_or_ends_before_authentication() {
    let mut node = Node::with_options(|options| options.requirepass = "secret".to_owned());
    node.check(&format!(
        "MULTI => -NOAUTH Authentication required.
         WATCH k => -NOAUTH Authentication required.
         DISCARD => -NOAUTH Authentication required.
         EXEC => {BECAUSE}NOAUTH Authentication required.
         AUTH secret => +OK
         MULTI => +OK
         AUTH wrong => +QUEUED
         EXEC => *1 -WRONGPASS invalid username-password pair or user is disabled."
    ));
}

#[test]
fn what_only_fails_does_not() {
    check(
        "MULTI => +OK
         MULTI => -ERR MULTI calls can not be nested
         WATCH k => -ERR WATCH inside MULTI is not allowed
         SET k a PX 60000 => +QUEUED
         INCR k => +QUEUED
         EVALSHA ffffffffffffffffffffffffffffffffffffffff 0 => +QUEUED
         SET k b PX 0 => +QUEUED
         UNWATCH => +QUEUED
         GET k => +QUEUED
         EXEC => *6 +OK -ERR value is not an integer or out of range -NOSCRIPT No matching script. Please use EVAL. \
            -ERR invalid expire time in 'set' command +OK $1 a",
    );
}

#[test]
fn commands_about_the_connection_stay_in_force() {
    check(
        "MULTI => +OK
         SELECT 3 => +QUEUED
         SET k a PX 60000 => +QUEUED
         CLIENT SETNAME worker => +QUEUED
         CLIENT ID => +QUEUED
         EXEC => *4 +OK +OK +OK :1
         GET k => $1 a
         CLIENT GETNAME => $6 worker
         SELECT 0 => +OK
         GET k => $-1
         MULTI => +OK
         CLIENT PAUSE 1000 => +QUEUED
         CLIENT GETNAME => +QUEUED
         EXEC => *2 +OK $6 worker
         b> PING => Paused
         + 1000
         MULTI => +OK
         CLIENT KILL ID 1 SKIPME no => +QUEUED
         PING => +QUEUED
         EXEC => *2 :1 +PONG Close",
    );
    let mut node = Node::new();
    node.check(
        "MULTI => +OK\nGET k => +QUEUED\nHELLO 3 => +QUEUED\nGET k => +QUEUED\nMGET k => +QUEUED",
    );
    let reply = node.run("EXEC");
    assert!(reply.starts_with("*4 $-1 %7 $6 server"), "{reply}");
    assert!(reply.ends_with(" _ *1 _"), "{reply}");
    node.check("MULTI => +OK\nQUIT => +OK Close");
}

#[test]
fn a_transaction_ends_with_a_reset() {
    check(
        "WATCH k => +OK
         MULTI => +OK
         SET k a PX 60000 => +QUEUED
         RESET => +RESET
         EXEC => -ERR EXEC without MULTI
         b> SET k b PX 60000 => +OK
         MULTI => +OK
         GET k => +QUEUED
         EXEC => *1 $1 b",
    );
}

/// Each command of `b`, and whether it is a change of `k`, which `a` watches.
#[test]
fn a_watched_key_that_another_changes_stops_the_transaction() {
    for (before, command, is_change) in [
        ("", "SET k b NX PX 9000", true),
        ("SET k a PX 9000", "SET k b NX PX 9000", false),
        ("SET k a PX 9000", "SET k b NX GET PX 9000", false),
        ("SET k a PX 9000", "SET k a PX 9000", true),
        ("SET k a PX 9000", "PEXPIRE k 9000", true),
        ("SET k a PX 9000", "PEXPIRE k 9000 LT", false),
        ("SET k a PX 9000", "PERSIST k", true),
        ("SET k a", "PERSIST k", false),
        ("SET k a PX 9000", "GETEX k", false),
        ("SET k a PX 9000", "GETEX k PX 9000", true),
        ("SET k a PX 9000", "GET k", false),
        ("SET k a PX 9000", "TOUCH k", false),
        ("SET k a PX 9000", "MSETNX j b k b", false),
        ("SET k a PX 9000", "MSET j b k b", true),
        ("SET k a PX 9000", "DEL j", false),
        ("SET k a PX 9000", "DEL j k", true),
        ("", "DEL k", false),
        ("SET k a PX 9000", "EXPIRE k -1", true),
        ("SET k a PX 9000", "DELEX k IFEQ a", true),
        ("SET k a PX 9000", "DELEX k IFEQ b", false),
        ("SET k a PX 9000", "FLUSHALL", true),
        ("SET k a PX 9000", "FLUSHDB", true),
        ("", "FLUSHALL", false),
        ("SET k 7 PX 9000", "INCRBY k 0", true),
        ("SET k a PX 9000", "INCR k", false),
    ] {
        let before = if before.is_empty() { "DEL k" } else { before };
        for shards in [1, 8] {
            let mut node = Node::with_shards(shards);
            node.run(before);
            node.run("WATCH x k k y");
            node.run(&format!("b> {command}"));
            node.run("MULTI");
            node.run("PING");
            let want = if is_change { "*-1" } else { "*1 +PONG" };
            assert_eq!(node.run("EXEC"), want, "{before}, {command}");
            node.check("MULTI => +OK\nPING => +QUEUED\nEXEC => *1 +PONG");
        }
    }
}

#[test]
fn a_watch_knows_its_database_and_its_end() {
    check(
        "WATCH k => +OK
         b> SELECT 1 => +OK
         b> SET k b PX 9000 => +OK
         MULTI => +OK
         PING => +QUEUED
         EXEC => *1 +PONG
         SELECT 1 => +OK
         WATCH k => +OK
         SELECT 0 => +OK
         b> DEL k => :1
         MULTI => +OK
         SET j a => +QUEUED
         EXEC => *-1
         EXISTS j => :0
         # Ended by UNWATCH, EXEC and DISCARD.
         WATCH k => +OK
         SET k a PX 9000 => +OK
         UNWATCH => +OK
         MULTI => +OK
         PING => +QUEUED
         EXEC => *1 +PONG
         WATCH k => +OK
         MULTI => +OK
         DISCARD => +OK
         b> SELECT 0 => +OK
         b> DEL k => :1
         MULTI => +OK
         PING => +QUEUED
         EXEC => *1 +PONG
         # What the client itself does counts.
         WATCH k => +OK
         SET k a PX 9000 => +OK
         HELLO 3 => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role \
            $6 master $7 modules *0
         MULTI => +OK
         PING => +QUEUED
         EXEC => _",
    );
}

/// `[L12]`
#[test]
fn expiry_is_a_change_unless_it_came_before() {
    check(
        "SET k a PX 10 => +OK
         WATCH k => +OK
         + 11
         MULTI => +OK
         DEL k => +QUEUED
         EXEC => *-1
         SET k a PX 10 => +OK
         WATCH k => +OK
         GET k => $1 a
         + 11
         b> SET k b NX PX 9000 => +OK
         MULTI => +OK
         DEL k => +QUEUED
         EXEC => *-1
         b> GET k => $1 b
         b> PEXPIRE k 10 => :1
         + 11
         WATCH k => +OK
         b> EXISTS k => :0
         MULTI => +OK
         PING => +QUEUED
         EXEC => *1 +PONG",
    );
    let mut node = Node::new();
    node.check("SET k a PX 10 => +OK\nWATCH k => +OK\n+ 11");
    let swept: usize = (0..8)
        .map(|_| node.engine.sweep(node.moment.time, 10_000).expired)
        .sum();
    assert_eq!(swept, 1);
    node.check("MULTI => +OK\nPING => +QUEUED\nEXEC => *-1");
}

#[test]
fn client_list_shows_transactions_and_watches() {
    let mut node = Node::new();
    let mut fields = |request: &str| {
        node.run(request);
        let line = node.text("CLIENT LIST ID 2");
        let is_shown = |field: &&str| {
            ["flags=", "multi=", "watch="]
                .iter()
                .any(|name| field.starts_with(name))
        };
        line.split(' ')
            .filter(is_shown)
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (request, want) in [
        ("PING", "flags=N multi=-1 watch=0"),
        ("b> WATCH k j k", "flags=N multi=-1 watch=2"),
        ("b> MULTI", "flags=x multi=0 watch=2"),
        ("b> GET k", "flags=x multi=1 watch=2"),
        ("SET k a", "flags=xd multi=1 watch=2"),
        ("b> EXEC", "flags=N multi=-1 watch=0"),
    ] {
        assert_eq!(fields(request), want, "{request}");
    }
    node.run("b> WATCH k");
    assert!(node.text("INFO clients").contains("watching_clients:1\r\n"));
    drop(node.clients.remove(1));
    assert!(node.text("INFO clients").contains("watching_clients:0\r\n"));
}

#[test]
fn memory_is_checked_at_queueing_and_at_exec() {
    check(&format!(
        "MULTI => +OK
         SET k a PX 60000 => +QUEUED
         b> CONFIG SET maxmemory 1 => +OK
         EXEC => {BECAUSE}OOM command not allowed when used memory > 'maxmemory'.
         MULTI => +OK
         SET k a PX 60000 => -OOM command not allowed when used memory > 'maxmemory'.
         DEL k => +QUEUED
         EXEC => {ABORTED}
         # What ends or renews a lock is not refused.
         MULTI => +OK
         DEL k => +QUEUED
         PEXPIRE k 5 => +QUEUED
         EXEC => *2 :0 :0"
    ));
}

#[test]
fn a_pause_of_writes_holds_back_an_exec_of_writes() {
    check(
        "MULTI => +OK
         SET k a PX 60000 => +QUEUED
         b> MULTI => +OK
         b> GET k => +QUEUED
         c> CLIENT PAUSE 1000 WRITE => +OK
         b> EXEC => *1 $-1
         EXEC => Paused
         + 1000
         EXEC => *1 +OK",
    );
}

/// A node that grants no lock above a minute and has no log.
fn guarded(shards: usize) -> Node {
    Node::with_config(|config| {
        config.shards = shards;
        config.guard.mode = GuardMode::Memory;
        config.guard.max_ttl = Duration::from_secs(60);
    })
}

const TOO_LONG: &str = "-UNSUPPORTED give a TTL of 60000 ms at most (SET key token NX PX 60000): this node has no data \
    directory and cannot keep a longer lock, or one without a TTL, across a restart. Start it with --dir to allow both, \
    with a higher --max-ttl, or with --restart-guard off if a restart may forget locks";

#[test]
fn ttls_are_judged_at_exec() {
    for shards in [1, 8] {
        guarded(shards).check(&format!(
            "MULTI => +OK
             SETNX k a => +QUEUED
             PEXPIRE k 60000 => +QUEUED
             EVAL \"return redis.call('SET',KEYS[1],ARGV[1])\" 1 j a => +QUEUED
             EXPIRE j 60 => +QUEUED
             EXEC => *4 :1 :1 +OK :1
             # One lock that it may not keep undoes all.
             MULTI => +OK
             DEL k => +QUEUED
             PEXPIRE j 5 => +QUEUED
             SET i a => +QUEUED
             EXEC => {TOO_LONG}
             PTTL k => :60000
             PTTL j => :60000
             EXISTS i => :0
             # As does one that a script leaves.
             MULTI => +OK
             DEL k => +QUEUED
             EVAL \"redis.call('SET',KEYS[1],ARGV[1]) redis.call('DEL','k')\" 1 i a => +QUEUED
             EXEC => {TOO_LONG}
             EXISTS k i => :1"
        ));
    }
}

#[test]
fn a_script_that_is_stopped_is_undone_alone() {
    for shards in [1, 8] {
        let mut node = guarded(shards);
        node.check("WATCH k => +OK\nb> MULTI => +OK\nb> SET j a PX 60000 => +QUEUED");
        let endless: [&[u8]; 4] = [
            b"EVAL",
            b"redis.call('set',KEYS[1],'a') while true do end",
            b"1",
            b"k",
        ];
        assert_eq!(node.bytes_for(1, &endless), b"+QUEUED\r\n");
        node.check("b> EXISTS k => +QUEUED");
        let reply = node.run("b> EXEC");
        assert!(reply.starts_with("*3 +OK -UNSUPPORTED "), "{reply}");
        assert!(reply.ends_with(" :0 Yield"), "{reply}");
        node.check("EXISTS j => :1\nMULTI => +OK\nPING => +QUEUED\nEXEC => *1 +PONG");
    }
}

#[test]
fn nobody_hears_of_a_transaction_that_was_undone() {
    for shards in [1, 8] {
        guarded(shards).check(&format!(
            "SET old a PX 10 => +OK
             SET k a PX 60000 => +OK
             WATCH k => +OK
             + 11
             c> WATCH old => +OK
             b> MULTI => +OK
             b> DEL k => +QUEUED
             b> SET i a => +QUEUED
             b> EXEC => {TOO_LONG}
             MULTI => +OK
             GET k => +QUEUED
             EXEC => *1 $1 a"
        ));
    }
}

#[test]
fn known_scripts_are_undone_with_the_rest() {
    let mut node = guarded(8);
    node.check("SET k a PX 60000 => +OK\nMULTI => +OK");
    let release: &[&[u8]] = &[
        b"EVAL",
        b"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
        b"1",
        b"k",
        b"a",
    ];
    assert_eq!(node.bytes(release), b"+QUEUED\r\n");
    node.check(&format!(
        "SET i a => +QUEUED\nEXEC => {TOO_LONG}\nGET k => $1 a\nMULTI => +OK"
    ));
    assert_eq!(node.bytes(release), b"+QUEUED\r\n");
    node.check("EXEC => *1 :1\nGET k => $-1");
}

#[test]
fn clearing_is_a_part_of_a_transaction_that_stays() {
    check(
        "SET k a PX 60000 => +OK
         b> WATCH k => +OK
         MULTI => +OK
         SET j a PX 60000 => +QUEUED
         FLUSHALL => +QUEUED
         DBSIZE => +QUEUED
         SET i a PX 60000 => +QUEUED
         KEYS * => +QUEUED
         EXEC => *5 +OK +OK :0 +OK *1 $1 i
         b> MULTI => +OK
         b> PING => +QUEUED
         b> EXEC => *-1",
    );
}

/// Issue 15, bad input: a million commands.
#[test]
fn a_transaction_has_a_bounded_size() {
    let mut node = Node::new();
    node.run("WATCH k");
    node.run("MULTI");
    let (mut queued, mut most) = (0, 0);
    for _ in 0..1_000_000 {
        let reply = node.bytes(&[b"SET", b"k", b"a", b"PX", b"60000"]);
        most = most.max(node.clients[0].kept_bytes());
        if reply == b"+QUEUED\r\n" {
            queued += 1;
        } else {
            assert_eq!(
                reply,
                b"-ERR a transaction holds at most 4194304 bytes of commands\r\n"
            );
        }
        if queued > 20_000 && node.clients[0].kept_bytes() < 1000 {
            break;
        }
    }
    assert!((20_000..100_000).contains(&queued), "{queued}");
    assert!((4_000_000..4_200_000).contains(&most), "{most}");
    node.check(&format!(
        "SET k a PX 60000 => +QUEUED\nEXEC => {ABORTED}\nEXISTS k => :0"
    ));
    assert_eq!(node.clients[0].kept_bytes(), 0);
}

#[test]
fn a_long_exec_yields_and_its_reply_is_bounded() {
    let mut node = Node::with_options(|options| options.client_output_buffer_limit.normal = 1000);
    node.run("SET k a PX 60000");
    for (commands, want) in [
        (50, "*50 "),
        (
            1_000,
            "-ERR the reply is longer than client-output-buffer-limit",
        ),
    ] {
        node.run("MULTI");
        (0..commands).for_each(|_| drop(node.run("INCR n")));
        let reply = node.run("EXEC");
        assert!(reply.starts_with(want), "{reply}");
        assert_eq!(node.flow == Flow::Yield, commands == 1_000);
    }
    // Those of the second transaction were undone.
    node.check("GET n => $2 50");
}

#[test]
fn an_exec_has_a_bounded_number_of_long_scripts_and_searches() {
    let endless: [&[u8]; 4] = [
        b"EVAL",
        b"redis.call('set',KEYS[1],'a') while true do end",
        b"1",
        b"k",
    ];
    let mut node = Node::new();
    for (scripts, want) in [
        (1, "*1 -UNSUPPORTED"),
        (20, "-UNSUPPORTED a transaction with so many long scripts"),
    ] {
        node.run("MULTI");
        (0..scripts).for_each(|_| drop(node.bytes(&endless)));
        let reply = node.run("EXEC");
        assert!(reply.starts_with(want), "{reply}");
        node.check("EXISTS k => :0");
    }
    for key in 0..200_000 {
        node.bytes(&[b"SET", format!("{key}").as_bytes(), b""]);
    }
    for (searches, want) in [
        (1, "*1 *0"),
        (
            2,
            "-UNSUPPORTED a transaction with so many long scripts or searches",
        ),
    ] {
        node.run("MULTI");
        (0..searches).for_each(|_| drop(node.run("KEYS n*")));
        let reply = node.run("EXEC");
        assert!(reply.starts_with(want), "{reply}");
    }
}

#[test]
fn watched_keys_have_a_bounded_size() {
    let mut node = Node::new();
    let key = vec![b'k'; 300_000];
    for (digit, want) in [
        (b'0', "+OK\r\n"),
        (b'1', "+OK\r\n"),
        (b'2', "+OK\r\n"),
        (b'0', "+OK\r\n"),
        (
            b'3',
            "-ERR a connection watches at most 1048576 bytes of keys\r\n",
        ),
    ] {
        let key = [&[digit], &key[..]].concat();
        assert_eq!(node.bytes(&[b"WATCH", &key]), want.as_bytes());
    }
    node.check("UNWATCH => +OK\nWATCH k => +OK");
}
