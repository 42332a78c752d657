//! A scenario from a file: run, judged, compared with what it was elsewhere.

use std::fmt::Write as _;
use std::path::Path;

use locknode_testkit::{Report, Span};

use super::evidence::shell_word;
use super::inspection::difference;
use super::{SimFlags, coverage, violations};
use crate::failure::{Exit, Failure};
use crate::json::Object;
use crate::output;
use crate::scenario_file;

/// Runs the scenario of a file.
///
/// # Errors
///
/// If the file cannot be read or is not a scenario, or the picture cannot be written.
pub(super) fn run(flags: &SimFlags, file: &Path) -> Result<Exit, Failure> {
    let scenario = scenario_file::read(file)?;
    let report = flags.report(&scenario);
    let hash = report.hash();
    let unexpected = flags.expect.filter(|expected| *expected != hash);
    let differs = flags
        .check_determinism
        .then(|| difference(&report))
        .flatten();
    let replay = format!(
        "locknode sim --replay {} --expect {hash:016x}",
        shell_word(file)
    );
    flags.write_files(&report, flags.timeline.as_deref(), &replay)?;
    let outcome = Outcome {
        report: &report,
        unexpected,
        differs,
    };
    output::write(&if flags.json {
        outcome.json(flags)
    } else {
        outcome.text(flags)
    })?;
    Ok(outcome.verdict().1)
}

struct Outcome<'r> {
    report: &'r Report,
    /// The hash that was expected, if it is another one.
    unexpected: Option<u64>,
    /// Where two runs part.
    differs: Option<String>,
}

impl Outcome<'_> {
    /// The verdict in a word, and the exit code.
    fn verdict(&self) -> (&'static str, Exit) {
        let differs = self.unexpected.is_some() || self.differs.is_some();
        match self.report.is_safe() {
            _ if differs => ("differs", Exit::Differs),
            true => ("kept", Exit::Success),
            false => ("broken", Exit::Broken),
        }
    }

    fn text(&self, flags: &SimFlags) -> String {
        let report = self.report;
        let setup = &report.scenario().setup;
        let hash = report.hash();
        let mut text = violations::text(report, usize::MAX);
        let _ = writeln!(
            text,
            "seed {}: {} steps, {} simulated, {} events, hash {hash:016x}",
            setup.seed,
            report.scenario().steps.len(),
            Span(setup.run_for),
            report.events(),
        );
        if report.is_safe() {
            text.push_str("every promise was kept\n");
        }
        match (self.unexpected, flags.expect) {
            (Some(expected), _) => {
                let _ = writeln!(
                    text,
                    "not the expected world: its hash is {hash:016x}, not {expected:016x}. Compare the versions \
                     (locknode --version), and check whether the file was edited."
                );
            }
            (None, Some(_)) => text.push_str("the same world as before, event by event\n"),
            (None, None) => {}
        }
        if flags.check_determinism {
            text.push_str(&self.differs.as_ref().map_or_else(
                || "two runs were the same, event by event\n".to_owned(),
                |difference| format!("{difference}\n"),
            ));
        }
        text.push_str(&flags.file_lines(flags.timeline.as_deref()));
        if flags.coverage {
            text.push_str(&coverage::text(report.counters(), None));
        }
        text
    }

    fn json(&self, flags: &SimFlags) -> String {
        let report = self.report;
        let setup = &report.scenario().setup;
        let mut object = Object::default()
            .text("verdict", self.verdict().0)
            .number("seed", setup.seed)
            .text("hash", &format!("{:016x}", report.hash()))
            .number("steps", report.scenario().steps.len())
            .number("events", report.events())
            .decimal("simulated_seconds", setup.run_for.as_secs_f64())
            .list("violations", violations::objects(report));
        if let Some(expected) = self.unexpected {
            object = object.text("expected_hash", &format!("{expected:016x}"));
        }
        if let Some(difference) = &self.differs {
            object = object.text("difference", difference);
        }
        if flags.coverage {
            object = object.object("coverage", coverage::object(report.counters()));
        }
        object.finish() + "\n"
    }
}
