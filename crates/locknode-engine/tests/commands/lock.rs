use crate::node::{Node, check};

/// [C1] [F1]
#[test]
fn an_acquisition_and_a_refusal_report_the_counter() {
    check(
        "LOCK.ACQUIRE k a 1000 => *3 :1 :1 :1000
         GET k => $1 a
         PTTL k => :1000
         LOCK.ACQUIRE k b 1000 => *3 :0 :1 :1000
         LOCK.ACQUIRE k a 1000 => *3 :0 :1 :1000
         + 400
         LOCK.ACQUIRE k b 1000 => *3 :0 :1 :600
         + 601
         lock.acquire k b 5000 => *3 :1 :2 :5000
         DEL k => :1
         SET k c => +OK
         LOCK.ACQUIRE k b 1000 => *3 :0 :3 :-1
         SET k d => +OK
         SET k d PX 1000 => +OK
         LOCK.ACQUIRE k b 1000 => *3 :0 :4 :1000
         LOCK.GET k => *4 $1 d :1000 :4 :4",
    );
}

/// [C1] [F6]
#[test]
fn a_floor_raises_the_counter_and_never_lowers_it() {
    check(
        "LOCK.ACQUIRE k a 1000 FLOOR 41 => *3 :1 :42 :1000
         LOCK.RELEASE k a => :1
         LOCK.ACQUIRE k a 1000 floor 3 => *3 :1 :43 :1000
         LOCK.ACQUIRE k b 1000 FLOOR 90 => *3 :0 :43 :1000
         LOCK.RELEASE k a => :1
         LOCK.ACQUIRE k a 1000 FLOOR 9006099743113217 => -ERR fence is out of range
         LOCK.ACQUIRE k a 1000 FLOOR -1 => -ERR fence is out of range
         LOCK.ACQUIRE k a 1000 FLOOR x => -ERR value is not an integer or out of range
         LOCK.ACQUIRE k a 1000 FLOOR => -ERR syntax error
         LOCK.ACQUIRE k a 1000 NX => -ERR syntax error
         LOCK.ACQUIRE k a 1000 FLOOR 1 x => -ERR syntax error
         EXISTS k => :0
         LOCK.ACQUIRE k a 1000 FLOOR 9006099743113216 => *3 :1 :9006099743113217 :1000",
    );
}

/// [C1]
#[test]
fn only_the_holder_extends_and_releases() {
    check(
        "LOCK.ACQUIRE k a 1000 => *3 :1 :1 :1000
         LOCK.EXTEND k b 9000 => :0
         LOCK.RELEASE k b => :0
         LOCK.EXTEND k a 9000 => :1
         PTTL k => :9000
         LOCK.EXTEND k a 10 => :1
         PTTL k => :10
         LOCK.GET k => *4 $1 a :10 :1 :1
         + 11
         LOCK.EXTEND k a 9000 => :0
         LOCK.RELEASE k a => :0
         LOCK.GET k => $-1
         LOCK.ACQUIRE k a 0 => -ERR invalid expire time in 'lock.acquire' command
         LOCK.EXTEND k a -5 => -ERR invalid expire time in 'lock.extend' command
         LOCK.ACQUIRE k a x => -ERR value is not an integer or out of range
         LOCK.ACQUIRE k a => -ERR wrong number of arguments for 'lock.acquire' command
         LOCK.EXTEND k a => -ERR wrong number of arguments for 'lock.extend' command
         LOCK.RELEASE k => -ERR wrong number of arguments for 'lock.release' command
         LOCK.GET => -ERR wrong number of arguments for 'lock.get' command
         LOCK.FENCE k a 1 => -ERR wrong number of arguments for 'lock.fence' command",
    );
}

/// [C1] [F5]
#[test]
fn a_write_back_counts_only_for_the_very_grant() {
    check(
        "LOCK.ACQUIRE k a 1000 => *3 :1 :1 :1000
         LOCK.FENCE k a 1 50 => :1
         LOCK.GET k => *4 $1 a :1000 :1 :50
         LOCK.FENCE k a 1 7 => :1
         LOCK.GET k => *4 $1 a :1000 :1 :50
         LOCK.FENCE k b 1 90 => :0
         LOCK.FENCE k a 2 90 => :0
         LOCK.FENCE k a 50 90 => :0
         LOCK.FENCE k a -1 90 => :0
         LOCK.FENCE k a x 90 => -ERR value is not an integer or out of range
         LOCK.FENCE k a 1 x => -ERR value is not an integer or out of range
         LOCK.FENCE k a 1 9006099743113217 => -ERR fence is out of range
         LOCK.FENCE j a 1 90 => :0
         LOCK.GET k => *4 $1 a :1000 :1 :50
         + 1001
         LOCK.FENCE k a 1 90 => :0
         LOCK.ACQUIRE k a 1000 => *3 :1 :51 :1000
         LOCK.FENCE k a 1 90 => :0
         LOCK.FENCE k a 51 90 => :1",
    );
}

/// [F1]
#[test]
fn what_keeps_the_token_keeps_the_grant() {
    check(
        "SET k a NX PX 1000 => +OK
         SET k a XX PX 9000 => +OK
         PEXPIRE k 5000 => :1
         PERSIST k => :1
         GETEX k PX 700 => $1 a
         SET k a IFEQ a PX 800 => +OK
         LOCK.GET k => *4 $1 a :800 :1 :1
         SET k a-token-that-needs-a-larger-slot-than-the-one-before-it XX PX 800 => +OK
         LOCK.ACQUIRE k x 1000 => *3 :0 :2 :800
         GETSET k c => $55 a-token-that-needs-a-larger-slot-than-the-one-before-it
         LOCK.ACQUIRE k x 1000 => *3 :0 :3 :-1
         INCR n => :1
         INCR n => :2
         LOCK.GET n => *4 $1 2 :-1 :2 :2",
    );
}

/// [F2]
#[test]
fn counters_begin_at_the_base() {
    let mut node = Node::with_config(|config| config.guard.fence_base = 7_000_000);
    assert_eq!(node.run("LOCK.ACQUIRE k a 1000"), "*3 :1 :7000001 :1000");
    assert_eq!(node.run("LOCK.ACQUIRE j a 1000"), "*3 :1 :7000001 :1000");
}
