use crate::node::check;

#[test]
fn counters_start_at_zero_and_keep_their_deadline() {
    check(
        "INCR a => :1
         INCRBY a 41 => :42
         DECR a => :41
         DECRBY a 50 => :-9
         GET a => $2 -9
         INCRBY a -1 => :-10
         DECRBY a -20 => :10
         PEXPIRE a 100 => :1
         INCR a => :11
         PTTL a => :100
         + 101
         INCR a => :1
         PTTL a => :-1",
    );
}

#[test]
fn counters_refuse_what_is_no_integer_or_overflows() {
    check(
        "SET s 01 => +OK
         INCR s => -ERR value is not an integer or out of range
         SET s '' => +OK
         DECR s => -ERR value is not an integer or out of range
         SET s 9223372036854775807 => +OK
         INCR s => -ERR increment or decrement would overflow
         DECRBY s -1 => -ERR increment or decrement would overflow
         DECR s => :9223372036854775806
         INCR s => :9223372036854775807
         GET s => $19 9223372036854775807
         SET s -9223372036854775807 => +OK
         DECR s => :-9223372036854775808
         GET s => $20 -9223372036854775808
         SET s -9223372036854775808 => +OK
         DECR s => -ERR increment or decrement would overflow
         INCRBY s -1 => -ERR increment or decrement would overflow
         INCRBY s abc => -ERR value is not an integer or out of range
         DECRBY s 1.0 => -ERR value is not an integer or out of range
         DECRBY s -9223372036854775808 => -ERR decrement would overflow
         GET s => $20 -9223372036854775808
         INCR => -ERR wrong number of arguments for 'incr' command
         INCRBY s => -ERR wrong number of arguments for 'incrby' command",
    );
}
