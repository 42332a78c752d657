//! `--chaos` and `--script`: clients and faults on real nodes, shown while they go on, judged when they end, drawn in a timeline.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, Recorder};
use locknode_testkit::history::LeftOut;
use locknode_testkit::{Scenario, SimTime};
use redlock_client::Drift;
use tokio::time::{MissedTickBehavior, interval};

use super::board::{Board, clock};
use super::closing::Closing;
use super::screen::Screen;
use super::stage::Stage;
use crate::failure::Failure;
use crate::output;

/// A scenario and how it is told.
#[derive(Debug)]
pub(super) struct Show {
    /// Nodes, faults and clients: by it is judged what was promised.
    pub(super) scenario: Scenario,
    pub(super) title: String,
    /// The file for the picture.
    pub(super) timeline: PathBuf,
    /// The file for the history, if it is wanted.
    pub(super) history: Option<PathBuf>,
    /// The line that does it again.
    pub(super) again: String,
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
        let setup = &self.scenario.setup;
        // A connection that a lost reply has silenced is given up in a part of a TTL.
        let patience = (setup.max_ttl / 5).min(PATIENCE_MAX);
        let drift = Drift::new(setup.drift_ppm, setup.drift_constant);
        Stage::new(cluster, recorder, |builder| {
            builder.drift(drift).connect_timeout(patience)
        })
    }

    /// Looks whether the piece can be played and its files be written: nobody is to learn of that after ten minutes.
    ///
    /// # Errors
    ///
    /// When not, with what to do.
    pub(super) fn prepare(&self, stage: &Stage) -> Result<(), Failure> {
        stage.steps(&self.scenario)?;
        self.closing().prepare()
    }

    /// How it ends.
    pub(super) fn closing(&self) -> Closing {
        Closing {
            title: self.title.clone(),
            scenario: self.scenario.clone(),
            timeline: Some(self.timeline.clone()),
            history: self.history.clone(),
            again: Some(self.again.clone()),
        }
    }

    /// Plays the piece and shows it.
    ///
    /// # Errors
    ///
    /// When the piece cannot be played, or standard output fails.
    pub(super) async fn play(&self, stage: &Stage) -> Result<(), Failure> {
        tokio::select! {
            played = stage.play(&self.scenario) => played,
            failed = self.watch(stage) => failed,
        }
    }

    /// Shows what happens, for ever.
    async fn watch(&self, stage: &Stage) -> Result<(), Failure> {
        let (nodes, clients) = (stage.cluster.nodes(), stage.cluster.clients());
        let title = &self.title;
        let run_for = self.scenario.setup.run_for.as_secs_f64();
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

/// What those who watch are told when not all is recorded any more.
fn blindness(left_out: LeftOut) -> Option<String> {
    let since = left_out.since?;
    let since = clock(since);
    Some(format!(
        "too much happens: not all is shown and judged from {} on",
        since.trim()
    ))
}

/// The client's own default.
const PATIENCE_MAX: Duration = Duration::from_secs(1);

/// Five times a second: one sees a crash that lasts a moment, and can still read.
const REDRAW: Duration = Duration::from_millis(200);

/// In a log nothing is redrawn, so nothing waits.
const REPORT: Duration = Duration::from_millis(200);
