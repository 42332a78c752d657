use locknode_tests::patience::eventually;
use locknode_tests::{Wire, serve_tcp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{node, node_with};

#[tokio::test(start_paused = true)]
async fn a_client_that_never_reads_stops_being_read() {
    let node = node();
    let value = vec![b'v'; 100_000];
    let mut request = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n".to_vec();
    request.extend_from_slice(&value);
    request.extend_from_slice(b"\r\n");
    Wire::connect(&node).check(&request, b"+OK\r\n").await;

    // Each request of 7 bytes asks for 100 kB. Were they executed as they come, this would need 10 GB.
    let mut wire = Wire::connect_with_capacity(&node, 64 << 10);
    let asked = wire.send_while_taken(&b"GET k\r\n".repeat(100_000)).await;
    assert!(
        asked < 400_000,
        "the node took {asked} bytes of requests from a client that never reads"
    );

    // Another client is served meanwhile, and the slow one gets every reply once it reads.
    Wire::connect(&node).ask("PING", "+PONG").await;
    let want = (asked / 7) * (100_000 + "$100000\r\n\r\n".len());
    let mut got = 0;
    while got < want {
        let some = wire.read_some(1 << 20).await;
        assert!(!some.is_empty());
        got += some.len();
    }
}

#[tokio::test]
async fn a_reply_beyond_the_output_limit_is_an_error_and_the_connection_goes_on() {
    let node = node_with(|options| options.client_output_buffer_limit.normal = 10_000);
    let mut wire = Wire::connect(&node);
    wire.ask(&format!("SET k {}", "v".repeat(4_000)), "+OK")
        .await;
    wire.ask(
        "MGET k k k",
        "-ERR the reply is longer than client-output-buffer-limit",
    )
    .await;
    wire.ask("PING", "+PONG").await;
}

#[tokio::test]
async fn a_request_beyond_the_query_limit_closes_its_connection_only() {
    let node = node_with(|options| options.client_query_buffer_limit = 100_000);
    let mut wire = Wire::connect(&node);
    wire.send(b"*4\r\n").await;
    for _ in 0..3 {
        wire.send(b"$40000\r\n").await;
        wire.send(&[b'x'; 40_000]).await;
        wire.send(b"\r\n").await;
    }
    assert_eq!(wire.drain().await, b"");
    Wire::connect(&node).ask("PING", "+PONG").await;
}

#[tokio::test]
async fn announced_sizes_cost_nothing_until_bytes_come() {
    let node = node();
    let mut wires: Vec<Wire> = (0..200)
        .map(|_| Wire::connect_with_capacity(&node, 256))
        .collect();
    for wire in &mut wires {
        wire.send(b"*1048576\r\n$1048576\r\n").await;
    }
    Wire::connect(&node).ask("PING", "+PONG").await;
}

#[tokio::test]
async fn nested_arrays_are_refused_flat() {
    let node = node();
    let mut wire = Wire::connect(&node);
    wire.send(&b"*1\r\n".repeat(10_000)).await;
    assert_eq!(
        wire.drain().await,
        b"-ERR Protocol error: expected '$', got '*'\r\n"
    );
}

#[tokio::test]
async fn ten_thousand_connections_come_and_go() {
    let node = node();
    let (address, _task) = serve_tcp(&node, std::future::pending()).await;
    for _ in 0..100 {
        let mut streams = Vec::new();
        for _ in 0..100 {
            streams.push(TcpStream::connect(address).await.unwrap());
        }
        for stream in &mut streams {
            stream.write_all(b"PING\r\n").await.unwrap();
        }
        for stream in &mut streams {
            let mut reply = [0; 7];
            stream.read_exact(&mut reply).await.unwrap();
            assert_eq!(&reply, b"+PONG\r\n");
        }
    }
    // The last ones leave when the node has seen them close.
    eventually("all clients leave", || node.stats().clients == 0).await;
    Wire::connect(&node).ask("PING", "+PONG").await;
}

#[tokio::test]
async fn at_maxmemory_new_locks_are_refused_and_everything_else_goes_on() {
    let node = node_with(|options| options.maxmemory = 300_000);
    let mut wire = Wire::connect(&node);
    let mut held = 0;
    loop {
        wire.send(format!("SET lock:{held} token NX PX 60000\r\n").as_bytes())
            .await;
        let reply = wire.read_some(200).await;
        if reply != b"+OK\r\n" {
            assert_eq!(
                String::from_utf8(reply).unwrap(),
                "-OOM command not allowed when used memory > 'maxmemory'.\r\n"
            );
            break;
        }
        held += 1;
        assert!(held < 10_000, "maxmemory is never reached");
    }
    assert!(held > 500, "only {held} locks fit");
    // None was evicted; holders can extend and release, and a release makes room.
    wire.ask("DBSIZE", &format!(":{held}")).await;
    wire.ask("PEXPIRE lock:0 70000", ":1").await;
    wire.ask("DELEX lock:1 IFEQ token", ":1").await;
    wire.ask("DELEX lock:2 IFEQ token", ":1").await;
    wire.ask("SET lock:1 other NX PX 60000", "+OK").await;
}

/// Sends a request for a million bytes but for its last `missing` bytes.
async fn begin(wire: &mut Wire, missing: usize) {
    wire.send(b"*3\r\n$3\r\nSET\r\n$1\r\nv\r\n$1000000\r\n")
        .await;
    wire.send(&vec![b'v'; 1_000_000 - missing]).await;
}

async fn finish(wire: &mut Wire, missing: usize) {
    wire.send(&vec![b'v'; missing]).await;
    wire.ask("", "+OK").await;
}

#[tokio::test]
async fn beyond_maxmemory_clients_the_largest_unfinished_request_is_closed() {
    let node = node_with(|options| options.maxmemory_clients = 1_200_000);
    let [mut small, mut large, mut last] = [(); 3].map(|()| Wire::connect(&node));
    begin(&mut small, 900_000).await;
    begin(&mut large, 100_000).await;
    assert_eq!(node.stats().clients, 3, "what both use is within the limit");
    begin(&mut last, 900_000).await;
    assert_eq!(large.drain().await, b"");
    finish(&mut small, 900_000).await;
    finish(&mut last, 900_000).await;
}

#[tokio::test]
async fn beyond_maxmemory_clients_the_longest_unread_replies_are_closed() {
    let node = node_with(|options| options.maxmemory_clients = 1 << 20);
    let value = "v".repeat(50_000);
    let mut admin = Wire::connect(&node);
    admin.ask(&format!("SET k {value}"), "+OK").await;
    // The pipe takes a kilobyte of each reply.
    let connect = || Wire::connect_with_capacity(&node, 1 << 10);
    let mut exempt = connect();
    exempt.ask("CLIENT NO-EVICT ON", "+OK").await;
    exempt.send(&b"GET k\r\n".repeat(5)).await;
    let mut greedy = connect();
    greedy.send(&b"GET k\r\n".repeat(4)).await;
    let mut modest: Vec<Wire> = (0..15).map(|_| connect()).collect();
    for wire in &mut modest {
        wire.send(b"GET k\r\n").await;
    }
    assert!(greedy.drain().await.len() < 2_000);
    let reply = format!("$50000\r\n{value}\r\n");
    exempt.expect(reply.repeat(5).as_bytes()).await;
    for wire in &mut modest {
        wire.expect(reply.as_bytes()).await;
    }
}

#[tokio::test]
async fn a_new_maxmemory_clients_is_in_force_at_once() {
    let node = node_with(|options| options.maxmemory = 20 << 20);
    let mut admin = Wire::connect(&node);
    let mut large = Wire::connect(&node);
    begin(&mut large, 1).await;
    admin.ask("CONFIG SET maxmemory-clients 50%", "+OK").await;
    assert_eq!(node.stats().clients, 2);
    admin.ask("CONFIG SET maxmemory-clients 4%", "+OK").await;
    assert_eq!(large.drain().await, b"");
    admin.ask("PING", "+PONG").await;
}

#[tokio::test]
async fn memory_that_clients_no_longer_use_does_not_count() {
    let node = node_with(|options| options.maxmemory_clients = 1_200_000);
    let mut wire = Wire::connect(&node);
    for _ in 0..5 {
        begin(&mut wire, 100_000).await;
        finish(&mut wire, 100_000).await;
        let mut leaving = Wire::connect(&node);
        begin(&mut leaving, 100_000).await;
    }
    wire.ask("PING", "+PONG").await;
}
