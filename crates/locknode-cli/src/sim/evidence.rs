//! The files of a world that broke a promise: a shrunk scenario that replays it, and a picture.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use locknode_testkit::{Report, Scenario, Shrunk, SimTime, Trigger, shrink_with};

use super::SimFlags;
use super::progress::{Progress, REDRAW};
use crate::failure::Failure;
use crate::history_file;

/// A world that broke a promise, before and after shrinking.
#[derive(Debug)]
pub(super) struct Evidence {
    pub(super) seed: u64,
    /// The world of the seed.
    pub(super) whole: Report,
    /// The shorter one; the same when it could not be made shorter.
    pub(super) short: Report,
    /// Worlds that it took to make it shorter.
    pub(super) runs: u32,
    pub(super) scenario_file: PathBuf,
    pub(super) timeline_file: PathBuf,
}

impl Evidence {
    /// Makes the scenario shorter and writes the files. `is_interrupted` leaves it as long as it is.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub(super) fn gather(
        scenario: &Scenario,
        flags: &SimFlags,
        is_interrupted: &AtomicBool,
    ) -> Result<Self, Failure> {
        let shrunk = shorten(scenario, is_interrupted)?;
        let seed = scenario.setup.seed;
        let in_dir = |ending: &str| flags.out.join(format!("locknode-sim-{seed}.{ending}"));
        let timeline = flags.timeline.clone();
        let evidence = Self {
            seed,
            short: in_order(&shrunk.scenario),
            whole: Report::of(scenario),
            runs: shrunk.runs,
            scenario_file: in_dir("txt"),
            timeline_file: timeline.unwrap_or_else(|| in_dir("html")),
        };
        create(&flags.out)?;
        write(&evidence.scenario_file, &evidence.file())?;
        let timeline = Some(&*evidence.timeline_file);
        flags.write_files(&evidence.short, timeline, &evidence.replay())?;
        Ok(evidence)
    }

    /// The line that shows it again.
    pub(super) fn replay(&self) -> String {
        format!(
            "locknode sim --replay {} --expect {:016x}",
            shell_word(&self.scenario_file),
            self.short.hash()
        )
    }

    /// The scenario, with what it shows above it.
    fn file(&self) -> String {
        let mut text = format!(
            "# Shrunk from seed {}: {} of {} steps are left. {}\n",
            self.seed,
            self.short.scenario().steps.len(),
            self.whole.scenario().steps.len(),
            self.replay()
        );
        let worst = self.short.gravest_first().first().map(ToString::to_string);
        for line in worst.iter().flat_map(|worst| worst.lines()) {
            text.extend(["# ", line, "\n"]);
        }
        text.push_str(&self.short.scenario().to_string());
        text
    }
}

/// Creates the directory of `--out` if it is missing.
///
/// # Errors
///
/// When that does not work, with what to do.
pub(super) fn create(dir: &Path) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|error| {
        Failure::unavailable(format!(
            "cannot create the directory {}: {error}; choose another one with --out",
            dir.display()
        ))
    })
}

/// Writes a file.
///
/// # Errors
///
/// When that does not work, with what to do.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| {
        Failure::unavailable(format!(
            "cannot write {}: {error}; choose another place with --out or --timeline",
            path.display()
        ))
    })
}

impl SimFlags {
    /// The world of a scenario, with its messages if anything that is to be written has them.
    pub(super) fn report(&self, scenario: &Scenario) -> Report {
        if self.timeline.is_some() || self.history.is_some() {
            Report::with_messages(scenario)
        } else {
            Report::of(scenario)
        }
    }

    /// Writes the picture to this file, if one is named, and the history if it was asked for.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub(super) fn write_files(
        &self,
        report: &Report,
        timeline: Option<&Path>,
        replay: &str,
    ) -> Result<(), Failure> {
        if let Some(path) = timeline {
            write(path, &report.timeline(Some(replay)))?;
        }
        if let Some(path) = &self.history {
            history_file::write(path, report.history())?;
        }
        Ok(())
    }

    /// The lines that name those files.
    pub(super) fn file_lines(&self, timeline: Option<&Path>) -> String {
        let files = [("timeline", timeline), ("history", self.history.as_deref())];
        let line = |(name, path): (&str, Option<&Path>)| {
            path.map(|path| format!("{name:<8}  {}\n", path.display()))
        };
        files.into_iter().filter_map(line).collect()
    }
}

/// What the thread that makes a scenario shorter reports.
enum Shrinking {
    /// How many worlds it has run, and how many steps are left.
    Under(u32, usize),
    Done(Shrunk),
}

/// Makes a scenario shorter, on a thread of its own so that Ctrl-C ends it.
fn shorten(scenario: &Scenario, is_interrupted: &AtomicBool) -> Result<Shrunk, Failure> {
    let (sender, reports) = mpsc::channel();
    let work = scenario.clone();
    let body = move || {
        // Nobody waits for it any more after Ctrl-C.
        let report = |report| drop(sender.send(report));
        let shrunk = shrink_with(&work, RUNS_MAX, |runs, steps| {
            report(Shrinking::Under(runs, steps));
        });
        report(Shrinking::Done(shrunk));
    };
    thread::Builder::new()
        .name("shrink".to_owned())
        .spawn(body)
        .map_err(|error| Failure::internal(format!("cannot start a thread: {error}")))?;
    let shorter = shorter(&reports, scenario, is_interrupted)?;
    Ok(shorter.unwrap_or_else(|| Shrunk {
        scenario: scenario.clone(),
        runs: 0,
    }))
}

/// Waits for the thread that makes a scenario shorter, and shows how far it is; `None` when it was interrupted.
fn shorter(
    reports: &Receiver<Shrinking>,
    scenario: &Scenario,
    is_interrupted: &AtomicBool,
) -> Result<Option<Shrunk>, Failure> {
    let (seed, all) = (scenario.setup.seed, scenario.steps.len());
    let mut progress = Progress::new();
    while !is_interrupted.load(Ordering::Relaxed) {
        match reports.recv_timeout(REDRAW) {
            Ok(Shrinking::Done(shrunk)) => return Ok(Some(shrunk)),
            Ok(Shrinking::Under(runs, steps)) => progress.show(|| {
                format!("shrinking seed {seed}: {steps} of {all} steps left after {runs} runs")
            }),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::internal(format!(
                    "seed {seed} broke a promise, and shrinking its scenario failed: that is a bug of locknode, please \
                     report it with the seed and the lines above"
                )));
            }
        }
    }
    Ok(None)
}

/// Runs a scenario with its steps in the order of time, for people to read; as it is if it then breaks something else.
fn in_order(scenario: &Scenario) -> Report {
    let mut sorted = scenario.clone();
    sorted.steps.sort_by_key(|step| match step.when {
        Trigger::At(at) => at,
        Trigger::On { .. } => SimTime::NEVER,
    });
    let [as_it_is, sorted] = [scenario, &sorted].map(Report::with_messages);
    let worst = |report: &Report| report.gravest_first().first().map(|it| it.kind);
    if worst(&sorted) == worst(&as_it_is) {
        sorted
    } else {
        as_it_is
    }
}

/// A path as one word for a shell.
pub(super) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-+=:@,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Worlds that are spent on a shorter scenario: some seconds.
const RUNS_MAX: u32 = 1_000;

#[cfg(test)]
mod tests {
    use locknode_testkit::Swarm;

    use super::*;
    use crate::failure::Exit;

    #[test]
    fn a_thread_that_fails_is_not_taken_for_ctrl_c() {
        let (sender, shrunk) = mpsc::channel();
        drop(sender);
        let scenario = Swarm::default().scenario(7);
        let failed = shorter(&shrunk, &scenario, &AtomicBool::new(false)).unwrap_err();
        assert_eq!(failed.exit(), Exit::Internal);
        assert!(failed.to_string().contains("seed 7"), "{failed}");
        let interrupted = shorter(&shrunk, &scenario, &AtomicBool::new(true));
        assert!(matches!(interrupted, Ok(None)));
    }

    #[test]
    fn paths_become_one_word_for_a_shell() {
        for (path, expected) in [
            ("./locknode-sim-7.txt", "./locknode-sim-7.txt"),
            ("/a b/c.txt", "'/a b/c.txt'"),
            ("it's", r"'it'\''s'"),
            ("$(x)", "'$(x)'"),
        ] {
            assert_eq!(shell_word(Path::new(path)), expected);
        }
    }
}
