use crate::node::check;

#[test]
fn del_counts_what_it_removed_and_exists_what_it_found() {
    check(
        "MSET a 1 b 2 c 3 d 4 => +OK
         EXISTS a a b x => :3
         TOUCH a x a => :2
         DEL a a x => :1
         UNLINK b c x => :2
         TYPE d => +string
         TYPE a => +none
         DBSIZE => :1
         DEL => -ERR wrong number of arguments for 'del' command
         UNLINK => -ERR wrong number of arguments for 'unlink' command
         EXISTS => -ERR wrong number of arguments for 'exists' command
         TOUCH => -ERR wrong number of arguments for 'touch' command
         TYPE => -ERR wrong number of arguments for 'type' command",
    );
}

#[test]
fn delex_releases_only_the_value_that_it_names() {
    check(
        "SET a hello => +OK
         DELEX a IFEQ world => :0
         DELEX a ifne hello => :0
         DELEX a IFDEQ 0000000000000000 => :0
         DELEX a IFDNE 9555E8555C62DCFD => :0
         DELEX a IFEQ hello => :1
         DELEX a IFEQ hello => :0
         SET a hello => +OK
         DELEX a IFNE world => :1
         SET a hello => +OK
         DELEX a IFDEQ 9555E8555C62DCFD => :1
         SET a hello => +OK
         DELEX a ifdne zzzzzzzzzzzzzzzz => :1
         SET a '' => +OK
         DELEX a IFEQ '' => :1
         SET a x => +OK
         DELEX a => :1
         DELEX a => :0",
    );
}

#[test]
fn delex_refuses_bad_conditions_once_there_is_a_key() {
    check(
        "DELEX a FOO x => :0
         DELEX a IFDEQ x => :0
         DELEX a IFEQ => -ERR wrong number of arguments for 'delex' command
         SET a hello => +OK
         DELEX a IFEQ => -ERR wrong number of arguments for 'delex' command
         DELEX a IFEQ hello x => -ERR wrong number of arguments for 'delex' command
         DELEX a FOO hello => -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
         DELEX a NX hello => -ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE
         DELEX a IFDEQ '' => -ERR must be exactly 16 hexadecimal characters
         DELEX a IFDNE 9555e8555c62dcf => -ERR must be exactly 16 hexadecimal characters
         DELEX => -ERR wrong number of arguments for 'delex' command
         GET a => $5 hello",
    );
}

#[test]
fn delifeq_releases_only_the_value_that_it_names() {
    check(
        "DELIFEQ a x => :0
         SET a x => +OK
         DELIFEQ a y => :0
         DELIFEQ a x => :1
         DELIFEQ a x => :0
         DELIFEQ a => -ERR wrong number of arguments for 'delifeq' command
         DELIFEQ a x y => -ERR wrong number of arguments for 'delifeq' command",
    );
}

#[test]
fn an_expired_lock_is_nobody_s_to_release() {
    check(
        "SET a token PX 10 => +OK
         + 10
         EXISTS a => :1
         + 1
         DELIFEQ a token => :0
         SET a other NX PX 10 => +OK
         DELEX a IFEQ token => :0
         GET a => $5 other",
    );
}

#[test]
fn flush_clears_one_database_or_all() {
    check(
        "SET a 1 PX 100 => +OK
         FLUSHDB foo => -ERR syntax error
         FLUSHALL SYNC ASYNC => -ERR syntax error
         DBSIZE => :1
         FLUSHDB => +OK
         DBSIZE => :0
         MSET a 1 b 2 => +OK
         flushall async => +OK
         EXISTS a b => :0
         SET a 2 => +OK
         FLUSHDB SYNC => +OK
         GET a => $-1
         SET a 3 NX => +OK
         GET a => $1 3",
    );
}
