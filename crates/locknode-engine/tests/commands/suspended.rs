//! Scripts that take long: who is served meanwhile, who waits, and how they end.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use locknode_engine::{Flow, StartThread};

use crate::node::Node;

fn stopwatch() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed()
}

const START_THREAD: StartThread = |work| std::thread::Builder::new().spawn(work).is_ok();

/// A node whose scripts go on elsewhere when they take long.
fn node(shards: usize) -> Node {
    Node::with_config(|config| {
        config.shards = shards;
        config.options.script_time_limit = 20_000;
        config.stopwatch = Some(stopwatch);
        config.start_thread = Some(START_THREAD);
    })
}

impl Node {
    /// Offers a command until it need not wait any longer.
    fn finish(&mut self, request: &str) -> String {
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(30) {
            let reply = self.run(request);
            if self.flow != Flow::Paused {
                return reply;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{request} does not end");
    }

    /// Offers a command until a key of the script is held.
    fn until_held(&mut self, request: &str, key: &str) {
        let begin = Instant::now();
        loop {
            assert_eq!(self.run(request), "Paused");
            let probe = self.run(&format!("b> SETNX {key} probe"));
            if probe == "Paused" {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(30), "{probe}");
        }
    }
}

const LOOP: &str = "\"while true do end\"";

/// Writes, and then takes some hundred milliseconds.
const HALF: &str =
    "\"redis.call('set','h','1') for i=1,2e7 do end redis.call('set','i','2') return 'done'\"";

#[test]
fn others_are_served_while_a_script_takes_long_and_see_nothing_of_it() {
    for shards in [1, 8] {
        let mut node = node(shards);
        let eval = format!("EVAL {HALF} 0");
        assert_eq!(node.run(&eval), "Paused");
        node.check(
            "
            b> PING => +PONG
            b> SET other v => +OK
            b> EVAL \"return redis.call('get','other')\" 0 => $1 v
            b> DEL other => :1
            b> DBSIZE => :0
            # Redis serves MULTI and DISCARD beside a script, and this node the rest too: a lock's renewal above all.
            b> MULTI => +OK
            b> DISCARD => +OK
            b> HSET lock holder 1 => :1
            b> PEXPIRE lock 100 => :1
            b> EVAL \"return redis.call('pexpire',KEYS[1],ARGV[1])\" 1 lock 200 => :1
            b> PUBLISH channel message => :0
            c> SUBSCRIBE channel => *3 $9 subscribe $7 channel :1
            # Time goes on, too.
            + 200
            b> EXISTS lock => :1
            + 1
            b> EXISTS lock => :0
            ",
        );
        assert_eq!(node.finish(&eval), "$4 done");
        node.check("b> MGET h i => *2 $1 1 $1 2");
    }
}

#[test]
fn a_script_goes_on_when_the_cache_forgets_it() {
    for shards in [1, 8] {
        let mut node = node(shards);
        let sha = node.run(&format!("SCRIPT LOAD {HALF}"));
        let evalsha = format!("EVALSHA {} 0", sha.rsplit(' ').next().unwrap_or_default());
        assert_eq!(node.run(&evalsha), "Paused");
        node.check("b> SCRIPT FLUSH => +OK");
        assert_eq!(node.finish(&evalsha), "$4 done");
        node.check("EVAL \"return 'another'\" 0 => $7 another\nb> MGET h i => *2 $1 1 $1 2");
    }
}

#[test]
fn a_command_on_a_key_of_the_script_waits_and_is_busy_after_a_while() {
    for shards in [1, 8] {
        let mut node = node(shards);
        let eval = format!("EVAL {LOOP} 1 k");
        assert_eq!(node.run(&eval), "Paused");
        let waiting = "b> SET k v => Paused\n+ 4999\nb> SET k v => Paused\n+ 1\n";
        node.check(waiting);
        node.check(
            "
            b> SET k v => -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
            b> SET k2 v => +OK
            # What ends or renews a lock waits on, and so do scripts.
            c> PEXPIRE k 5000 => Paused
            + 60000
            c> PEXPIRE k 5000 => Paused
            b> EVAL \"return redis.call('get','k')\" 0 => Paused
            b> FLUSHALL => Paused
            b> SCRIPT KILL => +OK
            ",
        );
        let killed = "-ERR Script killed by user with SCRIPT KILL... script: ";
        assert!(node.finish(&eval).starts_with(killed));
        node.check(
            "
            c> PEXPIRE k 5000 => :0
            b> EVAL \"return redis.call('get','k')\" 0 => $-1
            b> SCRIPT KILL => -NOTBUSY No scripts in execution right now.
            ",
        );
    }
}

#[test]
fn what_a_script_has_touched_is_held_until_its_end() {
    let mut node = node(8);
    let eval = "EVAL \"redis.call('get','g') redis.call('set','h','1') while true do end\" 0";
    node.until_held(eval, "g");
    node.until_held(eval, "h");
    node.check("b> SCRIPT KILL => -UNKILLABLE Sorry the script already executed write commands against \
        the dataset. You can either wait the script termination or kill the server in a hard way using \
        the SHUTDOWN NOSAVE command.");
    // Its connection is closed: as if it had never run.
    node.clients.remove(0);
    node.connect();
    node.check("GET g => $5 probe");
    // Whether a probe came before the script's write is a matter of time.
    assert_ne!(node.run("GET h"), "$1 1");
}

#[test]
fn a_script_ends_at_its_limit_and_nothing_of_it_is_kept() {
    let mut node = node(1);
    node.check("CONFIG SET script-time-limit 50 => +OK");
    let eval = "EVAL \"redis.call('set','h','1') while true do end\" 0";
    let reply = node.finish(eval);
    let want =
        "-UNSUPPORTED script stopped, nothing of it is kept: it took longer than 50 ms script: ";
    assert!(reply.starts_with(want), "{reply}");
    node.check("EXISTS h => :0");
}

#[test]
fn a_script_with_many_commands_gets_its_turns() {
    let mut node = node(8);
    let eval = "EVAL \"for i=1,3e6 do end for i=1,2000 do redis.call('set','n',i) end for i=1,3e6 do end \
        return redis.call('get','n')\" 0";
    assert_eq!(node.finish(eval), "$4 2000");
    node.check("GET n => $4 2000");
}

#[test]
fn the_memory_of_a_script_that_takes_long_counts() {
    let mut node = node(1);
    node.run("CONFIG SET maxmemory 4mb");
    let fill = "local t = {} for i = 1, 1e5 do t[i] = 'text' .. i end while true do end";
    let eval = format!("EVAL \"{fill}\" 0");
    assert_eq!(node.run(&eval), "Paused");
    let begin = Instant::now();
    while !node.run("b> SET k v").starts_with("-OOM ") {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "it does not count"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    node.check("b> SCRIPT KILL => +OK");
    assert!(node.finish(&eval).starts_with("-ERR Script killed"));
    node.check("b> SET k v => +OK");
}

#[test]
fn more_long_scripts_than_may_run_at_a_time_wait_for_their_turn() {
    let mut node = node(1);
    while node.clients.len() < 10 {
        node.connect();
    }
    let script = b"for i=1,5e6 do end return redis.call('incr', KEYS[1])".as_slice();
    let keys: Vec<String> = (0..10).map(|client| format!("n{client}")).collect();
    let mut done = [false; 10];
    let begin = Instant::now();
    while done.contains(&false) {
        assert!(begin.elapsed() < Duration::from_secs(60));
        for client in 0..10 {
            if !done[client] {
                let args: [&[u8]; 4] = [b"EVAL", script, b"1", keys[client].as_bytes()];
                let reply = node.bytes_for(client, &args);
                done[client] = node.flow != Flow::Paused;
                assert_eq!(
                    reply,
                    if done[client] {
                        b":1\r\n".as_slice()
                    } else {
                        b""
                    }
                );
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_script_of_a_megabyte_is_compiled_where_it_holds_up_nobody() {
    let mut node = node(1);
    let long = |end: &str| format!("local a = 1 {}{end}", "a = a + 1 ".repeat(100_000));
    for (end, want) in [
        ("return a", ":100001"),
        (
            "return }",
            "-ERR Error compiling script (new function): user_script:1: ",
        ),
    ] {
        let script = long(end);
        let args: [&[u8]; 3] = [b"EVAL", script.as_bytes(), b"0"];
        let mut reply = node.bytes(&args);
        assert_eq!(node.flow, Flow::Paused);
        while node.flow == Flow::Paused {
            std::thread::sleep(Duration::from_millis(1));
            reply = node.bytes(&args);
        }
        let reply = String::from_utf8(reply).unwrap();
        assert!(reply.starts_with(want), "{reply}");
    }
}

#[test]
fn values_and_what_others_are_told_of_them_wait_for_the_end_of_the_script() {
    for shards in [1, 8] {
        let mut node = node(shards);
        node.check("HSET h f old => :1\nRPUSH gone a b => :2");
        node.check("CONFIG SET notify-keyspace-events KEA => +OK");
        node.check("b> BLPOP queue 0 => Blocked\nc> SUBSCRIBE news => *3 $9 subscribe $4 news :1");
        let eval = "EVAL \"redis.call('hset','h','f','new') redis.call('del','gone') \
            redis.call('rpush','queue','first','second') redis.call('publish','news','text') \
            redis.call('sadd','set','m') for i=1,2e7 do end return redis.call('hget','h','f')\" 0";
        assert_eq!(node.run(eval), "Paused");
        node.connect();
        let mut is_held = false;
        let begin = Instant::now();
        let reply = loop {
            let reply = node.run(eval);
            if node.flow != Flow::Paused {
                break reply;
            }
            // Nothing of it is there: the lists of keys are as they were.
            let seen = node.bytes_for(3, &[b"DBSIZE"]);
            assert_eq!(seen, b":2\r\n");
            let seen = node.bytes_for(3, &[b"HGET", b"h", b"f"]);
            is_held |= node.flow == Flow::Paused;
            assert!(seen.is_empty() || seen == b"$3\r\nold\r\n", "{seen:?}");
            assert!(begin.elapsed() < Duration::from_secs(30));
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(reply, "$3 new");
        assert!(is_held);
        node.check(
            "
            HGETALL h => *2 $1 f $3 new
            LRANGE queue 0 -1 => *1 $6 second
            EXISTS gone set => :1
            b< => *2 $5 queue $5 first
            c< => *3 $7 message $4 news $4 text
            ",
        );
    }
}

#[test]
fn a_transaction_waits_for_scripts_and_its_own_are_stopped() {
    let mut node = node(8);
    node.check("MULTI => +OK");
    node.run(&format!("EVAL {LOOP} 0"));
    node.check("SET other v => +QUEUED");
    let reply = node.run("EXEC");
    let want = "*2 -UNSUPPORTED script stopped, nothing of it is kept: it takes long";
    assert!(reply.starts_with(want), "{reply}");
    node.check("GET other => $1 v");

    let eval = format!("EVAL {LOOP} 1 k");
    assert_eq!(node.run(&eval), "Paused");
    node.check(
        "
        b> MULTI => +OK
        b> SET k v => +QUEUED
        c> MULTI => +OK
        c> DEL k => +QUEUED
        b> EXEC => Paused
        c> EXEC => Paused
        + 5000
        b> EXEC => -EXECABORT Transaction discarded because of: BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        # What ends a lock waits on.
        c> EXEC => Paused
        b> SCRIPT KILL => +OK
        ",
    );
    assert!(node.finish(&eval).starts_with("-ERR Script killed"));
    node.check("c> EXEC => *1 :0\nb> EXEC => -ERR EXEC without MULTI");
}
