//! A scenario from a file: run, judged, compared with what it was elsewhere.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use locknode_testkit::{Report, Scenario, Span};

use super::evidence::shell_word;
use super::inspection::difference;
use super::{SimFlags, coverage, violations};
use crate::failure::{Exit, Failure};
use crate::json::Object;
use crate::output;

/// Runs the scenario of a file.
///
/// # Errors
///
/// If the file cannot be read or is not a scenario, or the picture cannot be written.
pub(super) fn run(flags: &SimFlags, file: &Path) -> Result<Exit, Failure> {
    let scenario = read(file)?;
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
    flags.write_files(&report, &replay)?;
    let exit = match (unexpected.is_some() || differs.is_some(), report.is_safe()) {
        (true, _) => Exit::Differs,
        (false, false) => Exit::Broken,
        (false, true) => Exit::Success,
    };
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
    Ok(exit)
}

struct Outcome<'r> {
    report: &'r Report,
    /// The hash that was expected, if it is another one.
    unexpected: Option<u64>,
    /// Where two runs part.
    differs: Option<String>,
}

impl Outcome<'_> {
    fn text(&self, flags: &SimFlags) -> String {
        let report = self.report;
        let setup = &report.scenario().setup;
        let hash = report.hash();
        let mut text = violations::text(report);
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
        text.push_str(&flags.file_lines());
        if flags.coverage {
            text.push_str(&coverage::text(report.counters(), None));
        }
        text
    }

    fn json(&self, flags: &SimFlags) -> String {
        let report = self.report;
        let setup = &report.scenario().setup;
        let verdict = match (
            self.unexpected.is_some() || self.differs.is_some(),
            report.is_safe(),
        ) {
            (true, _) => "differs",
            (false, true) => "kept",
            (false, false) => "broken",
        };
        let mut object = Object::default()
            .text("verdict", verdict)
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

fn read(file: &Path) -> Result<Scenario, Failure> {
    let is_stdin = file == Path::new("-");
    let name = if is_stdin {
        "standard input".into()
    } else {
        file.display().to_string()
    };
    let opened: io::Result<Box<dyn Read>> = if is_stdin {
        Ok(Box::new(io::stdin()))
    } else {
        File::open(file).map(|file| Box::new(file) as Box<dyn Read>)
    };
    let mut bytes = Vec::new();
    let read = opened.and_then(|input| input.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes));
    let len = read.map_err(|error| Failure::unavailable(format!("cannot read {name}: {error}")))?;
    if u64::try_from(len).is_ok_and(|len| len > FILE_LEN_MAX) {
        return Err(Failure::usage(format!(
            "{name} is not a scenario: it has more than 64 MiB"
        )));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{name} is not a scenario: it is not UTF-8")))?;
    Scenario::parse(&text).map_err(|error| {
        Failure::usage(format!(
            "{name}: {error}; `locknode sim --print 0` shows a scenario"
        ))
    })
}

/// A million steps, which is what a scenario has at most, of a generous length.
const FILE_LEN_MAX: u64 = 64 << 20;
