//! Checkers: whether what happened in a world is what was promised.
//!
//! Pure functions over a [`History`], in true time. [`check`] looks for what a scenario has to keep, [`check_all`] for
//! everything, promised or not: a scenario that breaks clocks on purpose wants to see the overlap that fencing is for.
//!
//! ```text
//!   exclusion    windows of belief do not overlap           fencing    tokens are apart and in order
//!   continuity   no extension over a later holder           resource   late writes
//!   expired      no lock that is over                       late        no end that is told after it
//!   majority     a majority behind each moment of belief    liveness   nobody waits for nothing
//!   node         grants, counters, quarantine of each node by itself
//!   answers      each reply of a node is what a naive model says; nobody touches the locks of others; clients say and do
//!                what they have heard
//! ```

mod answers;
mod continuity;
mod evidence;
mod exclusion;
mod expectation;
mod expired;
mod facts;
mod fencing;
mod lack;
mod late;
mod liveness;
mod majority;
mod node;
mod resource;
#[cfg(test)]
mod tests;
mod tolerance;
mod violation;
mod wall_floor;

use crate::history::{Event, History};
use crate::scenario::Scenario;

pub use expectation::Promise;
pub use liveness::Bounds;
pub use tolerance::Tolerance;
pub use violation::{Violation, ViolationKind};

use facts::Facts;

/// The violations of what the scenario has to keep, in the order of time.
///
/// Of one kind there are at most a hundred: the first ones.
pub fn check(history: &History, scenario: &Scenario) -> Vec<Violation> {
    promised(&Facts::of(history), scenario)
}

/// The same of a simulated world, where callers are told at the moment at which the history says so.
pub(crate) fn check_world(history: &History, scenario: &Scenario) -> Vec<Violation> {
    let facts = Facts::of(history);
    let mut violations = promised(&facts, scenario);
    violations.extend(late::late(&facts, scenario));
    in_order(&mut violations);
    violations
}

/// All violations, promised or not, in the order of time; those of liveness when the scenario says from when on.
pub fn check_all(history: &History, scenario: &Scenario) -> Vec<Violation> {
    all(&Facts::of(history), scenario)
}

fn promised(facts: &Facts<'_>, scenario: &Scenario) -> Vec<Violation> {
    let promise = Promise::of(scenario).in_world(scenario, facts.history);
    let mut violations = all(facts, scenario);
    violations.retain(|violation| promise.has(violation.kind));
    violations
}

fn all(facts: &Facts<'_>, scenario: &Scenario) -> Vec<Violation> {
    if let Some(stuck) = stuck(facts.history) {
        // Nothing came to its end.
        return vec![stuck];
    }
    let mut violations = exclusion::exclusion(facts);
    violations.extend(fencing::fencing(facts));
    violations.extend(resource::resource(facts));
    violations.extend(continuity::continuity(facts));
    violations.extend(expired::expired(facts));
    violations.extend(majority::majority(facts));
    violations.extend(answers::answers(facts));
    violations.extend(node::nodes(facts, |node| Tolerance::of(scenario, node)));
    if let Some(bounds) = Bounds::of(scenario) {
        violations.extend(liveness::liveness(facts, &bounds));
    }
    in_order(&mut violations);
    violations
}

fn in_order(violations: &mut [Violation]) {
    violations.sort_by(|a, b| {
        let key = |it: &Violation| (it.from, it.kind, it.until, it.key);
        key(a).cmp(&key(b)).then_with(|| a.text.cmp(&b.text))
    });
}

/// Where the world did not get on.
fn stuck(history: &History) -> Option<Violation> {
    let entry = history.entries.last()?;
    let text = "something is done again and again, and no time passes";
    (entry.event == Event::Stuck)
        .then(|| Violation::new(ViolationKind::Stuck, entry.at, entry.at, text.to_owned()))
}
