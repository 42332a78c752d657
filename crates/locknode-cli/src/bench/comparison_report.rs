//! A comparison as a table or as JSON. Pure: figures come in, text comes out.

use std::fmt::Write as _;

use super::comparison::{Comparison, Contestant, FIGURES, Figure, Turn};
use super::report::quantiles_us;
use super::statistics::Spread;
use crate::json::Object;

impl Comparison {
    /// For a person.
    pub(super) fn table(&self) -> String {
        let mut text = format!(
            "{}: {}\n{}\n\n",
            self.flags.workload.name(),
            self.load,
            self.machine
        );
        let titles: Vec<String> = (self.contestants.iter())
            .map(|contestant| contestant.target.title())
            .collect();
        let width = titles.iter().map(String::len).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "{:<width$}{:>14}{:>12}{:>15}{:>10}{:>10}",
            "medians", "us CPU/command", "in user", "commands/s", "p50 us", "p99 us"
        );
        for (title, contestant) in titles.iter().zip(&self.contestants) {
            let median = |of: fn(&Turn) -> Option<f64>, digits: usize| {
                let spread = contestant.spread(of);
                spread.map_or_else(|| "-".to_owned(), |it| format!("{:.digits$}", it.median))
            };
            let _ = writeln!(
                text,
                "{title:<width$}{:>14}{:>12}{:>15}{:>10}{:>10}",
                median(|turn| turn.cpu_us, 2),
                contestant
                    .user_us()
                    .map_or_else(|| "-".to_owned(), |us| format!("{us:.2}")),
                median(|turn| Some(turn.per_second), 0),
                median(|turn| Some(turn.p50_us), 0),
                median(|turn| Some(turn.p99_us), 0),
            );
        }
        let first = titles.first().map_or("", String::as_str);
        for (index, title) in titles.iter().enumerate().skip(1) {
            let _ = writeln!(
                text,
                "\n{title}, as a multiple of {first}'s: median, middle half, least to most"
            );
            for figure in FIGURES {
                if let Some(spread) = self.ratio(index, figure) {
                    let _ = writeln!(text, "  {:<22}{}", figure.name, times(spread));
                }
            }
        }
        text.push('\n');
        for note in self.notes() {
            let _ = writeln!(text, "{note}");
        }
        text.push_str("Every reply was checked.\n");
        text
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let servers = self.contestants.iter().enumerate();
        let servers = servers.map(|(index, contestant)| self.server_json(index, contestant));
        let object = Object::default()
            .text("workload", &self.flags.workload.name())
            .text("machine", &self.machine)
            .number("connections", self.flags.connections)
            .number("pipeline", self.flags.pipeline)
            .number("threads", self.flags.load_threads())
            .number("rounds", self.flags.rounds)
            .number("errors", 0)
            .list("servers", servers)
            .texts("notes", &self.notes());
        object.finish() + "\n"
    }

    fn server_json(&self, index: usize, contestant: &Contestant) -> Object {
        let mut object = (contestant.target.json()).number("commands", contestant.latencies.len());
        if let Some(reason) = contestant.without_cpu() {
            object = object.text("no_cpu_time", reason);
        }
        for Figure { field, of, .. } in FIGURES {
            if let Some(spread) = contestant.spread(of) {
                object = object.object(field, spread.json());
            }
        }
        let latency = quantiles_us(&contestant.latencies)
            .fold(Object::default(), |latency, (name, us)| {
                latency.decimal(name, us)
            });
        object = object.object("latency_us", latency);
        if index == 0 {
            return object;
        }
        let mut ratios = Object::default();
        for figure in FIGURES {
            if let Some(spread) = self.ratio(index, figure) {
                ratios = ratios.object(figure.field, spread.json());
            }
        }
        object.object("times_the_first", ratios)
    }
}

/// A ratio with its spread.
pub(super) fn times(spread: Spread) -> String {
    format!(
        "{:.2} times  [{:.2}-{:.2}]  ({:.2}-{:.2})",
        spread.median, spread.lower, spread.upper, spread.least, spread.most
    )
}
