//! A whole connection over an in-memory stream: decoder, engine, encoder and task, no sockets.

#![allow(
    clippy::expect_used,
    reason = "a bench that cannot run should say so and stop"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use locknode::{Node, Peer};
use locknode_benches::{ACQUIRE, RELEASE};
use locknode_resp::encode_command;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn cycle(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("runtime");
    let mut group = c.benchmark_group("connection");
    for pipeline in [1_usize, 16] {
        let node = Node::builder().restart_guard(false).build();
        let (mut client, server) = tokio::io::duplex(64 << 10);
        runtime.spawn(async move { node.serve_stream(server, Peer::default()).await });
        let mut batch = Vec::new();
        for _ in 0..pipeline {
            encode_command(&mut batch, ACQUIRE);
            encode_command(&mut batch, RELEASE);
        }
        let mut replies = vec![0; pipeline * b"+OK\r\n:1\r\n".len()];
        group.throughput(Throughput::Elements(pipeline as u64));
        group.bench_function(format!("cycle_pipeline_{pipeline}"), |b| {
            b.iter(|| {
                runtime.block_on(async {
                    client.write_all(&batch).await.expect("write");
                    client.read_exact(&mut replies).await.expect("read");
                });
                assert!(replies.starts_with(b"+OK\r\n:1\r\n"));
            });
        });
    }
}

criterion_group!(benches, cycle);
criterion_main!(benches);
