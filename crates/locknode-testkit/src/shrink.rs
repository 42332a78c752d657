//! Makes a failing scenario shorter: fewer faults, fewer operations, a shorter run, rounder times.
//!
//! A scenario is shorter when it has fewer steps, and one is kept only if it still breaks the gravest of the promises that
//! were seen broken on the way: a shorter one that lets two clients hold a lock is worth more than one that shows a node's early grant. Steps are left out in halves, then in quarters, and so on (delta debugging, Zeller and Hildebrandt).

use std::time::Duration;

use crate::check::{Violation, ViolationKind, check_world};
use crate::scenario::{Action, Scenario, Step, Trigger};
use crate::sim::World;
use crate::span::SimTime;

/// A scenario that was made shorter.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// What is left.
    pub scenario: Scenario,
    /// Worlds that it took.
    pub runs: u32,
}

/// The shortest scenario that was found within `runs_max` runs and still breaks the gravest of the promises that `scenario`
/// breaks; the same when it breaks none.
///
/// ```
/// use std::time::Duration;
/// use locknode_testkit::{Bug, Swarm, shrink};
///
/// let swarm = Swarm::default().bug(Some(Bug::QuarantineOff));
/// let report = (0..100).map(|seed| swarm.run(seed)).find(|report| !report.is_safe());
/// let report = report.expect("a node that forgets its locks is found");
/// let shrunk = shrink(report.scenario(), 200);
/// assert!(shrunk.scenario.steps.len() < report.scenario().steps.len());
/// ```
pub fn shrink(scenario: &Scenario, runs_max: u32) -> Shrunk {
    shrink_with(scenario, runs_max, |_, _| {})
}

/// The same, and `progress` learns after each run how many there were and how many steps are left.
pub fn shrink_with(
    scenario: &Scenario,
    runs_max: u32,
    mut progress: impl FnMut(u32, usize),
) -> Shrunk {
    let mut best = scenario.clone();
    let Some(kind) = gravest(scenario) else {
        return Shrunk {
            scenario: best,
            runs: 1,
        };
    };
    let mut search = Search {
        kind,
        runs: 1,
        runs_max,
        progress: &mut progress,
    };
    search.end_early(&mut best);
    loop {
        let before = (best.steps.len(), search.runs);
        search.leave_out(&mut best, |step| matches!(step.what, Action::Fault(_)));
        search.leave_out(&mut best, |step| matches!(step.what, Action::Client(..)));
        if best.steps.len() == before.0 || search.is_over() {
            break;
        }
    }
    search.round_times(&mut best);
    search.end_early(&mut best);
    Shrunk {
        scenario: best,
        runs: search.runs,
    }
}

struct Search<'p> {
    /// The gravest of what the scenarios that were kept have broken.
    kind: ViolationKind,
    runs: u32,
    runs_max: u32,
    progress: &'p mut dyn FnMut(u32, usize),
}

impl Search<'_> {
    const fn is_over(&self) -> bool {
        self.runs >= self.runs_max
    }

    /// Whether a scenario breaks what the best one breaks, or something graver, which is then looked for.
    fn fails(&mut self, scenario: &Scenario) -> bool {
        self.runs += 1;
        (self.progress)(self.runs, scenario.steps.len());
        self.prefers(gravest(scenario))
    }

    /// Whether a scenario that breaks this is worth to be kept. Kinds are in the order of their weight.
    fn prefers(&mut self, kind: Option<ViolationKind>) -> bool {
        let kind = kind.filter(|kind| *kind <= self.kind);
        self.kind = kind.unwrap_or(self.kind);
        kind.is_some()
    }

    /// Leaves out steps of a kind, many at once as long as that goes.
    fn leave_out(&mut self, best: &mut Scenario, is_meant: impl Fn(&Step) -> bool) {
        let meant = |scenario: &Scenario| {
            let places = scenario.steps.iter().enumerate();
            let meant = places.filter(|(_, step)| is_meant(step));
            meant.map(|(place, _)| place).collect::<Vec<_>>()
        };
        let mut size = meant(best).len();
        while size > 0 {
            let mut from = 0;
            loop {
                let places = meant(best);
                let Some(out) = places.get(from..(from + size).min(places.len())) else {
                    break;
                };
                if out.is_empty() || self.is_over() {
                    break;
                }
                let mut shorter = best.clone();
                let mut places = 0..;
                shorter
                    .steps
                    .retain(|_| places.next().is_some_and(|it| !out.contains(&it)));
                if self.fails(&shorter) {
                    *best = shorter
                } else {
                    from += size
                }
            }
            size /= 2;
        }
    }

    /// Ends the run soon after the first promise was broken.
    fn end_early(&mut self, best: &mut Scenario) {
        let mut violations = broken(best).into_iter();
        let Some(first) = violations.find(|violation| violation.kind == self.kind) else {
            return;
        };
        let mut shorter = best.clone();
        let end = first.until + Duration::from_secs(1);
        shorter.setup.run_for = Duration::from_nanos(end.as_nanos()).min(best.setup.run_for);
        shorter
            .steps
            .retain(|step| !matches!(step.when, Trigger::At(at) if at > end));
        if !self.is_over() && self.fails(&shorter) {
            *best = shorter;
        }
    }

    /// Rounds the times of steps to tenths of seconds, or to hundredths.
    fn round_times(&mut self, best: &mut Scenario) {
        for unit in [100_000_000, 10_000_000] {
            for place in 0..best.steps.len() {
                let mut rounder = best.clone();
                let Some(Step {
                    when: Trigger::At(at),
                    ..
                }) = rounder.steps.get_mut(place)
                else {
                    continue;
                };
                let rounded = SimTime::from_nanos(at.as_nanos() / unit * unit);
                if *at == rounded || self.is_over() {
                    continue;
                }
                *at = rounded;
                if self.fails(&rounder) {
                    *best = rounder;
                }
            }
        }
    }
}

/// The gravest of the promises that a scenario breaks.
fn gravest(scenario: &Scenario) -> Option<ViolationKind> {
    broken(scenario)
        .iter()
        .map(|violation| violation.kind)
        .min()
}

/// The promises that a scenario breaks, in the order of time.
fn broken(scenario: &Scenario) -> Vec<Violation> {
    let mut world = World::new(scenario);
    world.run();
    check_world(world.history(), scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_scenario_may_break_something_graver_and_nothing_lighter() {
        let mut search = Search {
            kind: ViolationKind::NodeGrant,
            runs: 0,
            runs_max: 1,
            progress: &mut |_, _| {},
        };
        for (kind, is_kept) in [
            (None, false),
            (Some(ViolationKind::NodeQuarantine), false),
            (Some(ViolationKind::NodeGrant), true),
            (Some(ViolationKind::Exclusion), true),
            // What it was about at first is not enough any more.
            (Some(ViolationKind::NodeGrant), false),
        ] {
            assert_eq!(search.prefers(kind), is_kept, "{kind:?}");
        }
    }
}
