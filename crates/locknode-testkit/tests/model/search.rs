//! Running the checker: a model is searched through breadth first, on one thread, so that a trace is a shortest one and
//! the counts are the same every time.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Representative};

/// A model whose transitions are made by real code.
pub(crate) trait Real {
    /// How often a real engine and a real round were run for it.
    fn runs(&self) -> (usize, usize);
}

/// Searches all states, checks that every property holds, and tells what it took.
pub(crate) fn verify<M>(name: &str, model: M)
where
    M: Model + Real + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let start = Instant::now();
    // A broken property ends the search; one that has to be so sometimes does not.
    let checker = model
        .checker()
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let seconds = start.elapsed().as_secs_f64();
    let (engines, rounds) = checker.model().runs();
    println!(
        "{name}: {} states, {} transitions, depth {}, {seconds:.2} s; {engines} runs of the engine, {rounds} of a round",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
    );
    for (property, path) in checker.discoveries() {
        let is_failure = checker
            .model()
            .property(property)
            .expectation
            .discovery_is_failure();
        assert!(
            !is_failure,
            "{name}: {property} is broken by {:#?}",
            path.into_actions()
        );
    }
    checker.assert_properties();
}

/// Searches for a way to break `property`, which there has to be, in at most `steps_max` actions. `model` gives the model
/// with and without names that change places: the former is searched, the latter tells the way.
pub(crate) fn refute<M>(
    name: &str,
    model: impl Fn(bool) -> M,
    property: &'static str,
    steps_max: usize,
) where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Representative + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let start = Instant::now();
    let checker = model(true).checker().spawn_bfs().join();
    let found = checker.discovery(property);
    let (states, seconds) = (checker.unique_state_count(), start.elapsed().as_secs_f64());
    let path = found.unwrap_or_else(|| panic!("{name}: not found in {states} states"));
    let actions = retold(&model(false), &path.into_states());
    let steps = actions.len();
    println!("{name}: {property} is broken in {steps} steps, {states} states, {seconds:.2} s");
    for (step, action) in actions.iter().enumerate() {
        println!("  {:2}. {action:?}", step + 1);
    }
    assert!(
        steps <= steps_max,
        "{name}: {steps} steps, known to take {steps_max}"
    );
}

/// The same way in a model in which names do not change places.
fn retold<M>(model: &M, path: &[M::State]) -> Vec<M::Action>
where
    M: Model,
    M::State: Debug + PartialEq + Representative,
{
    let mut state = model.init_states().swap_remove(0);
    let mut told = Vec::new();
    for stop in path.iter().skip(1) {
        let mut steps = model.next_steps(&state).into_iter();
        let step = steps.find(|(_, next)| next.representative() == *stop);
        let (action, next) = step.unwrap_or_else(|| panic!("no step from {state:?} to {stop:?}"));
        told.push(action);
        state = next;
    }
    told
}

/// Checks that a search in which names change places meets every state, by its representative, that one in which they do
/// not meets.
pub(crate) fn expect_no_state_lost<M>(model: impl Fn(bool) -> M)
where
    M: Model,
    M::State: Clone + Debug + Eq + Hash + Representative,
{
    assert_eq!(reachable(&model(true)), reachable(&model(false)));
}

/// The representatives of all states that can be reached.
fn reachable<M>(model: &M) -> HashSet<M::State>
where
    M: Model,
    M::State: Clone + Eq + Hash + Representative,
{
    let mut pending = model.init_states();
    let mut known: HashSet<M::State> = pending.iter().cloned().collect();
    while let Some(state) = pending.pop() {
        for next in model.next_states(&state) {
            if known.insert(next.clone()) {
                pending.push(next);
            }
        }
    }
    known.iter().map(Representative::representative).collect()
}
