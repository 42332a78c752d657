//! What a lab with faults runs, how it is judged when it ends, and the files that are written then.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use locknode_testkit::cluster::Recorder;
use locknode_testkit::history::{Event, History};
use locknode_testkit::{GuardMode, Scenario, Setup, SimTime, Swarm, Timeline};

use super::flags::LabFlags;
use super::layout::moment;
use super::screen::Screen;
use super::verdict::Verdict;
use crate::duration;
use crate::failure::{Exit, Failure};
use crate::figures::counted;
use crate::history_file;
use crate::output;
use crate::scenario_file;

/// A run of a lab.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) title: String,
    /// Nodes, and the faults and clients of a seed or a file: by it is judged what was promised.
    pub(super) scenario: Scenario,
    /// The file for the timeline, if one is wanted.
    timeline: Option<PathBuf>,
    /// The file for the history, if one is wanted.
    history: Option<PathBuf>,
    /// The command that repeats it, unless it is up to programs outside.
    pub(super) again: Option<String>,
}

impl Run {
    /// What the flags ask for.
    ///
    /// # Errors
    ///
    /// When there would be too many nodes, or a scenario cannot be read.
    pub(super) fn of(flags: &LabFlags) -> Result<Self, Failure> {
        let (scenario, title, name, again) = match (flags.chaos, &flags.script) {
            (Some(seed), _) => {
                let swarm = Swarm::chaos(flags.ttl).run_for(flags.run_for);
                let swarm = swarm.guard(flags.guard().unwrap_or(GuardMode::Memory));
                let swarm = swarm.clients(flags.clients.unwrap_or(CHAOS_CLIENTS));
                let scenario = swarm.nodes(nodes(flags)?).scenario(seed);
                let again = again(&scenario.setup);
                let title = format!("chaos of seed {seed}, one lock");
                (scenario, title, format!("chaos-{seed}"), Some(again))
            }
            (None, Some(path)) => {
                let mut scenario = scenario_file::read(path)?;
                scenario.setup.guard = guarded(scenario.setup.guard, flags.guard());
                let text = |name: Option<&OsStr>| name.unwrap_or_default().display().to_string();
                let mut again = format!("locknode lab --script {}", path.display());
                match flags.guard() {
                    Some(GuardMode::Off) => again.push_str(" --restart-guard off"),
                    Some(_) => again.push_str(" --restart-guard on"),
                    None => {}
                }
                let (file, stem) = (text(path.file_name()), text(path.file_stem()));
                (scenario, file, stem, Some(again))
            }
            (None, None) => {
                let guard = match flags.guard() {
                    Some(GuardMode::Off) => GuardMode::Off,
                    _ => GuardMode::Long,
                };
                let setup = Setup {
                    nodes: nodes(flags)?,
                    clients: flags.clients.unwrap_or(1),
                    guard,
                    max_ttl: flags.max_ttl,
                    delay: (Duration::ZERO, Duration::ZERO),
                    ..Setup::default()
                };
                let title = "faults on demand".to_owned();
                (Scenario::new(setup), title, String::new(), None)
            }
        };
        let setup = &scenario.setup;
        // One sees the difference in two pictures side by side.
        let (mark, without) = match setup.guard {
            GuardMode::Off => ("-guard-off", ", without restart guard"),
            _ => ("", ""),
        };
        let default = PathBuf::from(format!("locknode-{name}{mark}.html"));
        let default = again.is_some().then_some(default);
        let clients = counted(setup.clients, "client");
        let nodes = counted(setup.nodes, "node");
        Ok(Self {
            title: format!("{title}: {clients}, {nodes}{without}"),
            scenario,
            timeline: flags.timeline.clone().or(default),
            history: flags.history.clone(),
            again,
        })
    }

    /// Checks that the files can be written: nobody wants to learn that after ten minutes.
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

    /// Judges the run, reports that, and writes the files.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, or standard output fails; after a broken promise that is only reported, and the exit code
    /// is that of the promise.
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
            let end = moment(wire.history.end);
            text.push_str(&format!("Interrupted after {end}.\n"));
        }
        text.push_str(&sentences(&verdict));
        let drawn = self.timeline.as_deref();
        let drawn = drawn.map(|path| self.draw(path, &mut wire.history, &verdict).map(|()| path));
        if let Some(Ok(path)) = drawn {
            text.push_str(&format!("\nTimeline, for a browser: {}\n", path.display()));
        }
        if let Some(Ok(path)) = kept {
            text.push_str(&format!("History, as lines of JSON: {}\n", path.display()));
        }
        if let Some(again) = &self.again {
            text.push_str(&format!("To repeat it: {again}\n"));
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
        let page = Timeline::new(history)
            .headline(verdict.headline(title, self.again.clone()))
            .marks(verdict.marks())
            .html();
        fs::write(path, page).map_err(|error| unwritable("timeline", path, &error))
    }
}

/// The number of nodes.
fn nodes(flags: &LabFlags) -> Result<u8, Failure> {
    match u8::try_from(flags.nodes) {
        Ok(nodes @ ..=16) => Ok(nodes),
        _ => Err(Failure::usage(format!(
            "--nodes {}: with faults a lab has at most 16 nodes",
            flags.nodes
        ))),
    }
}

/// How the nodes of a scenario guard their restarts if another guard is asked for. A guard with a disk is a guard, too.
fn guarded(scenario: GuardMode, asked: Option<GuardMode>) -> GuardMode {
    match (scenario, asked) {
        (_, Some(GuardMode::Off)) => GuardMode::Off,
        (GuardMode::Off, Some(guard)) => guard,
        (guard, _) => guard,
    }
}

/// The command that repeats a chaos.
fn again(setup: &Setup) -> String {
    let mut line = format!(
        "locknode lab --chaos {} --clients {} --for {}",
        setup.seed,
        setup.clients,
        duration::display(setup.run_for)
    );
    if setup.nodes != NODES {
        line.push_str(&format!(" --nodes {}", setup.nodes));
    }
    if setup.max_ttl != Duration::from_secs(1) {
        line.push_str(&format!(" --ttl {}", duration::display(setup.max_ttl)));
    }
    if setup.guard == GuardMode::Off {
        line.push_str(" --restart-guard off");
    }
    line
}

/// The sentences of a verdict.
fn sentences(verdict: &Verdict) -> String {
    let screen = Screen::new();
    let width = if screen.is_terminal {
        screen.canvas().width
    } else {
        usize::MAX
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
    history.entries.retain(|entry| {
        let Event::Refused { node, .. } = entry.event else {
            return true;
        };
        let last = refused_at.get_mut(usize::from(node));
        let last = last.filter(|last| entry.at.since(**last) >= SPOT);
        last.map(|last| *last = entry.at).is_some()
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
const SPOT: Duration = Duration::from_millis(40);

/// As many as make the lock worth waiting for.
const CHAOS_CLIENTS: u8 = 8;

/// The default of `--nodes`.
const NODES: u8 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_that_is_asked_for_takes_no_better_one_away() {
        use GuardMode::{Always, Long, Memory, Off};
        for (scenario, asked, want) in [
            (Off, None, Off),
            (Off, Some(Memory), Memory),
            (Memory, Some(Memory), Memory),
            (Long, Some(Memory), Long),
            (Always, Some(Memory), Always),
            (Always, None, Always),
            (Always, Some(Off), Off),
        ] {
            assert_eq!(guarded(scenario, asked), want, "{scenario:?} {asked:?}");
        }
    }
}
