//! What a node in quarantine, or with a failed disk, shows and serves besides locks.

use locknode_tests::StoredNode;

use crate::{holding, node};

/// The statuses in INFO that exporters make numbers of: of the last snapshot, and of the log.
fn statuses(node: &mut StoredNode) -> (bool, bool) {
    let info = format!("{} ", node.reply("INFO persistence"));
    assert!(info.contains("loading:0 "), "drivers queue on 1: {info}");
    let is_ok = |field: &str| {
        let is_ok = info.contains(&format!("{field}:ok "));
        let is_err = info.contains(&format!("{field}:err "));
        assert!(is_ok != is_err, "no {field} in {info}");
        is_ok
    };
    (
        is_ok("rdb_last_bgsave_status"),
        is_ok("aof_last_write_status"),
    )
}

/// [G2]
#[test]
fn a_quarantine_looks_unhealthy_for_as_long_as_it_lasts() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    assert_eq!(statuses(&mut node), (true, true));
    node.restart(StoredNode::kill);
    assert_eq!(statuses(&mut node), (false, true));
    assert!(node.is_loading("SET k b NX PX 30000"));
    let errors = node.reply("INFO errorstats");
    assert!(errors.contains("errorstat_LOADING:count=1"), "{errors}");
    node.wait();
    assert_eq!(statuses(&mut node), (true, true));
}

/// [G13]
#[test]
fn a_disk_that_failed_shows() {
    let mut node = node();
    node.disk.fail_sync(0);
    let _ = node.send("SET k a NX");
    assert_eq!(statuses(&mut node), (true, false));
}

/// [G2]: what touches no key is served, so that clients can be made.
#[test]
fn a_script_can_be_loaded_in_quarantine_and_run_after_it() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    node.restart(StoredNode::kill);
    let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    node.expect("SCRIPT LOAD \"return 1\"", &format!("$40 {sha}"));
    node.expect(&format!("SCRIPT EXISTS {sha}"), "*1 :1");
    for request in ["WAIT 0 0", "CLUSTER INFO", "FUNCTION LIST", "SCRIPT FLUSH"] {
        assert!(!node.is_loading(request), "{request}");
    }
    for request in [
        "PING",
        "EXISTS k",
        "DBSIZE",
        "KEYS *",
        "FLUSHALL",
        "LOCK.GET k",
    ] {
        assert!(node.is_loading(request), "{request}");
    }
    assert!(node.is_loading(&format!("EVALSHA {sha} 0")));
}

/// [G2] What Redis serves while it loads is served, and what touches keys is refused with its prefix. Scripts can be loaded
/// and replicas waited for as well.
#[test]
fn in_quarantine_a_node_serves_what_redis_serves_while_it_loads() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    node.restart(StoredNode::kill);
    for (request, reply) in [
        ("PUBLISH channel message", ":0"),
        ("SPUBLISH channel message", ":0"),
        ("WATCH k", "+OK"),
        ("UNWATCH", "+OK"),
        ("SELECT 0", "+OK"),
        ("CLIENT SETINFO LIB-NAME driver", "+OK"),
        ("CLIENT TRACKING ON OPTIN", "+OK"),
        ("CLIENT TRACKING OFF", "+OK"),
        ("CONFIG GET maxmemory", "*2 $9 maxmemory $1 0"),
        ("ROLE", "*3 $6 master :0 *0"),
        ("PUBSUB CHANNELS", "*0"),
        ("SUBSCRIBE channel", "*3 $9 subscribe $7 channel :1"),
        ("UNSUBSCRIBE channel", "*3 $11 unsubscribe $7 channel :0"),
        ("SCRIPT KILL", "-NOTBUSY No scripts in execution right now."),
        ("WAITAOF 0 0 0", "*2 :0 :0"),
    ] {
        node.expect(request, reply);
    }
    for request in ["HELLO", "CLIENT ID", "INFO", "TIME", "COMMAND COUNT"] {
        let reply = node.reply(request);
        assert!(!reply.starts_with('-'), "{request}: {reply}");
    }
    let left = node
        .quarantine_left()
        .expect("a wait")
        .as_nanos()
        .div_ceil(1_000_000);
    let refusal = format!("-LOADING locknode is in its restart quarantine, {left} ms left");
    for request in [
        "PING",
        "GET k",
        "SET j b NX PX 30000",
        "EXISTS k",
        "DEL k",
        "PEXPIRE k 30000",
        "HGET k holder",
        "HINCRBY j holder 1",
        "BLPOP list 1",
        "EVAL \"return 1\" 0",
        "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0",
        "FLUSHALL",
    ] {
        node.expect(request, &refusal);
    }
}
