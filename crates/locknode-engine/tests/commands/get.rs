use crate::node::check;

#[test]
fn reads_reply_the_value_or_nothing() {
    check(
        "GET a => $-1
         SET a value => +OK
         get a => $5 value
         STRLEN a => :5
         STRLEN b => :0
         MGET a b a => *3 $5 value $-1 $5 value
         GETDEL a => $5 value
         GETDEL a => $-1
         EXISTS a => :0
         GET => -ERR wrong number of arguments for 'get' command
         GET a b => -ERR wrong number of arguments for 'get' command
         MGET => -ERR wrong number of arguments for 'mget' command
         STRLEN => -ERR wrong number of arguments for 'strlen' command
         GETDEL a b => -ERR wrong number of arguments for 'getdel' command",
    );
}

#[test]
fn getex_moves_the_deadline() {
    check(
        "SET a 1 => +OK
         GETEX a => $1 1
         PTTL a => :-1
         GETEX a EX 10 => $1 1
         PTTL a => :10000
         GETEX a => $1 1
         PTTL a => :10000
         GETEX a PX 50 PX 60 => $1 1
         PTTL a => :60
         GETEX a PERSIST PERSIST => $1 1
         PTTL a => :-1
         GETEX a EXAT 1767268801 => $1 1
         PTTL a => :1000
         GETEX a PXAT 1767268800002 => $1 1
         PTTL a => :2
         GETEX a PXAT 1 => $1 1
         EXISTS a => :0",
    );
}

#[test]
fn getex_reads_its_number_only_when_there_is_a_key() {
    check(
        "GETEX a EX 0 => $-1
         GETEX a EX abc => $-1
         GETEX a FOO => -ERR syntax error
         GETEX a EX => -ERR syntax error
         GETEX a KEEPTTL => -ERR syntax error
         GETEX a NX => -ERR syntax error
         GETEX a PERSIST EX 10 => -ERR syntax error
         GETEX a EX 10 PX 10 => -ERR syntax error
         SET a 1 PX 100 => +OK
         GETEX a EX 0 => -ERR invalid expire time in 'getex' command
         GETEX a EX abc => -ERR value is not an integer or out of range
         GETEX a PX 9223372036854775807 => -ERR invalid expire time in 'getex' command
         PTTL a => :100",
    );
}

#[test]
fn getrange_counts_from_either_end() {
    let rows = [
        ("0 3", "$4 Hell"),
        ("0 -1", "$10 HelloWorld"),
        ("-4 -1", "$4 orld"),
        ("5 3", "$0"),
        ("5 5000", "$5 World"),
        ("-5000 10000", "$10 HelloWorld"),
        ("0 -100", "$1 H"),
        ("1 -100", "$0"),
        ("-1 -100", "$0"),
        ("-100 -99", "$1 H"),
        ("-100 -100", "$1 H"),
        ("-100 -101", "$0"),
        ("10 20", "$0"),
        ("9 9", "$1 d"),
        ("-9223372036854775808 9223372036854775807", "$10 HelloWorld"),
        ("a 1", "-ERR value is not an integer or out of range"),
        ("1 b", "-ERR value is not an integer or out of range"),
    ];
    for (range, want) in rows {
        check(&format!(
            "SET k HelloWorld => +OK
             GETRANGE k {range} => {want}
             SUBSTR k {range} => {want}"
        ));
    }
    check(
        "GETRANGE nothing 0 -1 => $0
         GETRANGE nothing a -1 => -ERR value is not an integer or out of range
         SET empty '' => +OK
         GETRANGE empty 0 0 => $0
         GETRANGE empty 0 => -ERR wrong number of arguments for 'getrange' command",
    );
}

#[test]
fn digest_has_sixteen_digits() {
    check(
        "DIGEST a => $-1
         SET a hello => +OK
         DIGEST a => $16 9555e8555c62dcfd
         SET a v8 => +OK
         DIGEST a => $16 0cc76dbb41381419
         DIGEST => -ERR wrong number of arguments for 'digest' command",
    );
}
