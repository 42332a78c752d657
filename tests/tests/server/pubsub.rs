use std::time::Duration;

use locknode::{Clock, Moment, Node, Time, WallTime};
use locknode_tests::patience::eventually;
use locknode_tests::{Conversation, Wire, serve_tcp};
use tokio::time::Instant;

use crate::{node, node_with};

/// What Spring Integration's registry and redis-lock-py send to unlock.
const UNLOCK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('UNLINK', KEYS[1]) \
    redis.call('PUBLISH', ARGV[2], KEYS[1]) return true end return false";

/// The case of a waiter that subscribes, finds the lock held, and sleeps until the message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unlock_reaches_whoever_subscribed_before_and_not_before_its_effect() {
    let node = node();
    let (address, _task) = serve_tcp(&node, std::future::pending()).await;
    let connect = || async { Conversation::with(address).await.expect("a connection") };
    let (mut holder, mut waiter, mut listener) =
        (connect().await, connect().await, connect().await);
    listener.ask(&["SUBSCRIBE", "locks"]).await;
    let acquire = |token| ["SET", "lock:1", token, "NX", "PX", "60000"];
    for _ in 0..500 {
        let ok = holder.ask(&acquire("a")).await;
        assert_eq!(
            format!("{ok:?}"),
            format!("{:?}", Some(locknode_resp::Reply::Simple(b"OK".to_vec())))
        );
        let unlock = async {
            holder
                .ask(&["EVAL", UNLOCK, "1", "lock:1", "a", "locks"])
                .await;
        };
        let wait = async {
            let message = format!("{:?}", listener.hear().await);
            assert!(message.contains("Array"), "{message}");
            let got = waiter.ask(&acquire("b")).await;
            assert!(format!("{got:?}").contains("Simple"), "{got:?}");
        };
        tokio::join!(unlock, wait);
        waiter.ask(&["DEL", "lock:1"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_that_does_not_read_is_closed_and_the_others_are_served() {
    let node = node_with(|options| options.client_output_buffer_limit.pubsub.hard = 1 << 20);
    let mut slow = Wire::connect_with_capacity(&node, 1 << 10);
    let mut fast = Wire::connect(&node);
    let mut publisher = Wire::connect(&node);
    for wire in [&mut slow, &mut fast] {
        wire.ask("SUBSCRIBE ch", "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1")
            .await;
    }
    let text = "x".repeat(100_000);
    let message = format!("*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$100000\r\n{text}\r\n");
    for n in 1..=20 {
        // A few wait in the mailbox, and some in the connection's own buffer.
        let receivers = if n <= 14 { 2 } else { 1 };
        let publish = format!("PUBLISH ch {text}\r\n");
        publisher.send(publish.as_bytes()).await;
        let reply = publisher.read_some(10).await;
        if !(13..=15).contains(&n) {
            assert_eq!(reply, format!(":{receivers}\r\n").as_bytes(), "message {n}");
        }
        fast.expect(message.as_bytes()).await;
    }
    let rest = slow.drain().await;
    assert!(rest.len() < 1 << 20, "{} bytes", rest.len());
}

/// A flood of messages keeps nobody from being heard, least of all from leaving.
#[tokio::test]
async fn a_subscriber_leaves_in_the_middle_of_a_flood() {
    let node = node();
    let mut subscriber = Wire::connect(&node);
    let mut publisher = Wire::connect(&node);
    subscriber
        .ask("SUBSCRIBE ch", "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1")
        .await;
    publisher.send(&b"PUBLISH ch m\r\n".repeat(1000)).await;
    subscriber.send(b"UNSUBSCRIBE ch\r\n").await;
    publisher.expect(&b":1\r\n".repeat(1000)).await;
    subscriber
        .expect(&b"*3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$1\r\nm\r\n".repeat(1000))
        .await;
    subscriber
        .expect(b"*3\r\n$11\r\nunsubscribe\r\n$2\r\nch\r\n:0\r\n")
        .await;
    publisher.ask("PUBLISH ch m", ":0").await;
    subscriber.ask("PING", "+PONG").await;
}

/// The clock of tokio's timers, which a test pauses: then it moves only when every task sleeps.
#[derive(Debug)]
struct TimerClock(Instant);

impl Clock for TimerClock {
    fn now(&self) -> Moment {
        let nanos = u64::try_from(self.0.elapsed().as_nanos()).expect("a short test");
        Moment {
            time: Time::from_nanos(nanos),
            wall: WallTime::from_unix_nanos(nanos),
        }
    }
}

/// The case of a holder that dies: nobody touches the key, and its expiry is told within 5 ms.
#[tokio::test(start_paused = true)]
async fn an_expiry_is_told_at_most_5_ms_late() {
    let clock = TimerClock(Instant::now());
    let builder = Node::builder().restart_guard(false);
    let node = builder.clock(clock).build();
    let (_address, _task) = serve_tcp(&node, std::future::pending()).await;
    let mut holder = Wire::connect(&node);
    let mut waiter = Wire::connect(&node);
    // The sweeper sleeps for long by now.
    holder.ask("SET other t PX 600000", "+OK").await;
    holder
        .ask("CONFIG SET notify-keyspace-events Ex", "+OK")
        .await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let subscribed = "*3\r\n$9\r\nsubscribe\r\n$22\r\n__keyevent@0__:expired\r\n:1";
    waiter
        .ask("SUBSCRIBE __keyevent@0__:expired", subscribed)
        .await;
    for ttl_ms in [4000, 1, 77, 2, 1000, 13] {
        holder.ask(&format!("SET k t NX PX {ttl_ms}"), "+OK").await;
        let begun = Instant::now();
        waiter
            .expect(b"*3\r\n$7\r\nmessage\r\n$22\r\n__keyevent@0__:expired\r\n$1\r\nk\r\n")
            .await;
        let told_ms = begun.elapsed().as_millis();
        assert!(
            (ttl_ms..=ttl_ms + 5).contains(&told_ms),
            "{ttl_ms} ms: told after {told_ms}"
        );
    }
    waiter.send(b"UNSUBSCRIBE\r\n").await;
    // Without anybody to tell, it is reclaimed in its own time.
    holder.ask("SET k t NX PX 10", "+OK").await;
    eventually("the lock is reclaimed", || node.stats().expired == 7).await;
}
