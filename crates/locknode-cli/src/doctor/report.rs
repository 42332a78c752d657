//! The output and exit code of `locknode doctor`. Pure: from findings to text.

use std::fmt::Write as _;

use super::diagnosis::{Finding, Severity};
use super::examination::{Examined, Shown};
use crate::failure::Exit;
use crate::json::Object;
use crate::status;

/// What was looked at, and what was found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) nodes: Vec<Examined>,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    /// 0 when nothing is wrong, 75 when something may go wrong, 69 when something is.
    pub(super) fn exit(&self) -> Exit {
        match self.findings.iter().map(|finding| finding.severity).min() {
            Some(Severity::Problem) => Exit::Unavailable,
            Some(Severity::Warning) => Exit::Degraded,
            Some(Severity::Note) | None => Exit::Success,
        }
    }

    /// A table of the nodes, and what was found, for people.
    pub(super) fn text(&self) -> String {
        let mut rows = vec![HEADER.map(str::to_owned).to_vec()];
        rows.extend(self.nodes.iter().map(cells));
        let mut text = status::table(&rows, 2..HEADER.len());
        for finding in &self.findings {
            let name = finding.severity.name();
            let _ = write!(text, "\n{name:<8} ");
            if !finding.nodes.is_empty() {
                let _ = write!(text, "{}: ", finding.nodes.join(", "));
            }
            let _ = writeln!(text, "{}\n         {}", finding.text, finding.advice);
        }
        let [problems, warnings] = [Severity::Problem, Severity::Warning].map(|it| self.count(it));
        let verdict = match (problems, warnings) {
            (0, 0) => "nothing is wrong".to_owned(),
            _ => format!(
                "{}, {}",
                number(problems, "problem"),
                number(warnings, "warning")
            ),
        };
        let _ = writeln!(text, "\n{verdict}");
        text
    }

    /// One JSON object.
    pub(super) fn json(&self) -> String {
        let findings = self.findings.iter().map(|finding| {
            Object::default()
                .text("severity", finding.severity.name())
                .text("name", finding.name)
                .texts("nodes", &finding.nodes)
                .text("text", &finding.text)
                .text("advice", finding.advice)
        });
        let object = Object::default()
            .list("nodes", self.nodes.iter().map(json))
            .list("findings", findings)
            .number("problems", self.count(Severity::Problem))
            .number("warnings", self.count(Severity::Warning));
        object.finish() + "\n"
    }

    fn count(&self, severity: Severity) -> usize {
        let findings = self.findings.iter();
        findings.filter(|it| it.severity == severity).count()
    }
}

fn number(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn cells(node: &Examined) -> Vec<String> {
    let address = node.address.clone();
    let shown = match &node.shown {
        Ok(shown) => shown,
        Err(reason) => return vec![address, format!("away: {reason}")],
    };
    let (server, version) = shown.info.server();
    let rate = shown.rate.map_or("-".to_owned(), |rate| {
        format!("{:+.0} ppm (+-{:.0})", rate.ppm, rate.error_ppm)
    });
    let ms = |time: std::time::Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    vec![
        address,
        format!("{server} {version}").trim_end().to_owned(),
        rate,
        ms(shown.round_trips.median),
        ms(shown.round_trips.longest),
    ]
}

fn json(node: &Examined) -> Object {
    let object = Object::default().text("address", &node.address);
    match &node.shown {
        Ok(shown) => of_shown(object, shown),
        Err(reason) => object.text("away", reason),
    }
}

fn of_shown(object: Object, shown: &Shown) -> Object {
    let (server, version) = shown.info.server();
    let object = object
        .text("server", server)
        .text("version", version)
        .text("run_id", shown.info.text("run_id").unwrap_or_default())
        .number("round_trip_median_us", shown.round_trips.median.as_micros())
        .number("round_trip_max_us", shown.round_trips.longest.as_micros());
    match shown.rate {
        Some(rate) => object
            .decimal("clock_ppm", rate.ppm)
            .decimal("clock_error_ppm", rate.error_ppm),
        None => object,
    }
}

const HEADER: [&str; 5] = ["address", "server", "clock", "round trip", "longest"];
