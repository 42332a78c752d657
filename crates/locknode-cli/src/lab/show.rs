//! `--chaos` and `--script`: clients and faults on real nodes, shown while they go on, judged when they end, drawn in a timeline.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, ClusterBuilder, Recorder};
use locknode_testkit::history::{Event, History, LeftOut};
use locknode_testkit::{Act, Guarding, LockAct, Scenario, Setup, SimTime, Timeline};
use redlock_client::{Builder, Drift};
use tokio::time::{MissedTickBehavior, interval};

use super::board::{Board, clock};
use super::chaos::Plan;
use super::screen::Screen;
use super::stage::Stage;
use super::telling::counted;
use super::verdict::Verdict;
use crate::failure::{Exit, Failure};
use crate::history_file;
use crate::output;

/// What is shown.
#[derive(Debug)]
pub(super) enum Piece {
    /// Faults and clients of a seed.
    Chaos(Plan),
    /// Those of a file.
    Script(PathBuf, Box<Scenario>),
}

/// A piece and how it is told.
#[derive(Debug)]
pub(super) struct Show {
    pub(super) piece: Piece,
    /// The file for the picture.
    pub(super) timeline: PathBuf,
    /// The file for the history, if it is wanted.
    pub(super) history: Option<PathBuf>,
    /// The line that does it again.
    pub(super) again: String,
}

impl Piece {
    /// Nodes, clients and guard of the piece, on these ports.
    pub(super) fn cluster(&self, first_port: u16) -> ClusterBuilder {
        Cluster::builder()
            .setup(&self.scenario().setup)
            .first_port(first_port)
    }

    /// All that is known before it begins: by it is judged what was promised.
    fn scenario(&self) -> Scenario {
        let plan = match self {
            Self::Chaos(plan) => plan,
            Self::Script(_, scenario) => return (**scenario).clone(),
        };
        let setup = Setup {
            seed: plan.seed,
            nodes: plan.nodes,
            clients: plan.clients,
            guard: plan.guard,
            max_ttl: plan.ttl,
            delay: (Duration::ZERO, Duration::ZERO),
            run_for: plan.run_for,
            ..Setup::default()
        };
        let act = |client| {
            (
                Duration::ZERO,
                client,
                Act::Lock(LockAct::new(KEY, plan.ttl)),
            )
        };
        let acts = (0..plan.clients).map(act);
        let scenario = acts.fold(Scenario::new(setup), |scenario, (at, client, act)| {
            scenario.act(at, client, act)
        });
        plan.faults()
            .into_iter()
            .fold(scenario, |scenario, (at, fault)| scenario.at(at, fault))
    }

    /// How many nodes and clients it has.
    pub(super) fn size(&self) -> (u8, u8) {
        match self {
            Self::Chaos(plan) => (plan.nodes, plan.clients),
            Self::Script(_, scenario) => (scenario.setup.nodes, scenario.setup.clients),
        }
    }

    fn run_for(&self) -> Duration {
        match self {
            Self::Chaos(plan) => plan.run_for,
            Self::Script(_, scenario) => scenario.setup.run_for,
        }
    }

    fn title(&self, nodes: u8, clients: u8) -> String {
        let guard = match self.scenario().setup.guard {
            Guarding::Off => ", without restart guard",
            _ => "",
        };
        match self {
            Self::Chaos(plan) => format!(
                "chaos of seed {}: {}, one lock, {}{guard}",
                plan.seed,
                counted(clients, "client"),
                counted(nodes, "node"),
            ),
            Self::Script(path, _) => format!(
                "{}: {}, {}{guard}",
                path.file_name().unwrap_or_default().to_string_lossy(),
                counted(clients, "client"),
                counted(nodes, "node"),
            ),
        }
    }

    /// Sets a client up.
    fn tune(&self, builder: Builder) -> Builder {
        match self {
            // A connection that a lost reply has silenced is given up in a part of a TTL.
            Self::Chaos(plan) => builder.connect_timeout(plan.ttl / 5),
            Self::Script(_, scenario) => {
                let setup = &scenario.setup;
                builder.drift(Drift::new(setup.drift_ppm, setup.drift_constant))
            }
        }
    }
}

impl Show {
    /// A stage for the piece.
    ///
    /// # Errors
    ///
    /// When the client cannot be built.
    pub(super) fn stage(
        &self,
        cluster: Cluster,
        recorder: Arc<Recorder>,
    ) -> Result<Stage, Failure> {
        Stage::new(cluster, recorder, |builder| self.piece.tune(builder))
    }

    /// Looks whether the piece can be played and its files be written: nobody is to learn of that after ten minutes.
    ///
    /// # Errors
    ///
    /// When not, with what to do.
    pub(super) fn prepare(&self, stage: &Stage) -> Result<(), Failure> {
        if let Piece::Script(_, scenario) = &self.piece {
            stage.steps(scenario)?;
        }
        touch(&self.timeline).map_err(|error| unwritable("timeline", &self.timeline, &error))?;
        if let Some(path) = &self.history {
            touch(path).map_err(|error| unwritable("history", path, &error))?;
        }
        Ok(())
    }

    /// Plays the piece and shows it.
    ///
    /// # Errors
    ///
    /// When the piece cannot be played, or standard output fails.
    pub(super) async fn play(&self, stage: &Stage) -> Result<(), Failure> {
        let piece = async {
            match &self.piece {
                Piece::Chaos(plan) => stage.chaos(*plan, KEY).await,
                Piece::Script(_, scenario) => stage.play(scenario).await,
            }
        };
        tokio::select! {
            played = piece => played,
            failed = self.watch(stage) => failed,
        }
    }

    /// Tells how it ended, and draws it.
    ///
    /// # Errors
    ///
    /// When a file cannot be written, or standard output fails; after a broken promise that is told, and the exit code is of the
    /// promise.
    pub(super) fn conclude(&self, stage: &Stage, is_cut_short: bool) -> Result<Exit, Failure> {
        let mut history = stage.recorder.history();
        let verdict = Verdict::of(&history, &self.piece.scenario());
        let kept = self.history.as_deref();
        let kept = kept.map(|path| history_file::write(path, &history).map(|()| path));
        thin(&mut history, verdict.first_at());
        let title = format!(
            "locknode lab: {}",
            self.piece.title(history.nodes, history.clients)
        );
        let page = Timeline::new(&history)
            .headline(verdict.headline(title, self.again.clone()))
            .marks(verdict.marks())
            .html();
        let written = write(&self.timeline, &page);
        let mut text = String::from("\n");
        if is_cut_short {
            text.push_str(&format!(
                "It was ended after {}.\n",
                clock(history.end).trim()
            ));
        }
        let said = [&verdict.story, &verdict.judgement];
        let screen = Screen::new();
        let width = if screen.is_terminal {
            screen.canvas().width
        } else {
            usize::MAX
        };
        for line in said.into_iter().chain(&verdict.more) {
            text.push_str(&wrapped(line, width));
            text.push('\n');
        }
        if written.is_ok() {
            let path = self.timeline.display();
            text.push_str(&format!("\nA picture of all that, for a browser: {path}\n"));
        }
        if let Some(Ok(path)) = kept {
            text.push_str(&format!("All of it, as JSON: {}\n", path.display()));
        }
        text.push_str(&format!("Once more: {}\n", self.again));
        let results = [output::write(&text), written, kept.transpose().map(drop)];
        let mut failures = results.into_iter().filter_map(Result::err);
        if !verdict.is_bad {
            return failures.next().map_or(Ok(Exit::Success), Err);
        }
        for failure in failures.filter(|failure| failure.exit() != Exit::Success) {
            let _ = writeln!(io::stderr(), "locknode: {failure}");
        }
        Ok(Exit::Broken)
    }

    /// Shows what happens, for ever.
    async fn watch(&self, stage: &Stage) -> Result<(), Failure> {
        let (nodes, clients) = (stage.cluster.nodes(), stage.cluster.clients());
        let title = self.piece.title(nodes, clients);
        let run_for = self.piece.run_for().as_secs_f64();
        let mut board = Board::new(nodes, clients);
        let mut screen = Screen::new();
        let mut ticks = interval(if screen.is_terminal { REDRAW } else { REPORT });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut place, mut is_told, mut is_blind) = (0, false, false);
        loop {
            ticks.tick().await;
            let (entries, next) = stage.recorder.since(place);
            place = next;
            let mut news = String::new();
            for entry in &entries {
                if let Some(line) = board.take(entry) {
                    news.push_str(&line);
                    news.push('\n');
                }
            }
            let now = stage.recorder.now();
            let blind = blindness(stage.recorder.left_out());
            if screen.is_terminal {
                let left: Vec<Option<Duration>> = (0..nodes)
                    .map(|node| stage.cluster.quarantine_left(node))
                    .collect();
                let canvas = screen.canvas();
                let elapsed = now.since(SimTime::ZERO).as_secs_f64();
                let title = match &blind {
                    None => format!("{title}   {elapsed:.1}s of {run_for}s"),
                    Some(blind) => format!("{elapsed:.1}s of {run_for}s   {blind}"),
                };
                screen.draw(board.lines(&title, now, &left, canvas), canvas)?;
                continue;
            }
            if let Some(blind) = blind.filter(|_| !is_blind) {
                is_blind = true;
                news.push_str(&format!("{}  {blind}\n", clock(now)));
            }
            let [_, (overlap, is_bad)] = board.tally.lines();
            if is_bad && !is_told {
                is_told = true;
                news.push_str(&format!("{}  {overlap}\n", clock(now)));
            }
            if !news.is_empty() {
                output::write(&news)?;
            }
        }
    }
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

/// Keeps what a picture has room for: of the messages those that led to what went wrong, and of a node's refusals in its
/// quarantine one for each that would be on the same spot.
fn thin(history: &mut History, wrong_at: Option<SimTime>) {
    let messages = &mut history.messages;
    let before = messages.len();
    let until = wrong_at.map(|at| at + AROUND);
    messages.retain(|message| until.is_some_and(|until| message.sent <= until));
    let too_many = messages.len().saturating_sub(MESSAGES_DRAWN);
    messages.drain(..too_many);
    history.left_out.messages += u64::try_from(before - messages.len()).unwrap_or(u64::MAX);
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

fn write(path: &Path, page: &str) -> Result<(), Failure> {
    fs::write(path, page).map_err(|error| unwritable("timeline", path, &error))
}

/// Creates a file, or sees that what is there can be written. A pipe is left alone: whoever reads it would take this for all.
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

/// What those who watch are told when not all is recorded any more.
fn blindness(left_out: LeftOut) -> Option<String> {
    let since = left_out.since?;
    let since = clock(since);
    Some(format!(
        "too much happens: not all is shown and judged from {} on",
        since.trim()
    ))
}

/// What all clients of a chaos want.
const KEY: &str = "chaos";

/// Five times a second: one sees a crash that lasts a moment, and can still read.
const REDRAW: Duration = Duration::from_millis(200);

/// In a log nothing is redrawn, so nothing waits.
const REPORT: Duration = Duration::from_millis(200);

/// A picture of more would be black.
const MESSAGES_DRAWN: usize = 400;

/// So much of what came after a mishap is part of it.
const AROUND: Duration = Duration::from_millis(100);

/// Two signs that are so near to each other are one to the eye.
const SPOT: Duration = Duration::from_millis(40);
