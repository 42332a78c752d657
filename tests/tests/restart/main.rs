//! Nodes that crash, stop and start again: the restart guard, the log for long locks, the fence counters.
//!
//! * [`served`]: a served node with a real data directory and a stepped clock.
//! * [`amnesia`]: what a node forgot in a crash it grants to nobody; clean stops, lost disks, crash loops.
//! * [`clocks`]: clocks that jump, stop, run differently or belong to another machine.
//! * [`disk`]: writes that are torn, syncs that fail, disks that are full, at every point of a script.
//! * [`unsynced`]: replies that tell of what is not durable yet, and changes that cannot be made so.
//! * [`long_locks`]: what is on the log survives, what was taken off it stays off.
//! * [`dashboard`]: what a node that grants nothing shows and serves all the same.
//! * [`commands`]: late and foreign extensions and releases.
//! * [`scripts`]: what scripts leave, judged at their end.
//! * [`fencing`]: counters that never go back, and the write-back.
//! * [`majority`]: five nodes and the windows in which clients believe in their locks.
//! * [`transaction`]: MULTI in quarantine, and what EXEC leaves.
//! * [`promises`]: what clients were told by a script, and whether a node keeps it.
//!
//! All but `served` run on [`StoredNode`]: no threads, no tokio, the same every time. S01 and the like name scenarios by
//! which lock services are known to fail. What comes at random is played by the failure kit's swarm, whose nodes are held
//! against a model of every reply and of everything that a start must bring back.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "what fails here fails the test"
)]

mod amnesia;
mod clocks;
mod commands;
mod dashboard;
mod disk;
mod fencing;
mod labels;
mod long_locks;
mod majority;
mod promises;
mod scripts;
mod served;
mod transaction;
mod unsynced;
mod values;

use std::time::Duration;

use locknode_engine::durable::Durability;
use locknode_tests::{NodeSettings, StoredNode};

const NANO: Duration = Duration::from_nanos(1);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

/// The ways in which a process ends without a clean stop.
const FALLS: [fn(&mut StoredNode); 2] = [StoredNode::kill, StoredNode::reboot];

/// The release of most lock libraries by `a`, and its extension by a minute.
const RELEASE_BY_SCRIPT: &str = "EVAL \"if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) \
    else return 0 end\" 1 k a";
const EXTEND_BY_SCRIPT: &str = "EVAL \"if redis.call('get', KEYS[1]) == ARGV[1] then \
    return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end\" 1 k a 60000";

fn settings() -> NodeSettings {
    NodeSettings::default()
}

/// The same with every lock on the log.
fn always() -> NodeSettings {
    NodeSettings {
        durability: Durability::Always,
        ..settings()
    }
}

/// A node after its first start.
fn node() -> StoredNode {
    StoredNode::first_start(settings())
}

/// The same, holding the locks that it granted by these requests.
#[track_caller]
fn holding(requests: &[&str]) -> StoredNode {
    let mut node = node();
    node.expect_ok(requests);
    node
}

/// Stops the process cleanly.
fn stop(node: &mut StoredNode) {
    node.clean_stop().unwrap();
}

/// A node after its first start with other settings.
fn node_with(change: impl FnOnce(&mut NodeSettings)) -> StoredNode {
    let mut settings = settings();
    change(&mut settings);
    StoredNode::first_start(settings)
}

/// The counter in a reply to LOCK.ACQUIRE.
#[track_caller]
fn fence(reply: &str) -> u64 {
    let number = reply.split(' ').nth(2).and_then(|it| it.strip_prefix(':'));
    number
        .and_then(|it| it.parse().ok())
        .unwrap_or_else(|| panic!("{reply}"))
}
