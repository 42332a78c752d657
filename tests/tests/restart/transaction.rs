//! Transactions in quarantine, and what of them survives.

use locknode_tests::{Answer, StoredNode};

use crate::{FALLS, HOUR, always, holding, node, stop};

const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.";

/// L6: as Redis does while it loads.
#[test]
fn in_quarantine_a_transaction_may_begin_and_end_but_touches_no_key() {
    for end in FALLS {
        let mut node = holding(&["SET k a NX PX 30000"]);
        node.expect("WATCH k", "+OK");
        node.restart(end);
        for (request, want) in [
            ("WATCH k", "+OK"),
            ("UNWATCH", "+OK"),
            ("EXEC", "-ERR EXEC without MULTI"),
            ("MULTI", "+OK"),
            ("SELECT 1", "+QUEUED"),
            ("UNWATCH", "+QUEUED"),
            ("EXEC", "*2 +OK +OK"),
            ("MULTI", "+OK"),
            ("DISCARD", "+OK"),
        ] {
            node.expect(request, want);
        }
        for refused in ["PING", "GET k", "SET k b NX PX 5000", "DEL k"] {
            node.expect("MULTI", "+OK");
            assert!(node.is_loading(refused), "{refused}");
            node.expect("EXEC", ABORTED);
        }
        node.wait();
        node.expect_ok(&["MULTI"]);
        node.expect("SET k b NX PX 5000", "+QUEUED");
        node.expect("EXEC", "*1 +OK");
    }
}

/// [G2] What an EXEC has granted is granted to nobody else after a crash.
#[test]
fn what_exec_granted_is_guarded() {
    for end in FALLS {
        let mut node = node();
        node.expect_ok(&["MULTI"]);
        node.expect("SETNX k a", "+QUEUED");
        node.expect("PEXPIRE k 60000", "+QUEUED");
        node.expect("EXEC", "*2 :1 :1");
        node.restart(end);
        assert!(node.is_loading("SET k b NX PX 5000"));
        node.wait();
        node.expect("SET k b NX PX 5000", "+OK");
    }
}

/// [L3] The reply of EXEC waits for the log as a whole, and what it tells of survives.
#[test]
fn what_exec_wrote_to_the_log_is_there_after_a_crash() {
    for end in FALLS {
        let mut node = StoredNode::first_start(always());
        node.expect_ok(&["SET gone a", "MULTI"]);
        for request in ["SET k a", "SET j a PX 7200000", "DEL gone", "GET k"] {
            node.expect(request, "+QUEUED");
        }
        node.hold_disk();
        let ticket = node.expect_withheld("EXEC");
        node.release_disk();
        let late = node.take_late();
        assert_eq!(
            late,
            [(ticket, Answer::Reply("*4 +OK +OK :1 $1 a".to_owned()))]
        );
        node.restart(end);
        node.wait();
        node.advance(HOUR);
        node.expect("MGET k j gone", "*3 $1 a $1 a $-1");
        stop(&mut node);
    }
}
