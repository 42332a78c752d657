//! The results of a run as a table or as JSON. Pure: numbers come in, text comes out.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::recorder::Recorder;
use crate::json::Object;

/// A run and what it gave.
#[derive(Debug)]
pub(super) struct Report<'r> {
    pub(super) server: String,
    pub(super) version: String,
    pub(super) address: String,
    pub(super) is_in_process: bool,
    pub(super) workload: String,
    pub(super) connections: u64,
    pub(super) pipeline: u64,
    pub(super) threads: u64,
    pub(super) keys: u64,
    pub(super) key_len: u64,
    pub(super) token_len: u64,
    pub(super) ttl_ms: u64,
    /// The names of the steps, in order.
    pub(super) steps: Vec<&'static str>,
    pub(super) recorder: &'r Recorder,
}

impl Report<'_> {
    /// For a person.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{} on {} ({} {})",
            self.workload, self.address, self.server, self.version
        );
        let _ = writeln!(
            text,
            "{} connections, pipeline {}, {} load threads, {} keys of {} B, tokens of {} B, TTL {} ms",
            self.connections,
            self.pipeline,
            self.threads,
            self.keys,
            self.key_len,
            self.token_len,
            self.ttl_ms
        );
        if self.is_in_process {
            text.push_str("the node runs in this process: client and server share the CPU\n");
        }
        let _ = writeln!(
            text,
            "\n{:<8}{:>12}{:>12}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
            "", "commands", "per second", "mean", "p50", "p90", "p99", "p99.9", "max"
        );
        for (name, histogram) in self.rows() {
            let _ = write!(
                text,
                "{name:<8}{:>12}{:>12.0}",
                histogram.len(),
                self.per_second(histogram.len())
            );
            let _ = write!(text, "{:>11}", micros(histogram.mean()));
            for quantile in QUANTILES {
                let _ = write!(
                    text,
                    "{:>11}",
                    micros(exact(histogram.value_at_quantile(quantile.1)))
                );
            }
            let _ = writeln!(text, "{:>11}", micros(exact(histogram.max())));
        }
        let _ = writeln!(
            text,
            "\n{:.2} s measured, latencies in microseconds, every reply was checked",
            self.recorder.elapsed.as_secs_f64()
        );
        text
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let server = Object::default()
            .text("name", &self.server)
            .text("version", &self.version)
            .text("address", &self.address)
            .flag("in_process", self.is_in_process);
        let mut latencies = Object::default();
        let mut commands = 0;
        for (name, histogram) in self.rows() {
            commands = histogram.len();
            latencies = latencies.object(name, latency(histogram));
        }
        let object = Object::default()
            .text("workload", &self.workload)
            .object("server", server)
            .number("connections", self.connections)
            .number("pipeline", self.pipeline)
            .number("threads", self.threads)
            .number("keys", self.keys)
            .number("key_bytes", self.key_len)
            .number("token_bytes", self.token_len)
            .number("ttl_ms", self.ttl_ms)
            .decimal("seconds", self.recorder.elapsed.as_secs_f64())
            .number("commands", commands)
            .decimal("commands_per_second", self.per_second(commands))
            .number(
                "operations",
                self.recorder.steps.last().map_or(0, Histogram::len),
            )
            .number("commands_with_warmup", self.recorder.replies_total)
            .number("errors", 0)
            .object("latency_us", latencies);
        object.finish() + "\n"
    }

    /// Each step, and all of them together as the last row if there are several.
    fn rows(&self) -> Vec<(&'static str, Histogram<u64>)> {
        let steps = self
            .steps
            .iter()
            .copied()
            .zip(self.recorder.steps.iter().cloned());
        let mut rows: Vec<_> = steps.collect();
        if rows.len() > 1 {
            let mut all = rows[0].1.clone();
            for (_, other) in &rows[1..] {
                // All have the same bounds, so nothing is out of range.
                let _ = all.add(other);
            }
            rows.push(("all", all));
        }
        rows
    }

    fn per_second(&self, commands: u64) -> f64 {
        exact(commands) / self.recorder.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

fn latency(histogram: Histogram<u64>) -> Object {
    let mut object = Object::default()
        .number("count", histogram.len())
        .decimal("mean", histogram.mean() / 1e3);
    for (name, quantile) in QUANTILES {
        object = object.decimal(name, exact(histogram.value_at_quantile(*quantile)) / 1e3);
    }
    object.decimal("max", exact(histogram.max()) / 1e3)
}

/// Nanoseconds as microseconds with one digit after the point.
fn micros(nanos: f64) -> String {
    format!("{:.1}", nanos / 1e3)
}

/// Counts and nanoseconds of a run are far below 2^53.
#[expect(
    clippy::cast_precision_loss,
    reason = "values above 2^53 do not occur and would only be rounded"
)]
fn exact(number: u64) -> f64 {
    number as f64
}

const QUANTILES: &[(&str, f64)] = &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn recorder() -> Recorder {
        let mut recorder = Recorder::new(2).expect("bounds that fit");
        recorder.start();
        recorder.note(0, Duration::from_micros(100), 10);
        recorder.note(1, Duration::from_micros(200), 10);
        recorder.elapsed = Duration::from_secs(2);
        recorder
    }

    fn report(recorder: &Recorder) -> Report<'_> {
        Report {
            server: "Redis".to_owned(),
            version: "8.0.6".to_owned(),
            address: "127.0.0.1:6379".to_owned(),
            is_in_process: false,
            workload: "cycle-delex".to_owned(),
            connections: 50,
            pipeline: 1,
            threads: 1,
            keys: 100_000,
            key_len: 30,
            token_len: 32,
            ttl_ms: 30_000,
            steps: vec!["acquire", "release"],
            recorder,
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_step_and_for_all() {
        let recorder = recorder();
        let table = report(&recorder).table();
        let rows: Vec<&str> = table.lines().filter(|line| line.contains("100.")).collect();
        assert!(
            table.starts_with("cycle-delex on 127.0.0.1:6379 (Redis 8.0.6)\n"),
            "{table}"
        );
        assert_eq!(rows.len(), 2, "{table}");
        assert!(
            table.contains("all               20          10"),
            "{table}"
        );
    }

    #[test]
    fn json_has_rates_and_latencies() {
        let recorder = recorder();
        let json = report(&recorder).json();
        for part in [
            "\"workload\":\"cycle-delex\"",
            "\"commands\":20,\"commands_per_second\":10.000,\"operations\":10",
            "\"errors\":0",
            "\"acquire\":{\"count\":10,\"mean\":100.",
            "\"all\":{\"count\":20",
        ] {
            assert!(json.contains(part), "{part} in {json}");
        }
    }
}
