//! What holders say of themselves, and releases by force.

use std::sync::{Arc, Mutex};
#[cfg(feature = "compat")]
use std::time::Duration;

#[cfg(feature = "compat")]
use locknode_engine::GuardMode;
use locknode_engine::{Host, HostFacts};

use crate::node::{Node, check};

/// [C2]
#[test]
fn a_label_is_shown_with_the_time_its_lock_has_been_held() {
    check(
        "LOCK.ACQUIRE k a 1000 LABEL host:7:job => *3 :1 :1 :1000
         + 400
         LOCK.GET k => *6 $1 a :600 :1 :1 $10 host:7:job :400
         LOCK.EXTEND k a 1000 => :1
         + 200
         LOCK.GET k => *6 $1 a :800 :1 :1 $10 host:7:job :600
         LOCK.ACQUIRE k b 1000 LABEL other => *3 :0 :1 :800
         GET k => $1 a
         STRLEN k => :1
         SET k a PX 1000 => +OK
         LOCK.GET k => *6 $1 a :1000 :1 :1 $10 host:7:job :600
         LOCK.ACQUIRE j a 1000 label x FLOOR 41 => *3 :1 :42 :1000
         LOCK.ACQUIRE i a 1000 FLOOR 41 LABEL x => *3 :1 :42 :1000
         LOCK.ACQUIRE h a 1000 => *3 :1 :1 :1000
         LOCK.GET h => *4 $1 a :1000 :1 :1",
    );
}

/// [C2]
#[test]
fn a_label_goes_with_its_lock() {
    for gone in [
        "LOCK.RELEASE k a",
        "DEL k",
        "SET k other",
        "SET k b",
        // In the same slot.
        "SET k twelve-bytes",
        "FLUSHDB",
        "FLUSHALL",
        "LOCK.FORCE k",
    ] {
        let mut node = Node::new();
        node.check("LOCK.ACQUIRE k a 1000 LABEL me => *3 :1 :1 :1000");
        node.run(gone);
        let held = node.run("LOCK.GET k");
        assert!(held == "$-1" || held.starts_with("*4 "), "{gone}: {held}");
        node.run("DEL k");
        let again = node.run("LOCK.ACQUIRE k a 1000");
        assert!(again.starts_with("*3 :1 "), "{again}");
        assert!(node.run("LOCK.GET k").starts_with("*4 $1 a "), "{gone}");
    }
    check(
        "LOCK.ACQUIRE k a 1000 LABEL me => *3 :1 :1 :1000
         + 1001
         LOCK.GET k => $-1
         LOCK.ACQUIRE k b 1000 => *3 :1 :2 :1000
         LOCK.GET k => *4 $1 b :1000 :2 :2",
    );
}

/// [C2]
#[test]
fn a_label_that_could_harm_a_terminal_or_a_log_is_refused() {
    let longest = "x".repeat(64);
    check(&format!(
        "LOCK.ACQUIRE k a 1000 LABEL {longest}x => -ERR a label has at most 64 bytes
         LOCK.ACQUIRE k a 1000 LABEL '' => -ERR a label is printable ASCII, and not empty
         LOCK.ACQUIRE k a 1000 LABEL a%0Ab => -ERR a label is printable ASCII, and not empty
         LOCK.ACQUIRE k a 1000 LABEL \u{1b}[31m => -ERR a label is printable ASCII, and not empty
         LOCK.ACQUIRE k a 1000 LABEL \u{e9} => -ERR a label is printable ASCII, and not empty
         LOCK.ACQUIRE k a 1000 LABEL => -ERR syntax error
         LOCK.ACQUIRE k a 1000 LABEL x LABEL y => -ERR syntax error
         LOCK.ACQUIRE k a 1000 LABEL x FLOOR => -ERR syntax error
         EXISTS k => :0
         LOCK.ACQUIRE k a 1000 LABEL {longest} => *3 :1 :1 :1000
         LOCK.GET k => *6 $1 a :1000 :1 :1 $64 {longest} :0"
    ));
}

#[test]
fn a_label_counts_in_the_memory_and_costs_nothing_where_there_is_none() {
    let used = |acquire: &str| {
        let mut node = Node::with_shards(1);
        let report = |node: &mut Node| {
            let text = node.text("INFO memory");
            let used = text.split("used_memory:").nth(1).expect("a field");
            let digits = used.split('\r').next().expect("a number");
            digits.parse::<u64>().expect("a number")
        };
        let before = report(&mut node);
        node.run(acquire);
        let after = report(&mut node) - before;
        node.run("LOCK.RELEASE k token");
        assert_eq!(report(&mut node), before);
        after
    };
    let plain = used("SET k token NX PX 1000");
    assert_eq!(used("LOCK.ACQUIRE k token 1000"), plain);
    let text = "x".repeat(64);
    let labelled = used(&format!("LOCK.ACQUIRE k token 1000 LABEL {text}"));
    assert!((plain + 64..plain + 96).contains(&labelled), "{labelled}");
}

/// [C3]
#[test]
fn a_release_by_force_says_who_held_the_lock_and_raises_the_counter() {
    check(
        "LOCK.ACQUIRE k a 1000 LABEL me => *3 :1 :1 :1000
         + 400
         LOCK.FENCE k a 1 50 => :1
         LOCK.FORCE k => *7 :1 :51 $1 a :600 :1 $2 me :400
         EXISTS k => :0
         LOCK.EXTEND k a 1000 => :0
         LOCK.RELEASE k a => :0
         LOCK.FENCE k a 1 90 => :0
         LOCK.FORCE k => *2 :0 :52
         LOCK.ACQUIRE k b 1000 => *3 :1 :53 :1000
         LOCK.FORCE k => *5 :1 :54 $1 b :1000 :53
         SET k c => +OK
         LOCK.FORCE k => *5 :1 :56 $1 c :-1 :55
         LOCK.FORCE => -ERR wrong number of arguments for 'lock.force' command",
    );
}

/// [C3]
#[cfg(feature = "compat")]
#[test]
fn a_script_releases_nothing_by_force() {
    check(
        "EVAL \"return redis.pcall('lock.force',KEYS[1])\" 1 k => -ERR This Redis command is not allowed from script",
    );
}

/// [C3]
#[cfg(feature = "compat")]
#[test]
fn a_lock_held_as_a_hash_is_released_by_force_and_waiters_learn_of_it() {
    check(
        "HSET k holder 1 => :1
         LOCK.FORCE k => *5 :1 :2 $-1 :-1 :1
         EXISTS k => :0
         LOCK.ACQUIRE k a 1000 => *3 :1 :3 :1000
         CONFIG SET notify-keyspace-events Kg => +OK
         b> SUBSCRIBE __keyspace@0__:k => *3 $9 subscribe $16 __keyspace@0__:k :1
         LOCK.FORCE k => *5 :1 :4 $1 a :1000 :3
         b< => *3 $7 message $16 __keyspace@0__:k $3 del",
    );
}

/// What a script that is refused undoes comes back as it was.
#[cfg(feature = "compat")]
#[test]
fn a_label_survives_a_script_that_is_undone() {
    let mut node = Node::with_config(|config| {
        config.shards = 8;
        config.guard.mode = GuardMode::Memory;
        config.guard.max_ttl = Duration::from_secs(60);
    });
    node.check(
        "LOCK.ACQUIRE k a 1000 LABEL me => *3 :1 :1 :1000
         + 100",
    );
    let script = "EVAL \"redis.call('del',KEYS[1]) return redis.call('set',KEYS[1],'x')\" 1 k";
    assert!(node.run(script).starts_with("-UNSUPPORTED"));
    node.check(
        "LOCK.GET k => *6 $1 a :900 :1 :2 $2 me :100
         EVAL \"return redis.call('lock.acquire',KEYS[1],'t',1000,'LABEL','script')\" 1 j => *3 :1 :1 :1000
         LOCK.GET j => *6 $1 t :1000 :1 :1 $6 script :0",
    );
}

/// A host that keeps what it is told.
#[derive(Clone, Debug, Default)]
struct Listening(Arc<Mutex<Vec<String>>>);

impl Host for Listening {
    fn facts(&self) -> HostFacts {
        HostFacts::default()
    }

    fn note(&self, line: &str) {
        self.0.lock().unwrap().push(line.to_owned());
    }
}

/// [C3]
#[test]
fn a_release_by_force_is_told_to_the_log() {
    let host = Listening::default();
    let mut node = Node::with_config(|config| config.host = Box::new(host.clone()));
    node.check(
        "LOCK.ACQUIRE k secret 1000 LABEL host:7:job => *3 :1 :1 :1000
         + 250
         LOCK.FORCE free => *2 :0 :1
         LOCK.FORCE k => *7 :1 :2 $6 secret :750 :1 $10 host:7:job :250",
    );
    let lines = host.0.lock().unwrap().clone();
    let expected = "the lock k was released by force from 10.0.0.1:5000; it was held by host:7:job, for 0.250 s";
    assert_eq!(lines, [expected], "no line has a token");
}

#[cfg(feature = "metrics")]
#[test]
fn info_shows_who_holds_the_locks_that_are_held_longest() {
    let mut node = Node::with_shards(1);
    node.run("CONFIG SET metrics-keys yes");
    node.check("LOCK.ACQUIRE a,b= t 9000 LABEL host:7:job => *3 :1 :1 :9000\n + 1500");
    node.run("LOCK.ACQUIRE b t 9000");
    let text = node.text("INFO holders");
    let lines = "holder0:db=0,key=a\\x2cb=,held_ms=1500,label=host:7:job\r\n\
                 holder1:db=0,key=b,held_ms=0,label=\r\n";
    assert!(text.ends_with(lines), "{text}");
    assert!(!node.text("INFO").contains("holder0"));
    node.run("CONFIG SET metrics-keys no");
    assert!(node.text("INFO holders").contains("key=,held_ms"));
}
