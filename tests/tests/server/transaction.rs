//! Transactions through the server: nobody sees half of one, and none holds others up for long.

use std::time::Duration;

use locknode::Node;
use locknode_tests::{Wire, serve_tcp};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::script::{DELAY_MAX, Served, delay, request};
use crate::{node, node_with};

/// A client that reads replies of lines and bulks.
struct Client(BufReader<TcpStream>);

impl Client {
    async fn ask(&mut self, requests: &str) {
        let requests = requests.replace("; ", "\r\n") + "\r\n";
        self.0.write_all(requests.as_bytes()).await.unwrap();
    }

    /// The next line; of a bulk its contents.
    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        if line.starts_with('$') && !line.starts_with("$-") {
            line.clear();
            self.0.read_line(&mut line).await.unwrap();
        }
        line.trim_end().to_owned()
    }

    async fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..count {
            lines.push(self.line().await);
        }
        lines
    }
}

/// Runs `work` with the address of a node of two threads and several shards.
async fn on_two_threads<W: Future<Output = ()>>(work: impl FnOnce(std::net::SocketAddr) -> W) {
    let node = Node::builder().restart_guard(false).shards(8).build();
    let (stop, stopped) = oneshot::channel::<()>();
    let (address, task) = serve_tcp(&node, async { drop(stopped.await) }).await;
    work(address).await;
    stop.send(()).unwrap();
    task.await.unwrap();
}

async fn connect(address: std::net::SocketAddr) -> Client {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    Client(BufReader::new(stream))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_sees_half_of_a_transaction() {
    on_two_threads(|address| async move {
        let mut writers = Vec::new();
        for writer in 0..2 {
            let mut client = connect(address).await;
            writers.push(tokio::spawn(async move {
                for round in 0..300 {
                    let value = format!("{writer}.{round}");
                    let sets = ["a", "b", "c", "d"].map(|key| format!("SET {key} {value}"));
                    client
                        .ask(&format!("MULTI; {}; DEL e; EXEC", sets.join("; ")))
                        .await;
                    let replies = client.lines(12).await;
                    assert_eq!(replies[..2], ["+OK", "+QUEUED"]);
                    assert_eq!(replies[6..11], ["*5", "+OK", "+OK", "+OK", "+OK"]);
                }
            }));
        }
        let mut reader = connect(address).await;
        let mut seen = std::collections::BTreeSet::new();
        while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            reader
                .ask("MGET a b c d; EVAL \"return redis.call('mget',KEYS[1],KEYS[2])\" 2 d a")
                .await;
            let replies = reader.lines(8).await;
            let (one, other) = (&replies[1..5], &replies[6..8]);
            assert!(one.iter().all(|it| *it == one[0]), "{one:?}");
            assert_eq!(other[0], other[1]);
            seen.insert(one[0].clone());
        }
        for writer in writers {
            writer.await.unwrap();
        }
        assert!(seen.len() > 3, "{seen:?}");
    })
    .await;
}

/// The counter ends at the number of transactions that were executed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watched_counter_loses_no_count() {
    on_two_threads(|address| async move {
        let mut counters = Vec::new();
        for _ in 0..3 {
            let mut client = connect(address).await;
            counters.push(tokio::spawn(async move {
                let mut done = 0;
                for _ in 0..300 {
                    client.ask("WATCH n; GET n").await;
                    let count = client.lines(2).await[1].parse().unwrap_or(0_u32);
                    client
                        .ask(&format!("MULTI; SET n {}; EXEC", count + 1))
                        .await;
                    if client.lines(3).await[2] == "*1" {
                        assert_eq!(client.line().await, "+OK");
                        done += 1;
                    }
                }
                done
            }));
        }
        let mut done = 0;
        for counter in counters {
            done += counter.await.unwrap();
        }
        let mut client = connect(address).await;
        client.ask("GET n").await;
        assert_eq!(client.line().await, done.to_string());
        assert!(done >= 300, "{done}");
    })
    .await;
}

/// The largest transactions that fit.
#[test]
fn an_exec_delays_other_clients_by_less_than_a_twentieth_of_a_second() {
    let served = Served::start();
    for (command, count) in [
        (["SET", "k", "v"].as_slice(), 40_000),
        (&["GET", "k"], 60_000),
        (&["EVAL", "while true do end", "1", "k"], 10),
    ] {
        let mut hostile = request(&["MULTI"]);
        hostile.extend(request(command).repeat(count));
        hostile.extend(request(&["EXEC"]));
        let delay = delay(&served, &hostile, count + 2);
        println!("{delay:?} {command:?}");
        assert!(delay < DELAY_MAX, "{delay:?}: {command:?}");
    }
}

/// Issue 15, bad input.
#[tokio::test]
async fn a_million_commands_are_too_many() {
    let mut wire = Wire::connect(&node());
    wire.ask("MULTI", "+OK").await;
    let (mut queued, mut refused) = (0, 0);
    for _ in 0..1_000 {
        wire.send(&b"INCR n\r\n".repeat(1_000)).await;
        let mut replies = Vec::new();
        while replies.iter().filter(|byte| **byte == b'\n').count() < 1_000 {
            replies.extend(wire.read_some(1 << 20).await);
        }
        let replies = String::from_utf8(replies).unwrap();
        queued += replies.matches("+QUEUED").count();
        refused += replies
            .matches("-ERR a transaction holds at most 4194304 bytes")
            .count();
    }
    assert_eq!((queued, refused), (999_999, 1));
    wire.ask(
        "EXEC",
        "-EXECABORT Transaction discarded because of previous errors.",
    )
    .await;
    wire.ask("GET n", "$-1").await;
}

#[tokio::test]
async fn a_transaction_that_never_ends_counts_for_maxmemory_clients() {
    let node = node_with(|options| options.maxmemory_clients = 1_000_000);
    let mut wire = Wire::connect(&node);
    wire.ask("MULTI", "+OK").await;
    let value = "v".repeat(10_000);
    for _ in 0..120 {
        wire.send(format!("SET k {value}\r\n").as_bytes()).await;
        if wire.read_some(100).await.is_empty() {
            break;
        }
    }
    tokio::time::timeout(Duration::from_secs(10), wire.drain())
        .await
        .unwrap();
    Wire::connect(&node).ask("GET k", "$-1").await;
}
