//! What a node in quarantine, or with a failed disk, shows and serves besides locks.

use locknode_tests::StoredNode;

use crate::{loading, node, told};

/// The statuses in INFO that exporters make numbers of: of the last snapshot, and of the log.
fn statuses(node: &mut StoredNode) -> (bool, bool) {
    let info = format!("{} ", told(node, "INFO persistence"));
    assert!(info.contains("loading:0 "), "drivers queue on 1: {info}");
    let is_ok = |field: &str| match (
        info.contains(&format!("{field}:ok ")),
        info.contains(&format!("{field}:err ")),
    ) {
        (is_ok, is_err) if is_ok != is_err => is_ok,
        _ => panic!("no {field} in {info}"),
    };
    (
        is_ok("rdb_last_bgsave_status"),
        is_ok("aof_last_write_status"),
    )
}

/// [G2]
#[test]
fn a_quarantine_looks_unhealthy_for_as_long_as_it_lasts() {
    let mut node = node();
    told(&mut node, "SET k a NX PX 30000");
    assert_eq!(statuses(&mut node), (true, true));
    node.kill();
    node.start().unwrap();
    assert_eq!(statuses(&mut node), (false, true));
    assert!(loading(&mut node, "SET k b NX PX 30000"));
    let errors = told(&mut node, "INFO errorstats");
    assert!(errors.contains("errorstat_LOADING:count=1"), "{errors}");
    node.advance(node.quarantine_left().unwrap());
    assert_eq!(statuses(&mut node), (true, true));
}

/// [G13]
#[test]
fn a_disk_that_failed_shows() {
    let mut node = node();
    node.disk().fail_sync(0);
    let _ = node.send("SET k a NX");
    assert_eq!(statuses(&mut node), (true, false));
}

/// [G2]: what touches no key is served, so that clients can be made.
#[test]
fn a_script_can_be_loaded_in_quarantine_and_run_after_it() {
    let mut node = node();
    told(&mut node, "SET k a NX PX 30000");
    node.kill();
    node.start().unwrap();
    let sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let load: [&[u8]; 3] = [b"SCRIPT", b"LOAD", b"return 1"];
    let loaded = node.send_all(&[&load]);
    assert_eq!(loaded, locknode_tests::Answer::Told(format!("$40 {sha}")));
    assert_eq!(told(&mut node, &format!("SCRIPT EXISTS {sha}")), "*1 :1");
    for request in ["WAIT 0 0", "CLUSTER INFO", "FUNCTION LIST", "SCRIPT FLUSH"] {
        assert!(!loading(&mut node, request), "{request}");
    }
    for request in [
        "PING",
        "EXISTS k",
        "DBSIZE",
        "KEYS *",
        "FLUSHALL",
        "LOCK.GET k",
    ] {
        assert!(loading(&mut node, request), "{request}");
    }
    assert!(loading(&mut node, &format!("EVALSHA {sha} 0")));
}
