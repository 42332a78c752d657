//! The outcome of a world, and whether it kept its promises.

use std::fmt::{Display, Formatter, Result as FmtResult};
use std::time::Duration;

use crate::check::{Violation, check_world};
use crate::history::History;
use crate::scenario::{Scenario, Trigger};
use crate::sim::{Counters, Recording, World};
use crate::span::SimTime;
use crate::timeline::{Headline, Mark, Timeline};

/// A world that has run, and what the checkers say of it.
#[derive(Clone, Debug)]
pub struct Report {
    scenario: Scenario,
    violations: Vec<Violation>,
    history: History,
    counters: Counters,
    events: u64,
    hash: u64,
}

impl Report {
    /// Runs a scenario and judges it.
    pub fn of(scenario: &Scenario) -> Self {
        Self::recording(scenario, Recording::Events)
    }

    /// The same, with messages in the history, for a timeline.
    pub fn with_messages(scenario: &Scenario) -> Self {
        Self::recording(scenario, Recording::Messages)
    }

    fn recording(scenario: &Scenario, recording: Recording) -> Self {
        let mut world = World::recording(scenario, recording);
        world.run();
        let (events, hash, counters) = (world.events(), world.hash(), world.counters().clone());
        let history = world.into_history();
        Self {
            violations: check_world(&history, scenario),
            scenario: scenario.clone(),
            history,
            counters,
            events,
            hash,
        }
    }

    /// Whether every promise was kept.
    pub fn is_safe(&self) -> bool {
        self.violations.is_empty()
    }

    /// The promises that were broken, in order of time.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// All that happened.
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// How often things happened.
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many events there were.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// A hash of all that happened, in order: equal for equal scenarios on any machine.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// What was run.
    pub const fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The promises that were broken, the gravest first; those of one kind in order of time.
    pub fn gravest_first(&self) -> Vec<&Violation> {
        let mut violations: Vec<&Violation> = self.violations.iter().collect();
        violations.sort_by_key(|violation| violation.kind);
        violations
    }

    /// A page with a picture of the world, for a file. `replay` is how to run it again. Messages are in it when they were
    /// [recorded](Self::with_messages).
    pub fn timeline(&self, replay: Option<&str>) -> String {
        let setup = &self.scenario.setup;
        let violations = self.gravest_first();
        let kept = || "Every promise was kept.".to_owned();
        let bug = setup
            .bug
            .map_or_else(String::new, |bug| format!(", bug {bug}"));
        let (seed, nodes, clients) = (setup.seed, setup.nodes, setup.clients);
        let head = Headline {
            title: format!("Seed {seed}: {nodes} nodes, {clients} clients{bug}"),
            verdict_is_bad: !violations.is_empty(),
            verdict: violations
                .first()
                .map_or_else(kept, |first| first.headline()),
            replay: replay.map(str::to_owned),
        };
        let marks = violations.iter().map(|violation| Mark {
            from: violation.from,
            until: violation.until,
            clients: violation.clients.clone(),
            nodes: violation.nodes.clone(),
            text: violation.headline(),
        });
        Timeline::new(&self.history)
            .headline(head)
            .marks(marks)
            .between(self.beginning(), self.history.end)
            .html()
    }

    /// From when on there is something to see.
    fn beginning(&self) -> SimTime {
        let steps = self.scenario.steps.iter();
        let times = steps.filter_map(|step| match step.when {
            Trigger::At(at) => Some(at),
            Trigger::On { .. } => None,
        });
        times.min().unwrap_or(SimTime::ZERO) - BEFORE_FIRST_STEP
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let seed = self.scenario.setup.seed;
        if self.is_safe() {
            return write!(f, "seed {seed}: {} events, every promise kept", self.events);
        }
        writeln!(f, "seed {seed}: {} promises broken", self.violations.len())?;
        for violation in self.violations.iter().take(SHOWN_MAX) {
            writeln!(f, "  {violation}")?;
        }
        write!(f, "hash {:016x}", self.hash)
    }
}

/// How long before the first step a picture begins.
const BEFORE_FIRST_STEP: Duration = Duration::from_millis(500);

/// The first few say it all.
const SHOWN_MAX: usize = 5;
