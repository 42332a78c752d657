//! Acquire and release inside the engine, without bytes on a wire.

#![allow(
    clippy::expect_used,
    reason = "a bench that cannot run should say so and stop"
)]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use locknode_engine::durable::{Durability, Durable, StartReason};
use locknode_engine::{Engine, EngineConfig, GuardConfig, GuardMode, Moment, Peer, Session, Time};

const TOKEN: &[u8] = b"0123456789abcdef0123456789abcdef";
const RELEASE_SHA: &[u8] = b"4e92fdc63815b3a0a2dd1c1df3694de73607c88d";

fn engine() -> (Engine, Session) {
    guarded(GuardConfig::off())
}

fn guarded(guard: GuardConfig) -> (Engine, Session) {
    let config = EngineConfig {
        guard,
        ..EngineConfig::new(7, "bench")
    };
    let engine = Engine::new(config, Moment::default());
    let session = engine.connect(Peer::default(), Time::ZERO);
    (engine, session.expect("room for one client"))
}

fn key(i: u64) -> [u8; 30] {
    let mut key = *b"lock:0000000000000000000000000";
    key[22..].copy_from_slice(&(i % 100_000_000).to_le_bytes());
    key
}

fn cycle(c: &mut Criterion) {
    let mut group = c.benchmark_group("cycle");
    group.throughput(Throughput::Elements(1));
    for name in ["evalsha", "delex", "delifeq"] {
        let (engine, mut session) = engine();
        let (mut out, mut i) = (Vec::with_capacity(4096), 0);
        group.bench_function(name, |b| {
            b.iter(|| {
                i += 1;
                let key = key(i % 100_000);
                let mut batch = engine.batch(Moment::default());
                out.clear();
                batch.execute(
                    &mut session,
                    &[b"SET", &key, TOKEN, b"NX", b"PX", b"30000"],
                    &mut out,
                );
                match name {
                    "evalsha" => {
                        let release: [&[u8]; 5] = [b"EVALSHA", RELEASE_SHA, b"1", &key, TOKEN];
                        batch.execute(&mut session, &release, &mut out);
                    }
                    "delex" => {
                        batch.execute(&mut session, &[b"DELEX", &key, b"IFEQ", TOKEN], &mut out);
                    }
                    _ => {
                        batch.execute(&mut session, &[b"DELIFEQ", &key, TOKEN], &mut out);
                    }
                }
                assert_eq!(out, b"+OK\r\n:1\r\n");
            });
        });
    }
}

/// What the restart guard adds to a cycle: nothing kept, a limit in memory, and a store that has confirmed all that the
/// grants of a batch rest on. The last waits for no disk: what is measured is the way through the guard.
fn guard(c: &mut Criterion) {
    let mut group = c.benchmark_group("guard");
    group.throughput(Throughput::Elements(16));
    for (name, mode) in [
        ("off", GuardMode::Off),
        ("memory", GuardMode::Memory),
        ("store", GuardMode::Store(Durability::Long)),
    ] {
        let (engine, mut session) = guarded(guard_config(mode));
        let (mut out, mut i, now) = (Vec::with_capacity(4096), 0, Moment::default());
        let mut cycles = |must_wait: bool| {
            let mut batch = engine.batch(now);
            for _ in 0..16 {
                i += 1;
                let key = key(i % 100_000);
                out.clear();
                let acquire: [&[u8]; 6] = [b"SET", &key, TOKEN, b"NX", b"PX", b"30000"];
                batch.execute(&mut session, &acquire, &mut out);
                batch.execute(&mut session, &[b"DELIFEQ", &key, TOKEN], &mut out);
                assert_eq!(out, b"+OK\r\n:1\r\n");
            }
            let need = batch.finish(&session, 32);
            assert!(
                must_wait || need.is_none(),
                "{name} is not within its bounds"
            );
        };
        // The first grant of a start shows the guard what TTLs are in use; a store would have confirmed that by now.
        cycles(true);
        while let Some(work) = engine.guard().take_work(now.time) {
            engine.guard().done(&work);
        }
        group.bench_function(name, |b| b.iter(|| cycles(false)));
    }
}

fn guard_config(mode: GuardMode) -> GuardConfig {
    GuardConfig {
        mode,
        max_ttl: Duration::from_secs(60),
        quarantine_end: Time::ZERO,
        reason: StartReason::FirstStart,
        incarnation: 1,
        fence_base: 1 << 50,
        // No bench comes to the end of these.
        durable: Durable {
            horizon: Time::from_millis(3_600_000),
            ttl_in_use: Duration::from_secs(60),
            ceiling: 1 << 51,
            records: 0,
        },
    }
}

/// An engine with a hundred thousand locks of that TTL.
fn filled(engine: Engine, mut session: Session, ttl_ms: &[u8]) -> Engine {
    let mut batch = engine.batch(Moment::default());
    let mut out = Vec::with_capacity(64);
    for i in 0..100_000 {
        out.clear();
        let acquire = [b"SET", &key(i)[..], TOKEN, b"NX", b"PX", ttl_ms];
        batch.execute(&mut session, &acquire, &mut out);
    }
    drop(batch);
    engine
}

fn fresh(c: &mut Criterion) {
    let mut group = c.benchmark_group("fresh");
    group.throughput(Throughput::Elements(100_000));
    group.sample_size(10);
    group.bench_function("set_100k", |b| {
        b.iter_batched(
            engine,
            |(engine, session)| filled(engine, session, b"30000"),
            BatchSize::LargeInput,
        );
    });
}

fn sweep(c: &mut Criterion) {
    let mut group = c.benchmark_group("sweep");
    group.sample_size(10);
    let filled = || {
        let (engine, session) = engine();
        filled(engine, session, b"1000")
    };
    group.throughput(Throughput::Elements(100_000));
    group.bench_function("reclaim_100k", |b| {
        b.iter_batched(
            filled,
            |engine| {
                while engine.sweep(Time::from_millis(1001), 4096).visited > 0 {}
                engine
            },
            BatchSize::LargeInput,
        );
    });
    let engine = filled();
    group.bench_function("nothing_ended_100k", |b| {
        b.iter(|| black_box(engine.sweep(Time::from_millis(999), 100_000)));
    });
}

criterion_group!(benches, cycle, guard, fresh, sweep);
criterion_main!(benches);
