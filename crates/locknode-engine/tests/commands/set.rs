use crate::node::check;

#[test]
fn set_writes_under_the_conditions_that_its_options_name() {
    check(
        "SET a 1 => +OK
         GET a => $1 1
         SET a 2 NX => $-1
         SET b 2 nx => +OK
         SET c 2 XX => $-1
         GET c => $-1
         SET b 3 xX => +OK
         GET b => $1 3
         SET b 4 NX NX => $-1
         SET b 4 XX XX => +OK
         SET b 5 GET => $1 4
         SET b 6 GET GET NX => $1 5
         GET b => $1 5
         SET d 1 NX GET => $-1
         GET d => $1 1
         SET e 1 XX GET => $-1
         EXISTS e => :0
         SET '' '' => +OK
         GET '' => $0",
    );
}

#[test]
fn set_compares_the_value_when_asked() {
    check(
        "SET a 1 IFEQ 1 => $-1
         EXISTS a => :0
         SET a 1 IFNE 1 => +OK
         SET a 2 IFNE 1 => $-1
         SET a 2 IFEQ 2 => $-1
         SET a 2 IFEQ 1 => +OK
         SET a 3 IFNE 9 => +OK
         SET a 4 IFEQ 9 GET => $1 3
         SET a 4 GET IFEQ 3 => $1 3
         GET a => $1 4
         SET a 5 IFEQ 9 IFEQ 4 => -ERR syntax error
         SET a 5 IFEQ 4 IFEQ 4 => -ERR syntax error
         SET h hello => +OK
         SET h x IFDEQ 9555e8555c62dcff => $-1
         SET h x IFDNE 9555e8555c62dcfd => $-1
         SET h x IFDEQ 9555E8555C62DCFD => +OK
         SET h y IFDNE 9555e8555c62dcfd => +OK
         SET h z IFDEQ zzzzzzzzzzzzzzzz => $-1
         SET n x IFDEQ 9555e8555c62dcfd => $-1
         SET n x IFDEQ 12 => $-1
         SET n x IFDNE 12 => +OK
         SET n y IFDEQ 12 => -ERR must be exactly 16 hexadecimal characters
         SET n y IFDNE 12345678901234567 GET => -ERR must be exactly 16 hexadecimal characters
         GET n => $1 x",
    );
}

#[test]
fn set_extends_a_lock_that_is_still_held() {
    check(
        "SET a token NX PX 100 => +OK
         + 60
         SET a token PX 100 IFEQ token => +OK
         + 60
         PTTL a => :40
         SET a other PX 100 IFEQ stranger => $-1
         PTTL a => :40
         + 41
         SET a token PX 100 IFEQ token => $-1
         EXISTS a => :0",
    );
}

#[test]
fn set_moves_keeps_or_drops_the_deadline() {
    check(
        "SET a 1 EX 10 => +OK
         TTL a => :10
         SET a 1 PX 1500 => +OK
         PTTL a => :1500
         SET a 2 KEEPTTL => +OK
         PTTL a => :1500
         SET a 2 KEEPTTL KEEPTTL XX => +OK
         SET a 3 => +OK
         PTTL a => :-1
         SET b 1 KEEPTTL => +OK
         PTTL b => :-1
         SET a 1 EX 10 EX 20 => +OK
         TTL a => :20
         SET a 1 EXAT 1767268805 => +OK
         PTTL a => :5000
         SET a 1 pxat 1767268800007 => +OK
         PTTL a => :7
         PEXPIRETIME a => :1767268800007
         + 7
         GET a => $1 1
         + 1
         GET a => $-1",
    );
}

#[test]
fn a_time_that_has_passed_leaves_the_key_missing() {
    check(
        "SET a 1 => +OK
         SET a 2 EXAT 1 => +OK
         EXISTS a => :0
         SET a 1 PX 100 => +OK
         SET a 2 PXAT 1767268799999 NX => $-1
         GET a => $1 1
         SET a 2 PXAT 1767268799999 GET => $1 1
         EXISTS a => :0
         DBSIZE => :0
         SET b 1 EXAT 1 NX => +OK
         EXISTS b => :0",
    );
}

#[test]
fn set_refuses_bad_options_before_it_looks_at_the_key() {
    let syntax = "-ERR syntax error";
    let integer = "-ERR value is not an integer or out of range";
    let expire = "-ERR invalid expire time in 'set' command";
    let rows = [
        ("NX XX", syntax),
        ("XX NX", syntax),
        ("EX", syntax),
        ("NX PX", syntax),
        ("IFEQ", syntax),
        ("IFEQ a NX", syntax),
        ("NX IFEQ a", syntax),
        ("XX IFNE a", syntax),
        ("IFEQ a IFNE a", syntax),
        ("IFDEQ a IFEQ a", syntax),
        ("EX 10 PX 10", syntax),
        ("PX 10 EXAT 10", syntax),
        ("KEEPTTL EX 10", syntax),
        ("EX 10 KEEPTTL", syntax),
        ("PERSIST", syntax),
        ("foo", syntax),
        ("''", syntax),
        ("EX abc foo", syntax),
        ("EX abc NX", integer),
        ("EX ''", integer),
        ("EX 1.5", integer),
        ("EX +1", integer),
        ("PX 9223372036854775808", integer),
        ("EX 0", expire),
        ("EX -1", expire),
        ("PX 0", expire),
        ("PXAT 0", expire),
        ("EXAT -5", expire),
        ("EX 9223372036854775807", expire),
        ("EX 9223372036854775", expire),
        ("EXAT 9223372036854776", expire),
        ("PX 9223372036854775807", expire),
        ("PX 0 IFEQ v", expire),
    ];
    for (options, want) in rows {
        check(&format!(
            "SET a 1 => +OK
             SET a 2 {options} => {want}
             SET b 2 {options} => {want}
             GET a => $1 1
             EXISTS b => :0"
        ));
    }
}

#[test]
fn the_longest_ttl_that_redis_allows_is_kept() {
    check(
        "SET a 1 PX 9223370269585975807 => +OK
         PTTL a => :9223370269585975807
         SET a 1 PX 9223370269585975808 => -ERR invalid expire time in 'set' command
         SET a 1 PXAT 9223372036854775807 => +OK
         PEXPIRETIME a => :9223372036854775807
         + 100000000
         EXISTS a => :1",
    );
}

#[test]
fn the_older_forms_of_set_do_what_they_did() {
    check(
        "SETNX a 1 => :1
         SETNX a 2 => :0
         GET a => $1 1
         SETEX a 10 2 => +OK
         TTL a => :10
         PSETEX a 1500 3 => +OK
         PTTL a => :1500
         GETSET a 4 => $1 3
         PTTL a => :-1
         GETSET b 1 => $-1
         GET b => $1 1
         SETEX a 0 x => -ERR invalid expire time in 'setex' command
         SETEX a -1 x => -ERR invalid expire time in 'setex' command
         SETEX a x x => -ERR value is not an integer or out of range
         PSETEX a 0 x => -ERR invalid expire time in 'psetex' command
         PSETEX a 1.0 x => -ERR value is not an integer or out of range
         GET a => $1 4
         SETNX a => -ERR wrong number of arguments for 'setnx' command
         SETEX a 1 => -ERR wrong number of arguments for 'setex' command
         PSETEX a 1 1 1 => -ERR wrong number of arguments for 'psetex' command
         GETSET a => -ERR wrong number of arguments for 'getset' command
         SET a => -ERR wrong number of arguments for 'set' command",
    );
}
