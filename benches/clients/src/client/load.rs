//! The load: N workers, each acquiring a fresh key and releasing it, over and over.

use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use locknode_peers::machine;
use serde_json::json;

/// What is asked of a client.
pub(crate) trait LockClient: Send + Sync + 'static {
    /// A lock held.
    type Held: Send;

    /// Name and versions, for the table.
    fn title(&self) -> String;

    /// Acquires a key that nobody holds; `None` is a failure.
    fn acquire(&self, key: &str) -> impl Future<Output = Option<Self::Held>> + Send;

    /// Releases it; false when no majority of the nodes is known to have let go of it.
    fn release(&self, held: Self::Held) -> impl Future<Output = bool> + Send;

    /// Returns when no reply is outstanding any more.
    fn settle(&self) -> impl Future<Output = ()> + Send;
}

/// How much to ask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Workers, and so locks in flight.
    pub(crate) in_flight: usize,
    pub(crate) duration: Duration,
}

/// Warms up, measures, and prints the report.
pub(crate) async fn run<C: LockClient>(client: C, load: Load) -> Result<(), String> {
    let client = Arc::new(client);
    // Connections, scripts, allocator, compilation at run time: not what is measured.
    work(&client, load.in_flight, load.duration / WARM_UP_SHARE, 'w').await?;
    say("warm")?;
    // Nothing is in flight, so the runtime may stand still.
    let _ = std::io::stdin().read_line(&mut String::new());
    let cpu = machine::cpu_seconds(std::process::id());
    let started = Instant::now();
    let done = work(&client, load.in_flight, load.duration, 'm').await?;
    let wall_s = started.elapsed().as_secs_f64();
    client.settle().await;
    let cpu_s = machine::cpu_seconds(std::process::id()) - cpu;
    let mut latencies_us = done.latencies_us;
    latencies_us.sort_by(f64::total_cmp);
    let report = json!({
        "client": client.title(),
        "cycles": latencies_us.len(),
        "failures": done.failures,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "p50_us": percentile(&latencies_us, 50),
        "p99_us": percentile(&latencies_us, 99),
    });
    say(&report.to_string())
}

/// What the workers did.
#[derive(Debug, Default)]
struct Done {
    /// Of every acquire that succeeded.
    latencies_us: Vec<f64>,
    failures: u64,
}

async fn work<C: LockClient>(
    client: &Arc<C>,
    in_flight: usize,
    duration: Duration,
    phase: char,
) -> Result<Done, String> {
    let deadline = Instant::now() + duration;
    let workers: Vec<_> = (0..in_flight)
        .map(|worker| {
            let keys = format!("bench:{}:{phase}:{worker}", std::process::id());
            tokio::spawn(cycle(Arc::clone(client), keys, deadline))
        })
        .collect();
    let mut total = Done::default();
    for worker in workers {
        let done = worker
            .await
            .map_err(|error| format!("a worker died: {error}"))?;
        total.latencies_us.extend(done.latencies_us);
        total.failures += done.failures;
    }
    Ok(total)
}

async fn cycle<C: LockClient>(client: Arc<C>, keys: String, deadline: Instant) -> Done {
    let mut done = Done::default();
    let mut number: u64 = 0;
    let mut now = Instant::now();
    while now < deadline {
        number += 1;
        let key = format!("{keys}:{number}");
        let started = Instant::now();
        let held = client.acquire(&key).await;
        let elapsed = started.elapsed();
        match held {
            Some(held) => {
                done.latencies_us.push(elapsed.as_secs_f64() * 1e6);
                done.failures += u64::from(!client.release(held).await);
            }
            None => done.failures += 1,
        }
        now = Instant::now();
    }
    done
}

/// The nearest rank of sorted values.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}

fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| format!("cannot report: {error}"))
}

/// The warm-up takes one part in this many of the measured time: V8 needs about a second.
const WARM_UP_SHARE: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        let rows: &[(&[f64], usize, f64)] = &[
            (&hundred, 50, 50.0),
            (&hundred, 99, 99.0),
            (&[7.0], 99, 7.0),
            (&[], 50, 0.0),
        ];
        for &(values, percent, expected) in rows {
            let found = percentile(values, percent);
            assert!(
                (found - expected).abs() < f64::EPSILON,
                "p{percent} of {values:?}"
            );
        }
    }
}
