//! SLOWLOG, LATENCY, and the times that INFO shows, on a node on which each look at the clock takes 20 ms. A quick command takes
//! as long, and one that may take long 60 ms: it has a turn, which is timed, too.

use std::cell::Cell;
use std::time::Duration;

use crate::node::Node;

thread_local!(static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) });

fn stopwatch() -> Duration {
    NOW.set(NOW.get() + Duration::from_millis(20));
    NOW.get()
}

fn slow_node() -> Node {
    Node::with_config(|config| {
        config.shards = 8;
        config.stopwatch = Some(stopwatch);
    })
}

#[test]
fn the_slow_log_has_what_takes_long() {
    let mut node = slow_node();
    node.check(
        "SLOWLOG RESET => +OK
         b> CLIENT SETNAME me => +OK
         SLOWLOG RESET => +OK
         b> SET k v => +OK
         + 1000
         b> AUTH secret => -ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?
         SLOWLOG GET 2 => *2 *6 :4 :1767268801 :20000 *2 $4 AUTH $10 (redacted) $13 10.0.0.2:5000 $2 me *6 :3 :1767268800 :20000 *3 $3 SET $1 k $1 v $13 10.0.0.2:5000 $2 me
         CONFIG SET slowlog-log-slower-than 60001 => +OK
         SLOWLOG RESET => +OK
         SET k v => +OK
         SLOWLOG LEN => :0
         CONFIG SET slowlog-log-slower-than -1 => +OK
         SET k v => +OK
         SLOWLOG LEN => :0
         CONFIG SET slowlog-log-slower-than 20000 slowlog-max-len 2 => +OK
         GET 1 => $-1
         GET 2 => $-1
         GET 3 => $-1
         SLOWLOG LEN => :2
         CONFIG SET slowlog-max-len 0 => +OK
         SLOWLOG GET => *0
         SLOWLOG GET -2 => -ERR count should be greater than or equal to -1
         SLOWLOG GET a => -ERR count should be greater than or equal to -1
         SLOWLOG GET 1 2 => -ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
         SLOWLOG FOO => -ERR unknown subcommand 'FOO'. Try SLOWLOG HELP.
         SLOWLOG LEN x => -ERR wrong number of arguments for 'slowlog|len' command",
    );
}

/// No password gets into it, and an entry is never large.
#[test]
fn the_slow_log_hides_passwords_and_shortens_the_rest() {
    let mut node = slow_node();
    for request in [
        "CONFIG SET requirepass secret",
        "AUTH default secret",
        "HELLO 2 SETNAME x AUTH default secret",
        "CONFIG SET requirepass ''",
    ] {
        node.run(request);
    }
    let many = vec![b"k".as_slice(); 50];
    node.bytes(&[&[b"DEL".as_slice()], many.as_slice()].concat());
    node.bytes(&[b"ECHO", &[b'x'; 1000]]);
    let shown = node.run("SLOWLOG GET -1");
    assert!(!shown.contains("secret"), "{shown}");
    assert_eq!(shown.matches("(redacted)").count(), 8, "{shown}");
    assert!(
        shown.contains("$28 ... (20 more arguments)") || shown.contains("... (20 more arguments)")
    );
    assert!(shown.contains("x... (872 more bytes)"), "{shown}");
}

#[test]
fn latency_events_are_kept_from_the_threshold_on() {
    let mut node = slow_node();
    node.check(
        "GET k => $-1
         LATENCY LATEST => *0
         CONFIG SET latency-monitor-threshold 20 => +OK
         LATENCY RESET => :1
         GET k => $-1
         GET k => $-1
         + 2000
         GET k => $-1
         LATENCY HISTORY fast-command => *2 *2 :1767268800 :20 *2 :1767268802 :20
         LATENCY HISTORY x => *0
         LATENCY LATEST => *2 *4 $7 command :1767268802 :60 :60 *4 $12 fast-command :1767268802 :20 :20
         LATENCY GRAPH x => -ERR No samples available for event 'x'
         LATENCY RESET x fast-command => :1
         LATENCY HISTORY fast-command => *0
         LATENCY HISTORY => -ERR wrong number of arguments for 'latency|history' command
         LATENCY FOO => -ERR unknown subcommand 'FOO'. Try LATENCY HELP.",
    );
    assert!(node.text("LATENCY DOCTOR").contains("command: 2 seconds"));
    assert!(
        node.text("LATENCY GRAPH command")
            .contains("\n1767268802 60\n")
    );
    node.run("CONFIG SET latency-monitor-threshold 0");
    assert!(
        node.text("LATENCY DOCTOR")
            .contains("latency-monitor-threshold")
    );
}

#[test]
fn commands_have_histograms() {
    let mut node = slow_node();
    node.check(
        "SET k v => +OK
         SET k v => +OK
         LATENCY HISTOGRAM set get => *2 $3 set *4 $5 calls :2 $14 histogram_usec *2 :32768 :2
         CONFIG RESETSTAT => +OK
         LATENCY HISTOGRAM set => *0
         SET k v => +OK",
    );
    let stats = node.text("INFO commandstats");
    let line =
        "cmdstat_set:calls=1,usec=20000,usec_per_call=20000.00,rejected_calls=0,failed_calls=0\r\n";
    assert!(stats.contains(line), "{stats}");
    let stats = node.text("INFO latencystats");
    let line = "latency_percentiles_usec_set:p50=32768.000,p99=32768.000,p99.9=32768.000\r\n";
    assert!(stats.contains(line), "{stats}");
    assert!(!node.text("INFO").contains("latency_percentiles"));
}

/// While there is much to do, quick commands are timed in some batches only, and scripts always: once.
#[cfg(feature = "compat")]
#[test]
fn a_script_is_timed_however_busy_the_node_is() {
    let mut node = slow_node();
    for _ in 0..3000 {
        node.bytes(&[b"GET", b"k"]);
    }
    node.run("CONFIG RESETSTAT");
    node.run("SLOWLOG RESET");
    for _ in 0..100 {
        node.bytes(&[b"GET", b"k"]);
        node.bytes(&[
            b"EVAL",
            b"return redis.call('strlen', KEYS[1])",
            b"1",
            b"k",
            b"x",
        ]);
    }
    // SLOWLOG RESET is one, too.
    assert_eq!(node.run("SLOWLOG LEN"), ":101");
    let newest = node.run("SLOWLOG GET 2");
    assert!(newest.contains(" *5 $4 eval $40 "), "{newest}");
    assert!(newest.contains(" $1 1 $1 k $1 x "), "{newest}");
    let histogram = node.run("LATENCY HISTOGRAM eval");
    assert!(histogram.contains(" calls :100 "), "{histogram}");
}
