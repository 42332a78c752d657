//! MULTI, which is refused together with what follows it.

use crate::node::{Node, check};

const REFUSED: &str = "-UNSUPPORTED transactions (MULTI, WATCH): nothing up to EXEC or DISCARD is executed. Use a \
    pipeline without MULTI, SET with NX or IFEQ, DELEX with IFEQ, MSETNX, or a script";
const ABORTED: &str = "-EXECABORT not executed: this node has refused MULTI";
const DISCARDED: &str =
    "-EXECABORT Transaction discarded because this node has no MULTI; nothing was executed";

/// What redis-py, go-redis and others send for a pipeline that is a transaction.
#[test]
fn nothing_of_a_refused_transaction_is_executed() {
    for end in ["EXEC", "DISCARD"] {
        let ended = if end == "EXEC" { DISCARDED } else { REFUSED };
        check(&format!(
            "MULTI => {REFUSED}
             SET k a NX PX 60000 => {ABORTED}
             GET k => {ABORTED}
             PING => {ABORTED}
             SELECT 1 => {ABORTED}
             CONFIG SET maxmemory 1 => {ABORTED}
             WATCH k => -ERR WATCH inside MULTI is not allowed
             UNWATCH => {ABORTED}
             MULTI => -ERR MULTI calls can not be nested
             {end} => {ended}
             EXISTS k => :0
             CONFIG GET maxmemory => *2 $9 maxmemory $1 0
             SET k a NX PX 60000 => +OK"
        ));
    }
}

#[test]
fn a_refused_transaction_is_one_connections_own_and_ends_with_a_reset() {
    check(&format!(
        "MULTI => {REFUSED}
         b> SET k b NX PX 60000 => +OK
         RESET => +RESET
         GET k => $1 b"
    ));
    let mut node = Node::new();
    node.run("MULTI");
    assert_eq!(node.run("QUIT"), "+OK Close");
}

#[test]
fn transactions_that_never_began_cannot_end() {
    check(&format!(
        "EXEC => -ERR EXEC without MULTI
         DISCARD => -ERR DISCARD without MULTI
         UNWATCH => +OK
         WATCH k => {REFUSED}
         WATCH => -ERR wrong number of arguments for 'watch' command
         SET k a => +OK"
    ));
}
