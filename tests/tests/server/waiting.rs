use std::time::{Duration, Instant};

use locknode::Node;
use locknode_tests::{Wire, serve_tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::node;

#[tokio::test]
async fn a_connection_that_waits_executes_nothing_until_it_is_served() {
    for shards in [1, 8] {
        let node = Node::builder().restart_guard(false).shards(shards).build();
        let (mut waiter, mut other) = (Wire::connect(&node), Wire::connect(&node));
        waiter.send(b"BLPOP l 0\r\nSET after 1\r\nGET l\r\n").await;
        waiter.send(b"LLEN l\r\n").await;
        other.ask("EXISTS after", ":0").await;
        other.ask("RPUSH l x y", ":2").await;
        let rest = "-WRONGTYPE Operation against a key holding the wrong kind of value";
        let replies = format!("*2\r\n$1\r\nl\r\n$1\r\nx\r\n+OK\r\n{rest}\r\n:1\r\n");
        waiter.expect(replies.as_bytes()).await;
        // The pusher's own next command of the same batch comes after those who wait.
        waiter.send(b"LPOP l\r\nBLPOP l 0\r\n").await;
        waiter.expect(b"$1\r\ny\r\n").await;
        other.send(b"LPUSH l z\r\nLPOP l\r\n").await;
        other.expect(b":1\r\n$-1\r\n").await;
        waiter.expect(b"*2\r\n$1\r\nl\r\n$1\r\nz\r\n").await;
    }
}

#[tokio::test]
async fn a_wait_ends_in_time_and_the_connection_goes_on() {
    let node = node();
    let mut wire = Wire::connect(&node);
    let start = Instant::now();
    wire.ask("BLPOP l 0.05", "*-1").await;
    assert!(start.elapsed() >= Duration::from_millis(50));
    wire.ask("PING", "+PONG").await;
    wire.send(b"HELLO 3\r\n").await;
    wire.read_some(1 << 16).await;
    wire.ask("BLPOP l 0.01", "_").await;
}

#[tokio::test]
async fn an_element_is_not_lost_with_a_client_that_left_while_it_waited() {
    let node = node();
    let mut other = Wire::connect(&node);
    for way in ["close", "kill"] {
        let mut waiter = Wire::connect(&node);
        waiter.ask("CLIENT SETNAME me", "+OK").await;
        waiter.send(b"BLPOP l 0\r\n").await;
        if way == "kill" {
            other.ask("CLIENT KILL TYPE normal SKIPME yes", ":1").await;
            assert_eq!(waiter.drain().await, b"");
        } else {
            waiter.finish_sending().await;
            assert_eq!(waiter.drain().await, b"");
        }
        other.ask("RPUSH l x", ":1").await;
        other.ask("LPOP l", "$1\r\nx").await;
    }
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_those_who_wait() {
    let node = node();
    let (stop, stopped) = oneshot::channel::<()>();
    let (address, task) = serve_tcp(&node, async { drop(stopped.await) }).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"PING\r\nBLPOP l 0\r\n").await.unwrap();
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).await.unwrap();
    stop.send(()).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(
        rest.is_empty() || rest == b"*-1\r\n",
        "{}",
        rest.escape_ascii()
    );
    task.await.unwrap();
}
