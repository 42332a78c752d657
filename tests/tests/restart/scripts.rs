//! What scripts leave is judged at their end: which of it is waited for, and which is on the log.

use locknode_engine::durable::Durability;
use locknode_tests::StoredNode;

use crate::{FALLS, MINUTE, NANO, SECOND, holding, node, node_with};

fn eval(script: &str) -> String {
    format!("EVAL \"{script}\" 2 k j token")
}

const SETNX_AND_EXPIRE: &str = "if redis.call('setnx',KEYS[1],ARGV[1])==1 then redis.call('expire',KEYS[1],10) return 1 end return 0";

/// [G5] [G6] [L1]
#[test]
fn a_lock_that_gets_its_ttl_within_the_script_needs_no_log_and_is_waited_for() {
    for fall in FALLS {
        let mut node = node();
        node.expect(&eval(SETNX_AND_EXPIRE), ":1");
        assert_eq!(node.guard().records, 0);
        node.restart(fall);
        let wait = node.quarantine_left().unwrap();
        assert!(wait >= 10 * SECOND && wait < MINUTE, "{wait:?}");
    }
}

/// [L1] [L3]
#[test]
fn what_a_script_leaves_for_long_is_durable_before_the_reply() {
    for script in [
        "redis.call('setnx',KEYS[1],ARGV[1]) redis.call('set',KEYS[2],1,'PX',50) return 1",
        "redis.call('set',KEYS[1],'x','PX',50) redis.call('set',KEYS[1],ARGV[1]) return 1",
        "redis.call('setnx',KEYS[1],ARGV[1]) return redis.call('pexpire',KEYS[1],3600000)",
        "redis.call('setnx',KEYS[1],ARGV[1]) return redis.call('incr',KEYS[1])",
    ] {
        let mut node = node();
        node.hold_disk();
        node.expect_withheld(&eval(script));
        node.release_disk();
        assert_eq!(node.take_late().len(), 1);
        assert_eq!(node.guard().records, 1, "{script}");
        node.restart(StoredNode::reboot);
        node.wait();
        assert_eq!(node.reply("GET k"), "$5 token", "{script}");
    }
}

/// [L3]: a lock that was on the log does not come back with what a later script took from it.
#[test]
fn what_a_script_made_of_a_lock_on_the_log_holds_over_a_crash() {
    for (script, left) in [
        ("return redis.call('del',KEYS[1])", "$-1"),
        ("return redis.call('expire',KEYS[1],10)", "$-1"),
        ("redis.call('set',KEYS[1],'b','PX',10000)", "$-1"),
        (
            "redis.call('del',KEYS[1]) redis.call('set',KEYS[1],'b','PX',10000)",
            "$-1",
        ),
        (
            "redis.call('del',KEYS[1]) redis.call('set',KEYS[1],'b')",
            "$1 b",
        ),
        ("redis.call('del',KEYS[1]) while true do end", "$1 a"),
        ("redis.call('expire',KEYS[1],1) while true do end", "$1 a"),
    ] {
        for durability in [Durability::Long, Durability::Always] {
            let mut node = node_with(|it| it.durability = durability);
            node.expect("SET k a NX", "+OK");
            node.reply(&eval(script));
            node.restart(StoredNode::kill);
            node.advance(10 * SECOND + NANO);
            node.wait();
            assert_eq!(node.reply("GET k"), left, "{script}");
        }
    }
}

/// [G13]: a script that grants on a node whose disk has failed has done nothing; one that releases is served.
#[test]
fn a_node_that_grants_nothing_runs_scripts_that_release() {
    let mut node = holding(&["SET k a NX PX 30000"]);
    node.close();
    let grants = "redis.call('del',KEYS[1]) return redis.call('set',KEYS[2],ARGV[1],'PX',20000)";
    let reply = node.reply(&eval(grants));
    assert!(
        reply.starts_with("-LOADING locknode is shutting down"),
        "{reply}"
    );
    node.expect("GET k", "$1 a");
    let releases =
        "redis.call('setnx',KEYS[2],1) redis.call('del',KEYS[2]) return redis.call('del',KEYS[1])";
    node.expect(&eval(releases), ":1");
}
