//! The proof that a world is determined by its scenario: run it twice, compare event by event.

use std::fmt::{Display, Formatter, Result as FmtResult};

use crate::scenario::Scenario;
use crate::sim::World;
use crate::span::SimTime;

/// Where two runs part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the first event that differs, counted from 0.
    pub event: usize,
    /// When it came in the first run, and in the second; `None` where there was no such event.
    pub at: (Option<SimTime>, Option<SimTime>),
    /// What was recorded last up to then, in each run.
    pub last: (String, String),
}

/// Runs a scenario twice; where the runs part, if they do.
pub fn check_determinism(scenario: &Scenario) -> Option<Difference> {
    first_difference(scenario, scenario)
}

/// Where the runs of two scenarios part, if they do.
pub fn first_difference(one: &Scenario, other: &Scenario) -> Option<Difference> {
    let hashes = |scenario: &Scenario| {
        let mut world = World::hashed(scenario);
        world.run();
        world.take_hashes()
    };
    let (first, second) = (hashes(one), hashes(other));
    if first == second {
        return None;
    }
    let event = first.iter().zip(&second).position(|(a, b)| a != b);
    let event = event.unwrap_or(first.len().min(second.len()));
    let (at_first, last_first) = at_event(one, event);
    let (at_second, last_second) = at_event(other, event);
    Some(Difference {
        event,
        at: (at_first, at_second),
        last: (last_first, last_second),
    })
}

/// When the `event`th event came, and what was recorded last.
fn at_event(scenario: &Scenario, event: usize) -> (Option<SimTime>, String) {
    let mut world = World::new(scenario);
    let end = SimTime::from(scenario.setup.run_for);
    while usize::try_from(world.events()).unwrap_or(usize::MAX) <= event {
        if !world.step() || world.now() > end {
            return (None, "the run was over".to_owned());
        }
    }
    let last = world.history().entries.last();
    let text = last.map_or_else(String::new, |entry| {
        format!("{} {:?}", entry.at, entry.event)
    });
    (Some(world.now()), text)
}

impl Display for Difference {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        let at = |at: Option<SimTime>| at.map_or_else(|| "never".to_owned(), |at| at.to_string());
        write!(
            f,
            "the runs part at event {}: at {} after `{}`, and at {} after `{}`",
            self.event,
            at(self.at.0),
            self.last.0,
            at(self.at.1),
            self.last.1
        )
    }
}
