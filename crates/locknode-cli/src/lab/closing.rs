//! How a lab ends: a verdict, and the files that were asked for.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use locknode_testkit::cluster::Recorder;
use locknode_testkit::history::{Event, History};
use locknode_testkit::{Scenario, SimTime, Timeline};

use super::board::clock;
use super::screen::Screen;
use super::verdict::Verdict;
use crate::failure::{Exit, Failure};
use crate::history_file;
use crate::output;

/// What the run reports and writes at its end.
#[derive(Debug)]
pub(super) struct Closing {
    pub(super) title: String,
    /// By it is judged what was promised.
    pub(super) scenario: Scenario,
    /// The file for the picture, if one is wanted.
    pub(super) timeline: Option<PathBuf>,
    /// The file for the history, if it is wanted.
    pub(super) history: Option<PathBuf>,
    /// The line that does it again, if one does.
    pub(super) again: Option<String>,
}

impl Closing {
    /// Looks whether the files can be written.
    ///
    /// # Errors
    ///
    /// When not, with what to do.
    pub(super) fn prepare(&self) -> Result<(), Failure> {
        for (what, path) in [("timeline", &self.timeline), ("history", &self.history)] {
            if let Some(path) = path {
                touch(path).map_err(|error| unwritable(what, path, &error))?;
            }
        }
        Ok(())
    }

    /// Tells how it ended, and draws it.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, or standard output fails; after a broken promise that is told, and the exit code is of the
    /// promise.
    pub(super) fn conclude(
        &self,
        recorder: &Recorder,
        is_cut_short: bool,
    ) -> Result<Exit, Failure> {
        let mut wire = recorder.wire_history();
        let verdict = Verdict::of(&wire, &self.scenario);
        let kept = self.history.as_deref();
        let kept = kept.map(|path| history_file::write(path, &wire.history).map(|()| path));
        let mut text = String::from("\n");
        if is_cut_short {
            let end = clock(wire.history.end);
            text.push_str(&format!("It was ended after {}.\n", end.trim()));
        }
        text.push_str(&said(&verdict));
        let drawn = self.timeline.as_deref();
        let drawn = drawn.map(|path| self.draw(path, &mut wire.history, &verdict).map(|()| path));
        if let Some(Ok(path)) = drawn {
            let path = path.display();
            text.push_str(&format!("\nA picture of all that, for a browser: {path}\n"));
        }
        if let Some(Ok(path)) = kept {
            text.push_str(&format!("All of it, as JSON: {}\n", path.display()));
        }
        if let Some(again) = &self.again {
            text.push_str(&format!("Once more: {again}\n"));
        }
        let results = [
            output::write(&text),
            drawn.transpose().map(drop),
            kept.transpose().map(drop),
        ];
        let mut failures = results.into_iter().filter_map(Result::err);
        if !verdict.is_bad {
            return failures.next().map_or(Ok(Exit::Success), Err);
        }
        for failure in failures.filter(|failure| failure.exit() != Exit::Success) {
            let _ = writeln!(io::stderr(), "locknode: {failure}");
        }
        Ok(Exit::Broken)
    }

    fn draw(&self, path: &Path, history: &mut History, verdict: &Verdict) -> Result<(), Failure> {
        thin(history);
        let title = format!("locknode lab: {}", self.title);
        let again = self.again.clone();
        let page = Timeline::new(history)
            .headline(verdict.headline(title, again))
            .marks(verdict.marks())
            .html();
        fs::write(path, page).map_err(|error| unwritable("timeline", path, &error))
    }
}

/// The sentences of a verdict.
fn said(verdict: &Verdict) -> String {
    let screen = Screen::new();
    let width = match screen.is_terminal {
        true => screen.canvas().width,
        false => usize::MAX,
    };
    let lines = [&verdict.story, &verdict.judgement];
    let lines = lines.into_iter().chain(&verdict.more);
    lines
        .filter(|line| !line.is_empty())
        .map(|line| wrapped(line, width) + "\n")
        .collect()
}

/// A line cut between words where it would not fit.
fn wrapped(line: &str, width: usize) -> String {
    let mut text = String::new();
    let mut used = 0;
    for word in line.split_inclusive(' ') {
        if used > 0 && used + word.trim_end().len() > width {
            text.truncate(text.trim_end().len());
            text.push('\n');
            used = 0;
        }
        text.push_str(word);
        used += word.len();
    }
    text
}

/// Keeps of a node's refusals in its quarantine one for each that would be on the same spot of the picture.
fn thin(history: &mut History) {
    let mut refused_at = vec![SimTime::ZERO; usize::from(history.nodes)];
    history.entries.retain(|entry| match entry.event {
        Event::Refused { node, .. } => match refused_at.get_mut(usize::from(node)) {
            Some(last) if entry.at.since(*last) >= SPOT => {
                *last = entry.at;
                true
            }
            _ => false,
        },
        _ => true,
    });
}

/// Creates a file, or checks that an existing one can be written. A pipe is left alone: its reader would take this for everything.
fn touch(path: &Path) -> io::Result<()> {
    let is_pipe = |found: fs::Metadata| !found.is_file() && !found.is_dir();
    if fs::metadata(path).is_ok_and(is_pipe) {
        return Ok(());
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    options.open(path).map(drop)
}

/// `what` is called as the flag that chooses its file.
fn unwritable(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::unavailable(format!(
        "cannot write the {what} to {}: {error}; choose another file with --{what}",
        path.display()
    ))
}

/// Two signs that are so near to each other are one to the eye.
const SPOT: std::time::Duration = std::time::Duration::from_millis(40);
