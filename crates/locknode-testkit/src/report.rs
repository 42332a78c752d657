//! What came of a world, and whether it kept its promises.

use std::fmt::{Display, Formatter, Result as FmtResult};

use crate::check::{Violation, check};
use crate::history::History;
use crate::scenario::Scenario;
use crate::sim::{Counters, Recording, World};

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
            violations: check(&history, scenario),
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

    /// One line that runs the same world again; it goes with the text of the [scenario](Self::scenario) in a file.
    pub fn replay(&self) -> String {
        format!(
            "locknode sim --replay FILE   # seed {}, hash {:016x}",
            self.scenario.setup.seed, self.hash
        )
    }

    /// Does nothing when every promise was kept.
    ///
    /// # Panics
    ///
    /// When one was broken: with what was broken, the shortest scenario that still breaks it, and how to run that again.
    #[expect(clippy::panic, reason = "what a test calls to fail")]
    pub fn assert_safe(&self) {
        if self.is_safe() {
            return;
        }
        let shrunk = crate::shrink::shrink(&self.scenario, SHRINK_RUNS);
        panic!(
            "{self}\nthe shortest scenario that breaks it:\n{}",
            shrunk.scenario
        );
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
        write!(f, "replay: {}", self.replay())
    }
}

/// Runs that a failing test spends on a shorter scenario: about two seconds.
const SHRINK_RUNS: u32 = 600;

/// The first few say it all.
const SHOWN_MAX: usize = 5;
