//! The results of a run as a table or as JSON. Pure: numbers come in, text comes out.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::load::Measured;
use super::process::CpuTime;
use super::recorder::exact;
use super::target::Target;
use crate::json::Object;

/// A run and what it gave.
#[derive(Debug)]
pub(super) struct Report<'r> {
    pub(super) target: &'r Target,
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
    pub(super) measured: &'r Measured,
}

impl Report<'_> {
    /// For a person.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(
            text,
            "{} on {} ({} {})",
            self.workload, self.target.address, self.target.name, self.target.version
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
        let user = self.measured.server_cpu.and_then(CpuTime::user_share);
        let _ = match self.cpu_us() {
            Some(all) => writeln!(
                text,
                "\nCPU time of the server: {all:.2} us per command, {:.2} of them outside of the kernel",
                all * user.unwrap_or(0.0)
            ),
            None => match &self.target.process {
                Err(reason) => writeln!(text, "\nno CPU time of the server, for {reason}"),
                Ok(_) => writeln!(text, "\nno CPU time of the server, for it has ended"),
            },
        };
        let _ = writeln!(
            text,
            "{:.2} s measured, latencies in microseconds, every reply was checked",
            self.measured.recorder.elapsed.as_secs_f64()
        );
        text
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let server = Object::default()
            .text("name", &self.target.name)
            .text("version", &self.target.version)
            .text("address", &self.target.address.to_string());
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
            .decimal("seconds", self.measured.recorder.elapsed.as_secs_f64())
            .number("commands", commands)
            .decimal("commands_per_second", self.per_second(commands))
            .number(
                "operations",
                self.measured
                    .recorder
                    .steps
                    .last()
                    .map_or(0, Histogram::len),
            )
            .number("commands_with_warmup", self.measured.recorder.replies_total)
            .number("errors", 0)
            .decimal("cpu_us_per_command", self.cpu_us().unwrap_or(f64::NAN))
            .object("latency_us", latencies);
        object.finish() + "\n"
    }

    /// Each step, and all of them together as the last row if there are several.
    fn rows(&self) -> Vec<(&'static str, Histogram<u64>)> {
        let recorder = &self.measured.recorder;
        let steps = self
            .steps
            .iter()
            .copied()
            .zip(recorder.steps.iter().cloned());
        let mut rows: Vec<_> = steps.collect();
        if rows.len() > 1 {
            // It has the bounds of those that are there already.
            rows.extend(recorder.all().map(|all| ("all", all)));
        }
        rows
    }

    /// CPU time of the server per command, in microseconds.
    fn cpu_us(&self) -> Option<f64> {
        let steps = self.measured.recorder.steps.iter();
        let commands: u64 = steps.map(Histogram::len).sum();
        Some(self.measured.server_cpu?.all * 1e6 / exact(commands))
    }

    fn per_second(&self, commands: u64) -> f64 {
        exact(commands)
            / self
                .measured
                .recorder
                .elapsed
                .as_secs_f64()
                .max(f64::MIN_POSITIVE)
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

const QUANTILES: &[(&str, f64)] = &[("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redlock_client::NodeAddress;

    use super::super::recorder::Recorder;
    use super::*;
    use crate::server_info::ServerInfo;

    fn target() -> Target {
        let address = NodeAddress::parse("127.0.0.1:6379").expect("an address");
        let info = ServerInfo::parse(b"redis_version:8.0.6\r\n");
        Target::new(&info, address.into(), Err("it runs elsewhere".to_owned()))
    }

    fn measured() -> Measured {
        let mut recorder = Recorder::new(2).expect("bounds that fit");
        recorder.start();
        recorder.note(0, Duration::from_micros(100), 10);
        recorder.note(1, Duration::from_micros(200), 10);
        recorder.elapsed = Duration::from_secs(2);
        Measured {
            recorder,
            server_cpu: Some(CpuTime {
                all: 0.0001,
                user: 0.02,
                system: 0.08,
            }),
            load_cpu_seconds: None,
            machine_cpu_seconds: None,
        }
    }

    fn report<'r>(target: &'r Target, measured: &'r Measured) -> Report<'r> {
        Report {
            target,
            workload: "cycle-delex".to_owned(),
            connections: 50,
            pipeline: 1,
            threads: 1,
            keys: 100_000,
            key_len: 30,
            token_len: 32,
            ttl_ms: 30_000,
            steps: vec!["acquire", "release"],
            measured,
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_step_and_for_all() {
        let (target, measured) = (target(), measured());
        let table = report(&target, &measured).table();
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
        assert!(table.contains("5.00 us per command, 1.00 of"), "{table}");
        let without = Measured {
            server_cpu: None,
            ..measured
        };
        let table = report(&target, &without).table();
        assert!(table.contains("for it runs elsewhere"), "{table}");
    }

    #[test]
    fn json_has_rates_and_latencies() {
        let (target, measured) = (target(), measured());
        let json = report(&target, &measured).json();
        for part in [
            "\"workload\":\"cycle-delex\"",
            "\"commands\":20,\"commands_per_second\":10.000,\"operations\":10",
            "\"errors\":0,\"cpu_us_per_command\":5.000",
            "\"acquire\":{\"count\":10,\"mean\":100.",
            "\"all\":{\"count\":20",
        ] {
            assert!(json.contains(part), "{part} in {json}");
        }
    }
}
