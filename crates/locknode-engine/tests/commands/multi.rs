use crate::node::check;

#[test]
fn mset_writes_all_and_msetnx_all_or_none() {
    check(
        "SET a 0 PX 100 => +OK
         MSET a 1 b 2 a 3 => +OK
         MGET a b => *2 $1 3 $1 2
         PTTL a => :-1
         MSETNX c 1 b 9 => :0
         EXISTS c => :0
         MSETNX c 1 d 2 c 3 => :1
         MGET c d => *2 $1 3 $1 2
         MSET a => -ERR wrong number of arguments for 'mset' command
         MSET a 1 b => -ERR wrong number of arguments for 'mset' command
         MSETNX x 1 y => -ERR wrong number of arguments for 'msetnx' command
         EXISTS x y => :0",
    );
}

#[test]
fn msetex_acquires_several_keys_for_a_time() {
    check(
        "MSETEX 2 a 1 b 2 NX PX 100 => :1
         PTTL a => :100
         PTTL b => :100
         MSETEX 2 c 1 b 9 NX PX 100 => :0
         EXISTS c => :0
         MSETEX 2 a 3 c 3 XX => :0
         MSETEX 2 a 3 b 4 xx KEEPTTL => :1
         MGET a b => *2 $1 3 $1 4
         PTTL a => :100
         MSETEX 1 a 5 => :1
         PTTL a => :-1
         + 101
         EXISTS b => :0
         MSETEX 2 a 1 b 1 EXAT 1767268810 => :1
         EXPIRETIME b => :1767268810
         MSETEX 2 a 1 b 1 PXAT 1 => :1
         EXISTS a b => :0",
    );
}

#[test]
fn msetex_writes_nothing_when_anything_is_wrong() {
    let rows = [
        ("0 a 1", "-ERR invalid numkeys value"),
        ("-1 a 1", "-ERR invalid numkeys value"),
        ("x a 1", "-ERR invalid numkeys value"),
        ("2147483648 a 1", "-ERR invalid numkeys value"),
        ("2147483647 a 1", "-ERR wrong number of key-value pairs"),
        ("2 a 1", "-ERR wrong number of key-value pairs"),
        ("2 a 1 b", "-ERR wrong number of key-value pairs"),
        ("1 a", "-ERR wrong number of arguments for 'msetex' command"),
        ("1 a 1 b 2", "-ERR syntax error"),
        ("1 a 1 FOO", "-ERR syntax error"),
        ("1 a 1 GET", "-ERR syntax error"),
        ("1 a 1 PERSIST", "-ERR syntax error"),
        ("1 a 1 NX XX", "-ERR syntax error"),
        ("1 a 1 EX 10 PX 10", "-ERR syntax error"),
        ("1 a 1 KEEPTTL PX 10", "-ERR syntax error"),
        ("1 a 1 EX", "-ERR syntax error"),
        ("1 a 1 EX x", "-ERR value is not an integer or out of range"),
        ("1 a 1 EX 0", "-ERR invalid expire time in 'msetex' command"),
        (
            "2 a 1 b 1 PX -1 NX",
            "-ERR invalid expire time in 'msetex' command",
        ),
    ];
    for (arguments, want) in rows {
        check(&format!(
            "MSETEX {arguments} => {want}
             DBSIZE => :0"
        ));
    }
}
