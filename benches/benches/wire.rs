//! Decoding requests and encoding replies.

#![allow(
    clippy::expect_used,
    reason = "a bench that cannot run should say so and stop"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use locknode_benches::{ACQUIRE, RELEASE};
use locknode_resp::{Decoder, Encoder, Limits, Protocol, encode_command};

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    for (name, words) in [("set_nx_px", ACQUIRE), ("evalsha", RELEASE)] {
        let mut batch = Vec::new();
        for _ in 0..16 {
            encode_command(&mut batch, words);
        }
        let (mut decoder, limits) = (Decoder::new(), Limits::default());
        group.throughput(Throughput::Elements(16));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut rest = &batch[..];
                while let Ok(Some(frame)) = decoder.decode(black_box(rest), &limits, true) {
                    black_box(frame.arg(1));
                    let consumed = frame.consumed();
                    rest = &rest[consumed..];
                    if rest.is_empty() {
                        break;
                    }
                }
            });
        });
    }
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("encode");
    group.throughput(Throughput::Elements(16));
    for (name, protocol) in [("resp2", Protocol::Resp2), ("resp3", Protocol::Resp3)] {
        let mut out = Vec::with_capacity(4096);
        group.bench_function(name, |b| {
            b.iter(|| {
                out.clear();
                for i in 0..4 {
                    let mut reply = Encoder::new(&mut out, protocol);
                    reply.ok();
                    reply.null();
                    reply.integer(black_box(i));
                    reply.bulk(black_box(b"0123456789abcdef0123456789abcdef"));
                }
                black_box(&out);
            });
        });
    }
}

criterion_group!(benches, decode, encode);
criterion_main!(benches);
