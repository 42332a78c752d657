//! Whether the calendar is above all counters, where a node remembers none.
//!
//! Fence counters begin at the wall clock's seconds times a *step*, and a node grants far fewer than a step's locks in a second.
//! A node with a data directory begins at a durable ceiling instead when that is higher: a small step above its
//! counters, or eight large ones more after damage, which puts them ahead of the calendar. A node that starts
//! without memory is safe when its calendar has overtaken all counters that any node may have reported,
//! since nodes take over each other's counters.

use std::collections::{BTreeMap, BTreeSet};

use crate::check::expectation::forgets_counters;
use crate::fault::{Crash, Fault, Who};
use crate::history::{Event, History};
use crate::scenario::Scenario;
use crate::span::nanos;

/// Whether every start without memory came late enough after the starts before it.
///
/// With `t` the time of such a start, `t_i` those of the starts before it and `s_i` the steps that starts since `t_i` may
/// have put counters ahead, up to the last one that has served, `t - t_i` has to be more than `s_i + 1` seconds for each: one more for
/// the grants. Wall clocks agree to a second, which is added, and one that stood still is behind by that time.
pub(crate) fn floors_hold(scenario: &Scenario, history: &History) -> bool {
    let mut starts = Starts::new(scenario);
    for entry in &history.entries {
        let at = i128::from(entry.at.as_nanos());
        match entry.event {
            Event::Down { node, how } => {
                let forgets = forgets_counters(scenario.setup.guard, how);
                *starts.forgetful.entry(node).or_default() |= forgets;
                // A start that is cut short may have found damage, and the next one begins at the ceiling that it wrote.
                if !starts.down.insert(node) && how != Crash::DiskLost {
                    starts.add(node, at, CUT_SHORT);
                }
            }
            Event::Started { node, reason, .. } => {
                if starts.forgetful.insert(node, false) == Some(true) && !starts.is_overtaken(at) {
                    return false;
                }
                starts.down.remove(&node);
                starts.add(node, at, reason);
            }
            Event::Serving { node } => starts.serves(node),
            _ => {}
        }
    }
    true
}

/// Starts so far. Times and steps are nanoseconds: a step is a second of the calendar.
struct Starts {
    has_directory: bool,
    frozen: i128,
    /// Nodes that have ended, and whether their next start remembers nothing.
    forgetful: BTreeMap<u8, bool>,
    /// Nodes that have ended and not started again.
    down: BTreeSet<u8>,
    /// The steps of all starts so far.
    steps: i128,
    /// The highest of: the time of a start less the steps up to it.
    latest: Option<i128>,
    /// By node: the steps and the highest time at its last start.
    last: BTreeMap<u8, (i128, i128)>,
    /// The same at the last start that has served.
    served: Option<(i128, i128)>,
}

impl Starts {
    fn new(scenario: &Scenario) -> Self {
        let frozen = scenario.faults().map(|fault| match fault {
            Fault::Freeze(Who::Node(_), span) => i128::from(nanos(span)),
            _ => 0,
        });
        Self {
            has_directory: !forgets_counters(scenario.setup.guard, Crash::Kill),
            frozen: frozen.sum(),
            forgetful: BTreeMap::new(),
            down: BTreeSet::new(),
            steps: 0,
            latest: None,
            last: BTreeMap::new(),
            served: None,
        }
    }

    fn add(&mut self, node: u8, at: i128, reason: &str) {
        let is_first = !self.last.contains_key(&node);
        let is_damaged = reason.contains("damaged");
        let before = self.steps;
        self.steps += match self.has_directory && !is_first {
            true if is_damaged => STEPS_AFTER_DAMAGE * SECOND,
            true => FIRST_STEP,
            false => 0,
        };
        // What a usual start adds is above counters of earlier starts; after damage it is above the calendar, too.
        let own = if is_damaged { before } else { self.steps };
        let latest = self.latest.unwrap_or(i128::MIN).max(at - own);
        self.latest = Some(latest);
        self.last.insert(node, (self.steps, latest));
    }

    fn serves(&mut self, node: u8) {
        let start = self.last.get(&node).copied();
        self.served = self.served.max(start);
    }

    /// Whether the calendar of a start at this moment is above all counters.
    fn is_overtaken(&self, at: i128) -> bool {
        self.served.is_none_or(|(steps, latest)| {
            at - steps - (1 + WALL_CLOCKS_AGREE) * SECOND - self.frozen >= latest
        })
    }
}

/// The reason of a start of which nobody knows what it found.
const CUT_SHORT: &str = "cut-short-maybe-damaged";

const SECOND: i128 = 1_000_000_000;

/// Seconds by which the wall clocks of a world may differ.
const WALL_CLOCKS_AGREE: i128 = 1;

/// What a run that grants little may leave unused of its ceiling: 2^12 of the 2^20 that the calendar gains in a second.
const FIRST_STEP: i128 = SECOND >> 8;

/// What a node adds to its ceiling after damage to its state, and more than the usual.
const STEPS_AFTER_DAMAGE: i128 = 9;
