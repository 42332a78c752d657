//! `--chaos` and `--script`: clients and faults on real nodes, shown while they go on, judged when they end, drawn in a timeline.

use std::path::PathBuf;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, ClusterError, Recorder};
use locknode_testkit::history::LeftOut;
use locknode_testkit::{Scenario, SimTime};
use tokio::time::{MissedTickBehavior, interval};

use super::board::{Board, clock};
use super::closing::Closing;
use super::happening::failed;
use super::screen::Screen;
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
    /// Looks whether it can be played and its files be written: nobody is to learn of that after ten minutes.
    ///
    /// # Errors
    ///
    /// When not, with what to do.
    pub(super) fn prepare(&self, cluster: &Cluster) -> Result<(), Failure> {
        let checked = cluster.check_run(&self.scenario);
        checked.map_err(|error| match error {
            ClusterError::NotHere(_) => Failure::usage(format!(
                "{error}; locknode sim --replay FILE plays it on simulated nodes"
            )),
            error => failed(&error),
        })?;
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
    pub(super) async fn play(&self, cluster: &Cluster, recorder: &Recorder) -> Result<(), Failure> {
        tokio::select! {
            played = cluster.run(&self.scenario) => played.map_err(|error| failed(&error)),
            failed = self.watch(cluster, recorder) => failed,
        }
    }

    /// Shows what happens, for ever.
    async fn watch(&self, cluster: &Cluster, recorder: &Recorder) -> Result<(), Failure> {
        let (nodes, clients) = (cluster.nodes(), cluster.clients());
        let title = &self.title;
        let run_for = self.scenario.setup.run_for.as_secs_f64();
        let mut board = Board::new(nodes, clients);
        let mut screen = Screen::new();
        let mut ticks = interval(if screen.is_terminal { REDRAW } else { REPORT });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut place, mut is_told, mut is_blind) = (0, false, false);
        loop {
            ticks.tick().await;
            let (entries, next) = recorder.since(place);
            place = next;
            let mut news = String::new();
            for entry in &entries {
                if let Some(line) = board.take(entry) {
                    news.push_str(&line);
                    news.push('\n');
                }
            }
            let now = recorder.now();
            let blind = blindness(recorder.left_out());
            if screen.is_terminal {
                let left: Vec<Option<Duration>> = (0..nodes)
                    .map(|node| cluster.quarantine_left(node))
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

/// Five times a second: one sees a crash that lasts a moment, and can still read.
const REDRAW: Duration = Duration::from_millis(200);

/// In a log nothing is redrawn, so nothing waits.
const REPORT: Duration = Duration::from_millis(200);
