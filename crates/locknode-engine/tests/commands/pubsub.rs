//! SUBSCRIBE, PUBLISH and their relatives.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use crate::node::{Node, check};

const ONLY: &str =
    "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";

#[test]
fn messages_reach_the_subscribers_of_a_channel_and_of_matching_patterns() {
    check(
        "PUBLISH ch nobody => :0
         b> SUBSCRIBE ch other => *3 $9 subscribe $2 ch :1 *3 $9 subscribe $5 other :2
         b> SUBSCRIBE ch => *3 $9 subscribe $2 ch :2
         c> HELLO 3 => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :3 $4 mode $10 standalone $4 role $6 master $7 modules *0
         c> PSUBSCRIBE c* x* => >3 $10 psubscribe $2 c* :1 >3 $10 psubscribe $2 x* :2
         c> SUBSCRIBE ch => >3 $9 subscribe $2 ch :3
         PUBLISH ch hello => :3
         b< => *3 $7 message $2 ch $5 hello
         c< => >3 $7 message $2 ch $5 hello >4 $8 pmessage $2 c* $2 ch $5 hello
         b< =>
         PUBLISH Ch hello => :0
         PUBLISH xyz '' => :1
         c< => >4 $8 pmessage $2 x* $3 xyz $0
         b> UNSUBSCRIBE ch => *3 $11 unsubscribe $2 ch :1
         PUBLISH ch again => :2
         b< =>",
    );
}

#[test]
fn shard_channels_are_separate_from_channels() {
    check(
        "b> SSUBSCRIBE ch => *3 $10 ssubscribe $2 ch :1
         c> PSUBSCRIBE * => *3 $10 psubscribe $1 * :1
         PUBLISH ch hello => :1
         SPUBLISH ch hello => :1
         b< => *3 $8 smessage $2 ch $5 hello
         c< => *4 $8 pmessage $1 * $2 ch $5 hello
         b> SUBSCRIBE ch => *3 $9 subscribe $2 ch :1
         b> SUNSUBSCRIBE => *3 $12 sunsubscribe $2 ch :0
         SPUBLISH ch hello => :0",
    );
}

#[test]
fn subscriptions_end_one_by_one_or_all_of_a_kind() {
    check(
        "UNSUBSCRIBE => *3 $11 unsubscribe $-1 :0
         PUNSUBSCRIBE x => *3 $12 punsubscribe $1 x :0
         SUBSCRIBE a b => *3 $9 subscribe $1 a :1 *3 $9 subscribe $1 b :2
         PSUBSCRIBE p* => *3 $10 psubscribe $2 p* :3
         UNSUBSCRIBE nope b => *3 $11 unsubscribe $4 nope :3 *3 $11 unsubscribe $1 b :2
         UNSUBSCRIBE => *3 $11 unsubscribe $1 a :1
         UNSUBSCRIBE => *3 $11 unsubscribe $-1 :1
         PUNSUBSCRIBE => *3 $12 punsubscribe $2 p* :0
         GET k => $-1",
    );
}

#[test]
fn a_resp2_connection_with_subscriptions_only_receives() {
    check(&format!(
        "SSUBSCRIBE s => *3 $10 ssubscribe $1 s :1
         GET k => -ERR Can't execute 'get': {ONLY}
         CONFIG GET x => -ERR Can't execute 'config|get': {ONLY}
         HELLO 3 => -ERR Can't execute 'hello': {ONLY}
         MULTI => -ERR Can't execute 'multi': {ONLY}
         SPUBLISH s m => -ERR Can't execute 'spublish': {ONLY}
         NOSUCH => -ERR unknown command 'NOSUCH', with args beginning with: 
         PING => *2 $4 pong $0
         PING hi => *2 $4 pong $2 hi
         PING a b => -ERR wrong number of arguments for 'ping' command
         SUNSUBSCRIBE s => *3 $12 sunsubscribe $1 s :0
         PING => +PONG
         SUBSCRIBE ch => *3 $9 subscribe $2 ch :1
         RESET => +RESET
         b> PUBLISH ch m => :0
         GET k => $-1"
    ));
}

#[test]
fn a_resp3_connection_with_subscriptions_does_everything() {
    let mut node = Node::new();
    node.run("HELLO 3");
    node.check(&format!(
        "SUBSCRIBE ch => >3 $9 subscribe $2 ch :1
         PING => +PONG
         SET k v => +OK
         # Its own messages follow the reply.
         PUBLISH ch m => :1 >3 $7 message $2 ch $1 m
         # What came before the end of a subscription precedes it.
         b> PUBLISH ch m2 => :1
         UNSUBSCRIBE ch => >3 $7 message $2 ch $2 m2 >3 $11 unsubscribe $2 ch :0
         UNSUBSCRIBE => >3 $11 unsubscribe _ :0
         SUBSCRIBE ch => >3 $9 subscribe $2 ch :1
         CLIENT REPLY OFF =>
         PING =>
         SUBSCRIBE x => >3 $9 subscribe $1 x :2
         PUBLISH ch m => >3 $7 message $2 ch $1 m
         CLIENT REPLY ON => +OK
         HELLO 2 => *14 $6 server $5 redis $7 version $5 8.4.0 $5 proto :2 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
         GET k => -ERR Can't execute 'get': {ONLY}"
    ));
}

#[test]
fn pubsub_reports_on_subscriptions() {
    check(
        "b> SUBSCRIBE one two => *3 $9 subscribe $3 one :1 *3 $9 subscribe $3 two :2
         c> SUBSCRIBE two => *3 $9 subscribe $3 two :1
         c> PSUBSCRIBE o* t* => *3 $10 psubscribe $2 o* :2 *3 $10 psubscribe $2 t* :3
         b> PSUBSCRIBE o* => *3 $10 psubscribe $2 o* :3
         c> SSUBSCRIBE s => *3 $10 ssubscribe $1 s :1
         PUBSUB CHANNELS => *2 $3 one $3 two
         PUBSUB CHANNELS t* => *1 $3 two
         PUBSUB CHANNELS a b => -ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
         PUBSUB NUMSUB => *0
         PUBSUB NUMSUB two three s => *6 $3 two :2 $5 three :0 $1 s :0
         PUBSUB NUMPAT => :2
         PUBSUB SHARDCHANNELS => *1 $1 s
         PUBSUB SHARDNUMSUB s two => *4 $1 s :1 $3 two :0
         PUBSUB FOO => -ERR unknown subcommand 'FOO'. Try PUBSUB HELP.
         PUBSUB NUMPAT x => -ERR wrong number of arguments for 'pubsub|numpat' command
         PUBSUB => -ERR wrong number of arguments for 'pubsub' command
         SUBSCRIBE => -ERR wrong number of arguments for 'subscribe' command
         PUBLISH ch => -ERR wrong number of arguments for 'publish' command
         HELLO 3 => %7 $6 server $5 redis $7 version $5 8.4.0 $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master $7 modules *0
         PUBSUB NUMSUB two => *2 $3 two :2",
    );
}

#[test]
fn subscribers_are_listed_counted_and_killed_by_their_type() {
    let mut node = Node::new();
    node.run("b> SUBSCRIBE x y");
    node.run("b> PSUBSCRIBE p*");
    node.run("b> SSUBSCRIBE s");
    let list = node.text("CLIENT LIST TYPE pubsub");
    assert!(
        list.starts_with("id=2 ") && list.lines().count() == 1,
        "{list}"
    );
    assert!(
        list.contains(" flags=P db=0 sub=2 psub=1 ssub=1 "),
        "{list}"
    );
    assert_eq!(node.text("CLIENT LIST TYPE normal").lines().count(), 2);
    let info = node.text("INFO");
    for line in [
        "pubsub_clients:1",
        "pubsub_channels:2",
        "pubsub_patterns:1",
        "pubsubshard_channels:1",
    ] {
        assert!(info.contains(line), "{line} in {info}");
    }
    assert_eq!(node.run("CLIENT KILL TYPE pubsub"), ":1");
    assert!(node.clients[1].client().is_killed());
    node.clients.remove(1);
    node.check(
        "PUBSUB CHANNELS => *0
         PUBSUB NUMPAT => :0
         PUBLISH x m => :0",
    );
}

#[test]
fn a_script_publishes_when_it_is_done() {
    let mut node = Node::new();
    node.run("b> SUBSCRIBE ch");
    let script = "redis.call('set', KEYS[1], 'v', 'px', 1000) redis.call('publish', 'ch', 'one') \
                  return redis.call('publish', 'ch', ARGV[1])";
    node.check(&format!(
        "EVAL \"{script}\" 1 k two => :1
         b< => *3 $7 message $2 ch $3 one *3 $7 message $2 ch $3 two
         EVAL_RO \"return redis.call('publish', 'ch', 'x')\" 0 => -ERR Write commands are not allowed from read-only scripts. script: 24167b0b13172473f246885e3a0084afe6792432, on @user_script:1.
         b< =>"
    ));
}

/// As Redis 8.0.6 answers it.
#[test]
fn a_transaction_subscribes_and_publishes() {
    check(
        "MULTI => +OK
         SUBSCRIBE q => +QUEUED
         PUBLISH q 1 => +QUEUED
         PING => +QUEUED
         b> PUBLISH q early => :0
         EXEC => *3 *3 $9 subscribe $1 q :1 :1 *2 $4 pong $0  *3 $7 message $1 q $1 1
         MULTI => -ERR Can't execute 'multi': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
         b> MULTI => +OK
         b> PUBLISH q 2 => +QUEUED
         a< =>
         b> DISCARD => +OK
         a< =>
         b> MULTI => +OK
         b> PUBLISH q 3 => +QUEUED
         b> EXEC => *1 :1
         a< => *3 $7 message $1 q $1 3",
    );
}

/// Every subscription is refused that would make a message too slow or the node too large.
#[test]
fn subscriptions_are_bounded() {
    let mut node = Node::new();
    let long = "p".repeat(1025);
    assert_eq!(
        node.run(&format!("PSUBSCRIBE {long}")),
        "-ERR a pattern has at most 1024 bytes"
    );
    let name = |n: u32| format!("{n}{}", "n".repeat(1 << 20));
    for n in 0..15 {
        let reply = node.run(&format!("SUBSCRIBE {}", name(n)));
        assert!(reply.ends_with(&format!(":{}", n + 1)));
    }
    assert_eq!(
        node.run(&format!("SUBSCRIBE {}", name(15))),
        "-ERR the subscriptions of a connection take at most 16777216 bytes"
    );
    assert!(
        node.run(&format!("UNSUBSCRIBE {}", name(0)))
            .ends_with(":14")
    );
    assert!(
        node.run(&format!("SUBSCRIBE {}", name(15)))
            .ends_with(":15")
    );
    let patterns = |from: u32, to: u32| (from..to).map(|n| format!(" p{n}")).collect::<String>();
    assert!(
        node.run(&format!("b> PSUBSCRIBE{}", patterns(0, 10_000)))
            .ends_with(":10000")
    );
    assert_eq!(
        node.run("c> PSUBSCRIBE more"),
        "-ERR the node compares messages with at most 10000 patterns"
    );
    assert_eq!(node.run("c> PSUBSCRIBE p7"), "*3 $10 psubscribe $2 p7 :1");
}

#[test]
fn a_subscriber_that_does_not_read_is_closed() {
    let mut node = Node::with_options(|options| {
        options.client_output_buffer_limit.pubsub.hard = 1 << 20;
        options.client_output_buffer_limit.pubsub.soft = 1 << 18;
        options.client_output_buffer_limit.pubsub.soft_seconds = 60;
    });
    node.run("b> SUBSCRIBE ch");
    node.run("c> SUBSCRIBE ch");
    let text = "x".repeat(1 << 17);
    let publish = format!("PUBLISH ch {text}");
    let mut mail = Vec::new();
    for _ in 0..7 {
        assert_eq!(node.run(&publish), ":2");
        node.clients[2].client().take_mail(&mut mail, usize::MAX);
    }
    assert!(!node.clients[1].client().is_killed());
    node.run(&publish);
    assert!(node.clients[1].client().is_killed());
    assert!(!node.clients[2].client().is_killed());
    // Beyond the soft limit for a while.
    node.run(&publish);
    node.run(&publish);
    for (seconds, is_killed) in [(0, false), (60, false), (61, true)] {
        let mut now = node.moment.time;
        now = locknode_engine::Time::from_millis(now.as_nanos() / 1_000_000 + seconds * 1000);
        node.engine.enforce_client_limits(now);
        assert_eq!(node.clients[2].client().is_killed(), is_killed, "{seconds}");
    }
}

#[test]
fn what_waits_for_subscribers_counts_for_maxmemory_clients() {
    let mut node = Node::with_options(|options| options.maxmemory_clients = 1 << 20);
    node.run("b> SUBSCRIBE ch");
    let publish = format!("PUBLISH ch {}", "x".repeat(1 << 18));
    for _ in 0..3 {
        node.run(&publish);
    }
    assert!(!node.clients[1].client().is_killed());
    node.run(&publish);
    assert!(node.clients[1].client().is_killed());
    assert_eq!(node.run(&publish), ":1");
    node.clients.remove(1);
    assert!(node.text("INFO memory").contains("mem_clients_normal:0\r"));
}

/// Counts how often it is woken.
#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_message_to_many_wakes_a_few_and_each_turn_wakes_one_more() {
    let mut node = Node::new();
    let alarm = Arc::new(Alarm::default());
    for n in 3..1003 {
        node.connect();
        node.bytes_for(n, &[b"SUBSCRIBE", b"ch"]);
        let waker = Waker::from(Arc::clone(&alarm));
        node.clients[n].client().sleep_with(&waker);
    }
    let woken = || alarm.0.load(Ordering::Relaxed);
    assert_eq!(node.run("PUBLISH ch m"), ":1000");
    assert_eq!(woken(), 64);
    // Those who have not read are not woken again.
    assert_eq!(node.run("PUBLISH ch m"), ":1000");
    assert_eq!(woken(), 64);
    node.engine.wake_next_client();
    assert_eq!(woken(), 65);
    // A client that is gone does not break the chain.
    drop(node.clients.drain(3 + 65..3 + 70));
    (0..2000).for_each(|_| node.engine.wake_next_client());
    assert_eq!(woken(), 995);
}
