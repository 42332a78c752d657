//! The results of a run as a table or as JSON. Pure: numbers come in, text comes out.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::load::{Load, Measured};
use super::process::CpuTime;
use super::recorder::exact;
use crate::json::Object;

/// A run and what it gave.
#[derive(Debug)]
pub(super) struct Report<'r> {
    pub(super) load: &'r Load,
    pub(super) measured: &'r Measured,
}

impl Report<'_> {
    /// For a person.
    pub(super) fn table(&self) -> String {
        let Load { flags, target, .. } = self.load;
        let mut text = format!(
            "{} on {} ({} {})\n{}\n",
            flags.workload.name(),
            target.address,
            target.name,
            target.version,
            flags.describe()
        );
        let _ = writeln!(
            text,
            "\n{:<8}{:>12}{:>12}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
            "", "commands", "per second", "mean", "p50", "p90", "p99", "p99.9", "max"
        );
        for (name, histogram) in self.rows() {
            let (count, mean) = (histogram.len(), histogram.mean() / 1e3);
            let per_second = self.per_second(count);
            let _ = write!(text, "{name:<8}{count:>12}{per_second:>12.0}{mean:>11.1}");
            for (_, us) in quantiles_us(&histogram) {
                let _ = write!(text, "{us:>11.1}");
            }
            text.push('\n');
        }
        let user = self.measured.used.server.and_then(CpuTime::user_share);
        let _ = match self.cpu_us() {
            Some(all) => writeln!(
                text,
                "\nCPU time of the server: {all:.2} us per command, {:.2} of them outside of the kernel",
                all * user.unwrap_or(0.0)
            ),
            None => match &target.process {
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
        let Load { flags, target, .. } = self.load;
        let recorder = &self.measured.recorder;
        let operations = recorder.steps.last().map_or(0, Histogram::len);
        let mut latencies = Object::default();
        let mut commands = 0;
        for (name, histogram) in self.rows() {
            commands = histogram.len();
            latencies = latencies.object(name, latency(histogram));
        }
        let object = Object::default()
            .text("workload", &flags.workload.name())
            .object("server", target.json())
            .number("connections", flags.connections)
            .number("pipeline", flags.pipeline)
            .number("threads", flags.load_threads())
            .number("keys", flags.keys)
            .number("key_bytes", flags.key_size)
            .number("token_bytes", flags.token_size)
            .number("ttl_ms", flags.ttl.as_millis())
            .decimal("seconds", recorder.elapsed.as_secs_f64())
            .number("commands", commands)
            .decimal("commands_per_second", self.per_second(commands))
            .number("operations", operations)
            .number("commands_with_warmup", recorder.replies_total)
            .number("errors", 0)
            .decimal("cpu_us_per_command", self.cpu_us().unwrap_or(f64::NAN))
            .object("latency_us", latencies);
        object.finish() + "\n"
    }

    /// Each step, and all of them together as the last row if there are several.
    fn rows(&self) -> Vec<(&'static str, Histogram<u64>)> {
        let recorder = &self.measured.recorder;
        let names = self.load.step_names().into_iter();
        let mut rows: Vec<_> = names.zip(recorder.steps.iter().cloned()).collect();
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
        Some(self.measured.used.server?.all * 1e6 / exact(commands))
    }

    fn per_second(&self, commands: u64) -> f64 {
        let seconds = self.measured.recorder.elapsed.as_secs_f64();
        exact(commands) / seconds.max(f64::MIN_POSITIVE)
    }
}

fn latency(histogram: Histogram<u64>) -> Object {
    let object = Object::default()
        .number("count", histogram.len())
        .decimal("mean", histogram.mean() / 1e3);
    quantiles_us(&histogram).fold(object, |object, (name, us)| object.decimal(name, us))
}

/// The latencies that are shown of a histogram of nanoseconds, in microseconds, with their names.
pub(super) fn quantiles_us(
    histogram: &Histogram<u64>,
) -> impl Iterator<Item = (&'static str, f64)> {
    QUANTILES
        .iter()
        .map(|&(name, quantile)| (name, exact(histogram.value_at_quantile(quantile)) / 1e3))
}

const QUANTILES: &[(&str, f64)] = &[
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use redlock_client::NodeAddress;

    use super::super::flags::BenchFlags;
    use super::super::load::Clocks;
    use super::super::recorder::Recorder;
    use super::super::target::Target;
    use super::*;
    use crate::server_address::ServerAddress;
    use crate::server_info::ServerInfo;

    fn load() -> Load {
        let flags = BenchFlags::of("--workload cycle-delex");
        let address = NodeAddress::parse("127.0.0.1:6379").expect("an address");
        let info = ServerInfo::parse(b"redis_version:8.0.6\r\n");
        let elsewhere = Err("it runs elsewhere".to_owned());
        let target = Target::new(&info, ServerAddress::plain(address), elsewhere);
        Load::new(&flags, &target, Duration::ZERO, Duration::ZERO)
    }

    fn measured() -> Measured {
        let mut recorder = Recorder::new(2).expect("bounds that fit");
        recorder.start();
        recorder.note(0, Duration::from_micros(100), 10);
        recorder.note(1, Duration::from_micros(200), 10);
        recorder.elapsed = Duration::from_secs(2);
        let server = Some(CpuTime {
            all: 0.0001,
            user: 0.02,
            system: 0.08,
        });
        let used = Clocks {
            server,
            ..Clocks::default()
        };
        Measured { recorder, used }
    }

    fn report<'r>(load: &'r Load, measured: &'r Measured) -> Report<'r> {
        Report { load, measured }
    }

    #[test]
    fn the_table_has_a_row_for_each_step_and_for_all() {
        let (load, measured) = (load(), measured());
        let table = report(&load, &measured).table();
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
            used: Clocks::default(),
            ..measured
        };
        let table = report(&load, &without).table();
        assert!(table.contains("for it runs elsewhere"), "{table}");
    }

    #[test]
    fn json_has_rates_and_latencies() {
        let (load, measured) = (load(), measured());
        let json = report(&load, &measured).json();
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
