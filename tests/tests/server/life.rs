use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use locknode::{Accepted, Listener, Node, Peer};
use locknode_tests::{Wire, serve_tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::{node, node_with};

#[tokio::test]
async fn shutdown_answers_what_was_received_and_closes() {
    let node = node();
    let (stop, stopped) = oneshot::channel::<()>();
    let (address, task) = serve_tcp(&node, async { drop(stopped.await) }).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"SET k t NX PX 30000\r\n").await.unwrap();
    let mut reply = [0; 5];
    stream.read_exact(&mut reply).await.unwrap();
    stop.send(()).unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"");
    task.await.unwrap();
    assert!(
        TcpStream::connect(address).await.is_err(),
        "the listener is closed"
    );
}

/// Every INCR that was executed has been answered: the counter ends at the number of replies received.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_under_pipelined_load_loses_no_reply() {
    let node = Node::builder().restart_guard(false).shards(8).build();
    for round in 0..10 {
        let (stop, stopped) = oneshot::channel::<()>();
        let (address, task) = serve_tcp(&node, async { drop(stopped.await) }).await;
        let replies = Arc::new(AtomicU64::new(0));
        let mut clients = Vec::new();
        for client in 0..4 {
            let replies = Arc::clone(&replies);
            let mut stream = TcpStream::connect(address).await.unwrap();
            // Once it is answered the node has accepted it.
            stream.write_all(b"PING\r\n").await.unwrap();
            stream.read_exact(&mut [0; 7]).await.unwrap();
            clients.push(tokio::spawn(async move {
                let (mut reader, mut writer) = stream.split();
                let key = format!("c{round}-{client}");
                let batch = format!("INCR {key}\r\n").repeat(16);
                let write = async { while writer.write_all(batch.as_bytes()).await.is_ok() {} };
                let read = async {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(n @ 1..) = reader.read(&mut buffer).await {
                        let lines = buffer[..n].iter().filter(|&&byte| byte == b'\n').count();
                        replies.fetch_add(lines as u64, Ordering::SeqCst);
                    }
                };
                // A client stops sending when the node has closed its direction.
                tokio::pin!(read);
                tokio::select! { biased; () = &mut read => {}, () = write => read.await }
                key
            }));
        }
        let enough = 2_000 + round * 317;
        while replies.load(Ordering::SeqCst) < enough {
            tokio::task::yield_now().await;
        }
        stop.send(()).unwrap();
        let mut executed = 0;
        for client in clients {
            let key = client.await.unwrap();
            let mut wire = Wire::connect(&node);
            wire.send(format!("INCR {key}\r\n").as_bytes()).await;
            let reply = wire.read_some(64).await;
            executed += String::from_utf8(reply[1..reply.len() - 2].to_vec())
                .unwrap()
                .parse::<u64>()
                .unwrap()
                - 1;
        }
        task.await.unwrap();
        assert_eq!(replies.load(Ordering::SeqCst), executed, "round {round}");
    }
}

#[tokio::test]
async fn a_client_can_shut_the_node_down() {
    let node = node();
    let (address, task) = serve_tcp(&node, std::future::pending()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"PING\r\nSHUTDOWN NOSAVE\r\n")
        .await
        .unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"+PONG\r\n");
    task.await.unwrap();
}

#[tokio::test]
async fn nodes_in_one_process_know_nothing_of_each_other() {
    let nodes: Vec<Node> = (0..5).map(|_| node()).collect();
    for (i, node) in nodes.iter().enumerate() {
        Wire::connect(node)
            .ask(&format!("SET k t{i} NX"), "+OK")
            .await;
    }
    for (i, node) in nodes.iter().enumerate() {
        Wire::connect(node)
            .ask("GET k", &format!("$2\r\nt{i}"))
            .await;
        assert_eq!(node.stats().keys, 1);
    }
}

#[tokio::test]
async fn a_unix_socket_serves_like_tcp() {
    let dir = std::env::temp_dir().join(format!("locknode-{}-{:x}", std::process::id(), line!()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("node.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let node = node();
    let serving = node.clone();
    let task = tokio::spawn(async move { serving.serve(listener, std::future::pending()).await });
    let mut stream = UnixStream::connect(&path).await.unwrap();
    stream.write_all(b"SET k t NX PX 30000\r\n").await.unwrap();
    let mut reply = [0; 5];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"+OK\r\n");
    task.abort();
    std::fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn the_client_beyond_maxclients_is_told_and_closed() {
    let node = node_with(|options| options.maxclients = 2);
    let mut first = Wire::connect(&node);
    first.ask("PING", "+PONG").await;
    let mut second = Wire::connect(&node);
    second.ask("PING", "+PONG").await;
    let mut third = Wire::connect(&node);
    assert_eq!(
        third.drain().await,
        b"-ERR max number of clients reached\r\n"
    );
    second.finish_sending().await;
    assert_eq!(second.drain().await, b"");
    Wire::connect(&node).ask("PING", "+PONG").await;
    first.ask("PING", "+PONG").await;
}

#[tokio::test]
async fn a_killed_client_is_closed_while_it_sleeps() {
    let node = node();
    let mut victim = Wire::connect(&node);
    victim.ask("CLIENT ID", ":1").await;
    let mut other = Wire::connect(&node);
    other.ask("CLIENT KILL ID 1", ":1").await;
    assert_eq!(victim.drain().await, b"");
    other.ask("PING", "+PONG").await;
}

/// A listener whose connections claim to come from elsewhere.
#[derive(Debug)]
struct Remote(Mutex<mpsc::Receiver<DuplexStream>>);

impl Listener for Remote {
    type Stream = DuplexStream;

    async fn accept(&self) -> std::io::Result<Accepted<DuplexStream>> {
        match self.0.lock().await.recv().await {
            Some(stream) => Ok(Accepted {
                stream,
                peer: Peer::default(),
                is_local: false,
            }),
            None => std::future::pending().await,
        }
    }
}

#[tokio::test]
async fn protected_mode_refuses_strangers_until_there_is_a_password() {
    for (password, protected, want) in [
        ("", true, "-DENIED "),
        ("", false, "+PONG\r\n"),
        ("secret", true, "-NOAUTH "),
    ] {
        let node = node_with(|options| {
            options.requirepass = password.into();
            options.protected_mode = protected;
        });
        let (connect, connections) = mpsc::channel(1);
        tokio::spawn(async move {
            node.serve(Remote(Mutex::new(connections)), std::future::pending())
                .await
        });
        let (mut ours, theirs) = tokio::io::duplex(4096);
        connect.send(theirs).await.unwrap();
        // A refused client may find the pipe closed already; it is told all the same.
        let _ = ours.write_all(b"PING\r\n").await;
        let mut reply = [0; 8];
        let want = &want.as_bytes()[..want.len().min(8)];
        tokio::time::timeout(
            Duration::from_secs(10),
            ours.read_exact(&mut reply[..want.len()]),
        )
        .await
        .expect("an answer")
        .unwrap();
        assert_eq!(&reply[..want.len()], want);
    }
}
