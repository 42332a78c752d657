//! `--chaos` and `--script`: clients and faults on real nodes, shown while they go on, judged when they end, drawn in a timeline.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use locknode_testkit::cluster::{Cluster, ClusterBuilder, Recorder};
use locknode_testkit::history::LeftOut;
use locknode_testkit::{Act, Guarding, LockAct, Scenario, Setup, SimTime};
use redlock_client::{Builder, Drift};
use tokio::time::{MissedTickBehavior, interval};

use super::board::{Board, clock};
use super::chaos::Plan;
use super::closing::Closing;
use super::screen::Screen;
use super::stage::Stage;
use super::tally::counted;
use crate::failure::Failure;
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
        self.closing().prepare()
    }

    /// How it ends.
    pub(super) fn closing(&self) -> Closing {
        let (nodes, clients) = self.piece.size();
        Closing {
            title: self.piece.title(nodes, clients),
            scenario: self.piece.scenario(),
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
