use crate::node::{check, rows};

#[test]
fn expire_sets_deadlines_in_all_its_forms() {
    check(
        "EXPIRE a 10 => :0
         TTL a => :-2
         PTTL a => :-2
         EXPIRETIME a => :-2
         PEXPIRETIME a => :-2
         PERSIST a => :0
         SET a 1 => +OK
         TTL a => :-1
         PTTL a => :-1
         EXPIRETIME a => :-1
         PEXPIRETIME a => :-1
         PERSIST a => :0
         EXPIRE a 10 => :1
         PTTL a => :10000
         TTL a => :10
         EXPIRETIME a => :1767268810
         PEXPIRE a 1499 => :1
         TTL a => :1
         PEXPIRE a 1500 => :1
         TTL a => :2
         PEXPIRETIME a => :1767268801500
         EXPIRETIME a => :1767268802
         EXPIREAT a 1767268805 => :1
         PTTL a => :5000
         PEXPIREAT a 1767268800010 => :1
         PTTL a => :10
         + 10
         PTTL a => :0
         TTL a => :0
         + 1
         PTTL a => :-2
         SET a 1 EX 5 => +OK
         PERSIST a => :1
         PTTL a => :-1",
    );
}

#[test]
fn a_deadline_that_has_passed_removes_the_key() {
    for command in [
        "EXPIRE a 0",
        "EXPIRE a -1",
        "PEXPIRE a 0",
        "PEXPIRE a -9223372036854775808",
        "EXPIREAT a 1",
        "EXPIREAT a -1",
        "PEXPIREAT a 1767268800000",
        "PEXPIREAT a 0",
        "EXPIRE a -1 LT",
    ] {
        check(&format!(
            "SET a 1 => +OK
             {command} => :1
             EXISTS a => :0
             {command} => :0"
        ));
    }
}

#[test]
fn expire_obeys_its_conditions() {
    check(
        "SET a 1 => +OK
         PEXPIRE a 100 XX => :0
         PEXPIRE a 100 GT => :0
         PEXPIRE a 100 XX GT => :0
         PEXPIRE a 100 XX LT => :0
         PEXPIRE a 100 nx => :1
         PEXPIRE a 200 NX NX => :0
         PTTL a => :100
         PEXPIRE a 200 XX => :1
         PEXPIRE a 200 GT => :0
         PEXPIRE a 199 GT => :0
         PEXPIRE a 201 gt XX => :1
         PEXPIRE a 201 LT => :0
         PEXPIRE a 202 LT => :0
         PEXPIRE a 50 XX Lt => :1
         PTTL a => :50
         PEXPIREAT a 1767268800050 GT => :0
         PEXPIREAT a 1767268800050 LT => :0
         PEXPIREAT a 1767268800051 GT => :1
         PEXPIREAT a 1767268800050 LT => :1
         EXPIRE a -1 GT => :0
         EXPIRE a -1 NX => :0
         PERSIST a => :1
         PEXPIRE a 70 LT => :1
         PTTL a => :70",
    );
}

#[test]
fn expire_refuses_bad_input_in_redis_order() {
    let table = "
        EXPIRE a 10 NX XX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a 10 NX GT => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a x LT NX => -ERR NX and XX, GT or LT options at the same time are not compatible
        EXPIRE a x GT LT => -ERR GT and LT options at the same time are not compatible
        EXPIRE a x Foo => -ERR Unsupported option Foo
        EXPIRE a 1 NX XX foo => -ERR Unsupported option foo
        EXPIRE a x => -ERR value is not an integer or out of range
        PEXPIRE a 1.5 => -ERR value is not an integer or out of range
        EXPIRE a 9223372036854775807 => -ERR invalid expire time in 'expire' command
        EXPIRE a -9223372036854775808 => -ERR invalid expire time in 'expire' command
        PEXPIRE a 9223372036854775807 => -ERR invalid expire time in 'pexpire' command
        EXPIREAT a 9223372036854776 => -ERR invalid expire time in 'expireat' command
        PEXPIREAT a 9223372036854775808 => -ERR value is not an integer or out of range
        EXPIRE a => -ERR wrong number of arguments for 'expire' command
        TTL => -ERR wrong number of arguments for 'ttl' command
        PERSIST a b => -ERR wrong number of arguments for 'persist' command
    ";
    for (request, want) in rows(table) {
        check(&format!(
            "{request} => {want}
             SET a 1 PX 100 => +OK
             {request} => {want}
             PTTL a => :100"
        ));
    }
}

#[test]
fn the_latest_timestamp_is_kept() {
    check(
        "SET a 1 => +OK
         PEXPIREAT a 9223372036854775807 => :1
         PEXPIRETIME a => :9223372036854775807
         EXPIRETIME a => :9223372036854776
         EXISTS a => :1
         PEXPIREAT a 9223372036854775807 GT => :0
         PEXPIREAT a 9223372036854775806 LT => :1",
    );
}
